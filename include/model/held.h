/* SPDX-License-Identifier: ISC */
/*
 * The memory of held bytes, which a link has received and not yet passed on: small blocks from
 * a slab, since every waiting client needs one, and large ones, which are rare, from the heap.
 */
#ifndef PGUSHER_MODEL_HELD_H
#define PGUSHER_MODEL_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct registry;

enum {
	HELD_SMALL = 256,
	/* The most that a link may hold; more than the longest allowed Parse message. */
	HELD_MAX = 1 << 30,
};

/*
 * Returns whether large blocks and prepared statements together exceed max_prepared_memory.
 * Large blocks have Parse messages that are incomplete.
 */
bool held_is_crowded(const struct registry *registry);

/* Free a block of held bytes. NULL is allowed. */
void held_free(struct registry *registry, uint8_t *bytes, uint32_t capacity);

#endif
