/* SPDX-License-Identifier: ISC */
/*
 * A queue that is fair between the sources of its entries, whatever number of entries a source
 * has.
 *
 * An entry joins one or several *lanes*, in each with a source: for example the lane of users
 * with its user and the lane of addresses with its address. Entries are taken from the lanes by
 * turns, and within a lane from one source after the other. So each lane gives an equal share
 * to each of its sources, and a source that is crowded out in one lane still has its share in
 * another.
 *
 * A source is a number of the caller's, for example a keyed hash. Sources are assigned to a
 * fixed number of buckets: those in the same bucket count as one. So nothing is allocated, and
 * each operation takes constant time. Memory of entries belongs to the caller.
 */
#ifndef PGUSHER_BASE_FAIR_QUEUE_H
#define PGUSHER_BASE_FAIR_QUEUE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FAIR_LANES = 3,
	FAIR_BUCKETS = 1024, /* of each lane */
};

/* Zero it before use. */
struct fair_entry {
	TAILQ_ENTRY(fair_entry) in[FAIR_LANES];
	struct fair_bucket *bucket[FAIR_LANES]; /* NULL: not in this lane */
};

TAILQ_HEAD(fair_entries, fair_entry);

struct fair_bucket {
	struct fair_entries waiting;
	TAILQ_ENTRY(fair_bucket) in_lane; /* while an entry waits */
	unsigned joined; /* entries that have joined and not left, waiting or taken */
};

TAILQ_HEAD(fair_buckets, fair_bucket);

struct fair_queue {
	struct fair_buckets
		lanes[FAIR_LANES]; /* buckets with waiting entries; next one first */
	struct fair_bucket buckets[FAIR_LANES][FAIR_BUCKETS];
	const uint8_t *turns; /* the lane of each turn */
	size_t turn_count, turn;
};

/*
 * Initialise the queue. `turns`, not copied, is the order in which lanes are asked, for ever
 * again; a lane without waiting entries is passed over.
 */
void fair_queue_init(struct fair_queue *queue, const uint8_t *turns, size_t turn_count);

/*
 * Let the entry, which is not waiting, join a lane with this source. Returns false when
 * `joined_most` entries of the source are in the lane already.
 */
bool fair_queue_join(struct fair_queue *queue, struct fair_entry *entry, unsigned lane,
	uint64_t source, unsigned joined_most);

/* Let the entry, which is not waiting, leave all lanes that it has joined. */
void fair_queue_leave(struct fair_entry *entry);

/* Add an entry that has joined a lane: behind, or ahead of, the others of its sources. */
void fair_queue_add(struct fair_queue *queue, struct fair_entry *entry, bool ahead);

/* Take the entry whose turn it is. It has still joined its lanes. NULL: none waits. */
struct fair_entry *fair_queue_take(struct fair_queue *queue);

/* Remove an entry that waits. It has still joined its lanes. */
void fair_queue_remove(struct fair_queue *queue, struct fair_entry *entry);

#endif
