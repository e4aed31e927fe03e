/* SPDX-License-Identifier: ISC */
/*
 * What a server reports at the end of its login: its parameters and its cancel key. The
 * parameters of a pool's first server become the welcome of the pool's clients (serving/welcome).
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_WELCOME_H
#define PGUSHER_SESSION_SERVER_SERVER_WELCOME_H

#include "model/registry.h"
#include "wire/frame.h"

/* Take over the parameter of a whole ParameterStatus message. May close the server. */
void server_welcome_take_parameter(
	struct server_link *server, const uint8_t *message, const struct frame *frame);

/* Take over the cancel key from the body of a BackendKeyData message. May close the server. */
void server_welcome_take_key(struct server_link *server, const uint8_t *body, size_t length);

/*
 * Replace the content of `head` with the beginning of a welcome: AuthenticationOk and the
 * server's untracked parameters. When out of memory, head->failed is set.
 */
void server_welcome_write(const struct server_link *server, struct buffer *head);

/*
 * Make the server's parameters the welcome of its pool, unless the pool has one already.
 * Returns false when out of memory.
 */
bool server_welcome_keep(struct server_link *server);

#endif
