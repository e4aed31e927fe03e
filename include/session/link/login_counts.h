/* SPDX-License-Identifier: ISC */
/* Counts logins of clients for the metrics: duration by method, and causes of failure. */
#ifndef PGUSHER_SESSION_LINK_LOGIN_COUNTS_H
#define PGUSHER_SESSION_LINK_LOGIN_COUNTS_H

#include "base/failure.h"
#include "model/client_link.h"

/* Count a login that has succeeded. To be called before client.login is freed. */
void login_counts_passed(const struct client_link *client);

/*
 * Count the login of a client that is closed in this state, if it was logging in. To be called
 * before client.login is freed.
 */
void login_counts_failed(
	const struct client_link *client, enum client_state state, const struct failure *why);

#endif
