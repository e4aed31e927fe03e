/* SPDX-License-Identifier: ISC */
/* Clients of fake_pool that log in, message by message. */
#ifndef PGUSHER_TEST_FAKE_LOGIN_H
#define PGUSHER_TEST_FAKE_LOGIN_H

#include "support/fakes/fake_pool.h"
#include "wire/message.h"

/*
 * Sends the StartupMessage. If the database exists its pool is created first, so that the
 * client need not wait for the welcome message.
 */
void send_login(struct endpoint *client, const char *user, const char *database);

/* The same for a new client, which is returned. */
struct endpoint *startup(const char *user, const char *database);

void send_password(struct endpoint *client, const char *password);

/*
 * The client was sent this authentication request and nothing else. Returns the bytes after the
 * request's number, lent as by received_body(). `length` is NULL if it does not matter.
 */
const uint8_t *received_request(
	struct endpoint *client, enum authentication_request request, size_t *length);

#endif
