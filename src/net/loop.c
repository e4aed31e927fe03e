/* SPDX-License-Identifier: ISC */
#include "net/loop.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "net/crew/own_loop.h"
#include "net/stream_backlog.h"
#include "net/tls_buffers.h"

/* A turn that is this much too late means that the process was stopped (SIGSTOP, a suspend). */
#define STOPPED_AFTER USEC_PER_SEC

/*
 * A wait that ends this much too late: the process did not run for a while. What peers have
 * sent meanwhile waits in the sockets, so deadlines are judged only after CATCH_UP_TIME, in
 * which messages and the answers to them are handled. On a machine that is always late there is
 * a CATCH_UP_PAUSE between two of these, in which deadlines fire as usual.
 */
#define LATE_AFTER (USEC_PER_SEC / 4)
#define CATCH_UP_TIME (USEC_PER_SEC / 4)
#define CATCH_UP_PAUSE (2 * USEC_PER_SEC)

/* Most hang-ups that are handled per event. */
enum { HANG_UPS_MOST = 256 };

static void queue_init(struct loop_queue *queue)
{
	*queue = (struct loop_queue){.last = &queue->first};
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
	struct loop *loop = argument;
	uint64_t expirations;

	(void)what;
	/* Every turn runs the wheel, so there is nothing else to do here. */
	if (read(fd, &expirations, sizeof(expirations)) < 0 || loop->timer_due == 0)
		return;
	histogram_add(&loop->lag, loop_now(loop) - loop->timer_due);
	loop->timer_due = 0;
}

/* Write libevent's messages to our log. */
static void on_libevent_log(int severity, const char *text)
{
	log_write(
		severity >= EVENT_LOG_WARN ? LEVEL_WARNING : LEVEL_DEBUG, "libevent: %s", text);
}

/*
 * Fetch one hang-up at a time and activate its event at once: no handler can close the stream
 * in between.
 */
static void on_hang_ups(evutil_socket_t fd, short what, void *argument)
{
	struct epoll_event found;

	(void)what;
	(void)argument;
	for (int i = 0; i < HANG_UPS_MOST && epoll_wait(fd, &found, 1, 0) == 1; i++)
		event_active(found.data.ptr, EV_CLOSED, 0);
}

bool loop_watch_hang_up(struct loop *loop, int fd, struct event *event)
{
	struct epoll_event wanted = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = event};

	return epoll_ctl(loop->hang_ups, EPOLL_CTL_ADD, fd, &wanted) == 0;
}

void loop_unwatch_hang_up(struct loop *loop, int fd, struct event *event)
{
	epoll_ctl(loop->hang_ups, EPOLL_CTL_DEL, fd, NULL);
	event_del(event);
}

static void free_parts(struct loop *loop)
{
	if (loop->timer)
		event_free(loop->timer);
	if (loop->hang_up)
		event_free(loop->hang_up);
	if (loop->base)
		event_base_free(loop->base);
	if (loop->hang_ups >= 0)
		close(loop->hang_ups);
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	free(loop->receive);
	*loop = (struct loop){.hang_ups = -1, .timer_fd = -1};
}

bool loop_init(struct loop *loop, struct loop_clock *clock)
{
	struct event_config *config = event_config_new();

	*loop = (struct loop){.clock = clock, .hang_ups = -1, .timer_fd = -1};
	event_set_log_callback(on_libevent_log);
	if (!config)
		return false;
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME);
	loop->base = event_base_new_with_config(config);
	event_config_free(config);
	loop->receive = malloc(LOOP_RECEIVE_HEADROOM + LOOP_RECEIVE_SIZE);
	loop->hang_ups = epoll_create1(EPOLL_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!loop->base || !loop->receive || loop->hang_ups < 0 || loop->timer_fd < 0)
		goto failed;
	loop->timer =
		event_new(loop->base, loop->timer_fd, EV_READ | EV_PERSIST, on_timer, loop);
	loop->hang_up =
		event_new(loop->base, loop->hang_ups, EV_READ | EV_PERSIST, on_hang_ups, loop);
	if (!loop->timer || !loop->hang_up || event_add(loop->hang_up, NULL) != 0 ||
		event_add(loop->timer, NULL) != 0)
		goto failed;
	queue_init(&loop->arrivals);
	queue_init(&loop->work);
	queue_init(&loop->ending);
	queue_init(&loop->late);
	random_init(&loop->random);
	slab_init(&loop->backlogs, "backlog_cache", sizeof(struct backlog));
	loop->real = clock_monotonic();
	loop->may_sleep_until = loop->real;
	wheel_init(&loop->wheel, loop_now(loop));
	return true;
