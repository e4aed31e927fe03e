/* SPDX-License-Identifier: ISC */
/*
 * The end of a client's login: AuthenticationOk, the parameters, the cancel key, ReadyForQuery,
 * in one write, the welcome. Protocol: "Message Flow", Start-up.
 *
 * The parameters are those of the pool's first server login; startup parameters of the client
 * replace tracked ones. Until they are known the client waits (WELCOMING).
 */
#ifndef PGUSHER_SESSION_SERVING_WELCOME_H
#define PGUSHER_SESSION_SERVING_WELCOME_H

#include "model/registry.h"

/*
 * Finish the login of an authenticated client, or make it wait (WELCOMING) until the pool has a
 * welcome. The client may be closed when this returns.
 */
void welcome_or_wait(struct client_link *client);

/* If the pool has a welcome, finish the logins that wait for it. Clients may be closed. */
void welcome_waiting(struct pool *pool);

/* Returns true if a client waits for the first server login of the pool. */
bool welcome_is_wanted(const struct pool *pool);

/*
 * Finish the login of a WELCOMING client with replication, which has adopted the parameters of
 * its own server. `head` is the beginning of its welcome, which is appended to. Returns true if
 * the client is IDLE; the caller has to call relay_client_resume(). Returns false if it was
 * closed.
 */
bool welcome_replica(struct client_link *client, struct buffer *head);

#endif
