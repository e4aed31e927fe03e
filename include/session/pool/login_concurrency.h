/* SPDX-License-Identifier: ISC */
/*
 * How many logins of a pool may be in progress at the same time.
 *
 * A pool whose logins succeed may have server_login_concurrency of them, but no more than it
 * has clients that wait for one: see the callers. A pool that has never been logged in to, and
 * one whose last login has failed, has one: a wrong password or a server that is down is to be
 * noticed once, not once for each client.
 */
#ifndef PGUSHER_SESSION_POOL_LOGIN_CONCURRENCY_H
#define PGUSHER_SESSION_POOL_LOGIN_CONCURRENCY_H

#include "model/registry.h"

/* Returns whether one more login of the pool may begin now. */
bool login_concurrency_allows(const struct pool *pool);

/* Returns how many logins are in progress whose servers any client of the pool can use. */
unsigned login_concurrency_for_clients(const struct pool *pool);

/* Returns how many logins are in progress that are not connected to a host yet. */
unsigned login_concurrency_connecting(const struct pool *pool);

/*
 * Returns whether a login that began before the last failure is still in progress, and may
 * succeed nevertheless.
 */
bool login_concurrency_is_undecided(const struct pool *pool);

/* A login has failed: the next ones are tried one at a time. */
void login_concurrency_note_failure(struct pool *pool);

/* The server has logged in. Ends the caution if its login began after the last failure. */
void login_concurrency_note_success(const struct server_link *server);

#endif
