/* SPDX-License-Identifier: ISC */
/* How logins of clients end, for the metrics: how long they took by which method, and why not. */
#ifndef PGUSHER_SESSION_LINK_LOGIN_COUNTS_H
#define PGUSHER_SESSION_LINK_LOGIN_COUNTS_H

#include "base/failure.h"
#include "model/client_link.h"

/* It is let in; its login is still there. */
void login_counts_passed(const struct client_link *client);

/* It is closed in this state; its login, if it had begun one, is still there. */
void login_counts_failed(
	const struct client_link *client, enum client_state state, const struct failure *why);

#endif
