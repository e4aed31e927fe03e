/* SPDX-License-Identifier: ISC */
/* Threads may not fail an assertion: they write down what they see, and the test looks at it. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/crew/crew.h"

enum { LOOPS = 4, BALLS = 50 };

static struct loop loops[LOOPS];
static struct loop_clock loop_clock;
static struct crew crew;
static pthread_t main_thread;

/* The threads that pthread_create() still makes; the linker wraps it. */
static int threads_left;
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
	void *(*run)(void *), void *argument)
{
	if (threads_left-- <= 0)
		return EAGAIN;
	return __real_pthread_create(thread, attributes, run, argument);
}

static void init(unsigned count)
{
	struct loop *const all[LOOPS] = {&loops[0], &loops[1], &loops[2], &loops[3]};

	assert_true(crew_init(&crew, all, count));
}

static void start(unsigned count)
{
	init(count);
	assert_true(crew_start(&crew));
}

static int set_up(void **state)
{
	(void)state;
	alarm(120); /* a lost wake-up fails instead of hanging */
	threads_left = LOOPS;
	main_thread = pthread_self();
	for (int i = 0; i < LOOPS; i++)
		if (!loop_init(&loops[i], &loop_clock))
			return -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (crew.members) {
		crew_stop(&crew);
		crew_free(&crew);
	}
	for (int i = 0; i < LOOPS; i++)
		loop_free(&loops[i]);
	return 0;
}

static void wait_for(atomic_int *count, int least)
{
	while (atomic_load(count) < least)
		sched_yield();
}

static void wait_until_asleep(struct loop *loop)
{
	while (!atomic_load(&loop->mailbox.asleep))
		sched_yield();
}

/* --- mail --------------------------------------------------------------------------------- */

static atomic_int delivered, wrong_thread;

static void count(struct mail *mail, struct loop *loop)
{
	(void)mail;
	if (!crew_is_own(loop))
		atomic_fetch_add(&wrong_thread, 1);
	atomic_fetch_add(&delivered, 1);
}

/* A letter that makes a thread write many letters to loop 0. */
enum { LETTERS = 20000 };

struct letter {
	struct mail mail;
	int number;
	int *last; /* of this sender, that has been delivered */
};

struct order {
	struct mail mail;
	struct letter *letters;
};

static int received, disorders;

static void read_letter(struct mail *mail, struct loop *loop)
{
	struct letter *letter = (struct letter *)mail;

	if (letter->number != ++*letter->last || loop != &loops[0])
		disorders++;
	received++;
}

static void write_letters(struct mail *mail, struct loop *loop)
{
	(void)loop;
	for (int i = 0; i < LETTERS; i++)
		crew_post(&loops[0], &((struct order *)mail)->letters[i].mail);
}

static void test_many_senders_lose_nothing_and_keep_their_order(void **state)
{
	struct letter *letters = calloc((LOOPS - 1) * LETTERS, sizeof(*letters));
	struct order orders[LOOPS - 1];
	int last[LOOPS - 1] = {0};

	(void)state;
	assert_non_null(letters);
	received = disorders = 0;
	start(LOOPS);
	for (int i = 0; i < (LOOPS - 1) * LETTERS; i++)
		letters[i] = (struct letter){
			.mail.deliver = read_letter,
			.number = i % LETTERS + 1,
			.last = &last[i / LETTERS],
		};
	for (int i = 0; i < LOOPS - 1; i++) {
		orders[i] = (struct order){
			.mail.deliver = write_letters,
			.letters = &letters[i * LETTERS],
		};
		crew_post(&loops[i + 1], &orders[i].mail);
	}
	while (received < (LOOPS - 1) * LETTERS)
		crew_turn(&loops[0], true);
	assert_int_equal(disorders, 0);
	free(letters);
}

