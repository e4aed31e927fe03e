/* SPDX-License-Identifier: ISC */
/*
 * A client connection, its states and its lists.
 *
 *   GREETING > AUTHENTICATING > (WELCOMING >) IDLE > (WAITING >) PAIRED > IDLE
 *   IDLE > LAUNCHING > PAIRED | IDLE              replication: waits for a server of its own
 *   AUTHENTICATING > LOOKING_UP > AUTHENTICATING  waits for a look-up on a server
 *   WELCOMING > LOOKING_UP                        likewise
 *   GREETING > CANCEL_WAITING > CANCEL_SENT       a CancelRequest
 *   AUTHENTICATING > CONSOLE                      the admin console
 *   all > CLOSED
 *
 * Clients in GREETING, AUTHENTICATING and LOOKING_UP are in registry.logins, in WELCOMING and
 * LAUNCHING in pool.welcoming, in WAITING in pool.waiting (both oldest first), in IDLE, PAIRED
 * and CONSOLE in pool.clients, in CANCEL_* in pool.cancels.
 */
#ifndef PGUSHER_MODEL_CLIENT_LINK_H
#define PGUSHER_MODEL_CLIENT_LINK_H

#include "base/failure.h"
#include "model/link.h"
#include "net/wheel.h"
#include "wire/session_topics.h"

struct channel_listener;
struct client_group;
struct console_session;
struct database;
struct client_statements;
struct login;
struct pool;
struct server_link;
struct statement;
struct user;

enum client_state {
	CLIENT_GREETING,
	CLIENT_AUTHENTICATING,
	CLIENT_LOOKING_UP,
	CLIENT_WELCOMING,
	CLIENT_IDLE,
	CLIENT_WAITING,
	CLIENT_LAUNCHING,
	CLIENT_PAIRED,
	CLIENT_CANCEL_WAITING,
	CLIENT_CANCEL_SENT,
	CLIENT_CONSOLE,
	CLIENT_CLOSED,
	CLIENT_STATES,
};

/*
 * What an IDLE or PAIRED client is in the middle of, as a part of its state: it decides, before
 * the state, what the messages of the client mean (struct link_rules). client_enter() sets
 * NONE.
 */
enum client_step {
	CLIENT_STEP_NONE,
	CLIENT_STEP_ENDING, /* its query ends unsent, with an error: see session/serving/unsent_query */
	CLIENT_STEP_SKIPPING, /* likewise: its messages are ignored until a Sync */
	CLIENT_STEP_SYNC_DUE, /* before its next message parameters are set on its server */
	CLIENT_STEP_FORGETTING, /* its server is to deallocate all statements first */
	CLIENT_STEP_LISTENING, /* its LISTEN waits for the listening server: see session/notify */
	CLIENT_STEP_ASKED, /* its last server is asked for its settings, and then it goes on */
	CLIENT_STEP_HANDED_OVER, /* the process that takes over asks its server before that */
	CLIENT_STEPS,
};

/* Whether the client comes through a proxy that sends a PROXY header: see login/proxy_greeting. */
enum client_proxy {
	PROXY_NONE, /* no header is looked for, or there was none */
	PROXY_UNTRUSTED, /* a header is refused */
	PROXY_OPTIONAL, /* a header is taken */
	PROXY_REQUIRED, /* likewise; without one no login is */
	PROXY_LOCAL, /* a header has come: the proxy has connected for itself */
	/*
	 * A header has come: link.remote is the address of a client of the proxy, unless the
	 * header has none.
	 */
	PROXY_RELAYED,
};

/*
 * A cancel key is a process number of 4 bytes and a secret of 4 (protocol 3.0) or more (3.2).
 */
enum { CANCEL_KEY_MIN = 8, CANCEL_KEY_MAX = 20 };

/* Additional fields of a client that asked for replication. */
struct replica {
	struct server_link *server; /* being logged in for this client; NULL: none, or paired */
	char options[]; /* of its StartupMessage, sent unchanged to the server; or empty */
};

