/* SPDX-License-Identifier: ISC */
#include "daemon/service_reload.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/snapshot.h"
#include "daemon/check.h"
#include "daemon/systemd.h"

enum { PARENT_PAUSE_USEC = 1000 };

/* In the successor: the end of the pipe on which the command waits; -1: there is none. */
static int waiting_command = -1;

static enum service_reload fail(const struct options *options, const char *what, int error)
{
	fprintf(stderr, "%s: %s%s%s\n", options->program, what, error ? ": " : "",
		error ? strerror(error) : "");
	return SERVICE_RELOAD_FAILED;
}

static enum service_reload send_hangup(const struct options *options)
{
	if (kill(options->main_process, SIGHUP) != 0)
		return fail(options, "cannot signal the process", errno);
	return SERVICE_RELOAD_DONE;
}

/* Does the main process run the file that this process runs? Also true if that is unknown. */
static bool runs_this_program(const struct options *options)
{
	struct stat own, theirs;
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)options->main_process);
	if (stat("/proc/self/exe", &own) != 0 || stat(link, &theirs) != 0) {
		fprintf(stderr, "%s: cannot tell which program process %d runs: %s\n",
			options->program, (int)options->main_process, strerror(errno));
		return true;
	}
	return own.st_dev == theirs.st_dev && own.st_ino == theirs.st_ino;
}

/* A takeover needs the Unix socket of the main process. */
static bool has_socket(const struct options *options)
{
	const struct presets presets = {options->verbose, options->presets};
	struct problems problems = {0};
	struct snapshot *config = snapshot_start(options->config, &presets, &problems);
	const char *dir = config ? snapshot_settings(config)->unix_socket_dir : NULL;
	const bool has = dir && dir[0] != '\0' && dir[0] != '@';

	snapshot_unref(config);
	problems_free(&problems);
	return has;
}

/* Prints why not. */
static bool can_take_over(const struct options *options)
{
	const char *why = NULL;

	if (!has_socket(options))
		why = "without unix_socket_dir the new program cannot take over";
	else if (!systemd_can_notify())
		/* It would take the end of the old process for that of the service. */
		why = "the new program cannot tell the service manager that it takes over: "
		      "is NotifyAccess=all in the unit?";
	if (why)
		fprintf(stderr, "%s: %s; restart the service\n", options->program, why);
	return !why;
}

/*
 * Two forks: the manager becomes the parent of the successor, and so learns of its end. Returns
 * 1 in the successor, 0 in the command, and -1 with errno when a fork fails.
 */
static int fork_successor(void)
{
	const pid_t child = fork();
	pid_t between;

	if (child != 0)
		return child > 0 ? 0 : -1;
	between = getpid();
	if (fork() != 0)
		_exit(EXIT_SUCCESS);
	/* A moment: the manager asks for the parent when the successor tells of itself. */
	while (getppid() == between)
		usleep(PARENT_PAUSE_USEC);
	return 1;
}

/* Wait until the successor serves, or has ended. */
static enum service_reload wait_for(const struct options *options, int pipe)
{
	char byte;
	ssize_t got;

	do
		got = read(pipe, &byte, 1);
	while (got < 0 && errno == EINTR);
	close(pipe);
	if (got == 1)
		return SERVICE_RELOAD_DONE;
	return fail(options, "the new program could not take over; the old one goes on", 0);
}

static enum service_reload start_successor(struct options *options)
{
	int ends[2];

	if (pipe(ends) != 0)
		return fail(options, "cannot make a pipe", errno);
	switch (fork_successor()) {
	case 1:
		close(ends[0]);
		waiting_command = ends[1];
		options->reboot = true;
		return SERVICE_RELOAD_SUCCESSOR;
	case 0:
		close(ends[1]);
		return wait_for(options, ends[0]);
	default:
		return fail(options, "cannot start the new program", errno);
	}
}

enum service_reload service_reload(struct options *options)
{
	if (!check_configuration(options))
		return fail(options, "the configuration has mistakes: nothing was changed", 0);
	if (runs_this_program(options))
		return send_hangup(options);
	return can_take_over(options) ? start_successor(options) : send_hangup(options);
}

void service_reload_succeeded(void)
{
	if (waiting_command < 0)
		return;
	(void)!write(waiting_command, "", 1);
	close(waiting_command);
	waiting_command = -1;
}
