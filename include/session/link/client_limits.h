/* SPDX-License-Identifier: ISC */
/*
 * The time limits of clients: which ones a state has, and what happens when one is over.
 *
 * A client has one deadline, the nearest of the limits of its state; when it fires all of them
 * are looked at. Limits of a running query or transaction are the janitor's (session/upkeep), which
 * walks the few servers instead of the many clients.
 */
#ifndef PGUSHER_SESSION_LINK_CLIENT_LIMITS_H
#define PGUSHER_SESSION_LINK_CLIENT_LIMITS_H

#include "model/registry.h"

/* Set the deadline that the client's present state has. After every change of state. */
void client_limits_start(struct client_link *client);

/* The same for one that has been PAIRED, which has none, and is IDLE now: nor has that one, mostly. */
static inline void client_limits_rest(struct client_link *client)
{
	if (link_registry(&client->link)->process->settings->client_idle_timeout > 0 ||
		(client->user && client->user->config))
		client_limits_start(client);
}

/* The deadline's function. */
void client_limits_expire(struct deadline *deadline);

#endif
