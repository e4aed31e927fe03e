/* SPDX-License-Identifier: ISC */
/*
 * Pairing: which server a client is given and when, and what a server passes through between
 * its release and its next use.
 */
#include <errno.h>

#include "model/statistics/pool_figures.h"
#include "session/pool/pairing.h"
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/writer.h"

static struct pool *pool;

static void start_with(const char *settings)
{
	char config[600];

	snprintf(config, sizeof(config),
		"[databases]\ndb = host=/tmp\n[pgbouncer]\npool_mode = transaction\n"
		"default_pool_size = 3\n%s",
		settings);
	fake_start(config);
	pool = fake_pool("db", "alice");
}

static int start(void **state)
{
	(void)state;
	start_with("server_reset_query =\n");
	return 0;
}

/* The pool launches no servers beyond those of the test. */
static int start_full(void **state)
{
	(void)state;
	start_with("server_reset_query =\ndefault_pool_size = 1\n");
	return 0;
}

/* The server answers the query that it received. */
static void answer(struct endpoint *server)
{
	assert_received(server, "Q");
	send_letters(server, "CZ");
}

static void assert_served(struct endpoint *client)
{
	assert_received(client, "CZ");
	assert_state(client, CLIENT_IDLE);
}

static unsigned count(enum server_list list)
{
	return pool->server_count[list];
}

/* --- the order of waiting clients --------------------------------------------------------- */

static void test_waiting_clients_are_served_in_order(void **state)
{
	struct endpoint *clients[6], *server;

	(void)state;
	server = fake_server(pool);
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
		assert_state(clients[i], i == 0 ? CLIENT_PAIRED : CLIENT_WAITING);
	}
	for (size_t i = 0; i < COUNT(clients); i++) {
		answer(server);
		assert_served(clients[i]);
	}
	assert_state(server, SERVER_IDLE);
}

static void test_client_with_another_query_goes_to_the_end_of_the_queue(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *one = fake_client(pool), *two = fake_client(pool);

	(void)state;
	send_letters(one, "Q");
	send_letters(two, "Q");
	/* The next query arrives together with the answer to the first one. */
	scripted_feed(one->script, "Q\0\0\0\5\0", 6);
	answer(server);
	assert_state(two, CLIENT_PAIRED);
	scripted_run_all(one->script);
	assert_state(one, CLIENT_WAITING);
	answer(server);
	assert_served(two);
	assert_state(one, CLIENT_PAIRED);
	answer(server);
}

static void test_disconnected_waiting_client_is_skipped(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *clients[5];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
	}
	disconnect(clients[1]);
	break_connection(clients[3]);
	assert_closed_silently(clients[1]);
	assert_closed(clients[3]);
	assert_int_equal(pool->client_count[CLIENT_WAITING], 2);
	answer(server);
	assert_served(clients[0]);
	answer(server);
	assert_served(clients[2]);
	answer(server);
	assert_served(clients[4]);
	assert_received(server, "");
}

static void test_waiting_client_is_not_read(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *one = fake_client(pool), *two = fake_client(pool);

	(void)state;
	send_letters(one, "Q");
	send_letters(two, "PBES");
	send_letters(two, "PBES");
	assert_int_equal(scripted_unread(two->script), 45);
	answer(server);
	scripted_run_all(two->script);
	assert_received(server, "PBESPBES");
	send_letters(server, "12DCZ12DCZ");
	assert_received(two, "12DCZ12DCZ");
}

static void test_wait_time_is_counted(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *one = fake_client(pool), *two = fake_client(pool);

	(void)state;
	send_letters(one, "Q");
	send_letters(two, "Q");
	fake_advance(3 * USEC_PER_SEC);
	assert_int_equal(pool_longest_wait(pool, loop_now(&fake_loop)), 3 * USEC_PER_SEC);
	answer(server);
	answer(server);
	assert_int_equal(pool->stats.current.wait_time, 3 * USEC_PER_SEC);
	assert_int_equal(pool->stats.current.assignments, 2);
	assert_int_equal(pool->stats.current.query_time, 6 * USEC_PER_SEC);
}

