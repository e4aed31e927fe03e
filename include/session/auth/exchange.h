/* SPDX-License-Identifier: ISC */
/*
 * What the authentication methods share: requests to the client, the client's secret, refusals.
 */
#ifndef PGUSHER_SESSION_AUTH_EXCHANGE_H
#define PGUSHER_SESSION_AUTH_EXCHANGE_H

#include "session/link/login.h"

/* Is this the body of a password message with one string that is not too long? */
bool exchange_is_password(const uint8_t *body, size_t length);

/*
 * Send an Authentication message of this kind with this data. Returns false when that failed;
 * the client was closed then.
 */
bool exchange_ask(
	struct client_link *client, unsigned request, const void *data, size_t length);

/* Does the client's user exist, even if it has no secret? */
bool exchange_is_known(const struct client_link *client);

/*
 * Return the secret to check the client against, or NULL for unknown users and users without a
 * secret. It belongs to the client's login or user.
 */
const char *exchange_secret(const struct client_link *client);

/*
 * Return the keys that belong to that secret; they are made if there are none yet, and belong
 * to the login's credential or the user. Returns NULL when out of memory.
 */
struct user_keys *exchange_keys(struct client_link *client);

/*
 * Returns whether the client's SCRAM secret may be used. If it has too many iterations that is
 * logged: the client gets the same refusal as with an unknown user.
 */
bool exchange_may_use(const struct client_link *client, const struct scram_secret *secret);

/* Compare two strings; among strings of the same length in constant time. */
bool exchange_equal(const char *a, const char *b);

/* Set the login's refusal to the method's reason. Returns AUTH_REFUSED. */
enum auth_result exchange_refuse(struct client_link *client);

#endif
