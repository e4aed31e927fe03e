/* SPDX-License-Identifier: ISC */
/* All transitions between the states of a client, with lists and counts. */
#include "model/client_group.h"
#include "support/fake_pool.h"

#define MAY(state) (1u << CLIENT_##state)

/* The diagram in the header, as a table. */
static const struct {
	const char *name, *console, *socket;
	unsigned may;
} diagram[CLIENT_STATES] = {
	[CLIENT_GREETING] = {"greeting", "login", "cl_login",
		MAY(AUTHENTICATING) | MAY(CANCEL_WAITING) | MAY(CLOSED)},
	[CLIENT_AUTHENTICATING] = {"authenticating", "login", "cl_login",
		MAY(LOOKING_UP) | MAY(WELCOMING) | MAY(IDLE) | MAY(CONSOLE) | MAY(CLOSED)},
	[CLIENT_LOOKING_UP] = {"looking up", "waiting", "cl_waiting",
		MAY(AUTHENTICATING) | MAY(CLOSED)},
	[CLIENT_WELCOMING] = {"welcoming", "waiting", "cl_waiting",
		MAY(LOOKING_UP) | MAY(IDLE) | MAY(CLOSED)},
	[CLIENT_IDLE] = {"idle", "idle", "cl_active",
		MAY(WAITING) | MAY(LAUNCHING) | MAY(PAIRED) | MAY(CLOSED)},
	[CLIENT_WAITING] = {"waiting", "waiting", "cl_waiting",
		MAY(PAIRED) | MAY(IDLE) | MAY(CLOSED)},
	[CLIENT_LAUNCHING] = {"launching", "waiting", "cl_waiting",
		MAY(PAIRED) | MAY(IDLE) | MAY(CLOSED)},
	[CLIENT_PAIRED] = {"paired", "active", "cl_active", MAY(IDLE) | MAY(CLOSED)},
	[CLIENT_CANCEL_WAITING] = {"cancel waiting", "waiting_cancel_req", "cl_waiting",
		MAY(CANCEL_SENT) | MAY(CLOSED)},
	[CLIENT_CANCEL_SENT] = {"cancel sent", "active_cancel_req", "cl_active", MAY(CLOSED)},
	[CLIENT_CONSOLE] = {"console", "idle", "cl_active", MAY(CLOSED)},
	[CLIENT_CLOSED] = {"closed", "closed", "cl_closed", 0},
};

/* A path of transitions to each state. */
static const enum client_state ways[CLIENT_STATES][5] = {
	[CLIENT_AUTHENTICATING] = {CLIENT_AUTHENTICATING},
	[CLIENT_LOOKING_UP] = {CLIENT_AUTHENTICATING, CLIENT_LOOKING_UP},
	[CLIENT_WELCOMING] = {CLIENT_AUTHENTICATING, CLIENT_WELCOMING},
	[CLIENT_IDLE] = {CLIENT_AUTHENTICATING, CLIENT_IDLE},
	[CLIENT_WAITING] = {CLIENT_AUTHENTICATING, CLIENT_IDLE, CLIENT_WAITING},
	[CLIENT_LAUNCHING] = {CLIENT_AUTHENTICATING, CLIENT_IDLE, CLIENT_LAUNCHING},
	[CLIENT_PAIRED] = {CLIENT_AUTHENTICATING, CLIENT_IDLE, CLIENT_PAIRED},
	[CLIENT_CANCEL_WAITING] = {CLIENT_CANCEL_WAITING},
	[CLIENT_CANCEL_SENT] = {CLIENT_CANCEL_WAITING, CLIENT_CANCEL_SENT},
	[CLIENT_CONSOLE] = {CLIENT_AUTHENTICATING, CLIENT_CONSOLE},
	[CLIENT_CLOSED] = {CLIENT_CLOSED},
};

static struct registry *const registry = &fake_registry;
static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n");
	pool = fake_pool("db", "alice");
	return 0;
}

/* A client without a stream, for transitions only. */
static void make(struct client_link *client)
{
	*client = (struct client_link){
		.link = {.kind = LINK_CLIENT, .state = CLIENT_GREETING, .pool = pool}};
	client->link.stream.loop = &fake_loop;
	TAILQ_INSERT_TAIL(&registry->logins, &client->link, place);
	registry->login_count++;
}

static void bring_to(struct client_link *client, enum client_state state)
{
	for (size_t i = 0; client->link.state != state; i++)
		client_enter(client, ways[state][i]);
}

static bool stands_in(const struct client_link *client, const struct link_list *list)
{
	const struct link *link;

	TAILQ_FOREACH (link, list, place) {
		if (link == &client->link)
			return true;
	}
	return false;
}

static void assert_place(const struct client_link *client)
{
	const enum client_state state = client_state(client);
	const bool logs_in = state == CLIENT_GREETING || state == CLIENT_AUTHENTICATING ||
		state == CLIENT_LOOKING_UP;

	assert_int_equal(stands_in(client, &registry->logins), logs_in);
	assert_int_equal(stands_in(client, &pool->clients),
		state == CLIENT_IDLE || state == CLIENT_PAIRED || state == CLIENT_CONSOLE);
	assert_int_equal(stands_in(client, &pool->waiting), state == CLIENT_WAITING);
	assert_int_equal(stands_in(client, &pool->welcoming),
		state == CLIENT_WELCOMING || state == CLIENT_LAUNCHING);
	assert_int_equal(stands_in(client, &pool->cancels),
		state == CLIENT_CANCEL_WAITING || state == CLIENT_CANCEL_SENT);
	assert_int_equal(registry->login_count, logs_in);
	for (unsigned i = 0; i < CLIENT_STATES; i++)
		assert_int_equal(
			pool->client_count[i], i == state && !logs_in && i != CLIENT_CLOSED);
}

