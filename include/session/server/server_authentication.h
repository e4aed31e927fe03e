/* SPDX-License-Identifier: ISC */
/*
 * Proving to a server who we are, in the way that it asks for: password, MD5, SCRAM, the last with
 * keys that a client has proved where we know no password. Protocol: "Message Flow", Start-up;
 * RFC 5802.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_AUTHENTICATION_H
#define PGUSHER_SESSION_SERVER_SERVER_AUTHENTICATION_H

#include "model/registry.h"

/*
 * An Authentication message of a server that logs us in, its body: answer it. Deriving a key can
 * take until a later turn. It may close the server.
 */
void server_authentication_answer(
	struct server_link *server, const uint8_t *body, size_t length);

#endif
