/* SPDX-License-Identifier: ISC */
/*
 * Handles the outcome of the connections that pool/launch opens: a new connection may be used
 * for a cancel request; a server that has logged in goes to its pool, or to its replication
 * client; after a failure, clients that no other server can serve are closed.
 */
#ifndef PGUSHER_SESSION_SERVING_LAUNCH_OUTCOME_H
#define PGUSHER_SESSION_SERVING_LAUNCH_OUTCOME_H

#include "session/server/server_login_state.h"

/* The owner of all logins at servers: registry.login_owner. */
extern const struct server_login_owner launch_outcome;

#endif
