/* SPDX-License-Identifier: ISC */
/*
 * Limits that pools of several workers share. The loops of the workers run in this thread: which one has
 * its next turn, and so when its mail arrives, is drawn, or is what a test says.
 */
#include "model/shared/tally.h"
#include "session/pool/caps.h"
#include "session/pool/launch.h"
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"

static const char config[] = "[databases]\n"
			     "db0 = host=/tmp\n"
			     "db1 = host=/tmp\n"
			     "db2 = host=/tmp\n"
			     "db3 = host=/tmp\n"
			     "warm = host=/tmp min_pool_size=1\n"
			     "heavy = host=/tmp pool_weight=3\n"
			     "[pgbouncer]\n"
			     "auth_type = trust\n"
			     "pool_mode = transaction\n"
			     "server_reset_query =\n"
			     "query_wait_notify = 0\n"
			     "query_wait_timeout = 0\n"
			     "default_pool_size = 20\n";

/* Longer than a server is left alone after its use: see session/pool/caps.c. */
#define UNUSED_ENOUGH (USEC_PER_SEC / 200)

enum { WORKERS = 3 };

/* Pools of one user, at different workers. */
static struct pool *here, *there;

/* A pool of this user, of a database of another worker than the pool. */
static struct pool *pool_elsewhere(const struct pool *than, const char *user)
{
	char name[8];

	for (unsigned i = 0; i < 4; i++) {
		struct pool *pool;

		snprintf(name, sizeof(name), "db%u", i);
		pool = fake_pool(name, user);
		if (pool->registry != than->registry)
			return pool;
	}
	fail();
	return NULL;
}

static int start(void **state)
{
	(void)state;
	fake_workers = WORKERS;
	fake_start(config);
	here = fake_pool("db0", "alice");
	there = pool_elsewhere(here, "alice");
	return 0;
}

/* --- steps in which no loop runs ---------------------------------------------------------- */

static void feed(struct endpoint *endpoint, const char *text)
{
	struct buffer letters;

	buffer_init(&letters);
	letters_write(&letters, endpoint->sender, text);
	assert_false(letters.failed);
	scripted_feed(endpoint->script, letters.data, letters.length);
	scripted_run_all(endpoint->script);
	buffer_free(&letters);
}

static struct endpoint *ask(struct pool *pool)
{
	struct endpoint *client = fake_client(pool);

	feed(client, "Q");
	return client;
}

static void answer(struct endpoint *server)
{
	feed(server, "CZ");
}

static void log_in(struct endpoint *server)
{
	scripted_connected(server->script, 0);
	feed(server, "RZ");
}

static void turn_of(const struct registry *registry)
{
	crew_turn(registry->loop, false);
	assert_true(process_servers(&fake_process) <= 1000);
}

/* Two turns of each loop, after which nothing is on its way. */
static void settle(void)
{
	for (unsigned i = 0; i < 2; i++)
		fake_turn();
	fake_deliver();
}

static struct endpoint *launched_for(const struct pool *pool)
{
	struct endpoint *server = fake_launched();

	assert_non_null(server);
	assert_ptr_equal(endpoint_link(server)->pool, pool);
	return server;
}

/* --- counts ------------------------------------------------------------------------------- */

static void test_servers_of_all_workers_count(void **state)
{
	(void)state;
	fake_server(here);
	fake_server(there);
	assert_int_equal(user_servers(here->user), 2);
	assert_int_equal(user_servers(there->user), 2);
	assert_int_equal(here->user->cap.servers, 1);
	assert_int_equal(process_servers(&fake_process), 2);
	fake_set("max_user_connections", "2");
	assert_true(cap_is_full(here, CAP_USER));
	assert_true(cap_is_full(there, CAP_USER));
	assert_false(cap_is_full(pool_elsewhere(here, "bob"), CAP_USER));
	fake_set("max_server_connections", "2");
	assert_true(cap_is_full(pool_elsewhere(here, "bob"), CAP_PROCESS));
}

static void test_clients_of_all_workers_count(void **state)
{
	struct endpoint *first = fake_client(here), *second = fake_client(there);
	struct client_link *client = endpoint_client(second);

	(void)state;
	assert_int_equal(user_clients(here->user), 2);
	assert_int_equal(user_clients(there->user), 2);
	fake_set("max_user_client_connections", "1");
	assert_false(limits_take_user(client, there->user, false));
	assert_true(limits_take_user(client, there->user, true));
	disconnect(first);
	settle();
	assert_true(limits_take_user(client, there->user, false));
	assert_int_equal(user_clients(here->user), 1);
}

