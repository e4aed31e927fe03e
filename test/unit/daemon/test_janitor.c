/* SPDX-License-Identifier: ISC */
/* The end of a stats period: its log line, and the snapshots for averages and latencies. */
#include "daemon/janitor.h"
#include "model/statistics/pool_figures.h"
#include "support/fakes/fake_pool.h"

static struct janitor janitor;
static struct pool *pool;

static void start_with(const char *settings)
{
	char text[300];

	snprintf(text, sizeof(text), "[databases]\ndb = host=/tmp\n[pgbouncer]\n%s", settings);
	fake_start(text);
	pool = fake_pool("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
}

static int start(void **state)
{
	(void)state;
	start_with("stats_period = 10\n");
	return 0;
}

static int stop(void **state)
{
	janitor_stop(&janitor);
	return fake_end(state);
}

static void pass(unsigned seconds)
{
	fake_advance(seconds * USEC_PER_SEC);
}

/* The traffic of a period with round averages. */
static void add_traffic(void)
{
	const struct totals traffic = {
		.assignments = 100,
		.transactions = 200,
		.queries = 400,
		.received = 5000,
		.sent = 9999, /* rounded down: a period is a little longer than its seconds */
		.transaction_time = 200 * 70,
		.query_time = 400 * 30,
		.wait_time = 100 * 5,
	};

	totals_add(&pool->stats.current, &traffic);
}

static void test_line_has_the_averages_of_exactly_one_period(void **state)
{
	(void)state;
	add_traffic();
	pass(11);
	assert_int_equal(fake_log_count("stats: "), 1);
	assert_true(fake_logged(" xact 70 us, query 30 us, wait 5 us"));
	/* The next period has no traffic, so its averages are 0. */
	pass(11);
	assert_int_equal(fake_log_count("stats: "), 2);
	assert_true(fake_logged(
		"stats: 0 xacts/s, 0 queries/s, 0 client parses/s, 0 server parses/s, 0 binds/s, "
		"0 client logins/s, "
		"in 0 B/s, out 0 B/s, xact 0 us, query 0 us, wait 0 us"));
}

static void test_rates_are_counts_divided_by_elapsed_time(void **state)
{
	(void)state;
	start_with("stats_period = 100\n");
	pool->stats.current.transactions = 550;
	pool->stats.current.queries = 950;
	pool->stats.current.received = 350;
	pool->stats.current.sent = 705000;
	/* A period ends with the first upkeep after its last second: after a little over 100 s. */
	pass(101);
	assert_true(fake_logged("stats: 5 xacts/s, 9 queries/s, 0 client parses/s, "
				"0 server parses/s, 0 binds/s, 0 client logins/s, in 3 B/s, "
				"out 70"));
}

static void test_without_log_stats_no_line_is_written(void **state)
{
	(void)state;
	fake_set("log_stats", "0");
	add_traffic();
	pass(11);
	assert_int_equal(fake_log_count("stats: "), 0);
	/* The period ends nevertheless. */
	assert_int_equal(pool->stats.newer.queries, 400);
}

static void test_snapshots_are_a_period_apart(void **state)
{
	const usec_t start_time = loop_now(&fake_loop);

	(void)state;
	add_traffic();
	pass(11);
	assert_int_equal(pool->stats.newer.queries, 400);
	assert_int_equal(pool->stats.older.queries, 0);
	assert_int_equal(fake_registry.stats_older_at, start_time);
	add_traffic();
	pass(11);
	assert_int_equal(pool->stats.newer.queries, 800);
	assert_int_equal(pool->stats.older.queries, 400);
	assert_true(fake_registry.stats_newer_at - fake_registry.stats_older_at >=
		10 * USEC_PER_SEC);
	assert_true(fake_registry.stats_older_at > start_time);
}

static void test_latencies_cover_two_periods(void **state)
{
	(void)state;
	pool_open_latency(pool);
	latency_add(pool->latency, LATENCY_QUERY, 1000);
	pass(11);
	assert_int_equal(latency_summary(pool->latency, LATENCY_QUERY, 0).count, 1);
	pass(11);
	assert_int_equal(latency_summary(pool->latency, LATENCY_QUERY, 0).count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_line_has_the_averages_of_exactly_one_period),
		cmocka_unit_test_teardown(test_rates_are_counts_divided_by_elapsed_time, stop),
		TEST(test_without_log_stats_no_line_is_written),
		TEST(test_snapshots_are_a_period_apart),
		TEST(test_latencies_cover_two_periods),
	};

	return cmocka_run_group_tests_name("janitor", tests, NULL, NULL);
}
