/* SPDX-License-Identifier: ISC */
/* How pools share a limit of connections: which server is closed for which
 * pool, and when. */
#include "session/pool/caps.h"
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/startup.h"

static const char config[] = "[databases]\n"
			     "db = host=/tmp\n"
			     "other = host=/tmp\n"
			     "heavy = host=/tmp pool_weight=3\n"
			     "warm = host=/tmp min_pool_size=1\n"
			     "[pgbouncer]\n"
			     "auth_type = trust\n"
			     "pool_mode = transaction\n"
			     "server_reset_query =\n"
			     "query_wait_notify = 0\n"
			     "query_wait_timeout = 0\n"
			     "default_pool_size = 20\n";

/* Longer than a server is left alone after its use: see session/pool/caps.c. */
#define UNUSED_ENOUGH (USEC_PER_SEC / 200)

static struct pool *alices, *bobs;

static int start(void **state)
{
	(void)state;
	fake_start(config);
	alices = fake_pool("db", "alice");
	fake_user("alice", "");
	bobs = fake_pool("db", "bob");
	return 0;
}

/* A client that waits for a server of the pool, or is paired with one. */
static struct endpoint *client_with_query(struct pool *of)
{
	struct endpoint *client = fake_client(of);

	send_letters(client, "Q");
	return client;
}

static void answer(struct endpoint *server)
{
	send_letters(server, "CZ");
}

/* The server that is being launched logs in; this takes so long. */
static struct endpoint *log_in_after(usec_t time)
{
	struct endpoint *server = fake_launched();

	assert_non_null(server);
	if (time > 0)
		fake_advance(time);
	fake_connected(server, 0);
	postgres_work(server);
	fake_turn();
	return server;
}

/* A client that asks for this user and the database db, and maybe for
 * replication. */
static struct endpoint *log_in(const char *user, const char *replication)
{
	struct endpoint *client = fake_accept(-1);

	send_startup(client, PROTOCOL_3_0, "user", user, "database", "db",
		replication ? "replication" : NULL, replication, NULL);
	return client;
}

/* --- shares ------------------------------------------------------------------------------- */

static void test_a_place_goes_to_another_pool_though_clients_of_its_own_wait(void **state)
{
	struct endpoint *server = fake_server(alices), *first, *second, *bob;

	(void)state;
	fake_set("max_db_connections", "1");
	first = client_with_query(alices);
	bob = client_with_query(bobs);
	fake_advance(1); /* of pools that wait equally long, any may be the next */
	second = client_with_query(alices);
	assert_state(second, CLIENT_WAITING);
	assert_state(bob, CLIENT_WAITING);
	answer(server);
	assert_received(first, "CZ");
	assert_closed(server);
	log_in_after(0);
	assert_received(bob, "TDCZ");
	/* Then it is the turn of the first pool again. */
	log_in_after(0);
	assert_received(second, "TDCZ");
}

static void test_a_pool_with_more_servers_waits_until_others_are_served(void **state)
{
	struct endpoint *servers[3], *waiting, *bob;

	(void)state;
	fake_set("max_db_connections", "3");
	for (int i = 0; i < 3; i++) {
		servers[i] = fake_server(alices);
		client_with_query(alices);
	}
	waiting = client_with_query(alices);
	bob = client_with_query(bobs);
	answer(servers[0]);
	assert_closed(servers[0]);
	log_in_after(0);
	assert_received(bob, "TDCZ");
	/* Two and two: the next server that is returned stays. */
	fake_server(bobs);
	client_with_query(bobs);
	client_with_query(bobs);
	answer(servers[1]);
	assert_false(is_closed(servers[1]));
	assert_state(waiting, CLIENT_PAIRED);
}

static void test_a_heavier_pool_gets_a_larger_share(void **state)
{
	struct pool *heavy = fake_pool("heavy", "carol"), *light = fake_pool("other", "carol");
	struct endpoint *servers[4];

	(void)state;
	fake_set("max_user_connections", "4");
	for (int i = 0; i < 4; i++) {
		servers[i] = fake_server(light);
		client_with_query(light);
	}
	for (int i = 0; i < 4; i++) {
		client_with_query(light);
		client_with_query(heavy);
		client_with_query(heavy);
	}
	for (int i = 0; i < 3; i++) {
		struct endpoint *launched;

		answer(servers[i]);
		assert_closed(servers[i]);
		launched = fake_launched();
		fake_connected(launched, 0);
		send_letters(launched, "RZ");
		fake_turn();
	}
	assert_int_equal(pool_servers(heavy), 3);
	answer(servers[3]);
	assert_false(is_closed(servers[3]));
}

