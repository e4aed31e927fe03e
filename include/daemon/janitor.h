/* SPDX-License-Identifier: ISC */
/*
 * The regular upkeep, three times a second: of servers (daemon/server_upkeep), pools and automatic
 * databases (pool_upkeep), statistics (stats_line), the end of a shutdown (shutdown).
 *
 * It walks pools and servers, never clients: what limits a client is a deadline of its own.
 */
#ifndef PGUSHER_DAEMON_JANITOR_H
#define PGUSHER_DAEMON_JANITOR_H

#include "model/registry.h"
#include "net/loop.h"

struct janitor {
	struct deadline deadline;
	struct loop_task shutdown; /* see janitor_shut_down() */
	struct registry *registry;
	/* Called at the end of each run, for what waits on pools to change; may be NULL. */
	void (*after)(struct registry *registry);
	usec_t stats_began; /* the present stats period */
};

/* Start; the janitor must stay where it is until janitor_stop(). */
void janitor_start(struct janitor *janitor, struct registry *registry,
	void (*after)(struct registry *registry));

void janitor_stop(struct janitor *janitor);

/*
 * A shutdown has begun. Where nobody is left whom it must wait for, it ends with this turn instead
 * of a third of a second later; those count as gone whose leaving has reached us.
 */
void janitor_shut_down(struct janitor *janitor);

#endif
