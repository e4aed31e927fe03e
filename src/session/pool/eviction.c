/* SPDX-License-Identifier: ISC */
#include "session/pool/eviction.h"

#include "session/link/close.h"

/* After a search for an idle server among all pools in vain. */
#define SEARCH_PAUSE (USEC_PER_SEC / 20)

void eviction_find(const struct pool *pool, struct server_link **oldest)
{
	const bool busy = pool_wanted_servers(pool) > 0;

	for (enum server_list list = SERVERS_IDLE; list <= SERVERS_TESTED; list++) {
		struct link *link;

		/* Used and tested servers will soon serve clients that wait in their pool. */
		if (list == SERVERS_ACTIVE || (busy && list != SERVERS_IDLE))
			continue;
		TAILQ_FOREACH (link, &pool->servers[list], place) {
			if (!*oldest || link->request_time < (*oldest)->link.request_time)
				*oldest = server_of(link);
		}
	}
}

static bool close_oldest(struct registry *registry)
{
	struct server_link *oldest = NULL;
	const struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		eviction_find(pool, &oldest);
	if (oldest)
		server_close_for(oldest, REASON_EVICTED);
	return oldest != NULL;
}

/* --- other workers ------------------------------------------------------------------------ */

/* Its pools may launch the servers for which there was no descriptor. */
static void try_again(struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (pool_wanted_servers(pool) + pool_welcoming_clients(pool) > 0)
			pool_needs_work(pool);
	}
}

/* The mail has come to a worker that is asked, or back to the one that asks. */
static void deliver(struct mail *mail, struct loop *loop)
{
	struct eviction_call *call = (struct eviction_call *)mail;
	struct registry *here = loop->owner;
	const struct process *process = here->process;
	const struct registry *next;

	if (here == call->from) {
		call->travels = false;
		if (call->has_closed)
			try_again(here);
		return;
	}
	call->has_closed = !process->still && close_oldest(here);
	next = call->has_closed ? call->from
				: process->registries[(here->number + 1) % process->workers];
	crew_post(next->loop, mail);
}

static void ask(struct registry *registry)
{
	const struct process *process = registry->process;
	struct eviction_call *call = &registry->eviction_call;

	if (process->workers < 2 || call->travels)
		return;
	*call = (struct eviction_call){
		.mail = {.deliver = deliver}, .from = registry, .travels = true};
	crew_post(process->registries[(registry->number + 1) % process->workers]->loop,
		&call->mail);
}

bool eviction_run(struct registry *registry)
{
	const usec_t now = loop_now(registry->loop);
	bool has_closed;

	if (registry->evicted_none != 0 && now - registry->evicted_none < SEARCH_PAUSE)
		return false;
	has_closed = close_oldest(registry);
	registry->evicted_none = has_closed ? 0 : now;
	if (!has_closed)
		ask(registry);
	return has_closed;
}

void eviction_ask_ahead(struct registry *registry)
{
	const struct process *process = registry->process;

	if (process->workers > 1 && descriptors_servers_exceed(process) &&
		!descriptors_allow_client(process, false))
		ask(registry);
}
