/* SPDX-License-Identifier: ISC */
/* The page of metrics: samples, both formats, writing in pieces, limits. */
#include "admin/metrics/metric_page.h"
#include "admin/metrics/metric_sources.h"
#include "admin/metrics/metrics.h"
#include "model/statistics/pool_figures.h"
#include "support/fakes/fake_pool.h"

static struct listeners listeners;
static struct metrics metrics;
static struct metric_page page;

static const char config[] = "[databases]\n"
			     "app = host=/tmp\n"
			     "* = host=/tmp\n"
			     "[pgbouncer]\n"
			     "max_client_conn = 77\n";

static int start(void **state)
{
	(void)state;
	fake_start(config);
	metrics_init(&metrics, &fake_registry, &listeners, -1, NULL);
	metric_page_begin(&page, METRIC_TEXT, &fake_registry, &metrics);
	return 0;
}

static int end(void **state)
{
	metric_page_free(&page);
	return fake_end(state);
}

/* The text of a whole page, written `lines` at a time. */
static const char *write_page(enum metric_format format, unsigned lines)
{
	metric_page_free(&page);
	metric_page_begin(&page, format, &fake_registry, &metrics);
	while (metric_page_write(&page, lines))
		;
	assert_false(page.out.failed);
	buffer_append(&page.out, "", 1);
	return (const char *)page.out.data;
}

static bool has(const char *text, const char *line)
{
	return strstr(text, line) != NULL;
}

static void fill_latency(struct pool *pool)
{
	pool_open_latency(pool);
	assert_non_null(pool->latency);
	for (unsigned i = 0; i < 5; i++)
		latency_add(pool->latency, LATENCY_QUERY, i * 400);
	latency_add(pool->latency, LATENCY_QUERY, 61 * USEC_PER_SEC);
}

/* --- pictures ----------------------------------------------------------------------------- */

static struct metric_samples samples;

static void add_row(const char *label, int64_t number)
{
	const struct metric_number figures = {number};

	metric_samples_label(&samples, "a", label);
	metric_samples_label(&samples, "b", NULL);
	metric_samples_add(&samples, &figures);
}

static void assert_row(size_t number, const char *labels, int64_t figure)
{
	const struct metric_row row = metric_samples_row(&samples, number);

	assert_int_equal(row.labels_length, strlen(labels));
	assert_memory_equal(row.labels, labels, row.labels_length);
	assert_int_equal(((const struct metric_number *)row.figures)->number, figure);
}

static void test_labels_are_escaped(void **state)
{
	(void)state;
	metric_samples_begin(&samples, sizeof(struct metric_number));
	add_row("plain", 1);
	add_row("a\\b\"c\nd", 2);
	add_row("\xc3\xa9\t", 3);
	assert_int_equal(samples.count, 3);
	assert_row(0, "a=\"plain\",b=\"\"", 1);
	assert_row(1, "a=\"a\\\\b\\\"c\\nd\",b=\"\"", 2);
	assert_row(2, "a=\"\xc3\xa9\t\",b=\"\"", 3);
	metric_samples_free(&samples);
}

static void test_rows_with_the_same_altered_labels_are_added_up(void **state)
{
	(void)state;
	metric_samples_begin(&samples, sizeof(struct metric_number));
	add_row("<invalid", 1);
	add_row("\xff", 2);
	add_row("x", 3);
	add_row("\xc3", 4);
	add_row("\xed\xa0\x80", 5);
	add_row("y", 6);
	assert_int_equal(samples.count, 4);
	assert_row(1, "a=\"<invalid>\",b=\"\"", 11);
	assert_row(3, "a=\"y\",b=\"\"", 6);
	metric_samples_free(&samples);
}

static void test_number_of_altered_labels_is_limited(void **state)
{
	char name[16];

	(void)state;
	metric_samples_begin(&samples, sizeof(struct metric_number));
	for (int i = 0; i < 10 * METRIC_ALTERED_ROWS; i++) {
		const struct metric_number figures = {i};

		snprintf(name, sizeof(name), "%d", i);
		metric_samples_label(&samples, "a", "\xff");
		metric_samples_label(&samples, "b", name);
		metric_samples_add(&samples, &figures);
	}
	assert_int_equal(samples.count, METRIC_ALTERED_ROWS);
	add_row("plain", 1);
	assert_row(METRIC_ALTERED_ROWS, "a=\"plain\",b=\"\"", 1);
	metric_samples_free(&samples);
}

