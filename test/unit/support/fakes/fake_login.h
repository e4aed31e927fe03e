/* SPDX-License-Identifier: ISC */
/* Clients of fake_pool that log in, message by message. */
#ifndef PGUSHER_TEST_FAKE_LOGIN_H
#define PGUSHER_TEST_FAKE_LOGIN_H

#include "support/fakes/fake_pool.h"
#include "wire/message.h"

/*
 * Its StartupMessage. If there is such a database its pool is made beforehand, so that nobody has
 * to wait for the welcome.
 */
void say_login(struct actor *client, const char *user, const char *database);

/* The same by one that has just connected. */
struct actor *startup(const char *user, const char *database);

void say_password(struct actor *client, const char *password);

/*
 * It was asked for this, and heard nothing else. What stands behind the number of the request is
 * lent like heard_body(); length: NULL if it does not matter.
 */
const uint8_t *heard_request(
	struct actor *client, enum authentication_request request, size_t *length);

#endif
