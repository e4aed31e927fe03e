/* SPDX-License-Identifier: ISC */
#include "net/resolver.h"

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/resolver_parts.h"

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
			resolver_on_answer);
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
		loop_defer(resolver->loop, &name->task, resolver_answer_waiting);
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
	return host_address_length(&address);
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
	*length = host_address_length(&name->addresses[n]);
	return &name->addresses[n].any;
}

const struct resolver_name *resolver_find(const struct resolver *resolver, const char *text)
{
	struct resolver_name *name;

	HASH_FIND_STR(resolver->names, text, name);
	return name;
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
