/* SPDX-License-Identifier: ISC */
/*
 * What a client asks for at its start is tried on a server before the client is let in, so that a
 * bad value is told at login, as PostgreSQL does, and a good one in the server's spelling.
 *
 * A server of the client's own pool is asked to set the values for one transaction, so nothing of
 * it stays. What it took is remembered by the pool, and what the pool's welcome says anyway need
 * not be asked. With startup_parameters=strict, and for replication, nobody is asked.
 */
#ifndef PGUSHER_SESSION_LOOKUP_STARTUP_CHECK_H
#define PGUSHER_SESSION_LOOKUP_STARTUP_CHECK_H

#include "model/registry.h"

/*
 * Settle the parameters of a client, AUTHENTICATING or WELCOMING, whose pool knows its welcome.
 * False: they are asked for, and it is LOOKING_UP and goes on with client_login_checked(); or it
 * was closed.
 */
bool startup_check_begin(struct client_link *client);

#endif
