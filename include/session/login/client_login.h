/* SPDX-License-Identifier: ISC */
/*
 * A client from its startup message to its welcome, step by step: its parameters
 * (session/parameters/client_parameters), who it is (client_identity), authentication (auth/), and where it
 * goes then (admission). Its bytes are cut into messages by session/login/client_greeting.
 *
 * A login can wait for a helper or for a server at each step and be taken up again.
 */
#ifndef PGUSHER_SESSION_LOGIN_CLIENT_LOGIN_H
#define PGUSHER_SESSION_LOGIN_CLIENT_LOGIN_H

#include "session/link/login.h"

/* The startup message has come, whole. It may close the client. */
void client_login_begin(struct client_link *client, const uint8_t *message, size_t total,
	const struct login_steps *steps);

/* A password message has come: its body, whole. It may close the client. */
void client_login_password(struct client_link *client, const uint8_t *body, size_t length);

/* A method that was pending knows its answer now. It may close the client. */
void client_login_proceed(struct client_link *client, enum auth_result result);

/*
 * A LOOKING_UP client is this user, with this secret (empty: none that it could prove): its login
 * goes on. It may be closed by that.
 */
void client_login_found(
	struct client_link *client, const char *user, struct credential *credential);

/* The parameters of a LOOKING_UP client are good: its login goes on. It may be closed by that. */
void client_login_checked(struct client_link *client);

/*
 * An authority found that this password is right: whoever it was is a user from now on, and the
 * password is what servers are told. What it returns is for client_login_proceed().
 */
enum auth_result client_login_learn(struct client_link *client, const char *password);

#endif
