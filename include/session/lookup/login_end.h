/* SPDX-License-Identifier: ISC */
/* The end of a client's login, whether it has succeeded or not. */
#ifndef PGUSHER_SESSION_LOOKUP_LOGIN_END_H
#define PGUSHER_SESSION_LOOKUP_LOGIN_END_H

#include "model/client_link.h"

/*
 * Free the client's login, if it has one, and wipe the secrets in it. `state` is the state in which
 * the client logged in. What the login waits for (a look-up, a helper thread, an external
 * authority) is abandoned; the server of a look-up that nothing else waits for is closed.
 */
void login_end(struct client_link *client, enum client_state state);

#endif
