/* SPDX-License-Identifier: ISC */
/* What the end of a look-up does: keep the addresses or the failure, and answer the queries. */
#include <ares.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "net/resolver_parts.h"

/*
 * A failure that says nothing about the name, such as a timeout, is kept for this long at most.
 */
#define SHORT_LIFE USEC_PER_SEC

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
				host_address_length(&old[i]));
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

void resolver_on_answer(struct dns_question *question, const struct dns_answer *answer)
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
	loop_defer(resolver->loop, &name->task, resolver_answer_waiting);
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
	query->answer(query, &address.any, host_address_length(&address), RESOLVER_FOUND);
}

static size_t count_waiting(const struct resolver_name *name)
{
	const struct resolver_query *query;
	size_t n = 0;

	TAILQ_FOREACH (query, &name->waiting, entry)
		n++;
	return n;
}

void resolver_answer_waiting(struct loop_task *task)
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
