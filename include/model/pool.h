/* SPDX-License-Identifier: ISC */
/*
 * A pool: the servers and clients of one database and server user, with lists, counts, the
 * welcome (what clients get at the end of a login) and the result of the last login to a
 * server.
 *
 * The registry owns its pools. A pool does not own its links: closing frees them.
 */
#ifndef PGUSHER_MODEL_POOL_H
#define PGUSHER_MODEL_POOL_H

#include "base/buffer.h"
#include "base/failure.h"
#include "model/checked_parameters.h"
#include "model/client_link.h"
#include "model/database.h"
#include "model/host/hosts.h"
#include "model/server_link.h"
#include "model/statistics/labels.h"
#include "model/statistics/latency.h"
#include "model/statistics/slow_log.h"
#include "model/statistics/stats.h"
#include "model/user.h"

struct channel_hub;
struct history_series;
struct lookup;
struct registry;

TAILQ_HEAD(lookup_list, lookup);

/* Of a pool with pool_size = auto. */
struct pool_sizing {
	usec_t asked_at; /* when a server was last asked for the sake of this pool; 0: never */
	bool due; /* a server is to be asked as soon as one is free */
	struct server_link *asked; /* it answers at the moment; NULL: none */
	usec_t used_at; /* when that server was last used, if it is ASKING */
	bool ask_again; /* at once: for less, since the host has refused the question, or for files */
	bool asks_files; /* the last question, or the one that is due, is for files of the machine */
	bool answered, interrupted; /* the last question: by a row; by an error that passes */
	unsigned role_limit, database_limit; /* CONNECTION LIMIT; 0: none */
	unsigned refused_at; /* how many servers it had when no more were accepted */
	usec_t refused_until; /* as long as that counts */
	/* How the size was found, and for which host. */
	struct sizing_facts facts;
	struct sizing sizing;
	char host[HOST_TEXT_SIZE];
};

struct pool {
	TAILQ_ENTRY(pool) in_directory, in_registry, in_database, in_user, in_work;
	struct registry *registry;
	unsigned order; /* among all pools, as of the last registry_sort() */
	uint64_t handle; /* in process.handles; 0: none yet */
	uint64_t number; /* among all pools that there were, from 1: never used again */
	struct database *database;
	struct user *user; /* the user that logs in to servers */
	/* The role that its clients have asked for; TARGET_INHERIT: that of the database. */
	enum target_session asked_role;
	char *label; /* the database's name, with that role; owned if that is asked for */
	enum pool_mode mode; /* from the configuration: read three times a transaction */
	/* From the configuration; SESSION_STATE_IGNORE in session mode. */
	enum session_state session_state;
	session_topics pin_causes; /* topics for which its servers may be pinned */
	uint8_t pairing; /* by which rules its PAIRED clients are judged: see client_pairing() */
	uint8_t caps; /* those that have a limit: bits by enum cap_kind */
	unsigned places; /* its servers, as they count below caps */
	unsigned granted; /* min_pool_size */
	unsigned weight; /* pool_weight: of the server user, else of the database, else 1 */
	struct cap_wait wait; /* its place in the queue of a cap */
	usec_t turn_over_at; /* when a server was closed for a pool in a queue; 0: never */
	/* The credential of the last client login that had one; a reference, or NULL. */
	struct credential *credential;
	struct link_list clients; /* IDLE, PAIRED, CONSOLE */
	struct link_list waiting; /* WAITING: the queue, oldest first */
	struct link_list welcoming; /* WELCOMING and LAUNCHING: wait for a server to log in */
	struct link_list cancels; /* CANCEL_WAITING and CANCEL_SENT */
	struct link_list servers[SERVER_LISTS];
	struct lookup_list lookups; /* look-ups that wait for a server, oldest first */
	struct lookup *lookups_by_key; /* the same; uthash */
	unsigned lookups_waiting, lookups_running;
	unsigned looking_up; /* askers that wait for any look-up, mostly client logins */
	unsigned client_count[CLIENT_STATES];
	unsigned server_count[SERVER_LISTS];
	unsigned watch_logins; /* of those in SERVERS_LOGIN: they will watch their hosts */
	unsigned pinned; /* servers that stay with their clients: see session/state/pins */
	struct channel_hub
		*hub; /* of its clients that LISTEN; NULL: none: see session/notify */
	unsigned cancels_due; /* DRAINING servers that wait for a cancel connection */
	struct client_group
		*groups; /* of its clients, owned: see model/statistics/client_group */
	struct parameters *welcome; /* tracked parameters of a new session; NULL: not known */
	struct buffer welcome_head; /* AuthenticationOk and untracked ParameterStatus */
	/* The last welcome message that was made, and for which parameters; NULL: none yet. */
	struct parameters *welcome_asked, *welcome_given;
	struct buffer welcome_made;
	/* The last startup parameters that need no change and no check; NULL: none yet. */
	struct parameters *welcome_kept;
	struct checked_parameters checked; /* startup parameters that its servers accept */
	usec_t last_launch; /* start of the last attempt to connect to a server; 0: never */
	usec_t login_at, login_time; /* the last login of a server: its end, its duration */
	/*
	 * When a login failed; 0: never, or one that began later has succeeded. See
	 * session/pool/login_concurrency.
	 */
	usec_t login_failed_at;
	struct deadline reserve_due; /* a client has then waited for reserve_pool_timeout */
	/* The ends of its servers by server_lifetime: see session/pool/lifetime. */
	usec_t lifetime_least; /* from the configuration: a younger server has not reached it */
	usec_t last_lifetime_close; /* when server_lifetime last closed a server */
	unsigned lifetime_closes; /* how many it closed, with less than a second between them */
	bool renewal_due; /* a server is to be launched in place of an old one */
	int auto_size; /* its size if that is POOL_SIZE_AUTO; 0: not known yet */
	struct pool_sizing *sizing; /* owned: how that was found; NULL: it is a number */
	usec_t last_client; /* last time that it had a client */
	usec_t last_used; /* last time that it had a client or a connected server */
	bool failing; /* the last attempt to log in failed, and none has succeeded since */
	bool wanting; /* valid if failing: because descriptors, memory or ports were short */
	bool refused; /* valid if failing: because the server sent an ErrorResponse */
	struct failure last_failure; /* valid if failing */
	bool left_behind; /* some of its clients belong to another pool: see move_clients */
	unsigned next_host; /* of a host list */
	bool has_work; /* in registry.work: see pool_work_run() */
	bool serving; /* its idle servers are being paired: no recursion */
	struct stats stats;
	struct latency *latency; /* owned; NULL until a query has had a server */
	uint64_t *errors; /* owned: of servers, by class (wire/sqlstate); NULL: none yet */
	uint64_t notified; /* clients that got the notice that they wait */
	uint64_t pins[TOPIC_BITS]; /* servers that were pinned, by the topic */
	/* Messages that clients got as listeners; clients that were closed by max_notify_backlog. */
	uint64_t notifications, notify_overflows;
	uint64_t listening_losses; /* listening servers that were lost */
	uint64_t unsent[UNSENT_ENDINGS]; /* queries that ended before a server received them */
	struct history_series *history; /* owned; NULL: see model/statistics/history */
	/* What the history has counted: transactions and errors. */
	uint64_t counted_transactions, counted_errors;
	uint64_t slow[SLOW_CAUSES]; /* queries that took log_min_duration or longer */
};

