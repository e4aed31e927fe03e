/* SPDX-License-Identifier: ISC */
/*
 * The servers and clients of one (database, server user): lists, counts, the welcome, and what
 * is known of the last attempt to log in.
 *
 * Owned by the registry; it owns its servers. Clients are owned by their loop.
 */
#ifndef PGUSHER_MODEL_POOL_H
#define PGUSHER_MODEL_POOL_H

#include "base/buffer.h"
#include "base/failure.h"
#include "model/checked_parameters.h"
#include "model/client_link.h"
#include "model/database.h"
#include "model/latency.h"
#include "model/server_link.h"
#include "model/stats.h"
#include "model/user.h"

struct lookup;

TAILQ_HEAD(lookup_list, lookup);

struct pool {
	TAILQ_ENTRY(pool) in_registry, in_database, in_user, in_work;
	struct registry *registry;
	unsigned order; /* among the pools, as far as they are sorted */
	uint64_t
		handle; /* for registry.process->handles, as those of databases, users and statements */
	struct database *database;
	struct user *user; /* as whom it logs in to servers */
	enum pool_mode mode; /* by the configuration in force: asked thrice a transaction */
	struct credential *credential; /* counted: what its last login brought; NULL: nothing */
	struct link_list clients; /* IDLE, PAIRED, CONSOLE */
	struct link_list waiting; /* oldest first */
	struct link_list
		welcoming; /* WELCOMING and LAUNCHING: for them a server is to log in */
	struct link_list cancels; /* CANCEL_WAITING and CANCEL_SENT */
	struct link_list servers[SERVER_LISTS];
	struct lookup_list
		lookups; /* that wait for a server, oldest first: see session/pool/lookup */
	struct lookup *lookups_by_what; /* the same; uthash */
	unsigned lookups_waiting, lookups_running;
	unsigned looking_up; /* logins that wait for any of them */
	unsigned client_count[CLIENT_STATES];
	unsigned server_count[SERVER_LISTS];
	unsigned cancels_due; /* DRAINING servers that wait to be cancelled */
	struct client_group *groups; /* of its clients; see model/client_group */
	struct parameters
		*welcome; /* the tracked start values; NULL: not known, or forgotten */
	struct buffer
		welcome_head; /* AuthenticationOk and ParameterStatus of all untracked ones */
	/* The last welcome that was made, for those who ask for the same: see session/work/welcome. */
	struct parameters *welcome_asked, *welcome_given; /* NULL: none yet */
	struct buffer welcome_made;
	struct checked_parameters
		checked; /* what its servers take besides; forgotten with the welcome */
	usec_t last_launch; /* when the last attempt to connect began; 0: never */
	usec_t last_lifetime_close;
	usec_t last_used; /* had a client or a connected server */
	bool failing; /* the last attempt failed, and none has succeeded since */
	bool wanting; /* and that for want of something of ours: valid while failing */
	bool refused; /* and that by a server's word: valid while failing */
	struct failure last_failure; /* valid while failing */
	bool left_behind; /* not all of its clients are its own: see session/pool/move_clients */
	unsigned next_host; /* of a host list */
	bool has_work; /* in registry.work: see pool_work_run() */
	bool serving; /* its idle servers are just being given away: see session/pool/pairing */
	struct stats stats;
	struct latency *latency; /* owned; NULL until a query has had a server */
	uint64_t *errors; /* owned: of servers, by class (wire/sqlstate); NULL: none yet */
	uint64_t notified; /* clients that were told that they wait */
};

/* Sizes in force: [users] entry of the server user, else database, else global. 0: unlimited. */
int pool_size(const struct pool *pool);
int pool_reserve_size(const struct pool *pool);
int pool_min_size(const struct pool *pool);

/* Another configuration is in force. */
void pool_reconfigure(struct pool *pool);

/* That of its pool; but who asked for replication keeps its server, whatever the pool does. */
static inline enum pool_mode client_mode(const struct client_link *client)
{
	return client->replication ? POOL_MODE_SESSION : client->link.pool->mode;
}

static inline enum pool_mode server_mode(const struct server_link *server)
{
	return server->replication ? POOL_MODE_SESSION : server->link.pool->mode;
}

/*
 * The secret of its user, and the keys made of it: what the last login brought along, else the
 * auth_file's. NULL: none.
 */
const char *pool_secret(const struct pool *pool);
const struct user_keys *pool_keys(const struct pool *pool);