static void test_a_place_that_was_taken_for_a_launch_is_given_back(void **state)
{
	(void)state;
	fake_set("max_user_connections", "1");
	assert_true(caps_allow_server(here, CAPS_FOR_MINIMUM, 1));
	assert_int_equal(user_servers(here->user), 1);
	assert_false(caps_allow_server(there, CAPS_FOR_MINIMUM, 1));
	caps_end_launch(here);
	assert_int_equal(user_servers(here->user), 0);
	assert_int_equal(process_servers(&fake_process), 0);
	assert_true(caps_allow_server(there, CAPS_FOR_MINIMUM, 1));
	caps_end_launch(there);
	/* Below no cap, if one of them is full. */
	fake_set("max_server_connections", "1");
	fake_server(here);
	assert_false(caps_allow_server(pool_elsewhere(here, "bob"), CAPS_FOR_MINIMUM, 1));
	assert_int_equal(user_servers(pool_elsewhere(here, "bob")->user), 0);
}

/* --- places ------------------------------------------------------------------------------- */

static void test_a_server_that_is_unused_is_closed_for_another_worker(void **state)
{
	struct endpoint *server = fake_server(here), *client;

	(void)state;
	fake_set("max_user_connections", "1");
	fake_advance(2 * UNUSED_ENOUGH);
	client = ask(there);
	settle();
	assert_closed(server);
	log_in(launched_for(there));
	settle();
	assert_state(client, CLIENT_PAIRED);
}

static void test_a_server_is_left_alone_until_it_is_unused_for_long_enough(void **state)
{
	struct endpoint *server = fake_server(here), *client, *mine = ask(here);

	(void)state;
	fake_set("max_user_connections", "2");
	fake_server(there);
	ask(there);
	client = ask(there);
	settle();
	answer(server);
	settle();
	/* One server each. */
	assert_state(mine, CLIENT_IDLE);
	assert_false(is_closed(server));
	/* Without another event, and without the janitor. */
	fake_advance(2 * UNUSED_ENOUGH);
	settle();
	assert_closed(server);
	log_in(launched_for(there));
	settle();
	assert_state(client, CLIENT_PAIRED);
}

static void test_a_returned_server_is_given_up_for_the_better_claim(void **state)
{
	struct endpoint *servers[2], *client;

	(void)state;
	fake_set("max_user_connections", "2");
	for (unsigned i = 0; i < 4; i++) {
		if (i < 2)
			servers[i] = fake_server(here);
		ask(here);
	}
	client = ask(there);
	settle();
	answer(servers[0]);
	assert_closed(servers[0]);
	answer(servers[1]);
	/* One is enough. */
	assert_false(is_closed(servers[1]));
	settle();
	log_in(launched_for(there));
	settle();
	assert_state(client, CLIENT_PAIRED);
	assert_int_equal(user_servers(here->user), 2);
}

static void test_min_pool_size_is_kept_for_all_workers(void **state)
{
	struct pool *warm = fake_pool("warm", "alice"), *other = pool_elsewhere(warm, "alice");
	struct endpoint *server = fake_server(warm), *client;

	(void)state;
	fake_set("max_user_connections", "1");
	client = ask(other);
	settle();
	fake_advance(USEC_PER_SEC);
	settle();
	assert_false(is_closed(server));
	assert_state(client, CLIENT_WAITING);
	disconnect(client);
}

static void test_minima_that_cannot_be_granted_together_keep_nothing(void **state)
{
	struct pool *warm = fake_pool("warm", "alice"), *other = pool_elsewhere(warm, "alice");
	struct endpoint *server = fake_server(warm);

	(void)state;
	fake_set("max_user_connections", "1");
	ask(other);
	settle();
	fake_advance(USEC_PER_SEC);
	settle();
	assert_false(is_closed(server));
	fake_set("min_pool_size", "1");
	settle();
	fake_advance(USEC_PER_SEC);
	settle();
	assert_closed(server);
}

