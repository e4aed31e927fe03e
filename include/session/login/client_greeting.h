/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a client until it is logged in: requests for encryption, TLS, cancel requests,
 * and the messages of its login, which login/client_login handles.
 *
 * The client is not authenticated yet, so the size of its messages, its time and the number of
 * such clients are limited.
 */
#ifndef PGUSHER_SESSION_LOGIN_CLIENT_GREETING_H
#define PGUSHER_SESSION_LOGIN_CLIENT_GREETING_H

#include "model/registry.h"

/* Handlers of the stream of a client that has not logged in. */
extern const struct stream_handlers client_greeting_handlers;

/*
 * Handle what stream_receive() has returned: a number of bytes at the place of the loop for
 * received ones, or another result. May close the client.
 */
void client_greeting_take(struct client_link *client, ssize_t got);

/*
 * Log that a PROXY header is wrong or out of place, once a second at most for an address, and close
 * the client. `fault` continues the sentence `PROXY header refused: `.
 */
void client_greeting_refuse_proxy_header(struct client_link *client, const char *fault);

/*
 * A client was not read from while its user or its parameters were looked up: handle what it
 * has sent before, and read from it again. May close the client.
 */
void client_greeting_resume(struct client_link *client);

#endif
