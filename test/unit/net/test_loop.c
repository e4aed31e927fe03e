/* SPDX-License-Identifier: ISC */
#include <event2/event_struct.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/loop.h"

static struct loop loop;
static struct loop_clock loop_clock;
static char diary[64]; /* a letter for each event */

static void note(char what)
{
	const size_t length = strlen(diary);

	assert_true(length + 1 < sizeof(diary));
	diary[length] = what;
	diary[length + 1] = '\0';
}

struct job {
	struct loop_task task;
	char letter;
	struct job *more; /* queued when this one runs */
	bool more_is_late;
};

static void on_job(struct loop_task *task)
{
	struct job *job = (struct job *)task;

	note(job->letter);
	if (!job->more)
		return;
	if (job->more_is_late)
		loop_defer_late(&loop, &job->more->task, on_job);
	else
		loop_defer(&loop, &job->more->task, on_job);
}

static usec_t fake_now;

static usec_t fake_clock(void)
{
	return fake_now;
}

static int set_up(void **state)
{
	(void)state;
	alarm(20); /* a loop that waits forever fails instead of hanging */
	diary[0] = '\0';
	loop_clock = (struct loop_clock){0};
	return loop_init(&loop, &loop_clock) ? 0 : -1;
}

static int set_up_faked(void **state)
{
	fake_now = 500 * USEC_PER_SEC;
	clock_set_source(fake_clock);
	return set_up(state);
}

static int tear_down(void **state)
{
	(void)state;
	loop_free(&loop);
	clock_set_source(NULL);
	return 0;
}

static void test_deferred_tasks_run_in_order_at_the_end_of_the_turn(void **state)
{
	struct job a = {.letter = 'a'}, b = {.letter = 'b'};

	(void)state;
	loop_defer(&loop, &a.task, on_job);
	loop_defer(&loop, &b.task, on_job);
	loop_defer(&loop, &a.task, on_job);
	assert_string_equal(diary, "");
	loop_turn(&loop, false);
	assert_string_equal(diary, "ab");
	assert_false(loop_task_is_queued(&a.task));
	loop_turn(&loop, false);
	assert_string_equal(diary, "ab");
}

static void test_tasks_deferred_by_tasks_run_in_the_same_turn(void **state)
{
	struct job c = {.letter = 'c'}, b = {.letter = 'b', .more = &c},
		   a = {.letter = 'a', .more = &b};

	(void)state;
	loop_defer(&loop, &a.task, on_job);
	loop_turn(&loop, false);
	assert_string_equal(diary, "abc");
}

static void test_forgotten_task_does_not_run(void **state)
{
	struct job a = {.letter = 'a'}, b = {.letter = 'b'}, c = {.letter = 'c'};

	(void)state;
	loop_defer(&loop, &a.task, on_job);
	loop_defer(&loop, &b.task, on_job);
	loop_defer(&loop, &c.task, on_job);
	loop_forget(&loop, &b.task);
	loop_forget(&loop, &c.task);
	loop_defer(&loop, &b.task, on_job);
	loop_forget(&loop, &a.task);
	loop_turn(&loop, false);
	assert_string_equal(diary, "b");
}

/* One task removes the next one of the same run. */
static struct job *to_forget;

static void forget_another(struct loop_task *task)
{
	note(((struct job *)task)->letter);
	loop_forget(&loop, &to_forget->task);
}

static void test_task_may_forget_later_tasks(void **state)
{
	struct job a = {.letter = 'a'}, b = {.letter = 'b'}, c = {.letter = 'c'};

	(void)state;
	to_forget = &b;
	loop_defer(&loop, &a.task, forget_another);
	loop_defer(&loop, &b.task, on_job);
	loop_defer(&loop, &c.task, on_job);
	loop_turn(&loop, false);
	assert_string_equal(diary, "ac");
	diary[0] = '\0';
	to_forget = &c;
	loop_defer(&loop, &a.task, forget_another);
	loop_defer(&loop, &c.task, on_job);
	loop_turn(&loop, false);
	loop_defer(&loop, &b.task, on_job);
	loop_turn(&loop, false);
	assert_string_equal(diary, "ab");
}