static void test_a_free_place_is_for_the_worker_whose_pool_comes_first(void **state)
{
	struct pool *third = NULL;
	struct endpoint *server = fake_server(here), *first, *late;

	(void)state;
	for (unsigned i = 0; i < 4 && !third; i++) {
		char name[8];

		snprintf(name, sizeof(name), "db%u", i);
		third = fake_pool(name, "alice");
		if (third->registry == here->registry || third->registry == there->registry)
			third = NULL;
	}
	assert_non_null(third);
	fake_set("max_user_connections", "1");
	ask(here);
	settle();
	first = ask(there);
	turn_of(there->registry);
	fake_advance(1);
	/* The place is free, but the worker that comes first has had no turn yet. */
	disconnect(server);
	late = ask(third);
	turn_of(third->registry);
	assert_state(late, CLIENT_WAITING);
	settle();
	assert_int_equal(user_servers(here->user), 1);
	(void)first;
}

static void test_a_worker_whose_need_has_vanished_passes_the_place_on(void **state)
{
	struct endpoint *server, *mine = ask(here), *gone, *waits;
	struct pool *third = NULL;

	(void)state;
	for (unsigned i = 0; i < 4 && !third; i++) {
		char name[8];

		snprintf(name, sizeof(name), "db%u", i);
		third = fake_pool(name, "alice");
		if (third->registry == here->registry || third->registry == there->registry)
			third = NULL;
	}
	fake_set("max_user_connections", "1");
	settle();
	server = launched_for(here);
	log_in(server);
	settle();
	gone = ask(there);
	settle();
	fake_advance(1);
	waits = ask(third);
	settle();
	scripted_end(gone->script);
	scripted_run_all(gone->script);
	scripted_end(server->script);
	scripted_run_all(server->script);
	settle();
	(void)mine;
	log_in(launched_for(third));
	settle();
	assert_state(waits, CLIENT_PAIRED);
}

static void test_a_higher_limit_wakes_all_workers(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("max_server_connections", "1");
	fake_server(here);
	ask(here);
	client = ask(there);
	settle();
	assert_null(fake_launched());
	fake_set("max_server_connections", "2");
	settle();
	log_in(launched_for(there));
	settle();
	assert_state(client, CLIENT_PAIRED);
}

static void test_a_user_may_go_while_mail_is_on_its_way(void **state)
{
	struct endpoint *server = fake_server(here);

	(void)state;
	fake_set("max_user_connections", "1");
	ask(there);
	turn_of(there->registry);
	/* The mail that asks for a place is in the mailbox now. */
	disconnect(server);
	control_kill(&fake_registry, there->database, false);
	settle();
}

/* --- turns that are drawn ----------------------------------------------------------------- */

enum { STEPS = 150, RUNS = 2000, CLIENTS = 24 };

struct run {
	struct random random;
	bool is_warm; /* pools with min_pool_size take part: the limits are above the minima */
	unsigned limit_user, limit_process;
	struct endpoint *clients[CLIENTS];
	unsigned count;
};

static unsigned draw(struct run *run, unsigned below)
{
	return random_below(&run->random, below);
}

static void check_limits(const struct run *run)
{
	static const char *const users[] = {"alice", "bob"};

	assert_true(process_servers(&fake_process) <= run->limit_process);
	for (unsigned i = 0; i < 2; i++) {
		const struct user *user = registry_find_user(&fake_registry, users[i]);

		if (user)
			assert_true(user_servers(user) <= run->limit_user);
	}
}

static struct endpoint *draw_server(struct run *run)
{
	struct endpoint *each, *found = NULL;
	unsigned count = 0;

	for (each = fake_next_endpoint(NULL); each; each = fake_next_endpoint(each)) {
		if (each->sender == FROM_SERVER && !is_closed(each) && draw(run, ++count) == 0)
			found = each;
	}
	return found;
}

/* The server connects, logs in, answers or breaks, whatever is next. */
static void act_server(struct run *run, bool may_break)
{
	struct endpoint *server = draw_server(run);

	if (!server)
		return;
	switch (endpoint_link(server)->state) {
	case SERVER_CONNECTING:
		scripted_connected(server->script, may_break && draw(run, 20) == 0 ? 111 : 0);
		break;
	case SERVER_AUTHENTICATING:
	case SERVER_PREPARING:
		feed(server, "RZ");
		break;
	case SERVER_PAIRED:
		answer(server);
		break;
	default:
		if (may_break && draw(run, 20) == 0) {
			scripted_end(server->script);
			scripted_run_all(server->script);
		}
		break;
	}
}

