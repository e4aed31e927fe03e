/* SPDX-License-Identifier: ISC */
/*
 * Everything that a process pools: the configuration in force, databases, users, pools, links,
 * and the services they share. One registry belongs to one loop (loop.owner).
 *
 * It finds and makes things by name and keeps them in order for SHOW; what happens to them is
 * the session's and the daemon's affair.
 */
#ifndef PGUSHER_MODEL_REGISTRY_H
#define PGUSHER_MODEL_REGISTRY_H

#include "base/handles.h"
#include "base/slab.h"
#include "config/snapshot.h"
#include "crypt/keyed_hash.h"
#include "model/cancel_keys.h"
#include "model/counters.h"
#include "model/held.h"
#include "model/limits.h"
#include "model/pool.h"
#include "model/statement.h"
#include "net/helper.h"
#include "net/loop.h"
#include "net/resolver.h"

struct external_auth_queue;
struct listeners;

TAILQ_HEAD(peer_list, peer);
struct registry;
struct suspension;

/* What PAUSE, SUSPEND and SHUTDOWN have made of the process. */
enum operation { OPERATION_RUNNING, OPERATION_PAUSED, OPERATION_SUSPENDED };

enum shutdown_mode { SHUTDOWN_NONE, SHUTDOWN_WAIT_FOR_SERVERS, SHUTDOWN_WAIT_FOR_CLIENTS };

/* How the session floor reaches the console, which stands above it. Registered by the daemon. */
struct console_hooks {
	void (*begin)(struct client_link *client); /* it has just become CLIENT_CONSOLE */
	/* There is something to receive, or its backlog is empty again. */
	void (*readable)(struct client_link *client);
	void (*canceled)(
		struct client_link *client); /* somebody sent a CancelRequest with its key */
	void (*closed)(struct client_link *client); /* it is closing: free client->console */
};

/* What a suspension asks of the floors above. Registered by the daemon. */
struct suspend_hooks {
	void (*accept)(struct registry *registry, bool accept); /* new connections, or not */
	void (*changed)(struct registry *registry); /* it has come to rest, or is over */
};

/* The answers that consoles still wait for: see admin/waits. */
LIST_HEAD(console_wait_list, console_wait);

LIST_HEAD(link_walk_list, link_walk);

struct registry {
	struct loop *loop;
	struct snapshot *config; /* counted */
	const struct settings *settings; /* of config */
	struct parameter_table *parameters;
	struct database *databases; /* uthash, by name */
	struct user *users; /* uthash, by name */
	struct keyed_hash name_hash; /* names are chosen by peers */
	/* Found last: most logins ask for what the one before asked for. */
	struct database *recent_database;
	struct user *recent_user;
	struct pool_list pools; /* in order by database, then user, after registry_sort() */
	unsigned pool_count;
	bool sorted;
	struct pool_list work; /* those that pairing_work() has to look at */
	struct loop_task work_task;
	loop_function *do_work; /* pairing_work(), which stands above this floor */
	struct pool *console_pool;
	struct peer_list peers; /* in order by id, those that were needed yet: see model/peer */
	struct link_list logins; /* clients in GREETING and AUTHENTICATING */
	unsigned login_count;
	struct link_list links; /* all that live, oldest first */
	struct link_walk_list walks; /* over these */
	struct link_list dead; /* closed links whose memory goes at the end of the turn */
	struct cancel_keys cancel_keys;
	struct statement_table statements;
	struct limits limits;
	struct counters counters;
	struct slab clients, servers, helds; /* objects of the links */
	size_t held_bytes; /* that links hold besides those of the slab: see model/held */
	struct resolver *resolver;
	const struct listeners *listeners; /* the daemon's; NULL: none */
	struct tls_context *client_tls,
		*server_tls; /* counted; NULL: none (session/link/tls_setup) */
	struct helper *derivations; /* SCRAM keys are made off the loop */
	usec_t derivation_time; /* how long one took at worst lately; 0: there was none yet */
	struct helper *system_users; /* their names may come over the network */
	struct external_auth_queue *ldap,
		*pam; /* passwords that others judge; NULL until needed */
	enum operation operation;
	bool draining; /* for a takeover: clients with a server go on, others come to rest */
	bool still; /* and now nothing may move at all: see daemon/handover */
	struct suspension *suspension; /* SUSPENDED: see session/work/suspend */
	struct suspend_hooks suspend;
	enum shutdown_mode shutdown;
	usec_t operation_at, shutdown_at; /* since when these are as they are */
	uint64_t last_id; /* of links, for SHOW */
	usec_t stats_newer_at, stats_older_at; /* when the snapshots of the totals were taken */
	int descriptor_limit; /* of open files, when the process started */
	uint8_t mock_salt[32]; /* of SCRAM exchanges with unknown users */
	bool has_scram_secrets; /* has seen one: a password may take long to check; for good */
	struct console_hooks console;
	struct console_wait_list console_waits;
	unsigned tellings; /* answers of consoles that are under way: see admin/telling */
	struct handles handles; /* of what they tell of */
	struct actions *actions; /* what only the daemon can do: see admin/commands */
	const char *version; /* `PgBouncer 1.25.2 (pgusher X.Y.Z)` */
};

/*
 * Make a registry for the loop with this configuration, whose count is taken over. False without
 * memory.
 */
bool registry_init(struct registry *registry, struct loop *loop, struct snapshot *config);

/* Free everything; all links must be closed. */
void registry_free(struct registry *registry);

static inline struct registry *loop_registry(const struct loop *loop)
{
	return loop->owner;
}

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
		(pool->registry->operation == OPERATION_PAUSED && pool->database->peer_id == 0);
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