static void test_mail_wakes_a_sleeping_loop(void **state)
{
	struct mail mail = {.deliver = count};
	struct crew_figures figures;

	(void)state;
	atomic_store(&delivered, 0);
	start(2);
	wait_until_asleep(&loops[1]);
	crew_post(&loops[1], &mail);
	wait_for(&delivered, 1);
	crew_still(&crew);
	crew_figures(&loops[1], &figures);
	assert_int_equal(figures.mails, 1);
	assert_true(figures.wake_ups >= 1);
	assert_true(figures.turns >= 1);
	assert_int_equal(atomic_load(&wrong_thread), 0);
	crew_resume(&crew);
}

/* A gate that keeps a thread in its turn until the test opens it. */
static atomic_int at_gate, gate_open;

static void stay_at_gate(struct mail *mail, struct loop *loop)
{
	(void)mail;
	(void)loop;
	atomic_fetch_add(&at_gate, 1);
	wait_for(&gate_open, 1);
}

static void work_at_gate(struct loop_task *task)
{
	(void)task;
	stay_at_gate(NULL, NULL);
}

static void on_gate(evutil_socket_t fd, short what, void *argument)
{
	static struct loop_task task;
	char byte;

	(void)what;
	if (read(fd, &byte, 1) == 1)
		loop_defer_work(argument, &task, work_at_gate);
}

static void shut_gate(void)
{
	atomic_store(&at_gate, 0);
	atomic_store(&gate_open, 0);
}

static struct crew_figures seen_figures;

static void look_at_figures(struct mail *mail, struct loop *loop)
{
	crew_figures(loop, &seen_figures);
	count(mail, loop);
}

static void test_a_loop_that_is_awake_is_not_woken(void **state)
{
	struct mail mails[20];
	struct event *event;
	int fds[2];

	(void)state;
	atomic_store(&delivered, 0);
	shut_gate();
	assert_int_equal(pipe(fds), 0);
	init(2);
	event = event_new(loops[1].base, fds[0], EV_READ | EV_PERSIST, on_gate, &loops[1]);
	event_add(event, NULL);
	assert_true(crew_start(&crew));
	wait_until_asleep(&loops[1]);
	assert_int_equal(write(fds[1], "x", 1), 1);
	wait_for(&at_gate, 1);
	for (int i = 0; i < 20; i++) {
		mails[i] = (struct mail){.deliver = look_at_figures};
		crew_post(&loops[1], &mails[i]);
	}
	atomic_store(&gate_open, 1);
	wait_for(&delivered, 20);
	crew_still(&crew);
	assert_int_equal(seen_figures.mails, 20);
	assert_int_equal(seen_figures.wake_ups, 0);
	event_free(event);
	crew_resume(&crew);
	close(fds[0]);
	close(fds[1]);
}

/* A ball is thrown from loop to loop, `left` times. */
struct ball {
	struct mail mail;
	int left;
	unsigned from, to; /* indices of loops */
};

static atomic_int landed;

static void throw_back(struct mail *mail, struct loop *loop)
{
	struct ball *ball = (struct ball *)mail;
	const unsigned here = ball->to;

	if (loop != &loops[here] || !crew_is_own(loop))
		atomic_fetch_add(&wrong_thread, 1);
	if (ball->left-- == 0) {
		atomic_fetch_add(&landed, 1);
		return;
	}
	ball->to = ball->from;
	ball->from = here;
	crew_post(&loops[ball->to], mail);
}

static void throw_first(struct ball *ball, int times, unsigned from, unsigned to)
{
	*ball = (struct ball){{.deliver = throw_back}, .left = times, .from = from, .to = to};
	crew_post(&loops[to], &ball->mail);
}

static void test_no_wake_up_is_lost_between_two_that_answer(void **state)
{
	struct ball ball;

	(void)state;
	atomic_store(&landed, 0);
	start(2);
	throw_first(&ball, 199999, 0, 1); /* lands at loop 0 */
	while (atomic_load(&landed) == 0)
		crew_turn(&loops[0], true);
	assert_int_equal(atomic_load(&wrong_thread), 0);
}

