/* SPDX-License-Identifier: ISC */
/*
 * The end of a client's login: AuthenticationOk, the parameters, the cancel key, ReadyForQuery,
 * in one write. Protocol: "Message Flow", Start-up.
 *
 * The parameters are those of the pool's first server login, with what the client asked for in
 * place of the tracked ones; until they are known the client waits (WELCOMING).
 */
#ifndef PGUSHER_SESSION_WELCOME_H
#define PGUSHER_SESSION_WELCOME_H

#include "model/registry.h"

/* An authenticated client: welcome it now, or when the pool knows how. It may be closed. */
void welcome_or_wait(struct client_link *client);

/* The pool knows its welcome: all that wait for it get it. */
void welcome_waiting(struct pool *pool);

#endif
