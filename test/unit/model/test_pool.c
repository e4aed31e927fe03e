/* SPDX-License-Identifier: ISC */
/* The settings that apply to a pool, its counts, and its welcome. */
#include "model/statistics/pool_figures.h"
#include "session/link/close.h"
#include "support/fakes/fake_pool.h"
#include "wire/sqlstate.h"

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "plain = host=/tmp\n"
		   "own = host=/tmp pool_size=2 min_pool_size=3 reserve_pool_size=4 "
		   "pool_mode=statement\n"
		   "forced = host=/tmp user=carol\n"
		   "[users]\n"
		   "zero = pool_size=0 reserve_pool_size=0\n"
		   "mode = pool_mode=session\n"
		   "sized = pool_size=9 reserve_pool_size=8\n"
		   "[pgbouncer]\n"
		   "pool_mode = transaction\n"
		   "default_pool_size = 12\n"
		   "min_pool_size = 13\n"
		   "reserve_pool_size = 14\n");
	return 0;
}

static void assert_sizes(const char *database, const char *user, int size, int reserve, int min)
{
	const struct pool *pool = fake_pool(database, user);

	assert_int_equal(pool_size(pool), size);
	assert_int_equal(pool_reserve_size(pool), reserve);
	assert_int_equal(pool_min_size(pool), min);
}

static void test_sizes_of_the_user_override_database_and_settings(void **state)
{
	(void)state;
	assert_sizes("plain", "alice", 12, 14, 13);
	assert_sizes("own", "alice", 2, 4, 3);
	assert_sizes("plain", "sized", 9, 8, 13);
	assert_sizes("own", "sized", 9, 8, 3);
	assert_sizes("own", "mode", 2, 4, 3);
}

static void test_zero_is_a_valid_size(void **state)
{
	(void)state;
	assert_sizes("own", "zero", 0, 0, 3);
}

static void test_mode_of_the_user_overrides_database_and_settings(void **state)
{
	(void)state;
	assert_int_equal(fake_pool("plain", "alice")->mode, POOL_MODE_TRANSACTION);
	assert_int_equal(fake_pool("own", "alice")->mode, POOL_MODE_STATEMENT);
	assert_int_equal(fake_pool("own", "mode")->mode, POOL_MODE_SESSION);
	assert_int_equal(fake_pool("own", "sized")->mode, POOL_MODE_STATEMENT);
	assert_int_equal(fake_registry.console_pool->mode, POOL_MODE_STATEMENT);
}

static void test_changed_mode_applies_at_once(void **state)
{
	const struct pool *pool = fake_pool("plain", "alice");

	(void)state;
	fake_set("pool_mode", "session");
	assert_int_equal(pool->mode, POOL_MODE_SESSION);
}

static void test_only_the_pool_of_the_forced_user_is_forced(void **state)
{
	(void)state;
	assert_true(pool_is_forced(fake_pool("forced", "carol")));
	assert_false(pool_is_forced(fake_pool("forced", "alice")));
	assert_false(pool_is_forced(fake_pool("plain", "carol")));
}

static void test_pool_is_paused_by_itself_or_with_all(void **state)
{
	struct pool *one = fake_pool("plain", "alice"), *two = fake_pool("own", "alice");

	(void)state;
	one->database->paused = true;
	assert_true(pool_is_paused(one));
	assert_false(pool_is_paused(two));
	fake_registry.process->operation = OPERATION_PAUSED;
	assert_true(pool_is_paused(two));
	one->database->paused = false;
	assert_true(pool_is_paused(one));
}