static void test_each_freed_server_serves_a_waiting_client(void **state)
{
	struct endpoint *servers[3], *clients[7];

	(void)state;
	for (size_t i = 0; i < COUNT(servers); i++)
		servers[i] = fake_server(pool);
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
	}
	assert_int_equal(pool->client_count[CLIENT_WAITING], 4);
	answer(servers[1]);
	assert_int_equal(pool->client_count[CLIENT_WAITING], 3);
	assert_state(clients[3], CLIENT_PAIRED);
	assert_ptr_equal(endpoint_link(clients[3])->peer, endpoint_link(servers[1]));
	for (size_t i = 0; i < COUNT(servers); i++)
		answer(servers[i]);
	assert_int_equal(pool->client_count[CLIENT_WAITING], 0);
}

/* --- which server is used ----------------------------------------------------------------- */

static struct endpoint *run_query(struct endpoint *client, struct endpoint **servers, size_t n)
{
	struct endpoint *taken = NULL;

	send_letters(client, "Q");
	for (size_t i = 0; i < n; i++) {
		if (endpoint_link(servers[i])->peer == endpoint_link(client))
			taken = servers[i];
	}
	assert_non_null(taken);
	answer(taken);
	assert_served(client);
	return taken;
}

static void test_server_used_last_is_used_first(void **state)
{
	struct endpoint *servers[3], *client = fake_client(pool), *other = fake_client(pool);

	(void)state;
	for (size_t i = 0; i < COUNT(servers); i++)
		servers[i] = fake_server(pool);
	for (int i = 0; i < 5; i++)
		assert_ptr_equal(run_query(client, servers, COUNT(servers)), servers[2]);
	send_letters(other, "Q");
	assert_ptr_equal(run_query(client, servers, COUNT(servers)), servers[1]);
	answer(servers[2]);
	assert_ptr_equal(run_query(client, servers, COUNT(servers)), servers[2]);
}

static void test_server_round_robin_uses_all_servers_in_turn(void **state)
{
	struct endpoint *servers[3], *client = fake_client(pool);

	(void)state;
	fake_set("server_round_robin", "1");
	for (size_t i = 0; i < COUNT(servers); i++)
		servers[i] = fake_server(pool);
	for (int i = 0; i < 9; i++)
		assert_ptr_equal(run_query(client, servers, 3), servers[2 - i % 3]);
}

static void test_unusable_idle_servers_are_closed_when_a_client_needs_one(void **state)
{
	struct endpoint *close_needed_server, *dirty, *partial, *good = fake_server(pool);
	struct endpoint *client = fake_client(pool);

	(void)state;
	partial = fake_server(pool);
	dirty = fake_server(pool);
	close_needed_server = fake_server(pool);
	fake_set("default_pool_size", "0");
	endpoint_server(close_needed_server)->close_needed = true;
	send_letters(dirty, "E");
	send_bytes(partial, "N\0\0", 3);
	assert_state(dirty, SERVER_IDLE);
	send_letters(client, "Q");
	assert_closed(close_needed_server);
	assert_closed(dirty);
	assert_closed(partial);
	answer(good);
	assert_served(client);
	assert_true(fake_logged("closing because: obsolete connection"));
	assert_true(fake_logged("closing because: idle server got dirty"));
	assert_true(fake_logged("got packet 'E' from server when not linked"));
}

static void test_message_of_an_idle_server_makes_it_dirty(void **state)
{
	struct endpoint *server;

	(void)state;
	for (const char *letter = "ENSDZC1"; *letter; letter++) {
		const char letters[] = {*letter, '\0'};

		server = fake_server(pool);
		send_letters(server, letters);
		assert_true(endpoint_server(server)->dirty);
	}
}

