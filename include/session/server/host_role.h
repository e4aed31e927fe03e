/* SPDX-License-Identifier: ISC */
/*
 * The roles of hosts: what servers say of themselves at their login and later, and which of them a
 * database may use. PostgreSQL: in_hot_standby and default_transaction_read_only, which servers report
 * since version 14.
 */
#ifndef PGUSHER_SESSION_SERVER_HOST_ROLE_H
#define PGUSHER_SESSION_SERVER_HOST_ROLE_H

#include "model/host/hosts.h"
#include "model/registry.h"

/*
 * SECOND: it has not the role that is preferred. FOREIGN: it is of another PostgreSQL system than the
 * other hosts, and is never used.
 */
enum host_fit { HOST_FITS, HOST_MAY_FIT, HOST_IS_SECOND, HOST_DOES_NOT_FIT, HOST_IS_FOREIGN };

/*
 * Whether the host has the role that the pool asks for (target_session_attrs; or the primary, if a
 * client has written), as far as that is known. A host that is not known yet may be NULL.
 */
enum host_fit host_role_fits(const struct pool *pool, const struct host *host);

/*
 * Must a server that logs in be asked for its role? PostgreSQL reports it since version 14.
 */
bool host_role_must_ask(const struct server_link *server);

/* Is the role a preference of the pool, so that any other host is better than none? */
bool host_role_is_preference(const struct pool *pool);

/* The server reports a parameter during its login. */
void host_role_take_parameter(struct server_link *server, const char *name, const char *value);

/* The server has logged in: take over its role for its host. */
void host_role_logged_in(struct server_link *server);

/*
 * The server's host has answered; a successful login has taken this time, or 0. If the host was dead,
 * pools that wait for it connect at once.
 */
void host_role_lives(struct server_link *server, usec_t took);

/* What a probe has told of a host. */
struct host_facts {
	enum host_role role;
	bool read_only;
	uint64_t system; /* 0: not told */
	uint32_t timeline; /* 0: not told */
	struct host_progress progress;
};

/* A probe has told this of the server's host: retire the servers that must not be used any more. */
void host_role_probed(struct server_link *server, const struct host_facts *facts);

/* Returns whether the pool must not use this server, which logs in, for its role. */
bool host_role_refuses(const struct server_link *server);

/* The host is dead: retire its servers, where databases have other hosts. */
void host_role_lost(struct registry *registry, struct host *host);

/*
 * The role of a host has changed, or it lives again: retire servers that do not fit any more, and let
 * pools that wait for a server connect at once.
 */
void host_role_wake(struct registry *registry);

/* Is the database to have its hosts watched: has it several, or does it ask for a role? */
bool host_role_matters(const struct pool *pool);

/*
 * The server has reported a parameter. If it tells another role of its host, the servers there that
 * their databases may not use any more are retired.
 */
void host_role_reported(struct server_link *server, const char *name, const char *value);

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

/* Retire the database's servers at hosts that do not fit: they are closed as soon as they are free. */
void host_role_retire(struct database *database);

#endif