static void test_servers_count_as_connected_after_their_login(void **state)
{
	static const enum server_state path[] = {SERVER_IDLE, SERVER_STALE, SERVER_CHECKING,
		SERVER_IDLE, SERVER_PAIRED, SERVER_RESETTING, SERVER_IDLE, SERVER_PAIRED,
		SERVER_HELD, SERVER_IDLE};
	struct pool *pool = fake_pool("plain", "alice");
	struct server_link *server;

	(void)state;
	assert_int_equal(pool_servers(pool), 0);
	server = endpoint_server(fake_server(pool));
	for (size_t i = 0; i < COUNT(path); i++) {
		if (i > 0)
			server_enter(server, path[i]);
		assert_int_equal(pool_servers(pool), 1);
		assert_int_equal(pool_connected_servers(pool), 1);
	}
	/* Servers that log in, and those that send a CancelRequest, are not. */
	pool->server_count[SERVERS_LOGIN] += 2;
	pool->server_count[SERVERS_ACTIVE_CANCEL] += 3;
	assert_int_equal(pool_servers(pool), 6);
	assert_int_equal(pool_connected_servers(pool), 1);
	pool->server_count[SERVERS_LOGIN] -= 2;
	pool->server_count[SERVERS_ACTIVE_CANCEL] -= 3;
}

static void test_oldest_transactions_are_of_clients_with_a_server(void **state)
{
	struct pool *pool = fake_pool("plain", "alice");
	struct endpoint *first = fake_server(pool), *second = fake_server(pool);
	struct endpoint *old = fake_client(pool), *new = fake_client(pool);

	(void)state;
	assert_int_equal(pool_oldest_transaction(pool, loop_now(&fake_loop)), 0);
	send_letters(old, "Q");
	fake_advance(2 * USEC_PER_SEC);
	send_letters(new, "Q");
	fake_advance(USEC_PER_SEC);
	assert_int_equal(pool_oldest_transaction(pool, loop_now(&fake_loop)), 3 * USEC_PER_SEC);
	/* Both run a query, so no transaction waits for its client. */
	assert_int_equal(pool_oldest_idle_transaction(pool, loop_now(&fake_loop)), 0);
	send_letters(endpoint_link(old)->peer == endpoint_link(first) ? first : second, "C>");
	fake_advance(4 * USEC_PER_SEC);
	assert_int_equal(pool_oldest_transaction(pool, loop_now(&fake_loop)), 7 * USEC_PER_SEC);
	assert_int_equal(
		pool_oldest_idle_transaction(pool, loop_now(&fake_loop)), 4 * USEC_PER_SEC);
}

static void test_reserve_in_use_is_the_excess_over_the_size(void **state)
{
	struct pool *pool = fake_pool("plain", "alice");

	(void)state;
	fake_set("default_pool_size", "1");
	fake_server(pool);
	assert_int_equal(pool_reserve_in_use(pool), 0);
	fake_server(pool);
	fake_server(pool);
	assert_int_equal(pool_reserve_in_use(pool), 2);
	fake_set("default_pool_size", "0");
	assert_int_equal(pool_reserve_in_use(pool), 0);
}

static void test_waits_of_the_metrics_are_as_many_as_assignments(void **state)
{
	struct pool *pool = fake_pool("plain", "alice");
	struct histogram told;

	(void)state;
	assert_false(pool_histogram(pool, LATENCY_WAIT, &told));
	pool_open_latency(pool);
	pool->stats.current.assignments = 10;
	latency_add(pool->latency, LATENCY_WAIT, 7000);
	assert_true(pool_histogram(pool, LATENCY_WAIT, &told));
	assert_int_equal(histogram_count(&told), 10);
	assert_int_equal(told.counts[0], 9);
	assert_int_equal(told.sum, 7000);
	assert_true(pool_histogram(pool, LATENCY_QUERY, &told));
	assert_int_equal(histogram_count(&told), 0);
}

static void test_counts_of_a_pool_can_be_added_to_another(void **state)
{
	struct pool *from = fake_pool("plain", "alice"), *to = fake_pool("plain", "bob");
	struct histogram told;

	(void)state;
	from->stats.current.queries = 3;
	from->notified = 4;
	from->unsent[UNSENT_QUEUE_FULL] = 5;
	pool_count_error(from, "22012");
	pool_count_error(from, NULL);
	pool_open_latency(from);
	latency_add(from->latency, LATENCY_QUERY, 1);
	for (int i = 0; i < 2; i++)
		pool_leave_counts(from, to);
	assert_int_equal(to->stats.current.queries, 6);
	assert_int_equal(to->notified, 8);
	assert_int_equal(to->unsent[UNSENT_QUEUE_FULL], 10);
	assert_int_equal(to->errors[sqlstate_class("22012")], 2);
	assert_int_equal(to->errors[sqlstate_class("XX000")], 2);
	assert_true(pool_histogram(to, LATENCY_QUERY, &told));
	assert_int_equal(histogram_count(&told), 2);
}

