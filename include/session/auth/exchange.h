/* SPDX-License-Identifier: ISC */
/*
 * What the authentication methods share: requests to the client, the client's secret, refusals.
 */
#ifndef PGUSHER_SESSION_AUTH_EXCHANGE_H
#define PGUSHER_SESSION_AUTH_EXCHANGE_H

#include "session/link/login.h"

/* Is this the body of a message with one password, not too long? */
bool exchange_is_password(const uint8_t *body, size_t length);

/* Send an authentication request. False: the client was closed. */
bool exchange_ask(
	struct client_link *client, unsigned request, const void *data, size_t length);

/* Is there such a user, be it one without a secret? */
bool exchange_is_known(const struct client_link *client);

/* The secret to check the client against; NULL for unknown users and those without one. */
const char *exchange_secret(const struct client_link *client);

/* The keys that belong to that secret, made if need be and lent; NULL when there is no memory. */
struct user_keys *exchange_keys(struct client_link *client);

/* Compare in constant time, whatever the lengths. */
bool exchange_equal(const char *a, const char *b);

/* Refuse for the method's own reason. */
enum auth_result exchange_refuse(struct client_link *client);

#endif
