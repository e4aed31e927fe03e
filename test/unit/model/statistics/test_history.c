/* SPDX-License-Identifier: ISC */
/* The last hour: points of ten seconds, gaps, pools that come and go, and the memory that it takes. */
#include "model/statistics/history.h"
#include "model/statistics/pool_figures.h"
#include "support/fakes/fake_pool.h"

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n* = host=/tmp\n[pgbouncer]\npool_mode = transaction\n"
		   "default_pool_size = 1\nserver_reset_query =\nquery_wait_timeout = 0\n");
	pool = fake_pool("db", "alice");
	assert_true(history_start(&fake_registry));
	return 0;
}

static void sample(void)
{
	struct history *history = fake_process.history;
	struct pool *each;

	history_begin_sample(history, loop_now(&fake_loop));
	TAILQ_FOREACH (each, &fake_process.directory.pools, in_directory) {
		if (!each->database->console)
			history_take_pool(history, each);
	}
	history_end_sample(history);
}

/* So many seconds with a sample in each. */
static void pass(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		fake_advance(USEC_PER_SEC);
		sample();
	}
}

/* The point that is so many steps before the last one; NULL: a gap. */
static const struct history_point *point(const struct pool *of, unsigned back)
{
	return history_at(fake_process.history, of->history, HISTORY_POINTS - 1 - back);
}

static const struct history_point *total(unsigned back)
{
	return history_at(fake_process.history, history_total(fake_process.history),
		HISTORY_POINTS - 1 - back);
}

static void test_step_has_what_was_counted_in_it(void **state)
{
	(void)state;
	pool->stats.current.transactions = 500;
	pool->unsent[UNSENT_QUEUE_FULL] = 3;
	pool->unsent[UNSENT_CANCELED] = 100; /* the client has asked for that */
	pool_open_errors(pool);
	pool->errors[2] = 4;
	pass(10);
	pool->stats.current.transactions = 700;
	pass(10);
	assert_int_equal(point(pool, 1)->transactions, 500);
	assert_int_equal(point(pool, 1)->errors, 7);
	assert_int_equal(point(pool, 0)->transactions, 200);
	assert_int_equal(point(pool, 0)->errors, 0);
	assert_int_equal(total(1)->transactions, 500);
	assert_int_equal(total(0)->transactions, 200);
}

static void test_what_was_counted_before_the_history_is_not_in_it(void **state)
{
	(void)state;
	history_stop(&fake_registry);
	assert_null(pool->history);
	pool->stats.current.transactions = 100000;
	assert_true(history_start(&fake_registry));
	pool->stats.current.transactions += 5;
	pass(10);
	assert_int_equal(point(pool, 0)->transactions, 5);
	assert_int_equal(total(0)->transactions, 5);
}

static void test_waiting_is_the_most_of_the_samples(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *clients[3];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
	}
	pass(4);
	for (size_t i = 0; i < COUNT(clients); i++)
		send_letters(server, "CZ");
	pass(16);
	assert_int_equal(point(pool, 1)->waiting, 2);
	assert_int_equal(point(pool, 1)->active, 1);
	assert_in_range(point(pool, 1)->longest_wait, 3900, 4600);
	assert_int_equal(total(1)->waiting, 2);
	assert_int_equal(point(pool, 0)->waiting, 0);
	assert_int_equal(point(pool, 0)->active, 0);
	assert_int_equal(point(pool, 0)->longest_wait, 0);
}

static void test_percentiles_are_those_of_the_stats_period(void **state)
{
	struct pool *other = fake_pool("other", "alice");
	struct latency_summary queries;

	(void)state;
	pool_open_latency(pool);
	for (unsigned i = 0; i < 1000; i++)
		latency_add(pool->latency, LATENCY_QUERY, 1000 + i);
	pool_open_latency(other);
	latency_add(other->latency, LATENCY_QUERY, 900000);
	for (unsigned i = 0; i < 10; i++)
		latency_add(pool->latency, LATENCY_WAIT, 70000);
	pool->stats.current.assignments = 10;
	pass(10);
	queries = latency_summary(pool->latency, LATENCY_QUERY, 0);
	assert_int_equal(point(pool, 0)->query_p99, queries.p99);
	assert_in_range(point(pool, 0)->query_p99, 1700, 2100);
	assert_in_range(point(pool, 0)->wait_p99, 60000, 80000);
	assert_in_range(point(other, 0)->query_p99, 800000, 900000);
	/* Of 1,001 queries of both pools 1 was slow: less than 1 %. */
	assert_in_range(total(0)->query_p99, 1700, 2100);
	/* Nearly all clients got a server at once. */
	pool->stats.current.assignments = 10000;
	pass(10);
	assert_int_equal(point(pool, 0)->wait_p99, 0);
	assert_int_equal(total(0)->wait_p99, 0);
}

static void test_time_without_samples_is_a_gap(void **state)
{
	(void)state;
	pass(10);
	assert_non_null(point(pool, 0));
	assert_null(point(pool, 1)); /* before the history */
	pool->stats.current.transactions = 30;
	fake_advance(45 * USEC_PER_SEC);
	sample();
	/* The open step ended with the sample; the steps behind it had none. */
	assert_null(point(pool, 0));
	assert_null(point(pool, 1));
	assert_null(point(pool, 2));
	assert_int_equal(point(pool, 3)->transactions, 30);
	assert_non_null(point(pool, 4));
	pass(10);
	assert_non_null(point(pool, 0));
}

