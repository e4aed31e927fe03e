/* SPDX-License-Identifier: ISC */
/*
 * A client from its startup message to its welcome: who it is, authentication, and the checks in
 * their order. Its bytes are cut into messages by session/client_greeting.
 *
 * A login can wait for a helper or for a server at each step and be taken up again.
 */
#ifndef PGUSHER_SESSION_CLIENT_LOGIN_H
#define PGUSHER_SESSION_CLIENT_LOGIN_H

#include "model/registry.h"
#include "session/auth/method.h"

enum {
	/* Bytes of a password; a longer one is a wrong one. */
	CLIENT_PASSWORD_MAX = 65530,
	/* A message of a login that is longer than this is not even read. */
	CLIENT_LOGIN_MESSAGE_MAX = 128 * 1024,
	CLIENT_USER_NAME_MAX = 127,
};

/* The startup message has come, whole. It may close the client. */
void client_login_begin(struct client_link *client, const uint8_t *message, size_t total);

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
void client_login_proven(struct client_link *client);

/*
 * An authority found that this password is right: whoever it was is a user from now on, and the
 * password is what servers are told. What it returns is for client_login_proceed().
 */
enum auth_result client_login_learn(struct client_link *client, const char *password);

/* The client that is logging in under this id (SHOW's), or NULL. */
struct client_link *client_login_find(const struct registry *registry, uint64_t id);

/* How long its cancel key is to be: longer in protocol 3.2. Only while it logs in. */
size_t client_login_key_length(const struct client_link *client);

/*
 * Send the exchange's last word now if it has not been sent, since nothing comes yet that it could
 * leave with. False: it was lost.
 */
bool client_login_send_farewell(struct client_link *client);

/* The login is over, well or not; `state` is the state in which it was. Wipes what it held. */
void client_login_end(struct client_link *client, enum client_state state);

#endif
