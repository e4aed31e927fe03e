/* SPDX-License-Identifier: ISC */
#include "model/cap.h"

#include "base/check.h"
#include "model/registry.h"

/* --- loads -------------------------------------------------------------------------------- */

/*
 * Minima count only while the cap can grant all of them. Else pools without one would never
 * get a place.
 */
static unsigned granted(const struct pool *pool, enum cap_kind kind)
{
	return cap_of(pool, kind)->minima <= cap_limit(pool, kind) ? pool->granted : 0;
}

/* Returns how many of so many servers are beyond the minimum of the pool. */
static unsigned beyond(const struct pool *pool, enum cap_kind kind, unsigned servers)
{
	const unsigned least = granted(pool, kind);

	return servers > least ? servers - least : 0;
}

bool cap_keeps_all(const struct pool *pool, enum cap_kind kind)
{
	return beyond(pool, kind, pool->places) == 0;
}

enum cap_claim cap_claim_of(const struct pool *to, const struct pool *from, enum cap_kind kind)
{
	const uint64_t has = beyond(from, kind, from->places) * (uint64_t)to->weight;
	const uint64_t wants = beyond(to, kind, to->places + 1) * (uint64_t)from->weight;

	if (has == 0)
		return CAP_CLAIM_NONE;
	if (wants > has)
		return to->places == 0 ? CAP_CLAIM_LIGHT : CAP_CLAIM_NONE;
	return wants < has ? CAP_CLAIM_BETTER : CAP_CLAIM_EQUAL;
}

/* The order of the queue: by load, then by wait, then as they have joined it. */
static int compare(const struct pool *a, const struct pool *b)
{
	const uint64_t load_a = (uint64_t)a->wait.load * b->weight;
	const uint64_t load_b = (uint64_t)b->wait.load * a->weight;

	if (load_a != load_b)
		return load_a < load_b ? -1 : 1;
	if (a->wait.since != b->wait.since)
		return a->wait.since < b->wait.since ? -1 : 1;
	return a->wait.ticket == b->wait.ticket ? 0 : a->wait.ticket < b->wait.ticket ? -1 : 1;
}

/* RB_GENERATE_STATIC() uses an attribute that libbsd does not define with glibc. */
#define UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(cap_queue, pool, wait.entry, compare, UNUSED_STATIC)
RB_GENERATE_INTERNAL(cap_queue, pool, wait.entry, compare, UNUSED_STATIC)

/* --- caps --------------------------------------------------------------------------------- */

void cap_init(struct cap *cap, enum cap_kind kind)
{
	*cap = (struct cap){.kind = kind};
	TAILQ_INIT(&cap->idle);
	RB_INIT(&cap->waiting);
}

struct cap *cap_of(const struct pool *pool, enum cap_kind kind)
{
	if (kind == CAP_DATABASE)
		return &pool->database->cap;
	return kind == CAP_USER ? &pool->user->cap : &pool->registry->process->limits.servers;
}

/* The console has no servers, and peers are not servers of PostgreSQL. */
static bool takes_part(const struct pool *pool)
{
	return !pool->database->console && pool->database->peer_id == 0;
}

unsigned cap_limit(const struct pool *pool, enum cap_kind kind)
{
	const struct settings *settings = pool->registry->process->settings;
	int limit = settings->max_server_connections;

	if (!takes_part(pool))
		return 0;
	if (kind == CAP_DATABASE)
		limit = database_max_servers(pool->database, settings);
	else if (kind == CAP_USER)
		limit = user_max_servers(pool->user, settings);
	return limit > 0 ? (unsigned)limit : 0;
}

bool cap_is_full(const struct pool *pool, enum cap_kind kind)
{
	const unsigned limit = cap_limit(pool, kind);
	const struct cap *cap = cap_of(pool, kind);
	const unsigned promised = cap->promised_to && cap->promised_to != pool;

	return limit > 0 && cap->servers + promised >= limit;
}

void cap_is_due(struct registry *registry, struct cap *cap)
{
	if (cap->is_due || RB_EMPTY(&cap->waiting))
		return;
	cap->is_due = true;
	TAILQ_INSERT_TAIL(&registry->caps_due, cap, due_entry);
	loop_defer_work(registry->loop, &registry->work_task, registry->do_work);
}

