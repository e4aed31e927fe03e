/* SPDX-License-Identifier: ISC */
/*
 * A connection to a PostgreSQL server, its states, and the requests that it has not answered
 * yet.
 *
 *   CONNECTING > AUTHENTICATING > (PREPARING >) IDLE > PAIRED > IDLE
 *   AUTHENTICATING > CONNECTING                       no answer: try the next host of a list
 *   IDLE > LOOKING_UP > IDLE | RESETTING | STALE      runs a query of ours for logins
 *   PAIRED > HELD | RESETTING > IDLE | STALE          reserved for a cancel request; reset
 *   PAIRED > ASKING > PAIRED | IDLE | STALE | ...     asked for what its client has changed
 *   IDLE | PAIRED > ASKING > IDLE | STALE | ...       asked for functions that may change it
 *   PAIRED > DRAINING > IDLE | RESETTING | STALE      its client was closed during a query
 *   IDLE > STALE > CHECKING > IDLE                    server_check_query before the next use
 *   CONNECTING > CANCELING                            sends a CancelRequest
 *   AUTHENTICATING (> PREPARING) > LISTENING          listens for all clients of its pool
 *   AUTHENTICATING > WATCHING                         tells pgusher of its host, and serves no client
 *   PREPARING > CONNECTING                            its role does not fit: the next host of a list
 *   all > CLOSED
 *
 * Words of the console: login (CONNECTING to PREPARING), active (PAIRED, ASKING, LOOKING_UP,
 * LISTENING), used (STALE), tested (RESETTING, CHECKING, WATCHING), being_canceled (DRAINING, HELD), active_cancel
 * (CANCELING).
 */
#ifndef PGUSHER_MODEL_SERVER_LINK_H
#define PGUSHER_MODEL_SERVER_LINK_H

#include "model/cap.h"
#include "model/host/hosts.h"
#include "model/link.h"
#include "model/requests.h"
#include "model/server_statements.h"
#include "model/statistics/labels.h"
#include "net/resolver.h"
#include "wire/session_topics.h"

struct client_link;
struct handoff;
struct lookup;
struct server_login;

enum server_state {
	SERVER_CONNECTING,
	SERVER_AUTHENTICATING,
	SERVER_PREPARING,
	SERVER_IDLE,
	SERVER_PAIRED,
	SERVER_LOOKING_UP,
	SERVER_DRAINING,
	SERVER_HELD,
	SERVER_RESETTING,
	SERVER_STALE,
	SERVER_ASKING,
	SERVER_CHECKING,
	SERVER_CANCELING,
	SERVER_LISTENING,
	SERVER_WATCHING,
	SERVER_CLOSED,
	SERVER_STATES,
};

/* The lists of a pool; the servers of a state are all in one list. */
enum server_list {
	SERVERS_LOGIN,
	SERVERS_IDLE,
	SERVERS_ACTIVE,
	SERVERS_USED,
	SERVERS_TESTED,
	SERVERS_ACTIVE_CANCEL,
	SERVERS_BEING_CANCELED,
	SERVERS_LISTENING,
	SERVERS_WATCHING,
	SERVER_LISTS,
	SERVERS_NOWHERE,
};

/*
 * What a server runs beside the requests of its client, as a part of its state: it decides,
 * before the state, what the messages of the server mean (struct link_rules). server_enter()
 * sets NONE, but parameters go on being set while the server is DRAINING.
 */
