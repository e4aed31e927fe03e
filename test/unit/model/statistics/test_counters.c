/* SPDX-License-Identifier: ISC */
/* The counters of metrics: closed connections, servers that are opened, reset or unclean. */
#include <errno.h>

#include "model/statistics/counters.h"
#include "model/statistics/reason_facts.h"
#include "session/link/close.h"
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/startup.h"

static struct pool *pool;

static void start_with(const char *settings)
{
	char text[600];

	snprintf(text, sizeof(text),
		"[databases]\ndb = host=/tmp,/var/tmp\n[pgbouncer]\npool_mode = transaction\n"
		"server_reset_query =\nquery_wait_notify = 0\nmax_client_conn = 3\n%s",
		settings);
	fake_start(text);
	pool = fake_pool("db", "alice");
}

static int start(void **state)
{
	(void)state;
	start_with("");
	return 0;
}

static const struct database_counters *mine(void)
{
	const struct database_counters *counters = counters_of_database(pool->database);
	static const struct database_counters none;

	return counters ? counters : &none;
}

static const struct counters *all(void)
{
	return &fake_registry.counters;
}

static uint64_t sum(const uint64_t *counts, unsigned count)
{
	uint64_t total = 0;

	while (count-- > 0)
		total += counts[count];
	return total;
}

/* --- clients ------------------------------------------------------------------------------ */

/*
 * A reason is counted under its label, or under `other` if the metric does not have that label.
 */
static void test_closed_clients_are_counted_by_reason(void **state)
{
	(void)state;
	for (unsigned reason = 0; reason < REASON_COUNT; reason++) {
		const enum client_closing label = reason_client_closed((enum reason)reason);
		const uint64_t before = mine()->client_closed[label];
		const uint64_t total = sum(mine()->client_closed, CLIENT_CLOSINGS);
		const uint64_t errors = all()->errors[reason];
		struct client_link *client = endpoint_client(fake_client(pool));
		const struct failure why = failure_of((enum reason)reason, "x");

		client->database = pool->database;
		client_close(client, &why);
		assert_int_equal(mine()->client_closed[label], before + 1);
		assert_int_equal(sum(mine()->client_closed, CLIENT_CLOSINGS), total + 1);
		/* A reason with an ErrorResponse is an error; a disconnect is not. */
		assert_int_equal(all()->errors[reason], errors + (why.sqlstate[0] != '\0'));
		client->database = NULL;
		fake_turn();
	}
	assert_int_equal(sum(all()->client_rejected, CLIENT_REJECTIONS), 0);
}

