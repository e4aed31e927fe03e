/* SPDX-License-Identifier: ISC */
#include "net/resolver.h"

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "net/dns_channel.h"
#include "net/dns_zones.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(name) ((name)->unhashed = true)
#include <uthash.h>

/*
 * A failure that says nothing about the name, such as a timeout, is kept for this long at most.
 */
#define SHORT_LIFE USEC_PER_SEC

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

/* --- answers ----------------------------------------------------------------------------- */

/* Copy only the fields that identify an address, so that memcmp() compares two. */
static bool copy_address(union host_address *out, const struct ares_addrinfo_node *node)
{
	union host_address from = {0};

	if (node->ai_addrlen > sizeof(from))
		return false;
	memcpy(&from, node->ai_addr, node->ai_addrlen);
	if (node->ai_family == AF_INET) {
		out->in.sin_family = AF_INET;
		out->in.sin_addr = from.in.sin_addr;
	} else if (node->ai_family == AF_INET6) {
		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_addr = from.in6.sin6_addr;
		out->in6.sin6_scope_id = from.in6.sin6_scope_id;
	}
	return node->ai_family == AF_INET || node->ai_family == AF_INET6;
}

static union host_address *copy_addresses(const struct ares_addrinfo *found, size_t *count)
{
	union host_address *out;
	size_t n = 0;

	for (const struct ares_addrinfo_node *at = found->nodes; at; at = at->ai_next)
		n++;
	if (n > RESOLVER_ADDRESSES_MAX)
		n = RESOLVER_ADDRESSES_MAX;
	out = calloc(n ? n : 1, sizeof(*out));
	if (!out)
		return NULL;
	*count = 0;
	for (const struct ares_addrinfo_node *at = found->nodes; at && *count < n;
		at = at->ai_next)
		*count += copy_address(&out[*count], at);
	return out;
}

static socklen_t length_of(const union host_address *address)
{
	return address->any.sa_family == AF_INET ? sizeof(address->in) : sizeof(address->in6);
}

static bool has_address(const struct resolver_name *name, const union host_address *address)
{
	for (size_t i = 0; i < name->count; i++) {
		if (memcmp(&name->addresses[i], address, sizeof(*address)) == 0)
			return true;
	}
	return false;
}

/*
 * Report the addresses that the name no longer has. Not when the answer was possibly cut off at
 * RESOLVER_ADDRESSES_MAX: a missing address may still be valid then.
 */
static void report_moves(
	const struct resolver_name *name, const union host_address *old, size_t count)
{
	struct resolver *resolver = name->resolver;
	bool moved = false;

	if (name->count == RESOLVER_ADDRESSES_MAX)
		return;
	for (size_t i = 0; i < count; i++) {
		if (has_address(name, &old[i]))
			continue;
		moved = true;
		if (resolver->moved)
			resolver->moved(resolver->moved_argument, name->name, &old[i].any,
				length_of(&old[i]));
	}
	resolver->counts.moves += moved;
}

static int keep_answer(struct resolver_name *name, const struct ares_addrinfo *found)
{
	union host_address *old = name->addresses;
	const size_t old_count = name->count;
	size_t count;
	union host_address *addresses = copy_addresses(found, &count);

	if (!addresses)
		return ARES_ENOMEM;
	if (count == 0) {
		free(addresses);
		return ARES_ENODATA;
	}
	name->addresses = addresses;
	name->count = count;
	report_moves(name, old, old_count);
	free(old);
	return ARES_SUCCESS;
}

/* Keep "no such name" for the full time, but a failure of the name server only shortly. */
static usec_t life_of(const struct resolver *resolver, int status)
{
	if (status == ARES_SUCCESS)
		return resolver->found_life;
	if (status == ARES_ENOTFOUND || resolver->failed_life < SHORT_LIFE)
		return resolver->failed_life;
	return SHORT_LIFE;
}

