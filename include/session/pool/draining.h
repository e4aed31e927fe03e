/* SPDX-License-Identifier: ISC */
/*
 * DRAINING servers: their client was closed in the middle of its work.
 *
 * What the server sends from then on is read and dropped, and what its client had begun is
 * ended: a running query is cancelled, over a connection of its own as for every cancel
 * request; a COPY is failed; a batch without its Sync is rolled back, and so is a transaction
 * that is open at the end. Only if the client has sent Terminate, its earlier requests may run
 * to their end, for a limited time. A server that is clean afterwards returns to its pool. A
 * server that is not clean, or takes too long, is closed.
 *
 * Requests that were already sent cannot be withdrawn: of several queries in a row each is
 * cancelled when it begins to run. What was not sent before the client closed is never sent.
 */
#ifndef PGUSHER_SESSION_POOL_DRAINING_H
#define PGUSHER_SESSION_POOL_DRAINING_H

#include <stddef.h>

#include "model/server_link.h"

/*
 * This server, in state PAIRED, has just been unpaired from its client: return it to the pool
 * if it is clean, else drain it, else close it. Does nothing if it is in another state.
 * politely: the client has sent Terminate (or its query was cancelled), so that its earlier
 * requests may run to their end. The server may be paired with another client, or be closed,
 * when this returns.
 */
void draining_client_unpaired(struct server_link *server, bool politely);

/*
 * A DRAINING server has sent `length` bytes, all of which have been judged: take the next step.
 * The server may be paired with another client, or be closed, when this returns.
 */
void draining_proceed(struct server_link *server, size_t length);

/*
 * A query of our own has ended on a DRAINING server: the SETs for its former client, or a
 * ROLLBACK. As for draining_proceed(), the server may be paired or closed when this returns.
 */
void draining_own_query_done(struct server_link *server);

/*
 * For judges: the DRAINING server has sent CopyInResponse. Sends CopyFail, and a Sync if one is
 * missing. Returns false if the COPY cannot be ended; the caller closes the server then.
 */
bool draining_end_copy(struct server_link *server);

/*
 * For judges: the SETs that the requests of the former client were sent together with have
 * ended. Ends what these requests have left open, and cancels the query that runs. Returns
 * false if it is unknown how the requests will end; the caller closes the server then.
 */
bool draining_start(struct server_link *server);

/* For judges: one of several requests has ended, so that the next one runs now. */
void draining_request_ended(struct server_link *server);

/*
 * The last cancel request in flight to this DRAINING server has ended: read its answer. The
 * server may be paired with another client, or be closed, when this returns.
 */
void draining_cancel_done(struct server_link *server);

/* The server no longer waits for a connection for its cancel request, if it did. */
void draining_withdraw_cancel(struct server_link *server);

/*
 * Regular upkeep of a DRAINING server: cancel its query after the time allowed, and close the
 * server when it takes too long.
 */
void draining_inspect(struct server_link *server, usec_t now);

#endif
