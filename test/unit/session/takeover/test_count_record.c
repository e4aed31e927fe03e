/* SPDX-License-Identifier: ISC */
/*
 * Records of counters: everything that is written is read again, and unknown rows are ignored.
 */
#include "model/statistics/pool_figures.h"
#include "session/takeover/count_record.h"
#include "support/fakes/fake_pool.h"
#include "wire/sqlstate.h"
#include "wire/tagged.h"

enum { TAG = 77 };

static struct pool *pool, *other;
static struct buffer field;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\nother = host=/tmp\n"
		   "[pgbouncer]\npool_mode = transaction\nauth_type = trust\n");
	pool = fake_pool("db", "alice");
	other = fake_pool("other", "alice");
	return 0;
}

static int end(void **state)
{
	buffer_free(&field);
	return fake_end(state);
}

/* The record that was written, without its tag and length. */
static struct tagged_field written_field(void)
{
	struct tagged_field found = {0};
	struct reader reader;

	reader_init(&reader, field.data, field.length);
	if (field.length > 0) {
		assert_true(tagged_next(&reader, &found));
		assert_int_equal(found.tag, TAG);
		assert_true(reader_done(&reader));
	}
	return found;
}

/* Fills a range with numbers that differ from each other. */
static void fill(void *from, const void *to)
{
	uint64_t seed = 5;

	for (uint64_t *at = from; (const void *)at < to; at++)
		*at = seed += 3;
}

static struct histogram some_times(void)
{
	struct histogram histogram = {0};

	fill(&histogram, &histogram + 1);
	return histogram;
}

/* --- complete records --------------------------------------------------------------------- */

/* Fails when a counter was added there but not to the record for the new process. */
static void test_counters_of_the_process_are_restored(void **state)
{
	struct counters *counters = &fake_registry.counters, before;
	struct histogram lag, shaken;

	(void)state;
	fill(counters->errors, &counters->nowhere);
	fill(counters->nowhere.client_closed,
		counters->nowhere.client_closed + CLIENT_CLOSINGS);
	fill(counters->reloads, counters->reloads + RELOAD_OUTCOMES);
	fake_loop.lag = lag = some_times();
	fake_loop.handshakes[1][0] = shaken = some_times();
	before = *counters;
	count_record_write_process(&field, TAG, &fake_registry);
	*counters = (struct counters){0};
	memset(&fake_loop.lag, 0, sizeof(lag));
	memset(fake_loop.handshakes, 0, sizeof(fake_loop.handshakes));
	count_record_add_process(&fake_registry, written_field().bytes, written_field().length);
	assert_memory_equal(counters, &before, offsetof(struct counters, last_reload_failed));
	assert_memory_equal(&fake_loop.lag, &lag, sizeof(lag));
	assert_memory_equal(&fake_loop.handshakes[1][0], &shaken, sizeof(shaken));
	assert_int_equal(histogram_count(&fake_loop.handshakes[0][0]), 0);
}

static void test_counters_of_a_database_are_restored(void **state)
{
	struct database *from = pool->database, *to = other->database;
	struct database_counters *counters = counters_open(from);

	(void)state;
	fill(counters, counters->connects);
	counters->connects[CONNECT_REFUSED] = calloc(1, sizeof(struct histogram));
	*counters->connects[CONNECT_REFUSED] = some_times();
	from->prepared = (struct prepared_counts){7, 8, 9};
	assert_null(counters_of_database(to));
	count_record_write_database(&field, TAG, from);
	count_record_add_database(to, written_field().bytes, written_field().length);
	assert_memory_equal(
		to->counters, counters, offsetof(struct database_counters, connects));
	assert_memory_equal(to->counters->connects[CONNECT_REFUSED],
		counters->connects[CONNECT_REFUSED], sizeof(struct histogram));
	assert_null(to->counters->connects[CONNECT_OK]);
	assert_memory_equal(&to->prepared, &from->prepared, sizeof(from->prepared));
}

/* The longest times of all cells, and of each existing cell. */
static void test_times_and_errors_of_a_pool_are_restored(void **state)
{
	(void)state;
	pool_open_latency(pool);
	for (uint64_t time = 0; time < UINT64_C(1) << 40; time = time * 9 / 8 + 1)
		latency_add(pool->latency, LATENCY_QUERY, time);
	latency_rotate(pool->latency);
	for (uint64_t time = 1; time < UINT64_C(1) << 40; time = time * 5 / 4 + 1)
		latency_add_single(pool->latency, time);
	latency_add(pool->latency, LATENCY_WAIT, 0);
	pool_count_error(pool, "23505");
	pool_count_error(pool, "23505");
	pool_count_error(pool, "57014");
	pool->notified = 3;
	for (unsigned i = 0; i < UNSENT_ENDINGS; i++)
		pool->unsent[i] = 5 + i;
	count_record_write_pool(&field, TAG, pool);
	count_record_add_pool(other, written_field().bytes, written_field().length);
	assert_memory_equal(other->latency, pool->latency, sizeof(*pool->latency));
	assert_memory_equal(
		other->errors, pool->errors, SQLSTATE_CLASSES * sizeof(*pool->errors));
	assert_int_equal(other->notified, 3);
	assert_memory_equal(other->unsent, pool->unsent, sizeof(pool->unsent));
}

