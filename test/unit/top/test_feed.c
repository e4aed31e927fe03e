/* SPDX-License-Identifier: ISC */
/* Tables of a console, when each SHOW is due, and rates between two answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "top/feed.h"
#include "top/rates.h"

static const usec_t second = USEC_PER_SEC;

/* --- tables ------------------------------------------------------------------------------- */

static void test_columns_are_found_by_name(void **state)
{
	static const char *const names[] = {"a", "b", "a"};
	static const char *const cells[] = {"1", NULL, "x"};
	struct table table = {0};

	(void)state;
	table_begin(&table, names, 3);
	table_add(&table, cells);
	assert_int_equal(table_column(&table, "a"), 0);
	assert_int_equal(table_column(&table, "c"), TABLE_NO_COLUMN);
	assert_string_equal(table_text(&table, 0, 2), "x");
	assert_null(table_text(&table, 0, 1));
	assert_null(table_text(&table, 1, 0));
	assert_null(table_text(&table, 0, TABLE_NO_COLUMN));
	assert_true(table_number(&table, 0, 0, 7) == 1);
	assert_true(table_number(&table, 0, 1, 7) == 7);
	assert_true(table_number(&table, 0, 2, 7) == 7);
	assert_int_equal(table_find(&table, 0, "2"), 1);
	table_free(&table);
}

static void test_tables_are_bounded(void **state)
{
	const char *names[TABLE_COLUMNS_MOST + 1], *cells[TABLE_COLUMNS_MOST + 1];
	static char large[TABLE_CELL_MOST + 100];
	struct table table = {0};

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	for (size_t i = 0; i <= TABLE_COLUMNS_MOST; i++) {
		names[i] = "name";
		cells[i] = large;
	}
	table_begin(&table, names, TABLE_COLUMNS_MOST + 1);
	assert_int_equal(table.column_count, TABLE_COLUMNS_MOST);
	table_add(&table, cells);
	assert_int_equal(strlen(table_text(&table, 0, 1)), TABLE_CELL_MOST);
	table_free(&table);

	table_begin(&table, names, 1);
	cells[0] = "";
	for (size_t i = 0; i < TABLE_ROWS_MOST + 5; i++)
		table_add(&table, cells);
	assert_int_equal(table.row_count, TABLE_ROWS_MOST);
	assert_int_equal(table.left_out, 5);
	table_free(&table);
}

/* --- the feed ----------------------------------------------------------------------------- */

static void answer(struct feed *feed, enum topic topic, size_t rows, usec_t now)
{
	static const char *const names[] = {"x"};
	struct table table = {0};

	table_begin(&table, names, 1);
	for (size_t i = 0; i < rows; i++)
		table_add(&table, names);
	feed_asked(feed, topic, now);
	feed_take(feed, topic, &table, now);
}

static void test_only_what_is_wanted_is_due(void **state)
{
	const unsigned wanted = TOPIC_BIT(TOPIC_POOLS) | TOPIC_BIT(TOPIC_CLIENTS);
	struct feed feed = {.interval = second};
	usec_t due;

	(void)state;
	assert_int_equal(feed_next(&feed, 0, second, &due), TOPICS);
	assert_int_equal(feed_next(&feed, wanted, second, &due), TOPIC_POOLS);
	assert_false(feed_is_complete(&feed, wanted));
	answer(&feed, TOPIC_POOLS, 1, second);
	assert_int_equal(feed_next(&feed, wanted, second, &due), TOPIC_CLIENTS);
	answer(&feed, TOPIC_CLIENTS, 1, second);
	assert_true(feed_is_complete(&feed, wanted));
	assert_int_equal(feed_next(&feed, wanted, second, &due), TOPICS);
	assert_int_equal(due, 2 * second);
	assert_int_equal(feed_next(&feed, wanted, 2 * second, &due), TOPIC_POOLS);
	feed_free(&feed);
}