static struct pool *draw_pool(struct run *run)
{
	static const char *const databases[] = {"db0", "db1", "db2", "db3", "heavy", "warm"};

	return fake_pool(databases[draw(run, run->is_warm ? 6 : 5)],
		draw(run, 3) == 0 ? "bob" : "alice");
}

static void act_client(struct run *run)
{
	struct endpoint *client;

	if (run->count < CLIENTS && draw(run, 2) == 0) {
		run->clients[run->count++] = ask(draw_pool(run));
		return;
	}
	if (run->count == 0)
		return;
	client = run->clients[draw(run, run->count)];
	if (is_closed(client))
		return;
	if (draw(run, 10) == 0) {
		scripted_end(client->script);
		scripted_run_all(client->script);
	} else if (endpoint_link(client)->state == CLIENT_IDLE) {
		feed(client, "Q");
	}
}

static void step(struct run *run)
{
	switch (draw(run, 8)) {
	case 0:
	case 1:
		act_client(run);
		break;
	case 2:
	case 3:
		act_server(run, true);
		break;
	case 4:
		fake_advance(draw(run, 2 * UNUSED_ENOUGH));
		break;
	default:
		crew_turn(fake_registry_of(draw(run, WORKERS))->loop, false);
		break;
	}
	check_limits(run);
}

static bool all_are_served(const struct run *run)
{
	for (unsigned i = 0; i < run->count; i++) {
		if (!is_closed(run->clients[i]) &&
			endpoint_link(run->clients[i])->state != CLIENT_IDLE)
			return false;
	}
	return true;
}

/* As the janitor does after a login has failed. */
static void retry_failed(void)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		if (pool->failing)
			pool_needs_work(pool);
	}
}

/* No client sends any more: all that have sent a query get their answer. */
static void finish(struct run *run)
{
	unsigned i;

	for (i = 0; i < 5000 && !all_are_served(run); i++) {
		act_server(run, false);
		retry_failed();
		if (i % 4 == 0)
			fake_advance(UNUSED_ENOUGH);
		fake_turn();
		check_limits(run);
	}
	assert_true(all_are_served(run));
}

static void test_limits_hold_and_all_are_served_whatever_the_order_of_turns(void **state)
{
	const char *const runs = getenv("PGUSHER_TEST_RUNS");
	const unsigned last = runs ? (unsigned)atoi(runs) : RUNS;
	char text[16];

	for (unsigned seed = 1; seed <= last; seed++) {
		struct run run = {.count = 0};

		if (seed > 1)
			start(state);
		random_seed(&run.random, seed);
		run.is_warm = seed % 2 == 0;
		run.limit_user = (run.is_warm ? 2 : 1) + draw(&run, 4);
		run.limit_process = (run.is_warm ? 3 : 1) + draw(&run, 5);
		snprintf(text, sizeof(text), "%u", run.limit_user);
		fake_set("max_user_connections", text);
		snprintf(text, sizeof(text), "%u", run.limit_process);
		fake_set("max_server_connections", text);
		fake_set("server_login_retry", "0");
		for (unsigned i = 0; i < STEPS; i++)
			step(&run);
		finish(&run);
		if (seed < last)
			fake_end(state);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(servers_of_all_workers_count),
		TEST(clients_of_all_workers_count),
		TEST(a_place_that_was_taken_for_a_launch_is_given_back),
		TEST(a_server_that_is_unused_is_closed_for_another_worker),
		TEST(a_server_is_left_alone_until_it_is_unused_for_long_enough),
		TEST(a_returned_server_is_given_up_for_the_better_claim),
		TEST(min_pool_size_is_kept_for_all_workers),
		TEST(minima_that_cannot_be_granted_together_keep_nothing),
		TEST(a_free_place_is_for_the_worker_whose_pool_comes_first),
		TEST(a_worker_whose_need_has_vanished_passes_the_place_on),
		TEST(a_higher_limit_wakes_all_workers),
		TEST(a_user_may_go_while_mail_is_on_its_way),
		TEST(limits_hold_and_all_are_served_whatever_the_order_of_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
