/* SPDX-License-Identifier: ISC */
/*
 * Threads for work that would block the event loop: key derivations, look-ups of system users,
 * and the external authentication (LDAP and PAM).
 *
 * Each kind of work has a helper of its own, with its own threads and its own bounded queue, so
 * that a slow directory server cannot delay key derivations. Threads are started when jobs
 * arrive, and end with the helper. A login that ends before its job tells the job so, and done()
 * then drops the result.
 */
#ifndef PGUSHER_NET_HELPER_H
#define PGUSHER_NET_HELPER_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

struct helper;
struct helper_job;

typedef void helper_function(struct helper_job *job);

/*
 * A job, embedded in a struct on the heap. The caller owns it until helper_submit() returns
 * true; from then on the helper has it until it calls done(), which frees it. done() is called
 * exactly once for each job submitted.
 */
struct helper_job {
	TAILQ_ENTRY(helper_job) entry;
	helper_function *work; /* runs on a thread; may use the memory of the job only */
	helper_function *done; /* runs on the loop's thread; except: helper_leave() */
	bool cancelled; /* set before done(): ignore the result, work() may not have run */
};

/*
 * Make a helper with at most this many threads, and at most `jobs_max` jobs submitted and not
 * done. The loop must outlive it. Returns NULL when out of memory or descriptors.
 */
struct helper *helper_new(struct loop *loop, unsigned threads, size_t jobs_max);

/*
 * End the helper at the end of the process, without waiting for running jobs, which may take
 * long or hang. done() is called with `cancelled` for all jobs that are left; for a running one
 * when it ends, on its thread: done() may use the memory of the job only. Returns the number of
 * threads that are still running a job; all others have ended. The last of them frees the
 * helper. NULL is allowed, and returns 0.
 */
unsigned helper_leave(struct helper *helper);

/*
 * Queue a job. Its done() is called in a later turn. Returns false when the queue is full or no
 * thread can be started: the caller then still owns the job.
 */
bool helper_submit(struct helper *helper, struct helper_job *job);

/* Returns the number of jobs submitted and not done. */
size_t helper_pending(const struct helper *helper);

#endif