static void test_a_light_pool_takes_turns_with_a_heavy_one_for_the_only_place(void **state)
{
	struct pool *heavy = fake_pool("heavy", "carol"), *light = fake_pool("other", "carol");
	struct endpoint *server, *client, *waiting, *last;

	(void)state;
	fake_set("max_user_connections", "1");
	client = client_with_query(heavy);
	server = log_in_after(USEC_PER_SEC / 50);
	assert_received(client, "TDCZ");
	send_letters(client, "Q");
	client_with_query(heavy);
	last = client_with_query(heavy);
	waiting = client_with_query(light);
	/* Three turns of three logins each. */
	fake_advance(9 * USEC_PER_SEC / 50 - 10000);
	answer(server);
	assert_false(is_closed(server));
	fake_advance(20000);
	answer(server);
	assert_closed(server);
	log_in_after(USEC_PER_SEC / 50);
	assert_received(waiting, "TDCZ");
	/* The heavy pool has the better claim then. */
	client_with_query(light);
	log_in_after(USEC_PER_SEC / 50);
	assert_received(last, "TDCZ");
}

/* The server of a query that was just answered is free, but the turn does not
 * end yet. */
static void answer_in_this_turn(struct endpoint *server)
{
	struct buffer letters;

	buffer_init(&letters);
	letters_write(&letters, FROM_SERVER, "CZ");
	assert_false(letters.failed);
	scripted_feed(server->script, letters.data, letters.length);
	scripted_run_all(server->script);
	buffer_free(&letters);
}

static void test_one_waiting_pool_gets_one_of_the_servers_that_return_in_a_turn(void **state)
{
	struct endpoint *servers[4];
	unsigned closed = 0;

	(void)state;
	fake_set("max_db_connections", "4");
	for (int i = 0; i < 4; i++) {
		servers[i] = fake_server(alices);
		client_with_query(alices);
	}
	for (int i = 0; i < 4; i++)
		client_with_query(alices);
	client_with_query(bobs);
	for (int i = 0; i < 4; i++)
		answer_in_this_turn(servers[i]);
	fake_turn();
	for (int i = 0; i < 4; i++)
		closed += is_closed(servers[i]);
	assert_int_equal(closed, 1);
	assert_int_equal(bobs->places, 1);
}

static void test_a_pool_whose_turn_is_over_waits_anew(void **state)
{
	struct endpoint *server = fake_server(alices), *second, *bob;

	(void)state;
	fake_set("max_db_connections", "1");
	client_with_query(alices);
	second = client_with_query(alices);
	fake_advance(USEC_PER_MSEC);
	bob = client_with_query(bobs);
	fake_advance(USEC_PER_MSEC);
	answer(server);
	/* Else the server would be closed for nothing. */
	assert_closed(server);
	assert_int_equal(alices->places, 0);
	log_in_after(0);
	assert_received(bob, "TDCZ");
	log_in_after(0);
	assert_received(second, "TDCZ");
}

/* --- which servers are left alone --------------------------------------------------------- */

static void test_a_server_is_left_alone_between_two_queries_of_its_client(void **state)
{
	struct endpoint *alice_server, *alice, *bob_server;

	(void)state;
	fake_set("max_db_connections", "2");
	bob_server = fake_server(bobs);
	alice_server = fake_server(alices);
	client_with_query(bobs);
	client_with_query(bobs);
	alice = client_with_query(alices);
	answer(alice_server);
	assert_received(alice, "CZ");
	/* One server each: the waiting client does not get the one that has just
   * become free. */
	assert_false(is_closed(alice_server));
	send_letters(alice, "Q");
	answer(alice_server);
	assert_received(alice, "CZ");
	/* But it does when that one is not used any more, without the help of the
   * janitor. */
	fake_turn();
	fake_advance(UNUSED_ENOUGH);
	assert_closed(alice_server);
	log_in_after(0);
	assert_false(is_closed(bob_server));
}

static void test_a_new_server_is_used_some_time_before_it_is_closed(void **state)
{
	struct endpoint *server, *alice;

	(void)state;
	fake_set("max_db_connections", "1");
	alice = client_with_query(alices);
	server = log_in_after(USEC_PER_SEC / 50);
	assert_received(alice, "TDCZ");
	client_with_query(bobs);
	send_letters(alice, "Q");
	postgres_work(server);
	assert_received(alice, "TDCZ");
	assert_false(is_closed(server));
	send_letters(alice, "Q");
	fake_advance(USEC_PER_SEC / 10);
	postgres_work(server);
	assert_closed(server);
}

