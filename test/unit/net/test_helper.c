/* SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/helper.h"

static struct loop loop;
static struct loop_clock loop_clock;
static struct helper *helper;

/* A gate that blocks work() until the test opens it. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool gate_is_shut;
static atomic_int worked, running, most_running;

static void shut_gate(bool shut)
{
	pthread_mutex_lock(&gate);
	gate_is_shut = shut;
	pthread_cond_broadcast(&gate_moved);
	pthread_mutex_unlock(&gate);
}

static void pass_gate(void)
{
	pthread_mutex_lock(&gate);
	while (gate_is_shut)
		pthread_cond_wait(&gate_moved, &gate);
	pthread_mutex_unlock(&gate);
}

static void wait_for(atomic_int *count, int least)
{
	while (atomic_load(count) < least)
		sched_yield();
}

struct sum {
	struct helper_job job;
	int a, b, total, number;
	pthread_t worker;
	bool signals_blocked;
};

static int done_count, cancelled_count;
static int last_number;
static int last_total;
static bool done_on_loop, worked_elsewhere, signals_blocked;
static pthread_t loop_thread;

static void work(struct helper_job *job)
{
	struct sum *sum = (struct sum *)job;
	sigset_t mask;
	int now = atomic_fetch_add(&running, 1) + 1;
	int most = atomic_load(&most_running);

	while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now))
		;
	pass_gate();
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	sum->signals_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGHUP) &&
		sigismember(&mask, SIGINT);
	sum->total = sum->a + sum->b;
	sum->worker = pthread_self();
	atomic_fetch_add(&worked, 1);
	atomic_fetch_sub(&running, 1);
}

static void done(struct helper_job *job)
{
	struct sum *sum = (struct sum *)job;

	done_count++;
	cancelled_count += job->cancelled;
	last_number = sum->number;
	last_total = sum->total;
	done_on_loop = pthread_equal(pthread_self(), loop_thread);
	if (!job->cancelled) {
		worked_elsewhere = !pthread_equal(sum->worker, loop_thread);
		signals_blocked = sum->signals_blocked;
	}
	free(sum);
}

static struct sum *sum_new(int a, int b, int number)
{
	struct sum *sum = calloc(1, sizeof(*sum));

	assert_non_null(sum);
	sum->job = (struct helper_job){.work = work, .done = done};
	sum->number = number;
	sum->a = a;
	sum->b = b;
	return sum;
}

static bool submit(int a, int b, int number)
{
	struct sum *sum = sum_new(a, b, number);

	if (helper_submit(helper, &sum->job))
		return true;
	free(sum);
	return false;
}

static void turn_until_done(int count)
{
	while (done_count < count)
		loop_turn(&loop, true);
}

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	done_count = cancelled_count = 0;
	atomic_store(&worked, 0);
	atomic_store(&running, 0);
	atomic_store(&most_running, 0);
	loop_thread = pthread_self();
	return loop_init(&loop, &loop_clock) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	(void)helper_leave(helper);
	helper = NULL;
	loop_free(&loop);
	return 0;
}

static void test_work_runs_on_a_thread_and_done_on_the_loop(void **state)
{
	(void)state;
	helper = helper_new(&loop, 2, 10);
	assert_non_null(helper);
	assert_true(submit(20, 22, 1234));
	assert_int_equal(done_count, 0);
	assert_int_equal(helper_pending(helper), 1);
	turn_until_done(1);
	assert_int_equal(last_total, 42);
	assert_true(last_number == 1234);
	assert_true(done_on_loop);
	assert_true(worked_elsewhere);
	assert_int_equal(helper_pending(helper), 0);
	assert_int_equal(cancelled_count, 0);
}

static void test_signals_are_not_delivered_to_threads(void **state)
{
	sigset_t before, after;

	(void)state;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	helper = helper_new(&loop, 1, 1);
	assert_true(submit(1, 1, 1));
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	turn_until_done(1);
	assert_true(signals_blocked);
	assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

static void test_full_queue_refuses_a_job(void **state)
{
	(void)state;
	helper = helper_new(&loop, 1, 3);
	shut_gate(true);
	assert_true(submit(1, 0, 1));
	assert_true(submit(2, 0, 2));
	assert_true(submit(3, 0, 3));
	assert_false(submit(4, 0, 4));
	shut_gate(false);
	turn_until_done(3);
	assert_true(submit(4, 0, 4));
	turn_until_done(4);
	assert_true(last_number == 4);
}

static void test_helper_without_a_queue_refuses_all_jobs(void **state)
{
	(void)state;
	helper = helper_new(&loop, 1, 0);
	assert_false(submit(1, 0, 1));
}

static void test_jobs_run_on_no_more_threads_than_allowed(void **state)
{
	(void)state;
	helper = helper_new(&loop, 3, 100);
	shut_gate(true);
	for (int i = 0; i < 50; i++)
		assert_true(submit(i, 0, 1));
	wait_for(&running, 3);
	shut_gate(false);
	turn_until_done(50);
	assert_int_equal(atomic_load(&most_running), 3);
	assert_int_equal(atomic_load(&worked), 50);
}

static void test_many_jobs_in_small_batches_are_all_done(void **state)
{
	int submitted = 0;

	(void)state;
	helper = helper_new(&loop, 2, 16);
	while (submitted < 5000) {
		while (submitted < 5000 && submit(submitted, 0, 1))
			submitted++;
		loop_turn(&loop, true);
	}
	turn_until_done(5000);
	assert_int_equal(atomic_load(&worked), 5000);
	assert_int_equal(helper_pending(helper), 0);
}

static void submit_another(struct helper_job *job)
{
	done(job);
	assert_true(submit(5, 5, 99));
}

static void test_done_may_submit_the_next_job(void **state)
{
	struct sum *sum = sum_new(1, 1, 1);

	(void)state;
	helper = helper_new(&loop, 1, 1);
	sum->job.done = submit_another;
	assert_true(helper_submit(helper, &sum->job));
	turn_until_done(2);
	assert_int_equal(last_total, 10);
}

static atomic_int ended_elsewhere;

static void done_anywhere(struct helper_job *job)
{
	if (pthread_equal(pthread_self(), loop_thread))
		done(job);
	else if (job->cancelled) {
		free(job);
		atomic_fetch_add(&ended_elsewhere, 1);
	}
}

static void test_leave_does_not_wait_for_running_jobs(void **state)
{
	(void)state;
	helper = helper_new(&loop, 1, 10);
	shut_gate(true);
	for (int i = 0; i < 5; i++) {
		struct sum *sum = sum_new(1, 0, 2);

		sum->job.done = done_anywhere;
		assert_true(helper_submit(helper, &sum->job));
	}
	wait_for(&running, 1);
	assert_int_equal(helper_leave(helper), 1); /* while the gate is shut */
	helper = NULL;
	assert_int_equal(cancelled_count, 4);
	assert_int_equal(atomic_load(&ended_elsewhere), 0);
	/* The running job ends later, on its thread. */
	shut_gate(false);
	wait_for(&ended_elsewhere, 1);
	assert_int_equal(cancelled_count, 4);
}

