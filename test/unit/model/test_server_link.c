/* SPDX-License-Identifier: ISC */
/* Every allowed step between the states of a server, the list it leads to, and the counts there. */
#include "support/fakes/fake_pool.h"
#include "support/fakes/state_walk.h"

/* The lines of the diagram in model/server_link.h; each ends with CLOSED, to which every line leads. */
static const enum server_state lines[][7] = {
	{SERVER_CONNECTING, SERVER_AUTHENTICATING, SERVER_PREPARING, SERVER_IDLE, SERVER_PAIRED,
		SERVER_IDLE, SERVER_CLOSED},
	{SERVER_CONNECTING, SERVER_AUTHENTICATING, SERVER_IDLE, SERVER_CLOSED},
	{SERVER_AUTHENTICATING, SERVER_CONNECTING, SERVER_CLOSED},
	{SERVER_IDLE, SERVER_LOOKING_UP, SERVER_IDLE, SERVER_CLOSED},
	{SERVER_LOOKING_UP, SERVER_RESETTING, SERVER_CLOSED},
	{SERVER_LOOKING_UP, SERVER_STALE, SERVER_CLOSED},
	{SERVER_PAIRED, SERVER_HELD, SERVER_IDLE, SERVER_CLOSED},
	{SERVER_HELD, SERVER_STALE, SERVER_CLOSED},
	{SERVER_PAIRED, SERVER_RESETTING, SERVER_IDLE, SERVER_CLOSED},
	{SERVER_RESETTING, SERVER_STALE, SERVER_CLOSED},
	{SERVER_PAIRED, SERVER_DRAINING, SERVER_IDLE, SERVER_CLOSED},
	{SERVER_DRAINING, SERVER_RESETTING, SERVER_CLOSED},
	{SERVER_DRAINING, SERVER_STALE, SERVER_CLOSED},
	{SERVER_IDLE, SERVER_STALE, SERVER_CHECKING, SERVER_IDLE, SERVER_CLOSED},
	{SERVER_PAIRED, SERVER_ASKING, SERVER_PAIRED, SERVER_ASKING, SERVER_IDLE,
		SERVER_CLOSED},
	{SERVER_ASKING, SERVER_STALE, SERVER_CLOSED},
	{SERVER_ASKING, SERVER_HELD, SERVER_CLOSED},
	{SERVER_ASKING, SERVER_RESETTING, SERVER_CLOSED},
	{SERVER_CONNECTING, SERVER_CANCELING, SERVER_CLOSED},
	{SERVER_AUTHENTICATING, SERVER_LISTENING, SERVER_CLOSED},
	{SERVER_AUTHENTICATING, SERVER_PREPARING, SERVER_LISTENING, SERVER_CLOSED},
	{SERVER_AUTHENTICATING, SERVER_WATCHING, SERVER_CLOSED},
	{SERVER_PREPARING, SERVER_CONNECTING, SERVER_CLOSED},
};

/* PgBouncer's words of SHOW SERVERS and SHOW SOCKETS, by the list of a server. */
static const struct {
	const char *console, *socket;
} words[] = {
	[SERVERS_LOGIN] = {"new", "sv_login"},
	[SERVERS_IDLE] = {"idle", "sv_idle"},
	[SERVERS_ACTIVE] = {"active", "sv_active"},
	[SERVERS_USED] = {"used", "sv_used"},
	[SERVERS_TESTED] = {"tested", "sv_tested"},
	[SERVERS_LISTENING] = {"active", "sv_active"},
	[SERVERS_WATCHING] = {"tested", "sv_tested"},
	[SERVERS_ACTIVE_CANCEL] = {"active_cancel", "sv_active"},
	[SERVERS_BEING_CANCELED] = {"being_canceled", "sv_active"},
	[SERVERS_NOWHERE] = {"closed", "sv_closed"},
};

static bool may(unsigned from, unsigned to)
{
	return server_may((enum server_state)from, (enum server_state)to);
}

static bool leads_to(enum server_state from, enum server_state to)
{
	return state_leads_to(may, SERVER_STATES, from, to);
}

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n");
	pool = fake_pool("db", "alice");
	return 0;
}

/* A server that has a state and no stream. */
static void make(struct server_link *server)
{
	*server = (struct server_link){
		.link = {.kind = LINK_SERVER, .state = SERVER_CONNECTING, .pool = pool},
		.transaction_status = 'I'};
	server->link.stream.loop = &fake_loop;
	TAILQ_INSERT_HEAD(&pool->servers[SERVERS_LOGIN], &server->link, place);
	pool->server_count[SERVERS_LOGIN]++;
}

