/* SPDX-License-Identifier: ISC */
/*
 * Names for objects that outlive them: a handle finds its object as long as that lives, and NULL
 * from then on. For whoever walks over many objects in several turns, while they come and go.
 *
 * An object keeps its handle in a field of its own, which is 0 or what it was given last; it is
 * given one when it is first asked for, so that a table nobody uses takes no memory. Whoever ends
 * an object takes its handle back.
 */
#ifndef PGUSHER_BASE_HANDLES_H
#define PGUSHER_BASE_HANDLES_H

#include <stdint.h>

struct handle_slot {
	uint64_t handle; /* 0: free */
	void *object;
};

struct handles {
	struct handle_slot *slots; /* owned */
	uint32_t *vacant; /* owned: numbers of free slots, as far as they were used before */
	uint32_t count, capacity, vacancies;
	uint32_t serial; /* of the handle given last */
};

/* The handle of this object, kept at `of`; given now if it has none. 0: no memory. */
uint64_t handles_give(struct handles *handles, uint64_t *of, void *object);

/* The object goes. Nothing happens if it has no handle. */
void handles_take_back(struct handles *handles, const uint64_t *of, const void *object);

/* NULL: it has gone. */
void *handles_find(const struct handles *handles, uint64_t handle);

/* Let all of them go, and their memory; objects may keep what they were given. */
void handles_clear(struct handles *handles);

#endif
