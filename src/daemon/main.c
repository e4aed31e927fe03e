/* SPDX-License-Identifier: ISC */
/*
 * The start, step by step. Errors that can be found without sockets are found before the
 * process goes to the background, so that the calling process sees them on stderr and in the
 * exit code.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/apply.h"
#include "daemon/check.h"
#include "daemon/descriptor_limit.h"
#include "daemon/lifecycle.h"
#include "daemon/modes/container.h"
#include "daemon/modes/health.h"
#include "daemon/modes/top_program.h"
#include "daemon/modes/unfiled.h"
#include "daemon/options.h"
#include "daemon/pidfile.h"
#include "daemon/privileges.h"
#include "daemon/process.h"
#include "daemon/service_reload.h"
#include "daemon/takeover/takeover.h"
#include "daemon/version.h"
#include "session/auth/method.h"

/* The state of a start. */
struct start {
	const struct options *options;
	struct daemon *daemon;
	struct snapshot *config; /* counted; NULL once the daemon has taken it over */
	const struct settings *settings;
	struct problems problems;
};

static bool refuse(const char *why)
{
	log_write(LEVEL_FATAL, "%s", why);
	return false;
}

/* Until the settings are known, log to stderr, or nowhere. */
static bool begin_log(const struct start *start)
{
	const struct log_options first = {
		.to_stderr = !start->options->quiet,
		.verbose = start->options->verbose,
	};

	log_configure(&first);
	log_close();
	return true;
}

/* Call it before anything else opens a descriptor or forks. */
static bool take_sockets(const struct start *start)
{
	return systemd_take_sockets(&start->daemon->passed) ||
		refuse("cannot take the sockets passed from service manager");
}

static void warn_ignored(const struct settings *settings)
{
	if (settings->listen_addr && settings->listen_addr[0] != '\0')
		log_write(LEVEL_WARNING,
			"sockets passed from service manager, cf_listen_addr ignored");
	if (strcmp(settings->unix_socket_dir ? settings->unix_socket_dir : "",
		    settings_find("unix_socket_dir")->default_text) != 0)
		log_write(LEVEL_WARNING,
			"sockets passed from service manager, cf_unix_socket_dir ignored");
}

static bool load(struct start *start)
{
	const struct presets presets = {start->options->verbose, start->options->presets};
	char why[512];

	start->problems.files = &start->daemon->file_watch.files;
	start->config = snapshot_start(start->options->config, &presets, &start->problems);
	if (!start->config) {
		check_log_problems(&start->problems);
		return refuse("cannot load config file");
	}
	start->settings = snapshot_settings(start->config);
	return auth_load(start->config, why, sizeof(why)) || refuse(why);
}

static bool assume_user(const struct start *start)
{
	const char *user = start->options->user ? start->options->user : start->settings->user;
	char why[256];

	if (user && user[0] != '\0' && !privileges_assume(user, why, sizeof(why)))
		return refuse(why);
	return getuid() != 0 || refuse("PgBouncer should not run as root");
}

/* After the change of user, so that the file belongs to the user that writes to it. */
static bool open_log(const struct start *start)
{
	struct options visible = *start->options;

	visible.background = false; /* log to stderr until the process is in the background */
	if (!apply_log(start->settings, &visible))
		return false;
	check_log_problems(&start->problems);
	if (getenv("NOTIFY_SOCKET") && !systemd_is_built())
		log_write(LEVEL_WARNING,
			"apparently running under systemd with notify socket, but systemd support "
			"was not built");
	return true;
}

static bool unix_socket_is_in_use(const struct start *start)
{
	const struct systemd_sockets *passed = &start->daemon->passed;

	return listener_unix_is_in_use(start->settings->unix_socket_dir,
		start->settings->listen_port, passed->kept, passed->kept_count);
}

/* Take over from the process on the Unix socket; without one, start normally. */
static bool take_over(const struct start *start)
{
	const struct settings *settings = start->settings;
	char why[512];

	if (start->options->main_process == 0)
		log_write(LEVEL_WARNING,
			"Online restart is deprecated, use so_reuseport instead");
	if (start->daemon->passed.client_count > 0)
		return refuse("cannot reboot under service manager");
	if (settings->unix_socket_dir[0] == '@' || !unix_socket_is_in_use(start)) {
		if (start->options->main_process > 0)
			return refuse("the main process does not listen on this Unix socket");
		log_write(LEVEL_LOG, "old process not found, try to continue normally");
		return pidfile_check(settings->pidfile, why, sizeof(why)) || refuse(why);
	}
	start->daemon->takeover = takeover_begin(settings, why, sizeof(why));
	return start->daemon->takeover || refuse(why);
}

