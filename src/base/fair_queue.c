/* SPDX-License-Identifier: ISC */
#include "base/fair_queue.h"

void fair_queue_init(struct fair_queue *queue, const uint8_t *turns, size_t turn_count)
{
	*queue = (struct fair_queue){.turns = turns, .turn_count = turn_count};
	for (unsigned lane = 0; lane < FAIR_LANES; lane++) {
		TAILQ_INIT(&queue->lanes[lane]);
		for (unsigned i = 0; i < FAIR_BUCKETS; i++)
			TAILQ_INIT(&queue->buckets[lane][i].waiting);
	}
}

bool fair_queue_join(struct fair_queue *queue, struct fair_entry *entry, unsigned lane,
	uint64_t source, unsigned joined_most)
{
	struct fair_bucket *bucket = &queue->buckets[lane][source % FAIR_BUCKETS];

	if (bucket->joined >= joined_most)
		return false;
	bucket->joined++;
	entry->bucket[lane] = bucket;
	return true;
}

void fair_queue_leave(struct fair_entry *entry)
{
	for (unsigned lane = 0; lane < FAIR_LANES; lane++) {
		if (entry->bucket[lane])
			entry->bucket[lane]->joined--;
		entry->bucket[lane] = NULL;
	}
}

void fair_queue_add(struct fair_queue *queue, struct fair_entry *entry, bool ahead)
{
	for (unsigned lane = 0; lane < FAIR_LANES; lane++) {
		struct fair_bucket *bucket = entry->bucket[lane];

		if (!bucket)
			continue;
		if (TAILQ_EMPTY(&bucket->waiting))
			TAILQ_INSERT_TAIL(&queue->lanes[lane], bucket, in_lane);
		if (ahead)
			TAILQ_INSERT_HEAD(&bucket->waiting, entry, in[lane]);
		else
			TAILQ_INSERT_TAIL(&bucket->waiting, entry, in[lane]);
	}
}

void fair_queue_remove(struct fair_queue *queue, struct fair_entry *entry)
{
	for (unsigned lane = 0; lane < FAIR_LANES; lane++) {
		struct fair_bucket *bucket = entry->bucket[lane];

		if (!bucket)
			continue;
		TAILQ_REMOVE(&bucket->waiting, entry, in[lane]);
		if (TAILQ_EMPTY(&bucket->waiting))
			TAILQ_REMOVE(&queue->lanes[lane], bucket, in_lane);
	}
}

/* The bucket has its turn: the others of the lane come before its next one. */
static struct fair_entry *take_from(struct fair_queue *queue, unsigned lane)
{
	struct fair_bucket *bucket = TAILQ_FIRST(&queue->lanes[lane]);
	struct fair_entry *entry = TAILQ_FIRST(&bucket->waiting);

	TAILQ_REMOVE(&queue->lanes[lane], bucket, in_lane);
	TAILQ_INSERT_TAIL(&queue->lanes[lane], bucket, in_lane);
	fair_queue_remove(queue, entry);
	return entry;
}

struct fair_entry *fair_queue_take(struct fair_queue *queue)
{
	for (size_t i = 0; i < queue->turn_count; i++) {
		const unsigned lane = queue->turns[queue->turn];

		queue->turn = (queue->turn + 1) % queue->turn_count;
		if (!TAILQ_EMPTY(&queue->lanes[lane]))
			return take_from(queue, lane);
	}
	return NULL;
}