static void test_a_server_is_closed_while_another_is_checked_for_the_only_client(void **state)
{
	struct endpoint *one = fake_server(alices), *other = fake_server(alices);

	(void)state;
	fake_set("max_db_connections", "2");
	fake_set("server_check_query", "select 1");
	server_enter(endpoint_server(one), SERVER_STALE);
	server_enter(endpoint_server(other), SERVER_STALE);
	fake_set("server_check_delay", "0");
	client_with_query(alices);
	assert_int_equal(alices->server_count[SERVERS_TESTED], 1);
	fake_advance(UNUSED_ENOUGH);
	client_with_query(bobs);
	assert_int_equal(is_closed(one) + is_closed(other), 1);
}

static void test_a_server_without_clients_is_closed_at_once(void **state)
{
	struct endpoint *server, *alice;

	(void)state;
	fake_set("max_db_connections", "1");
	alice = client_with_query(alices);
	server = log_in_after(USEC_PER_SEC / 50);
	assert_received(alice, "TDCZ");
	disconnect(alice);
	client_with_query(bobs);
	assert_closed(server);
}

/* --- guarantees --------------------------------------------------------------------------- */

static void test_a_server_within_min_pool_size_is_never_closed_for_others(void **state)
{
	struct pool *warm = fake_pool("warm", "alice"), *other = fake_pool("other", "alice");
	struct endpoint *kept = fake_server(warm), *more, *client;

	(void)state;
	fake_set("max_user_connections", "1");
	client = client_with_query(other);
	fake_advance(10 * USEC_PER_SEC);
	assert_false(is_closed(kept));
	assert_state(client, CLIENT_WAITING);
	/* One beyond it may be closed. */
	fake_set("max_user_connections", "2");
	more = fake_server(warm);
	fake_advance(UNUSED_ENOUGH);
	assert_int_equal(is_closed(kept) + is_closed(more), 1);
}

static void test_pools_without_connections_to_servers_need_no_minimum(void **state)
{
	struct pool *warm = fake_pool("warm", "alice"), *others = fake_pool("other", "alice");
	struct endpoint *kept = fake_server(warm);

	(void)state;
	/* The console and peers inherit it, too. */
	fake_set("min_pool_size", "1");
	fake_set("max_server_connections", "4");
	assert_int_equal(fake_registry.server_cap.minima, 4);
	for (int i = 0; i < 3; i++) {
		fake_server(others);
		client_with_query(others);
	}
	client_with_query(others);
	fake_advance(10 * USEC_PER_SEC);
	assert_false(is_closed(kept));
}

static void test_a_pool_below_min_pool_size_gets_the_next_place(void **state)
{
	struct pool *warm = fake_pool("warm", "alice"), *other = fake_pool("other", "alice");
	struct endpoint *server, *first, *client;

	(void)state;
	fake_set("max_user_connections", "1");
	first = client_with_query(other);
	server = log_in_after(USEC_PER_SEC / 50);
	assert_received(first, "TDCZ");
	client = client_with_query(warm);
	/* It is free, though it was used for a shorter time than others would have to
   * wait. */
	assert_closed(server);
	log_in_after(0);
	assert_received(client, "TDCZ");
}

/* --- servers of the pool itself ----------------------------------------------------------- */

static void test_a_login_closes_an_obsolete_server_of_its_own_pool(void **state)
{
	struct endpoint *server = fake_server(alices), *client;

	(void)state;
	fake_set("max_db_connections", "1");
	pool_mark_close_needed(alices, SERVER_CLOSED_RECONNECT);
	client = log_in("alice", NULL);
	assert_state(client, CLIENT_WELCOMING);
	assert_closed(server);
	assert_non_null(fake_launched());
}

static void test_replication_gets_the_place_of_the_next_free_server_of_its_pool(void **state)
{
	struct endpoint *server = fake_server(alices), *client, *replica;

	(void)state;
	fake_set("max_db_connections", "1");
	client = client_with_query(alices);
	replica = log_in("alice", "database");
	send_letters(replica, "Q");
	assert_state(replica, CLIENT_LAUNCHING);
	assert_false(is_closed(server));
	answer(server);
	assert_received(client, "CZ");
	assert_closed(server);
	assert_non_null(fake_launched());
}

static void test_a_replication_client_that_waits_longest_gets_a_place_of_its_pool(void **state)
{
	struct endpoint *server = fake_server(alices), *replica, *later;

	(void)state;
	fake_set("max_db_connections", "1");
	client_with_query(alices);
	replica = log_in("alice", "database");
	send_letters(replica, "Q");
	fake_advance(USEC_PER_SEC);
	later = client_with_query(alices);
	answer(server);
	assert_closed(server);
	assert_state(later, CLIENT_WAITING);
	assert_ptr_equal(
		endpoint_server(fake_launched())->launched_for, endpoint_client(replica));
}