enum server_task {
	SERVER_TASK_NONE,
	SERVER_TASK_ENDED, /* a query of our own has ended: nothing is expected in this run */
	SERVER_TASK_OWN_QUERY, /* a query of our own: see session/relay/own_query */
	SERVER_TASK_QUESTION, /* a query for the settings of the session: see session/state/question */
	SERVER_TASK_HANDOFF, /* it listens for a client until it need not: see notify/handoff */
	SERVER_TASK_PROBE, /* a query for the role of its host: see session/server/host_probe */
	SERVER_TASK_FUNCTIONS, /* a query for functions: see session/state/functions */
	SERVER_TASK_CAPACITY, /* a query for what its host has: see session/server/host_capacity */
	SERVER_TASK_SYNC_ALONE, /* our SETs; the client's messages wait for their end */
	SERVER_TASK_SYNC_GATHERED, /* our SETs, and behind them the client's messages in `kept` */
	SERVER_TASK_SYNC_ENDED, /* our SETs, sent alone, have ended in this run */
	SERVER_TASK_WATCH_RESET, /* its client has run RESET: see session/rules/restore */
	SERVER_TASK_RESTORE, /* what that client asked for at its start is being set again */
	SERVER_TASKS,
};

/*
 * A COPY from the client, between the server's CopyInResponse or CopyBothResponse and the end.
 */
enum copy_mode { COPY_NONE, COPY_IN, COPY_BOTH };

/* Protocol: "Message Flow", Extended Query: what a server does after an ErrorResponse. */
enum request_error {
	REQUEST_ERROR_NONE,
	REQUEST_ERROR_UNTIL_READY, /* its ReadyForQuery has not come */
	REQUEST_ERROR_UNTIL_SYNC, /* it ignores messages until a Sync, which has not been sent */
};

/* The batch of the client: its messages up to a Sync, which `kept` may have. */
enum batch_progress {
	BATCH_ENDED, /* its Sync was sent, or none has begun */
	BATCH_OPEN, /* the client has begun it and not sent the Sync yet */
	BATCH_FAILED, /* it is replayed after the server's ReadyForQuery: see statements/replay */
};

/* The cancel request of our own for a DRAINING server. */
enum draining_cancel {
	DRAINING_CANCEL_NONE,
	DRAINING_CANCEL_DUE, /* waits for a connection: counted in pool.cancels_due */
	DRAINING_CANCEL_AGAIN, /* the next query runs: needed once the one in flight has ended */
};

/* Longest cancel key of a server: process id and secret. Protocol: BackendKeyData (3.2). */
enum { SERVER_KEY_MAX = 260 };

/* The progress of a DRAINING server: see session/pool/draining. */
struct draining {
	usec_t since;
	/* Received since then, or since the last cancel request or the next query began. */
	uint32_t bytes;
	bool polite; /* the requests of its client may end without being cancelled */
	bool canceled; /* a cancel request for the running query has ended */
	enum draining_cancel cancel : 8;
};