static void bring_to(struct server_link *server, enum server_state state)
{
	while (server->link.state != state)
		server_enter(server,
			(enum server_state)state_step_toward(
				may, SERVER_STATES, server->link.state, state));
}

static void assert_place(const struct server_link *server)
{
	const enum server_list place = server_list_of(server_state(server));

	for (unsigned i = 0; i < SERVER_LISTS; i++) {
		assert_ptr_equal(TAILQ_FIRST(&pool->servers[i]), i == place ? server : NULL);
		assert_int_equal(pool->server_count[i], i == place);
	}
}

static void test_each_state_has_a_name_and_the_words_of_its_list(void **state)
{
	struct server_link server = {0};

	(void)state;
	for (unsigned i = 0; i < SERVER_STATES; i++) {
		const enum server_list list = server_list_of((enum server_state)i);

		server.link.state = (uint8_t)i;
		assert_string_equal(server_console_state(&server), words[list].console);
		assert_string_equal(server_socket_state(&server), words[list].socket);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(server_state_name((enum server_state)i),
				server_state_name((enum server_state)j));
	}
}

static void test_states_stand_in_lists_that_the_console_shows(void **state)
{
	struct server_link server = {0};

	(void)state;
	for (unsigned i = 0; i < SERVER_STATES; i++) {
		const enum server_list list = server_list_of((enum server_state)i);

		server.link.state = (uint8_t)i;
		assert_int_equal(list == SERVERS_NOWHERE, i == SERVER_CLOSED);
		assert_int_equal(list == SERVERS_IDLE, i == SERVER_IDLE);
		assert_int_equal(list == SERVERS_LISTENING, i == SERVER_LISTENING);
		assert_int_equal(list == SERVERS_USED, i == SERVER_STALE);
		assert_int_equal(list == SERVERS_ACTIVE_CANCEL, i == SERVER_CANCELING);
		assert_int_equal(server_is_connected(&server),
			list != SERVERS_LOGIN && list != SERVERS_ACTIVE_CANCEL &&
				list != SERVERS_LISTENING && list != SERVERS_WATCHING &&
				list != SERVERS_NOWHERE);
	}
	assert_int_equal(server_list_of(SERVER_PAIRED), SERVERS_ACTIVE);
	assert_int_equal(server_list_of(SERVER_LOOKING_UP), SERVERS_ACTIVE);
	assert_int_equal(server_list_of(SERVER_ASKING), SERVERS_ACTIVE);
	assert_int_equal(server_list_of(SERVER_DRAINING), SERVERS_BEING_CANCELED);
	assert_int_equal(server_list_of(SERVER_HELD), SERVERS_BEING_CANCELED);
	assert_int_equal(server_list_of(SERVER_RESETTING), SERVERS_TESTED);
	assert_int_equal(server_list_of(SERVER_CHECKING), SERVERS_TESTED);
}

static void test_every_step_of_the_diagram_is_allowed(void **state)
{
	(void)state;
	for (size_t line = 0; line < COUNT(lines); line++) {
		for (size_t i = 1;
			i < COUNT(lines[line]) && lines[line][i - 1] != SERVER_CLOSED; i++)
			assert_true(server_may(lines[line][i - 1], lines[line][i]));
	}
}

static void test_every_state_is_reached_and_can_close(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SERVER_STATES; i++) {
		assert_true(leads_to(SERVER_CONNECTING, (enum server_state)i));
		assert_int_equal(may(i, SERVER_CLOSED), i != SERVER_CLOSED);
		assert_false(may(SERVER_CLOSED, i));
		assert_false(may(i, i));
	}
}

static void test_no_way_leads_back_to_the_login_or_to_another_purpose(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SERVER_STATES; i++) {
		assert_int_equal(may(i, SERVER_PAIRED), i == SERVER_IDLE || i == SERVER_ASKING);
		assert_int_equal(may(i, SERVER_ASKING), i == SERVER_PAIRED || i == SERVER_IDLE);
		assert_int_equal(may(i, SERVER_LOOKING_UP), i == SERVER_IDLE);
		assert_int_equal(may(i, SERVER_CHECKING), i == SERVER_STALE);
		assert_int_equal(may(i, SERVER_DRAINING), i == SERVER_PAIRED);
		if (i != SERVER_CLOSED)
			assert_false(may(SERVER_CANCELING, i));
	}
	assert_false(leads_to(SERVER_IDLE, SERVER_CONNECTING));
	assert_false(leads_to(SERVER_IDLE, SERVER_AUTHENTICATING));
}