static void count(struct resolver_counts *counts, int status)
{
	switch (status) {
	case ARES_SUCCESS:
		counts->found++;
		break;
	case ARES_ENOTFOUND:
	case ARES_ENODATA:
		counts->unknown++;
		break;
	case ARES_ETIMEOUT:
		counts->timeouts++;
		break;
	default:
		counts->errors++;
		break;
	}
}

static void answer_waiting(struct loop_task *task);

static void on_answer(struct dns_question *question, const struct dns_answer *answer)
{
	struct resolver_name *name = (struct resolver_name *)((char *)question -
		offsetof(struct resolver_name, question));
	struct resolver *resolver = name->resolver;

	name->status = answer->status;
	if (answer->addresses) {
		name->status = keep_answer(name, answer->addresses);
		ares_freeaddrinfo(answer->addresses);
	}
	count(&resolver->counts, name->status);
	if (name->status != ARES_SUCCESS)
		log_write_repeated(LEVEL_WARNING, NULL,
			&(struct log_likeness){
				.kind = "DNS lookup failed", .about = name->name},
			"DNS lookup failed: %s: result=%d", name->name, name->status);
	name->expires = loop_now(resolver->loop) + life_of(resolver, name->status);
	loop_defer(resolver->loop, &name->task, answer_waiting);
}

static const union host_address *next_address(struct resolver_name *name)
{
	const size_t n = name->next % name->count;

	name->next = n + 1;
	return &name->addresses[n];
}

static void answer_one(struct resolver_name *name, struct resolver_query *query)
{
	union host_address address;

	TAILQ_REMOVE(&name->waiting, query, entry);
	query->name = NULL;
	if (name->status != ARES_SUCCESS) {
		query->answer(query, NULL, 0, name->status);
		return;
	}
	address = *next_address(name);
	query->others = (uint16_t)(name->count - 1);
	if (address.any.sa_family == AF_INET)
		address.in.sin_port = htons(query->port);
	else
		address.in6.sin6_port = htons(query->port);
	query->answer(query, &address.any, length_of(&address), RESOLVER_FOUND);
}

static size_t count_waiting(const struct resolver_name *name)
{
	const struct resolver_query *query;
	size_t n = 0;

	TAILQ_FOREACH (query, &name->waiting, entry)
		n++;
	return n;
}

/* Answer the queries that wait now: one that a callback adds waits for the next pass. */
static void answer_waiting(struct loop_task *task)
{
	struct resolver_name *name =
		(struct resolver_name *)((char *)task - offsetof(struct resolver_name, task));

	name->answering = true;
	for (size_t left = count_waiting(name); left > 0; left--) {
		struct resolver_query *query = TAILQ_FIRST(&name->waiting);

		if (!query)
			break;
		answer_one(name, query);
	}
	name->answering = false;
}

/* --- asking ------------------------------------------------------------------------------ */

static struct resolver_name *name_new(struct resolver *resolver, const char *text)
{
	const size_t size = strlen(text) + 1;
	struct resolver_name *name = calloc(1, sizeof(*name) + size);

	if (!name)
		return NULL;
	name->resolver = resolver;
	name->status = ARES_ENODATA;
	TAILQ_INIT(&name->waiting);
	memcpy(name->name, text, size);
	return name;
}

static void name_free(struct resolver_name *name)
{
	struct resolver_query *query;

	while ((query = TAILQ_FIRST(&name->waiting)) != NULL)
		resolver_cancel(query);
	loop_forget(name->resolver->loop, &name->task);
	free(name->addresses);
	free(name);
}

static void drop(struct resolver_name *name)
{
	struct resolver *resolver = name->resolver;

	dns_zones_leave(&resolver->zones, name->zone);
	HASH_DEL(resolver->names, name);
	TAILQ_REMOVE(&resolver->order, name, entry);
	resolver->count--;
	name_free(name);
}

static bool is_idle(const struct resolver_name *name)
{
	return !name->question.channel && !name->answering && TAILQ_EMPTY(&name->waiting) &&
		!loop_task_is_queued(&name->task);
}

