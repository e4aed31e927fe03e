/* SPDX-License-Identifier: ISC */
/*
 * Resolves host names to addresses asynchronously: c-ares on the event loop, with a cache for
 * the whole process, keyed by the exact name.
 *
 * Queries for a name that is being looked up share one look-up. A cached answer is valid for a
 * time from the settings, not for the TTL of the DNS; when it has expired, the next query looks
 * the name up again. Names in the hosts file are found too. The caller handles Unix sockets and
 * literal addresses itself.
 */
#ifndef PGUSHER_NET_RESOLVER_H
#define PGUSHER_NET_RESOLVER_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net/loop.h"

enum {
	RESOLVER_FOUND = 0, /* every other status is an error of c-ares */
	RESOLVER_NAME_MAX = 255, /* length of the longest name that is looked up */
	RESOLVER_ADDRESSES_MAX = 64, /* most addresses kept for one name */
};

struct dns_zones;
struct resolver;
struct resolver_name;
struct resolver_query;

/*
 * The answer to a query: RESOLVER_FOUND and an address with the query's port, valid during the
 * call; or another status and NULL. Called once, at the end of a turn, never from
 * resolver_ask(). The callback may free the query or use it again.
 */
typedef void resolver_function(struct resolver_query *query, const struct sockaddr *address,
	socklen_t length, int status);

/* A query, embedded in its owner; all zero at first. Not to be freed while it waits. */
struct resolver_query {
	TAILQ_ENTRY(resolver_query) entry;
	struct resolver_name *name; /* NULL: not waiting */
	resolver_function *answer;
	uint16_t port;
	uint16_t others; /* valid in the callback: number of further addresses of the name */
};

struct resolver_options {
	const char *resolv_conf; /* replaces /etc/resolv.conf; NULL or empty: that file */
	const char *servers; /* `ADDRESS[:PORT],...` in place of its name servers; or NULL */
	usec_t found_life; /* how long an answer is kept */
	usec_t failed_life; /* how long a failure is kept */
	usec_t zone_period; /* how often the serials of zones are queried; 0: never */
	size_t names_max; /* most cached names; evicts the least recently used */
};

/*
 * Make a resolver on this loop, which must outlive it. The texts of the options are copied or
 * only read. Returns NULL with a message in `why` when c-ares fails or memory is short.
 */
struct resolver *resolver_new(
	struct loop *loop, const struct resolver_options *options, char *why, size_t size);

/* Free the resolver. Waiting queries end without a call of their callbacks. NULL is allowed. */
void resolver_free(struct resolver *resolver);

/*
 * Set how long answers are kept; for answers that arrive from now on. A failure other than a
 * name that does not exist (timeout, refusal, malformed answer) is kept for a second at most.
 */
void resolver_set_lives(struct resolver *resolver, usec_t found_life, usec_t failed_life);

/* Set how often the serials of zones are queried, 0: never. See net/dns_zones. */
void resolver_set_zone_period(struct resolver *resolver, usec_t period);

/* Read resolv.conf again. Look-ups in flight start again; cached failures expire. */
void resolver_renew(struct resolver *resolver);

/* Let the cached answer of this name expire now: the next query looks it up. */
void resolver_forget(struct resolver *resolver, const char *name, size_t length);

/*
 * The look-up of a name has ended, and this address, which the name had before, is not in the
 * answer. The port of the address is 0. The callback must not call the resolver.
 */
typedef void resolver_moved_function(
	void *argument, const char *name, const struct sockaddr *gone, socklen_t length);

/* Call `moved` for each address that a name no longer has, from now on; NULL: none. */
void resolver_on_move(
	struct resolver *resolver, resolver_moved_function *moved, void *argument);

/*
 * Query an address of this name; `answer` is called later. A name with several addresses gives
 * them to its queries in turn. The query must not be waiting already. The only time limit is
 * that of c-ares (some seconds for each name server): a caller with a deadline calls
 * resolver_cancel().
 */
void resolver_ask(struct resolver *resolver, struct resolver_query *query, const char *name,
	uint16_t port, resolver_function *answer);

/*
 * Stop waiting: `answer` is not called. The look-up continues for other queries and the cache.
 * Does nothing if the query is not waiting.
 */
void resolver_cancel(struct resolver_query *query);

static inline bool resolver_query_is_waiting(const struct resolver_query *query)
{
	return query->name != NULL;
}

/*
 * Parse an IPv4 or IPv6 literal into `out`. An IPv6 literal may have a zone (fe80::1%eth0), and
 * has no brackets. Returns the length of the address, 0 when the text is not a literal.
 */
socklen_t resolver_literal(const char *text, uint16_t port, struct sockaddr_storage *out);

/* A row of SHOW DNS_HOSTS. */
struct resolver_row {
	const char *name; /* owned by the cache */
	usec_t left; /* until the answer expires; 0: expired, or never answered */
	size_t addresses; /* 0 when the last look-up failed */
};

/*
 * Walk the cache, in no particular order: pass NULL for the first name; returns NULL after the
 * last one. resolver_ask() must not be called during the walk.
 */
const struct resolver_name *resolver_next(
	const struct resolver *resolver, const struct resolver_name *after);

struct resolver_row resolver_row_of(
	const struct resolver *resolver, const struct resolver_name *name);

/*
 * Returns the nth address of a name with port 0, owned by the cache; NULL when there are fewer.
 */
const struct sockaddr *resolver_row_address(
	const struct resolver_name *name, size_t n, socklen_t *length);

/*
 * Returns this name of the cache, owned by it; NULL if it is not there. What it has is that of the last
 * look-up, even if that has expired.
 */
const struct resolver_name *resolver_find(const struct resolver *resolver, const char *name);

/* Returns the number of names in the cache, and of DNS questions in flight. */
size_t resolver_names(const struct resolver *resolver);
size_t resolver_in_flight(const struct resolver *resolver);

/*
 * Look-ups since the start, by result; and how many of them found that an address was removed.
 */
struct resolver_counts {
	uint64_t found, unknown, timeouts, errors;
	uint64_t moves;
};

const struct resolver_counts *resolver_counts(const struct resolver *resolver);

/* Returns the zones that have their serials queried; NULL when the period is 0. */
const struct dns_zones *resolver_zones(const struct resolver *resolver);

#endif