static void walk(bool last)
{
	for (unsigned from = 0; from < SERVER_CLOSED; from++) {
		for (unsigned to = 0; to < SERVER_STATES; to++) {
			struct server_link server;

			if (!server_may((enum server_state)from, (enum server_state)to))
				continue;
			make(&server);
			bring_to(&server, (enum server_state)from);
			assert_place(&server);
			if (last)
				server_enter_last(&server, (enum server_state)to);
			else
				server_enter(&server, (enum server_state)to);
			assert_int_equal(server_state(&server), to);
			assert_place(&server);
			if (to != SERVER_CLOSED)
				server_enter(&server, SERVER_CLOSED);
			assert_place(&server);
		}
	}
}

static void test_each_step_leads_to_the_list_of_its_state(void **state)
{
	(void)state;
	walk(false);
	walk(true);
}

static void test_a_server_enters_a_list_first_or_last(void **state)
{
	struct server_link servers[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		make(&servers[i]);
		server_enter(&servers[i], SERVER_AUTHENTICATING);
	}
	server_enter(&servers[0], SERVER_IDLE);
	server_enter(&servers[1], SERVER_IDLE);
	server_enter_last(&servers[2], SERVER_IDLE);
	assert_ptr_equal(TAILQ_FIRST(&pool->servers[SERVERS_IDLE]), &servers[1]);
	assert_ptr_equal(TAILQ_LAST(&pool->servers[SERVERS_IDLE], link_list), &servers[2]);
	for (int i = 0; i < 3; i++)
		server_enter(&servers[i], SERVER_CLOSED);
}

static void test_a_step_within_a_list_keeps_the_place(void **state)
{
	struct server_link servers[2];

	(void)state;
	make(&servers[0]);
	make(&servers[1]);
	server_enter(&servers[0], SERVER_AUTHENTICATING);
	assert_ptr_equal(TAILQ_FIRST(&pool->servers[SERVERS_LOGIN]), &servers[1]);
	server_enter(&servers[0], SERVER_CLOSED);
	server_enter(&servers[1], SERVER_CLOSED);
}

static void test_states_count_as_connected(void **state)
{
	struct server_link server = {0};

	(void)state;
	for (unsigned i = 0; i < SERVER_STATES; i++) {
		server.link.state = (uint8_t)i;
		assert_int_equal(server_is_connected(&server),
			i == SERVER_IDLE || i == SERVER_PAIRED || i == SERVER_LOOKING_UP ||
				i == SERVER_DRAINING || i == SERVER_HELD ||
				i == SERVER_RESETTING || i == SERVER_STALE ||
				i == SERVER_CHECKING || i == SERVER_ASKING);
	}
}

static void test_a_server_is_clean_when_it_owes_nothing(void **state)
{
	struct endpoint *endpoint = fake_server(pool);
	struct server_link *server = endpoint_server(endpoint);

	(void)state;
	assert_true(server_is_clean(server));
	for (const char *status = "TE"; *status; status++) {
		server->transaction_status = *status;
		assert_false(server_is_clean(server));
	}
	server->transaction_status = 0;
	assert_false(server_is_clean(server));
	server->transaction_status = 'I';
#define UNCLEAN_IF(field)                                                                      \
	server->field = 1;                                                                     \
	assert_false(server_is_clean(server));                                                 \
	server->field = 0;                                                                     \
	assert_true(server_is_clean(server))
	UNCLEAN_IF(copy);
	server_set_task(server, SERVER_TASK_SYNC_ALONE);
	assert_false(server_is_clean(server));
	server_set_task(server, SERVER_TASK_NONE);
	UNCLEAN_IF(dirty);
	UNCLEAN_IF(link.remaining);
	assert_true(requests_add(&server->requests, 'Q', REQUEST_FORWARD));
	assert_false(server_is_clean(server));
	requests_drop(&server->requests);
	assert_true(link_hold(&server->link, "x", 1));
	assert_false(server_is_clean(server));
	link_drop_held(&server->link);
	scripted_allow(endpoint->script, 0);
	assert_int_equal(stream_send_bytes(&server->link.stream, "x", 1), STREAM_SENT_LATER);
	assert_false(server_is_clean(server));
	scripted_allow(endpoint->script, SCRIPTED_ANY);
	assert_true(server_is_clean(server));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(each_state_has_a_name_and_the_words_of_its_list),
		TEST(states_stand_in_lists_that_the_console_shows),
		TEST(every_step_of_the_diagram_is_allowed),
		TEST(every_state_is_reached_and_can_close),
		TEST(no_way_leads_back_to_the_login_or_to_another_purpose),
		TEST(each_step_leads_to_the_list_of_its_state),
		TEST(a_server_enters_a_list_first_or_last),
		TEST(a_step_within_a_list_keeps_the_place),
		TEST(states_count_as_connected),
		TEST(a_server_is_clean_when_it_owes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
