/* SPDX-License-Identifier: ISC */
/*
 * Functions of the handover that only daemon/takeover/handover calls: they work on the links of
 * the registry, whereas daemon/takeover/handover.c has the stages, the timer and the console.
 *
 * A link can be sent if inventory_includes() says so; encrypted links and links paired with one
 * stay in this process.
 */
#ifndef PGUSHER_DAEMON_TAKEOVER_HANDOVER_PARTS_H
#define PGUSHER_DAEMON_TAKEOVER_HANDOVER_PARTS_H

#include "model/registry.h"

/* --- src/daemon/takeover/handover_settle.c ------------------------------------------------ */

/*
 * Stop clients that are bound to an encrypted server from beginning another transaction, and
 * return whether every link is settled: logins, cancel requests, look-ups and replayed batches
 * are over, or suspend_timeout is. `waited` is the time since the handover began.
 */
bool handover_settle(struct registry *registry, usec_t waited);

/* --- src/daemon/takeover/handover_links.c ------------------------------------------------- */

/*
 * Take all links but the console of this id out of the loop, so that nothing changes while the
 * inventory is written and sent. Links that are still not settled are closed.
 */
void handover_detach_links(struct registry *registry, uint64_t console);

/* Put all links back into the loop, and let clients begin transactions again. */
void handover_attach_links(struct registry *registry);

/* Close this process's descriptors of all links that were sent, and its consoles. */
void handover_close_sent(struct registry *registry);

/*
 * Close clients that stayed and are between two transactions, or wait in a paused pool: when
 * they connect again they reach the new process.
 */
void handover_close_resting(struct registry *registry);

#endif
