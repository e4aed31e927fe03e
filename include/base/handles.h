/* SPDX-License-Identifier: ISC */
/*
 * Handles: references to objects that may be freed meanwhile. A lookup by handle returns the
 * object until it is removed, and NULL from then on. For code that walks over many objects in
 * several turns of the event loop, while objects come and go.
 *
 * Each object stores its handle in a field of its own, which is 0 or the handle assigned last.
 * The handle is assigned on first use, so that an unused table takes no memory. Code that
 * frees an object must call handles_take_back() for it.
 *
 * The loops of a process share one table, which has a lock. It protects the table, not the
 * objects: the thread that gives a handle to an object or uses one that was found must be the
 * thread of that object, or keep that thread from running.
 */
#ifndef PGUSHER_BASE_HANDLES_H
#define PGUSHER_BASE_HANDLES_H

#include <pthread.h>
#include <stdint.h>

struct handle_slot {
	uint64_t handle; /* 0: free */
	void *object;
};

struct handles {
	pthread_mutex_t lock; /* protects all that follows */
	struct handle_slot *slots; /* owned */
	/* Owned: stack of slot numbers that were used before and are free now. */
	uint32_t *vacant;
	uint32_t count, capacity, vacancies;
	uint32_t serial; /* of the handle assigned last */
};

/* Make an empty table; it owns no memory yet. */
void handles_init(struct handles *handles);

/*
 * Returns the handle of `object`, which is stored at `of`; assigns one if it has none. Returns
 * 0 when out of memory. The table does not own the object.
 */
uint64_t handles_give(struct handles *handles, uint64_t *of, void *object);

/*
 * Invalidate the handle of an object, before the object is freed. Does nothing if it has no
 * handle; then not even the lock is taken.
 */
void handles_take_back(struct handles *handles, const uint64_t *of, const void *object);

/* Returns the object of a handle, or NULL if it was taken back. */
void *handles_find(struct handles *handles, uint64_t handle);

/*
 * Invalidate all handles and free the memory of the table. The handle fields of objects need
 * not be reset.
 */
void handles_clear(struct handles *handles);

/* handles_clear(), and the table is not used any more. */
void handles_free(struct handles *handles);

#endif