struct server_link {
	struct link link;
	struct requests requests; /* sent and not yet answered */
	struct server_login *login; /* CONNECTING to PREPARING */
	struct lookup *lookup; /* LOOKING_UP: the look-up that it runs */
	struct client_link *launched_for; /* logs in for this client's replication; or NULL */
	struct client_link *canceling; /* CANCELING: client with the request; NULL: closed */
	struct client_link *asked_for; /* ASKING: holds until the answer; NULL: closed */
	struct handoff *handoff; /* ASKING: the handoff that has it; NULL: none */
	struct server_link *cancel_target; /* CANCELING: server to be cancelled; NULL: closed */
	struct server_statements *statements; /* owned; NULL: never prepared any of ours */
	struct buffer changes; /* names and values, each with a NUL, that its client has SET */
	struct buffer kept; /* the current batch of the client, in case it must be replayed */
	uint32_t kept_requests; /* number of requests in `kept`; 0: none is kept */
	uint32_t kept_answers; /* number of our own answers that come before theirs */
	uint32_t batch; /* number of Syncs sent */
	uint32_t unnamed_batch; /* the batch that prepared its unnamed statement */
	uint64_t unnamed; /* id of its unnamed statement; 0: unknown, or too long to be kept */
	struct host *at; /* what is known of its host: host_use(); NULL: not connected yet */
	uint8_t *cancel_key; /* owned: from BackendKeyData; NULL: none */
	uint16_t cancel_key_length;
	struct server_link *next_backend; /* in registry.backends: see model/backends */
	uint64_t user_id; /* of the client that has it, or had it last; 0: none */
	uint8_t user_key[4]; /* of its cancel key: the process number that it was told */
	struct watched_query *watched; /* owned: see session/slow/query_watch; NULL: none */
	usec_t others_until; /* when a client before that one had it at the latest; 0: never */
	/* 'I', 'T' or 'E' of the last ReadyForQuery; 0 while a request runs. */
	char transaction_status;
	enum server_task task : 8; /* set by server_set_task() only */
	enum copy_mode copy : 8;
	enum request_error request_error : 8;
	bool sync_followed; /* they set followed parameters, known from the client only */
	bool sync_alone; /* no message of the client may be sent together with them */
	uint8_t sync_queries; /* number of our Queries in `kept` that are to be sent first */
	/*
	 * It had another client before, the time limits of which may end our SETs; a cancel
	 * request for its client was sent since they began.
	 */
	bool sync_reused, sync_canceled;
	uint8_t limits_asked; /* time limits that our SETs ask for, and that have not come */
	/*
	 * Their RESETs that have not succeeded yet, of what another client has SET; with
	 * connect_query behind them they never reach 0.
	 */
	uint16_t sync_resets;
	/* ASKING: questions that a time limit of the client has ended; the last one was ended. */
	uint8_t timed_out;
	bool times_out;
	bool too_large; /* the answer is longer than a set of parameters can be */
	bool sync_refused; /* the server has refused one of them: see parameters/parameter_sync */
	/* A reference: what they set if that is not what the client has now; NULL: it is. */
	struct parameters *sync_target;
	bool altered; /* a client has run SET, and may have left a time limit in the session */
	usec_t altered_by; /* the query_start of the client when it ran that SET; 0: not known */
	enum batch_progress batch_progress : 8;
	bool forgetting; /* this batch may deallocate all statements of the server */
	bool unnamed_passing; /* it has its client's unnamed statement, which was not kept */
	bool fresh; /* nothing was sent to it since it was paired */
	bool touched; /* it was paired before: its session may differ from a new one */
	bool follows; /* its `parameters` include followed ones, with correct values */
	bool connect_query_failed; /* connect_query failed, and is not run again */
	bool listens; /* launched to be the listening server of its pool */
	uint8_t question; /* enum host_question that it was asked last: see host_probe */
	bool watches; /* launched to watch its host */
	bool tells_capacity; /* it answers what its host has: see session/server/host_capacity */
	/* At its login: in_hot_standby, if it was reported, and default_transaction_read_only. */
	enum host_role role : 8;
	bool read_only;
	bool replacement; /* launched in place of one that has reached server_lifetime */
	bool replaced; /* by such a server: to be closed when it is free */
	bool close_needed; /* retired: to be closed when it is free */
	enum server_closing close_cause : 8; /* valid if close_needed */
	/* Bits of one word: return_if_free() tests all at once. */
	bool dirty : 1; /* it sent something that was not requested */
	/*
	 * It was the only one to get a long unnamed statement, which no Bind of the client has
	 * used yet: if unnamed_passing is set, the server stays with the client.
	 */
	bool awaits_bind : 1;
	bool owes_messages : 1; /* its client gets queued messages when it has its answer */
	bool changes_known : 1; /* it has `changes`, unless an error undoes them */
	bool has_reset : 1; /* its client has run RESET since the server was last asked */
	bool role_doubted : 1; /* its host may be read-only now: it is asked before its next use */
	bool functions_due : 1; /* to read the functions when it is free: see state/functions */
	bool capacity_due : 1; /* to be asked when it is free: see session/server/host_capacity */
	unsigned suspected : 9; /* session_topics that its client may have changed */
	unsigned pins : 9; /* session_topics that it has and that keep it with its client */
	bool changes_functions; /* counted in session_functions.changing */
	usec_t pinned_since; /* valid if pins */
	char *pinned_by; /* owned: the object, as the server calls it; NULL: unknown */
	uint8_t restores; /* queries left to read parameters again after its client's RESET */
	bool sets_default; /* a client may have sent SET ... TO DEFAULT, which is as RESET */
	enum startup_replication replication : 8; /* the kind of its session */
	bool drained; /* RESETTING after DRAINING: the reset must succeed */
	bool cancel_done; /* CANCELING: closed by the server, so the request has taken effect */
	struct draining draining; /* DRAINING */
	uint8_t in_caps; /* the caps that list it as free: see model/cap */
	TAILQ_ENTRY(server_link) in_cap[CAPS];
	usec_t free_since; /* when it was listed there */
	uint16_t host; /* index of its host: see database_config_host() */
	uint32_t cancels; /* cancel requests in flight for it */
	uint32_t cancels_queued; /* and those that wait for a connection */
	socklen_t where_length;
	struct sockaddr_storage where; /* address that it connects or is connected to */
};