failed:
	free_parts(loop);
	return false;
}

void loop_free(struct loop *loop)
{
	slab_destroy(&loop->backlogs);
	tls_buffers_free(loop->tls_buffers);
	random_wipe(&loop->random);
	free_parts(loop);
}

/*
 * Each part of a stop counts once: another loop may have noticed it before. The lock makes this
 * thread wait until the other one has added it, so that no loop reads a time that leaps.
 */
static void count_stop(struct loop_clock *clock, usec_t begin, usec_t end)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (begin < clock->counted_until)
		begin = clock->counted_until;
	if (begin < end) {
		/* Relaxed: `stopped` orders nothing else; the lock orders the two of them. */
		atomic_fetch_add_explicit(&clock->stopped, end - begin, memory_order_relaxed);
		clock->counted_until = end;
	}
	pthread_mutex_unlock(&lock);
}

static usec_t time_stopped(const struct loop *loop)
{
	/* Relaxed: a loop that does not notice a stop may learn of it a little later. */
	return atomic_load_explicit(&loop->clock->stopped, memory_order_relaxed);
}

static bool is_catching_up(const struct loop *loop)
{
	return loop->real < loop->caught_up;
}

/*
 * The wait was to end at this time, and has ended at least LATE_AFTER later. Rare, and kept
 * apart: loop_read_clock() would save registers for it in every turn.
 */
static __attribute__((noinline)) void note_late(struct loop *loop, usec_t expected)
{
	if (loop->real > expected + STOPPED_AFTER)
		count_stop(loop->clock, expected, loop->real);
	if (loop->real > loop->caught_up + CATCH_UP_PAUSE)
		loop->caught_up = loop->real + CATCH_UP_TIME;
}

usec_t loop_read_clock(struct loop *loop)
{
	const usec_t real = clock_monotonic();
	const usec_t until = loop->may_sleep_until;
	const usec_t expected = until > loop->real ? until : loop->real;
	usec_t now;

	OWN_LOOP(loop);
	loop->real = real;
	loop->may_sleep_until = 0; /* a turn may work for as long as it needs */
	if (real > expected + LATE_AFTER && until != 0)
		note_late(loop, expected);
	now = loop->real - time_stopped(loop);
	/* It is less if another loop has counted a stop since. */
	loop->now = now > loop->now ? now : loop->now;
	loop->now_known = true;
	return loop->now;
}

void loop_stop(struct loop *loop)
{
	loop->stopping = true;
}

static void enqueue(struct loop_queue *queue, struct loop_task *task, loop_function *run)
{
	if (loop_task_is_queued(task))
		return;
	task->run = run;
	task->next = NULL;
	*queue->last = task;
	queue->last = &task->next;
}

void loop_defer(struct loop *loop, struct loop_task *task, loop_function *run)
{
	OWN_LOOP(loop);
	enqueue(&loop->ending, task, run);
}

void loop_defer_arrivals(struct loop *loop, struct loop_task *task, loop_function *run)
{
	OWN_LOOP(loop);
	enqueue(&loop->arrivals, task, run);
}

void loop_defer_work(struct loop *loop, struct loop_task *task, loop_function *run)
{
	OWN_LOOP(loop);
	enqueue(&loop->work, task, run);
}

void loop_defer_late(struct loop *loop, struct loop_task *task, loop_function *run)
{
	OWN_LOOP(loop);
	enqueue(&loop->late, task, run);
}

static bool take_out(
	struct loop_task **first, const struct loop_task *task, struct loop_task ***last)
{
	for (struct loop_task **at = first; *at; at = &(*at)->next) {
		if (*at != task)
			continue;
		*at = task->next;
		if (last && *last == &task->next)
			*last = at;
		return true;
	}
	return false;
}

