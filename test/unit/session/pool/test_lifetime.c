/* SPDX-License-Identifier: ISC */
/* server_lifetime: when servers go, how many in a second, and what replaces them. */
#include <errno.h>

#include "daemon/janitor.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"

enum { SERVERS = 20, LIFETIME = 1000 };

static struct janitor janitor;
static struct pool *pool;
static struct endpoint *servers[SERVERS];

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n"
		   "pool_mode = transaction\nserver_reset_query =\nserver_check_query =\n"
		   "query_wait_notify = 0\nquery_wait_timeout = 0\nserver_idle_timeout = 0\n"
		   "server_lifetime = 1000\ndefault_pool_size = 20\n");
	pool = fake_pool("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	return 0;
}

static int stop(void **state)
{
	janitor_stop(&janitor);
	return fake_end(state);
}

static void launch_all(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		servers[i] = fake_server(pool);
}

static unsigned closed(void)
{
	return fake_log_count("closing because: server lifetime over");
}

static struct endpoint *busy_client(void)
{
	struct endpoint *client = fake_client(pool);

	send_query(client, "slow");
	return client;
}

static void answer(struct endpoint *server)
{
	send_letters(server, "TDCZ");
}

static void log_in(struct endpoint *server)
{
	assert_non_null(server);
	fake_connected(server, 0);
	postgres_work(server);
}

/* --- when --------------------------------------------------------------------------------- */

static void test_servers_go_in_the_last_tenth_of_their_lifetime(void **state)
{
	unsigned last = 0, steps = 0;

	(void)state;
	launch_all(SERVERS);
	fake_advance((LIFETIME - LIFETIME / 10) * USEC_PER_SEC - 1);
	assert_int_equal(closed(), 0);
	for (unsigned i = 0; i < 10; i++) {
		fake_advance(LIFETIME / 100 * USEC_PER_SEC);
		steps += closed() > last;
		last = closed();
	}
	fake_advance(USEC_PER_SEC);
	assert_int_equal(closed(), SERVERS);
	/* They are spread over all parts of that time. */
	assert_true(steps >= 9);
}

static void test_server_goes_at_an_age_of_its_own(void **state)
{
	usec_t ages[2];

	(void)state;
	/* A change of the lifetime and back does not draw another age. */
	for (unsigned i = 0; i < 2; i++) {
		servers[i] = fake_server(pool);
		endpoint_link(servers[i])->id = 77;
		fake_set("server_lifetime", "5");
		fake_set("server_lifetime", "1000");
		for (ages[i] = 0; !is_closed(servers[i]); ages[i] += USEC_PER_SEC)
			fake_advance(USEC_PER_SEC);
	}
	assert_true(ages[0] > 900 * USEC_PER_SEC && ages[0] < 1001 * USEC_PER_SEC);
	assert_true(ages[0] - ages[1] <= USEC_PER_SEC && ages[1] - ages[0] <= USEC_PER_SEC);
}

static void test_at_most_a_tenth_of_the_servers_goes_in_a_second(void **state)
{
	unsigned before[4] = {0}; /* closed 1, 2, 3 and 4 quarters of a second ago */
	unsigned quarters = 0;

	(void)state;
	launch_all(SERVERS);
	fake_advance(100 * USEC_PER_SEC);
	fake_set("server_lifetime", "10");
	for (; closed() < SERVERS; quarters++) {
		const unsigned left = SERVERS - before[3];

		fake_advance(USEC_PER_SEC / 4);
		assert_true(closed() - before[3] <= (left >= 20 ? left / 10 : 1));
		before[3] = before[2];
		before[2] = before[1];
		before[1] = before[0];
		before[0] = closed();
	}
	assert_true(quarters < 4 * 40);
}

/* --- replacement -------------------------------------------------------------------------- */

/* Both servers of a pool of two are busy, and have reached their age; a client waits. */
static struct endpoint *let_busy_pool_age(void)
{
	struct endpoint *waiting;

	fake_set("default_pool_size", "2");
	launch_all(2);
	busy_client();
	busy_client();
	waiting = busy_client();
	assert_state(waiting, CLIENT_WAITING);
	fake_advance(LIFETIME * USEC_PER_SEC);
	return waiting;
}

