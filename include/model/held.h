/* SPDX-License-Identifier: ISC */
/*
 * The memory of held bytes: small ones from a slab, since every waiting client needs some, the
 * rare large ones from the heap.
 */
#ifndef PGUSHER_MODEL_HELD_H
#define PGUSHER_MODEL_HELD_H

#include <stdint.h>

struct registry;

enum {
	HELD_SMALL = 256,
	/* More than a link may ever hold: the longest Parse that a client can afford. */
	HELD_MAX = 1 << 30,
};

/* Free bytes that a link held; NULL is nothing. */
void held_free(struct registry *registry, uint8_t *bytes, uint32_t capacity);

#endif
