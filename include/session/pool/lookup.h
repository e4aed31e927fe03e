/* SPDX-License-Identifier: ISC */
/*
 * Look-ups: queries of our own that client logins wait for. This is their queue, which limits
 * how many servers of a pool run look-ups at the same time.
 *
 * There are two kinds: which user a client is (lookup/auth_query), and whether startup
 * parameters are valid (lookup/startup_check). Askers with the same question share a look-up as
 * long as its query has not been sent, so that the query always runs after each of them has
 * arrived. A look-up belongs to its askers, which are logins of this worker or of others
 * (link/asker): it is freed with the last of them. lookup/lookup_server runs it on a server.
 */
#ifndef PGUSHER_SESSION_POOL_LOOKUP_H
#define PGUSHER_SESSION_POOL_LOOKUP_H

#include "session/link/login.h"
#include "wire/report.h"

/* What follows from an ErrorResponse of the server to a look-up. */
enum lookup_error {
	LOOKUP_ERROR_IS_ANSWER, /* the error answers the question: the server stays in use */
	LOOKUP_ERROR_CLOSES, /* close the server */
};

/* What the two kinds of look-ups do differently. */
struct lookup_kind {
	const char *name; /* for the log */
	/* Take and drop a reference to the subject; both NULL: the subject is not counted. */
	const void *(*ref)(const void *subject);
	void (*unref)(const void *subject);
	/*
	 * Append the queries that have to run before the look-up. Returns their number; each is
	 * answered by its own ReadyForQuery.
	 */
	unsigned (*write_preludes)(struct server_link *server, struct buffer *out);
	/*
	 * One of these queries has ended; lookup->preludes of them are left. Returns false when
	 * out of memory.
	 */
	bool (*prelude_done)(struct server_link *server);
	/*
	 * Append the statements, each by lookup_write_statement(), without the Sync after them.
	 * Returns their number.
	 */
	unsigned (*write)(const struct lookup *lookup, const struct server_link *server,
		struct buffer *out);
	/* Returns the number of columns that the result of a statement has. */
	unsigned (*columns)(const struct lookup *lookup, unsigned statement);
	/* Read a row of that result. Returns false if it is invalid: the server is closed. */
	bool (*take_row)(struct server_link *server, unsigned statement, const uint8_t *body,
		size_t length);
	/* The server has answered a statement by this ErrorResponse. */
	enum lookup_error (*take_error)(
		struct server_link *server, const struct report *report);
	/*
	 * The server has answered everything. Take the askers with lookup_take_asker() until it
	 * returns NULL, and continue each of them.
	 */
	void (*finish)(struct lookup *lookup);
	enum reason broken; /* closes a server with any other answer */
	/* Closes the clients in that case; REASON_COUNT: the reason that closed the server. */
	enum reason failure;
};

struct lookup {
	TAILQ_ENTRY(lookup) in_queue; /* of the pool, while it waits */
	UT_hash_handle by_key; /* likewise */
	struct pool *pool; /* a server of this pool runs it */
	struct server_link *server; /* runs it; NULL: it waits, or has ended */
	struct asker_list askers; /* never empty before the end */
	usec_t since; /* arrival of the first asker */
	usec_t started; /* when the query was sent; valid while it has a server */
	bool queued; /* in pool.lookups */
	bool answered; /* the server has begun to answer the look-up itself */
	unsigned preludes; /* queries before the look-up that have not ended */
	unsigned statements, step; /* of the answer: see lookup/lookup_server */
	/* Result of auth_query. */
	struct credential *credential; /* counted: of the last row; NULL: no row yet */
	/* The user name of that row; of startup_check: an unknown parameter, or empty. */
	char name[CLIENT_USER_NAME_MAX + 1];
	/* Result of startup_check. */
	struct parameters *canonical; /* values as the server spells them; counted, or NULL */
	struct failure refusal; /* valid if refused: from the ErrorResponse of the server */
	bool refused;
	const char *text; /* of the question; or NULL */
	size_t key_length;
	/* The question. These three members in one piece, and the text, are the key of by_key. */
	const struct lookup_kind *kind;
	const void *subject; /* startup_check: the values, counted; else see auth_query */
	char user[]; /* auth_query: the user name of the StartupMessage; the text behind it */
};

struct lookup_question {
	const struct lookup_kind *kind;
	const void *subject;
	const char *user;
	const char *text; /* NULL: the subject says all */
};

/*
 * Make this asker wait for a look-up in this pool: a queued one with the same question, else a
 * new one at the end of the queue. Returns false when out of memory.
 */
bool lookup_join(
	struct asker *asker, struct pool *pool, const struct lookup_question *question);

/* Returns the look-up that may get the next server; NULL: none waits, or enough of them run. */
struct lookup *lookup_next(const struct pool *pool);

/* Take the look-up out of the queue: this server runs it from now on. */
void lookup_start(struct lookup *lookup, struct server_link *server);

/* Take the look-up from its server, which could not run it, and put it first in the queue. */
void lookup_requeue(struct lookup *lookup);

/* Take the look-up out of the queue, or from its server. It keeps its askers. */
void lookup_end(struct lookup *lookup);

/*
 * Remove the first asker of a look-up that has ended, and return it. Returns NULL if no asker
 * was left; the look-up is freed then.
 */
struct asker *lookup_take_asker(struct lookup *lookup);

/*
 * The asker does not wait any more: remove it from its look-up, if it has one. A look-up without
 * askers is freed. Returns the server that was running it, which the caller closes; else NULL.
 */
struct server_link *lookup_remove_asker(struct asker *asker);

#endif