static void test_turn_does_not_wait_while_tasks_are_queued(void **state)
{
	struct job b = {.letter = 'b'}, a = {.letter = 'a', .more = &b, .more_is_late = true};

	(void)state;
	loop_defer_late(&loop, &a.task, on_job);
	loop_turn(&loop, true);
	assert_string_equal(diary, "a");
	loop_turn(&loop, true);
	assert_string_equal(diary, "ab");
}

static void work_again(struct loop_task *task)
{
	note(((struct job *)task)->letter);
	if (strlen(diary) < 3)
		loop_defer_work(&loop, task, work_again);
}

static void test_work_deferred_by_work_runs_in_the_next_turn_without_waiting(void **state)
{
	struct job a = {.letter = 'a'}, b = {.letter = 'b'};

	(void)state;
	loop_defer_work(&loop, &a.task, work_again);
	loop_turn(&loop, true);
	assert_string_equal(diary, "a");
	loop_turn(&loop, true);
	assert_string_equal(diary, "aa");
	loop_defer_work(&loop, &b.task, on_job);
	loop_forget(&loop, &b.task);
	loop_turn(&loop, true);
	assert_string_equal(diary, "aaa");
}

static void on_byte(evutil_socket_t fd, short what, void *argument)
{
	char byte;

	(void)what;
	(void)argument;
	assert_int_equal(read(fd, &byte, 1), 1);
	note(byte);
}

/* Read the byte, and send another one to the descriptor. */
static void pass_byte(evutil_socket_t fd, short what, void *descriptor)
{
	on_byte(fd, what, NULL);
	assert_int_equal(write(*(int *)descriptor, "s", 1), 1);
}

static void leave_byte(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	(void)argument;
	note('n');
}

static void test_event_that_stays_ready_is_reported_once_a_turn(void **state)
{
	struct event *event;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	event = event_new(loop.base, pair[1], EV_READ | EV_PERSIST, leave_byte, NULL);
	event_add(event, NULL);
	assert_int_equal(write(pair[0], "1", 1), 1);
	loop_turn(&loop, false);
	assert_string_equal(diary, "n");
	loop_turn(&loop, true);
	assert_string_equal(diary, "nn");
	event_free(event);
	close(pair[0]);
	close(pair[1]);
}

struct nudge {
	struct loop_task task;
	int fd;
};

static void send_byte(struct loop_task *task)
{
	assert_int_equal(write(((struct nudge *)task)->fd, "e", 1), 1);
	note('d');
}

static void on_deadline(struct deadline *deadline)
{
	(void)deadline;
	note('w');
}

static void test_turn_runs_events_deadlines_deferred_poll_late(void **state)
{
	struct job late = {.letter = 'l'};
	struct deadline deadline = {.expire = on_deadline};
	struct nudge nudge = {0};
	struct event *event;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	event = event_new(loop.base, pair[1], EV_READ | EV_PERSIST, on_byte, NULL);
	event_add(event, NULL);
	nudge.fd = pair[0];
	loop_turn(&loop, false);
	loop_defer_late(&loop, &late.task, on_job);
	loop_defer(&loop, &nudge.task, send_byte);
	wheel_set(&loop.wheel, &deadline, loop_now(&loop));
	assert_int_equal(write(pair[0], "1", 1), 1);
	fake_now += USEC_PER_SEC / 5;
	loop_turn(&loop, false);
	/* What the deferred task sent was received before the late one ran. */
	assert_string_equal(diary, "1wdel");
	event_free(event);
	close(pair[0]);
	close(pair[1]);
}

static void test_time_is_constant_within_a_turn(void **state)
{
	usec_t first;

	(void)state;
	loop_turn(&loop, false);
	first = loop_now(&loop);
	fake_now += 300000;
	assert_int_equal(loop_now(&loop), first);
	loop_turn(&loop, false);
	assert_int_equal(loop_now(&loop), first + 300000);
}

static void take_three_milliseconds(struct loop_task *task)
{
	(void)task;
	fake_now += 3000;
}

static void test_turns_are_measured_to_their_end(void **state)
{
	struct loop_task task = {0};

	(void)state;
	loop_defer(&loop, &task, take_three_milliseconds);
	loop_turn(&loop, false);
	assert_int_equal(loop.lag.counts[3], 1); /* up to 5 ms */
	assert_int_equal(loop.lag.sum, 3000);
	loop_turn(&loop, false);
	assert_int_equal(loop.lag.counts[0], 1);
	assert_int_equal(histogram_count(&loop.lag), 2);
}

