/* SPDX-License-Identifier: ISC */
/*
 * The event loop: libevent's base, the time of the turn, deadlines, and what runs at the end of
 * a turn.
 *
 * A loop owns everything that a turn touches and that no link needs to keep: the receive buffer,
 * the random block, the wheel. Several loops could live in one process: nothing here is global.
 */
#ifndef PGUSHER_NET_LOOP_H
#define PGUSHER_NET_LOOP_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/random.h"
#include "base/slab.h"
#include "net/wheel.h"

enum {
	/* One receive takes at most this much; large enough that bulk data costs few calls. */
	LOOP_RECEIVE_SIZE = 64 * 1024,
	/*
	 * Room in front of what is received, for the bytes that a link held. Only what is used of it
	 * ever becomes memory.
	 */
	LOOP_RECEIVE_HEADROOM = 128 * 1024,
};

struct loop_task;
struct tls_buffers;

typedef void loop_function(struct loop_task *task);

/* Something to be done at the end of the turn; embedded in its owner, in at most one queue. */
struct loop_task {
	struct loop_task *next;
	loop_function *run; /* NULL: not queued */
};

struct loop_queue {
	struct loop_task *first, **last;
	struct loop_task *running; /* those set aside for this run, still to come */
};

struct loop {
	struct event_base *base;
	int timer_fd; /* libevent's own timers ask for the time again and again */
	struct event *timer;
	usec_t timer_due; /* what the timer is armed for; 0: not armed */
	usec_t now; /* valid if now_known */
	usec_t real; /* the monotonic clock when now was last read */
	usec_t stolen; /* time in which this process did not run, taken out of now */
	usec_t may_sleep_until; /* a turn that ends later than this was stopped, not idle */
	bool now_known;
	bool stopping;
	uint64_t turn; /* counts turns */
	/* How long turns took, and how late the timer was told of. */
	struct histogram lag;
	/* Of TLS handshakes, by enum tls_side: those that were not finished, and those that were. */
	struct histogram handshakes[2][2];
	int hang_ups; /* an epoll of our own: see loop_watch_hang_up() */
	struct event *hang_up;
	uint8_t *receive; /* LOOP_RECEIVE_HEADROOM + LOOP_RECEIVE_SIZE bytes */
	struct wheel wheel;
	struct random random;
	struct slab backlogs; /* what blocked writers hold: see net/stream */
	struct tls_buffers *tls_buffers; /* NULL until the first TLS connection */
	struct loop_queue arrivals; /* when this turn's events have been handled */
	struct loop_queue
		work; /* before the end of the turn, once: what follows from its events */
	struct loop_queue ending; /* end of the turn: deferred frees */
	struct loop_queue late; /* after one more poll: console commands */
	void *owner; /* what the floors above hang on the loop */
};

/* Make a loop; false when libevent or memory fails. */
bool loop_init(struct loop *loop);

/* Free what loop_init() made; every stream on it must be closed. */
void loop_free(struct loop *loop);

/*
 * The time that the calling thread has spent, which is the loop's if it runs on it, waiting not
 * included: microseconds since its start.
 */
usec_t loop_busy(void);

/* Turn until loop_stop(). */
void loop_run(struct loop *loop);

/* One turn: wait for events (not at all if !wait), handle them, then the end-of-turn queues. */
void loop_turn(struct loop *loop, bool wait);

void loop_stop(struct loop *loop);

/* Run what was deferred to the end of the turn, when no more turns come. */
void loop_end_turn(struct loop *loop);

/* Read the clock: use loop_now(). */
usec_t loop_read_clock(struct loop *loop);

/*
 * The monotonic time of this turn in microseconds, read once when it is first asked for. Time
 * during which the whole process was stopped does not count, so that no client is timed out for
 * a sleep of ours.
 */
static inline usec_t loop_now(struct loop *loop)
{
	return loop->now_known ? loop->now : loop_read_clock(loop);
}

/* Run the task at the end of this turn, once. It may free its owner. */
void loop_defer(struct loop *loop, struct loop_task *task, loop_function *run);

/* Run the task when this turn's events have been handled: those who leave in it have left. */
void loop_defer_arrivals(struct loop *loop, struct loop_task *task, loop_function *run);

/*
 * Run the task when this turn's events and deadlines have been handled. What it defers in turn
 * waits for the next turn, so that work that makes work cannot keep the loop from its events.
 */
void loop_defer_work(struct loop *loop, struct loop_task *task, loop_function *run);

/* Run the task at the end of this turn after one more poll, so that it sees all that has come. */
void loop_defer_late(struct loop *loop, struct loop_task *task, loop_function *run);

/* Take a task out of whichever queue it is in. */
void loop_forget(struct loop *loop, struct loop_task *task);

/*
 * Activate this event, once, when the peer of the descriptor goes away or shuts down its side,
 * whatever it has sent before and nobody has read. The event is assigned but not added. False when
 * the kernel has no memory. libevent has EV_CLOSED for this, but a connection that is reset is not
 * told to those who want to know of nothing else, and is reported again and again (2.1).
 */
bool loop_watch_hang_up(struct loop *loop, int fd, struct event *event);

/* Before the descriptor is closed, or read again. */
void loop_unwatch_hang_up(struct loop *loop, int fd, struct event *event);

static inline bool loop_task_is_queued(const struct loop_task *task)
{
	return task->run != NULL;
}

#endif
