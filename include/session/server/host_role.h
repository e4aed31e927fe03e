/* SPDX-License-Identifier: ISC */
/*
 * What follows for servers and pools when something is learnt of a host: servers that their pools may
 * not use any more (server/host_fit) are retired, pools that wait for a server connect at once.
 */
#ifndef PGUSHER_SESSION_SERVER_HOST_ROLE_H
#define PGUSHER_SESSION_SERVER_HOST_ROLE_H

#include "model/host/hosts.h"
#include "model/registry.h"

/*
 * The server's host has answered; a successful login has taken this time, or 0. If the host was dead,
 * pools that wait for it connect at once.
 */
void host_role_lives(struct server_link *server, usec_t took);

/*
 * The host cannot be reached, or has not answered. All workers avoid it for a while; their servers there
 * are not touched.
 */
void host_role_fails(struct registry *registry, struct host *host, const char *error);

/* The host is dead: retire its servers, where databases have other hosts. */
void host_role_lost(struct registry *registry, struct host *host);

/*
 * The role of a host has changed, or it lives again: retire servers that do not fit any more, and let
 * pools that wait for a server connect at once.
 */
void host_role_wake(struct registry *registry);

/*
 * A server has refused to write, or reported that it is read-only by default: the servers of its host
 * are asked for their role before their next use, and so is the host.
 */
void host_role_doubt(struct server_link *server);

/*
 * The configuration has changed: primaries may have lost their successors, and servers of all databases
 * that do not fit any more are retired.
 */
void host_role_reconfigured(struct registry *registry);

/*
 * A server was closed in this state. If its connection has broken, its host may be ending: the other
 * servers there are asked before their next use, so that no query is lost with them.
 */
void host_role_connection_ended(
	struct server_link *server, enum server_state state, const struct failure *why);

/* Retire the servers of all databases at hosts that do not fit. */
void host_role_retire_all(const struct registry *registry);

/* Likewise of databases with max_standby_lag that list this host, after a probe. */
void host_role_retire_lagging(const struct registry *registry, const struct host *host);

/* Retire the database's servers at hosts that do not fit: they are closed as soon as they are free. */
void host_role_retire(struct database *database);

#endif
