/* SPDX-License-Identifier: ISC */
#include "model/descriptors.h"

#include "base/lock.h"
#include "model/registry.h"

/* Each part is a fraction of the limit, at least one and at most so many. */
enum {
	FILES_FRACTION = 16,
	FILES_MOST = 64,
	LOGINS_FRACTION = 32,
	LOGINS_MOST = 32,
	CONSOLES_FRACTION = 64,
	CONSOLES_MOST = 16,
	SERVERS_FRACTION = 4,
};

static unsigned part(unsigned limit, unsigned fraction, unsigned most)
{
	const unsigned share = limit / fraction;

	if (share == 0)
		return 1;
	return share < most ? share : most;
}

static unsigned files(const struct descriptors *descriptors)
{
	return part(descriptors->limit, FILES_FRACTION, FILES_MOST);
}

static unsigned logins(const struct descriptors *descriptors)
{
	return part(descriptors->limit, LOGINS_FRACTION, LOGINS_MOST);
}

static unsigned consoles(const struct descriptors *descriptors)
{
	return part(descriptors->limit, CONSOLES_FRACTION, CONSOLES_MOST);
}

/* Servers that the pool may have: all of a pool without a limit. */
static unsigned needed(const struct pool *pool, unsigned all)
{
	const int size = pool_size(pool);

	if (pool->database->console)
		return 0;
	return size > 0 ? (unsigned)(size + pool_reserve_size(pool)) : all;
}

void descriptors_add_pool(const struct pool *pool)
{
	struct descriptors *descriptors = &pool->registry->process->descriptors;
	const unsigned most = descriptors->limit / SERVERS_FRACTION;

	unsigned kept = SHARED_GET(descriptors->kept) + needed(pool, most);

	/* Of two pools that two workers make at the same time, one may be missing until the next review. */
	SHARED_SET(descriptors->kept, kept < most ? kept : most);
}

void descriptors_review(struct registry *registry, unsigned limit)
{
	struct descriptors *descriptors = &registry->process->descriptors;
	const unsigned most = limit / SERVERS_FRACTION;
	const struct pool *pool;
	unsigned sum = 0;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (sum >= most)
			break;
		sum += needed(pool, most);
	}
	descriptors->limit = limit;
	SHARED_SET(descriptors->kept, sum < most ? sum : most);
}

/* --- numbers that other loops change ------------------------------------------------------ */

static unsigned kept_of(const struct process *process)
{
	return SHARED_GET(process->descriptors.kept);
}

static unsigned clients_of(const struct process *process)
{
	return SHARED_GET(process->limits.clients);
}

static unsigned admitted_of(const struct process *process)
{
	return SHARED_GET(process->limits.admitted);
}

/* --- what is allowed ---------------------------------------------------------------------- */

static unsigned servers_or_kept(const struct process *process)
{
	const unsigned servers = process_servers(process), kept = kept_of(process);

	return servers > kept ? servers : kept;
}

/* Is there room for so many connections, besides the others and the files? */
static bool fits(const struct process *process, uint64_t connections)
{
	const struct descriptors *descriptors = &process->descriptors;

	return descriptors->limit == 0 ||
		connections + descriptors->others + files(descriptors) <= descriptors->limit;
}

/* The limit was lowered below what is in use. */
static bool is_overdrawn(const struct process *process)
{
	return !fits(process, (uint64_t)admitted_of(process) + servers_or_kept(process) + 1);
}

bool descriptors_allow_login(const struct process *process)
{
	/* One at a time at least, so that each client gets an answer. */
	if (clients_of(process) == admitted_of(process) && is_overdrawn(process))
		return true;
	return fits(process, (uint64_t)clients_of(process) + servers_or_kept(process) + 1);
}

bool descriptors_allow_client(const struct process *process, bool console)
{
	const struct descriptors *descriptors = &process->descriptors;

	if (console && SHARED_GET(process->limits.consoles) < consoles(descriptors))
		return true;
	return fits(process,
		(uint64_t)admitted_of(process) + servers_or_kept(process) +
			logins(descriptors) + (console ? 0 : consoles(descriptors)) + 1);
}

unsigned descriptors_clients_most(const struct process *process)
{
	const struct descriptors *descriptors = &process->descriptors;
	const unsigned taken = descriptors->others + files(descriptors) + logins(descriptors) +
		consoles(descriptors) + servers_or_kept(process);

	return descriptors->limit > taken ? descriptors->limit - taken : 0;
}

bool descriptors_servers_exceed(const struct process *process)
{
	return process_servers(process) > kept_of(process);
}

bool descriptors_allow_server(const struct process *process, bool for_cancel)
{
	const struct descriptors *descriptors = &process->descriptors;
	const unsigned servers = process_servers(process);

	if (!fits(process, (uint64_t)clients_of(process) + servers + 1))
		return false;
	return for_cancel || servers < kept_of(process) ||
		fits(process,
			(uint64_t)admitted_of(process) + servers + logins(descriptors) +
				consoles(descriptors) + 1);
}
