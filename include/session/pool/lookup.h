/* SPDX-License-Identifier: ISC */
/*
 * Logins that have to ask a server something: what they ask, in which order, and for how many of
 * them a pool has servers at the same time.
 *
 * A look-up is of a kind: who somebody is (session/lookup/auth_query), or whether values are good
 * (session/lookup/startup_check). Logins that want to know the same before it was sent share it: the query still
 * runs after each of them came. Its logins own it: the last one that leaves takes it along. How
 * a server is asked is session/lookup/lookup_server's.
 */
#ifndef PGUSHER_SESSION_POOL_LOOKUP_H
#define PGUSHER_SESSION_POOL_LOOKUP_H

#include "session/link/login.h"
#include "wire/report.h"

TAILQ_HEAD(login_list, login);

struct lookup;

/* What happened to a look-up that the server answers with an error. */
enum lookup_error {
	LOOKUP_ERROR_IS_ANSWER, /* that was the answer */
	LOOKUP_ERROR_CLOSES, /* the server is not to be trusted with another one */
};

/* What is peculiar to a kind of look-up. */
struct lookup_kind {
	const char *name; /* for the log */
	/* The subject is held, and let go of; NULL: it need not be. */
	const void *(*hold)(const void *subject);
	void (*let_go)(const void *subject);
	/*
	 * Append queries that have to come first; returns how many, each with a ReadyForQuery of
	 * its own.
	 */
	unsigned (*prepare)(struct server_link *server, struct buffer *out);
	/* One more of these has ended: lookup->preludes are left. False: no memory. */
	bool (*fit)(struct server_link *server);
	/*
	 * Append statements, each by lookup_write_statement(), without the Sync behind them;
	 * returns how many.
	 */
	unsigned (*ask)(const struct lookup *lookup, const struct server_link *server,
		struct buffer *out);
	/* How many columns the result of one has. */
	unsigned (*columns)(const struct lookup *lookup, unsigned statement);
	/* A row of that result. False: the server is none to be trusted. */
	bool (*take_row)(struct server_link *server, unsigned statement, const uint8_t *body,
		size_t length);
	/* The server says that it cannot be done. */
	enum lookup_error (*take_error)(
		struct server_link *server, const struct report *report);
	/* It has ended well: take the logins out one by one, and on with them. */
	void (*finish)(struct lookup *lookup);
	enum reason broken; /* why a server is closed that answers something else */
	/* What the logins are told then; REASON_COUNT: what became of the server. */
	enum reason failure;
};

struct lookup {
	TAILQ_ENTRY(lookup) in_queue; /* of the pool, while it waits */
	UT_hash_handle by_key; /* likewise */
	struct pool *pool; /* that asks */
	struct server_link *server; /* runs it; NULL: it waits, or is over */
	struct login_list logins; /* never empty but at its end */
	usec_t since; /* the first of them came */
	usec_t started; /* the server was asked; valid while it has one */
	bool queued; /* stands in the pool's queue */
	bool answered; /* the server has begun to answer */
	unsigned preludes; /* queries before the look-up proper that have not ended yet */
	unsigned statements, step; /* of the answer: see session/lookup/lookup_server */
	/* What auth_query has found. */
	struct credential *credential; /* counted: of the last row; NULL: none has come */
	char name[CLIENT_USER_NAME_MAX + 1]; /* likewise: who it really is */
	/* What a proof has found. */
	struct parameters *canonical; /* counted; NULL: nothing yet */
	struct failure refusal; /* valid if refused: what the server says */
	bool refused;
	/* What is asked; these three in one piece are the key of by_key. */
	const struct lookup_kind *kind;
	const void *subject; /* auth_query: the database; proof: the values, counted */
	char user[]; /* auth_query: whom they said to be */
};

/*
 * Have the client's login wait for the answer. The kind says whether the subject has to be held.
 * False: no memory.
 */
bool lookup_join(struct client_link *client, struct pool *pool, const struct lookup_kind *kind,
	const void *subject, const char *user);

/* The one whose turn it is to get a server; NULL: none waits, or enough of them have one. */
struct lookup *lookup_next(const struct pool *pool);

/* The first of the queue has a server now. */
void lookup_start(struct lookup *lookup, struct server_link *server);

/* Its server was none: it is the first of the queue again. */
void lookup_requeue(struct lookup *lookup);

/* It has ended with its server: it stands nowhere any more. */
void lookup_end(struct lookup *lookup);

/* The first login that has not left yet, which leaves it now; NULL: none, and it is freed. */
struct login *lookup_take_login(struct lookup *lookup);

/* The login's client is closing. Returns the server that works in vain then, or NULL. */
struct server_link *lookup_remove_login(struct login *login);

#endif
