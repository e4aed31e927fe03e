/* SPDX-License-Identifier: ISC */
/* Which clients hold servers: SHOW SERVERS and SHOW CLIENTS joined, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "top/ages.h"
#include "top/holders.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CELLS 6

static struct feed feed;
static struct holds holds;
static struct holders holders;

static void take(enum topic topic, const char *const *names, const char *const (*rows)[CELLS],
	size_t count)
{
	struct table table = {0};

	table_begin(&table, names, CELLS);
	for (size_t i = 0; i < count; i++)
		table_add(&table, rows[i]);
	feed_take(&feed, topic, &table, 1);
}

static const char *const client_names[CELLS] = {
	"link", "ptr", "wait", "wait_us", "request_time", "application_name"};
static const char *const server_names[CELLS] = {
	"ptr", "link", "request_time", "database", "user", "state"};
static const char *const pool_names[CELLS] = {
	"database", "user", "pool_mode", "cl_active", "cl_waiting", "sv_active"};
static const char *const pin_names[CELLS] = {"server", "client", "x", "y", "z", "cause"};

static int fill(void **state)
{
	static const char *const clients[][CELLS] = {
		{"0xa", "0x1", "0", "0", "2026-01-01 00:00:00 UTC", "batch"},
		{"0xb", "0x2", "30", "500000", "2026-01-01 00:00:29 UTC", "web"},
		{"0xc", "0x3", "0", "0", "2026-01-01 00:00:50 UTC", "session"},
		{"0xd", "0x4", "0", "0", "2026-01-01 00:00:40 UTC", "pin"},
		{"", "0x5", "0", "0", "2026-01-01 00:01:00 UTC", "top"},
		{NULL, NULL, NULL, NULL, NULL, NULL},
	};
	static const char *const servers[][CELLS] = {
		{"0xa", "0x1", "2026-01-01 00:00:01 UTC", "main", "app", "active"},
		{"0xb", "0x2", "2026-01-01 00:00:57 UTC", "main", "app", "active"},
		{"0xc", "0x3", "2026-01-01 00:00:57 UTC", "slow", "app", "active"},
		{"0xd", "0x4", "2026-01-01 00:00:57 UTC", "main", "app", "active"},
		/* Its client has left it, or is not there any more. */
		{"0xe", "0x5", "2026-01-01 00:00:57 UTC", "main", "app", "active"},
		{"0xf", "0x9", "2026-01-01 00:00:57 UTC", "main", "app", "active"},
		{"0x10", "", "", "main", "app", "idle"},
		{NULL, NULL, NULL, NULL, NULL, NULL},
	};
	static const char *const pools[][CELLS] = {
		{"main", "app", "transaction", "1", "1", "1"},
		{"slow", "app", "session", "1", "1", "1"},
	};
	static const char *const pins[][CELLS] = {{"0xd", "0x4", "", "", "", "temp table"}};

	(void)state;
	memset(&feed, 0, sizeof(feed));
	take(TOPIC_CLIENTS, client_names, clients, COUNT(clients));
	take(TOPIC_SERVERS, server_names, servers, COUNT(servers));
	take(TOPIC_POOLS, pool_names, pools, COUNT(pools));
	take(TOPIC_PINS, pin_names, pins, COUNT(pins));
	holders_read(&holders, &feed, &holds);
	return 0;
}

static int drop(void **state)
{
	(void)state;
	holders_free(&holders);
	holds_free(&holds);
	feed_free(&feed);
	return 0;
}

static void test_servers_are_joined_with_their_clients(void **state)
{
	static const enum holding expected[] = {HOLDING_TRANSACTION, HOLDING_QUERY,
		HOLDING_SESSION, HOLDING_PIN, HOLDING_NOTHING, HOLDING_NOTHING, HOLDING_NOTHING,
		HOLDING_NOTHING};

	(void)state;
	assert_int_equal(holders.count, COUNT(expected));
	for (size_t i = 0; i < COUNT(expected); i++) {
		assert_int_equal(holders.list[i].holding, expected[i]);
		assert_true((holders.list[i].client == HOLDERS_NO_CLIENT) ==
			(expected[i] == HOLDING_NOTHING));
	}
}

static void test_between_queries_the_last_message_counts(void **state)
{
	(void)state;
	/* The newest request is that of the console's own client: a minute later. */
	assert_true(holders.list[0].since == 60);
	assert_true(holders.list[2].since == 10);
}

static void test_time_in_the_queue_is_no_time_at_the_server(void **state)
{
	(void)state;
	/* 30.5 s since the query came, but the server sent something 3 s ago, or 4 s. */
	assert_true(holders.list[1].since == 4);
}

static void test_query_that_is_seen_again_has_held_its_server(void **state)
{
	static const char *const later[][CELLS] = {
		{"0xb", "0x2", "40", "500000", "2026-01-01 00:00:29 UTC", "web"},
		{"", "0x5", "0", "0", "2026-01-01 00:01:10 UTC", "top"},
	};
	static const char *const another[][CELLS] = {
		{"0xb", "0x2", "1", "0", "2026-01-01 00:00:29 UTC", "web"},
	};

	(void)state;
	holds_take(&holds, feed_table(&feed, TOPIC_CLIENTS), USEC_PER_SEC);
	assert_true(holds_find(&holds, "0x2") == 0);
	take(TOPIC_CLIENTS, client_names, later, COUNT(later));
	holds_take(&holds, feed_table(&feed, TOPIC_CLIENTS), 11 * USEC_PER_SEC);
	assert_true(holds_find(&holds, "0x2") == 10);
	assert_true(holds_find(&holds, "0x1") == 0);
	/* It sends rows all the time, so that the server is not silent. */
	holders_free(&holders);
	holders_read(&holders, &feed, &holds);
	assert_true(holders.list[1].since >= 10);
	/* The next query of the same client is another one. */
	take(TOPIC_CLIENTS, client_names, another, COUNT(another));
	holds_take(&holds, feed_table(&feed, TOPIC_CLIENTS), 12 * USEC_PER_SEC);
	assert_true(holds_find(&holds, "0x2") == 0);
}

static void test_pools_are_summed_up(void **state)
{
	const struct holders_sum sum = holders_of(&holders, &feed, "main", "app");

	(void)state;
	assert_int_equal(sum.queries, 1);
	assert_int_equal(sum.transactions, 1);
	assert_int_equal(sum.others, 1);
	assert_ptr_equal(sum.oldest, &holders.list[0]);
	assert_null(holders_of(&holders, &feed, "main", "other").oldest);
}

static void test_times_that_are_none_give_no_age(void **state)
{
	(void)state;
	assert_true(ages_time("yesterday") == AGES_UNKNOWN);
	assert_true(ages_time("") == AGES_UNKNOWN);
	assert_true(ages_time(NULL) == AGES_UNKNOWN);
	assert_true(
		ages_time("2026-01-01 00:01:00 CET") - ages_time("2026-01-01 00:00:00 CET") ==
		60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_servers_are_joined_with_their_clients, fill, drop),
		cmocka_unit_test_setup_teardown(
			test_between_queries_the_last_message_counts, fill, drop),
		cmocka_unit_test_setup_teardown(
			test_time_in_the_queue_is_no_time_at_the_server, fill, drop),
		cmocka_unit_test_setup_teardown(
			test_query_that_is_seen_again_has_held_its_server, fill, drop),
		cmocka_unit_test_setup_teardown(test_pools_are_summed_up, fill, drop),
		cmocka_unit_test(test_times_that_are_none_give_no_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
