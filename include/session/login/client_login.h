/* SPDX-License-Identifier: ISC */
/*
 * The login of a client from its startup message to its welcome, step by step: parameters
 * (parameters/client_parameters), database and user (client_identity), authentication (auth/),
 * and admission to the console or a pool (admission). login/client_greeting reads the client's
 * bytes and splits them into messages.
 *
 * At each step a login can wait for a helper thread or for a server, and continue later.
 */
#ifndef PGUSHER_SESSION_LOGIN_CLIENT_LOGIN_H
#define PGUSHER_SESSION_LOGIN_CLIENT_LOGIN_H

#include "session/link/login.h"

/*
 * Handle a whole startup message. `steps` must stay valid as long as the login. May close the
 * client.
 */
void client_login_begin(struct client_link *client, const uint8_t *message, size_t total,
	const struct login_steps *steps);

/* Whether a login to a database of this name is one to the console, as far as this registry knows. */
bool client_login_names_console(const struct registry *registry, const char *name);

/*
 * Whether client_login_begin() will refuse the client before max_client_conn counts: it has not sent the
 * PROXY header or not begun TLS, which it must, or there are too many clients of its address.
 */
bool client_login_is_barred(const struct client_link *client);

/* Handle the body of a whole password message. May close the client. */
void client_login_password(struct client_link *client, const uint8_t *body, size_t length);

/*
 * The authentication method has the result: admit or close the client. AUTH_PENDING does
 * nothing. May close the client.
 */
void client_login_proceed(struct client_link *client, enum auth_result result);

/*
 * The look-up of a LOOKING_UP client has found this user and secret: the login continues. An
 * empty secret means that the user exists, but that no password can be right. The caller keeps
 * its reference to the credential. May close the client.
 */
void client_login_found(
	struct client_link *client, const char *user, struct credential *credential);

/*
 * A server has accepted the startup parameters of a LOOKING_UP client: the login continues. May
 * close the client.
 */
void client_login_checked(struct client_link *client);

/*
 * An external method (LDAP, PAM) has accepted this password: make the client's user if it is
 * not known yet, and keep the password to log in to servers. Returns the result for
 * client_login_proceed().
 */
enum auth_result client_login_learn(struct client_link *client, const char *password);

#endif