static void test_notification_of_an_idle_server_is_dropped(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	send_letters(server, "AA");
	assert_false(endpoint_server(server)->dirty);
	send_letters(client, "Q");
	answer(server);
	assert_served(client);
}

/* --- PAUSE and shutdown ------------------------------------------------------------------- */

static void test_no_client_is_paired_while_the_database_is_paused(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	pool->database->paused = true;
	send_letters(client, "Q");
	assert_state(client, CLIENT_WAITING);
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
	control_resume(&fake_registry, pool->database);
	fake_turn();
	answer(server);
	assert_served(client);
}

static void test_pause_closes_idle_servers_and_waits_for_paired_ones(void **state)
{
	struct endpoint *idle = fake_server(pool), *stale, *busy;
	struct endpoint *client = fake_client(pool), *waiting = fake_client(pool);

	(void)state;
	stale = fake_server(pool);
	server_enter(endpoint_server(stale), SERVER_STALE);
	busy = fake_server(pool);
	send_letters(client, "Q");
	control_pause(&fake_registry, NULL);
	fake_turn();
	assert_closed(idle);
	assert_closed(stale);
	assert_state(busy, SERVER_PAIRED);
	assert_false(control_pause_is_done(&fake_registry, NULL));
	send_letters(waiting, "Q");
	answer(busy);
	assert_served(client);
	assert_closed(busy);
	assert_true(fake_logged("closing because: pause mode"));
	assert_true(control_pause_is_done(&fake_registry, NULL));
	assert_state(waiting, CLIENT_WAITING);
	control_resume(&fake_registry, NULL);
	fake_turn();
	busy = fake_launched();
	assert_non_null(busy);
	fake_connected(busy, 0);
	postgres_work(busy);
	assert_received(waiting, "TDCZ");
}

static void test_shutdown_wait_for_servers_refuses_waiting_clients(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *one = fake_client(pool), *two = fake_client(pool);

	(void)state;
	fake_registry.process->shutdown = SHUTDOWN_WAIT_FOR_SERVERS;
	send_letters(one, "Q");
	assert_state(one, CLIENT_PAIRED);
	send_letters(two, "Q");
	assert_closed_with_error(two, "57P01", "server shutting down");
	answer(server);
	assert_served(one);
}

/* --- checks of a released server, in this order ------------------------------------------- */

static void test_released_server_is_closed_first_for_its_age(void **state)
{
	struct endpoint *server, *client = fake_client(pool);

	(void)state;
	fake_set("server_lifetime", "100");
	server = fake_server(pool);
	fake_advance(99 * USEC_PER_SEC);
	send_letters(client, "Q");
	answer(server);
	assert_served(client);
	assert_state(server, SERVER_IDLE);
	fake_advance(USEC_PER_SEC);
	send_letters(client, "Q");
	endpoint_server(server)->close_needed = true;
	answer(server);
	assert_served(client);
	assert_received(server, "X");
	assert_closed(server);
	assert_true(fake_logged("closing because: server lifetime over"));
}

static void test_server_lifetime_0_closes_a_server_after_one_use(void **state)
{
	struct endpoint *client = fake_client(pool), *server;

	(void)state;
	fake_set("server_lifetime", "0");
	send_letters(client, "Q");
	for (int i = 0; i < 3; i++) {
		server = fake_launched();
		assert_non_null(server);
		fake_connected(server, 0);
		postgres_work(server);
		assert_received(client, "TDCZ");
		assert_closed(server);
		send_letters(client, "Q");
	}
}

static void test_released_server_is_closed_next_after_reconnect(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	send_letters(client, "Q");
	control_reconnect(&fake_registry, pool->database);
	assert_state(server, SERVER_PAIRED);
	assert_true(control_is_reconnecting(&fake_registry, NULL));
	pool->database->paused = true;
	answer(server);
	assert_served(client);
	assert_closed(server);
	assert_true(fake_logged("closing because: close_needed"));
	assert_false(control_is_reconnecting(&fake_registry, NULL));
}