static inline struct server_link *server_of(struct link *link)
{
	return (struct server_link *)link;
}

static inline enum server_state server_state(const struct server_link *server)
{
	return (enum server_state)server->link.state;
}

/* Returns the state as SHOW SERVERS has it. */
const char *server_console_state(const struct server_link *server);

/*
 * Returns the state as SHOW SOCKETS has it: `sv_active`, `sv_idle`, `sv_used`, `sv_tested`, ...
 */
const char *server_socket_state(const struct server_link *server);

/* Returns the name of the state, for debug lines. */
const char *server_state_name(enum server_state state);

/* Returns the list for servers in this state. */
enum server_list server_list_of(enum server_state state);

/*
 * Change the state of a server: checks that the transition is allowed, moves the server to the
 * front of the list of its new state (most recently used first) and updates the counts.
 */
void server_enter(struct server_link *server, enum server_state state);

/* As server_enter(), to the back of the list: for round robin, and for servers to be closed. */
void server_enter_last(struct server_link *server, enum server_state state);

/* Begin or end a task: sets the rules for the server's messages. */
void server_set_task(struct server_link *server, enum server_task task);

/* Set the rules for its messages again, since registry.rules is another table. */
void server_renew_rules(struct server_link *server);

/* Returns whether the server runs our SETs; its client is not read meanwhile. */
static inline bool server_is_syncing(const struct server_link *server)
{
	return server->task >= SERVER_TASK_SYNC_ALONE && server->task <= SERVER_TASK_SYNC_ENDED;
}

/* Returns whether the client is not read because of what its server does for us. */
static inline bool server_stops_client(const struct server_link *server)
{
	return server_is_syncing(server) || server->batch_progress == BATCH_FAILED;
}

/* Returns whether the server stays with its client, between two transactions, for a Bind. */
static inline bool server_awaits_bind(const struct server_link *server)
{
	return server->awaits_bind && server->unnamed_passing;
}

/* Returns whether messages of the client were sent together with our SETs. */
static inline bool server_has_gathered(const struct server_link *server)
{
	return server->task == SERVER_TASK_SYNC_GATHERED;
}

/*
 * Set the first state of a server that was taken over from an old process: as client_place().
 */
void server_place(struct server_link *server, enum server_state state);

/* Returns whether the transition is allowed; public for tests. */
bool server_may(enum server_state from, enum server_state to);

/* Returns whether the server is logged in and counts as a connected server of its pool. */
static inline bool server_is_connected(const struct server_link *server)
{
	return server->link.state >= SERVER_IDLE && server->link.state <= SERVER_CHECKING;
}

/* Retire the server: it is to be closed when it is free. The first cause is kept. */
void server_retire(struct server_link *server, enum server_closing cause);

/*
 * Returns whether the server is idle in terms of the protocol: no transaction, all requests
 * answered, no incomplete message in either direction.
 */
bool server_is_clean(const struct server_link *server);

#endif
