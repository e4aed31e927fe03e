/* SPDX-License-Identifier: ISC */
/*
 * Our first bytes on a connection to a server: whether it is to be encrypted, and the
 * StartupMessage. Protocol: "Message Flow", Start-up; "SSL Session Encryption".
 *
 * Each of these may close the server.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_GREETING_H
#define PGUSHER_SESSION_SERVER_SERVER_GREETING_H

#include "model/registry.h"

/* It is connected: ask for TLS, shake hands, or start up, as the settings want it. */
void server_greeting_begin(struct server_link *server);

/* Its answer to the request for TLS has come (one byte, if all is well). */
void server_greeting_answered(struct server_link *server, const uint8_t *data, size_t length);

/* It is encrypted, or need not be: the StartupMessage, and it is AUTHENTICATING. */
void server_greeting_start_up(struct server_link *server);

#endif
