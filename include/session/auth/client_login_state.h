/* SPDX-License-Identifier: ISC */
/* The state of a client's login (link/login): made here, freed by lookup/login_end. */
#ifndef PGUSHER_SESSION_AUTH_CLIENT_LOGIN_STATE_H
#define PGUSHER_SESSION_AUTH_CLIENT_LOGIN_STATE_H

#include "session/link/login.h"
#include "wire/startup.h"

/*
 * Make the client's login, which the client owns. `steps` is kept. Returns false when out of
 * memory; a login that was made in part is freed with the client.
 */
bool client_login_new(struct client_link *client, const struct startup_login *wanted,
	const struct login_steps *steps);

/* The login waits no longer for a verifier that is being derived, if it did. */
void client_login_stop_waiting(struct login *login);

/*
 * Return the length of the cancel key that the client is to get, in bytes: longer in protocol
 * 3.2. Only while the client logs in.
 */
size_t client_login_key_length(const struct client_link *client);

/*
 * Send the login's AuthenticationSASLFinal now, if there is one that was not sent yet: no
 * welcome follows immediately with which it could be sent. Returns false when it could not be
 * sent.
 */
bool client_login_send_sasl_final(struct client_link *client);

#endif
