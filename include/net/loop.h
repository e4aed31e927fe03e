/* SPDX-License-Identifier: ISC */
/*
 * The event loop: libevent's event base, the time of the turn, deadlines, and queues of tasks
 * that run during a turn.
 *
 * A turn is one wait for events and the work that follows. The loop owns what a turn needs and
 * no link has to keep: receive buffer, random block, wheel of deadlines. A process may have
 * several loops, each used by one thread (net/crew/crew).
 */
#ifndef PGUSHER_NET_LOOP_H
#define PGUSHER_NET_LOOP_H

#include <event2/event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/random.h"
#include "base/slab.h"
#include "net/crew/mailbox.h"
#include "net/wheel.h"

enum {
	/* Most bytes of one receive; large enough that bulk data costs few system calls. */
	LOOP_RECEIVE_SIZE = 64 * 1024,
	/*
	 * Room in front of the received bytes, for bytes that a link held back. Pages that are
	 * never used take no memory.
	 */
	LOOP_RECEIVE_HEADROOM = 128 * 1024,
};

struct crew_member;
struct loop_task;
struct tls_buffers;

typedef void loop_function(struct loop_task *task);

/* A task to be run later; embedded in its owner, and in at most one queue. */
struct loop_task {
	struct loop_task *next;
	loop_function *run; /* NULL: not queued */
};

struct loop_queue {
	struct loop_task *first, **last;
	struct loop_task *running; /* tasks of the current run that are still to be run */
};

/*
 * What the loops of one process agree on: time in which the process was stopped (SIGSTOP, a
 * suspend of the machine) counts for none of them. The first loop that notices adds it.
 */
struct loop_clock {
	_Atomic usec_t stopped; /* sum of these times; subtracted from loop.now */
	/* The monotonic clock at the end of the last of them; 0: none. Under a lock of loop.c. */
	usec_t counted_until;
};

struct loop {
	struct event_base *base;
	struct loop_clock *clock; /* owned by the process */
	int timer_fd; /* our own timer: libevent's would read the clock many times a turn */
	struct event *timer;
	usec_t timer_due; /* when the timer expires; 0: not armed */
	usec_t now; /* time of this turn; valid if now_known */
	usec_t real; /* the monotonic clock when `now` was last read */
	usec_t may_sleep_until; /* a wait that ends much later: the process was stopped */
	/* On the monotonic clock: no deadline fires before, since the process did not run. */
	usec_t caught_up;
	bool now_known;
	bool stopping;
	uint64_t turn; /* number of turns */
	struct histogram lag; /* lengths of turns, and delays of the timer */
	/* Durations of TLS handshakes: [enum tls_side][failed 0, successful 1]. */
	struct histogram handshakes[2][2];
	/*
	 * Written by other threads, so it stands between members that a turn rarely uses: what it
	 * uses keeps its cache lines.
	 */
	struct mailbox mailbox;
	struct random random;
	int hang_ups; /* a second epoll descriptor: see loop_watch_hang_up() */
	struct event *hang_up;
	uint8_t *receive; /* LOOP_RECEIVE_HEADROOM + LOOP_RECEIVE_SIZE bytes */
	/* The most bytes that a stream receives at once; 0: as many as its caller wants. */
	size_t receive_limit;
	struct wheel wheel;
	struct slab backlogs; /* unsent bytes of streams: see net/stream */
	struct tls_buffers *tls_buffers; /* NULL until the first TLS connection */
	/* The queues of a turn, in this order. */
	struct loop_queue arrivals; /* after the events: new connections */
	struct loop_queue work; /* after the deadlines: work that follows from the events */
	struct loop_queue ending; /* at the end of the turn: deferred frees */
	struct loop_queue late; /* after one more poll: console commands */
	struct loop_task mail; /* delivers what is in the mailbox; of net/crew/crew */
	struct crew_member *member; /* of net/crew/crew; NULL: the loop is alone */
	void *owner; /* set and used by the floors above */
};

/*
 * Make a loop. The clock, all zero at first, is shared by all loops of the process and must
 * outlive them. Returns false when libevent fails, or memory or descriptors are short.
 */
bool loop_init(struct loop *loop, struct loop_clock *clock);

/* Free the contents of the loop. All streams on it must be closed before. */
void loop_free(struct loop *loop);

/*
 * Returns the processor time of the calling thread in microseconds since its start. Time spent
 * waiting does not count.
 */
usec_t loop_busy(void);

/* Run turns until loop_stop(). */
void loop_run(struct loop *loop);

/*
 * Run one turn: wait for events (only if `wait`), handle them, then run the queues. After a
 * time in which the process did not run (SIGSTOP, a suspend of the machine, no processor),
 * deadlines fire a quarter of a second later: what had arrived is handled before they are
 * judged.
 */
void loop_turn(struct loop *loop, bool wait);

/* loop_run() returns after the current turn. */
void loop_stop(struct loop *loop);

/* Run the tasks that were deferred to the end of the turn, when no more turns follow. */
void loop_end_turn(struct loop *loop);

/* Read the clock into `now`. Private: use loop_now(). */
usec_t loop_read_clock(struct loop *loop);

/*
 * Returns the monotonic time of this turn in microseconds. The clock is read once a turn, at
 * the first call. Time in which the whole process was stopped does not count, so that no
 * timeout expires because of it. It never goes back: if another loop has counted a stop after
 * this one had read the clock, time stands still here until it has caught up.
 */
static inline usec_t loop_now(struct loop *loop)
{
	return loop->now_known ? loop->now : loop_read_clock(loop);
}

/*
 * The four functions below queue a task that is not queued, and do nothing if it is. The task
 * runs once; it may free its owner.
 */

/* Run the task at the end of this turn. */
void loop_defer(struct loop *loop, struct loop_task *task, loop_function *run);

/* Run the task after the events of this turn: disconnected clients are closed by then. */
void loop_defer_arrivals(struct loop *loop, struct loop_task *task, loop_function *run);

/*
 * Run the task after the events and deadlines of this turn. Tasks that it defers in this way
 * run in the next turn, so that they cannot keep the loop from its events.
 */
void loop_defer_work(struct loop *loop, struct loop_task *task, loop_function *run);

/*
 * Run the task at the end of this turn, after one more poll, so that all events came before it.
 */
void loop_defer_late(struct loop *loop, struct loop_task *task, loop_function *run);

/* Remove a task from its queue; does nothing if it is not queued. */
void loop_forget(struct loop *loop, struct loop_task *task);

/*
 * Activate this event once when the peer of the descriptor closes or shuts down the connection,
 * even if bytes that it sent before are still unread. The event must be assigned and not added.
 * Returns false when the kernel is out of memory. libevent's EV_CLOSED cannot be used: with 2.1
 * a reset connection is not reported to an event for EV_CLOSED alone, and is reported
 * repeatedly.
 */
bool loop_watch_hang_up(struct loop *loop, int fd, struct event *event);

/* Undo loop_watch_hang_up(), before the descriptor is closed or read again. */
void loop_unwatch_hang_up(struct loop *loop, int fd, struct event *event);

static inline bool loop_task_is_queued(const struct loop_task *task)
{
	return task->run != NULL;
}

#endif
