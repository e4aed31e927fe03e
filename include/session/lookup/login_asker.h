/* SPDX-License-Identifier: ISC */
/* The login of a client as the asker of a look-up: see link/asker. */
#ifndef PGUSHER_SESSION_LOOKUP_LOGIN_ASKER_H
#define PGUSHER_SESSION_LOOKUP_LOGIN_ASKER_H

#include "session/pool/lookup.h"

/*
 * Make the login of an AUTHENTICATING or WELCOMING client wait for a look-up in the pool. The
 * client is LOOKING_UP when this returns, or was closed. login_steps or lookup_kind.finish
 * continues the login.
 */
void login_asker_begin(
	struct client_link *client, struct pool *pool, const struct lookup_question *question);

/* The client waits for a look-up, which it has joined: it is LOOKING_UP from now on. */
void login_asker_wait(struct client_link *client);

#endif
