/* SPDX-License-Identifier: ISC */
/*
 * Settings that a client has SET by statements that pgusher understands. They follow the client
 * without a question to the server if nothing has undone them when the server is free again.
 */
#ifndef PGUSHER_SESSION_STATE_CHANGES_H
#define PGUSHER_SESSION_STATE_CHANGES_H

#include "session/relay/relay.h"

/*
 * The client sends this text to its server. Returns whether it is a statement by itself whose
 * effect on settings is known: then its request is to be marked with REQUEST_KNOWN.
 */
bool changes_note_text(struct relay_run *run, const char *text, size_t length);

/* An error, or a ROLLBACK, may have undone some changes: the server is to be asked. */
void changes_doubt(struct server_link *server);

/* The changes count: client and server have them. Returns false when out of memory. */
bool changes_take(struct server_link *server, struct client_link *client);

#endif