/* Make room for one more name. */
static bool evict(struct resolver *resolver)
{
	struct resolver_name *name;

	if (resolver->count < resolver->count_max)
		return true;
	TAILQ_FOREACH (name, &resolver->order, entry) {
		if (is_idle(name)) {
			drop(name);
			return true;
		}
	}
	return false;
}

/* Returns NULL when the cache has no room, memory is short or the name is too long. */
static struct resolver_name *find_or_add(struct resolver *resolver, const char *text)
{
	const size_t length = strlen(text);
	struct resolver_name *name;

	HASH_FIND(hh, resolver->names, text, length, name);
	if (name) {
		TAILQ_REMOVE(&resolver->order, name, entry);
		TAILQ_INSERT_TAIL(&resolver->order, name, entry);
		return name;
	}
	if (length == 0 || length > RESOLVER_NAME_MAX || !evict(resolver))
		return NULL;
	name = name_new(resolver, text);
	if (!name)
		return NULL;
	HASH_ADD_KEYPTR(hh, resolver->names, name->name, length, name);
	if (name->unhashed) {
		name_free(name);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&resolver->order, name, entry);
	resolver->count++;
	name->zone = dns_zones_join(&resolver->zones, name->name);
	return name;
}

static void look_up(struct resolver *resolver, struct resolver_name *name)
{
	if (!name->question.channel)
		dns_channel_ask(resolver->channel, &name->question, DNS_ADDRESSES, name->name,
			on_answer);
}

void resolver_ask(struct resolver *resolver, struct resolver_query *query, const char *text,
	uint16_t port, resolver_function *answer)
{
	struct resolver_name *name = find_or_add(resolver, text);

	dns_channel_check(resolver->channel);
	if (!name)
		name = resolver->refused;
	query->name = name;
	query->answer = answer;
	query->port = port;
	TAILQ_INSERT_TAIL(&name->waiting, query, entry);
	if (name->question.channel)
		return;
	if (name == resolver->refused || name->expires > loop_now(resolver->loop))
		loop_defer(resolver->loop, &name->task, answer_waiting);
	else if (!loop_task_is_queued(&name->task))
		look_up(resolver, name);
}

void resolver_cancel(struct resolver_query *query)
{
	if (!query->name)
		return;
	TAILQ_REMOVE(&query->name->waiting, query, entry);
	query->name = NULL;
}

socklen_t resolver_literal(const char *text, uint16_t port, struct sockaddr_storage *out)
{
	const struct addrinfo hints = {
		.ai_family = AF_INET6,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST,
	};
	union host_address address = {.any.sa_family = AF_INET};
	struct addrinfo *found;

	if (inet_pton(AF_INET, text, &address.in.sin_addr) == 1) {
		address.in.sin_port = htons(port);
	} else {
		/* inet_pton() does not parse zones. */
		if (!strchr(text, ':') || getaddrinfo(text, NULL, &hints, &found) != 0)
			return 0;
		address.in6 = *(const struct sockaddr_in6 *)found->ai_addr;
		address.in6.sin6_port = htons(port);
		freeaddrinfo(found);
	}
	memset(out, 0, sizeof(*out));
	memcpy(out, &address, sizeof(address));
	return length_of(&address);
}

/* --- making and freeing ------------------------------------------------------------------ */

/* Other name servers may resolve names that the previous ones could not. */
static void on_renewed(void *argument)
{
	struct resolver *resolver = argument;
	struct resolver_name *name;

	TAILQ_FOREACH (name, &resolver->order, entry) {
		if (name->status != ARES_SUCCESS)
			name->expires = 0;
	}
}

static void on_zone_moved(struct dns_zones *zones, struct dns_zone *zone)
{
	struct resolver *resolver =
		(struct resolver *)((char *)zones - offsetof(struct resolver, zones));
	struct resolver_name *name;

	TAILQ_FOREACH (name, &resolver->order, entry) {
		if (name->zone == zone)
			look_up(resolver, name);
	}
}

