/* SPDX-License-Identifier: ISC */
#include "session/server/host_choice.h"

#include <limits.h>
#include <string.h>

#include "model/host/host_items.h"
#include "session/server/host_fit.h"

/* A host that is better by its badness comes first, however many servers it has. */
#define SERVERS_BITS 32
#define WORST UINT64_MAX

/* More than any enum host_fit. */
enum { AVOIDED = 8 };

static struct process *process_of(const struct pool *pool)
{
	return pool->registry->process;
}

/* --- how good a host is ------------------------------------------------------------------- */

/* Smaller is better: by whether it is dead, then by its role, then by its servers. */
static uint64_t rank_of(const struct pool *pool, const struct host *host)
{
	const struct process *process = process_of(pool);
	const bool least = database_load_balance(pool->database, process->settings) ==
		LOAD_BALANCE_LEAST_CONNECTIONS;
	const bool avoided = host && host_is_avoided(host, loop_now(pool->registry->loop));
	const uint64_t badness = (avoided ? AVOIDED : 0) + (uint64_t)host_fit_of(pool, host);

	return badness << SERVERS_BITS | (least && host ? host->servers : 0);
}

static bool is_avoided(uint64_t rank)
{
	return rank >= (uint64_t)AVOIDED << SERVERS_BITS;
}

/* The rank of its best address, or of its name if that has none. */
static uint64_t rank_of_item(const struct pool *pool, unsigned n)
{
	const struct host_list *hosts = &pool->registry->hosts;
	const struct host_item item = host_items_nth(pool, n);
	struct host *host = NULL;
	uint64_t least = WORST;

	while ((host = hosts_next(hosts, &item, host)) != NULL) {
		const uint64_t rank = rank_of(pool, host);

		if (host->is_name && host->failed_since > 0)
			return rank;
		if (!host->is_name && rank < least)
			least = rank;
	}
	return least == WORST ? rank_of(pool, NULL) : least;
}

/* --- order -------------------------------------------------------------------------------- */

static enum load_balance balance_of(const struct pool *pool)
{
	return database_load_balance(pool->database, process_of(pool)->settings);
}

/*
 * Where to begin: behind the host that was tried last. With `disable` the first host stays the same
 * until an attempt fails.
 */
static unsigned first_index(const struct host_choice *choice, struct pool *pool, unsigned count)
{
	uint32_t drawn;

	if (choice->count > 0)
		return (choice->last + 1) % count;
	switch (balance_of(pool)) {
	case LOAD_BALANCE_DISABLE:
		return (pool->next_host + pool->failing) % count;
	case LOAD_BALANCE_RANDOM:
		random_fill(&pool->registry->loop->random, &drawn, sizeof(drawn));
		return drawn % count;
	case LOAD_BALANCE_INHERIT:
	case LOAD_BALANCE_ROUND_ROBIN:
	case LOAD_BALANCE_LEAST_CONNECTIONS:
		break;
	}
	return pool->next_host % count;
}

/* The next login begins behind this host, or with it; unless others have begun elsewhere meanwhile. */
static void move_on(const struct host_choice *choice, struct pool *pool, unsigned index,
	unsigned first, unsigned count)
{
	const bool stays = balance_of(pool) == LOAD_BALANCE_DISABLE;

	if (choice->count == 0 || pool->next_host % count == (stays ? choice->last : first))
		pool->next_host = stays ? index : index + 1;
}

/* --- choice ------------------------------------------------------------------------------- */

static bool was_tried(const struct host_choice *choice, unsigned index)
{
	return choice->tried[index / 32] >> (index % 32) & 1;
}

/* Is it dead, and tried by another login now? */
static bool is_probed(const struct pool *pool, unsigned n)
{
	const struct host_item item = host_items_nth(pool, n);
	const struct host *host = hosts_next(&pool->registry->hosts, &item, NULL);

	return host && host->prober;
}

/*
 * An only host is always tried. Of several, dead ones are tried by one login at a time, and only if no
 * other has answered.
 */
static bool is_worth(
	const struct host_choice *choice, const struct pool *pool, unsigned n, unsigned count)
{
	return count == 1 || (!choice->answered && !is_probed(pool, n));
}

int host_choice_next(struct host_choice *choice, struct pool *pool)
{
	const unsigned count = database_config_hosts(pool->database->config);
	const unsigned first = first_index(choice, pool, count);
	uint64_t least = WORST;
	int best = -1;

	for (unsigned i = 0; i < count; i++) {
		const unsigned index = (first + i) % count;
		uint64_t rank;

		if (was_tried(choice, index))
			continue;
		rank = rank_of_item(pool, index);
		if (rank >= least ||
			(is_avoided(rank) && !is_worth(choice, pool, index, count)))
			continue;
		least = rank;
		best = (int)index;
	}
	if (best < 0)
		return -1;
	move_on(choice, pool, (unsigned)best, first, count);
	choice->tried[best / 32] |= 1u << (best % 32);
	choice->addresses = 0;
	choice->last = (unsigned)best;
	choice->count++;
	return best;
}

bool host_choice_again(struct host_choice *choice)
{
	if (!choice->role_refused || choice->takes_any)
		return false;
	*choice = (struct host_choice){.takes_any = true};
	return true;
}

/* --- addresses of a name ------------------------------------------------------------------ */

static size_t place_of(const struct resolver_name *name, const struct sockaddr *address)
{
	const struct sockaddr *each;
	socklen_t length;
	struct address wanted;

	wanted = address_of(address,
		address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					      : sizeof(struct sockaddr_in6));
	wanted.port = 0;
	for (size_t i = 0; (each = resolver_row_address(name, i, &length)) != NULL; i++) {
		const struct address found = address_of(each, length);

		if (address_equal(&found, &wanted))
			return i;
	}
	return 0;
}

static size_t count_addresses(const struct resolver_name *name)
{
	socklen_t length;
	size_t count = 0;

	while (resolver_row_address(name, count, &length))
		count++;
	return count;
}

struct host *host_choice_address(struct host_choice *choice, const struct pool *pool,
	const struct sockaddr *first, const struct sockaddr **address, socklen_t *length)
{
	const struct host_item item = host_items_nth(pool, choice->last);
	char text[DATABASE_HOST_LIMIT + 1];
	const struct resolver_name *name;
	struct host *best = NULL;
	uint64_t least = WORST;
	size_t count, begin, place = 0;

	host_item_copy_name(&item, text);
	name = resolver_find(pool->registry->resolver, text);
	count = name ? count_addresses(name) : 0;
	begin = name ? place_of(name, first) : 0;
	for (size_t i = 0; i < count; i++) {
		const size_t at = (begin + i) % count;
		const struct sockaddr *each = resolver_row_address(name, at, length);
		const struct address found = address_of(each, *length);
		struct host *host;
		uint64_t rank;

		if (choice->addresses >> at & 1)
			continue;
		host = hosts_open(&pool->registry->hosts, &item, &found);
		rank = host ? rank_of(pool, host) : WORST;
		if (rank >= least || (is_avoided(rank) && host->prober && count > 1))
			continue;
		least = rank;
		best = host;
		place = at;
	}
	if (!best)
		return NULL;
	choice->addresses |= UINT64_C(1) << place;
	*address = resolver_row_address(name, place, length);
	return best;
}
