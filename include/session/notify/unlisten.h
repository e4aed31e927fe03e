/* SPDX-License-Identifier: ISC */
/*
 * UNLISTEN that a client runs on a server of its own: inside a transaction, by the extended protocol,
 * among several statements. The server cannot be asked for what it ends, since another one listens for
 * the client: it is read from the words of the texts, and counts when the server has said that it ran
 * an UNLISTEN and the transaction was not rolled back.
 */
#ifndef PGUSHER_SESSION_NOTIFY_UNLISTEN_H
#define PGUSHER_SESSION_NOTIFY_UNLISTEN_H

#include "session/notify/channels.h"
#include "session/relay/relay.h"

/* Note what a text of a client, which may listen, may end. The text ends at its first NUL. */
void unlisten_note_text(struct client_link *client, const char *text, size_t length);

/* The server has run a command with this tag for its client, which may listen. */
void unlisten_note_tag(struct server_link *server, struct client_link *client, const char *tag);

/* The server has sent an error: nothing of the transaction may count. */
void unlisten_undo(struct client_link *client);

/* The transaction has ended: end the subscriptions that it has ended. */
void unlisten_apply(struct client_link *client);

#endif
