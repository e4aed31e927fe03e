/* SPDX-License-Identifier: ISC */
/*
 * The step after a client's authentication: it is admitted to the console, or to the pool of
 * its database and user, where it gets its welcome or waits for it. Both functions may close
 * the client.
 */
#ifndef PGUSHER_SESSION_LOGIN_ADMISSION_H
#define PGUSHER_SESSION_LOGIN_ADMISSION_H

#include "model/registry.h"

/*
 * Admit an authenticated client to the console or to its pool. The client is closed if its
 * database does not exist any more or is disabled, if pgusher is shutting down, or when out of
 * memory.
 */
void admission_begin(struct client_link *client);

/* Admit an authenticated client to the console. */
void admission_to_console(struct client_link *client);

#endif
