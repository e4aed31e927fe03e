/* SPDX-License-Identifier: ISC */
/*
 * A pool that needs a place below two full caps, of its database and of its user, gets both,
 * though places of the two never become free in the same moment.
 */
#include "session/pool/caps.h"
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"

static const char config[] = "[databases]\n"
			     "db = host=/tmp\n"
			     "other = host=/tmp\n"
			     "third = host=/tmp\n"
			     "[pgbouncer]\n"
			     "auth_type = trust\n"
			     "pool_mode = transaction\n"
			     "server_reset_query =\n"
			     "query_wait_notify = 0\n"
			     "query_wait_timeout = 0\n"
			     "max_db_connections = 1\n"
			     "max_user_connections = 1\n";

/* The pool in need, db of alice, and those that share one of its caps. */

static struct pool *needy, *same_database, *same_user;
static struct endpoint *user_server; /* of same_user */

static int start(void **state)
{
	(void)state;
	fake_start(config);
	needy = fake_pool("db", "alice");
	same_database = fake_pool("db", "bob");
	same_user = fake_pool("other", "alice");
	return 0;
}

static struct endpoint *client_with_query(struct pool *of)
{
	struct endpoint *client = fake_client(of);

	send_letters(client, "Q");
	return client;
}

/* Returns the server that is being launched, after its login. */
static struct endpoint *log_in(void)
{
	struct endpoint *server = fake_launched();

	assert_non_null(server);
	fake_connected(server, 0);
	send_letters(server, "RZ");
	return server;
}

static void answer(struct endpoint *server)
{
	send_letters(server, "CZ");
}

/* --- pools that are always busy ----------------------------------------------------------- */

/* Clients that always have a query, and when servers answer: in this rhythm. Milliseconds. */
struct load {
	const char *database, *user;
	unsigned clients, period, phase;
	struct pool *pool;
	unsigned done;
};

enum { LOADS = 6, LAUNCHED = 8 };

/* Servers that log in, and when they are done. */
static struct {
	struct endpoint *server;
	unsigned due;
} launched[LAUNCHED];

static void log_in_launched(unsigned now, unsigned login)
{
	for (unsigned i = 0; i < LAUNCHED; i++) {
		struct endpoint *server = launched[i].server;

		if (!server && (server = fake_launched()) != NULL) {
			launched[i].server = server;
			launched[i].due = now + login;
		}
		if (!server || now < launched[i].due)
			continue;
		launched[i].server = NULL;
		if (is_closed(server))
			continue;
		fake_connected(server, 0);
		send_letters(server, "RZ");
	}
}

static struct load *load_of(struct load *loads, const struct pool *pool)
{
	for (unsigned i = 0; i < LOADS && loads[i].pool; i++) {
		if (loads[i].pool == pool)
			return &loads[i];
	}
	return NULL;
}

/* Answers the query of this server if it is time, and sends the next one of the same client. */
static void work(struct endpoint *server, struct load *load, unsigned now)
{
	struct link *client = endpoint_link(server)->peer;
	struct endpoint *other;

	if (!client || !load || now % load->period != load->phase)
		return;
	for (other = fake_next_endpoint(NULL); other; other = fake_next_endpoint(other)) {
		if (!is_closed(other) && endpoint_link(other) == client)
			break;
	}
	answer(server);
	load->done++;
	send_letters(other, "Q");
}

/* Runs so long, with logins that take so long. */
static void run(struct load *loads, unsigned login, unsigned milliseconds)
{
	struct endpoint *each;

	memset(launched, 0, sizeof(launched));
	for (unsigned i = 0; i < LOADS && loads[i].database; i++) {
		loads[i].pool = fake_pool(loads[i].database, loads[i].user);
		loads[i].done = 0;
		for (unsigned clients = 0; clients < loads[i].clients; clients++)
			client_with_query(loads[i].pool);
	}
	for (unsigned now = 0; now < milliseconds; now++) {
		log_in_launched(now, login);
		for (each = fake_next_endpoint(NULL); each; each = fake_next_endpoint(each)) {
			if (each->sender == FROM_SERVER && !is_closed(each))
				work(each, load_of(loads, endpoint_link(each)->pool), now);
		}
		fake_advance(USEC_PER_MSEC);
	}
}

