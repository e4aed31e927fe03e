/* SPDX-License-Identifier: ISC */
/*
 * Host names to addresses, asynchronously: c-ares on our loop, with a cache per exact name for the
 * whole process.
 *
 * All who ask for a name while it is being looked up share one query. An answer is kept for a
 * time given by the settings, not by the DNS, and is asked for again only when somebody needs it.
 * The hosts file is honoured. Unix sockets and literal addresses are the caller's affair.
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
	RESOLVER_FOUND = 0, /* every other status is one of c-ares' */
	/* Longest name that is looked up. */
	RESOLVER_NAME_MAX = 255,
	/* More addresses of one name are not kept. */
	RESOLVER_ADDRESSES_MAX = 64,
};

struct dns_zones;
struct resolver;
struct resolver_name;
struct resolver_query;

/*
 * The answer: status RESOLVER_FOUND and an address with the port asked for, valid during the
 * call; or another status and NULL. Called at the end of a turn, never from resolver_ask(); the
 * query has left the resolver and may be freed or asked again.
 */
typedef void resolver_function(struct resolver_query *query, const struct sockaddr *address,
	socklen_t length, int status);

/* One asker, embedded in its owner; all zero at first. */
struct resolver_query {
	TAILQ_ENTRY(resolver_query) entry;
	struct resolver_name *name; /* NULL: not waiting */
	resolver_function *answer;
	uint16_t port;
	uint16_t others; /* when it is answered: further addresses that the name has */
};

struct resolver_options {
	const char *resolv_conf; /* instead of /etc/resolv.conf; NULL or empty: that */
	const char *servers; /* `ADDRESS[:PORT],...` instead of its name servers; NULL: those */
	usec_t found_life; /* how long an answer is kept */
	usec_t failed_life; /* how long a failure is kept */
	usec_t zone_period; /* how often the serials of zones are asked for; 0: never */
	size_t names_max; /* names in the cache; when full the one unused for longest goes */
};

/*
 * Start c-ares on this loop; the loop must outlive it. The texts are only read during the call.
 * NULL with a text in `why` when c-ares or memory fails.
 */
struct resolver *resolver_new(
	struct loop *loop, const struct resolver_options *options, char *why, size_t size);

/* Give up all look-ups: queries still waiting are forgotten, their callbacks not called. */
void resolver_free(struct resolver *resolver);

/*
 * How long answers that come from now on are kept. A failure other than that there is no such name
 * (no answer, a refusal, nonsense) is kept for a second at most.
 */
void resolver_set_lives(struct resolver *resolver, usec_t found_life, usec_t failed_life);

/* How often the serials of zones are asked for: see net/dns_zones. */
void resolver_set_zone_period(struct resolver *resolver, usec_t period);

/* Read resolv.conf anew. Look-ups that are under way start again; failures are forgotten. */
void resolver_renew(struct resolver *resolver);

/* The name is looked up when it is next asked for, however old its last answer is. */
void resolver_forget(struct resolver *resolver, const char *name, size_t length);

/*
 * A name was looked up, and this address (its port 0), which it had before, is no longer among
 * those it has. The resolver must not be called from here.
 */
typedef void resolver_moved_function(
	void *argument, const char *name, const struct sockaddr *gone, socklen_t length);

/* Tell of moves from now on. */
void resolver_on_move(
	struct resolver *resolver, resolver_moved_function *moved, void *argument);

/*
 * Ask for an address of this name. Several addresses are handed out in turn, one per asker. The
 * query must not be waiting already. There is no time limit but c-ares' own (some seconds for
 * each name server): who has a deadline cancels.
 */
void resolver_ask(struct resolver *resolver, struct resolver_query *query, const char *name,
	uint16_t port, resolver_function *answer);

/* The answer is no longer wanted; the look-up goes on for others. Safe if it is not waiting. */
void resolver_cancel(struct resolver_query *query);

static inline bool resolver_query_is_waiting(const struct resolver_query *query)
{
	return query->name != NULL;
}

/*
 * Read an IPv4 or IPv6 literal (the latter may name its zone: fe80::1%eth0, and may not stand in
 * brackets). Returns the length of the address, 0 when the text is no literal.
 */
socklen_t resolver_literal(const char *text, uint16_t port, struct sockaddr_storage *out);

/* One cached name, as SHOW DNS_HOSTS tells it. */
struct resolver_row {
	const char *name;
	usec_t left; /* until it is looked up again when needed; 0: overdue or never answered */
	size_t addresses; /* 0 when the last look-up failed */
};

/*
 * Walk the cache, in no particular order: NULL starts, NULL ends. Names may not be asked for
 * during the walk.
 */
const struct resolver_name *resolver_next(
	const struct resolver *resolver, const struct resolver_name *after);

struct resolver_row resolver_row_of(
	const struct resolver *resolver, const struct resolver_name *name);

/* The nth address of a name, its port 0; NULL when there are fewer. */
const struct sockaddr *resolver_row_address(
	const struct resolver_name *name, size_t n, socklen_t *length);

/* How many names are cached or asked for, and how many questions wait for their answers. */
size_t resolver_names(const struct resolver *resolver);
size_t resolver_in_flight(const struct resolver *resolver);

/* Look-ups since the start, by how they ended; and how many times a name had moved. */
struct resolver_counts {
	uint64_t found, unknown, timeouts, errors;
	uint64_t moves;
};

const struct resolver_counts *resolver_counts(const struct resolver *resolver);

/* The zones whose serials are watched; NULL: none are, since the period is 0. */
const struct dns_zones *resolver_zones(const struct resolver *resolver);

#endif
