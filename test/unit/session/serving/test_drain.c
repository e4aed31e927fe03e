/* SPDX-License-Identifier: ISC */
/* Which clients a drain closes, when, and how many at once. */
#include "session/pool/pairing.h"
#include "session/serving/drain.h"
#include "support/fakes/fake_pool.h"

enum { CLIENTS = 90 };

static struct pool *pool;
static struct drain drain;
static struct endpoint *clients[CLIENTS];

static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("default_pool_size = 5\nauth_type = trust\n");
	drain = (struct drain){0};
	return 0;
}

static int stop(void **state)
{
	drain_end(&drain);
	return fake_end(state);
}

static void connect_clients(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i] = fake_client(pool);
}

static unsigned count_closed(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CLIENTS; i++)
		count += is_closed(clients[i]);
	return count;
}

static void assert_told(struct endpoint *client)
{
	assert_closed(client);
	read_letters(client);
	assert_string_equal(client->sqlstate, "57P01");
	assert_string_equal(
		client->text, "terminating connection due to administrator command");
}

static void test_idle_clients_leave_at_an_even_rate(void **state)
{
	(void)state;
	connect_clients();
	drain_begin(&drain, &fake_registry);
	for (unsigned second = 1; second <= 9; second++) {
		fake_advance(USEC_PER_SEC);
		drain_advance(&drain, (9 - second) * USEC_PER_SEC);
		fake_turn();
		assert_in_range(count_closed(), 10 * second - 1, 10 * second + 1);
	}
	assert_int_equal(count_closed(), CLIENTS);
	assert_told(clients[0]);
}

static void test_few_clients_leave_at_an_even_rate_too(void **state)
{
	struct endpoint *one = fake_client(pool), *two = fake_client(pool);

	(void)state;
	drain_begin(&drain, &fake_registry);
	for (unsigned tenth = 1; tenth <= 100; tenth++) {
		fake_advance(USEC_PER_SEC / 10);
		drain_advance(&drain, (100 - tenth) * USEC_PER_SEC / 10);
		fake_turn();
		assert_true(is_closed(one) == (tenth >= 50));
		assert_true(is_closed(two) == (tenth >= 100));
	}
}

static void test_clients_that_come_later_leave_in_time(void **state)
{
	struct endpoint *late;

	(void)state;
	connect_clients();
	drain_begin(&drain, &fake_registry);
	fake_advance(USEC_PER_SEC);
	drain_advance(&drain, USEC_PER_SEC);
	late = fake_client(pool);
	fake_advance(USEC_PER_SEC);
	drain_advance(&drain, 0);
	fake_turn();
	assert_int_equal(count_closed(), CLIENTS);
	assert_told(late);
}

static void test_a_client_leaves_when_its_transaction_ends(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	send_letters(client, "Q");
	send_letters(server, "C>");
	drain_begin(&drain, &fake_registry);
	fake_advance(USEC_PER_SEC);
	drain_advance(&drain, 0);
	fake_turn();
	assert_false(is_closed(client));
	send_letters(client, "Q");
	assert_false(is_closed(client));
	send_letters(server, "CZ");
	assert_told(client);
	assert_int_equal(server->link->state, SERVER_IDLE);
}

static void test_a_client_that_waits_is_served_first(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *busy = fake_client(pool), *waiting = fake_client(pool);

	(void)state;
	fake_set("default_pool_size", "1");
	send_letters(busy, "Q");
	send_letters(waiting, "Q");
	drain_begin(&drain, &fake_registry);
	fake_advance(USEC_PER_SEC);
	drain_advance(&drain, 0);
	fake_turn();
	assert_int_equal(endpoint_link(waiting)->state, CLIENT_WAITING);
	send_letters(server, "CZ");
	assert_told(busy);
	assert_int_equal(endpoint_link(waiting)->state, CLIENT_PAIRED);
	send_letters(server, "CZ");
	assert_told(waiting);
}

static void test_a_client_with_unread_bytes_stays_until_they_are_answered(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	endpoint_link(client)->stream.unread = true;
	drain_begin(&drain, &fake_registry);
	fake_advance(USEC_PER_SEC);
	drain_advance(&drain, 0);
	assert_false(is_closed(client));
	endpoint_link(client)->stream.unread = false;
	send_letters(client, "Q");
	assert_false(is_closed(client));
	send_letters(server, "CZ");
	assert_told(client);
}

static void test_without_a_turn_no_client_leaves(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	drain_begin(&drain, &fake_registry);
	drain_advance(&drain, USEC_PER_SEC);
	send_letters(client, "Q");
	send_letters(server, "CZ");
	assert_false(is_closed(client));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(idle_clients_leave_at_an_even_rate),
		TEST(few_clients_leave_at_an_even_rate_too),
		TEST(clients_that_come_later_leave_in_time),
		TEST(a_client_leaves_when_its_transaction_ends),
		TEST(a_client_that_waits_is_served_first),
		TEST(a_client_with_unread_bytes_stays_until_they_are_answered),
		TEST(without_a_turn_no_client_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
