/* SPDX-License-Identifier: ISC */
/*
 * What becomes of a server whose client has gone in the middle of something (DRAINING).
 *
 * What it still has to say is read and dropped. What its client had begun is ended: a running
 * query is cancelled, over a connection of its own as every cancel request; a COPY is failed; a
 * batch without its Sync is rolled back; so is a transaction that is open at the end. Only a client
 * that said Terminate has what it had sent before finished, for a while. A server that is as clean
 * as any other after that goes back to its pool; one that is not, or is not in time, is closed.
 *
 * What was sent to the server is sent: of several queries in a row each is cancelled when it
 * begins to run. Nothing that was not sent when its client went is sent.
 */
#ifndef PGUSHER_SESSION_POOL_DRAINING_H
#define PGUSHER_SESSION_POOL_DRAINING_H

#include <stddef.h>

#include "model/server_link.h"

/*
 * The client of this server, which is still PAIRED but has been unpaired, has closed: return the
 * server to the pool if it is clean, else drain it, else close it. politely: the client has sent
 * Terminate, so what it had sent before may finish by itself.
 */
void draining_client_unpaired(struct server_link *server, bool politely);

/* It has said something, of so many bytes; all of that has been judged. */
void draining_proceed(struct server_link *server, size_t length);

/* A query of our own has ended on it: our SETs for the client that has gone, or a ROLLBACK. */
void draining_own_query_done(struct server_link *server);

/* For judges: it expects the data of a COPY. False: it cannot be told that none come. */
bool draining_end_copy(struct server_link *server);

/*
 * For judges: our SETs have ended, behind which its client's messages had gone. False: nobody can
 * say how those will end.
 */
bool draining_start(struct server_link *server);

/* For judges: one of several requests has ended, so that the next one runs now. */
void draining_request_ended(struct server_link *server);

/* The last cancel request on its way to it has ended. */
void draining_cancel_done(struct server_link *server);

/* It waits for a connection that carries a cancel request no longer. */
void draining_withdraw_cancel(struct server_link *server);

/* A regular look: it must come to an end. */
void draining_inspect(struct server_link *server, usec_t now);

#endif
