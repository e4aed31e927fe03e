/* SPDX-License-Identifier: ISC */
/*
 * The time limits of clients: which ones a state has, and what happens when one is over.
 *
 * A client has one deadline, the nearest of the limits of its state; when it fires all of them
 * are looked at. Limits of a running query or transaction are the janitor's (session/upkeep), which
 * walks the few servers instead of the many clients.
 */
#ifndef PGUSHER_SESSION_CLIENT_LIMITS_H
#define PGUSHER_SESSION_CLIENT_LIMITS_H

#include "model/client_link.h"

/* Set the deadline that the client's present state has. After every change of state. */
void client_limits_start(struct client_link *client);

/* The deadline's function. */
void client_limits_expire(struct deadline *deadline);

#endif
