/* SPDX-License-Identifier: ISC */
/*
 * The number of references to an object that several threads may share. Only a holder of a
 * reference may take another; the thread that drops the last one frees the object.
 */
#ifndef PGUSHER_BASE_REFERENCES_H
#define PGUSHER_BASE_REFERENCES_H

#include <stdatomic.h>
#include <stdbool.h>

/* Initialise it with the number of references at first, before another thread has one. */
typedef atomic_uint reference_count;

/* Take another reference. */
static inline void reference_take(reference_count *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/*
 * Drop a reference. Returns true if it was the last: all that other threads did with the object
 * is visible to this thread, and the caller frees the object. With one operation for both, since
 * ThreadSanitizer does not know fences.
 */
static inline bool reference_drop(reference_count *count)
{
	return atomic_fetch_sub_explicit(count, 1, memory_order_acq_rel) == 1;
}

#endif