/* Send the next mail just when the receiver, awake, has handled the one before. */
enum { NEAR_MISSES = 200000 };

static void send_near_misses(struct mail *mail, struct loop *loop)
{
	static struct mail next;
	unsigned random = 1;

	(void)mail;
	(void)loop;
	next.deliver = count;
	for (int i = 0; i < NEAR_MISSES; i++) {
		random = random * 1103515245 + 12345;
		for (volatile unsigned spins = random >> 16 & 255; spins > 0; spins--)
			;
		crew_post(&loops[0], &next);
		for (int spins = 0; atomic_load(&delivered) <= i; spins++)
			if (spins > 10000)
				sched_yield();
	}
}

static void test_no_wake_up_is_lost_by_a_loop_that_falls_asleep(void **state)
{
	struct mail mail = {.deliver = send_near_misses};

	(void)state;
	atomic_store(&delivered, 0);
	start(2);
	crew_post(&loops[1], &mail);
	while (atomic_load(&delivered) < NEAR_MISSES)
		crew_turn(&loops[0], true);
}

static void post_again(struct mail *mail, struct loop *loop)
{
	mail->deliver = count;
	crew_post(loop, mail);
}

static void test_loop_may_send_mail_to_itself(void **state)
{
	struct mail mail = {.deliver = post_again};

	(void)state;
	atomic_store(&delivered, 0);
	start(2);
	crew_post(&loops[1], &mail);
	wait_for(&delivered, 1);
}

/* --- stillness ---------------------------------------------------------------------------- */

/* A loop that always has work, and counts it without any lock. */
struct worker {
	struct mail mail;
	struct loop_task task;
	struct loop *loop;
	long count;
	bool stop;
};

static void work(struct loop_task *task)
{
	struct worker *worker = (struct worker *)((char *)task - offsetof(struct worker, task));

	worker->count++;
	if (!worker->stop)
		loop_defer_work(worker->loop, task, work);
}

static void begin_work(struct mail *mail, struct loop *loop)
{
	struct worker *worker = (struct worker *)mail;

	worker->loop = loop;
	work(&worker->task);
}

static void test_nothing_moves_in_stillness(void **state)
{
	struct worker workers[LOOPS] = {0};
	struct crew_figures figures;

	(void)state;
	start(LOOPS);
	for (int i = 1; i < LOOPS; i++) {
		workers[i].mail.deliver = begin_work;
		crew_post(&loops[i], &workers[i].mail);
	}
	for (int round = 0; round < 300; round++) {
		crew_still(&crew);
		for (int i = 1; i < LOOPS; i++) {
			/* Each has run since it was released. */
			assert_true(workers[i].count > 0);
			workers[i].count = 0;
		}
		for (int i = 0; i < 10; i++)
			sched_yield();
		for (int i = 1; i < LOOPS; i++) {
			assert_int_equal(workers[i].count, 0);
			workers[i].stop = round == 299;
		}
		crew_resume(&crew);
	}
	crew_stop(&crew);
	crew_figures(&loops[1], &figures);
	assert_int_equal(figures.stops, 301);
	assert_true(figures.parked > 0);
	assert_true(figures.busy > 0);
}

static void test_no_stillness_is_lost_by_loops_that_fall_asleep(void **state)
{
	(void)state;
	start(3);
	for (int i = 0; i < 20000; i++) {
		crew_still(&crew);
		crew_resume(&crew);
		for (volatile int spins = i % 300; spins > 0; spins--)
			;
	}
}

static void test_mail_that_deliveries_send_is_delivered_before_stillness(void **state)
{
	struct ball balls[BALLS];

	(void)state;
	atomic_store(&landed, 0);
	start(LOOPS);
	for (int i = 0; i < BALLS; i++)
		throw_first(&balls[i], 100, i % LOOPS, (i + 1) % LOOPS);
	crew_still(&crew);
	assert_int_equal(atomic_load(&landed), BALLS);
	throw_first(&balls[0], 100, 1, 2);
	/* A nested call delivers nothing. */
	crew_still(&crew);
	assert_int_equal(atomic_load(&landed), BALLS);
	throw_first(&balls[1], 100, 1, 2);
	crew_resume(&crew);
	crew_resume(&crew);
	wait_for(&landed, BALLS + 2);
	assert_int_equal(atomic_load(&wrong_thread), 0);
}

