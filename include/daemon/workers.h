/* SPDX-License-Identifier: ISC */
/*
 * The workers of the process (`workers`): each has an event loop and the databases that are at home
 * there (model/shared/directory). The first one is the main thread, whose parts are the daemon's; it
 * also accepts connections and has the console, the metrics, signals and peers. This makes the others
 * and takes them apart.
 */
#ifndef PGUSHER_DAEMON_WORKERS_H
#define PGUSHER_DAEMON_WORKERS_H

#include "daemon/daemon.h"

struct worker {
	struct loop loop;
	struct registry registry;
	struct janitor janitor;
	bool has_loop;
};

/*
 * Make what a registry of any worker needs besides registry_init(). Returns false, and logs why, when
 * that fails.
 */
bool workers_make_parts(struct registry *registry);

/* Free these parts. Returns how many threads are left that are still busy. */
unsigned workers_end_parts(struct registry *registry);

/*
 * Make the loops of the other workers, before the first registry, and then their registries, after
 * it. Return false, and log why, when that fails.
 */
bool workers_make_loops(struct daemon *daemon, unsigned count);
bool workers_make_registries(struct daemon *daemon);

/*
 * Whether the process may use all processors of `cpu_affinity`. It is asked at the start: a process that
 * has taken over from another one must not end for that. Returns false, and logs why, if it may not.
 */
bool workers_may_be_bound(const struct settings *settings);

/* Let the workers run, each by a thread of its own; the calling thread is the first one. */
bool workers_start(struct daemon *daemon);

/* End their threads: all that they have belongs to the calling thread now. */
void workers_stop(struct daemon *daemon);

/* Free the registries, which have no links any more, and then the loops. */
void workers_free_registries(struct daemon *daemon);
void workers_free_loops(struct daemon *daemon);

#endif
