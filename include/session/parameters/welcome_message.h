/* SPDX-License-Identifier: ISC */
/*
 * The part of a client's welcome that depends on parameters only: AuthenticationOk and the
 * ParameterStatus messages of the pool's first server (pool.welcome_head), with the values that
 * the client asked for. Protocol: "Message Flow", Start-up.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_WELCOME_MESSAGE_H
#define PGUSHER_SESSION_PARAMETERS_WELCOME_MESSAGE_H

#include "model/registry.h"

/*
 * Make that part (pool.welcome_made) for a client that asked for these parameters. The pool
 * keeps the last one made, since most of its clients ask for the same. Returns false when out
 * of memory.
 */
bool welcome_message_make(struct pool *pool, struct parameters *asked);

/* Free what was made: it is incomplete, or the pool's welcome has changed. */
void welcome_message_drop(struct pool *pool);

/*
 * The value that the pool's welcome reports for this parameter, which is not tracked. Lent by
 * the pool; NULL: it reports none.
 */
const char *welcome_message_value(const struct pool *pool, const char *name);

#endif
