/* SPDX-License-Identifier: ISC */
/*
 * Asks a server which settings its session has, after a transaction in which its client has
 * changed settings that pgusher does not know. The answer counts: what was rolled back, or set by
 * SET LOCAL, is not in it.
 *
 * The client has its ReadyForQuery by then. If its next message comes before the answer, this
 * waits for it.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_QUESTION_H
#define PGUSHER_SESSION_PARAMETERS_QUESTION_H

#include "model/client_link.h"
#include "model/server_link.h"

/*
 * Ask a clean server, which is PAIRED no more with this client: the server is ASKING, or CLOSED if
 * nothing can be sent to it. closing: the client is being closed and needs no answer.
 */
void question_begin(struct server_link *server, struct client_link *client, bool closing);

/*
 * The query has ended: server and client have the settings of the answer, and the client goes on.
 * Returns false if the server could not answer: it must be closed.
 */
bool question_done(struct server_link *server);

/* A server or a client that takes part in a question is closed. */
void question_server_closed(struct server_link *server);
void question_client_closed(struct client_link *client);

/* Note the names of settings with a dot that a statement of the client may set. */
bool question_note_name(struct client_link *client, const char *name);

#endif