static void test_it_is_served_whatever_the_rhythm_of_the_others(void **state)
{
	static const struct {
		unsigned login, of_database, of_user, phase;
	} cases[] = {
		{0, 4, 4, 2},
		{5, 4, 4, 2},
		{5, 2, 100, 51},
		{5, 100, 2, 1},
		{20, 7, 13, 3},
		{30, 400, 300, 150},
	};
	enum { TIME = 4000 };

	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct load loads[LOADS] = {
			{"db", "alice", .clients = 1, .period = 1},
			{"db", "bob", .clients = 2, .period = cases[i].of_database},
			{"other", "alice", .clients = 2, .period = cases[i].of_user,
				.phase = cases[i].phase},
		};

		if (i > 0)
			start(state);
		run(loads, cases[i].login, TIME);
		assert_true(loads[0].done >= 50);
		for (unsigned other = 1; other < 3; other++) {
			const unsigned used =
				loads[0].done + loads[other].done * loads[other].period;

			/* It does not take more than its turns, and what is lost are logins. */
			assert_true(loads[other].done * loads[other].period > TIME / 4);
			assert_true(used > TIME / 2);
		}
		if (i + 1 < COUNT(cases))
			fake_end(state);
	}
}

static void test_pools_that_wait_in_a_ring_are_all_served(void **state)
{
	struct load loads[LOADS] = {
		{"db", "alice", .clients = 2, .period = 3, .phase = 0},
		{"other", "alice", .clients = 2, .period = 5, .phase = 1},
		{"other", "bob", .clients = 2, .period = 3, .phase = 2},
		{"db", "bob", .clients = 2, .period = 7, .phase = 3},
		{"third", "alice", .clients = 1, .period = 2, .phase = 1},
		{"third", "bob", .clients = 1, .period = 5, .phase = 4},
	};

	(void)state;
	run(loads, 2, 5000);
	for (unsigned i = 0; i < LOADS; i++)
		assert_true(loads[i].done * loads[i].period > 500);
}

static void test_a_limit_of_the_process_does_not_keep_it_out(void **state)
{
	struct load loads[LOADS] = {
		{"db", "alice", .clients = 1, .period = 1},
		{"db", "bob", .clients = 2, .period = 4, .phase = 0},
		{"other", "alice", .clients = 2, .period = 4, .phase = 2},
		{"third", "carol", .clients = 2, .period = 3, .phase = 1},
	};

	(void)state;
	fake_set("max_server_connections", "2");
	run(loads, 2, 5000);
	for (unsigned i = 0; i < 4; i++)
		assert_true(loads[i].done * loads[i].period > 500);
}

/* --- promises ----------------------------------------------------------------------------- */

/* A place below the cap of the database is kept for the pool, which waits for one of its user. */
static struct endpoint *promise(void)
{
	struct endpoint *server = fake_server(same_database), *client;

	user_server = fake_server(same_user);
	client_with_query(same_database);
	client_with_query(same_user);
	client = client_with_query(needy);
	fake_advance(USEC_PER_SEC);
	answer(server);
	assert_closed(server);
	assert_ptr_equal(needy->database->cap.promised_to, needy);
	assert_ptr_equal(needy->wait.cap, &needy->user->cap);
	return client;
}

/* Another pool waits for the place. */
static struct endpoint *another(void)
{
	struct endpoint *client = client_with_query(same_database);

	assert_state(client, CLIENT_WAITING);
	assert_null(fake_launched());
	return client;
}

static void assert_gets_the_place(struct endpoint *other)
{
	assert_null(needy->database->cap.promised_to);
	assert_null(needy->wait.promised);
	log_in();
	assert_state(other, CLIENT_PAIRED);
}

static void test_the_other_place_ends_the_wait(void **state)
{
	struct endpoint *client = promise(), *other = another();

	(void)state;
	answer(user_server);
	assert_closed(user_server);
	log_in();
	assert_state(client, CLIENT_PAIRED);
	assert_null(needy->database->cap.promised_to);
	assert_state(other, CLIENT_WAITING);
}

static void test_a_place_is_kept_twice_as_long_as_the_pool_waited_for_it(void **state)
{
	struct endpoint *client = promise(), *other = another();

	(void)state;
	fake_advance(2 * USEC_PER_SEC - USEC_PER_MSEC);
	assert_null(fake_launched());
	fake_advance(2 * USEC_PER_MSEC);
	assert_gets_the_place(other);
	/* Then the other cap keeps its place, for longer. */
	assert_state(client, CLIENT_WAITING);
	assert_ptr_equal(needy->wait.cap, &needy->user->cap);
	answer(user_server);
	assert_closed(user_server);
	assert_ptr_equal(needy->user->cap.promised_to, needy);
	assert_in_range(needy->user->cap.promise.due - loop_now(&fake_loop),
		4 * USEC_PER_SEC - USEC_PER_MSEC, 5 * USEC_PER_SEC);
}

