/* SPDX-License-Identifier: ISC */
/*
 * The end of a client's login: AuthenticationOk, the parameters, the cancel key, ReadyForQuery,
 * in one write. Protocol: "Message Flow", Start-up.
 *
 * The parameters are those of the pool's first server login, with what the client asked for in
 * place of the tracked ones; until they are known the client waits (WELCOMING).
 */
#ifndef PGUSHER_SESSION_WORK_WELCOME_H
#define PGUSHER_SESSION_WORK_WELCOME_H

#include "model/registry.h"

/* An authenticated client: welcome it now, or when the pool knows how. It may be closed. */
void welcome_or_wait(struct client_link *client);

/* The pool knows its welcome: all that wait for it get it. */
void welcome_waiting(struct pool *pool);

/* Is there anybody who needs a first server of the pool to be let in? */
bool welcome_is_wanted(const struct pool *pool);

/*
 * A WELCOMING client of replication whose own server has told its parameters, which it has adopted:
 * `head` is the beginning of its welcome, and is written to. It is IDLE now, and what it holds has
 * to be taken up. False: it was closed.
 */
bool welcome_replica(struct client_link *client, struct buffer *head);

#endif
