/* SPDX-License-Identifier: ISC */
/* The cache of names; private to the files of net/resolver. */
#ifndef PGUSHER_NET_RESOLVER_PARTS_H
#define PGUSHER_NET_RESOLVER_PARTS_H

#include <netinet/in.h>

#include "net/dns_channel.h"
#include "net/dns_zones.h"
#include "net/resolver.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(name) ((name)->unhashed = true)
#include <uthash.h>

union host_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

TAILQ_HEAD(query_list, resolver_query);
TAILQ_HEAD(name_list, resolver_name);

struct resolver_name {
	UT_hash_handle hh;
	TAILQ_ENTRY(resolver_name) entry; /* the least recently used name stands first */
	struct resolver *resolver;
	struct query_list waiting; /* queries without an answer, oldest first */
	struct loop_task task; /* answers them */
	struct dns_question question; /* in flight during a look-up */
	struct dns_zone *zone; /* NULL: none is watched for this name */
	bool answering; /* callbacks are running: do not evict */
	bool unhashed; /* out of memory when it was added to the hash table */
	int status; /* of the last look-up; before the first: ARES_ENODATA */
	usec_t expires; /* end of validity of the last look-up; 0: there was none */
	union host_address *addresses; /* of the last success */
	size_t count, next; /* next: index of the address for the next query */
	char name[];
};

struct resolver {
	struct loop *loop;
	struct dns_channel *channel;
	struct dns_zones zones;
	struct resolver_name *names; /* hash table by name */
	struct name_list order;
	size_t count, count_max;
	usec_t found_life, failed_life;
	struct resolver_counts counts;
	struct resolver_name
		*refused; /* has the queries for names that do not fit in the cache */
	resolver_moved_function *moved; /* NULL: no callback */
	void *moved_argument;
};

static inline socklen_t host_address_length(const union host_address *address)
{
	return address->any.sa_family == AF_INET ? sizeof(address->in) : sizeof(address->in6);
}

/* --- src/net/resolver_answers.c ----------------------------------------------------------- */

/*
 * A look-up has ended: keep its result and count it, and answer the queries at the end of the
 * turn. The answer's addresses are freed.
 */
void resolver_on_answer(struct dns_question *question, const struct dns_answer *answer);

/*
 * Answer the queries of a name (resolver_name.task) that wait now: one that a callback adds
 * waits for the next pass.
 */
void resolver_answer_waiting(struct loop_task *task);

#endif