static void start_session(const char *settings)
{
	char text[300];

	snprintf(text, sizeof(text), "pool_mode = session\n%s", settings);
	start_with(text);
}

static void test_released_server_is_reset_next_in_session_mode(void **state)
{
	struct endpoint *server, *client, *next;

	(void)state;
	start_session("server_reset_query = DISCARD ALL\n");
	server = fake_server(pool);
	client = fake_client(pool);
	next = fake_client(pool);
	fake_set("default_pool_size", "1");
	send_letters(client, "Q");
	answer(server);
	send_letters(next, "Q");
	assert_state(next, CLIENT_WAITING);
	send_letters(client, "X");
	assert_state(server, SERVER_RESETTING);
	assert_state(next, CLIENT_WAITING);
	assert_null(fake_launched());
	assert_received(server, "Q");
	assert_string_equal((const char *)received_body(server, &(size_t){0}), "DISCARD ALL");
	send_parameter_status(server, "TimeZone", "GMT");
	send_letters(server, "NC");
	send_letters(server, "Z");
	assert_state(next, CLIENT_PAIRED);
	answer(server);
	assert_received(next, "CZ");
}

static void test_error_of_the_reset_query_is_ignored(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	start_session("server_reset_query = nonsense\n");
	server = fake_server(pool);
	client = fake_client(pool);
	send_letters(client, "Q");
	answer(server);
	disconnect(client);
	assert_received(server, "Q");
	send_letters(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_reset_query_that_leaves_a_transaction_open_closes_the_server(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	start_session("server_reset_query = BEGIN\n");
	server = fake_server(pool);
	client = fake_client(pool);
	send_letters(client, "Q");
	answer(server);
	disconnect(client);
	assert_received(server, "Q");
	send_letters(server, "C>");
	assert_closed(server);
	assert_true(fake_logged("closing because: reset query failed"));
}

static void test_server_closed_during_its_reset_is_replaced(void **state)
{
	struct endpoint *server, *client, *next;

	(void)state;
	start_session("default_pool_size = 1\n");
	server = fake_server(pool);
	client = fake_client(pool);
	next = fake_client(pool);
	send_letters(client, "Q");
	answer(server);
	send_letters(next, "Q");
	disconnect(client);
	assert_state(server, SERVER_RESETTING);
	disconnect(server);
	assert_closed(server);
	assert_non_null(fake_launched());
	assert_state(next, CLIENT_WAITING);
}

static void test_message_after_the_reset_makes_the_server_unusable(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	start_session("");
	server = fake_server(pool);
	client = fake_client(pool);
	send_letters(client, "Q");
	answer(server);
	disconnect(client);
	send_letters(server, "CZE");
	assert_true(is_closed(server) || endpoint_server(server)->dirty);
}

static void test_transaction_mode_resets_with_server_reset_query_always_only(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	start_with("server_reset_query = DISCARD ALL\n");
	server = fake_server(pool);
	client = fake_client(pool);
	send_letters(client, "Q");
	answer(server);
	assert_served(client);
	assert_state(server, SERVER_IDLE);
	fake_set("server_reset_query_always", "1");
	send_letters(client, "Q");
	answer(server);
	assert_served(client);
	assert_state(server, SERVER_RESETTING);
	answer(server);
	assert_state(server, SERVER_IDLE);
}

static void test_released_server_is_checked_last_with_server_check_delay_0(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	start_with("server_reset_query =\nserver_check_delay = 0\n"
		   "server_check_query = select 1\n");
	server = fake_server(pool);
	client = fake_client(pool);
	/* A new server need not be checked: its login has just succeeded. */
	send_letters(client, "Q");
	answer(server);
	assert_served(client);
	assert_state(server, SERVER_STALE);
	assert_received(server, "");
	send_letters(client, "Q");
	assert_state(client, CLIENT_WAITING);
	assert_state(server, SERVER_CHECKING);
	assert_received(server, "Q");
	assert_string_equal((const char *)received_body(server, &(size_t){0}), "select 1");
	send_letters(server, "TDCZ");
	assert_state(client, CLIENT_PAIRED);
	answer(server);
	assert_served(client);
}

static void test_reset_does_not_replace_the_check(void **state)
{
	struct endpoint *server, *client, *next;

	(void)state;
	start_session("server_check_delay = 0\ndefault_pool_size = 1\n");
	server = fake_server(pool);
	client = fake_client(pool);
	next = fake_client(pool);
	send_letters(client, "Q");
	answer(server);
	send_letters(next, "Q");
	disconnect(client);
	answer(server);
	assert_state(server, SERVER_CHECKING);
	answer(server);
	assert_state(next, CLIENT_PAIRED);
	answer(server);
}

/* --- server_check_query ------------------------------------------------------------------- */

static int start_stale(void **state)
{
	(void)state;
	start_with("server_reset_query =\nserver_check_delay = 30\ndefault_pool_size = 1\n");
	return 0;
}

static struct endpoint *stale_server(void)
{
	struct endpoint *server = fake_server(pool);

	server_enter(endpoint_server(server), SERVER_STALE);
	return server;
}

static void test_stale_server_is_checked_when_a_client_needs_it(void **state)
{
	struct endpoint *server = stale_server(), *client = fake_client(pool);

	(void)state;
	fake_advance(31 * USEC_PER_SEC);
	assert_received(server, "");
	send_letters(client, "Q");
	assert_state(server, SERVER_CHECKING);
	assert_received(server, "Q");
	assert_string_equal((const char *)received_body(server, &(size_t){0}), "");
	send_letters(server, "IZ");
	answer(server);
	assert_served(client);
}

static void test_stale_server_is_not_checked_within_server_check_delay(void **state)
{
	struct endpoint *server = stale_server(), *client = fake_client(pool);

	(void)state;
	fake_advance(29 * USEC_PER_SEC);
	send_letters(client, "Q");
	assert_state(client, CLIENT_PAIRED);
	answer(server);
	assert_served(client);
}

static void test_empty_server_check_query_disables_the_check(void **state)
{
	struct endpoint *server = stale_server(), *client = fake_client(pool);

	(void)state;
	fake_set("server_check_query", "");
	fake_advance(100 * USEC_PER_SEC);
	send_letters(client, "Q");
	assert_state(client, CLIENT_PAIRED);
	answer(server);
}

static void test_error_of_the_check_query_is_ignored(void **state)
{
	struct endpoint *server = stale_server(), *client = fake_client(pool);

	(void)state;
	fake_advance(31 * USEC_PER_SEC);
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "EZ");
	answer(server);
	assert_served(client);
}

static void test_check_query_that_leaves_a_transaction_open_closes_the_server(void **state)
{
	struct endpoint *server = stale_server(), *client = fake_client(pool);

	(void)state;
	fake_advance(31 * USEC_PER_SEC);
	send_letters(client, "Q");
	send_letters(server, "C>");
	assert_closed(server);
	assert_true(fake_logged("closing because: test query failed"));
	assert_state(client, CLIENT_WAITING);
	assert_non_null(fake_launched());
}

static void test_closed_stale_server_is_replaced(void **state)
{
	struct endpoint *server = stale_server(), *client = fake_client(pool), *launched;

	(void)state;
	fake_advance(31 * USEC_PER_SEC);
	scripted_break(server->script);
	send_letters(client, "Q");
	assert_closed(server);
	fake_turn();
	launched = fake_launched();
	assert_non_null(launched);
	fake_connected(launched, 0);
	postgres_work(launched);
	assert_received(client, "TDCZ");
}

static void test_server_closed_during_its_check_is_replaced(void **state)
{
	struct endpoint *server = stale_server(), *client = fake_client(pool);

	(void)state;
	fake_advance(31 * USEC_PER_SEC);
	send_letters(client, "Q");
	disconnect(server);
	assert_closed(server);
	assert_received(client, "");
	assert_state(client, CLIENT_WAITING);
	assert_non_null(fake_launched());
}

static void test_dirty_stale_server_is_closed_without_a_check(void **state)
{
	struct endpoint *server = stale_server(), *client = fake_client(pool);

	(void)state;
	send_letters(server, "E");
	fake_advance(31 * USEC_PER_SEC);
	send_letters(client, "Q");
	assert_received(server, "X");
	assert_closed(server);
	assert_true(fake_logged("closing because: SV_USED server got dirty"));
}

static void test_one_server_is_checked_for_each_waiting_client(void **state)
{
	struct endpoint *servers[3], *clients[2];

	(void)state;
	fake_set("default_pool_size", "3");
	for (size_t i = 0; i < COUNT(servers); i++)
		servers[i] = stale_server();
	fake_advance(31 * USEC_PER_SEC);
	for (size_t i = 0; i < COUNT(clients); i++)
		clients[i] = fake_client(pool);
	send_letters(clients[0], "Q");
	assert_int_equal(count(SERVERS_TESTED), 1);
	/* The client waits for the server that is being checked; no second check is started. */
	pool_needs_work(pool);
	fake_turn();
	assert_int_equal(count(SERVERS_TESTED), 1);
	send_letters(clients[1], "Q");
	assert_int_equal(count(SERVERS_TESTED), 2);
	assert_int_equal(count(SERVERS_USED), 1);
	/* The server used last is checked first, and serves the first client of the queue. */
	assert_state(servers[2], SERVER_CHECKING);
	assert_state(servers[1], SERVER_CHECKING);
	answer(servers[1]);
	assert_ptr_equal(endpoint_link(clients[0])->peer, endpoint_link(servers[1]));
	answer(servers[2]);
	answer(servers[1]);
	answer(servers[2]);
	assert_served(clients[0]);
	assert_served(clients[1]);
}

/* --- new servers -------------------------------------------------------------------------- */

static void test_server_is_launched_for_a_waiting_client(void **state)
{
	struct endpoint *client = fake_client(pool), *server;

	(void)state;
	send_letters(client, "Q");
	server = fake_launched();
	assert_non_null(server);
	assert_state(server, SERVER_CONNECTING);
	fake_connected(server, 0);
	postgres_work(server);
	assert_received(client, "TDCZ");
	assert_state(server, SERVER_IDLE);
}

static void test_new_server_serves_the_first_waiting_client(void **state)
{
	struct endpoint *one = fake_client(pool), *two = fake_client(pool), *server;

	(void)state;
	fake_set("server_login_concurrency", "1");
	send_letters(one, "Q");
	send_letters(two, "Q");
	server = fake_launched();
	assert_null(fake_launched());
	disconnect(one);
	fake_connected(server, 0);
	postgres_work(server);
	assert_received(two, "TDCZ");
}

static void test_new_server_without_a_waiting_client_is_idle(void **state)
{
	struct endpoint *client = fake_client(pool), *server;

	(void)state;
	send_letters(client, "Q");
	server = fake_launched();
	disconnect(client);
	fake_connected(server, 0);
	postgres_work(server);
	assert_state(server, SERVER_IDLE);
}

static void test_next_server_is_launched_when_the_previous_has_logged_in(void **state)
{
	struct endpoint *clients[4], *server;

	(void)state;
	fake_set("server_login_concurrency", "1");
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = fake_client(pool);
		send_query(clients[i], "slow");
	}
	for (int i = 0; i < 3; i++) {
		server = fake_launched();
		assert_non_null(server);
		assert_null(fake_launched());
		fake_connected(server, 0);
		postgres_work(server);
		assert_state(clients[i], CLIENT_PAIRED);
	}
	assert_null(fake_launched());
	assert_state(clients[3], CLIENT_WAITING);
}

