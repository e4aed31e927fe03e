/* SPDX-License-Identifier: ISC */
#include "session/pool/caps.h"

#include "model/shared/tally.h"
#include "session/link/close.h"
#include "session/notify/listening_server.h"

/*
 * A server that is unused for so long may be closed for any other pool. It is long enough for
 * a client to send its next query, and too short to be noticed by one that waits.
 */
#define UNUSED_ENOUGH (USEC_PER_SEC / 200)

/*
 * How long a pool keeps the places that it has after a login, in terms of the duration of this
 * login, and at most.
 */
enum { USES_PER_LOGIN = 3 };
#define LONGEST_USE (USEC_PER_SEC / 10)

/*
 * How long a place is kept for a pool that waits for another one, in terms of the time that it has
 * waited for this one; at least UNUSED_ENOUGH. The longest time bounds the loss, since a place that
 * is kept serves no client.
 */
enum { PROMISE_PER_WAIT = 2 };
#define LONGEST_PROMISE (5 * USEC_PER_SEC)

/* --- which server may be closed ----------------------------------------------------------- */

static usec_t now_of(const struct pool *pool)
{
	return loop_now(pool->registry->loop);
}

static bool is_unused(const struct server_link *server)
{
	return now_of(server->link.pool) - server->free_since >= UNUSED_ENOUGH;
}

/*
 * Pools with equal claims take turns. If they did so with each query, they would do little but
 * log in.
 */
static bool has_had_turns(const struct pool *pool, unsigned turns)
{
	const usec_t use = USES_PER_LOGIN * pool->login_time;

	return !pool_has_clients(pool) ||
		now_of(pool) - pool->login_at >=
		turns * (use < LONGEST_USE ? use : LONGEST_USE);
}

static bool is_enough(enum cap_claim claim, const struct pool *from, unsigned weight)
{
	switch (claim) {
	case CAP_CLAIM_NONE:
		break;
	case CAP_CLAIM_LIGHT:
		return has_had_turns(from, (from->weight + weight - 1) / weight);
	case CAP_CLAIM_EQUAL:
		return has_had_turns(from, 1);
	case CAP_CLAIM_BETTER:
		return true;
	}
	return false;
}

static bool is_entitled(const struct pool *to, const struct pool *from, enum cap_kind kind)
{
	return is_enough(cap_claim_of(to, from, kind), from, to->weight);
}

/* Clients of its pool wait, and will get this server after it was checked. */
static bool is_wanted(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;

	return server->link.state != SERVER_IDLE &&
		pool_wanted_servers(pool) > pool->server_count[SERVERS_TESTED];
}

/*
 * Returns a free server of the pool itself, or NULL. It is of no use for the client in need:
 * this one wants replication, or the server is retired and the pool has no welcome.
 */
static struct server_link *own_free_server(const struct pool *pool)
{
	struct link *link = TAILQ_LAST(&pool->servers[SERVERS_USED], link_list);

	if (!link || is_wanted(server_of(link)))
		link = TAILQ_LAST(&pool->servers[SERVERS_IDLE], link_list);
	return link ? server_of(link) : NULL;
}

/*
 * Returns the free server of other pools that is longest unused, or NULL. It decides: those
 * behind it are in use more often. `pool` is NULL if the pool in need is of another worker.
 */
static struct server_link *free_server_of_others(struct cap *cap, const struct pool *pool)
{
	struct server_link *server, *next;

	cap_follow_minima(cap);
	for (server = TAILQ_FIRST(&cap->idle); server; server = next) {
		next = TAILQ_NEXT(server, in_cap[cap->kind]);
		if (cap_keeps_all(server->link.pool, cap->kind))
			cap_keep_server(server, cap->kind);
		else if (server->link.pool != pool && !is_wanted(server))
			return server;
	}
	return NULL;
}

/* Returns the server that is closed to make a place for the pool, or NULL. */
static struct server_link *victim_of(const struct pool *pool, enum cap_kind kind)
{
	struct server_link *server = free_server_of_others(cap_of(pool, kind), pool);

	if (server && (is_unused(server) || is_entitled(pool, server->link.pool, kind)))
		return server;
	return own_free_server(pool);
}

static bool is_obstacle(const struct pool *pool, enum cap_kind kind)
{
	return cap_is_full(pool, kind) && !victim_of(pool, kind);
}

/*
 * Returns a cap that is full and has no server to be closed; CAPS: none. A pool stays in the queue
 * that it is in, if it can: the place may come there at last. Else it begins with the cap whose
 * promise got it its last server, since the place below the other one came sooner then.
 */
static enum cap_kind obstacle_of(const struct pool *pool)
{
	const enum cap_kind first = pool->wait.cap ? pool->wait.kind : pool->wait.promised_last;

	if (is_obstacle(pool, first))
		return first;
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if (is_obstacle(pool, kind))
			return kind;
	}
	return CAPS;
}

/* --- launching ---------------------------------------------------------------------------- */

