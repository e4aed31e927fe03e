/* SPDX-License-Identifier: ISC */
/*
 * The time limits of clients: which limits each state has, and what happens when one is
 * exceeded.
 *
 * A client has one deadline, the earliest of the limits of its state; when it fires, all of
 * them are checked. The limits of a running query or transaction are checked by the janitor
 * (daemon), which walks the few servers instead of the many clients.
 */
#ifndef PGUSHER_SESSION_LINK_CLIENT_LIMITS_H
#define PGUSHER_SESSION_LINK_CLIENT_LIMITS_H

#include "model/registry.h"

/* Set the deadline of the client's present state. To be called after every change of state. */
void client_limits_start(struct client_link *client);

/*
 * As client_limits_start(), for a client that was PAIRED, and so has no deadline, and is IDLE
 * now. Returns at once without a limit for idle clients, as is usual.
 */
static inline void client_limits_start_idle(struct client_link *client)
{
	if (link_registry(&client->link)->process->settings->client_idle_timeout > 0 ||
		(client->user && client->user->config))
		client_limits_start(client);
}

/*
 * The function of the deadline: enforce the limits that are exceeded, and set the deadline
 * anew. The client may be closed by this.
 */
void client_limits_expire(struct deadline *deadline);

#endif