static void test_a_place_is_not_kept_when_the_clients_have_left(void **state)
{
	struct endpoint *client = promise(), *other = another();

	(void)state;
	disconnect(client);
	assert_gets_the_place(other);
	assert_null(needy->wait.cap);
}

static void test_a_place_of_clients_that_left_goes_to_one_that_comes_later(void **state)
{
	(void)state;
	disconnect(promise());
	client_with_query(same_database);
	assert_null(needy->database->cap.promised_to);
	assert_non_null(fake_launched());
}

static void test_a_place_is_not_kept_in_a_pause(void **state)
{
	struct endpoint *other, *client;

	(void)state;
	/* Here the place is of the user, and the database pauses. */
	fake_server(same_database);
	user_server = fake_server(same_user);
	client_with_query(same_user);
	client_with_query(same_database);
	client_with_query(needy);
	client = client_with_query(same_user);
	cap_leave(needy);
	cap_wait(needy, CAP_USER, 1);
	answer(user_server);
	assert_closed(user_server);
	assert_ptr_equal(needy->user->cap.promised_to, needy);
	other = client_with_query(same_user);
	control_pause(&fake_registry, needy->database);
	fake_turn();
	assert_null(needy->user->cap.promised_to);
	log_in();
	assert_state(client, CLIENT_PAIRED);
	assert_state(other, CLIENT_WAITING);
}

static void test_a_place_is_not_kept_when_limits_change(void **state)
{
	struct endpoint *client = promise();

	(void)state;
	fake_set("max_user_connections", "2");
	assert_null(needy->database->cap.promised_to);
	fake_turn();
	log_in();
	assert_state(client, CLIENT_PAIRED);
}

static void test_a_pool_may_be_closed_while_a_place_is_kept_for_it(void **state)
{
	struct database *gone = needy->database;

	(void)state;
	promise();
	another();
	control_kill(&fake_registry, gone, false);
	registry_drop_database(gone);
	fake_turn();
	fake_advance(10 * USEC_PER_SEC);
}

static void test_a_pool_with_a_server_is_promised_no_other(void **state)
{
	struct endpoint *server;

	(void)state;
	fake_set("max_db_connections", "3");
	fake_set("max_user_connections", "2");
	fake_server(needy);
	client_with_query(needy);
	server = fake_server(same_database);
	fake_server(same_database);
	fake_server(same_user);
	client_with_query(same_database);
	client_with_query(same_database);
	client_with_query(same_user);
	client_with_query(needy);
	client_with_query(same_database);
	answer(server);
	assert_false(is_closed(server));
	assert_null(needy->database->cap.promised_to);
	assert_ptr_equal(needy->wait.cap, &needy->user->cap);
}

static void test_only_the_first_that_waits_for_the_other_place_is_promised_one(void **state)
{
	struct pool *third = fake_pool("third", "alice");
	struct endpoint *server = fake_server(same_database);

	(void)state;
	fake_server(same_user);
	client_with_query(same_user);
	client_with_query(same_database);
	client_with_query(third);
	fake_advance(USEC_PER_MSEC);
	client_with_query(needy);
	client_with_query(same_database);
	answer(server);
	assert_false(is_closed(server));
	assert_null(needy->database->cap.promised_to);
	assert_ptr_equal(needy->wait.cap, &needy->user->cap);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(it_is_served_whatever_the_rhythm_of_the_others),
		TEST(pools_that_wait_in_a_ring_are_all_served),
		TEST(a_limit_of_the_process_does_not_keep_it_out),
		TEST(the_other_place_ends_the_wait),
		TEST(a_place_is_kept_twice_as_long_as_the_pool_waited_for_it),
		TEST(a_place_is_not_kept_when_the_clients_have_left),
		TEST(a_place_of_clients_that_left_goes_to_one_that_comes_later),
		TEST(a_place_is_not_kept_in_a_pause),
		TEST(a_place_is_not_kept_when_limits_change),
		TEST(a_pool_may_be_closed_while_a_place_is_kept_for_it),
		TEST(a_pool_with_a_server_is_promised_no_other),
		TEST(only_the_first_that_waits_for_the_other_place_is_promised_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