static void log_full(const struct pool *pool, enum cap_kind kind)
{
	const unsigned servers = cap_servers(cap_of(pool, kind)), limit = cap_limit(pool, kind);

	if (kind == CAP_PROCESS)
		log_write(LEVEL_DEBUG,
			"launch_new_connection: max_server_connections reached (%u >= %u)",
			servers, limit);
	else
		log_write(LEVEL_DEBUG, "launch_new_connection: %s '%s' full (%u >= %u)",
			kind == CAP_DATABASE ? "database" : "user",
			kind == CAP_DATABASE ? pool->database->name : pool->user->name, servers,
			limit);
}

/* Returns the first cap with a queue in which other pools come first; CAPS: none. */
static enum cap_kind turn_of_others(struct pool *pool, usec_t since)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if ((pool->caps & (1u << kind)) && pool->wait.promised != cap_of(pool, kind) &&
			!cap_is_next(pool, kind, since))
			return kind;
	}
	return CAPS;
}

/* Close servers until no cap is full. Returns the first one that still is; CAPS: none. */
static enum cap_kind make_places(const struct pool *pool)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		struct server_link *server;

		while (cap_is_full(pool, kind) && (server = victim_of(pool, kind)) != NULL)
			server_close_for(server, REASON_EVICTED);
		if (cap_is_full(pool, kind))
			return kind;
	}
	return CAPS;
}

/* --- promises ----------------------------------------------------------------------------- */

/*
 * May a place below this cap be kept for the pool while it waits for the obstacle? Only the first
 * server is worth it. Places of the process are not kept: the server that makes a place below
 * another cap makes one there too.
 */
static bool may_be_promised(
	struct pool *pool, enum cap_kind kind, enum cap_kind obstacle, usec_t since)
{
	return kind != CAP_PROCESS && kind != obstacle && pool->places == 0 &&
		!pool->wait.promised && !cap_has_promised(cap_of(pool, kind)) &&
		!cap_has_promised(cap_of(pool, obstacle)) && cap_is_next(pool, obstacle, since);
}

static usec_t promise_end(const struct pool *pool, usec_t since)
{
	const struct cap_wait *wait = &pool->wait;
	const usec_t now = now_of(pool);
	usec_t time = PROMISE_PER_WAIT * (now - (since > wait->joined ? since : wait->joined));

	if (time < UNUSED_ENOUGH)
		time = UNUSED_ENOUGH;
	return now + (time < LONGEST_PROMISE ? time : LONGEST_PROMISE);
}

/*
 * The pool has a place below the cap that it has waited for, but not below the obstacle: it waits
 * there. Returns whether the place is kept for it.
 */
static bool wait_for_other(struct pool *pool, enum cap_kind obstacle, usec_t since)
{
	bool is_kept;

	cap_leave(pool);
	is_kept = may_be_promised(pool, pool->wait.kind, obstacle, since) &&
		cap_promise(pool, pool->wait.kind, promise_end(pool, since));
	cap_wait(pool, obstacle, since);
	return is_kept;
}

/* --- launching: the decision -------------------------------------------------------------- */

/* A pool that waits in a queue gets its next server there. */
static bool allow_for_minimum(struct pool *pool, usec_t since)
{
	if (pool->wait.cap)
		return false;
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if (cap_is_full(pool, kind))
			return false;
	}
	return turn_of_others(pool, since) == CAPS && cap_reserve(pool, since, 0) == CAPS;
}

static bool allow_for_clients(struct pool *pool, usec_t since)
{
	struct registry *registry = pool->registry;
	const bool is_called = registry->cap_called == pool;
	enum cap_kind obstacle = obstacle_of(pool);

	registry->cap_called = NULL;
	cap_leave(pool);
	if (obstacle != CAPS)
		log_full(pool, obstacle);
	else if (!is_called)
		obstacle = turn_of_others(pool, since);
	if (obstacle == CAPS)
		obstacle = make_places(pool);
	if (obstacle == CAPS)
		obstacle = cap_reserve(pool, since, 0);
	if (obstacle == CAPS)
		return true;
	if (is_called && obstacle != pool->wait.kind && !cap_is_full(pool, pool->wait.kind))
		wait_for_other(pool, obstacle, since);
	else
		cap_wait(pool, obstacle, since);
	return false;
}

bool caps_allow_server(struct pool *pool, enum caps_purpose purpose, usec_t since)
{
	bool is_allowed;

	if (pool->caps == 0)
		return true;
	if (since < pool->turn_over_at)
		since = pool->turn_over_at;
	is_allowed = purpose == CAPS_FOR_MINIMUM ? allow_for_minimum(pool, since)
						 : allow_for_clients(pool, since);
	if (is_allowed)
		cap_withdraw(pool);
	return is_allowed;
}

bool caps_allow_watch(struct pool *pool)
{
	/* Clients go before watches. */
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const unsigned limit = cap_limit(pool, kind);

		if (limit > 0 && cap_servers(cap_of(pool, kind)) + 2 > limit)
			return false;
	}
	return cap_reserve(pool, now_of(pool), 1) == CAPS;
}

void caps_end_launch(struct pool *pool)
{
	cap_release(pool->registry);
}

/* --- the queue ---------------------------------------------------------------------------- */