static void test_freed_server_serves_before_the_new_one_has_logged_in(void **state)
{
	struct endpoint *server = fake_server(pool), *launched;
	struct endpoint *one = fake_client(pool), *two = fake_client(pool);

	(void)state;
	send_letters(one, "Q");
	send_letters(two, "Q");
	launched = fake_launched();
	assert_non_null(launched);
	answer(server);
	answer(server);
	assert_served(two);
	fake_connected(launched, 0);
	postgres_work(launched);
	assert_int_equal(count(SERVERS_IDLE), 2);
}

/* --- failing pools ------------------------------------------------------------------------ */

static void test_failing_pool_without_servers_refuses_clients(void **state)
{
	struct endpoint *client = fake_client(pool), *server;

	(void)state;
	send_letters(client, "Q");
	fake_connected(fake_launched(), ECONNREFUSED);
	assert_state(client, CLIENT_WAITING);
	disconnect(client);
	client = fake_client(pool);
	send_letters(client, "Q");
	assert_closed_with_error(client, "08006",
		"server login has been failing, cached error: connect failed "
		"(server_login_retry)");
	assert_null(fake_launched());
	/* After the retry delay the refused client starts the next launch. */
	fake_advance(15 * USEC_PER_SEC);
	client = fake_client(pool);
	send_letters(client, "Q");
	assert_received(client, "E");
	assert_closed(client);
	server = fake_launched();
	assert_non_null(server);
	client = fake_client(pool);
	send_letters(client, "Q");
	assert_closed(client);
	fake_connected(server, 0);
	postgres_work(server);
	client = fake_client(pool);
	send_letters(client, "Q");
	postgres_work(server);
	assert_received(client, "TDCZ");
}