struct client_link {
	struct link link;
	struct deadline deadline; /* the nearest limit of its state */
	struct user *user; /* user that logs in or has; NULL before, and for unknown names */
	struct database *database; /* NULL before it is known, and for unknown names */
	struct client_group *group; /* its counters; NULL before login */
	union {
		struct login *login; /* GREETING to WELCOMING */
		struct console_session *console; /* CONSOLE */
		/*
		 * CANCEL_WAITING: server to be cancelled; CANCEL_SENT: sender of the request.
		 */
		struct server_link *cancel;
	};
	struct client_statements *statements; /* owned; NULL: no named ones so far */
	struct statement *unnamed; /* its unnamed statement, a reference; NULL: none */
	/* Owned: names of settings with a dot that it may have SET, each with a NUL; then a NUL. */
	char *custom_names;
	/* Parameters of its StartupMessage: values after RESET; a reference; NULL: unknown. */
	struct parameters *asked;
	usec_t query_start; /* 0: no query is being timed */
	usec_t transaction_start; /* 0: no transaction is being timed */
	union {
		usec_t wait_start; /* WAITING, WELCOMING, LAUNCHING */
		usec_t served; /* PAIRED: end of its wait for the server; 0: it did not wait */
		enum reason ending; /* CLIENT_STEP_ENDING: why its query ends */
		struct server_link *asking; /* CLIENT_STEP_ASKED: that server */
		usec_t held_until; /* CANCEL_WAITING: not sent before that time; 0: it may be */
	};
	struct channel_listener *listener; /* owned; NULL: it has not LISTENed */
	struct replica *replica; /* owned; NULL: it did not ask for replication */
	uint8_t key[CANCEL_KEY_MAX]; /* its cancel key; CANCEL_*: of its CancelRequest */
	uint8_t key_length; /* 0: none issued yet */
	/* limits_give_client() must uncount it. */
	bool counted_in_process : 1, counted_in_consoles : 1;
	bool counted_in_database : 1, counted_in_user : 1;
	bool counted_by_address : 1; /* sources_give() must uncount it */
	bool went_round : 1; /* past all workers, before max_client_conn counts: see login/relocation */
	enum client_proxy proxy : 3;
	bool notified; /* it got the notice that it waits */
	bool leaving; /* a shutdown closes it as soon as it has no transaction: serving/drain */
	bool admin; /* on the console: may use commands that change something */
	enum client_step step : 8; /* set by client_set_step() only */
	bool ring_full; /* not read until the server has answered some requests */
	bool refused; /* a server has refused its parameters: SETs are sent alone until one takes them */
	enum startup_replication replication : 8; /* of its StartupMessage */
	session_topics warned; /* causes for which its servers were not pinned: it knows */
};

static inline struct client_link *client_of(struct link *link)
{
	return (struct client_link *)link;
}

static inline enum client_state client_state(const struct client_link *client)
{
	return (enum client_state)client->link.state;
}

/* Returns the state as SHOW CLIENTS has it: `idle`, `active`, `waiting`, ... */
const char *client_console_state(const struct client_link *client);

/* Returns the state as SHOW SOCKETS has it: `cl_active`, `cl_waiting`, `cl_login`. */
const char *client_socket_state(const struct client_link *client);

/* Returns the name of the state, for debug lines. */
const char *client_state_name(enum client_state state);

/*
 * Change the state of a client: checks that the transition is allowed, moves the client to the
 * end of the list of its new state and updates the counts. The pool must be set when that list
 * belongs to a pool. The caller sets the deadline (session/link/client_limits).
 */
void client_enter(struct client_link *client, enum client_state state);

/*
 * Move a client without a server (WELCOMING, IDLE, WAITING, LAUNCHING) to another pool in the
 * same state, with its counts: to the end of the queue if it waits.
 */
void client_move(struct client_link *client, struct pool *pool);

/* Begin or end a step: sets the rules for the client's messages. */
void client_set_step(struct client_link *client, enum client_step step);

/* Set the rules for its messages again, since registry.rules is another table. */
void client_renew_rules(struct client_link *client);

/*
 * Set the first state of a client that was taken over from an old process: adds it to the list
 * of the state and counts it. Its pool must be set.
 */
void client_place(struct client_link *client, enum client_state state);

/* Returns whether the transition is allowed; public for tests. */
bool client_may(enum client_state from, enum client_state to);

/* Returns whether the client is logged in, that is, its welcome was sent. */
static inline bool client_is_logged_in(const struct client_link *client)
{
	return client->link.state >= CLIENT_IDLE &&
		client->link.state != CLIENT_CANCEL_WAITING &&
		client->link.state != CLIENT_CANCEL_SENT && client->link.state != CLIENT_CLOSED;
}

/* Returns whether the client waits for a server, or for the parameters of one. */
static inline bool client_is_waiting(const struct client_link *client)
{
	return client->link.state == CLIENT_WAITING || client->link.state == CLIENT_WELCOMING ||
		client->link.state == CLIENT_LAUNCHING;
}

#endif