static void test_a_late_timer_is_measured(void **state)
{
	struct deadline deadline = {.expire = on_deadline};

	(void)state;
	wheel_set(&loop.wheel, &deadline, loop_now(&loop) + WHEEL_TICK);
	loop_turn(&loop, false);
	fake_now += WHEEL_TICK + 30000;
	loop_turn(&loop, true); /* waits until the kernel's timer wakes it */
	assert_string_equal(diary, "w");
	assert_int_equal(loop.lag.counts[6], 1); /* up to 50 ms */
	assert_int_equal(loop.lag.sum, 30000);
}

static void test_busy_time_is_processor_time(void **state)
{
	const usec_t before = loop_busy();
	volatile unsigned work = 0;

	(void)state;
	assert_true(before > 0);
	while (loop_busy() < before + 2000)
		work++;
	assert_true(work > 0);
}

static void test_time_in_which_the_process_was_stopped_does_not_count(void **state)
{
	struct deadline deadline = {.expire = on_deadline};
	usec_t before;

	(void)state;
	loop_turn(&loop, false);
	before = loop_now(&loop);
	wheel_set(&loop.wheel, &deadline, before + 2 * USEC_PER_SEC);
	/* The turn was to wait for two seconds at most, but a minute has passed. */
	loop_turn(&loop, false);
	fake_now += 60 * USEC_PER_SEC;
	loop_turn(&loop, false);
	assert_true(loop_now(&loop) <= before + 3 * USEC_PER_SEC);
	fake_now += USEC_PER_SEC / 4; /* in which only events are handled */
	loop_turn(&loop, false);
	assert_string_equal(diary, "w");
	wheel_set(&loop.wheel, &deadline, before + 20 * USEC_PER_SEC);
	loop_turn(&loop, false);
	assert_string_equal(diary, "w");
	for (int i = 0; i < 19; i++) {
		fake_now += USEC_PER_SEC;
		loop_turn(&loop, false);
	}
	assert_string_equal(diary, "ww");
}

/*
 * A client's message arrives while the process does not run, and the server answers it a
 * little later: both come before the deadline that was due meanwhile.
 */
static void test_what_arrived_is_handled_before_deadlines_after_a_late_wait(void **state)
{
	struct deadline deadline = {.expire = on_deadline};
	int client[2], server[2];
	struct event of_client, of_server;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, client), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, server), 0);
	event_assign(
		&of_client, loop.base, client[0], EV_READ | EV_PERSIST, pass_byte, &server[1]);
	event_assign(&of_server, loop.base, server[0], EV_READ | EV_PERSIST, on_byte, NULL);
	event_add(&of_client, NULL);
	event_add(&of_server, NULL);
	loop_turn(&loop, false);
	wheel_set(&loop.wheel, &deadline, loop_now(&loop) + USEC_PER_SEC / 10);
	loop_turn(&loop, false);
	assert_int_equal(write(client[1], "c", 1), 1);
	fake_now += USEC_PER_SEC / 2;
	loop_turn(&loop, false);
	assert_string_equal(diary, "c");
	loop_turn(&loop, false);
	assert_string_equal(diary, "cs");
	fake_now += USEC_PER_SEC / 4;
	loop_turn(&loop, true); /* the timer wakes it */
	assert_string_equal(diary, "csw");
	event_del(&of_client);
	event_del(&of_server);
	for (int i = 0; i < 2; i++) {
		close(client[i]);
		close(server[i]);
	}
}

static void test_deadlines_fire_on_a_machine_that_is_always_late(void **state)
{
	struct deadline deadline = {.expire = on_deadline};

	(void)state;
	loop_turn(&loop, false);
	for (int i = 0; i < 10; i++) {
		if (deadline.due == 0)
			wheel_set(&loop.wheel, &deadline, loop_now(&loop) + WHEEL_TICK);
		loop_turn(&loop, false);
		fake_now += USEC_PER_SEC / 2;
	}
	loop_turn(&loop, false);
	assert_true(strlen(diary) >= 7);
}