/*
 * Make an empty pool, which is only in the lists of its database and user. Returns NULL when
 * out of memory.
 */
struct pool *pool_new(struct registry *registry, struct database *database, struct user *user,
	enum target_session asked_role);

/* Remove a pool from the lists of its database and user, and free it. It must have no links. */
void pool_free(struct pool *pool);

/*
 * A walk over all clients or all servers of a pool, list by list, each in its order. Before the
 * next call the returned link may be closed or enter another state; the link behind it in its
 * list must not be closed.
 */
struct pool_walk {
	const struct pool *pool;
	unsigned list, end; /* the list to be walked next, and the first one not to be */
	struct link *next; /* in the list that is being walked; NULL: at its end */
};

/*
 * Begin a walk over the clients (`clients`, `waiting`, `welcoming`, `cancels`), over the
 * servers, or over the servers and then the clients.
 */
struct pool_walk pool_walk_clients(const struct pool *pool);
struct pool_walk pool_walk_servers(const struct pool *pool);
struct pool_walk pool_walk_links(const struct pool *pool);

/* Returns the next link; NULL after the last one. */
struct link *pool_walk_next(struct pool_walk *walk);

/* Has the pool pool_size = auto? */
bool pool_sizes_itself(const struct pool *pool);

/*
 * Return the sizes that apply: from the [users] entry of the server user, else the database,
 * else the settings. 0: unlimited.
 */
int pool_size(const struct pool *pool);
int pool_reserve_size(const struct pool *pool);
int pool_min_size(const struct pool *pool);
int pool_max_waiters(const struct pool *pool);

/* Which role its servers must have. */
enum target_session pool_target_session(const struct pool *pool);

/* Returns session_state as configured, whatever the mode of the pool. */
enum session_state pool_configured_session_state(const struct pool *pool);

/* Read the pool mode, the caps and lifetime_least again, after the configuration has changed. */
void pool_reconfigure(struct pool *pool);

/*
 * The tables of rules for messages of PAIRED clients: one for each pool mode, and one for those whose
 * texts are looked at: the database has functions that may change the session, values of sequences
 * keep servers, or statements that stay in the session are refused.
 */
enum { CLIENT_WATCHED = POOL_MODES, CLIENT_PAIRINGS };

/* Returns whether functions may change the session of its clients, and are known: see state/functions. */
bool pool_watches_functions(const struct pool *pool);

/* Returns whether values of sequences keep servers with their clients: see wire/sequence_words. */
static inline bool pool_watches_sequences(const struct pool *pool)
{
	return pool->session_state == SESSION_STATE_FOLLOW &&
		(pool->pin_causes & TOPIC_SEQUENCES);
}

/* Set pool.pairing, after the pool mode, session_state or the functions have changed. */
void pool_choose_rules(struct pool *pool);

