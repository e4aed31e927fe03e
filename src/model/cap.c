/* SPDX-License-Identifier: ISC */
#include "model/cap.h"

#include "base/check.h"
#include "model/registry.h"
#include "model/shared/tally.h"

/* --- what all workers count --------------------------------------------------------------- */

unsigned cap_servers(const struct cap *cap)
{
	return cap->share ? SHARED_GET(cap->share->tally->servers) : cap->servers;
}

unsigned cap_pinned(const struct cap *cap)
{
	return cap->share ? SHARED_GET(cap->share->tally->pinned) : cap->pinned;
}

void cap_change_pinned(struct cap *cap, int by)
{
	cap->pinned += (unsigned)by;
	if (cap->share)
		SHARED_ADD(cap->share->tally->pinned, (unsigned)by);
}

static uint64_t minima_of(const struct cap *cap)
{
	return cap->share ? SHARED_GET(cap->share->tally->minima) : cap->minima;
}

static unsigned promises_of(const struct cap *cap)
{
	return cap->share ? SHARED_GET(cap->share->tally->promised) : cap->promised_to != NULL;
}

const struct tally_claim *cap_claim_of_others(const struct cap *cap)
{
	return cap->share && cap->share->others.waits ? &cap->share->others : NULL;
}

/* --- loads -------------------------------------------------------------------------------- */

/*
 * Minima count only while the cap can grant all of them. Else pools without one would never
 * get a place.
 */
static unsigned granted(const struct pool *pool, enum cap_kind kind)
{
	return minima_of(cap_of(pool, kind)) <= cap_limit(pool, kind) ? pool->granted : 0;
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

static struct tally_claim claim_of(const struct pool *pool, enum cap_kind kind, usec_t since)
{
	return (struct tally_claim){
		.waits = true,
		.weight = pool->weight,
		.places = pool->places,
		.next = beyond(pool, kind, pool->places + 1),
		.since = since,
	};
}

enum cap_claim cap_claim_of(const struct pool *to, const struct pool *from, enum cap_kind kind)
{
	const struct tally_claim claim = claim_of(to, kind, 0);

	return cap_claim_from(&claim, from, kind);
}

enum cap_claim cap_claim_from(
	const struct tally_claim *to, const struct pool *from, enum cap_kind kind)
{
	const uint64_t has = beyond(from, kind, from->places) * (uint64_t)to->weight;
	const uint64_t wants = to->next * (uint64_t)from->weight;

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
	return kind == CAP_USER ? &pool->user->cap : &pool->registry->server_cap;
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
	const unsigned promised = promises_of(cap) - (cap->promised_to == pool);

	return limit > 0 && cap_servers(cap) + promised >= limit;
}

/* Without a pool that waits, other workers may have to learn that none does any more. */
static bool concerns_others(const struct cap *cap)
{
	return cap->share && (cap->share->claim.waits || cap->share->others.waits);
}

void cap_is_due(struct registry *registry, struct cap *cap)
{
	if (cap->is_due || (RB_EMPTY(&cap->waiting) && !concerns_others(cap)))
		return;
	cap->is_due = true;
	TAILQ_INSERT_TAIL(&registry->caps_due, cap, due_entry);
	loop_defer_work(registry->loop, &registry->work_task, registry->do_work);
}

static void remove_due(struct registry *registry, struct cap *cap)
{
	if (!cap->is_due)
		return;
	cap->is_due = false;
	TAILQ_REMOVE(&registry->caps_due, cap, due_entry);
}

static void publish(struct cap *cap)
{
	const struct pool *pool = cap_first_waiting(cap);
	const struct tally_claim claim = pool ? claim_of(pool, cap->kind, pool->wait.since)
					      : (struct tally_claim){.waits = false};

	tally_publish(cap->share, &claim);
}

void cap_is_done(struct registry *registry, struct cap *cap)
{
	remove_due(registry, cap);
	if (cap->share)
		publish(cap);
}

bool cap_is_open(const struct pool *pool, enum cap_kind kind)
{
	const struct cap *cap = cap_of(pool, kind);
	const struct tally_want want = {
		.share = cap->share,
		.claim = claim_of(pool, kind, pool->wait.since),
		.is_promised = cap->promised_to == pool,
	};

	return !cap_is_full(pool, kind) && (!cap->share || tally_has_place(&want));
}

struct registry *cap_registry(struct cap *cap)
{
	const struct pool *pool = cap_first_waiting(cap);

	return cap->share ? cap->share->registry : pool ? pool->registry : NULL;
}

/* --- making and freeing ------------------------------------------------------------------- */

/* Places are free, or other workers look for some. */
static void on_mail(struct mail *mail, struct loop *loop)
{
	struct registry *registry = loop->owner;
	const struct tally_share *share = tally_look(mail, registry);

	if (share)
		cap_is_due(registry, share->cap);
}

bool cap_join(struct cap *cap, struct registry *registry, const char *name)
{
	cap->share = tally_join(registry, name, cap, on_mail);
	return cap->share != NULL;
}

void cap_end(struct cap *cap)
{
	if (!cap->share)
		return;
	remove_due(cap->share->registry, cap);
	wheel_remove(&cap->share->registry->loop->wheel, &cap->unused);
	tally_leave(cap->share);
	cap->share = NULL;
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

static void list_servers_of_database(const struct database *database)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database)
		list_servers(pool);
}

