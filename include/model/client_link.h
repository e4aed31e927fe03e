/* SPDX-License-Identifier: ISC */
/*
 * A client's connection, its states and the places where it stands.
 *
 *   GREETING > AUTHENTICATING > (WELCOMING >) IDLE > (WAITING >) PAIRED > IDLE
 *   IDLE > LAUNCHING > PAIRED | IDLE              replication: waits for a server of its own
 *   AUTHENTICATING > LOOKING_UP > AUTHENTICATING  something is asked for on a server
 *   WELCOMING > LOOKING_UP                        likewise
 *   GREETING > CANCEL_WAITING > CANCEL_SENT       a CancelRequest
 *   AUTHENTICATING > CONSOLE                      the admin console
 *   all > CLOSED
 *
 * GREETING, AUTHENTICATING and LOOKING_UP stand in registry.logins, WELCOMING and LAUNCHING in
 * pool.welcoming, WAITING in pool.waiting (both oldest first), IDLE, PAIRED and CONSOLE in
 * pool.clients, CANCEL_* in pool.cancels.
 */
#ifndef PGUSHER_MODEL_CLIENT_LINK_H
#define PGUSHER_MODEL_CLIENT_LINK_H

#include "model/link.h"
#include "net/wheel.h"

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

/* A cancel key is a process number of 4 bytes and a secret of 4 (protocol 3.0) or more (3.2). */
enum { CANCEL_KEY_MIN = 8, CANCEL_KEY_MAX = 20 };

/* What a client has besides that asked for replication. */
struct replica {
	struct server_link *server; /* logs in for it; NULL: none does, or they are paired */
	char options[]; /* of its StartupMessage, for that server as they are; empty: none */
};

struct client_link {
	struct link link;
	struct deadline deadline; /* the nearest of the limits that its state has */
	struct user *user; /* who logged in; NULL before, and for unknown names */
	struct database *database; /* NULL before, and for unknown names */
	struct client_group *group; /* the counters of its kind; NULL before login */
	union {
		struct login *login; /* GREETING to WELCOMING */
		struct console_session *console; /* CONSOLE */
		struct server_link *
			cancel; /* CANCEL_WAITING: what it wants to hit; _SENT: what carries it */
	};
	struct client_statements *statements; /* owned; NULL: it never prepared one by name */
	struct statement *unnamed; /* its unnamed statement, counted; NULL: none */
	struct parameters
		*asked; /* at its start, counted: what RESET goes back to; NULL: unknown */
	usec_t query_start; /* 0: no query is being timed */
	usec_t transaction_start; /* 0: no transaction is being timed */
	union {
		usec_t wait_start; /* WAITING, WELCOMING, LAUNCHING */
		usec_t served; /* PAIRED: when its wait for the server ended; 0: it did not wait */
	};
	struct replica *replica; /* owned; NULL: it did not ask for replication */
	uint8_t key[CANCEL_KEY_MAX]; /* a CANCEL_* client: the key it brought */
	uint8_t key_length; /* 0: none issued yet */
	bool counted_in_database, counted_in_user; /* limits_give() is due at the end */
	bool notified; /* told that it waits */
	bool admin; /* on the console: may change things */
	bool ring_full; /* held back until the server has answered some requests */
	enum startup_replication replication : 8; /* what it asked for */
};

static inline struct client_link *client_of(struct link *link)
{
	return (struct client_link *)link;
}

static inline enum client_state client_state(const struct client_link *client)
{
	return (enum client_state)client->link.state;
}

/* `idle`, `active`, `waiting`, …: the word SHOW CLIENTS has for the client's state. */
const char *client_console_state(const struct client_link *client);

/* `cl_active`, `cl_waiting`, `cl_login`: the word of SHOW SOCKETS. */
const char *client_socket_state(const struct client_link *client);

/* The state's own name, for debug lines. */
const char *client_state_name(enum client_state state);

/*
 * The one way to change a client's state: checks that the step is lawful, moves the client to
 * the list of its new state and counts it there. The pool must be set when the new state stands
 * in one. Deadlines are the caller's (session/link/client_limits).
 */
void client_enter(struct client_link *client, enum client_state state);

/*
 * Put a client that has no server (WELCOMING, IDLE, WAITING, LAUNCHING) into another pool, in the
 * same state: at the end of the queue if it waits.
 */
void client_move(struct client_link *client, struct pool *pool);

/*
 * A client that is as another process left it: its pool is set, and it takes its place in the list
 * of that state, and is counted there.
 */
void client_place(struct client_link *client, enum client_state state);

/* May a client go from one state to the other? For tests, which walk every arrow. */
bool client_may(enum client_state from, enum client_state to);

/* Is it logged in (its welcome sent)? */
static inline bool client_is_logged_in(const struct client_link *client)
{
	return client->link.state >= CLIENT_IDLE &&
		client->link.state != CLIENT_CANCEL_WAITING &&
		client->link.state != CLIENT_CANCEL_SENT && client->link.state != CLIENT_CLOSED;
}

/* Does it wait for a server or for a server's parameters? */
static inline bool client_is_waiting(const struct client_link *client)
{
	return client->link.state == CLIENT_WAITING || client->link.state == CLIENT_WELCOMING ||
		client->link.state == CLIENT_LAUNCHING;
}

#endif
