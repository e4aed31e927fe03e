/* SPDX-License-Identifier: ISC */
/*
 * Work that would block the loop, on threads: key derivations, names of system users, later PAM
 * and LDAP.
 *
 * Each kind of work has a helper of its own, with a queue of its own bound, so that a slow
 * directory server cannot hold up key derivations. Threads start when there is something to do.
 * A job knows nothing of links but an id: whoever finds no link of that id in done() throws the
 * result away. Work that nobody waits for any more can be taken back as long as it has not begun.
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
 * A job, embedded in something on the heap which is its submitter's until helper_submit() said
 * true, and then its done()'s, which frees it.
 */
struct helper_job {
	TAILQ_ENTRY(helper_job) entry;
	helper_function *work; /* on a thread: may touch the job's own memory only */
	helper_function *done; /* on the loop, in a later turn, once; see helper_leave() */
	uint64_t link; /* the id of whom it is for */
	bool urgent; /* it goes before those that are not */
	bool begun; /* the helper's own: a thread has it, or had */
	bool cancelled; /* for done(): the helper ends, the work may not have been done */
};

/*
 * Make a helper of at most this many threads and this many jobs between submit and done. The loop
 * must outlive it. NULL when memory or descriptors fail.
 */
struct helper *helper_new(struct loop *loop, unsigned threads, size_t jobs_max);

/*
 * Take what is running to its end, drop what is waiting, and call done() with `cancelled` for all
 * that is left. NULL is nothing.
 */
void helper_free(struct helper *helper);

/*
 * The same for work that may hang: nobody waits for what is running. When that ends after all,
 * its done() is called on its thread, with `cancelled`: it may touch the job's own memory only.
 * How many threads are left behind at work; all others have ended.
 */
unsigned helper_leave(struct helper *helper);

/* Hand over a job. False when the queue is full or no thread can be started: still the caller's. */
bool helper_submit(struct helper *helper, struct helper_job *job);

/*
 * Nobody wants this job any more. True: it had not begun, and its done() has been called, with
 * `cancelled`. False: it goes on, and its done() follows in its time.
 */
bool helper_withdraw(struct helper *helper, struct helper_job *job);

/* Jobs between submit and done. */
size_t helper_pending(const struct helper *helper);

#endif