static void list_servers_of_user(const struct user *user)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &user->pools, in_user)
		list_servers(pool);
}

static void list_servers_of_registry(const struct registry *registry)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		list_servers(pool);
}

/* Minima count again, or not any more: list the servers that were kept. */
static void list_servers_of(const struct pool *pool, enum cap_kind kind)
{
	if (kind == CAP_DATABASE)
		list_servers_of_database(pool->database);
	else if (kind == CAP_USER)
		list_servers_of_user(pool->user);
	else
		list_servers_of_registry(pool->registry);
}

void cap_follow_minima(struct cap *cap)
{
	const struct tally_share *share = cap->share;
	bool counted;

	if (!share)
		return;
	counted = minima_of(cap) <= SHARED_GET(share->tally->limit);
	if (counted == cap->minima_counted)
		return;
	cap->minima_counted = counted;
	if (counted)
		return; /* those that are kept leave the list when they are met */
	if (cap->kind == CAP_USER)
		list_servers_of_user((struct user *)((char *)cap - offsetof(struct user, cap)));
	else
		list_servers_of_registry(share->registry);
}

static void set_granted(struct pool *pool, unsigned least)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		struct cap *cap = cap_of(pool, kind);
		const unsigned limit = cap_limit(pool, kind);
		const bool counted = cap->minima <= limit;

		cap->minima = cap->minima - pool->granted + least;
		if (cap->share)
			tally_change_minima(cap->share, pool->granted, least);
		else if (limit > 0 && counted && cap->minima > limit)
			list_servers_of(pool, kind);
	}
	pool->granted = least;
}

/* The limits that all workers share. */
static void set_limits(const struct pool *pool)
{
	for (enum cap_kind kind = CAP_USER; kind < CAPS; kind++) {
		const struct cap *cap = cap_of(pool, kind);

		if (cap->share)
			tally_set_limit(cap->share, cap_limit(pool, kind));
	}
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
	if (takes_part(pool))
		set_limits(pool);
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

enum cap_kind cap_reserve(struct pool *pool, usec_t since, unsigned spare)
{
	struct process *process = pool->registry->process;
	struct tally_want wants[CAPS];
	enum cap_kind kinds[CAPS];
	unsigned count = 0, taken;

	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const struct cap *cap = cap_of(pool, kind);

		if (!cap->share || !counts(pool, kind))
			continue;
		kinds[count] = kind;
		wants[count++] = (struct tally_want){
			.share = cap->share,
			.claim = claim_of(pool, kind, since),
			.is_promised = cap->promised_to == pool,
			.spare = spare,
		};
	}
	if (count == 0)
		return CAPS;
	cap_release(pool->registry);
	taken = tally_take(process, wants, count);
	if (taken < count)
		return kinds[taken];
	pool->registry->cap_reserved = pool;
	return CAPS;
}

static void give_to_tallies(const struct pool *pool)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const struct cap *cap = cap_of(pool, kind);

		if (cap->share && counts(pool, kind))
			tally_give(cap->share);
	}
}

void cap_release(struct registry *registry)
{
	const struct pool *pool = registry->cap_reserved;

	registry->cap_reserved = NULL;
	if (pool)
		give_to_tallies(pool);
}

/* Count a server whose places were taken before, or that needs none. */
static void add_to_tallies(const struct pool *pool)
{
	struct registry *registry = pool->registry;

	if (registry->cap_reserved == pool) {
		registry->cap_reserved = NULL;
		return;
	}
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const struct cap *cap = cap_of(pool, kind);

		if (cap->share && counts(pool, kind))
			tally_add(cap->share);
	}
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
	if (pool->registry->process->workers_wanted > 1)
		add_to_tallies(pool);
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
	if (pool->registry->process->workers_wanted > 1)
		give_to_tallies(pool);
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
	if (concerns_others(cap)) {
		cap_is_due(pool->registry, cap);
		return;
	}
	/* The last pool of a database or user may be dropped now, and then the cap is freed. */
	remove_due(pool->registry, cap);
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

bool cap_has_promised(const struct cap *cap)
{
	return promises_of(cap) > 0;
}

bool cap_promise(struct pool *pool, enum cap_kind kind, usec_t until)
{
	struct cap *cap = cap_of(pool, kind);

	CHECK(!cap->promised_to && !pool->wait.promised);
	if (cap->share && !tally_promise(cap->share))
		return false;
	cap->promised_to = pool;
	pool->wait.promised = cap;
	pool->wait.promised_last = kind;
	cap->promise.expire = on_promise_over;
	wheel_set_exact(&pool->registry->loop->wheel, &cap->promise, until);
	return true;
}

void cap_withdraw(struct pool *pool)
{
	struct cap *cap = pool->wait.promised;

	if (!cap)
		return;
	cap->promised_to = NULL;
	pool->wait.promised = NULL;
	if (cap->share)
		tally_withdraw(cap->share);
	wheel_remove(&pool->registry->loop->wheel, &cap->promise);
	cap_is_due(pool->registry, cap);
}