/* Log in to servers with this from now on, which is counted for the pool; NULL: the auth_file's. */
void pool_set_credential(struct pool *pool, struct credential *credential);

/* Is its user the one that the database forces on everybody, by the configuration in force? */
bool pool_is_forced(const struct pool *pool);

/* Is anybody here, be it a login that is being looked up? */
bool pool_has_clients(const struct pool *pool);

/* All its server connections, whatever their state. */
unsigned pool_servers(const struct pool *pool);

/* Those that have logged in. */
unsigned pool_connected_servers(const struct pool *pool);

/* The oldest waiting client (for a server), or NULL. */
static inline struct client_link *pool_first_waiter(const struct pool *pool)
{
	struct link *link = TAILQ_FIRST(&pool->waiting);

	return link ? client_of(link) : NULL;
}

/*
 * How many look-ups could be given a server now: those that wait, as far as the pool's share for
 * them goes. It is a quarter of the pool, so that no number of logins takes what clients need.
 */
unsigned pool_share_of_lookups(const struct pool *pool);

/* The same; nearly always none, and asked for each transaction. */
static inline unsigned pool_startable_lookups(const struct pool *pool)
{
	return pool->lookups_waiting == 0 ? 0 : pool_share_of_lookups(pool);
}

/* How many servers are wanted now: by clients that wait, and by look-ups that could start. */
static inline unsigned pool_wanted_servers(const struct pool *pool)
{
	return pool->client_count[CLIENT_WAITING] + pool_startable_lookups(pool);
}

/* Clients for whom a server is to log in: those that stand in pool.welcoming. */
static inline unsigned pool_welcoming_clients(const struct pool *pool)
{
	return pool->client_count[CLIENT_WELCOMING] + pool->client_count[CLIENT_LAUNCHING];
}

/* All that wait for something of the pool, as SHOW POOLS has them. */
static inline unsigned pool_waiting_clients(const struct pool *pool)
{
	return pool->client_count[CLIENT_WAITING] + pool_welcoming_clients(pool) +
		pool->looking_up;
}

/* How many cancel requests wait for a connection: of clients, and ours for servers DRAINING. */
static inline unsigned pool_waiting_cancels(const struct pool *pool)
{
	return pool->client_count[CLIENT_CANCEL_WAITING] + pool->cancels_due;
}

/* How long the first waiter's query has waited, as SHOW POOLS has it; 0 if none. */
usec_t pool_longest_wait(const struct pool *pool, usec_t now);

/* Forget the welcome: the next login waits for a new one. */
void pool_forget_welcome(struct pool *pool);

/* Mark every server as to be retired when it is free, and why. */
void pool_retire_servers(struct pool *pool, enum server_closing cause);

/* Forget the welcome and mark every server as to be retired: RECONNECT, a changed connect string. */
void pool_mark_close_needed(struct pool *pool, enum server_closing cause);

/* One more ErrorResponse with this SQLSTATE (NULL: none) was passed on. */
void pool_count_error(struct pool *pool, const char *sqlstate);

/* Have pool->latency, or pool->errors, if there is memory for it. */
void pool_open_latency(struct pool *pool);
void pool_open_errors(struct pool *pool);

/*
 * What the metrics tell of that kind, since the start; waits of no time are among the waits, so
 * that these are as many as assignments. False, and nothing is told: there was no query yet.
 */
bool pool_histogram(
	const struct pool *pool, enum latency_kind kind, struct histogram *histogram);

/* The pool goes, and what it has counted is the other's from now on. */
void pool_leave_counts(const struct pool *pool, struct pool *to);

/* Before its memory goes. */
void pool_drop_counts(struct pool *pool);

/* The stats period is over. */
void pool_end_period(struct pool *pool);

/* How many of its servers are beyond its size. */
unsigned pool_reserve_in_use(const struct pool *pool);

/*
 * The age of the oldest open transaction among its clients, and of the oldest that waits for its
 * client's next word; 0: there is none. These walk the pool's active servers.
 */
usec_t pool_oldest_transaction(const struct pool *pool, usec_t now);
usec_t pool_oldest_idle_transaction(const struct pool *pool, usec_t now);

/* Have pool_work_run() look at the pool at the end of this turn. */
void pool_needs_work(struct pool *pool);

/* Statements that its servers have prepared for clients, on all of them together. */
size_t pool_prepared_statements(const struct pool *pool);

#endif