static void test_words_of_each_state(void **state)
{
	struct client_link client = {0};

	(void)state;
	for (unsigned i = 0; i < CLIENT_STATES; i++) {
		client.link.state = (uint8_t)i;
		assert_string_equal(client_state_name((enum client_state)i), diagram[i].name);
		assert_string_equal(client_console_state(&client), diagram[i].console);
		assert_string_equal(client_socket_state(&client), diagram[i].socket);
	}
}

static void test_only_transitions_of_the_diagram_are_allowed(void **state)
{
	(void)state;
	for (unsigned from = 0; from < CLIENT_STATES; from++) {
		for (unsigned to = 0; to < CLIENT_STATES; to++)
			assert_int_equal(
				client_may((enum client_state)from, (enum client_state)to),
				(diagram[from].may >> to) & 1);
	}
}

static void test_each_transition_leads_to_its_list(void **state)
{
	unsigned walked = 0;

	(void)state;
	for (unsigned from = 0; from < CLIENT_CLOSED; from++) {
		for (unsigned to = 0; to < CLIENT_STATES; to++) {
			struct client_link client;

			if (!client_may((enum client_state)from, (enum client_state)to))
				continue;
			make(&client);
			bring_to(&client, (enum client_state)from);
			assert_place(&client);
			client_enter(&client, (enum client_state)to);
			assert_int_equal(client_state(&client), to);
			assert_place(&client);
			if (to != CLIENT_CLOSED)
				client_enter(&client, CLIENT_CLOSED);
			assert_place(&client);
			walked++;
		}
	}
	assert_int_equal(walked, 29);
}

static void test_waiting_clients_are_in_order_of_arrival(void **state)
{
	static const int order[] = {2, 3, 4, 1};
	struct client_link clients[5];
	const struct link *link;
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		make(&clients[i]);
		bring_to(&clients[i], CLIENT_WAITING);
	}
	client_enter(&clients[1], CLIENT_IDLE);
	client_enter(&clients[1], CLIENT_WAITING);
	client_enter(&clients[0], CLIENT_PAIRED);
	i = 0;
	TAILQ_FOREACH (link, &pool->waiting, place)
		assert_ptr_equal(link, &clients[order[i++]].link);
	assert_int_equal(i, 4);
	assert_int_equal(pool->client_count[CLIENT_WAITING], 4);
	for (i = 0; i < 5; i++)
		client_enter(&clients[i], CLIENT_CLOSED);
}

static void test_states_that_are_logged_in_and_that_wait(void **state)
{
	struct client_link client = {0};

	(void)state;
	for (unsigned i = 0; i < CLIENT_STATES; i++) {
		client.link.state = (uint8_t)i;
		assert_int_equal(client_is_logged_in(&client),
			i == CLIENT_IDLE || i == CLIENT_WAITING || i == CLIENT_LAUNCHING ||
				i == CLIENT_PAIRED || i == CLIENT_CONSOLE);
		assert_int_equal(client_is_waiting(&client),
			i == CLIENT_WAITING || i == CLIENT_WELCOMING || i == CLIENT_LAUNCHING);
	}
}

static void test_group_counts_the_states_of_its_clients(void **state)
{
	struct client_link client;
	const struct client_group *group;

	(void)state;
	make(&client);
	bring_to(&client, CLIENT_IDLE);
	client_group_join(&client);
	group = client.group;
	assert_non_null(group);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(group->clients[CLIENT_IDLE], 1);
		client_enter(&client, CLIENT_WAITING);
		assert_int_equal(group->clients[CLIENT_IDLE], 0);
		assert_int_equal(group->clients[CLIENT_WAITING], 1);
		client_enter(&client, CLIENT_PAIRED);
		assert_int_equal(group->clients[CLIENT_WAITING], 0);
		assert_int_equal(group->clients[CLIENT_PAIRED], 1);
		client_enter(&client, CLIENT_IDLE);
		assert_int_equal(group->clients[CLIENT_PAIRED], 0);
	}
	client_group_leave(&client);
	client_enter(&client, CLIENT_CLOSED);
	assert_null(pool->groups);
}

static void test_moved_client_is_counted_in_its_new_pool(void **state)
{
	struct pool *other = fake_pool("db", "bob");
	struct client_link client;

	(void)state;
	make(&client);
	bring_to(&client, CLIENT_IDLE);
	client_group_join(&client);
	client_enter(&client, CLIENT_WAITING);
	client_move(&client, other);
	assert_null(pool->groups);
	assert_int_equal(pool->client_count[CLIENT_WAITING], 0);
	assert_true(TAILQ_EMPTY(&pool->waiting));
	assert_ptr_equal(pool_first_waiter(other), &client);
	assert_int_equal(other->client_count[CLIENT_WAITING], 1);
	assert_int_equal(client.group->clients[CLIENT_WAITING], 1);
	client_enter(&client, CLIENT_IDLE);
	client_move(&client, pool);
	assert_null(other->groups);
	assert_int_equal(pool->client_count[CLIENT_IDLE], 1);
	client_group_leave(&client);
	client_enter(&client, CLIENT_CLOSED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(words_of_each_state),
		TEST(only_transitions_of_the_diagram_are_allowed),
		TEST(each_transition_leads_to_its_list),
		TEST(waiting_clients_are_in_order_of_arrival),
		TEST(states_that_are_logged_in_and_that_wait),
		TEST(group_counts_the_states_of_its_clients),
		TEST(moved_client_is_counted_in_its_new_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
