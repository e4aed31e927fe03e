/* SPDX-License-Identifier: ISC */
#include "model/pool_pins.h"

#include "model/registry.h"

/* Returns how many of so many servers max_pinned allows: a number, or a percentage below 0. */
static unsigned max_pinned_of(const struct pool *pool, unsigned servers)
{
	const int share = pool->registry->process->settings->max_pinned;

	return share >= 0 ? (unsigned)share : (unsigned)(servers * -(long)share / 100);
}

bool pool_may_pin(const struct pool *pool)
{
	const int size = pool_size(pool);

	if ((size > 0 || pool->registry->process->settings->max_pinned >= 0) &&
		pool->pinned >= max_pinned_of(pool, (unsigned)size))
		return false;
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const unsigned limit = cap_limit(pool, kind);
		const unsigned pinned = cap_pinned(cap_of(pool, kind));
		const bool is_last = pinned > 0 && pinned + 1 >= limit;

		if (limit > 0 && (is_last || pinned >= max_pinned_of(pool, limit)))
			return false;
	}
	return true;
}

session_topics pool_main_pin(const struct pool *pool)
{
	unsigned most = 0;

	for (unsigned i = 1; i < TOPIC_BITS; i++) {
		if (pool->pins[i] > pool->pins[most])
			most = i;
	}
	return (session_topics)(1u << most);
}

void pool_pin(struct pool *pool)
{
	pool->pinned++;
	for (enum cap_kind kind = 0; kind < CAPS; kind++)
		cap_change_pinned(cap_of(pool, kind), 1);
}

void pool_unpin(struct pool *pool)
{
	pool->pinned--;
	for (enum cap_kind kind = 0; kind < CAPS; kind++)
		cap_change_pinned(cap_of(pool, kind), -1);
}
