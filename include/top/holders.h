/* SPDX-License-Identifier: ISC */
/*
 * Which client holds which server: those of SHOW SERVERS, each with its client of SHOW CLIENTS, which
 * the columns `link` and `ptr` join.
 *
 * The two answers are not from the same moment: a pair counts only if each of both names the other.
 * A query cannot have run for longer than its client's `wait`, which counts the queue too, nor than
 * the server has been silent, unless it was seen there before (top/holds). Between two queries the
 * client holds the server since its last message, at least.
 */
#ifndef PGUSHER_TOP_HOLDERS_H
#define PGUSHER_TOP_HOLDERS_H

#include <stddef.h>

#include "top/feed.h"
#include "top/holds.h"

/* The client that a server does not have. */
#define HOLDERS_NO_CLIENT ((size_t)-1)

enum holding {
	HOLDING_NOTHING, /* no client has the server */
	HOLDING_QUERY, /* a query runs */
	HOLDING_TRANSACTION, /* the client has an open transaction, and no query runs */
	HOLDING_PIN, /* the server stays with the client between transactions: SHOW PINS */
	HOLDING_SESSION, /* in session mode; whether in a transaction is not known */
};

struct holder {
	size_t server, client; /* rows of SHOW SERVERS, of SHOW CLIENTS */
	enum holding holding;
	double since; /* seconds; AGES_UNKNOWN */
};

struct holders {
	struct holder *list; /* in the order of SHOW SERVERS */
	size_t count;
	double now; /* of ages_now() */
};

/* Join the last answers. Empty when out of memory. The caller frees the result. */
void holders_read(struct holders *holders, const struct feed *feed, const struct holds *holds);
void holders_free(struct holders *holders);

/* What the servers of a pool do. */
struct holders_sum {
	size_t queries, transactions, others; /* servers that clients hold, by what for */
	const struct holder *oldest; /* NULL: none is held */
};

/* Sum up the servers of a database and user. */
struct holders_sum holders_of(const struct holders *holders, const struct feed *feed,
	const char *database, const char *user);

#endif
