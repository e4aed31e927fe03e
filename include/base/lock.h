/* SPDX-License-Identifier: ISC */
/*
 * A lock for what several event loops share: a mutex that costs one test as long as the process has
 * one event loop. Held for moments only, never while a function of a higher floor is called.
 */
#ifndef PGUSHER_BASE_LOCK_H
#define PGUSHER_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct lock {
	bool is_shared; /* set once, before a second thread uses it */
	pthread_mutex_t mutex; /* valid if is_shared */
};

/* Several threads will use what the lock protects. The lock was zero before. */
static inline void lock_share(struct lock *lock)
{
	if (!lock->is_shared)
		lock->is_shared = pthread_mutex_init(&lock->mutex, NULL) == 0;
}

static inline void lock_take(struct lock *lock)
{
	if (lock->is_shared)
		(void)pthread_mutex_lock(&lock->mutex);
}

static inline void lock_give(struct lock *lock)
{
	if (lock->is_shared)
		(void)pthread_mutex_unlock(&lock->mutex);
}

/* Nothing uses the lock any more. */
static inline void lock_end(struct lock *lock)
{
	if (lock->is_shared)
		(void)pthread_mutex_destroy(&lock->mutex);
	lock->is_shared = false;
}

/*
 * Counts that several threads change, each by itself: the order among them does not matter, so the
 * processor needs no fence.
 */
#define SHARED_ADD(count, number)                                                              \
	((void)__atomic_add_fetch(&(count), (number), __ATOMIC_RELAXED))
#define SHARED_TAKE(count, number)                                                             \
	((void)__atomic_sub_fetch(&(count), (number), __ATOMIC_RELAXED))
#define SHARED_NEXT(count) __atomic_add_fetch(&(count), 1, __ATOMIC_RELAXED)
#define SHARED_GET(count) __atomic_load_n(&(count), __ATOMIC_RELAXED)
#define SHARED_SET(count, number) __atomic_store_n(&(count), (number), __ATOMIC_RELAXED)

/* Changes a count that only the calling thread changes, and that others read: no locked access. */
#define SHARED_OWN(count, number) SHARED_SET(count, (count) + (number))

#endif
