/* SPDX-License-Identifier: ISC */
/* The end of a client's login, whether it has succeeded or not. */
#ifndef PGUSHER_SESSION_LOOKUP_LOGIN_END_H
#define PGUSHER_SESSION_LOOKUP_LOGIN_END_H

#include "model/client_link.h"

/*
 * Free the client's login, if it has one, and wipe the secrets in it. `state` is the state in
 * which the client logged in. Pending work of the login (a look-up, a helper thread, an
 * external authority) is abandoned. The server of a look-up without other logins is closed.
 */
void login_end(struct client_link *client, enum client_state state);

#endif