static bool take_out_of_queue(struct loop_queue *queue, const struct loop_task *task)
{
	return take_out(&queue->first, task, &queue->last) ||
		take_out(&queue->running, task, NULL);
}

void loop_forget(struct loop *loop, struct loop_task *task)
{
	OWN_LOOP(loop);
	if (!loop_task_is_queued(task))
		return;
	if (!take_out_of_queue(&loop->ending, task) && !take_out_of_queue(&loop->late, task) &&
		!take_out_of_queue(&loop->arrivals, task))
		take_out_of_queue(&loop->work, task);
	task->run = NULL;
}

/* Run the tasks that are in the queue now; tasks added meanwhile wait for the next run. */
static void run_queue(struct loop_queue *queue)
{
	queue->running = queue->first;
	queue->first = NULL;
	queue->last = &queue->first;
	while (queue->running) {
		struct loop_task *task = queue->running;
		loop_function *run = task->run;

		queue->running = task->next;
		task->next = NULL;
		task->run = NULL;
		run(task);
	}
}

/* Deferred frees may defer others: run all, so that no closed link is left after the turn. */
static void run_endings(struct loop *loop)
{
	while (loop->ending.first)
		run_queue(&loop->ending);
}

void loop_end_turn(struct loop *loop)
{
	run_endings(loop);
}

/* When to run the wheel next; 0: never. */
static usec_t next_due(struct loop *loop)
{
	const usec_t due = wheel_next(&loop->wheel);
	const usec_t now = loop_now(loop);

	if (due == 0 || !is_catching_up(loop) || due > now + loop->caught_up - loop->real)
		return due;
	return now + loop->caught_up - loop->real;
}

/* Sleep no longer than until the next deadline. */
static void arm_timer(struct loop *loop)
{
	const usec_t due = next_due(loop);
	/* On the monotonic clock, since loop_now() may stand still. */
	const usec_t wake = due + time_stopped(loop);
	const usec_t left = wake - loop->real;
	struct itimerspec wait = {0};

	loop->may_sleep_until = due == 0 ? 0 : wake > loop->real ? wake : loop->real;
	if (due == loop->timer_due)
		return;
	loop->timer_due = due;
	if (due != 0 && left > 0) {
		wait.it_value.tv_sec = left / USEC_PER_SEC;
		wait.it_value.tv_nsec = left % USEC_PER_SEC * 1000;
	} else if (due != 0) {
		wait.it_value.tv_nsec = 1; /* at once: 0 would disarm the timer */
	}
	timerfd_settime(loop->timer_fd, 0, &wait, NULL);
}

usec_t loop_busy(void)
{
	struct timespec spent = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
	return spent.tv_sec * USEC_PER_SEC + spent.tv_nsec / 1000;
}

/*
 * Measuring the turn costs one more reading of the clock: a long turn delays all connections.
 */
static void note_length(struct loop *loop)
{
	histogram_add(&loop->lag, clock_monotonic() - loop->real);
}

/* EVLOOP_ONCE also without waiting: EVLOOP_NONBLOCK alone polls until no event is left. */
static void poll_events(struct loop *loop, bool wait)
{
	event_base_loop(loop->base, EVLOOP_ONCE | (wait ? 0 : EVLOOP_NONBLOCK));
}

void loop_turn(struct loop *loop, bool wait)
{
	usec_t now;

	arm_timer(loop);
	loop->turn++;
	loop->now_known = false;
	/*
	 * Do not wait if tasks are queued: between turns, or by late tasks and work of the last
	 * turn.
	 */
	wait = wait && !loop->ending.first && !loop->late.first && !loop->work.first &&
		!loop->arrivals.first;
	poll_events(loop, wait);
	mailbox_set_awake(&loop->mailbox);
	run_queue(&loop->arrivals);
	now = loop_now(loop);
	if (!is_catching_up(loop))
		wheel_run(&loop->wheel, now);
	run_queue(&loop->work);
	run_endings(loop);
	if (loop->late.first) {
		poll_events(loop, false);
		run_endings(loop);
		run_queue(&loop->late);
		run_endings(loop);
	}
	note_length(loop);
}

void loop_run(struct loop *loop)
{
	while (!loop->stopping)
		loop_turn(loop, true);
}
