/* SPDX-License-Identifier: ISC */
/*
 * Our SETs: what a server is told so that its session has the parameters of its client.
 *
 * They leave in one write with what the client has said, whose answers follow theirs. Until they
 * have succeeded the client is not read on, and what went with them is kept (server.kept). They go
 * alone, and the client's messages wait for their end, where they may well fail, or where so much
 * was said that it is not kept.
 *
 * Those that go with a client's messages are a transaction in one Query: `BEGIN;SET …;COMMIT`. If
 * one fails, the rest of that Query is not run, and the transaction is still there, as a failed one
 * in which the server refuses whatever comes behind it: the client's messages are not run with
 * parameters that are not the client's.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_PARAMETER_SYNC_H
#define PGUSHER_SESSION_PARAMETERS_PARAMETER_SYNC_H

#include "model/registry.h"

enum setting {
	SYNC_NOT_NEEDED, /* the server has all that the client wants, and both have the same set */
	SYNC_NEEDED, /* it has to be told: the SETs stand in server.kept */
	SYNC_IMPOSSIBLE, /* a value of the client's cannot be said in SQL */
	SYNC_NO_MEMORY,
};

/* What has to be set on this idle server before it can be given to this client? */
enum setting parameter_sync_prepare(struct client_link *client, struct server_link *server);

/*
 * The server has the client's parameters: both spell the same values alike from now on, and the
 * server follows what the client does. False: no memory.
 */
bool parameter_sync_adopt(struct client_link *client, struct server_link *server);

/* For those who look for it: what the client gets in other letters with this set. NULL is nothing. */
void parameter_sync_log_spelling(
	const struct client_link *client, const struct parameters *set);

/* SETs that went alone have succeeded: the client's messages follow. */
void parameter_sync_done(struct server_link *server);

/*
 * It is certain that nothing was run of what went with the SETs: the client holds that again, as if
 * they had gone alone. Nothing is to be sent to this server any more. Without memory, or if it was
 * not kept, all stays as it is.
 */
void parameter_sync_take_back(struct server_link *server);

#endif
