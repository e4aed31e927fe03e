/* SPDX-License-Identifier: ISC */
/*
 * What a server tells of itself when it lets us in: its parameters, of which the pool's first
 * become the welcome of the pool's clients (session/work/welcome), and its key for cancel requests.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_WELCOME_H
#define PGUSHER_SESSION_SERVER_SERVER_WELCOME_H

#include "model/registry.h"
#include "wire/frame.h"

/* A whole ParameterStatus. It may close the server. */
void server_welcome_take_parameter(
	struct server_link *server, const uint8_t *message, const struct frame *frame);

/* The body of a BackendKeyData. It may close the server. */
void server_welcome_take_key(struct server_link *server, const uint8_t *body, size_t length);

/* What comes before the tracked parameters, in place of what is in `head`. */
void server_welcome_write(const struct server_link *server, struct buffer *head);

/*
 * The pool's first login since it was made or its welcome forgotten: the welcome is its. False: no
 * memory.
 */
bool server_welcome_keep(struct server_link *server);

#endif
