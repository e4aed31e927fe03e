/* SPDX-License-Identifier: ISC */
/*
 * The reserve of a pool: servers beyond its size, for clients that have waited for
 * reserve_pool_timeout.
 */
#ifndef PGUSHER_SESSION_POOL_RESERVE_H
#define PGUSHER_SESSION_POOL_RESERVE_H

#include "model/registry.h"

/* A client that waits for a server or a look-up. */
struct reserve_waiter {
	usec_t since; /* 0: there is no such client */
	const struct link *link; /* NULL: it is at another worker */
};

static inline struct reserve_waiter reserve_waiter_of(const struct client_link *client)
{
	return (struct reserve_waiter){client->link.request_time, &client->link};
}

/* Returns the one that has waited longest, apart from those for which logins are in progress. */
struct reserve_waiter reserve_first_waiter(const struct pool *pool);

/*
 * Returns whether a full pool may open a server of its reserve for this client. If the client has
 * not waited long enough, registry.work gets the pool again when it has.
 */
bool reserve_may_be_used(struct pool *pool, struct reserve_waiter waiter);

/* Log that a server of the reserve is opened for this client. */
void reserve_log_use(struct reserve_waiter waiter);

#endif