static void test_longest_wait_is_that_of_the_first_waiting_client(void **state)
{
	struct pool *pool = fake_pool("plain", "alice");
	struct client_link *client;

	(void)state;
	fake_set("default_pool_size", "1");
	assert_null(pool_first_waiter(pool));
	assert_int_equal(pool_longest_wait(pool, loop_now(&fake_loop)), 0);
	client = endpoint_client(fake_client(pool));
	client->wait_start = loop_now(&fake_loop);
	client_enter(client, CLIENT_WAITING);
	stream_pause(&client->link.stream);
	assert_ptr_equal(pool_first_waiter(pool), client);
	/* No query is being timed yet. */
	assert_int_equal(pool_longest_wait(pool, loop_now(&fake_loop) + 5), 0);
	client->query_start = loop_now(&fake_loop) - 70;
	assert_int_equal(pool_longest_wait(pool, loop_now(&fake_loop) + 5), 75);
}

static void test_credential_of_a_login_overrides_the_auth_file(void **state)
{
	struct pool *pool = fake_pool("plain", "alice");
	struct credential *told = credential_new("told", 4);

	(void)state;
	assert_null(pool_secret(pool));
	user_set_secret(pool->user, "filed");
	assert_string_equal(pool_secret(pool), "filed");
	assert_ptr_equal(pool_keys(pool), pool->user->keys);
	pool_set_credential(pool, told);
	pool_set_credential(pool, told);
	assert_int_equal(told->references, 2);
	assert_string_equal(pool_secret(pool), "told");
	assert_null(pool_keys(pool));
	assert_non_null(credential_keys(told));
	assert_ptr_equal(pool_keys(pool), told->keys);
	pool_set_credential(pool, NULL);
	assert_int_equal(told->references, 1);
	assert_string_equal(pool_secret(pool), "filed");
	pool_set_credential(pool, told);
	credential_unref(told);
}

/* Set session_state; returns whether that has retired the server of before. */
static bool is_retired(const char *before, const char *after, bool replicates)
{
	struct pool *pool = fake_pool("plain", "alice");
	struct server_link *server;
	bool retired;

	fake_set("session_state", before);
	server = endpoint_server(fake_server(pool));
	server->replication = replicates ? REPLICATION_PHYSICAL : REPLICATION_NONE;
	fake_set("session_state", after);
	retired = server->close_needed;
	server->replication = REPLICATION_NONE;
	server_close_for(server, REASON_ADMIN_FORCED_DISCONNECT);
	return retired;
}

static void test_servers_of_which_too_little_is_known_are_retired(void **state)
{
	static const char *const order[] = {"ignore", "warn", "follow"};

	(void)state;
	for (unsigned from = 0; from < COUNT(order); from++) {
		for (unsigned to = 0; to < COUNT(order); to++)
			assert_int_equal(is_retired(order[from], order[to], false), from < to);
	}
	assert_false(is_retired("follow", "error", false));
	assert_false(is_retired("error", "follow", false));
	assert_true(is_retired("warn", "error", false));
	assert_false(is_retired("ignore", "follow", true));
}

static void test_mark_close_needed_retires_all_servers_and_drops_the_welcome(void **state)
{
	struct pool *pool = fake_pool("plain", "alice");
	struct server_link *idle = endpoint_server(fake_server(pool));
	struct server_link *stale = endpoint_server(fake_server(pool));

	(void)state;
	server_enter(stale, SERVER_STALE);
	pool->welcome_asked = parameters_empty(fake_registry.parameters);
	pool->welcome_given = parameters_empty(fake_registry.parameters);
	buffer_append(&pool->welcome_made, "R", 1);
	pool_mark_close_needed(pool, SERVER_CLOSED_RECONNECT);
	assert_true(idle->close_needed);
	assert_true(stale->close_needed);
	assert_null(pool->welcome);
	assert_null(pool->welcome_asked);
	assert_null(pool->welcome_given);
	assert_int_equal(pool->welcome_head.length, 0);
	assert_int_equal(pool->welcome_made.length, 0);
	pool_forget_welcome(pool);
}