void cap_is_done(struct registry *registry, struct cap *cap)
{
	if (!cap->is_due)
		return;
	cap->is_due = false;
	TAILQ_REMOVE(&registry->caps_due, cap, due_entry);
}

/* --- pools -------------------------------------------------------------------------------- */

/* List the free servers of the pool that are in no list, as if they became free now. */
static void list_servers(struct pool *pool)
{
	static const enum server_list lists[] = {SERVERS_IDLE, SERVERS_USED};
	struct link *link;

	for (unsigned i = 0; i < 2; i++) {
		TAILQ_FOREACH_REVERSE (link, &pool->servers[lists[i]], link_list, place)
			cap_server_is_free(server_of(link));
	}
}

/* Minima count again, or not any more: list the servers that were kept. */
static void list_servers_of(const struct pool *pool, enum cap_kind kind)
{
	struct pool *other;

	switch (kind) {
	case CAP_DATABASE:
		TAILQ_FOREACH (other, &pool->database->pools, in_database)
			list_servers(other);
		break;
	case CAP_USER:
		TAILQ_FOREACH (other, &pool->user->pools, in_user)
			list_servers(other);
		break;
	case CAP_PROCESS:
		TAILQ_FOREACH (other, &pool->registry->pools, in_registry)
			list_servers(other);
		break;
	case CAPS:
		break;
	}
}

static void set_granted(struct pool *pool, unsigned least)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		struct cap *cap = cap_of(pool, kind);
		const unsigned limit = cap_limit(pool, kind);
		const bool counted = cap->minima <= limit;

		cap->minima = cap->minima - pool->granted + least;
		if (limit > 0 && counted && cap->minima > limit)
			list_servers_of(pool, kind);
	}
	pool->granted = least;
}

static void unlist_servers(struct pool *pool)
{
	static const enum server_list lists[] = {SERVERS_IDLE, SERVERS_USED};
	struct link *link;

	for (unsigned i = 0; i < 2; i++) {
		TAILQ_FOREACH (link, &pool->servers[lists[i]], place)
			cap_server_is_used(server_of(link));
	}
}

void cap_configure_pool(struct pool *pool, unsigned least, unsigned weight)
{
	uint8_t caps = 0;

	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if (cap_limit(pool, kind) > 0)
			caps |= (uint8_t)(1u << kind);
	}
	cap_give_up(pool);
	set_granted(pool, takes_part(pool) ? least : 0);
	pool->weight = weight;
	if (caps != pool->caps)
		unlist_servers(pool);
	pool->caps = caps;
	list_servers(pool);
}

void cap_forget_pool(struct pool *pool)
{
	cap_give_up(pool);
	set_granted(pool, 0);
	if (pool->registry->cap_called == pool)
		pool->registry->cap_called = NULL;
}

/* --- servers ------------------------------------------------------------------------------ */

/* A connection to a peer is not one to PostgreSQL, so the process does not count it. */
static bool counts(const struct pool *pool, enum cap_kind kind)
{
	return kind != CAP_PROCESS || pool->database->peer_id == 0;
}

/* The load of the pool has changed. */
static void move_in_queue(struct pool *pool)
{
	struct cap *cap = pool->wait.cap;

	if (!cap)
		return;
	cap_leave(pool);
	cap_wait(pool, cap->kind, pool->wait.since);
}

void cap_take_server(struct pool *pool)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if (counts(pool, kind))
			cap_of(pool, kind)->servers++;
	}
	pool->places++;
	move_in_queue(pool);
	/* Those that were kept may be closed if the pool is above its minimum now. */
	if (pool->caps && pool->places == pool->granted + 1)
		list_servers(pool);
}

void cap_give_server(struct pool *pool)
{
	pool->places--;
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		struct cap *cap = cap_of(pool, kind);

		if (!counts(pool, kind))
			continue;
		cap->servers--;
		cap_is_due(pool->registry, cap);
	}
	move_in_queue(pool);
}

