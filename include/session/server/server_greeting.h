/* SPDX-License-Identifier: ISC */
/*
 * The first bytes that are sent on a connection to a server: the request for TLS, and the
 * StartupMessage. Protocol: "Message Flow", Start-up; "SSL Session Encryption".
 *
 * Each of these functions may close the server.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_GREETING_H
#define PGUSHER_SESSION_SERVER_SERVER_GREETING_H

#include "model/registry.h"

/*
 * The connection is established: request TLS, begin a direct TLS handshake, or send the
 * StartupMessage, as the settings demand.
 */
void server_greeting_begin(struct server_link *server);

/* Handle the server's answer to SSLRequest, which is one byte if the server is well-behaved. */
void server_greeting_receive_tls_answer(
	struct server_link *server, const uint8_t *data, size_t length);

/*
 * The connection is encrypted, or needs no encryption: send the StartupMessage and enter
 * AUTHENTICATING.
 */
void server_greeting_start_up(struct server_link *server);

#endif
