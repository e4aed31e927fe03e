/* SPDX-License-Identifier: ISC */
/*
 * The objects of one event loop: databases, users, pools, links, their parameters and
 * statistics. The state of the whole process is in model/process. A registry belongs to one
 * loop (loop.owner), and only the thread of that loop uses it, and the first worker while the
 * others are stopped.
 *
 * It finds and makes objects by name and sorts them for SHOW. The session and daemon floors
 * decide what happens to them. Databases, users and pools that its functions return belong to
 * the registry.
 */
#ifndef PGUSHER_MODEL_REGISTRY_H
#define PGUSHER_MODEL_REGISTRY_H

#include "base/slab.h"
#include "crypt/keyed_hash.h"
#include "model/backends.h"
#include "model/held.h"
#include "model/pool.h"
#include "model/process.h"
#include "model/statement.h"
#include "model/statistics/counters.h"
#include "net/crew/mailbox.h"
#include "net/helper.h"
#include "net/loop.h"
#include "net/resolver.h"

struct advisor;
struct close_events;
struct derivations;
struct external_auth_queue;
struct query_watch;
struct relay_events;
struct server_login_owner;
struct slow_log;

LIST_HEAD(link_walk_list, link_walk);

/*
 * Tables of the relay (256 struct relay_rule each) by the state, or the task or step, of the
 * link that a message comes from. A task or step without a table leaves it to the state.
 */
struct link_rules {
	const struct relay_rule *server_states[SERVER_STATES];
	const struct relay_rule *server_tasks[SERVER_TASKS];
	const struct relay_rule *client_states[CLIENT_STATES];
	const struct relay_rule
		*client_paired[CLIENT_PAIRINGS]; /* PAIRED: see client_pairing() */
	const struct relay_rule *client_steps[CLIENT_STEPS];
};

/* A mail by which a worker asks the others for a descriptor: session/pool/eviction. */
struct eviction_call {
	struct mail mail;
	const struct registry *from;
	bool travels; /* it has not come back yet */
	bool has_closed; /* a worker has closed an idle server */
};

struct registry {
	struct process *process;
	unsigned number; /* of its worker: the one in process.registries */
	struct loop *loop;
	struct parameter_table *parameters;
	struct database_list databases; /* those at home here; all are in process.directory */
	unsigned database_count; /* of these, without the console: the directory changes it */
	struct user *users; /* uthash, by name */
	struct keyed_hash name_hash; /* keyed, since clients choose the names */
	/*
	 * The last ones found: most logins use the same names as the login before. NULL: none.
	 */
	struct database *recent_database;
	struct user *recent_user;
	struct pool_list pools; /* of these databases */
	bool users_sorted;
	struct pool_list work; /* pools with has_work: see pool_needs_work() */
	struct cap_list caps_due; /* caps below which a place may be free: see cap_is_due() */
	struct pool *cap_called; /* the next of a queue, about to launch a server; or NULL */
	usec_t evicted_none; /* when there was last no idle server to close for another; 0: never */
	struct eviction_call eviction_call;
	struct pool *cap_reserved; /* has places for a server: see cap_reserve(); or NULL */
	struct cap
		server_cap; /* of the process, max_server_connections: the part of this worker */
	struct loop_task work_task, sizing_task;
	/*
	 * Functions of modules above, for those below; session/rules/life sets all of these
	 * once.
	 */
	loop_function *do_work; /* pool_work_run(), for work_task */
	void (*serve)(struct pool *pool); /* pair idle servers with waiting clients */
	loop_function *size_pools; /* a round of session/pool/auto_size, for sizing_task */
	struct mail sizing_mail; /* by which another worker asks the first one for a round */
	atomic_bool sizing_sent; /* it is on its way */
	/* End the query of a waiting client with an error; the client stays connected. */
	void (*end_query)(struct client_link *client, enum reason reason);
	const struct link_rules *rules; /* what messages mean, by the state of their sender */
	const struct close_events *close_events; /* called when a link is closed */
	const struct relay_events *relay_events; /* called at the end of a run of the relay */
	const struct relay_events *drain_events; /* in their place when clients have to leave */
	const struct server_login_owner *login_owner; /* called by logins to servers */
	/* Owned, see session/rules/watching; NULL: log_min_duration is -1. */
	struct slow_log *slow_log;
	struct query_watch *query_watch;
	struct pool *console_pool;
	struct host_list
		hosts; /* those that servers were connected to so far: see model/host */
	struct deadline host_watch; /* the next hasty round of session/pool/host_watch */
	struct link_list logins; /* clients in GREETING, AUTHENTICATING and LOOKING_UP */
	unsigned login_count;
	struct link_list links; /* all open links, oldest first */
	struct link_walk_list walks; /* walks over `links`: see model/link_walk */
	struct statement_table statements;
	struct counters counters;
	/*
	 * Connections that its loop was the first to serve, and those that came from, or left for,
	 * another loop when their database was known.
	 */
	uint64_t dealt, moved_in, moved_out;
	usec_t made_at; /* the loop's time */
	struct backends backends; /* servers by the process numbers of their backends */
	struct slab clients, servers, helds; /* memory of links and of small held blocks */
	size_t held_bytes; /* size of the large held blocks: see model/held */
	struct resolver *resolver;
	struct derivations
		*derivations; /* of SCRAM keys, on threads: session/link/derivation */
	usec_t derivation_time; /* duration of the longest recent derivation; 0: none yet */
	struct helper
		*system_users; /* threads that look up user names, perhaps over the network */
	/* Of the first registry, for all; NULL until a login needs it. */
	struct external_auth_queue *ldap, *pam;
	usec_t stats_newer_at, stats_older_at; /* when the snapshots of the totals were taken */
	struct advisor *advisor; /* owned by the daemon; NULL: see admin/advice/advisor */
};