/* --- pages -------------------------------------------------------------------------------- */

static void test_families_have_one_head_and_their_samples(void **state)
{
	const char *text;

	(void)state;
	fake_client(fake_pool("app", "alice"));
	fake_client(fake_pool("app", "bob"));
	text = write_page(METRIC_TEXT, 100);
	assert_true(has(text,
		"# HELP pgbouncer_config_max_client_connections Setting max_client_conn\n"
		"# TYPE pgbouncer_config_max_client_connections gauge\n"
		"pgbouncer_config_max_client_connections 77\n"));
	assert_true(has(text, "# TYPE pgbouncer_stats_totals_binds_total counter\n"));
	assert_true(has(text,
		"pgbouncer_pools_client_active_connections{database=\"app\",user=\"bob\"} 1\n"));
	assert_false(has(text, "# EOF"));
}

static void test_open_metrics_names_counters_without_their_suffix(void **state)
{
	const char *text = write_page(METRIC_OPEN, 100);

	(void)state;
	assert_true(has(text, "# TYPE pgbouncer_process_cpu_seconds counter\n"));
	assert_true(has(text, "\npgbouncer_process_cpu_seconds_total "));
	assert_true(has(text, "# TYPE pgbouncer_errors_count unknown\n"));
	assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
}

static void test_times_are_seconds_with_a_fraction_if_needed(void **state)
{
	struct pool *pool = fake_pool("app", "alice");
	const char *text;

	(void)state;
	fake_client(pool);
	pool->stats.current.query_time = 1500000;
	pool->stats.current.wait_time = 7;
	pool->stats.current.transaction_time = 3 * USEC_PER_SEC;
	text = write_page(METRIC_TEXT, 100);
	assert_true(
		has(text, "_totals_queries_duration_seconds_total{database=\"app\"} 1.5\n"));
	assert_true(
		has(text, "_totals_client_wait_seconds_total{database=\"app\"} 0.000007\n"));
	assert_true(
		has(text, "_totals_server_in_transaction_seconds_total{database=\"app\"} 3\n"));
}

static void test_buckets_include_the_lower_buckets(void **state)
{
	struct pool *pool = fake_pool("app", "alice");
	const char *text;

	(void)state;
	fill_latency(pool);
	text = write_page(METRIC_TEXT, 100);
	assert_true(has(text,
		"# TYPE pgusher_query_duration_seconds histogram\n"
		"pgusher_query_duration_seconds_bucket{database=\"app\",user=\"alice\",le=\"0.0005\"} 2\n"
		"pgusher_query_duration_seconds_bucket{database=\"app\",user=\"alice\",le=\"0.001\"} 3\n"
		"pgusher_query_duration_seconds_bucket{database=\"app\",user=\"alice\",le=\"0.0025\"} 5\n"));
	assert_true(has(text, "alice\",le=\"1.0\"} 5\n"));
	assert_true(has(text, "alice\",le=\"60.0\"} 5\n"));
	assert_true(has(text, "alice\",le=\"+Inf\"} 6\n"));
	assert_true(has(text,
		"pgusher_query_duration_seconds_sum{database=\"app\",user=\"alice\"} 61.004\n"
		"pgusher_query_duration_seconds_count{database=\"app\",user=\"alice\"} 6\n"));
}

static void test_a_page_is_the_same_in_pieces_of_any_size(void **state)
{
	static const unsigned pieces[] = {1, 2, 7, 100};
	char *whole;

	(void)state;
	fill_latency(fake_pool("app", "alice"));
	fill_latency(fake_pool("app", "bob"));
	whole = strdup(write_page(METRIC_TEXT, 1000000));
	for (size_t i = 0; i < COUNT(pieces); i++) {
		const char *again = write_page(METRIC_TEXT, pieces[i]);
		const char *volatile_part = strstr(whole, "# HELP pgbouncer_process_cpu");

		assert_memory_equal(again, whole, (size_t)(volatile_part - whole));
		assert_string_equal(strstr(again, "# HELP pgusher_accept_paused"),
			strstr(whole, "# HELP pgusher_accept_paused"));
	}
	free(whole);
}

