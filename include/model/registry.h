/* SPDX-License-Identifier: ISC */
/*
 * Everything that one event loop pools: databases, users, pools, links, their parameters and
 * statistics. What belongs to the whole process is in model/process. A registry belongs to one
 * loop (loop.owner), and only that loop touches it.
 *
 * It finds and makes objects by name and keeps them in order for SHOW. The session and daemon
 * floors decide what happens to them.
 */
#ifndef PGUSHER_MODEL_REGISTRY_H
#define PGUSHER_MODEL_REGISTRY_H

#include "base/slab.h"
#include "crypt/keyed_hash.h"
#include "model/counters.h"
#include "model/held.h"
#include "model/pool.h"
#include "model/process.h"
#include "model/statement.h"
#include "net/helper.h"
#include "net/loop.h"
#include "net/resolver.h"

struct close_events;
struct external_auth_queue;
struct relay_events;
struct server_login_owner;

LIST_HEAD(link_walk_list, link_walk);

struct registry {
	struct process *process;
	struct loop *loop;
	struct parameter_table *parameters;
	struct database *databases; /* uthash, by name */
	struct user *users; /* uthash, by name */
	struct keyed_hash name_hash; /* names are chosen by peers */
	/* Found last: most logins ask for the same as the login before. */
	struct database *recent_database;
	struct user *recent_user;
	struct pool_list pools; /* in order by database, then user, after registry_sort() */
	unsigned pool_count;
	bool sorted;
	struct pool_list work; /* pools that pool_work_run() has to look at */
	struct loop_task work_task;
	/* What higher modules do for lower ones; session/rules/life sets all of these once. */
	loop_function *do_work; /* pool_work_run(), for work_task */
	void (*serve)(struct pool *pool); /* give idle servers to waiting clients */
	const struct close_events *close_events; /* a link closes */
	const struct relay_events *relay_events; /* a run of the relay has ended */
	const struct server_login_owner *login_owner; /* of logins at servers */
	struct pool *console_pool;
	struct link_list logins; /* clients in GREETING and AUTHENTICATING */
	unsigned login_count;
	struct link_list links; /* all open links, oldest first */
	struct link_walk_list walks; /* over these */
	struct statement_table statements;
	struct counters counters;
	struct slab clients, servers, helds; /* memory of the links */
	size_t held_bytes; /* held by links outside of the slab: see model/held */
	struct resolver *resolver;
	struct helper *derivations; /* threads that derive SCRAM keys */
	usec_t derivation_time; /* the longest of late; 0: none was derived yet */
	struct helper
		*system_users; /* threads that look up user names, perhaps over the network */
	struct external_auth_queue *ldap, *pam; /* NULL until a login needs it */
	usec_t stats_newer_at, stats_older_at; /* when the snapshots of the totals were taken */
};

/*
 * Make a registry for this loop, with the databases and users of the configuration in force.
 * The process must outlive it. Returns false when out of memory; registry_free() is due then too.
 */
bool registry_init(struct registry *registry, struct process *process, struct loop *loop);

/* Free everything; all links must be closed. */
void registry_free(struct registry *registry);

/* Look up; NULL if unknown. */
struct database *registry_find_database(const struct registry *registry, const char *name);
struct user *registry_find_user(const struct registry *registry, const char *name);
struct pool *registry_find_pool(const struct database *database, const struct user *user);

/*
 * The database of that name: a configured one, or an automatic one made from the `*` entry
 * (`made` tells, for the log; may be NULL). NULL: unknown, or no memory. Also `pgbouncer`, and
 * `pgusher` unless a database is configured under that name, both being the console.
 */
struct database *registry_open_database(
	struct registry *registry, const char *name, bool *made);

/* Look up or make; NULL without memory. A user made here has no secret. */
struct user *registry_open_user(struct registry *registry, const char *name);
struct pool *registry_open_pool(
	struct registry *registry, struct database *database, struct user *user);

/* The user as whom a client's pool logs in: the database's forced one, else the client's own. */
struct user *registry_server_user(
	struct registry *registry, const struct database *database, struct user *client_user);

/* Free a user that nothing needs or names any more; otherwise nothing happens. */
void registry_let_go_user(struct registry *registry, struct user *user);

/*
 * Is the pool stopped by PAUSE, for itself or for all? What goes to a peer concerns queries of its
 * clients, which nobody has paused.
 */
static inline bool pool_is_paused(const struct pool *pool)
{
	return pool->database->paused ||
		(pool->registry->process->operation == OPERATION_PAUSED &&
			pool->database->peer_id == 0);
}

/* An empty pool in no list but those of its database and user; NULL without memory. */
struct pool *pool_new(struct registry *registry, struct database *database, struct user *user);

/* Free one with what belongs to it: out of these two lists, and no other. */
void pool_free(struct pool *pool);

/* Free a pool that has no link left. */
void registry_drop_pool(struct registry *registry, struct pool *pool);

/*
 * Free a database that has no pool left and that no client points at; otherwise it is only made
 * nameless (gone) and freed when the last client gives it back.
 */
void registry_drop_database(struct registry *registry, struct database *database);

/* Put databases, users and pools in the order of their names (bytes), as SHOW lists them. */
void registry_sort(struct registry *registry);

/* Give every user the secret and the [users] entry that the configuration in force has. */
bool registry_apply_users(struct registry *registry);

/* Make the configured databases known, and point the known ones at their present entries. */
bool registry_apply_databases(struct registry *registry);

/* Number of users, databases, pools for SHOW LISTS. */
unsigned registry_count_users(const struct registry *registry);
unsigned registry_count_databases(const struct registry *registry);
unsigned registry_count_pools(const struct registry *registry);

#endif
