/* SPDX-License-Identifier: ISC */
/*
 * SUSPEND: stops to read every connection between two messages, so that another process can
 * take over the descriptors.
 *
 * First the clients are suspended, after what they wait for: logins end, and waiting clients
 * get a server. Then the servers are suspended; their answers remain unread. Connections that
 * are not suspended after suspend_timeout are closed. A SUSPEND ends by RESUME, or with the
 * last console client.
 */
#ifndef PGUSHER_SESSION_SERVING_SUSPEND_H
#define PGUSHER_SESSION_SERVING_SUSPEND_H

#include "model/registry.h"

/* Begin a SUSPEND. Returns false when out of memory; nothing has changed then. */
bool suspend_begin(struct registry *registry);

/* Returns true if all connections are suspended. */
bool suspend_is_complete(const struct registry *registry);

/*
 * Suspend the connections that can be suspended now, and close those that cannot be kept. Does
 * nothing without a SUSPEND. May end the SUSPEND; clients and servers may be closed.
 */
void suspend_check(struct registry *registry);

/* End the SUSPEND: read all connections again. Does nothing without a SUSPEND. */
void suspend_end(struct registry *registry);

/*
 * Returns true if a client with a server may continue during a SUSPEND, so that its server
 * becomes free for waiting clients.
 */
bool suspend_may_continue(const struct client_link *client);

#endif
