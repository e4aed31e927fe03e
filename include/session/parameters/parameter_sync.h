/* SPDX-License-Identifier: ISC */
/*
 * Our SETs, which give the session of a server the parameters of its client.
 *
 * They are sent in one write with the client's messages, and are answered first. Until
 * the SETs have succeeded the client is not read, and the messages sent with them are kept
 * (server.kept). The SETs are sent alone, and the client's messages wait for their end, if they
 * may fail for another reason than their values, or if the client has sent too much to be kept.
 *
 * A time limit that the server has for its last client (statement_timeout, lock_timeout,
 * transaction_timeout) must not end our SETs. If the server follows one, or a client has run SET
 * of some parameter on it, the SETs are sent alone, behind a Query that lifts the limits that are
 * known. If they are ended by a limit nevertheless, the server is closed, and the client goes on
 * with another one.
 *
 * SETs that are sent with a client's messages are one Query with a transaction:
 *
 *     BEGIN;SET …;COMMIT
 *
 * If one fails, the rest of that Query is not executed, and the server is in a failed
 * transaction, in which it refuses everything that follows: so the client's messages are not
 * executed with wrong parameters. Messages that would leave that transaction and go on are not
 * sent together with our SETs.
 *
 * If a server refuses a SET, such as that of a role that was dropped meanwhile, its error is the
 * answer to the client's query, and the server is free again: see serving/refused_setting. The client
 * keeps what it wants, and gets an error for each query until a server takes it, or until it sends
 * a statement that replaces it (parameters/way_out). Messages that were sent with such SETs are
 * taken back first, and the SETs are sent alone.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_PARAMETER_SYNC_H
#define PGUSHER_SESSION_PARAMETERS_PARAMETER_SYNC_H

#include "model/registry.h"

enum sync_need {
	SYNC_NOT_NEEDED, /* the server has the client's parameters, now in the same spelling */
	SYNC_NEEDED, /* the SETs are in server.kept */
	SYNC_IMPOSSIBLE, /* a value of the client cannot be written in SQL */
	SYNC_NO_MEMORY,
};

/*
 * Compare the parameters of this client and this idle server, before they are paired, and write
 * the SETs that are needed to server.kept.
 */
enum sync_need parameter_sync_prepare(struct client_link *client, struct server_link *server);

/*
 * The server has the client's parameters: note the same spelling of the values for both, and
 * the client's followed parameters for the server. Returns false when out of memory.
 */
bool parameter_sync_adopt(struct client_link *client, struct server_link *server);

/*
 * Log, at level debug, the values that differ between the client's parameters and `set`, their
 * new spelling. NULL is allowed.
 */
void parameter_sync_log_spelling(
	const struct client_link *client, const struct parameters *set);

/*
 * A DataRow of a server that runs our SETs: the first ones are its time limits if these were
 * asked for. Others are ignored.
 */
void parameter_sync_take_limit(struct server_link *server, const uint8_t *row, size_t length);

/*
 * SETs that were sent alone have succeeded: resume the client. May close the client, or the
 * server if that has sent something unrequested.
 */
void parameter_sync_done(struct server_link *server);

/*
 * The server has refused a SET: the values on it of what these two follow are unknown. Returns
 * false when out of memory.
 */
bool parameter_sync_doubt(struct client_link *client, struct server_link *server);

/*
 * Give the server, which is paired with this client and free, these parameters, a reference that
 * the function takes; the client gets them when that has succeeded, and goes on. Returns false if
 * they cannot be set: nothing was sent then, or the connection is broken. May close the client.
 */
bool parameter_sync_again(
	struct client_link *client, struct server_link *server, struct parameters *target);

/*
 * The server has certainly executed none of the messages sent with the SETs: the client holds
 * them again, as if the SETs had been sent alone. Nothing may be sent to this server any more.
 * Does nothing if the messages were not kept, or when out of memory.
 */
void parameter_sync_take_back(struct server_link *server);

#endif