/*
 * Initialise a registry for this loop. The process and the loop must outlive it. The last registry
 * of the process to be initialised makes the databases of the configuration, each at its home; the
 * first one has the configured users, the others make them when they need them. Returns false when
 * out of memory; registry_free() must be called then, too.
 */
bool registry_init(struct registry *registry, struct process *process, struct loop *loop);

/* Returns how many server connections there are, at all workers. */
static inline unsigned process_servers(const struct process *process)
{
	return cap_servers(&process->registries[0]->server_cap);
}

/* Free all objects. All links must be closed before. */
void registry_free(struct registry *registry);

/*
 * Return the object of this name; or the pool of these two, for clients that have asked for this
 * role. NULL if there is none. A database is found at its home only, or by the first registry while
 * the other workers are stopped. registry_find_user() may make a user of the configuration at other
 * workers than the first.
 */
struct database *registry_find_database(const struct registry *registry, const char *name);
struct user *registry_find_user(const struct registry *registry, const char *name);
struct pool *registry_find_pool(const struct database *database, const struct user *user,
	enum target_session asked_role);

/* As registry_find_user(), but never makes a user of the configuration. */
struct user *registry_known_user(const struct registry *registry, const char *name);

/*
 * Returns the database of this name: a configured one, or an automatic one, which is made from
 * the `*` entry if necessary (`made`, which may be NULL, is set to true then). `pgbouncer` is
 * the console, and so is `pgusher` unless a database of that name is configured. Returns NULL
 * when the name is unknown or memory is short. The registry must be the home of the name
 * (directory_home_of()).
 */
struct database *registry_open_database(
	struct registry *registry, const char *name, bool *made);

/* Find or make the object. Returns NULL when out of memory. A new user has no secret. */
struct user *registry_open_user(struct registry *registry, const char *name);
struct pool *registry_open_pool(struct registry *registry, struct database *database,
	struct user *user, enum target_session asked_role);

/*
 * Returns the user for logins to servers: the one that the database's configuration sets, made
 * if necessary, else the client's user. Returns NULL when out of memory.
 */
struct user *registry_server_user(
	struct registry *registry, const struct database *database, struct user *client_user);

/* Free the user unless user_is_needed(). */
void registry_let_go_user(struct registry *registry, struct user *user);

/*
 * Returns whether PAUSE has stopped the pool, by itself or with all others. PAUSE does not stop
 * the pool of a peer: it forwards cancel requests for clients of the peer.
 */
static inline bool pool_is_paused(const struct pool *pool)
{
	return pool->database->paused ||
		(pool->registry->process->operation == OPERATION_PAUSED &&
			pool->database->peer_id == 0);
}

/*
 * Something has happened at the host of a server that it may tell more of, such as the end of a
 * connection: it is probed in the next turn, if it is watched. Does nothing for NULL.
 */
void registry_ask_host(struct registry *registry, struct host *host);

/* Remove a pool without links from all lists and free it. Its user is freed if not needed. */
void registry_drop_pool(struct pool *pool);

/*
 * Remove a database from the registry, so that its name is unknown. It is freed now if no
 * client and no pool uses it, else (`gone`) with its last client: limits_give_client().
 */
void registry_drop_database(struct database *database);

/* Sort databases, users and pools by the bytes of their names, as SHOW lists them. */
void registry_sort(struct registry *registry);

/* The same for the users alone. */
void registry_sort_users(struct registry *registry);

/*
 * Set secret and [users] entry of the users that the registry has. The first one also makes those
 * of the current configuration. Returns false when out of memory.
 */
bool registry_apply_users(struct registry *registry);

/*
 * For all registries: make the databases of the current configuration, each at its home, and set
 * the configuration of existing ones. To be called with the first registry, while the others are
 * stopped. Returns false when out of memory.
 */
bool registry_apply_databases(struct registry *registry);

/* Return the number of its users, and of the databases and pools of the process. */
unsigned registry_count_users(const struct registry *registry);
unsigned registry_count_databases(const struct registry *registry);
unsigned registry_count_pools(const struct registry *registry);

/*
 * Returns the memory of the prepared statements of all workers, in bytes: what max_prepared_memory
 * limits. Any worker may ask; the others may add to it meanwhile.
 */
uint64_t registry_statement_bytes(const struct process *process);

#endif