static void test_client_waits_in_a_failing_pool_with_a_server(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *one = fake_client(pool), *two = fake_client(pool);

	(void)state;
	send_letters(one, "Q");
	send_letters(two, "Q");
	fake_connected(fake_launched(), ECONNREFUSED);
	assert_true(pool->failing);
	assert_state(two, CLIENT_WAITING);
	answer(server);
	answer(server);
	assert_served(two);
}

static void test_waiting_clients_keep_waiting_when_a_connect_fails(void **state)
{
	struct endpoint *clients[2], *server;

	(void)state;
	fake_set("query_wait_notify", "0");
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
	}
	for (size_t i = 0; i < COUNT(clients); i++)
		fake_connected(fake_launched(), ECONNREFUSED);
	for (size_t i = 0; i < COUNT(clients); i++)
		assert_state(clients[i], CLIENT_WAITING);
	fake_advance(14 * USEC_PER_SEC);
	pool_needs_work(pool);
	fake_turn();
	assert_null(fake_launched());
	fake_advance(USEC_PER_SEC);
	pool_needs_work(pool);
	fake_turn();
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	postgres_work(server);
	for (size_t i = 0; i < COUNT(clients); i++)
		assert_received(clients[i], "TDCZ");
}

/* --- parameters --------------------------------------------------------------------------- */