static void test_many_rows_are_asked_for_less_often(void **state)
{
	const unsigned wanted = TOPIC_BIT(TOPIC_CLIENTS);
	struct feed feed = {.interval = second};
	usec_t due;

	(void)state;
	answer(&feed, TOPIC_CLIENTS, FEED_MANY, second);
	assert_int_equal(feed_next(&feed, wanted, 2 * second, &due), TOPIC_CLIENTS);
	answer(&feed, TOPIC_CLIENTS, FEED_MANY + 1, 2 * second);
	assert_int_equal(feed_next(&feed, wanted, 11 * second, &due), TOPICS);
	assert_int_equal(due, 12 * second);
	/* Nor more often than the operator wants. */
	feed.interval = 60 * second;
	assert_int_equal(feed_next(&feed, wanted, 12 * second, &due), TOPICS);
	feed_free(&feed);
}

static void test_unknown_shows_are_not_repeated(void **state)
{
	const unsigned wanted = TOPIC_BIT(TOPIC_ADVICE) | TOPIC_BIT(TOPIC_POOLS);
	struct feed feed = {.interval = second};
	usec_t due;

	(void)state;
	feed_asked(&feed, TOPIC_ADVICE, second);
	feed_refuse(&feed, TOPIC_ADVICE, "invalid command");
	feed_asked(&feed, TOPIC_POOLS, second);
	feed_refuse(&feed, TOPIC_POOLS, "admin access needed");
	assert_true(feed_is_complete(&feed, wanted));
	assert_int_equal(feed_next(&feed, wanted, 10 * second, &due), TOPICS);
	assert_int_equal(feed_next(&feed, wanted, 11 * second, &due), TOPIC_POOLS);
	feed_asked(&feed, TOPIC_POOLS, 11 * second);
	assert_int_equal(feed_next(&feed, wanted, 12 * second, &due), TOPICS);
	/* Another connection may be to another version. */
	feed_renew(&feed);
	assert_int_equal(feed_next(&feed, wanted, 12 * second, &due), TOPIC_POOLS);
	feed_free(&feed);
}

/* --- rates -------------------------------------------------------------------------------- */

static void take_stats(struct rates *rates, const char *database, const char *transactions,
	const char *queries, const char *wait_time, usec_t now)
{
	static const char *const names[] = {
		"total_xact_count", "database", "total_query_count", "total_wait_time"};
	const char *const cells[] = {transactions, database, queries, wait_time};
	const char *const console[] = {"99999", "pgbouncer", "99999", "0"};
	struct table table = {0};

	table_begin(&table, names, 4);
	table_add(&table, console);
	table_add(&table, cells);
	rates_take(rates, &table, now);
	table_free(&table);
}

static void test_rates_are_those_between_two_answers(void **state)
{
	struct rates rates = {0};

	(void)state;
	take_stats(&rates, "main", "1000", "3000", "0", second);
	assert_false(rates_find(&rates, "main")->known);
	assert_null(rates_find(&rates, "other"));
	take_stats(&rates, "main", "1010", "3040", "50000", 3 * second);
	assert_true(rates_find(&rates, "main")->known);
	assert_true(rates_find(&rates, "main")->transactions == 5);
	assert_true(rates_find(&rates, "main")->queries == 20);
	assert_true(rates_find(&rates, "main")->wait_ms == 5);
	/* The console's own questions do not count. */
	assert_true(rates.sum.known && rates.sum.transactions == 5);
	rates_free(&rates);
}

static void test_counts_that_fall_give_no_rate(void **state)
{
	struct rates rates = {0};

	(void)state;
	take_stats(&rates, "main", "1000", "3000", "0", second);
	take_stats(&rates, "main", "10", "30", "0", 2 * second);
	assert_false(rates_find(&rates, "main")->known);
	take_stats(&rates, "main", "20", "60", "0", 3 * second);
	assert_true(rates_find(&rates, "main")->transactions == 10);
	/* Two answers at the same time. */
	take_stats(&rates, "main", "30", "90", "0", 3 * second);
	assert_false(rates_find(&rates, "main")->known);
	rates_free(&rates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns_are_found_by_name),
		cmocka_unit_test(test_tables_are_bounded),
		cmocka_unit_test(test_only_what_is_wanted_is_due),
		cmocka_unit_test(test_many_rows_are_asked_for_less_often),
		cmocka_unit_test(test_unknown_shows_are_not_repeated),
		cmocka_unit_test(test_rates_are_those_between_two_answers),
		cmocka_unit_test(test_counts_that_fall_give_no_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