static void test_stillness_nests(void **state)
{
	struct worker worker = {.mail.deliver = begin_work};
	long before;

	(void)state;
	start(2);
	assert_false(crew_is_still(&crew));
	crew_post(&loops[1], &worker.mail);
	crew_still(&crew);
	before = worker.count;
	crew_still(&crew);
	crew_resume(&crew);
	assert_true(crew_is_still(&crew));
	for (int i = 0; i < 100; i++)
		sched_yield();
	assert_int_equal(worker.count, before);
	worker.stop = true;
	crew_resume(&crew);
	assert_false(crew_is_still(&crew));
	crew_stop(&crew);
	assert_int_equal(worker.count, before + 1);
}

static int delivered_in_stillness;

static void make_stillness(struct mail *mail, struct loop *loop)
{
	(void)mail;
	(void)loop;
	crew_still(&crew);
	delivered_in_stillness = atomic_load(&delivered);
	crew_resume(&crew);
}

static void test_delivery_may_make_stillness(void **state)
{
	struct mail first = {.deliver = make_stillness}, second = {.deliver = count},
		    third = {.deliver = count};

	(void)state;
	atomic_store(&delivered, 0);
	start(2);
	crew_post(&loops[0], &first);
	crew_post(&loops[0], &second);
	crew_post(&loops[1], &third);
	crew_turn(&loops[0], true);
	assert_int_equal(delivered_in_stillness, 2);
}

static atomic_int tasks_run, deadlines_run, events_run;

static void on_task(struct loop_task *task)
{
	(void)task;
	atomic_fetch_add(&tasks_run, pthread_equal(pthread_self(), main_thread) ? 100 : 1);
}

static void on_deadline(struct deadline *deadline)
{
	(void)deadline;
	atomic_fetch_add(&deadlines_run, 1);
}

static void on_readable(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	(void)argument;
	atomic_fetch_add(&events_run, 1);
}

static void test_a_sleeping_loop_handles_what_it_was_given_in_stillness(void **state)
{
	struct deadline deadline = {.expire = on_deadline};
	struct loop_task task = {0};
	struct event *event;
	int fds[2];

	(void)state;
	start(2);
	assert_int_equal(pipe(fds), 0);
	event = event_new(loops[1].base, fds[0], EV_READ, on_readable, NULL);
	wait_until_asleep(&loops[1]);
	crew_still(&crew);
	loop_defer(&loops[1], &task, on_task);
	crew_resume(&crew);
	wait_for(&tasks_run, 1);
	wait_until_asleep(&loops[1]);
	crew_still(&crew);
	wheel_set_exact(&loops[1].wheel, &deadline, loop_now(&loops[1]) + 1000);
	crew_resume(&crew);
	wait_for(&deadlines_run, 1);
	wait_until_asleep(&loops[1]);
	crew_still(&crew);
	event_add(event, NULL);
	crew_resume(&crew);
	assert_int_equal(write(fds[1], "x", 1), 1);
	wait_for(&events_run, 1);
	crew_still(&crew);
	event_free(event);
	crew_resume(&crew);
	assert_int_equal(atomic_load(&tasks_run), 1);
	close(fds[0]);
	close(fds[1]);
}

static void pass_time(void)
{
	const usec_t begin = clock_monotonic();

	while (clock_monotonic() < begin + 10)
		;
}