static void test_gap_longer_than_the_ring_leaves_nothing(void **state)
{
	(void)state;
	pass(30);
	fake_advance(3 * HISTORY_POINTS * HISTORY_STEP / 2);
	sample();
	for (unsigned i = 0; i < HISTORY_POINTS; i++) {
		assert_null(point(pool, i));
		assert_null(total(i));
	}
}

static void test_ring_keeps_the_last_hour(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HISTORY_POINTS + 5; i++) {
		pool->stats.current.transactions += i;
		fake_advance(HISTORY_STEP);
		sample();
	}
	assert_int_equal(point(pool, 0)->transactions, HISTORY_POINTS + 4);
	assert_int_equal(point(pool, HISTORY_POINTS - 1)->transactions, 5);
	assert_null(history_at(fake_process.history, pool->history, HISTORY_POINTS));
	assert_true(history_last_end(fake_process.history) <= loop_now(&fake_loop));
	assert_true(
		loop_now(&fake_loop) - history_last_end(fake_process.history) < HISTORY_STEP);
}

static void test_pool_that_is_made_anew_begins_anew(void **state)
{
	const uint64_t number = pool->number;

	(void)state;
	pool->stats.current.transactions = 50;
	pass(20);
	registry_drop_pool(pool);
	pass(10);
	assert_int_equal(total(0)->transactions, 0);
	assert_int_equal(total(2)->transactions, 50);
	pool = fake_pool("db", "alice");
	assert_true(pool->number > number);
	pool->stats.current.transactions = 7;
	pass(10);
	/* It had no sample before the end of the step. */
	assert_int_equal(total(0)->transactions, 7);
	assert_null(point(pool, 2));
	pool->stats.current.transactions = 9;
	pass(10);
	assert_int_equal(point(pool, 0)->transactions, 2);
}

static void test_counts_that_another_pool_takes_over_are_not_counted_again(void **state)
{
	struct pool *other = fake_pool("db", "bob");

	(void)state;
	pool->stats.current.transactions = 50;
	pass(20);
	pool_leave_counts(pool, other);
	registry_drop_pool(pool);
	pass(10);
	assert_int_equal(point(other, 0)->transactions, 0);
	assert_int_equal(total(0)->transactions, 0);
}

static void make_pools(unsigned count)
{
	char name[16];

	for (unsigned i = 0; i < count; i++) {
		struct pool *made;

		snprintf(name, sizeof(name), "db%u", i);
		made = fake_pool(name, "alice");
		made->stats.current.transactions = 10;
	}
}

static unsigned count_kept(void)
{
	const struct pool *each;
	unsigned kept = 0;

	TAILQ_FOREACH (each, &fake_process.directory.pools, in_directory)
		kept += each->history != NULL;
	return kept;
}

static void test_memory_is_bounded(void **state)
{
	size_t hundred;

	(void)state;
	assert_true(sizeof(struct history_point) <= 28);
	make_pools(99); /* with `db` there are 100 */
	pass(20);
	assert_int_equal(count_kept(), HISTORY_POOLS);
	hundred = history_size(fake_process.history);
	assert_true(hundred <= 1000000);
	assert_true(hundred > 100 * HISTORY_POINTS * sizeof(struct history_point));
	make_pools(1000);
	pass(20);
	assert_int_equal(history_size(fake_process.history), hundred);
	/* Those without points of their own are in the total: 901 new ones. */
	assert_int_equal(count_kept(), HISTORY_POOLS);
	assert_int_equal(total(1)->transactions, 901 * 10);
}

static void test_place_of_a_dropped_pool_is_used_again(void **state)
{
	struct pool *other;

	(void)state;
	make_pools(99);
	pass(10);
	other = fake_pool("late", "alice");
	pass(10);
	assert_null(other->history);
	registry_drop_pool(pool);
	pass(10);
	assert_non_null(other->history);
	assert_int_equal(count_kept(), HISTORY_POOLS);
}

static void test_figures_that_do_not_fit_are_the_largest(void **state)
{
	(void)state;
	pool->stats.current.transactions = UINT64_C(1) << 40;
	pass(10);
	assert_int_equal(point(pool, 0)->transactions, UINT32_MAX - 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(step_has_what_was_counted_in_it),
		TEST(what_was_counted_before_the_history_is_not_in_it),
		TEST(waiting_is_the_most_of_the_samples),
		TEST(percentiles_are_those_of_the_stats_period),
		TEST(time_without_samples_is_a_gap),
		TEST(gap_longer_than_the_ring_leaves_nothing),
		TEST(ring_keeps_the_last_hour),
		TEST(pool_that_is_made_anew_begins_anew),
		TEST(counts_that_another_pool_takes_over_are_not_counted_again),
		TEST(memory_is_bounded),
		TEST(place_of_a_dropped_pool_is_used_again),
		TEST(figures_that_do_not_fit_are_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
