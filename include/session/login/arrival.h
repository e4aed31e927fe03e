/* SPDX-License-Identifier: ISC */
/*
 * How a connection becomes a client of a registry, before its login: it was accepted there
 * (login/client_accept), or comes from another worker (login/relocation).
 */
#ifndef PGUSHER_SESSION_LOGIN_ARRIVAL_H
#define PGUSHER_SESSION_LOGIN_ARRIVAL_H

#include "model/registry.h"

/*
 * Enter a client, which has its stream and is zero besides, into the registry's logins. The caller
 * starts its time limits (client_limits_start()). It leaves them by its close, or by client_leave().
 */
void arrival_enter(struct registry *registry, struct client_link *client, uint64_t id,
	const struct address *remote, usec_t connect_time);

#endif