/* --- several caps ------------------------------------------------------------------------- */

static void test_the_process_has_a_limit_too(void **state)
{
	struct pool *others = fake_pool("other", "carol");
	struct endpoint *server = fake_server(others), *client;

	(void)state;
	fake_set("max_server_connections", "1");
	client_with_query(others);
	client = client_with_query(alices);
	assert_true(
		fake_logged("launch_new_connection: max_server_connections reached (1 >= 1)"));
	answer(server);
	assert_closed(server);
	log_in_after(0);
	assert_received(client, "TDCZ");
	/* A limit that ends lets all waiting pools launch. */
	client_with_query(bobs);
	client_with_query(alices);
	fake_set("max_server_connections", "0");
	fake_turn();
	assert_non_null(fake_launched());
}

static void test_a_paused_pool_leaves_its_place_to_others(void **state)
{
	struct pool *others = fake_pool("other", "alice"), *third = fake_pool("heavy", "alice");
	struct endpoint *server = fake_server(others), *client;

	(void)state;
	fake_set("max_user_connections", "1");
	client_with_query(others);
	client_with_query(alices);
	client = client_with_query(third);
	alices->database->paused = true;
	answer(server);
	assert_closed(server);
	log_in_after(0);
	assert_received(client, "TDCZ");
	assert_int_equal(pool_servers(alices), 0);
}

static void test_a_release_costs_the_same_with_any_number_of_waiting_pools(void **state)
{
	enum { POOLS = 500 };
	struct endpoint *server = fake_server(alices);
	char name[16];

	(void)state;
	fake_set("max_db_connections", "1");
	client_with_query(alices);
	for (int i = 0; i < POOLS; i++) {
		snprintf(name, sizeof(name), "user%d", i);
		client_with_query(fake_pool("db", name));
		fake_advance(USEC_PER_MSEC);
	}
	answer(server);
	/* The one that has waited longest gets the place, and no other has work. */
	assert_int_equal(pool_servers(fake_pool("db", "user0")), 1);
	for (int i = 1; i < POOLS; i++) {
		snprintf(name, sizeof(name), "user%d", i);
		assert_ptr_equal(fake_pool("db", name)->wait.cap, &alices->database->cap);
		assert_false(fake_pool("db", name)->has_work);
	}
}

static void test_a_database_may_go_while_a_place_of_it_is_free(void **state)
{
	struct pool *others = fake_pool("other", "carol");
	struct database *gone = alices->database;

	(void)state;
	fake_set("max_db_connections", "1");
	fake_server(alices);
	client_with_query(alices);
	client_with_query(bobs);
	client_with_query(others);
	fake_turn();
	/* Its pools are closed one after the other, so a place is free while one
   * still waits. */
	control_kill(&fake_registry, gone, false);
	assert_true(TAILQ_EMPTY(&fake_registry.caps_due));
	registry_drop_database(gone);
	fake_turn();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(a_place_goes_to_another_pool_though_clients_of_its_own_wait),
		TEST(a_pool_with_more_servers_waits_until_others_are_served),
		TEST(a_heavier_pool_gets_a_larger_share),
		TEST(a_light_pool_takes_turns_with_a_heavy_one_for_the_only_place),
		TEST(a_server_is_left_alone_between_two_queries_of_its_client),
		TEST(a_new_server_is_used_some_time_before_it_is_closed),
		TEST(a_server_without_clients_is_closed_at_once),
		TEST(a_server_within_min_pool_size_is_never_closed_for_others),
		TEST(a_pool_below_min_pool_size_gets_the_next_place),
		TEST(the_process_has_a_limit_too),
		TEST(a_paused_pool_leaves_its_place_to_others),
		TEST(a_release_costs_the_same_with_any_number_of_waiting_pools),
		TEST(one_waiting_pool_gets_one_of_the_servers_that_return_in_a_turn),
		TEST(a_pool_whose_turn_is_over_waits_anew),
		TEST(a_login_closes_an_obsolete_server_of_its_own_pool),
		TEST(replication_gets_the_place_of_the_next_free_server_of_its_pool),
		TEST(a_replication_client_that_waits_longest_gets_a_place_of_its_pool),
		TEST(a_server_is_closed_while_another_is_checked_for_the_only_client),
		TEST(pools_without_connections_to_servers_need_no_minimum),
		TEST(a_database_may_go_while_a_place_of_it_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
