/* SPDX-License-Identifier: ISC */
/*
 * Servers that stay with their clients between transactions, because their sessions have what
 * cannot follow: temporary tables, advisory locks, cursors WITH HOLD, ... They are counted in
 * pool.pinned and limited by pin_causes, max_pinned and max_pinned_time.
 */
#ifndef PGUSHER_SESSION_STATE_PINS_H
#define PGUSHER_SESSION_STATE_PINS_H

#include "model/client_link.h"
#include "model/server_link.h"

/*
 * The server, which is with this client, has these topics and no other ones; name: one of the
 * objects, or NULL. It is pinned if one of them is in pin_causes. Returns false if the server cannot
 * stay with the client: the client has got a WARNING then, each time where session_state is error or
 * max_pinned is reached, else once for each cause, and must lose all of them.
 */
bool pins_set(struct server_link *server, struct client_link *client, session_topics topics,
	const char *name);

/* The server is not pinned any more: it is closed, reset, or its client has left. */
void pins_clear(struct server_link *server);

/*
 * Returns why the pinned server cannot stay with its client any longer (max_pinned_time, PAUSE, a
 * RELOAD), as a text for pins_warn(); NULL: it can.
 */
const char *pins_are_over(const struct server_link *server);

/* Warn the client that it loses what pins its server. */
void pins_warn(const struct server_link *server, struct client_link *client, const char *why);

/* Warn the client that it does not listen, since that is not allowed. */
void pins_warn_of_channels(struct client_link *client);

/* The session has drawn no value from any sequence any more. */
void pins_end_sequences(struct server_link *server);

/* Returns what pins the server in words: a name of wire/pin_causes. */
const char *pins_cause(const struct server_link *server);

#endif
