/* SPDX-License-Identifier: ISC */
/*
 * A client's bytes from accept on, until it is logged in: requests for encryption, TLS, cancel
 * requests, and the messages of its login, which session/login/client_login understands.
 *
 * Nobody has proved anything yet, so everything is rationed: bytes, time, and how many may be
 * at it.
 */
#ifndef PGUSHER_SESSION_LOGIN_CLIENT_GREETING_H
#define PGUSHER_SESSION_LOGIN_CLIENT_GREETING_H

#include "model/registry.h"

/* How the stream of a client that has not logged in reports. */
extern const struct stream_handlers client_greeting_handlers;

/* A connection was accepted; takes over the descriptor. For listeners: context is the registry. */
void client_greeting_accept(
	void *context, int fd, const struct sockaddr *from, socklen_t length, bool is_unix);

/* Its reading was paused while it was looked up: what it has said meanwhile, and reading on. */
void client_greeting_resume(struct client_link *client);

#endif