/* Returns the table for a client of the pool. */
static inline unsigned client_pairing(const struct client_link *client)
{
	return client->replication ? (unsigned)POOL_MODE_SESSION : client->link.pool->pairing;
}

/* Return the mode of the pool; a client with replication, and its server, use session mode. */
static inline enum pool_mode client_mode(const struct client_link *client)
{
	return client->replication ? POOL_MODE_SESSION : client->link.pool->mode;
}

static inline enum pool_mode server_mode(const struct server_link *server)
{
	return server->replication ? POOL_MODE_SESSION : server->link.pool->mode;
}

/*
 * Return the secret for servers, and the keys derived from it: of the credential, else of the
 * auth_file. NULL: none. They belong to the credential or the user.
 */
const char *pool_secret(const struct pool *pool);
const struct user_keys *pool_keys(const struct pool *pool);

/* Use this credential for servers, and take a reference to it; NULL: use the auth_file. */
void pool_set_credential(struct pool *pool, struct credential *credential);

/*
 * Returns whether its user is the one that the database's configuration sets for all clients.
 */
bool pool_is_forced(const struct pool *pool);

/* Returns whether the pool has clients, or client logins that wait for its look-ups. */
bool pool_has_clients(const struct pool *pool);

/*
 * Returns the number of its server connections in any state, as they count for its size: without
 * its listening server.
 */
unsigned pool_servers(const struct pool *pool);

/* Returns how many of these log in. */
unsigned pool_logins(const struct pool *pool);

/* Returns whether the pool has any server connection. */
bool pool_has_servers(const struct pool *pool);

/* Returns the number of servers that have logged in. */
unsigned pool_connected_servers(const struct pool *pool);

/* Returns the client that has waited longest for a server, or NULL. */
static inline struct client_link *pool_first_waiter(const struct pool *pool)
{
	struct link *link = TAILQ_FIRST(&pool->waiting);

	return link ? client_of(link) : NULL;
}

/*
 * Returns how many waiting look-ups may get a server now: at most a quarter of the pool size
 * may run look-ups, so that logins cannot take the servers that clients need.
 */
unsigned pool_share_of_lookups(const struct pool *pool);

/* The same, fast when none waits, since it is called in each transaction. */
static inline unsigned pool_startable_lookups(const struct pool *pool)
{
	return pool->lookups_waiting == 0 ? 0 : pool_share_of_lookups(pool);
}

/*
 * Returns how many servers are wanted now, by waiting clients and by look-ups that may start.
 */
static inline unsigned pool_wanted_servers(const struct pool *pool)
{
	return pool->client_count[CLIENT_WAITING] + pool_startable_lookups(pool);
}

/*
 * A client or look-up of the pool does not wait any more. If it was the last one, a place below a
 * cap that is promised to the pool is for others.
 */
static inline void pool_need_has_changed(struct pool *pool)
{
	if (pool->wait.promised)
		cap_is_due(pool->registry, pool->wait.promised);
}

/* Returns the number of clients in pool.welcoming, which wait for a server to log in. */
static inline unsigned pool_welcoming_clients(const struct pool *pool)
{
	return pool->client_count[CLIENT_WELCOMING] + pool->client_count[CLIENT_LAUNCHING];
}

/* Returns the number of clients that wait for anything of the pool, as in SHOW POOLS. */
static inline unsigned pool_waiting_clients(const struct pool *pool)
{
	return pool->client_count[CLIENT_WAITING] + pool_welcoming_clients(pool) +
		pool->looking_up;
}

/*
 * Returns how many cancel requests wait for a connection: of clients, and for DRAINING servers.
 */
static inline unsigned pool_waiting_cancels(const struct pool *pool)
{
	return pool->client_count[CLIENT_CANCEL_WAITING] + pool->cancels_due;
}

/* Drop the welcome: the next client login waits until a server has logged in again. */
void pool_forget_welcome(struct pool *pool);

/* How much is known of what is left in sessions that are not pinned. */
enum session_knowledge {
	SESSIONS_UNKNOWN, /* session_state = ignore: other settings, and all that cannot follow */
	SESSIONS_SET, /* warn: what cannot follow */
	SESSIONS_KNOWN, /* error, follow: nothing but the last values of sequences */
	SESSIONS_BARE, /* follow, where these count too: nothing is left */
};

/*
 * Returns how much is known by the pool's setting. Where it becomes more, by a RELOAD or a takeover,
 * the servers of before must not be used again.
 */
enum session_knowledge pool_knows_sessions(const struct pool *pool);

/* Retire all servers: each is closed with this cause when it is free. */
void pool_retire_servers(struct pool *pool, enum server_closing cause);

/* Retire all servers and drop the welcome: for RECONNECT and changed connection strings. */
void pool_mark_close_needed(struct pool *pool, enum server_closing cause);

/* Free the latency and error counts of a pool that is about to be freed. */
void pool_drop_counts(struct pool *pool);

/* Returns how many of its connected servers exceed its size. */
unsigned pool_reserve_in_use(const struct pool *pool);

/* Add the pool to registry.work: registry.do_work runs after the events of this turn. */
void pool_needs_work(struct pool *pool);

#endif