static void test_record_is_added_to_existing_counts(void **state)
{
	(void)state;
	pool_open_latency(pool);
	pool_open_latency(other);
	latency_add(pool->latency, LATENCY_QUERY, 300);
	latency_add(other->latency, LATENCY_QUERY, 900);
	pool_count_error(pool, "23505");
	pool_count_error(other, "23505");
	count_record_write_pool(&field, TAG, pool);
	count_record_add_pool(other, written_field().bytes, written_field().length);
	assert_int_equal(latency_summary(other->latency, LATENCY_QUERY, 0).count, 2);
	assert_int_equal(latency_summary(other->latency, LATENCY_QUERY, 0).max, 900);
	assert_int_equal(other->errors[sqlstate_class("23505")], 2);
}

static void test_pool_without_counts_writes_no_record(void **state)
{
	(void)state;
	count_record_write_pool(&field, TAG, pool);
	assert_int_equal(field.length, 0);
	count_record_add_pool(other, NULL, 0);
	assert_null(other->latency);
	assert_null(other->errors);
}

/* --- records of another version ----------------------------------------------------------- */

static void write_row(const char *family, const char *row, const char *word, uint64_t total,
	unsigned pairs, const uint64_t *numbers)
{
	writer_string(&field, family);
	writer_string(&field, row);
	writer_string(&field, word);
	writer_int64(&field, total);
	writer_int16(&field, (uint16_t)pairs);
	for (unsigned i = 0; i < 2 * pairs; i++)
		writer_int64(&field, numbers[i]);
}

static void test_unknown_rows_are_ignored(void **state)
{
	const uint64_t numbers[] = {1, 2, 3, 4};

	(void)state;
	write_row("auth_failed", "", "telepathy", 5, 0, NULL);
	write_row("dreams", "", "password", 5, 2, numbers);
	write_row("protocol_errors", "server", "telepathy", 5, 0, NULL);
	write_row("protocol_errors", "moon", "length", 5, 0, NULL);
	write_row("auth_failed", "", "password", 6, 0, NULL);
	count_record_add_process(&fake_registry, field.data, field.length);
	assert_int_equal(fake_registry.counters.auth_failed[AUTH_FAILED_PASSWORD], 6);
	for (unsigned i = 0; i < PROTOCOL_SIDES * PROTOCOL_ERRORS; i++)
		assert_int_equal(fake_registry.counters.protocol_errors[i / PROTOCOL_ERRORS]
								       [i % PROTOCOL_ERRORS],
			0);
}

static void test_unknown_buckets_are_counted_in_the_nearest_one(void **state)
{
	const uint64_t numbers[] = {700, 2, 1000, 3, UINT64_MAX, 4};
	const struct histogram *times = &fake_loop.handshakes[0][1];

	(void)state;
	memset(fake_loop.handshakes, 0, sizeof(fake_loop.handshakes));
	write_row("handshakes", "client", "ok", 9000, 3, numbers);
	count_record_add_process(&fake_registry, field.data, field.length);
	assert_int_equal(times->counts[histogram_bucket(1000)], 5);
	assert_int_equal(times->counts[HISTOGRAM_BOUNDS], 4);
	assert_int_equal(times->sum, 9000);
}

/*
 * A record cut anywhere is read without reading beyond its end; all complete rows are counted.
 */
static void test_truncated_record_counts_its_complete_rows(void **state)
{
	const uint64_t numbers[] = {300, 2, 900, 3};
	size_t first;

	(void)state;
	write_row("times_recent", "", "query", 900, 2, numbers);
	first = field.length;
	write_row("server_errors", "", "23", 4, 0, NULL);
	for (size_t length = 0; length <= field.length; length++) {
		uint8_t *part = malloc(length + 1);

		pool_drop_counts(pool);
		memcpy(part, field.data, length);
		count_record_add_pool(pool, part, length);
		assert_int_equal(pool->latency != NULL, length >= first);
		assert_int_equal(pool->errors != NULL, length == field.length);
		free(part);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_counters_of_the_process_are_restored),
		TEST(test_counters_of_a_database_are_restored),
		TEST(test_times_and_errors_of_a_pool_are_restored),
		TEST(test_record_is_added_to_existing_counts),
		TEST(test_pool_without_counts_writes_no_record),
		TEST(test_unknown_rows_are_ignored),
		TEST(test_unknown_buckets_are_counted_in_the_nearest_one),
		TEST(test_truncated_record_counts_its_complete_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