static int make_channel(struct resolver *resolver, const struct resolver_options *options)
{
	const struct dns_channel_options wanted = {
		.resolv_conf = options->resolv_conf,
		.servers = options->servers,
		.renewed = on_renewed,
		.argument = resolver,
	};
	int status;

	resolver->channel = dns_channel_new(resolver->loop, &wanted, &status);
	if (resolver->channel)
		dns_zones_init(
			&resolver->zones, resolver->loop, resolver->channel, on_zone_moved);
	return status;
}

struct resolver *resolver_new(
	struct loop *loop, const struct resolver_options *options, char *why, size_t size)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	int status = ARES_ENOMEM;

	if (!resolver)
		goto failed;
	resolver->loop = loop;
	resolver->count_max = options->names_max;
	TAILQ_INIT(&resolver->order);
	resolver_set_lives(resolver, options->found_life, options->failed_life);
	resolver->refused = name_new(resolver, "");
	if (!resolver->refused)
		goto failed;
	resolver->refused->status = ARES_ENOMEM;
	status = make_channel(resolver, options);
	if (status != ARES_SUCCESS)
		goto failed;
	resolver_set_zone_period(resolver, options->zone_period);
	return resolver;
failed:
	snprintf(why, size, "dns setup failed: %s", ares_strerror(status));
	if (resolver)
		free(resolver->refused);
	free(resolver);
	return NULL;
}

void resolver_free(struct resolver *resolver)
{
	struct resolver_name *name, *next;

	if (!resolver)
		return;
	dns_channel_free(resolver->channel);
	TAILQ_FOREACH_SAFE (name, &resolver->order, entry, next)
		drop(name);
	name_free(resolver->refused);
	dns_zones_end(&resolver->zones);
	free(resolver);
}

void resolver_renew(struct resolver *resolver)
{
	dns_channel_renew(resolver->channel);
}

void resolver_forget(struct resolver *resolver, const char *text, size_t length)
{
	struct resolver_name *name;

	HASH_FIND(hh, resolver->names, text, length, name);
	if (name)
		name->expires = 0;
}

void resolver_on_move(struct resolver *resolver, resolver_moved_function *moved, void *argument)
{
	resolver->moved = moved;
	resolver->moved_argument = argument;
}

void resolver_set_zone_period(struct resolver *resolver, usec_t period)
{
	dns_zones_set_period(&resolver->zones, period);
}

void resolver_set_lives(struct resolver *resolver, usec_t found_life, usec_t failed_life)
{
	resolver->found_life = found_life;
	resolver->failed_life = failed_life;
}

/* --- SHOW -------------------------------------------------------------------------------- */

const struct resolver_name *resolver_next(
	const struct resolver *resolver, const struct resolver_name *after)
{
	return after ? TAILQ_NEXT(after, entry) : TAILQ_FIRST(&resolver->order);
}

struct resolver_row resolver_row_of(
	const struct resolver *resolver, const struct resolver_name *name)
{
	const usec_t left = name->expires - loop_now(resolver->loop);

	return (struct resolver_row){
		.name = name->name,
		.left = left > 0 ? left : 0,
		.addresses = name->status == ARES_SUCCESS ? name->count : 0,
	};
}

const struct sockaddr *resolver_row_address(
	const struct resolver_name *name, size_t n, socklen_t *length)
{
	if (name->status != ARES_SUCCESS || n >= name->count)
		return NULL;
	*length = length_of(&name->addresses[n]);
	return &name->addresses[n].any;
}

size_t resolver_names(const struct resolver *resolver)
{
	return resolver->count;
}

size_t resolver_in_flight(const struct resolver *resolver)
{
	return dns_channel_asked(resolver->channel);
}

const struct resolver_counts *resolver_counts(const struct resolver *resolver)
{
	return &resolver->counts;
}

const struct dns_zones *resolver_zones(const struct resolver *resolver)
{
	return resolver->zones.period > 0 ? &resolver->zones : NULL;
}
