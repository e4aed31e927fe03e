/* SPDX-License-Identifier: ISC */
/*
 * Authentication of pgusher at a server, by the method that the server requests: password, MD5
 * or SCRAM. SCRAM also works without a known password, with keys that a client has presented.
 * Protocol: "Message Flow", Start-up; RFC 5802.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_AUTHENTICATION_H
#define PGUSHER_SESSION_SERVER_SERVER_AUTHENTICATION_H

#include "model/registry.h"

/*
 * Answer an Authentication message of a server that is logging in; `body` is the message's
 * body. Deriving a SCRAM key may delay the answer to a later turn of the loop. May close the
 * server.
 */
void server_authentication_answer(
	struct server_link *server, const uint8_t *body, size_t length);

/*
 * Returns whether the pool has a secret for servers, of a kind that some of them accept: a
 * password, an MD5 secret, or a SCRAM secret together with the keys of a client.
 */
bool server_authentication_has_secret(const struct pool *pool);

#endif