static void test_leave_frees_an_idle_helper(void **state)
{
	(void)state;
	helper = helper_new(&loop, 1, 10);
	assert_true(submit(1, 0, 2));
	turn_until_done(1);
	assert_int_equal(helper_leave(helper), 0);
	assert_int_equal(helper_leave(NULL), 0);
	helper = NULL;
	assert_int_equal(cancelled_count, 0);
}

static pthread_key_t own_key;
static atomic_int threads_ended;

/*
 * The last act of a thread; slow, so that a helper_leave() that does not wait returns earlier.
 */
static void end_thread(void *own)
{
	(void)own;
	for (int i = 0; i < 10; i++)
		sched_yield();
	atomic_fetch_add(&threads_ended, 1);
}

static void work_and_remember(struct helper_job *job)
{
	work(job);
	assert_int_equal(pthread_setspecific(own_key, &own_key), 0);
}

/* Otherwise a leak checker at the end of the process would report the memory of the threads. */
static void test_leave_waits_for_idle_threads(void **state)
{
	(void)state;
	assert_int_equal(pthread_key_create(&own_key, end_thread), 0);
	helper = helper_new(&loop, 3, 10);
	shut_gate(true);
	for (int i = 0; i < 3; i++) {
		struct sum *sum = sum_new(1, 0, 2);

		sum->job.work = work_and_remember;
		assert_true(helper_submit(helper, &sum->job));
	}
	wait_for(&running, 3);
	shut_gate(false);
	turn_until_done(3);
	(void)helper_leave(helper);
	helper = NULL;
	assert_int_equal(atomic_load(&threads_ended), 3);
	pthread_key_delete(own_key);
}

static void test_helper_without_jobs_starts_no_thread(void **state)
{
	(void)state;
	helper = helper_new(&loop, 4, 10);
	loop_turn(&loop, false);
	assert_int_equal(helper_pending(helper), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_work_runs_on_a_thread_and_done_on_the_loop),
		TEST(test_signals_are_not_delivered_to_threads),
		TEST(test_full_queue_refuses_a_job),
		TEST(test_helper_without_a_queue_refuses_all_jobs),
		TEST(test_jobs_run_on_no_more_threads_than_allowed),
		TEST(test_many_jobs_in_small_batches_are_all_done),
		TEST(test_done_may_submit_the_next_job),
		TEST(test_leave_does_not_wait_for_running_jobs),
		TEST(test_leave_frees_an_idle_helper),
		TEST(test_leave_waits_for_idle_threads),
		TEST(test_helper_without_jobs_starts_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