void cap_server_is_free(struct server_link *server)
{
	struct pool *pool = server->link.pool;

	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const uint8_t bit = (uint8_t)(1u << kind);
		struct cap *cap = cap_of(pool, kind);

		if (!(pool->caps & bit & ~server->in_caps))
			continue;
		TAILQ_INSERT_TAIL(&cap->idle, server, in_cap[kind]);
		server->in_caps |= bit;
		server->free_since = loop_now(pool->registry->loop);
		cap_is_due(pool->registry, cap);
	}
}

void cap_keep_server(struct server_link *server, enum cap_kind kind)
{
	const uint8_t bit = (uint8_t)(1u << kind);

	if (!(server->in_caps & bit))
		return;
	TAILQ_REMOVE(&cap_of(server->link.pool, kind)->idle, server, in_cap[kind]);
	server->in_caps &= (uint8_t)~bit;
}

void cap_server_is_used(struct server_link *server)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++)
		cap_keep_server(server, kind);
}

/* --- the queue ---------------------------------------------------------------------------- */

/* A pool without a server comes before all that have one, however heavy these are. */
static void set_key(struct pool *pool, enum cap_kind kind, usec_t since)
{
	pool->wait.load = pool->places == 0 ? 0 : beyond(pool, kind, pool->places + 1);
	pool->wait.since = since;
	pool->wait.ticket = ++cap_of(pool, kind)->tickets;
}

void cap_wait(struct pool *pool, enum cap_kind kind, usec_t since)
{
	struct cap *cap = cap_of(pool, kind);

	/* Connections for cancel requests, to which no limit applies, have taken the place. */
	if (pool->wait.promised == cap)
		cap_withdraw(pool);
	set_key(pool, kind, since);
	if (pool->wait.kind != kind)
		pool->wait.joined = loop_now(pool->registry->loop);
	pool->wait.kind = kind;
	pool->wait.cap = cap;
	RB_INSERT(cap_queue, &cap->waiting, pool);
	/* Find out when a free server may be closed for it. */
	cap_is_due(pool->registry, cap);
}

void cap_leave(struct pool *pool)
{
	struct cap *cap = pool->wait.cap;

	if (!cap)
		return;
	RB_REMOVE(cap_queue, &cap->waiting, pool);
	pool->wait.cap = NULL;
	if (!RB_EMPTY(&cap->waiting))
		return;
	/* The last pool of a database or user may be dropped now, and then the cap is freed. */
	cap_is_done(pool->registry, cap);
	wheel_remove(&pool->registry->loop->wheel, &cap->unused);
}

void cap_give_up(struct pool *pool)
{
	cap_leave(pool);
	cap_withdraw(pool);
}

struct pool *cap_first_waiting(struct cap *cap)
{
	return RB_MIN(cap_queue, &cap->waiting);
}

bool cap_is_next(struct pool *pool, enum cap_kind kind, usec_t since)
{
	const struct pool *first = cap_first_waiting(cap_of(pool, kind));

	set_key(pool, kind, since);
	return !first || compare(pool, first) <= 0;
}

/* --- promises ----------------------------------------------------------------------------- */

static void on_promise_over(struct deadline *deadline)
{
	struct cap *cap = (struct cap *)((char *)deadline - offsetof(struct cap, promise));

	cap_withdraw(cap->promised_to);
}

void cap_promise(struct pool *pool, enum cap_kind kind, usec_t until)
{
	struct cap *cap = cap_of(pool, kind);

	CHECK(!cap->promised_to && !pool->wait.promised);
	cap->promised_to = pool;
	pool->wait.promised = cap;
	pool->wait.promised_last = kind;
	cap->promise.expire = on_promise_over;
	wheel_set_exact(&pool->registry->loop->wheel, &cap->promise, until);
}

void cap_withdraw(struct pool *pool)
{
	struct cap *cap = pool->wait.promised;

	if (!cap)
		return;
	cap->promised_to = NULL;
	pool->wait.promised = NULL;
	wheel_remove(&pool->registry->loop->wheel, &cap->promise);
	cap_is_due(pool->registry, cap);
}
