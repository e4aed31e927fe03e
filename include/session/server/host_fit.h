/* SPDX-License-Identifier: ISC */
/*
 * Which hosts a pool may use: whether a host has the role that the pool asks for (target_session_attrs),
 * is not too far behind (max_standby_lag), and is of the same PostgreSQL system as its others.
 */
#ifndef PGUSHER_SESSION_SERVER_HOST_FIT_H
#define PGUSHER_SESSION_SERVER_HOST_FIT_H

#include "model/host/hosts.h"
#include "model/registry.h"

/*
 * The smaller, the better. SECOND: it has not the role that is preferred. FOREIGN: it is of another
 * PostgreSQL system than the other hosts, and is never used.
 */
enum host_fit { HOST_FITS, HOST_MAY_FIT, HOST_IS_SECOND, HOST_DOES_NOT_FIT, HOST_IS_FOREIGN };

/* Has the pool's database several hosts, or does the pool ask for a role? Else none of this applies. */
bool host_fit_applies(const struct pool *pool);

/*
 * How well the host fits the pool, as far as that is known; also if a client has shown by a write that
 * the pool needs the primary. A host that is not known yet may be NULL.
 */
enum host_fit host_fit_of(const struct pool *pool, const struct host *host);

/* Likewise the host of a server, for a session in which transactions are read-only by default or not. */
enum host_fit host_fit_of_server(const struct server_link *server);

/* How well the best of the pool's hosts fits that lives. */
enum host_fit host_fit_best(const struct pool *pool);

/* Is a host that fits so badly not to be used: at all, or since the pool has one that fits better? */
bool host_fit_is_bad(const struct pool *pool, enum host_fit fit, enum host_fit best);

/* Must the pool not use this server, which logs in? */
bool host_fit_refuses(const struct server_link *server);

/* Is the role a preference of the pool, so that any other host is better than none? */
bool host_fit_is_preference(const struct pool *pool);

/* Must a server that logs in be asked for its role? PostgreSQL reports it since version 14. */
bool host_fit_must_be_asked(const struct server_link *server);

#endif