static void test_busy_pool_gets_the_new_server_first(void **state)
{
	struct endpoint *waiting = let_busy_pool_age(), *new;

	(void)state;
	assert_null(fake_launched());
	answer(servers[0]);
	assert_state(waiting, CLIENT_PAIRED);
	assert_false(is_closed(servers[0]));
	new = fake_launched();
	assert_non_null(new);
	assert_int_equal(pool_servers(pool), 3);
	busy_client();
	/* It is asked for once, however often the old server is used meanwhile. */
	answer(servers[0]);
	answer(servers[0]);
	assert_null(fake_launched());
	log_in(new);
	assert_int_equal(closed(), 1);
	assert_int_equal(pool_servers(pool), 2);
	assert_null(fake_launched());
}

static void test_old_server_that_is_in_use_goes_when_it_is_free(void **state)
{
	struct endpoint *new;

	(void)state;
	let_busy_pool_age();
	answer(servers[0]);
	new = fake_launched();
	log_in(new);
	assert_int_equal(closed(), 0);
	assert_int_equal(pool_servers(pool), 3);
	/* The pool never has more than one server beyond its size for this. */
	busy_client();
	busy_client();
	answer(new);
	assert_null(fake_launched());
	if (server_of(endpoint_link(servers[0]))->replaced)
		answer(servers[0]);
	else
		answer(servers[1]);
	assert_int_equal(closed(), 1);
	assert_int_equal(pool_servers(pool), 2);
}

static void test_without_a_replacement_the_old_server_goes_a_tenth_later(void **state)
{
	struct endpoint *new;

	(void)state;
	let_busy_pool_age();
	answer(servers[0]);
	new = fake_launched();
	assert_non_null(new);
	fake_connected(new, ECONNREFUSED);
	for (unsigned i = 0; i < 3; i++)
		busy_client();
	answer(servers[0]);
	assert_false(is_closed(servers[0]));
	assert_int_equal(closed(), 0);
	fake_advance(LIFETIME / 10 * USEC_PER_SEC);
	answer(servers[0]);
	assert_closed(servers[0]);
	assert_int_equal(closed(), 1);
}

static void test_shared_limit_leaves_no_room_for_a_replacement(void **state)
{
	(void)state;
	fake_set("max_db_connections", "2");
	let_busy_pool_age();
	busy_client();
	answer(servers[0]);
	assert_null(fake_launched());
	assert_int_equal(pool_servers(pool), 2);
	if (server_of(endpoint_link(servers[0]))->replaced)
		answer(servers[0]);
	else
		answer(servers[1]);
	assert_int_equal(closed(), 1);
	log_in(fake_launched());
	assert_int_equal(pool_servers(pool), 2);
}

static void test_in_session_mode_a_free_server_goes_at_once(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("pool_mode", "session");
	fake_set("default_pool_size", "1");
	launch_all(1);
	client = busy_client();
	busy_client();
	fake_advance(LIFETIME * USEC_PER_SEC);
	answer(servers[0]);
	disconnect(client);
	assert_closed(servers[0]);
	log_in(fake_launched());
	assert_int_equal(pool_servers(pool), 1);
}

static void test_server_of_the_minimum_is_replaced_before_it_goes(void **state)
{
	struct endpoint *new;

	(void)state;
	fake_set("min_pool_size", "1");
	fake_user("alice", "secret");
	launch_all(1);
	fake_advance((LIFETIME - LIFETIME / 10) * USEC_PER_SEC - 1);
	while ((new = fake_launched()) == NULL)
		fake_advance(USEC_PER_SEC);
	assert_false(is_closed(servers[0]));
	log_in(new);
	assert_closed(servers[0]);
	assert_int_equal(pool_connected_servers(pool), 1);
	assert_null(fake_launched());
}

static void test_idle_pool_gets_no_replacement(void **state)
{
	(void)state;
	launch_all(2);
	fake_advance(LIFETIME * USEC_PER_SEC + USEC_PER_SEC);
	assert_int_equal(closed(), 2);
	assert_null(fake_launched());
	assert_int_equal(pool_servers(pool), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(servers_go_in_the_last_tenth_of_their_lifetime),
		TEST(server_goes_at_an_age_of_its_own),
		TEST(at_most_a_tenth_of_the_servers_goes_in_a_second),
		TEST(busy_pool_gets_the_new_server_first),
		TEST(old_server_that_is_in_use_goes_when_it_is_free),
		TEST(without_a_replacement_the_old_server_goes_a_tenth_later),
		TEST(shared_limit_leaves_no_room_for_a_replacement),
		TEST(in_session_mode_a_free_server_goes_at_once),
		TEST(server_of_the_minimum_is_replaced_before_it_goes),
		TEST(idle_pool_gets_no_replacement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
