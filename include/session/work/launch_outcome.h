/* SPDX-License-Identifier: ISC */
/*
 * What becomes of the server connections that session/pool/launch opens: a new connection may carry
 * a cancel request; a server that has logged in goes to its pool, or to its client of replication;
 * a failure is remembered, and closes the clients that no other server can serve.
 */
#ifndef PGUSHER_SESSION_WORK_LAUNCH_OUTCOME_H
#define PGUSHER_SESSION_WORK_LAUNCH_OUTCOME_H

#include "session/server/server_login_state.h"

/* The owner of every login at a server: registry.login_owner. */
extern const struct server_login_owner launch_outcome;

#endif
