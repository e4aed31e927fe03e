/* SPDX-License-Identifier: ISC */
/*
 * A connection to a PostgreSQL server, its states, and the requests it still owes answers for.
 *
 *   CONNECTING > AUTHENTICATING > (PREPARING >) IDLE > PAIRED > IDLE
 *   AUTHENTICATING > CONNECTING                       no answer: to the next host of a list
 *   IDLE > LOOKING_UP > IDLE | RESETTING | STALE      runs a query of ours for logins
 *   PAIRED > HELD | RESETTING > IDLE | STALE          what a release may need
 *   PAIRED > DRAINING > IDLE | RESETTING | STALE      its client has gone in the middle
 *   IDLE > STALE > CHECKING > IDLE                    check before use
 *   CONNECTING > CANCELING                            carries a CancelRequest
 *   all > CLOSED
 *
 * The console's words: login (CONNECTING to PREPARING), active (PAIRED, LOOKING_UP), used (STALE), tested
 * (RESETTING, CHECKING), being_canceled (DRAINING, HELD), active_cancel (CANCELING).
 */
#ifndef PGUSHER_MODEL_SERVER_LINK_H
#define PGUSHER_MODEL_SERVER_LINK_H

#include "model/labels.h"
#include "model/link.h"
#include "model/requests.h"
#include "model/server_statements.h"
#include "net/resolver.h"

struct client_link;
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
	SERVER_CHECKING,
	SERVER_CANCELING,
	SERVER_CLOSED,
	SERVER_STATES,
};

/* The lists of a pool; each state stands in one. */
enum server_list {
	SERVERS_LOGIN,
	SERVERS_IDLE,
	SERVERS_ACTIVE,
	SERVERS_USED,
	SERVERS_TESTED,
	SERVERS_ACTIVE_CANCEL,
	SERVERS_BEING_CANCELED,
	SERVER_LISTS,
	SERVERS_NOWHERE,
};

/* Longest cancel key a server may give us: protocol chapter, BackendKeyData (3.2). */
enum { SERVER_KEY_MAX = 260 };

/* What a DRAINING server has behind it, and before it: see session/pool/draining. */
struct draining {
	usec_t since;
	uint32_t
		bytes; /* that it has said since then, or since it was cancelled, or began the next */
	bool polite; /* what its client had sent may end by itself */
	bool canceled; /* a request has ended that was meant for what it runs */
	bool halted; /* it is not read before it is cancelled */
	bool cancel_due; /* a request of ours waits for a connection: counted in its pool */
	bool next_runs; /* what the last request was meant for has ended */
};

struct server_link {
	struct link link;
	struct requests requests; /* sent and not yet answered */
	struct server_login *login; /* CONNECTING to PREPARING */
	struct lookup *lookup; /* LOOKING_UP: what it runs */
	struct client_link *launched_for; /* while it logs in for replication: for whom */
	struct client_link
		*canceling; /* CANCELING: whose request it carries; NULL once it has gone */
	struct server_link
		*cancel_target; /* CANCELING: what it cancels; NULL once that has gone */
	struct server_statements *statements; /* owned; NULL: it never had any of ours */
	struct buffer kept; /* what the client said last, while it may have to be said again */
	uint32_t kept_requests; /* how many requests that batch has; 0: none is kept */
	uint32_t kept_answers; /* and how many answers of ours come before those */
	uint32_t batch; /* counts Syncs that were sent */
	uint32_t unnamed_batch; /* in which it was given its unnamed statement */
	uint64_t
		unnamed; /* number of its unnamed statement; 0: unknown, or too long to be kept */
	uint8_t *cancel_key; /* as BackendKeyData had it; NULL: none given */
	uint16_t cancel_key_length;
	char transaction_status; /* 'I', 'T' or 'E' of the last ReadyForQuery; 0 while a request runs */
	bool copying_in; /* between CopyInResponse or CopyBothResponse and its end */
	bool streaming; /* and the last one began with CopyBothResponse */
	bool request_failed; /* an ErrorResponse came and its ReadyForQuery has not */
	bool skipping; /* after an error it answers nothing before the next Sync */
	bool setting; /* runs our SETs; its client is not read on */
	bool sync_followed; /* and what they set is known of the client alone */
	bool sync_alone; /* nothing of the client's is to go with them */
	uint8_t setting_due; /* so many Queries of ours stand in `kept`, to be sent first */
	bool gathered; /* it runs our SETs, and `kept` has what went with them */
	bool batch_open; /* its client has begun a batch and not sent its Sync */
	bool replaying; /* a batch has failed, and is said again after its ReadyForQuery */
	bool forgetting; /* this batch may make it forget all statements */
	bool unnamed_passing; /* its unnamed statement is its client's, and was not kept */
	bool fresh; /* nothing was sent to it since it was given to its client */
	bool touched; /* a client has had it: its session is not as it was made */
	bool follows; /* its parameters hold followed ones, and they are believed */
	bool connect_query_failed; /* so it is not repeated either */
	bool close_needed; /* to be retired when free */
	enum server_closing close_cause : 8; /* and why */
	bool dirty; /* something came that nobody asked for */
	bool reserve; /* taken from the reserve pool */
	uint8_t restores; /* since its client's RESET: how often session/rules/restore may still ask */
	enum startup_replication replication : 8; /* its session is of this kind */
	bool drained; /* RESETTING: its client went in the middle, so the reset has to succeed */
	bool cancel_done; /* CANCELING: the server has ended it, so its request has had its effect */
	struct draining draining; /* DRAINING */
	uint16_t
		host; /* which of its database's hosts it connects to: see database_config_host() */
	uint32_t cancels; /* cancel requests on their way to it */
	uint32_t cancels_queued; /* and those that have no connection yet */
	socklen_t where_length;
	struct sockaddr_storage where; /* what it connects or connected to */
};

static inline struct server_link *server_of(struct link *link)
{
	return (struct server_link *)link;
}

static inline enum server_state server_state(const struct server_link *server)
{
	return (enum server_state)server->link.state;
}

/* The word SHOW SERVERS has for the state. */
const char *server_console_state(const struct server_link *server);

/* The word of SHOW SOCKETS: `sv_active`, `sv_idle`, `sv_used`, `sv_tested`, `sv_login`. */
const char *server_socket_state(const struct server_link *server);

const char *server_state_name(enum server_state state);

/* The list that a state stands in. */
enum server_list server_list_of(enum server_state state);

/*
 * The one way to change a server's state: checks that the step is lawful, moves it to the list
 * of the new state (front: most recently used first) and counts it there.
 */
void server_enter(struct server_link *server, enum server_state state);

/* As server_enter(), to the back of the list: round robin, and what is about to be retired. */
void server_enter_last(struct server_link *server, enum server_state state);

/* A server that is as another process left it: as client_place(). */
void server_place(struct server_link *server, enum server_state state);

bool server_may(enum server_state from, enum server_state to);

/* Has it logged in, and does it count as a connected server of its pool? */
static inline bool server_is_connected(const struct server_link *server)
{
	return server->link.state >= SERVER_IDLE && server->link.state <= SERVER_CHECKING;
}

/* It is to be closed when it is free, for the first cause that came up. */
void server_retire(struct server_link *server, enum server_closing cause);

/* Idle in the sense of the protocol: no transaction, nothing owed, nothing half-done. */
bool server_is_clean(const struct server_link *server);

#endif
