/* SPDX-License-Identifier: ISC */
/*
 * A cap: a limit of server connections that several pools share. There is one of each database
 * (max_db_connections), of each user (max_user_connections) and of the process
 * (max_server_connections).
 *
 * A cap has a queue of the pools that wait for a place below it, and a list of the free servers
 * of its pools, which may be closed to make places. Both take the same time with any number of
 * pools. Which pool is entitled to a place is decided by its load: the number of its servers
 * beyond min_pool_size, divided by its pool_weight.
 *
 * A pool waits in one queue at a time. If it needs places below two caps, the place that it gets
 * first may be promised to it while it waits for the other: it counts as taken for all others.
 *
 * Only servers of pools with the cap's bit in pool.caps are in its list: a server of a pool
 * without a cap costs nothing.
 *
 * Each worker has a cap of its own for the process, and for each user. With several workers the servers
 * of all of them count (model/shared/tally), and a cap is the part of its worker: its pools, its queue
 * and its free servers.
 */
#ifndef PGUSHER_MODEL_CAP_H
#define PGUSHER_MODEL_CAP_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/wheel.h"

struct pool;
struct registry;
struct server_link;
struct tally_claim;
struct tally_share;
struct user;

enum cap_kind { CAP_DATABASE, CAP_USER, CAP_PROCESS, CAPS };

RB_HEAD(cap_queue, pool);
TAILQ_HEAD(cap_servers, server_link);

struct cap {
	TAILQ_ENTRY(cap) due_entry; /* in registry.caps_due */
	struct cap_servers idle; /* IDLE and STALE servers, the one longest unused first */
	struct cap_queue waiting; /* pools in order of their load, then of their wait */
	unsigned servers; /* connections of all its pools, in any state */
	uint64_t tickets; /* given to pools that waited */
	unsigned pinned; /* those that stay with a client for its session state (max_pinned) */
	uint64_t minima; /* sum of min_pool_size of its pools */
	enum cap_kind kind : 8;
	bool is_due; /* in registry.caps_due */
	struct deadline unused; /* when the first of `idle` may be closed for any pool */
	struct pool *promised_to; /* one place is kept for this pool; NULL: none */
	struct deadline promise; /* when the promise ends */
	struct tally_share *share; /* of what all workers count; NULL: the cap counts alone */
	bool minima_counted; /* as of the last look; valid with a share */
};

TAILQ_HEAD(cap_list, cap);

/* A pool's place in the queue of a cap. */
struct cap_wait {
	RB_ENTRY(pool) entry;
	struct cap *cap; /* NULL: the pool does not wait for a place */
	unsigned load; /* what its load would be with one more server, without the weight */
	usec_t since; /* its client that has waited longest has waited since then */
	uint64_t ticket; /* of its cap: the order of pools that are alike */
	enum cap_kind kind; /* of the cap whose queue it is in, or was in last */
	usec_t joined; /* when it left the queue of a cap of another kind for this one */
	struct cap *promised; /* keeps a place for it; NULL: none */
	enum cap_kind promised_last; /* of the cap that gave it the last promise */
};

/* Initialise a cap without pools, that counts alone. */
void cap_init(struct cap *cap, enum cap_kind kind);

/*
 * The process is to have several workers: count together with the caps of the other ones, of the user
 * of this name, or of the process (NULL). Returns false when out of memory.
 */
bool cap_join(struct cap *cap, struct registry *registry, const char *name);

/* The cap is freed, and has no pools. */
void cap_end(struct cap *cap);

/* Return how many servers there are below the cap, at all workers; and how many of them are pinned. */
unsigned cap_servers(const struct cap *cap);
unsigned cap_pinned(const struct cap *cap);

/* One of its servers was pinned, or is not any more: `by` is 1 or -1. */
void cap_change_pinned(struct cap *cap, int by);

/* Returns the cap of this kind that counts the servers of the pool. */
struct cap *cap_of(const struct pool *pool, enum cap_kind kind);

/* Returns the limit that is in force for the pool's cap of this kind; 0: none. */
unsigned cap_limit(const struct pool *pool, enum cap_kind kind);

/* Returns whether the pool's cap of this kind has no place left for it. */
bool cap_is_full(const struct pool *pool, enum cap_kind kind);

/*
 * A pool was made, or the configuration has changed: set pool.caps to the caps that have a
 * limit, and list its free servers there. The pool leaves the queue that it is in. `least` is
 * its min_pool_size, `weight` its pool_weight, at least 1.
 */
void cap_configure_pool(struct pool *pool, unsigned least, unsigned weight);

/* The pool is freed: it has no servers. */
void cap_forget_pool(struct pool *pool);

/* --- servers ------------------------------------------------------------------------------ */

