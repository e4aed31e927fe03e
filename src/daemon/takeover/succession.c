/* SPDX-License-Identifier: ISC */
#include "daemon/takeover/succession.h"

#include <unistd.h>

#include "base/log.h"
#include "daemon/daemon.h"

/* Time between two tries, and the number of them: 20 seconds together. */
#define RETRY_TIME (USEC_PER_SEC / 10)
enum { TRIES_MOST = 200 };

static const struct settings *settings_of(const struct daemon *daemon)
{
	return daemon->registry.process->settings;
}

static bool old_pidfile_exists(const struct daemon *daemon)
{
	const char *path = settings_of(daemon)->pidfile;

	return path && path[0] != '\0' && access(path, F_OK) == 0;
}

static void write_pidfile(struct daemon *daemon, bool is_last)
{
	struct succession *succession = &daemon->succession;
	char why[512];

	if (old_pidfile_exists(daemon) && !is_last)
		return;
	succession->wants_pidfile = false;
	if (!pidfile_write(&daemon->pidfile, settings_of(daemon)->pidfile, why, sizeof(why)))
		log_write(LEVEL_ERROR, "%s", why);
}

static void serve_metrics(struct daemon *daemon, bool is_last)
{
	struct succession *succession = &daemon->succession;
	char why[512];

	succession->wants_metrics = !metrics_follow(&daemon->metrics, why, sizeof(why));
	if (succession->wants_metrics && is_last)
		log_write(LEVEL_ERROR, "cannot serve metrics: %s", why);
}

static void try_again(struct daemon *daemon)
{
	struct succession *succession = &daemon->succession;
	const bool is_last = ++succession->tries >= TRIES_MOST;

	if (succession->wants_pidfile)
		write_pidfile(daemon, is_last);
	if (succession->wants_metrics)
		serve_metrics(daemon, is_last);
	if ((succession->wants_pidfile || succession->wants_metrics) && !is_last)
		wheel_set(&daemon->loop.wheel, &succession->retry,
			loop_now(&daemon->loop) + RETRY_TIME);
}

/* The history of the metrics looks at the pools of all workers. */
static void on_retry(struct deadline *retry)
{
	struct daemon *daemon =
		(struct daemon *)((char *)retry - offsetof(struct daemon, succession.retry));

	process_stop_others(&daemon->process);
	try_again(daemon);
	process_let_others_run(&daemon->process);
}

void succession_begin(struct daemon *daemon)
{
	daemon->succession = (struct succession){
		.retry = {.expire = on_retry}, .wants_pidfile = true, .wants_metrics = true};
	if (old_pidfile_exists(daemon))
		log_write(LEVEL_LOG, "waiting for old pidfile to go away");
	try_again(daemon);
}

void succession_end(struct daemon *daemon)
{
	wheel_remove(&daemon->loop.wheel, &daemon->succession.retry);
	daemon->succession.wants_pidfile = daemon->succession.wants_metrics = false;
}