static void test_search_path_that_is_not_a_list_is_refused(void **state)
{
	struct endpoint *server, *client;
	struct link *link;
	int index;

	(void)state;
	start_with("track_extra_parameters = search_path\n");
	server = fake_server(pool);
	client = fake_client(pool);
	index = parameter_index(fake_registry.parameters, "search_path");
	for (int i = 0; i < 2; i++) {
		struct parameters *set;

		link = endpoint_link(i ? server : client);
		set = parameters_with(fake_registry.parameters, link->parameters,
			(unsigned)index, i ? "public" : "a b; drop table x");
		parameters_unref(link->parameters);
		link->parameters = set;
	}
	send_letters(client, "Q");
	assert_closed_with_error(client, "08P01", "invalid server parameter");
	assert_state(server, SERVER_IDLE);
	assert_received(server, "");
}

static void test_queue_advances_when_a_client_is_refused(void **state)
{
	struct endpoint *server, *clients[3];
	int index;

	(void)state;
	start_with("track_extra_parameters = search_path\nserver_reset_query =\n"
		   "default_pool_size = 1\n");
	server = fake_server(pool);
	index = parameter_index(fake_registry.parameters, "search_path");
	for (int i = 0; i < 3; i++) {
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
	}
	for (int i = 0; i < 2; i++) {
		struct link *link = endpoint_link(i ? server : clients[1]);
		struct parameters *set = parameters_with(fake_registry.parameters,
			link->parameters, (unsigned)index, i ? "public" : "no list;");

		parameters_unref(link->parameters);
		link->parameters = set;
	}
	answer(server);
	assert_served(clients[0]);
	assert_closed_with_error(clients[1], "08P01", "invalid server parameter");
	answer(server);
	assert_served(clients[2]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define FULL_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_full, fake_end)
#define STALE_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_stale, fake_end)
#define OWN_TEST(name) cmocka_unit_test_teardown(test_##name, fake_end)
	const struct CMUnitTest tests[] = {
		FULL_TEST(waiting_clients_are_served_in_order),
		FULL_TEST(client_with_another_query_goes_to_the_end_of_the_queue),
		FULL_TEST(disconnected_waiting_client_is_skipped),
		FULL_TEST(waiting_client_is_not_read),
		FULL_TEST(wait_time_is_counted),
		TEST(each_freed_server_serves_a_waiting_client),
		TEST(server_used_last_is_used_first),
		TEST(server_round_robin_uses_all_servers_in_turn),
		TEST(unusable_idle_servers_are_closed_when_a_client_needs_one),
		TEST(message_of_an_idle_server_makes_it_dirty),
		TEST(notification_of_an_idle_server_is_dropped),
		TEST(no_client_is_paired_while_the_database_is_paused),
		TEST(pause_closes_idle_servers_and_waits_for_paired_ones),
		FULL_TEST(shutdown_wait_for_servers_refuses_waiting_clients),
		TEST(released_server_is_closed_first_for_its_age),
		TEST(server_lifetime_0_closes_a_server_after_one_use),
		TEST(released_server_is_closed_next_after_reconnect),
		OWN_TEST(released_server_is_reset_next_in_session_mode),
		OWN_TEST(error_of_the_reset_query_is_ignored),
		OWN_TEST(reset_query_that_leaves_a_transaction_open_closes_the_server),
		OWN_TEST(server_closed_during_its_reset_is_replaced),
		OWN_TEST(message_after_the_reset_makes_the_server_unusable),
		OWN_TEST(transaction_mode_resets_with_server_reset_query_always_only),
		OWN_TEST(released_server_is_checked_last_with_server_check_delay_0),
		OWN_TEST(reset_does_not_replace_the_check),
		STALE_TEST(stale_server_is_checked_when_a_client_needs_it),
		STALE_TEST(stale_server_is_not_checked_within_server_check_delay),
		STALE_TEST(empty_server_check_query_disables_the_check),
		STALE_TEST(error_of_the_check_query_is_ignored),
		STALE_TEST(check_query_that_leaves_a_transaction_open_closes_the_server),
		STALE_TEST(closed_stale_server_is_replaced),
		STALE_TEST(server_closed_during_its_check_is_replaced),
		STALE_TEST(dirty_stale_server_is_closed_without_a_check),
		STALE_TEST(one_server_is_checked_for_each_waiting_client),
		TEST(server_is_launched_for_a_waiting_client),
		TEST(new_server_serves_the_first_waiting_client),
		TEST(new_server_without_a_waiting_client_is_idle),
		TEST(next_server_is_launched_when_the_previous_has_logged_in),
		TEST(freed_server_serves_before_the_new_one_has_logged_in),
		TEST(failing_pool_without_servers_refuses_clients),
		TEST(client_waits_in_a_failing_pool_with_a_server),
		TEST(waiting_clients_keep_waiting_when_a_connect_fails),
		OWN_TEST(search_path_that_is_not_a_list_is_refused),
		OWN_TEST(queue_advances_when_a_client_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