static void test_clock_of_a_parked_loop_is_read_anew(void **state)
{
	usec_t first, second;

	(void)state;
	start(2);
	crew_still(&crew);
	first = loop_now(&loops[1]);
	pass_time();
	assert_int_equal(loop_now(&loops[1]), first);
	crew_still(&crew);
	second = loop_now(&loops[1]);
	assert_true(second >= first + 10);
	crew_resume(&crew);
	crew_resume(&crew);
	pass_time();
	crew_still(&crew);
	assert_true(loop_now(&loops[1]) >= second + 10);
	crew_resume(&crew);
}

/* --- start, stop, and a crew of one ------------------------------------------------------- */

static atomic_int own_is_own, other_is_own, signals_blocked;
static char thread_name[16];

static void look_around(struct mail *mail, struct loop *loop)
{
	sigset_t mask;

	(void)mail;
	atomic_store(&own_is_own, crew_is_own(loop));
	atomic_store(&other_is_own, crew_is_own(&loops[0]) || crew_is_own(&loops[2]));
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	atomic_store(
		&signals_blocked, sigismember(&mask, SIGTERM) && sigismember(&mask, SIGHUP));
	pthread_getname_np(pthread_self(), thread_name, sizeof(thread_name));
	atomic_fetch_add(&delivered, 1);
}

static void test_each_loop_belongs_to_one_thread(void **state)
{
	struct mail mail = {.deliver = look_around};

	(void)state;
	atomic_store(&delivered, 0);
	init(3);
	assert_true(crew_is_own(&loops[0]) && crew_is_own(&loops[2]));
	assert_true(crew_start(&crew));
	assert_true(crew_is_own(&loops[0]));
	assert_false(crew_is_own(&loops[1]));
	crew_post(&loops[1], &mail);
	wait_for(&delivered, 1);
	crew_still(&crew);
	assert_true(crew_is_own(&loops[1]) && crew_is_own(&loops[2]));
	crew_resume(&crew);
	assert_false(crew_is_own(&loops[2]));
	crew_stop(&crew);
	assert_true(crew_is_own(&loops[2]));
	assert_true(atomic_load(&own_is_own));
	assert_false(atomic_load(&other_is_own));
	assert_true(atomic_load(&signals_blocked));
	assert_string_equal(thread_name, "pgusher-work-1");
}

static void test_stop_delivers_the_mail_in_flight(void **state)
{
	struct ball balls[BALLS];

	(void)state;
	for (int round = 0; round < 20; round++) {
		atomic_store(&landed, 0);
		start(LOOPS);
		for (int i = 0; i < BALLS; i++)
			throw_first(&balls[i], 100, i % LOOPS, (i + 1) % LOOPS);
		crew_stop(&crew);
		assert_int_equal(atomic_load(&landed), BALLS);
		crew_free(&crew);
		threads_left = LOOPS;
	}
	assert_int_equal(atomic_load(&wrong_thread), 0);
}

static void test_mail_of_the_time_before_the_start_is_delivered(void **state)
{
	struct mail mail = {.deliver = count};

	(void)state;
	atomic_store(&delivered, 0);
	init(2);
	crew_post(&loops[1], &mail);
	assert_int_equal(atomic_load(&delivered), 0);
	assert_true(crew_start(&crew));
	wait_for(&delivered, 1);
}

static void test_a_refused_thread_ends_the_others(void **state)
{
	(void)state;
	init(LOOPS);
	threads_left = 2;
	assert_false(crew_start(&crew));
	assert_int_equal(errno, EAGAIN);
	assert_true(crew_is_own(&loops[1]));
	threads_left = LOOPS;
	assert_true(crew_start(&crew));
}

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int descriptors = 0;

	assert_non_null(folder);
	while (readdir(folder))
		descriptors++;
	closedir(folder);
	return descriptors;
}

static void stop_loop(struct mail *mail, struct loop *loop)
{
	count(mail, loop);
	loop_stop(loop);
}

