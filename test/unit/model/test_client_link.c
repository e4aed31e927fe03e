/* SPDX-License-Identifier: ISC */
/* Every allowed step between the states of a client, the list it leads to, and the counts there. */
#include "model/statistics/client_group.h"
#include "support/fakes/fake_pool.h"
#include "support/fakes/state_walk.h"

/* The lines of the diagram in model/client_link.h; each ends with CLOSED, to which every line leads. */
static const enum client_state lines[][7] = {
	{CLIENT_GREETING, CLIENT_AUTHENTICATING, CLIENT_WELCOMING, CLIENT_IDLE, CLIENT_WAITING,
		CLIENT_PAIRED, CLIENT_IDLE},
	{CLIENT_AUTHENTICATING, CLIENT_IDLE, CLIENT_PAIRED, CLIENT_IDLE, CLIENT_CLOSED},
	{CLIENT_IDLE, CLIENT_LAUNCHING, CLIENT_PAIRED, CLIENT_CLOSED},
	{CLIENT_LAUNCHING, CLIENT_IDLE, CLIENT_CLOSED},
	{CLIENT_AUTHENTICATING, CLIENT_LOOKING_UP, CLIENT_AUTHENTICATING, CLIENT_CLOSED},
	{CLIENT_WELCOMING, CLIENT_LOOKING_UP, CLIENT_CLOSED},
	{CLIENT_GREETING, CLIENT_CANCEL_WAITING, CLIENT_CANCEL_SENT, CLIENT_CLOSED},
	{CLIENT_AUTHENTICATING, CLIENT_CONSOLE, CLIENT_CLOSED},
};

static bool may(unsigned from, unsigned to)
{
	return client_may((enum client_state)from, (enum client_state)to);
}

static bool leads_to(enum client_state from, enum client_state to)
{
	return state_leads_to(may, CLIENT_STATES, from, to);
}

static struct registry *const registry = &fake_registry;
static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n");
	pool = fake_pool("db", "alice");
	return 0;
}

/* A client that has a state and no stream. */
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
	while (client->link.state != state)
		client_enter(client,
			(enum client_state)state_step_toward(
				may, CLIENT_STATES, client->link.state, state));
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

static void assert_words(enum client_state state, const char *console, const char *socket)
{
	const struct client_link client = {.link.state = (uint8_t)state};

	assert_string_equal(client_console_state(&client), console);
	assert_string_equal(client_socket_state(&client), socket);
}

/* The words are PgBouncer's, of SHOW CLIENTS and SHOW SOCKETS. */
static void test_the_console_has_a_word_for_each_state(void **state)
{
	struct client_link client = {0};

	(void)state;
	assert_words(CLIENT_GREETING, "login", "cl_login");
	assert_words(CLIENT_AUTHENTICATING, "login", "cl_login");
	assert_words(CLIENT_LOOKING_UP, "waiting", "cl_waiting");
	assert_words(CLIENT_CANCEL_WAITING, "waiting_cancel_req", "cl_waiting");
	assert_words(CLIENT_CANCEL_SENT, "active_cancel_req", "cl_active");
	assert_words(CLIENT_CLOSED, "closed", "cl_closed");
	for (unsigned i = 0; i < CLIENT_STATES; i++) {
		client.link.state = (uint8_t)i;
		if (client_is_waiting(&client))
			assert_words((enum client_state)i, "waiting", "cl_waiting");
		else if (client_is_logged_in(&client))
			assert_words((enum client_state)i,
				i == CLIENT_PAIRED ? "active" : "idle", "cl_active");
	}
}

static void test_each_state_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CLIENT_STATES; i++) {
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(client_state_name((enum client_state)i),
				client_state_name((enum client_state)j));
	}
}

static void test_every_step_of_the_diagram_is_allowed(void **state)
{
	(void)state;
	for (size_t line = 0; line < COUNT(lines); line++) {
		for (size_t i = 1;
			i < COUNT(lines[line]) && lines[line][i - 1] != CLIENT_CLOSED; i++)
			assert_true(client_may(lines[line][i - 1], lines[line][i]));
	}
}

static void test_every_state_is_reached_and_can_close(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CLIENT_STATES; i++) {
		assert_true(leads_to(CLIENT_GREETING, (enum client_state)i));
		assert_int_equal(may(i, CLIENT_CLOSED), i != CLIENT_CLOSED);
		assert_false(may(CLIENT_CLOSED, i));
		assert_false(may(i, i));
	}
}

static void test_no_way_leads_back_to_the_login_or_to_another_purpose(void **state)
{
	struct client_link client = {0};

	(void)state;
	for (unsigned i = 0; i < CLIENT_STATES; i++) {
		client.link.state = (uint8_t)i;
		if (may(i, CLIENT_PAIRED))
			assert_true(client_is_logged_in(&client));
		if (client_is_logged_in(&client))
			assert_false(leads_to((enum client_state)i, CLIENT_AUTHENTICATING));
		if (i != CLIENT_CLOSED)
			assert_false(may(CLIENT_CONSOLE, i) || may(CLIENT_CANCEL_SENT, i));
	}
	assert_false(leads_to(CLIENT_AUTHENTICATING, CLIENT_GREETING));
	assert_false(leads_to(CLIENT_AUTHENTICATING, CLIENT_CANCEL_WAITING));
	assert_false(leads_to(CLIENT_CANCEL_WAITING, CLIENT_AUTHENTICATING));
	assert_false(leads_to(CLIENT_IDLE, CLIENT_CONSOLE));
}

static void test_each_step_leads_to_the_list_of_its_state(void **state)
{
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
		}
	}
}

static void test_waiting_clients_keep_the_order_in_which_they_came(void **state)
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

static void test_states_count_as_logged_in_or_waiting(void **state)
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

static void test_a_group_counts_the_states_of_its_clients(void **state)
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

static void test_a_moved_client_is_counted_in_its_new_pool(void **state)
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
		TEST(the_console_has_a_word_for_each_state),
		TEST(each_state_has_a_name_of_its_own),
		TEST(every_step_of_the_diagram_is_allowed),
		TEST(every_state_is_reached_and_can_close),
		TEST(no_way_leads_back_to_the_login_or_to_another_purpose),
		TEST(each_step_leads_to_the_list_of_its_state),
		TEST(waiting_clients_keep_the_order_in_which_they_came),
		TEST(states_count_as_logged_in_or_waiting),
		TEST(a_group_counts_the_states_of_its_clients),
		TEST(a_moved_client_is_counted_in_its_new_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