static bool check_running_process(const struct start *start)
{
	const struct settings *settings = start->settings;
	char why[512];

	if (start->options->reboot)
		return take_over(start);
	if (start->daemon->passed.client_count > 0)
		warn_ignored(settings);
	else if (unix_socket_is_in_use(start))
		return refuse("unix socket is in use, cannot continue");
	return pidfile_check(settings->pidfile, why, sizeof(why)) || refuse(why);
}

static bool go_to_background(const struct start *start)
{
	if (!start->options->background)
		return true;
	if (start->settings->pidfile[0] == '\0')
		return refuse("daemon needs pidfile configured");
	if (!process_go_background()) {
		log_write(LEVEL_FATAL, "cannot go to the background: %s", strerror(errno));
		return false;
	}
	return apply_log(start->settings, start->options);
}

static bool start_daemon(struct start *start)
{
	struct snapshot *config = start->config;
	const bool takes_over = start->daemon->takeover != NULL;
	char why[512];

	start->config = NULL;
	if (!lifecycle_start(start->daemon, start->options, config))
		return false;
	/* After a takeover daemon/takeover/succession writes the file. */
	return takes_over ||
		pidfile_write(
			&start->daemon->pidfile, start->settings->pidfile, why, sizeof(why)) ||
		refuse(why);
}

static bool run(const struct options *options)
{
	struct start start = {
		.options = options,
		.daemon = calloc(1, sizeof(struct daemon)),
	};
	bool threads_remain = false;
	bool started = start.daemon && begin_log(&start) && take_sockets(&start) &&
		load(&start) && assume_user(&start) && open_log(&start) &&
		check_running_process(&start) && go_to_background(&start) &&
		start_daemon(&start);

	problems_free(&start.problems);
	if (started && !lifecycle_run(start.daemon))
		started = false;
	if (start.daemon) {
		lifecycle_end(start.daemon);
		threads_remain = start.daemon->threads_remain;
	}
	snapshot_unref(start.config);
	free(start.daemon);
	log_close();
	libevent_global_shutdown();
	/* At exit() libraries would free memory that the running thread uses. */
	if (threads_remain)
		_exit(started ? EXIT_SUCCESS : EXIT_FAILURE);
	return started;
}

/*
 * Returns the compat_version of the configuration file, if the command line has one; the default
 * if the file has mistakes: --version always answers.
 */
static enum compat_version version_asked(const struct options *options)
{
	const struct presets presets = {options->verbose, options->presets};
	enum compat_version version = COMPAT_1_26_1;
	struct problems problems = {0};
	struct snapshot *config = NULL;

	if (options->config)
		config = snapshot_start(options->config, &presets, &problems);
	if (config)
		version = snapshot_settings(config)->compat_version;
	snapshot_unref(config);
	problems_free(&problems);
	return version;
}

static bool reload(struct options *options)
{
	switch (service_reload(options)) {
	case SERVICE_RELOAD_DONE:
		return true;
	case SERVICE_RELOAD_SUCCESSOR:
		return run(options);
	case SERVICE_RELOAD_FAILED:
		break;
	}
	return false;
}

/* Without a file the configuration is made of the other options. */
static bool has_config(struct options *options)
{
	return options->config || unfiled_prepare(options);
}

static void tune(void)
{
	process_tune();
	descriptor_limit_raise();
}

int main(int argc, char **argv)
{
	enum options_action action;
	struct options options;

	process_fill_descriptors();
	if (top_program_is_asked(argc, argv))
		return top_program_run(argv);
	action = options_read(argc, argv, &options);
	switch (action) {
	case OPTIONS_HEALTH:
		if (options.config || options.listen_count > 0 || options.to)
			return (int)health_ask(&options);
		return container_run(&options, action);
	case OPTIONS_RUN:
	case OPTIONS_CHECK:
		/* Before the process is tuned: commands would inherit that. */
		if (options.container)
			return container_run(&options, action);
		tune();
		if (!has_config(&options))
			break;
		if (action == OPTIONS_RUN)
			return run(&options) ? EXIT_SUCCESS : EXIT_FAILURE;
		return check_configuration(&options) ? EXIT_SUCCESS : EXIT_FAILURE;
	case OPTIONS_RELOAD:
		tune();
		return reload(&options) ? EXIT_SUCCESS : EXIT_FAILURE;
	case OPTIONS_CONVERT:
		return convert_run(&options.convert);
	case OPTIONS_VERSION:
		version_print(version_asked(&options));
		return EXIT_SUCCESS;
	case OPTIONS_HELP:
		options_print_help(&options);
		return EXIT_SUCCESS;
	case OPTIONS_INVALID:
		break;
	}
	return EXIT_FAILURE;
}