static bool is_in_need(const struct pool *pool)
{
	return !pool_is_paused(pool) &&
		(pool_wanted_servers(pool) + pool_welcoming_clients(pool) > 0 ||
			listening_server_is_wanted(pool));
}

/*
 * Returns the first cap of the pool that would keep it from launching a server even if `from`,
 * another pool, had one server less; CAPS: none.
 */
static enum cap_kind obstacle_without(const struct pool *pool, const struct pool *from)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		if (cap_of(pool, kind) != cap_of(from, kind) && cap_is_full(pool, kind) &&
			!victim_of(pool, kind))
			return kind;
	}
	return CAPS;
}

/* Returns the first pool of the queue that is still in need; those before it leave. */
static struct pool *first_in_need(struct cap *cap)
{
	struct pool *pool;

	while ((pool = cap_first_waiting(cap)) != NULL && !is_in_need(pool))
		cap_give_up(pool);
	return pool;
}

/* Returns whether a pool that waits for the cap gets, or is promised, a place of `from`. */
static bool is_for_others(struct cap *cap, const struct pool *from)
{
	struct pool *pool;

	while ((pool = first_in_need(cap)) != NULL && pool != from &&
		is_entitled(pool, from, cap->kind)) {
		const enum cap_kind obstacle = obstacle_without(pool, from);

		if (obstacle == CAPS || wait_for_other(pool, obstacle, pool->wait.since))
			return true;
	}
	return false;
}

/* --- other workers ------------------------------------------------------------------------ */

static bool is_entitled_elsewhere(const struct cap *cap, const struct pool *from)
{
	const struct tally_claim *claim = cap_claim_of_others(cap);

	return claim && is_enough(cap_claim_from(claim, from, cap->kind), from, claim->weight);
}

/* Returns whether a pool of another worker that waits for the cap gets a place of `from`. */
static bool is_for_other_worker(struct cap *cap, const struct pool *from)
{
	enum tally_service service = TALLY_CHANGED;

	while (service == TALLY_CHANGED && is_entitled_elsewhere(cap, from))
		service = tally_serve(cap->share);
	return service == TALLY_SERVED;
}

/* Close free servers for pools of other workers, as many as these are entitled to. */
static void serve_other_workers(struct cap *cap)
{
	struct server_link *server;

	while (cap_claim_of_others(cap) &&
		(server = free_server_of_others(cap, NULL)) != NULL) {
		enum tally_service service = TALLY_FREE;

		if (is_unused(server) || is_entitled_elsewhere(cap, server->link.pool))
			service = tally_serve(cap->share);
		if (service == TALLY_FREE)
			return;
		if (service == TALLY_SERVED)
			server_close_for(server, REASON_EVICTED);
	}
}

/* --- a server that is returned ------------------------------------------------------------ */

bool caps_take_back(struct server_link *server)
{
	struct pool *from = server->link.pool;

	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		/* A place that is free already goes to the first pool. */
		if ((from->caps & (1u << kind)) && cap_is_full(from, kind) &&
			(is_for_others(cap_of(from, kind), from) ||
				is_for_other_worker(cap_of(from, kind), from))) {
			/* It joins the queue again, behind all that wait now. */
			cap_leave(from);
			from->turn_over_at = now_of(from) + 1;
			server_close_for(server, REASON_EVICTED);
			return true;
		}
	}
	return false;
}

/* --- places that become free ----------------------------------------------------------------- */

static void on_unused(struct deadline *deadline)
{
	struct cap *cap = (struct cap *)((char *)deadline - offsetof(struct cap, unused));
	struct registry *registry = cap_registry(cap);

	if (registry)
		cap_is_due(registry, cap);
}

/* Try again when the free server that is longest unused may be closed for the first pool. */
static void wait_until_unused(struct registry *registry, struct cap *cap)
{
	const struct pool *pool = cap_first_waiting(cap);
	const struct server_link *server = NULL;

	if (pool || cap_claim_of_others(cap))
		server = free_server_of_others(cap, pool);
	if (!server || is_unused(server))
		return;
	cap->unused.expire = on_unused;
	wheel_set_exact(
		&registry->loop->wheel, &cap->unused, server->free_since + UNUSED_ENOUGH);
}

static bool may_be_served(const struct pool *pool, enum cap_kind kind)
{
	return cap_is_open(pool, kind) || (cap_is_full(pool, kind) && victim_of(pool, kind));
}

struct pool *caps_next_pool(struct registry *registry)
{
	struct cap *cap;

	/* The last one that was called has not even asked for its server. */
	if (registry->cap_called)
		cap_withdraw(registry->cap_called);
	registry->cap_called = NULL;
	while ((cap = TAILQ_FIRST(&registry->caps_due)) != NULL) {
		struct pool *pool = first_in_need(cap);

		if (cap->promised_to && !is_in_need(cap->promised_to))
			cap_give_up(cap->promised_to);
		if (pool && may_be_served(pool, cap->kind)) {
			cap_leave(pool);
			registry->cap_called = pool;
			return pool;
		}
		cap_is_done(registry, cap);
		serve_other_workers(cap);
		wait_until_unused(registry, cap);
	}
	return NULL;
}
