/* SPDX-License-Identifier: ISC */
/*
 * The event loops of a process and their threads: loop 0 is run by the main thread, each other
 * loop by a thread of its own.
 *
 * What belongs to a loop is used by the thread of that loop only. There are two ways across:
 * mail, which is delivered in a turn of the receiving loop; and stillness, in which the main
 * thread has stopped all others between two turns and may use all loops as if it were their
 * thread. Only the main thread starts, stops or frees the crew and makes stillness.
 *
 * Until crew_start() and after crew_stop(), all loops belong to the main thread. A crew of one
 * has no thread, no descriptor and no event, and `member` of its loop is NULL, as in a loop
 * without a crew: all calls work and cost next to nothing.
 */
#ifndef PGUSHER_NET_CREW_CREW_H
#define PGUSHER_NET_CREW_CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "net/crew/mailbox.h"
#include "net/crew/own_loop.h"
#include "net/loop.h"

struct crew_member;

struct crew {
	struct crew_member *members; /* one for each loop */
	unsigned count; /* of loops */
	unsigned threads; /* running, besides the main thread */
	bool running; /* between crew_start() and crew_stop() */
	unsigned depth; /* calls of crew_still() without their crew_resume() */
	bool still; /* all threads are parked */
	atomic_bool parking; /* the threads are to park between two turns */

	pthread_mutex_t lock; /* protects all that follows */
	pthread_cond_t all_parked, released;
	unsigned parked; /* threads that are parked in this round */
	uint64_t round; /* number of times that parked threads were released */
	bool ending; /* threads that are released end */
};

/* What a loop and its thread have done since the start. */
struct crew_figures {
	uint64_t turns;
	uint64_t mails; /* delivered to this loop */
	uint64_t wake_ups; /* events of the descriptor by which others wake this loop */
	uint64_t stops; /* how often the thread was parked */
	usec_t parked; /* how long, in total */
	usec_t busy; /* processor time of the thread */
	int thread; /* its id for the kernel */
};

/*
 * Make a crew of these loops, which must outlive it; the array need not. Loop 0 is that of the
 * calling thread. Sets `member` of each loop, unless the crew has one loop only. Returns false
 * when descriptors or memory are short; there is nothing to free then.
 */
bool crew_init(struct crew *crew, struct loop *const loops[], unsigned count);

/* Free the contents of a crew that is not running, before its loops are freed. */
void crew_free(struct crew *crew);

/*
 * Start the threads. All signals are blocked in them. Returns false and sets errno when the
 * kernel refuses a thread: those that had started have ended then.
 */
bool crew_start(struct crew *crew);

/*
 * Run one turn of a loop, by its thread: loop_turn(), with attention to the mail. While the
 * crew is running, a bare loop_turn() that waits would miss its mail.
 */
void crew_turn(struct loop *loop, bool wait);

/* Run turns of loop 0 until loop_stop(): loop_run(), with attention to the mail. */
void crew_run(struct crew *crew);

/*
 * End all threads between two turns, and wait for that. All mail has been delivered when this
 * returns, by the calling thread. If no thread is running, only the mail is delivered.
 */
void crew_stop(struct crew *crew);

/*
 * Send mail to a loop, which owns it from now on: deliver() may run, and free it, before this
 * returns. The loop may be the sender's own: the mail is then delivered in a later run of its
 * queue. To be called by the threads of the crew, or in a loop without a crew by its thread.
 */
void crew_post(struct loop *to, struct mail *mail);

/*
 * Make stillness: returns when all other threads are parked between two turns, and all mail has
 * been delivered, to any loop, by the calling thread; also mail that deliveries have sent.
 * Deliveries may change or free what belongs to any loop, so the caller must not be in the middle
 * of a change. Calls nest, and a nested one delivers nothing. Between two stillnesses each loop runs
 * one turn at least. Mail that is sent in stillness is delivered after it.
 *
 * In stillness the calling thread may use all loops: add events, set deadlines, queue tasks,
 * close streams. The loops look at these before they wait again. loop_now() of a parked loop
 * reads the clock after each crew_still().
 */
void crew_still(struct crew *crew);

/* End what crew_still() began; the last of nested calls lets the threads run. */
void crew_resume(struct crew *crew);

/* Whether the main thread has made stillness; to be called by that thread. */
bool crew_is_still(const struct crew *crew);

/* To be called if crew_is_own(loop). */
void crew_figures(const struct loop *loop, struct crew_figures *figures);

/* Likewise. Returns the only processor that the thread may run on; -1: there are several. */
int crew_processor(const struct loop *loop);

/*
 * For a watchdog, to be called periodically: send a ping to each loop that has answered the one
 * before. Returns false if a loop has not answered that since the last call. Always true in
 * stillness.
 */
bool crew_answers(struct crew *crew);

/*
 * Bind the thread of a loop to a processor; after crew_start(), since threads inherit from the
 * main thread. Returns false and sets errno when the kernel refuses, or there is no such thread.
 */
bool crew_pin(struct crew *crew, unsigned index, int cpu);

#endif