static void test_loops_of_a_process_count_a_stop_once(void **state)
{
	struct deadline deadline = {.expire = on_deadline}, other = {.expire = on_deadline};
	struct loop second;
	usec_t before;

	(void)state;
	assert_true(loop_init(&second, &loop_clock));
	loop_turn(&loop, false);
	before = loop_now(&loop);
	wheel_set(&loop.wheel, &deadline, before + 20 * USEC_PER_SEC);
	wheel_set(&second.wheel, &other, before + 10 * USEC_PER_SEC);
	loop_turn(&loop, false);
	loop_turn(&second, false);
	fake_now += 60 * USEC_PER_SEC;
	loop_turn(&second, false);
	loop_turn(&loop, false);
	/* The loop that was to wake first has counted the stop, and both agree. */
	assert_int_equal(loop_clock.stopped, 50 * USEC_PER_SEC);
	assert_int_equal(loop_now(&second), before + 10 * USEC_PER_SEC);
	assert_int_equal(loop_now(&loop), before + 10 * USEC_PER_SEC);
	loop_free(&second);
}

enum { STOPS = 3000 };

static pthread_barrier_t all_there;

/* The thread of a loop that wakes a minute too late again and again, as the other one does. */
static void *wake_late(void *argument)
{
	struct loop *own = argument;

	for (int i = 0; i < STOPS; i++) {
		loop_read_clock(own);
		own->may_sleep_until = own->real + USEC_PER_SEC;
		if (pthread_barrier_wait(&all_there) == PTHREAD_BARRIER_SERIAL_THREAD)
			fake_now += 61 * USEC_PER_SEC;
		pthread_barrier_wait(&all_there);
		loop_read_clock(own);
		pthread_barrier_wait(&all_there);
	}
	return NULL;
}

static void test_threads_of_a_process_count_a_stop_once(void **state)
{
	const usec_t before = fake_now;
	struct loop second;
	pthread_t thread;

	(void)state;
	assert_true(loop_init(&second, &loop_clock));
	loop_clock.stopped = 0;
	assert_int_equal(pthread_barrier_init(&all_there, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, wake_late, &second), 0);
	wake_late(&loop);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&all_there);
	assert_int_equal(loop_clock.stopped, STOPS * 60 * USEC_PER_SEC);
	assert_int_equal(loop_now(&loop), before + STOPS * USEC_PER_SEC);
	assert_int_equal(loop_now(&second), before + STOPS * USEC_PER_SEC);
	loop_free(&second);
}

/* The second loop, which has no deadline, reads the clock before the first notices the stop. */
static void test_time_does_not_go_back_when_another_loop_counts_a_stop(void **state)
{
	struct deadline deadline = {.expire = on_deadline}, other = {.expire = on_deadline};
	struct itimerspec left;
	struct loop second;
	usec_t before;

	(void)state;
	assert_true(loop_init(&second, &loop_clock));
	loop_turn(&loop, false);
	before = loop_now(&loop);
	wheel_set(&loop.wheel, &deadline, before + 10 * USEC_PER_SEC);
	loop_turn(&loop, false);
	loop_turn(&second, false);
	fake_now += 60 * USEC_PER_SEC;
	loop_turn(&second, false);
	loop_turn(&loop, false);
	assert_int_equal(loop_now(&loop), before + 10 * USEC_PER_SEC);
	fake_now += 20 * USEC_PER_SEC;
	loop_turn(&second, false);
	assert_int_equal(loop_now(&second), before + 60 * USEC_PER_SEC);
	/* Its time will stand still for 30 seconds more: the timer waits for them too. */
	wheel_set_exact(&second.wheel, &other, loop_now(&second) + 5 * USEC_PER_SEC);
	loop_turn(&second, false);
	assert_int_equal(timerfd_gettime(second.timer_fd, &left), 0);
	assert_in_range(left.it_value.tv_sec, 34, 35);
	fake_now += 35 * USEC_PER_SEC;
	loop_turn(&second, false);
	assert_string_equal(diary, "w");
	assert_int_equal(loop_now(&second), before + 65 * USEC_PER_SEC);
	loop_free(&second);
}

static void test_long_wait_without_deadlines_counts(void **state)
{
	usec_t before;

	(void)state;
	loop_turn(&loop, false);
	before = loop_now(&loop);
	fake_now += 3600 * USEC_PER_SEC;
	loop_turn(&loop, false);
	assert_int_equal(loop_now(&loop), before + 3600 * USEC_PER_SEC);
}

