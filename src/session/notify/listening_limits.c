/* SPDX-License-Identifier: ISC */
#include "session/notify/listening_limits.h"

#include "session/notify/channels.h"

/* Do the servers that listen, and so many more, have more than half of the places? */
static bool are_too_many(const struct pool *pool, enum cap_kind kind, unsigned more)
{
	const unsigned limit = cap_limit(pool, kind);

	return limit > 0 && 2 * (cap_listening(cap_of(pool, kind)) + more) > limit;
}

bool listening_limits_allow(const struct pool *pool)
{
	if (pool->hub && pool->hub->server)
		return true;
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if (are_too_many(pool, kind, 1))
			return false;
	}
	return true;
}

bool listening_limits_exceeded(const struct pool *pool)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if (are_too_many(pool, kind, 0))
			return true;
	}
	return false;
}