static void test_crew_of_one_makes_no_descriptor_and_no_thread(void **state)
{
	const int before = count_descriptors();
	struct mail mail = {.deliver = count}, stop = {.deliver = stop_loop};
	struct crew_figures figures;

	(void)state;
	atomic_store(&delivered, 0);
	threads_left = 0;
	start(1);
	assert_int_equal(count_descriptors(), before);
	assert_null(loops[0].member);
	assert_true(crew_is_own(&loops[0]));
	crew_post(&loops[0], &mail);
	crew_turn(&loops[0], true);
	assert_int_equal(atomic_load(&delivered), 1);
	mail.deliver = count;
	crew_post(&loops[0], &mail);
	crew_still(&crew);
	assert_true(crew_is_still(&crew));
	assert_int_equal(atomic_load(&delivered), 2);
	crew_resume(&crew);
	assert_false(crew_is_still(&crew));
	assert_true(crew_answers(&crew) && crew_answers(&crew));
	crew_post(&loops[0], &stop);
	crew_run(&crew);
	crew_figures(&loops[0], &figures);
	assert_int_equal(figures.mails, 3);
	assert_int_equal(figures.turns, 2);
	crew_stop(&crew);
}

static void pass_to_main(struct mail *mail, struct loop *loop)
{
	(void)loop;
	mail->deliver = stop_loop;
	crew_post(&loops[0], mail);
}

static void test_main_loop_runs_until_it_is_stopped(void **state)
{
	struct mail mail = {.deliver = pass_to_main};

	(void)state;
	start(2);
	crew_post(&loops[1], &mail);
	crew_run(&crew);
	assert_true(loops[0].stopping);
}

/* --- watching and pinning ----------------------------------------------------------------- */

static void test_a_loop_that_is_stuck_does_not_answer(void **state)
{
	struct mail gate = {.deliver = stay_at_gate};

	(void)state;
	start(3);
	assert_true(crew_answers(&crew));
	while (!crew_answers(&crew))
		sched_yield();
	shut_gate();
	crew_post(&loops[2], &gate);
	wait_for(&at_gate, 1);
	(void)crew_answers(&crew); /* the ping before may not have been answered yet */
	assert_false(crew_answers(&crew));
	assert_false(crew_answers(&crew));
	atomic_store(&gate_open, 1);
	while (!crew_answers(&crew))
		sched_yield();
	crew_still(&crew);
	assert_true(crew_answers(&crew) && crew_answers(&crew));
	crew_resume(&crew);
}

static void test_threads_are_pinned(void **state)
{
	cpu_set_t set;
	int cpu = 0;

	(void)state;
	start(2);
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	assert_true(crew_pin(&crew, 1, cpu));
	assert_false(crew_pin(&crew, 1, 1000000));
	assert_int_equal(errno, EINVAL);
	assert_false(crew_pin(&crew, 2, cpu));
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_many_senders_lose_nothing_and_keep_their_order),
		TEST(test_mail_wakes_a_sleeping_loop),
		TEST(test_a_loop_that_is_awake_is_not_woken),
		TEST(test_no_wake_up_is_lost_between_two_that_answer),
		TEST(test_no_wake_up_is_lost_by_a_loop_that_falls_asleep),
		TEST(test_loop_may_send_mail_to_itself),
		TEST(test_nothing_moves_in_stillness),
		TEST(test_no_stillness_is_lost_by_loops_that_fall_asleep),
		TEST(test_mail_that_deliveries_send_is_delivered_before_stillness),
		TEST(test_stillness_nests),
		TEST(test_delivery_may_make_stillness),
		TEST(test_a_sleeping_loop_handles_what_it_was_given_in_stillness),
		TEST(test_clock_of_a_parked_loop_is_read_anew),
		TEST(test_each_loop_belongs_to_one_thread),
		TEST(test_stop_delivers_the_mail_in_flight),
		TEST(test_mail_of_the_time_before_the_start_is_delivered),
		TEST(test_a_refused_thread_ends_the_others),
		TEST(test_crew_of_one_makes_no_descriptor_and_no_thread),
		TEST(test_main_loop_runs_until_it_is_stopped),
		TEST(test_a_loop_that_is_stuck_does_not_answer),
		TEST(test_threads_are_pinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