static unsigned count_lines(const char *text, size_t length)
{
	unsigned lines = 0;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

/* The lines of one histogram stay together, so a piece may be longer by so many. */
static void test_pieces_are_not_longer_than_requested(void **state)
{
	const unsigned most = 50 + HISTOGRAM_BOUNDS + 3;
	char name[32];
	size_t before = 0;
	bool more;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "user%u", i);
		fill_latency(fake_pool("app", name));
	}
	do {
		more = metric_page_write(&page, 50);
		assert_true(count_lines((const char *)page.out.data + before,
				    page.out.length - before) <= most);
		before = page.out.length;
	} while (more);
	assert_true(page.series > 300 * 18 * 3);
}

/* A change between two pieces shows in snapshots that are taken later, never in half of one. */
static void test_a_family_is_one_snapshot(void **state)
{
	struct pool *alice = fake_pool("app", "alice"), *bob = fake_pool("app", "bob");
	const char name[] = "pgbouncer_pools_server_login_connections{";

	(void)state;
	while (!page.out.data || !memmem(page.out.data, page.out.length, name, strlen(name)))
		metric_page_write(&page, 1);
	fake_client(alice);
	fake_client(bob);
	registry_drop_pool(fake_pool("app", "carol"));
	while (metric_page_write(&page, 1))
		;
	buffer_append(&page.out, "", 1);
	assert_true(has((char *)page.out.data,
		"pgbouncer_pools_server_login_connections{database=\"app\",user=\"bob\"} 0\n"));
}

/* --- limits ------------------------------------------------------------------------------- */

/* setting: max_metric_series */
static void test_latencies_by_user_are_left_out_first(void **state)
{
	const char *text;
	char most[16];

	(void)state;
	fill_latency(fake_pool("app", "alice"));
	write_page(METRIC_TEXT, 100);
	assert_int_equal(page.context.series_dropped, 0);
	snprintf(most, sizeof(most), "%d", (int)page.series - 30);
	fake_set("max_metric_series", most);
	text = write_page(METRIC_TEXT, 100);
	assert_true(has(text, "pgusher_query_duration_seconds_count"));
	assert_false(has(text, "pgusher_client_wait_seconds"));
	assert_true(has(text, "pgusher_metric_series_dropped 38\n"));
	fake_set("max_metric_series", "1");
	text = write_page(METRIC_TEXT, 100);
	assert_true(has(text, "pgbouncer_up 1\n"));
	assert_int_equal(page.series, 2);
	fake_set("max_metric_series", "0");
	write_page(METRIC_TEXT, 100);
	assert_int_equal(page.context.series_dropped, 0);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void test_the_table_has_each_metric_once_and_grouped_by_source(void **state)
{
	const char *names[256];
	size_t count = 0;

	(void)state;
	for (const struct metric_family *family = metric_families; family->name; family++) {
		const size_t length = strlen(family->name);
		const bool is_total =
			length > 6 && strcmp(family->name + length - 6, "_total") == 0;

		assert_true(count < COUNT(names));
		names[count++] = family->name;
		assert_int_equal(is_total, family->type == METRIC_COUNTER);
		for (const struct metric_family *other = family + 1; other->name; other++)
			assert_false(other->source == family->source &&
				other[-1].source != family->source);
	}
	qsort(names, count, sizeof(names[0]), compare);
	for (size_t i = 1; i < count; i++)
		assert_string_not_equal(names[i - 1], names[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, end)
	const struct CMUnitTest tests[] = {
		TEST(labels_are_escaped),
		TEST(rows_with_the_same_altered_labels_are_added_up),
		TEST(number_of_altered_labels_is_limited),
		TEST(families_have_one_head_and_their_samples),
		TEST(open_metrics_names_counters_without_their_suffix),
		TEST(times_are_seconds_with_a_fraction_if_needed),
		TEST(buckets_include_the_lower_buckets),
		TEST(a_page_is_the_same_in_pieces_of_any_size),
		TEST(pieces_are_not_longer_than_requested),
		TEST(a_family_is_one_snapshot),
		TEST(latencies_by_user_are_left_out_first),
		TEST(the_table_has_each_metric_once_and_grouped_by_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