static void test_deadline_wakes_a_waiting_turn(void **state)
{
	struct deadline deadline = {.expire = on_deadline};
	usec_t before = clock_monotonic();

	(void)state;
	wheel_set(&loop.wheel, &deadline, loop_now(&loop) + 1000);
	for (int turns = 0; diary[0] == '\0'; turns++) {
		loop_turn(&loop, true);
		/* The kernel's coarse clock may end the wait a little too early. */
		assert_true(turns < 5);
	}
	assert_true(clock_monotonic() >= before + 1000);
}

static void stop_loop(struct loop_task *task)
{
	(void)task;
	loop_stop(&loop);
}

static void test_loop_runs_until_it_is_stopped(void **state)
{
	struct job a = {.letter = 'a'};
	struct loop_task stop = {0};

	(void)state;
	loop_defer(&loop, &a.task, on_job);
	loop_defer_late(&loop, &stop, stop_loop);
	loop_run(&loop);
	assert_string_equal(diary, "a");
}

static void on_hang_up(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)argument;
	assert_int_equal(what, EV_CLOSED);
	note('g');
}

/*
 * Watch one end of a socket pair, with a byte unread, while `act` does something to the other.
 */
static void watch_one(void (*act)(int fd), const char *expected)
{
	struct event event;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(write(pair[0], "x", 1), 1);
	event_assign(&event, loop.base, -1, 0, on_hang_up, NULL);
	assert_true(loop_watch_hang_up(&loop, pair[1], &event));
	loop_turn(&loop, false);
	assert_string_equal(diary, "");
	act(pair[0]);
	for (int i = 0; i < 3; i++)
		loop_turn(&loop, false);
	assert_string_equal(diary, expected);
	loop_unwatch_hang_up(&loop, pair[1], &event);
	loop_turn(&loop, false);
	close(pair[0]);
	close(pair[1]);
}

static void keep_open(int fd)
{
	(void)fd;
}

static void shut_down_writing(int fd)
{
	shutdown(fd, SHUT_WR);
}

/* Close the end but keep the number in use, for the close() that follows. */
static void close_it(int fd)
{
	dup2(STDERR_FILENO, fd);
}

static void test_hang_up_is_reported_once_even_with_unread_bytes(void **state)
{
	(void)state;
	watch_one(keep_open, "");
	watch_one(shut_down_writing, "g");
	diary[0] = '\0';
	watch_one(close_it, "g");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_turns_are_measured_to_their_end, set_up_faked, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_late_timer_is_measured, set_up_faked, tear_down),
		cmocka_unit_test_setup_teardown(
			test_busy_time_is_processor_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_deferred_tasks_run_in_order_at_the_end_of_the_turn, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_tasks_deferred_by_tasks_run_in_the_same_turn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_forgotten_task_does_not_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_task_may_forget_later_tasks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_turn_does_not_wait_while_tasks_are_queued, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_work_deferred_by_work_runs_in_the_next_turn_without_waiting,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_event_that_stays_ready_is_reported_once_a_turn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_turn_runs_events_deadlines_deferred_poll_late, set_up_faked,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_time_is_constant_within_a_turn, set_up_faked, tear_down),
		cmocka_unit_test_setup_teardown(
			test_time_in_which_the_process_was_stopped_does_not_count, set_up_faked,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_arrived_is_handled_before_deadlines_after_a_late_wait,
			set_up_faked, tear_down),
		cmocka_unit_test_setup_teardown(
			test_deadlines_fire_on_a_machine_that_is_always_late, set_up_faked,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_loops_of_a_process_count_a_stop_once, set_up_faked, tear_down),
		cmocka_unit_test_setup_teardown(
			test_threads_of_a_process_count_a_stop_once, set_up_faked, tear_down),
		cmocka_unit_test_setup_teardown(
			test_time_does_not_go_back_when_another_loop_counts_a_stop,
			set_up_faked, tear_down),
		cmocka_unit_test_setup_teardown(
			test_long_wait_without_deadlines_counts, set_up_faked, tear_down),
		cmocka_unit_test_setup_teardown(
			test_deadline_wakes_a_waiting_turn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_loop_runs_until_it_is_stopped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_hang_up_is_reported_once_even_with_unread_bytes, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