static void test_rejected_clients_are_counted_by_reason(void **state)
{
	static const struct {
		enum reason reason;
		enum client_rejection rejection;
	} cases[] = {
		{REASON_MAX_CLIENT_CONN, CLIENT_REJECTED_MAX_CLIENT_CONN},
		{REASON_MAX_CLIENT_CONN_PER_ADDRESS, CLIENT_REJECTED_ADDRESS_LIMIT},
		{REASON_MAX_DB_CLIENT_CONNECTIONS, CLIENT_REJECTED_DB_LIMIT},
		{REASON_MAX_USER_CLIENT_CONNECTIONS, CLIENT_REJECTED_USER_LIMIT},
		{REASON_LOGIN_REJECTED, CLIENT_REJECTED_HBA},
		{REASON_SSL_REQUIRED, CLIENT_REJECTED_TLS_REQUIRED},
		{REASON_POOLER_SHUTTING_DOWN, CLIENT_REJECTED_SHUTDOWN},
		{REASON_BAD_PACKET, CLIENT_REJECTED_PROTOCOL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		client_close_for(endpoint_client(fake_accept(-1)), cases[i].reason);
		assert_int_equal(all()->client_rejected[cases[i].rejection], 1);
		fake_turn();
	}
	/* The clients had no database yet. */
	assert_int_equal(sum(all()->nowhere.client_closed, CLIENT_CLOSINGS), COUNT(cases));
}

static void test_silent_logins_that_make_room_count_as_max_client_conn(void **state)
{
	struct endpoint *silent[4];

	(void)state;
	for (size_t i = 0; i < COUNT(silent); i++)
		silent[i] = fake_accept(-1);
	fake_advance(5 * USEC_PER_SEC);
	send_startup(silent[0], PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_int_equal(all()->client_rejected[CLIENT_REJECTED_MAX_CLIENT_CONN], 1);
}

/* Rows may not contradict themselves. */
static void test_facts_of_each_reason_fit_together(void **state)
{
	(void)state;
	for (unsigned i = 0; i < REASON_COUNT; i++) {
		const enum reason reason = (enum reason)i;
		const bool error = reason_is_server_error(reason);

		assert_int_equal(
			reason_protocol_error(reason, PROTOCOL_CLIENT) < PROTOCOL_ERRORS,
			reason_client_closed(reason) == CLIENT_CLOSED_PROTOCOL);
		/* A connection that brings a cancel request gets no ErrorResponse. */
		if (reason_cancel_outcome(reason) < CANCEL_OUTCOMES)
			assert_string_equal(reason_sqlstate(reason), "");
		/* A server that pgusher does not want any more has made no error. */
		if (!reason_fails_login(reason))
			assert_false(error);
		if (reason_breaks_connection(reason) ||
			reason_connect_outcome(reason) != CONNECT_OTHER)
			assert_true(error);
		/* A client that fails to authenticate is closed or rejected as that. */
		if (reason_auth_failed(reason) < AUTH_FAILURES)
			assert_true(reason_client_closed(reason) != CLIENT_CLOSED_OTHER ||
				reason_client_rejected(reason) < CLIENT_REJECTIONS);
	}
}

static void test_a_broken_server_is_sent_no_terminate(void **state)
{
	(void)state;
	for (unsigned reason = 0; reason < REASON_COUNT; reason++) {
		struct endpoint *server = fake_server(pool);
		const struct failure why = failure_of((enum reason)reason, "x");

		if (reason == REASON_DISKO_OVER)
			continue;
		server_close(endpoint_server(server), &why);
		assert_received(
			server, reason_breaks_connection((enum reason)reason) ? "" : "X");
		fake_turn();
	}
}

static void test_protocol_errors_are_counted_by_side_and_kind(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	send_bytes(client, "\x01....", 5);
	assert_closed(client);
	assert_int_equal(all()->protocol_errors[PROTOCOL_CLIENT][PROTOCOL_ERROR_LENGTH] +
			all()->protocol_errors[PROTOCOL_CLIENT][PROTOCOL_ERROR_TYPE],
		1);
	client = fake_client(pool);
	send_letters(client, "Q");
	send_bytes(server, "Z\0\0\0\1", 5);
	assert_closed(server);
	assert_int_equal(all()->protocol_errors[PROTOCOL_SERVER][PROTOCOL_ERROR_LENGTH], 1);
	/* The client, which was closed with the server, has made no error. */
	assert_int_equal(sum(all()->protocol_errors[PROTOCOL_CLIENT], PROTOCOL_ERRORS), 1);
	assert_int_equal(all()->errors[REASON_BAD_PKT_HEADER], 1);
}

/* --- cancel requests ---------------------------------------------------------------------- */

static struct endpoint *cancel(const void *key, size_t length)
{
	struct endpoint *asker = fake_accept(-1);
	struct buffer buffer;

	buffer_init(&buffer);
	startup_write_cancel(&buffer, key, length);
	send_buffer(asker, &buffer);
	return asker;
}

static void test_cancel_requests_are_counted_by_outcome(void **state)
{
	struct endpoint *client = fake_client(pool), *carrier;
	uint8_t key[8];

	(void)state;
	fake_server(pool);
	cancel("nobodys!", 8);
	assert_int_equal(all()->cancel_requests[CANCEL_UNKNOWN_KEY], 1);
	memcpy(key, endpoint_client(client)->key, sizeof(key));
	cancel(key, sizeof(key));
	assert_int_equal(all()->cancel_requests[CANCEL_LATE], 1);
	send_letters(client, "Q");
	cancel(key, sizeof(key));
	carrier = fake_launched();
	fake_connected(carrier, 0);
	disconnect(carrier);
	assert_int_equal(all()->cancel_requests[CANCEL_FORWARDED], 1);
	/* The end of a connection that has sent a CancelRequest is not an error. */
	assert_int_equal(sum(all()->errors, REASON_COUNT), 0);
	fake_set("cancel_wait_timeout", "5");
	pool->failing = true;
	pool->last_launch = loop_now(&fake_loop);
	cancel(key, sizeof(key));
	fake_advance(6 * USEC_PER_SEC);
	assert_int_equal(all()->cancel_requests[CANCEL_TIMEOUT], 1);
	assert_int_equal(sum(all()->cancel_requests, CANCEL_OUTCOMES), 4);
	pool->failing = false;
}

/* --- servers ------------------------------------------------------------------------------ */

static void test_closed_servers_are_counted_by_reason(void **state)
{
	(void)state;
	for (unsigned reason = 0; reason < REASON_COUNT; reason++) {
		const enum server_closing label = reason_server_closed((enum reason)reason);
		const uint64_t before = mine()->server_closed[label];
		struct server_link *server = endpoint_server(fake_server(pool));
		const struct failure why = failure_of((enum reason)reason, "x");

		server_close(server, &why);
		assert_int_equal(mine()->server_closed[label], before + 1);
		fake_turn();
	}
	assert_int_equal(sum(mine()->server_closed, SERVER_CLOSINGS), REASON_COUNT);
	assert_int_equal(all()->errors[REASON_SERVER_CONN_CRASHED], 1);
	assert_int_equal(all()->errors[REASON_SERVER_LIFETIME_OVER], 0);
	assert_int_equal(all()->errors[REASON_SERVER_IDLE_TIMEOUT], 0);
	assert_int_equal(all()->errors[REASON_PAUSE_MODE], 0);
}

static void test_retired_server_keeps_the_first_cause(void **state)
{
	static const enum server_closing causes[] = {
		SERVER_CLOSED_RELOAD, SERVER_CLOSED_DNS, SERVER_CLOSED_RECONNECT};

	(void)state;
	for (size_t i = 0; i < COUNT(causes); i++) {
		struct endpoint *server = fake_server(pool), *client = fake_client(pool);

		send_letters(client, "Q");
		control_retire(&fake_registry, pool->database, causes[i]);
		control_reconnect(&fake_registry, pool->database);
		send_letters(server, "CZ");
		assert_closed(server);
		assert_int_equal(mine()->server_closed[causes[i]], 1);
		pool->welcome = parameters_empty(fake_registry.parameters);
	}
}

static void test_server_and_client_closed_together_are_one_error(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	send_letters(client, "Q");
	disconnect(server);
	assert_closed(client);
	assert_int_equal(all()->errors[REASON_SERVER_CONN_CRASHED], 1);
	assert_int_equal(mine()->server_closed[SERVER_CLOSED_ERROR], 1);
}

static void test_unclean_servers_are_counted_by_what_was_open(void **state)
{
	static const struct {
		const char *asked, *answered;
		enum unclean_release why;
	} cases[] = {
		{"Q", "C>", UNCLEAN_OPEN_TX},
		{"Q", "G", UNCLEAN_COPY},
		{"Q", "", UNCLEAN_PENDING},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *server = fake_server(pool), *client = fake_client(pool);

		send_letters(client, cases[i].asked);
		send_letters(server, cases[i].answered);
		disconnect(client);
		assert_state(server, SERVER_DRAINING);
		assert_int_equal(mine()->unclean_release[cases[i].why], 1);
		assert_int_equal(mine()->server_closed[SERVER_CLOSED_CLIENT_GONE], i);
		/* The server sends an unrequested message. */
		send_letters(server, "ZZZ");
		assert_closed(server);
	}
	assert_int_equal(sum(mine()->unclean_release, UNCLEAN_RELEASES), COUNT(cases));
	assert_int_equal(mine()->server_closed[SERVER_CLOSED_CLIENT_GONE], COUNT(cases));
}

static void test_unrequested_message_is_counted_as_out_of_sync(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	send_letters(client, "Q");
	send_letters(server, "CZD");
	assert_closed(server);
	assert_int_equal(mine()->unclean_release[UNCLEAN_OUT_OF_SYNC], 1);
	assert_int_equal(mine()->server_closed[SERVER_CLOSED_UNCLEAN], 1);
	assert_int_equal(all()->protocol_errors[PROTOCOL_SERVER][PROTOCOL_ERROR_ORDER], 1);
	assert_state(client, CLIENT_IDLE);
}

static void test_release_of_a_clean_server_is_not_counted(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	send_letters(client, "Q");
	send_letters(server, "CZ");
	disconnect(client);
	assert_state(server, SERVER_IDLE);
	assert_int_equal(sum(mine()->unclean_release, UNCLEAN_RELEASES), 0);
}

static void test_resets_are_counted_by_outcome(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	start_with("server_reset_query = DISCARD ALL\nserver_reset_query_always = 1\n");
	server = fake_server(pool);
	client = fake_client(pool);
	send_letters(client, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_RESETTING);
	send_letters(server, "CZ");
	assert_int_equal(mine()->server_reset[RESET_OK], 1);
	send_letters(client, "Q");
	send_letters(server, "CZ");
	disconnect(server);
	assert_int_equal(mine()->server_reset[RESET_FAILED], 1);
	assert_int_equal(mine()->server_reset[RESET_OK], 1);
}

/* --- connecting --------------------------------------------------------------------------- */

static struct endpoint *launch(void)
{
	struct endpoint *client = fake_client(pool);

	(void)client;
	send_letters(client, "Q");
	return fake_launched();
}

static uint64_t connects(enum connect_outcome outcome)
{
	const struct histogram *times = mine()->connects[outcome];

	return times ? histogram_count(times) : 0;
}

static void test_connection_is_timed_until_it_is_usable(void **state)
{
	struct endpoint *server = launch();
	bool up = false;

	(void)state;
	assert_int_equal(mine()->server_opened, 1);
	assert_false(counters_host_is_known(pool->database, 0, &up));
	fake_connected(server, 0);
	fake_advance(30 * 1000);
	postgres_work(server);
	assert_int_equal(connects(CONNECT_OK), 1);
	assert_int_equal(mine()->connects[CONNECT_OK]->counts[6], 1); /* up to 50 ms */
	assert_true(counters_host_is_known(pool->database, endpoint_server(server)->host, &up));
	assert_true(up);
}

static void test_refusing_host_is_down_until_it_accepts(void **state)
{
	struct endpoint *server = launch();
	bool up = true;

	(void)state;
	fake_connected(server, ECONNREFUSED);
	fake_connected(fake_launched(), ECONNREFUSED);
	assert_int_equal(connects(CONNECT_REFUSED), 1);
	for (unsigned host = 0; host < 2; host++) {
		up = true;
		assert_true(counters_host_is_known(pool->database, host, &up));
		assert_false(up);
	}
	assert_false(counters_host_is_known(pool->database, 2, &up));
	counters_forget_hosts(pool->database);
	assert_false(counters_host_is_known(pool->database, 0, &up));
}

static void test_error_of_a_server_during_login_counts_as_auth(void **state)
{
	struct endpoint *server = launch();

	(void)state;
	fake_connected(server, 0);
	send_error(server, "28P01", "password authentication failed");
	assert_int_equal(connects(CONNECT_AUTH), 1);
	pool->failing = false;
	server = launch();
	fake_connected(server, 0);
	send_error(server, "53300", "too many");
	assert_int_equal(connects(CONNECT_OTHER), 1);
}

static void test_closing_a_server_ourselves_is_not_its_failure(void **state)
{
	struct endpoint *server = launch();
	bool up;

	(void)state;
	server_close_for(endpoint_server(server), REASON_PAUSE_MODE);
	for (unsigned i = 0; i < CONNECT_OUTCOMES; i++)
		assert_int_equal(connects((enum connect_outcome)i), 0);
	assert_false(counters_host_is_known(pool->database, 0, &up));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_closed_clients_are_counted_by_reason),
		TEST(test_rejected_clients_are_counted_by_reason),
		TEST(test_silent_logins_that_make_room_count_as_max_client_conn),
		TEST(test_facts_of_each_reason_fit_together),
		TEST(test_a_broken_server_is_sent_no_terminate),
		TEST(test_protocol_errors_are_counted_by_side_and_kind),
		TEST(test_cancel_requests_are_counted_by_outcome),
		TEST(test_closed_servers_are_counted_by_reason),
		TEST(test_retired_server_keeps_the_first_cause),
		TEST(test_server_and_client_closed_together_are_one_error),
		TEST(test_unclean_servers_are_counted_by_what_was_open),
		TEST(test_unrequested_message_is_counted_as_out_of_sync),
		TEST(test_release_of_a_clean_server_is_not_counted),
		cmocka_unit_test_teardown(test_resets_are_counted_by_outcome, fake_end),
		TEST(test_connection_is_timed_until_it_is_usable),
		TEST(test_refusing_host_is_down_until_it_accepts),
		TEST(test_error_of_a_server_during_login_counts_as_auth),
		TEST(test_closing_a_server_ourselves_is_not_its_failure),
	};

	return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
