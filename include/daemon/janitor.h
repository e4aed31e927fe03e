/* SPDX-License-Identifier: ISC */
/*
 * The regular upkeep, three times a second: of servers (daemon/server_upkeep), pools and
 * automatic databases (pool_upkeep), statistics (stats_line), and of a shutdown (shutdown).
 *
 * It walks pools and servers, never clients: each client has its own deadline for its limits.
 */
#ifndef PGUSHER_DAEMON_JANITOR_H
#define PGUSHER_DAEMON_JANITOR_H

#include "model/registry.h"
#include "net/loop.h"

struct janitor {
	struct deadline deadline;
	struct loop_task shutdown; /* see janitor_begin_shutdown() */
	struct registry *registry;
	/* Called at the end of each run, when pools may have changed; may be NULL. */
	void (*after)(struct registry *registry);
	usec_t stats_began; /* start of the current stats period */
};

/* Start. The janitor must stay at its address until janitor_stop(). */
void janitor_start(struct janitor *janitor, struct registry *registry,
	void (*after)(struct registry *registry));

void janitor_stop(struct janitor *janitor);

/*
 * A shutdown has begun: check at the end of this turn whether it is over already, instead of at
 * the next run of the janitor. Disconnects that the kernel has reported by then are counted.
 */
void janitor_begin_shutdown(struct janitor *janitor);

#endif