/*
 * Take the places below all caps for a server that the pool is about to launch, in one step: no other
 * worker can take them meanwhile. `since`: the pool has waited since then. `spare`: so many more have
 * to be free. Returns the kind of a cap that refuses; CAPS: none. Each place that was taken is counted
 * by cap_take_server(), or given back by cap_release().
 *
 * Places that only one worker counts are not taken: the caller has seen that they are free.
 */
enum cap_kind cap_reserve(struct pool *pool, usec_t since, unsigned spare);

/* Give back what cap_reserve() has taken, if no server was launched. */
void cap_release(struct registry *registry);

/* Count, or uncount, a server connection of the pool. A pool in a queue changes its place. */
void cap_take_server(struct pool *pool);
void cap_give_server(struct pool *pool);

/* A server of a pool with pool.caps has entered, or left, IDLE or STALE. */
void cap_server_is_free(struct server_link *server);
void cap_server_is_used(struct server_link *server);

/*
 * Remove the server from the list of the cap: it is one of those that min_pool_size keeps. It
 * is listed again when the pool has more servers.
 */
void cap_keep_server(struct server_link *server, enum cap_kind kind);

/* --- the queue ---------------------------------------------------------------------------- */

/*
 * Put the pool, which is in no queue, in the queue of its cap of this kind: the client that has
 * waited longest waits since then. The cap is due. A promise of the same cap ends.
 */
void cap_wait(struct pool *pool, enum cap_kind kind, usec_t since);

/* Take the pool out of its queue, if it is in one. A place that is promised to it stays so. */
void cap_leave(struct pool *pool);

/* The pool needs no server: take it out of its queue, and withdraw what is promised to it. */
void cap_give_up(struct pool *pool);

/* Returns the pool that gets the next place below the cap, or NULL. */
struct pool *cap_first_waiting(struct cap *cap);

/*
 * Returns whether the pool, in no queue, would come before the first pool of the queue, if it
 * waited since then. True if the queue is empty.
 */
bool cap_is_next(struct pool *pool, enum cap_kind kind, usec_t since);

/*
 * Have registry.do_work serve the pools that wait for the cap, at the end of this turn: a place
 * may be free.
 */
void cap_is_due(struct registry *registry, struct cap *cap);

/*
 * The pools that wait for the cap were served; the other workers learn which one still waits. A cap
 * without such pools is not due.
 */
void cap_is_done(struct registry *registry, struct cap *cap);

/*
 * Returns whether the pool, the first one that waits, may try to get a place below the cap: it is not
 * full, and no pool of another worker comes first.
 */
bool cap_is_open(const struct pool *pool, enum cap_kind kind);

/* Returns the first claim of other workers to a place below the cap, as far as is known; NULL: none. */
const struct tally_claim *cap_claim_of_others(const struct cap *cap);

/* The registry of a cap with pools that wait, or claims of other workers. */
struct registry *cap_registry(struct cap *cap);

/*
 * The sum of minima may have changed at another worker: list the servers that may be closed again. To
 * be called before cap.idle is searched.
 */
void cap_follow_minima(struct cap *cap);

/* --- promises ----------------------------------------------------------------------------- */

/* Returns whether a place below the cap is kept for a pool, of any worker. */
bool cap_has_promised(const struct cap *cap);

/*
 * Keep one place below the cap for the pool until then. Neither has another promise. The place is
 * free, or becomes so in this turn. Returns false if another worker keeps one.
 */
bool cap_promise(struct pool *pool, enum cap_kind kind, usec_t until);

/* End the promise to the pool, if there is one: it got its server, or others get the place. */
void cap_withdraw(struct pool *pool);

/* --- shares ------------------------------------------------------------------------------- */

/* How two pools compare if one of them passed a place to the other. */
enum cap_claim {
	CAP_CLAIM_NONE, /* the other would have more than the one has now */
	/* So it would, but it has none: they take turns, of which the heavier pool has longer ones. */
	CAP_CLAIM_LIGHT,
	CAP_CLAIM_EQUAL, /* as much: they may take turns */
	CAP_CLAIM_BETTER, /* less */
};

/*
 * Returns whether `to` is entitled to a place that `from` has, by their loads. A pool never
 * loses what min_pool_size grants.
 */
enum cap_claim cap_claim_of(const struct pool *to, const struct pool *from, enum cap_kind kind);

/* The same for a pool of another worker that has published this. */
enum cap_claim cap_claim_from(
	const struct tally_claim *to, const struct pool *from, enum cap_kind kind);

/* Returns whether min_pool_size grants the pool all servers that it has. */
bool cap_keeps_all(const struct pool *pool, enum cap_kind kind);

#endif
