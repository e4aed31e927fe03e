/* SPDX-License-Identifier: ISC */
/*
 * The life of the daemon, once it is known how and as whom it runs: making everything, serving,
 * the ways to stop, and taking everything apart again.
 *
 *   started > (shutting down >) stopped
 *
 * While shutting down it serves on; the janitor finds out when the last one has gone.
 */
#ifndef PGUSHER_DAEMON_LIFECYCLE_H
#define PGUSHER_DAEMON_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>

#include "admin/console/actions.h"
#include "admin/metrics/metrics.h"
#include "daemon/janitor.h"
#include "daemon/options.h"
#include "daemon/pidfile.h"
#include "daemon/signals.h"
#include "daemon/systemd.h"
#include "model/registry.h"
#include "net/listener.h"
#include "net/loop.h"

struct daemon {
	const struct options *options;
	struct loop loop;
	struct process process;
	struct registry registry;
	struct listeners listeners;
	struct signals signals;
	struct janitor janitor;
	struct actions actions; /* what the console may ask of us */
	struct metrics metrics;
	struct pidfile pidfile;
	struct handover *handover; /* to another process; NULL: none is under way */
	struct takeover *takeover; /* from another process; NULL: none, or it is over */
	struct systemd_sockets passed; /* sockets that a service manager passed */
	bool has_loop, has_registry,
		is_listening; /* what lifecycle_end() finds to take apart */
	bool failed; /* what ended it was no wish of anybody's */
	bool is_left_at_work; /* after lifecycle_end(): some thread of a helper's still works */
};

static inline struct daemon *daemon_of(struct registry *registry)
{
	return (struct daemon *)((char *)registry - offsetof(struct daemon, registry));
}

/*
 * Make everything with this configuration, whose count is taken over, and listen. False when that
 * failed, which was logged; lifecycle_end() is due in either case.
 */
bool lifecycle_start(
	struct daemon *daemon, const struct options *options, struct snapshot *config);

/* Serve until somebody says stop. False: it has failed. */
bool lifecycle_run(struct daemon *daemon);

/* No more connections over TCP, and an end when the servers or the clients are gone. */
void lifecycle_shut_down(struct daemon *daemon, enum shutdown_mode mode);

/* lifecycle_run() returns at the end of this turn. */
void lifecycle_stop(struct daemon *daemon);

/* The same, and the process has failed: the reason is logged as fatal. */
void lifecycle_fail(struct daemon *daemon, const char *why);

/* Cut all who are left, without a word to clients, and free everything. */
void lifecycle_end(struct daemon *daemon);

#endif
