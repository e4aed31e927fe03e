/* SPDX-License-Identifier: ISC */
/*
 * The memory of held bytes: small ones from a slab, since every waiting client needs some, the
 * rare large ones from the heap.
 */
#ifndef PGUSHER_MODEL_HELD_H
#define PGUSHER_MODEL_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct registry;

enum {
	HELD_SMALL = 256,
	/* More than a link may ever hold: the longest Parse that a client can afford. */
	HELD_MAX = 1 << 30,
};

/*
 * Do large ones, with all prepared statements, take more than these may take (max_prepared_memory)?
 * They are for Parse messages that are not whole yet.
 */
bool held_is_crowded(const struct registry *registry);

/* Free bytes that a link held; NULL is nothing. */
void held_free(struct registry *registry, uint8_t *bytes, uint32_t capacity);

#endif
