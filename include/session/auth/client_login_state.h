/* SPDX-License-Identifier: ISC */
/*
 * What a client's login remembers (session/link/login): made and found here, freed by
 * session/lookup/login_end.
 */
#ifndef PGUSHER_SESSION_AUTH_CLIENT_LOGIN_STATE_H
#define PGUSHER_SESSION_AUTH_CLIENT_LOGIN_STATE_H

#include "session/link/login.h"
#include "wire/startup.h"

/* Make the client's login, which the client owns. Returns false when out of memory. */
bool client_login_new(struct client_link *client, const struct startup_login *wanted,
	const struct login_steps *steps);

/* The client that is logging in under this id (SHOW's), or NULL. */
struct client_link *client_login_find(const struct registry *registry, uint64_t id);

/* How long its cancel key is to be: longer in protocol 3.2. Only while it logs in. */
size_t client_login_key_length(const struct client_link *client);

/*
 * Send the exchange's last word now if it has not been sent, since nothing comes yet that it could
 * leave with. False: it was lost.
 */
bool client_login_send_sasl_final(struct client_link *client);

#endif