static void test_walk_visits_each_list_in_order_while_links_are_closed(void **state)
{
	struct pool *pool = fake_pool("plain", "alice");
	struct client_link *waiting = endpoint_client(fake_client(pool));
	struct link *first = endpoint_link(fake_client(pool));
	struct link *second = endpoint_link(fake_client(pool));
	struct server_link *stale = endpoint_server(fake_server(pool));
	struct link *idle = endpoint_link(fake_server(pool));
	struct pool_walk walk = pool_walk_clients(pool);

	(void)state;
	server_enter(stale, SERVER_STALE);
	waiting->wait_start = loop_now(&fake_loop);
	client_enter(waiting, CLIENT_WAITING);
	stream_pause(&waiting->link.stream);
	assert_ptr_equal(pool_walk_next(&walk), first);
	client_close_for(client_of(first), REASON_ADMIN_FORCED_DISCONNECT);
	assert_ptr_equal(pool_walk_next(&walk), second);
	assert_ptr_equal(pool_walk_next(&walk), &waiting->link);
	assert_null(pool_walk_next(&walk));
	assert_null(pool_walk_next(&walk));
	walk = pool_walk_links(pool);
	assert_ptr_equal(pool_walk_next(&walk), idle);
	assert_ptr_equal(pool_walk_next(&walk), &stale->link);
	assert_ptr_equal(pool_walk_next(&walk), second);
	walk = pool_walk_servers(pool);
	assert_ptr_equal(pool_walk_next(&walk), idle);
	server_close_for(server_of(idle), REASON_ADMIN_FORCED_DISCONNECT);
	assert_ptr_equal(pool_walk_next(&walk), &stale->link);
	assert_null(pool_walk_next(&walk));
}

static unsigned worked;

static void count_work(struct loop_task *task)
{
	struct pool *pool;

	assert_ptr_equal(task, &fake_registry.work_task);
	while ((pool = TAILQ_FIRST(&fake_registry.work)) != NULL) {
		TAILQ_REMOVE(&fake_registry.work, pool, in_work);
		pool->has_work = false;
		worked++;
	}
}

static void test_work_is_queued_once_a_turn(void **state)
{
	struct pool *one = fake_pool("plain", "alice"), *two = fake_pool("own", "alice");

	(void)state;
	fake_registry.do_work = count_work;
	worked = 0;
	pool_needs_work(one);
	pool_needs_work(one);
	pool_needs_work(two);
	fake_turn();
	assert_int_equal(worked, 2);
	fake_turn();
	assert_int_equal(worked, 2);
	pool_needs_work(two);
	fake_turn();
	assert_int_equal(worked, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(sizes_of_the_user_override_database_and_settings),
		TEST(zero_is_a_valid_size),
		TEST(mode_of_the_user_overrides_database_and_settings),
		TEST(changed_mode_applies_at_once),
		TEST(only_the_pool_of_the_forced_user_is_forced),
		TEST(pool_is_paused_by_itself_or_with_all),
		TEST(servers_count_as_connected_after_their_login),
		TEST(longest_wait_is_that_of_the_first_waiting_client),
		TEST(oldest_transactions_are_of_clients_with_a_server),
		TEST(reserve_in_use_is_the_excess_over_the_size),
		TEST(waits_of_the_metrics_are_as_many_as_assignments),
		TEST(counts_of_a_pool_can_be_added_to_another),
		TEST(credential_of_a_login_overrides_the_auth_file),
		TEST(servers_of_which_too_little_is_known_are_retired),
		TEST(mark_close_needed_retires_all_servers_and_drops_the_welcome),
		TEST(walk_visits_each_list_in_order_while_links_are_closed),
		TEST(work_is_queued_once_a_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
