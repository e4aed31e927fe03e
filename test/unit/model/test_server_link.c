/* SPDX-License-Identifier: ISC */
/* All transitions between the states of a server, with lists and counts. */
#include "support/fake_pool.h"

#define MAY(state) (1u << SERVER_##state)

/* The diagram in the header, as a table. */
static const struct {
	const char *name, *console, *socket;
	enum server_list list;
	unsigned may;
} diagram[SERVER_STATES] = {
	[SERVER_CONNECTING] = {"connecting", "new", "sv_login", SERVERS_LOGIN,
		MAY(AUTHENTICATING) | MAY(CANCELING) | MAY(CLOSED)},
	[SERVER_AUTHENTICATING] = {"authenticating", "new", "sv_login", SERVERS_LOGIN,
		MAY(CONNECTING) | MAY(PREPARING) | MAY(IDLE) | MAY(CLOSED)},
	[SERVER_PREPARING] = {"preparing", "new", "sv_login", SERVERS_LOGIN,
		MAY(IDLE) | MAY(CLOSED)},
	[SERVER_IDLE] = {"idle", "idle", "sv_idle", SERVERS_IDLE,
		MAY(PAIRED) | MAY(LOOKING_UP) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_PAIRED] = {"paired", "active", "sv_active", SERVERS_ACTIVE,
		MAY(IDLE) | MAY(DRAINING) | MAY(HELD) | MAY(RESETTING) | MAY(STALE) |
			MAY(CLOSED)},
	[SERVER_LOOKING_UP] = {"looking up", "active", "sv_active", SERVERS_ACTIVE,
		MAY(IDLE) | MAY(RESETTING) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_DRAINING] = {"draining", "being_canceled", "sv_active", SERVERS_BEING_CANCELED,
		MAY(IDLE) | MAY(RESETTING) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_HELD] = {"held", "being_canceled", "sv_active", SERVERS_BEING_CANCELED,
		MAY(IDLE) | MAY(RESETTING) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_RESETTING] = {"resetting", "tested", "sv_tested", SERVERS_TESTED,
		MAY(IDLE) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_STALE] = {"stale", "used", "sv_used", SERVERS_USED,
		MAY(CHECKING) | MAY(IDLE) | MAY(CLOSED)},
	[SERVER_CHECKING] = {"checking", "tested", "sv_tested", SERVERS_TESTED,
		MAY(IDLE) | MAY(CLOSED)},
	[SERVER_CANCELING] = {"canceling", "active_cancel", "sv_active", SERVERS_ACTIVE_CANCEL,
		MAY(CLOSED)},
	[SERVER_CLOSED] = {"closed", "closed", "sv_closed", SERVERS_NOWHERE, 0},
};

/* A path of transitions to each state. */
#define UP SERVER_AUTHENTICATING, SERVER_IDLE
static const enum server_state ways[SERVER_STATES][6] = {
	[SERVER_AUTHENTICATING] = {SERVER_AUTHENTICATING},
	[SERVER_PREPARING] = {SERVER_AUTHENTICATING, SERVER_PREPARING},
	[SERVER_IDLE] = {UP},
	[SERVER_PAIRED] = {UP, SERVER_PAIRED},
	[SERVER_LOOKING_UP] = {UP, SERVER_LOOKING_UP},
	[SERVER_DRAINING] = {UP, SERVER_PAIRED, SERVER_DRAINING},
	[SERVER_HELD] = {UP, SERVER_PAIRED, SERVER_HELD},
	[SERVER_RESETTING] = {UP, SERVER_PAIRED, SERVER_RESETTING},
	[SERVER_STALE] = {UP, SERVER_STALE},
	[SERVER_CHECKING] = {UP, SERVER_STALE, SERVER_CHECKING},
	[SERVER_CANCELING] = {SERVER_CANCELING},
	[SERVER_CLOSED] = {SERVER_CLOSED},
};

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n");
	pool = fake_pool("db", "alice");
	return 0;
}

/* A server without a stream, for transitions only. */
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
	for (size_t i = 0; server->link.state != state; i++)
		server_enter(server, ways[state][i]);
}

static void assert_place(const struct server_link *server)
{
	const enum server_list place = diagram[server->link.state].list;

	for (unsigned i = 0; i < SERVER_LISTS; i++) {
		assert_ptr_equal(TAILQ_FIRST(&pool->servers[i]), i == place ? server : NULL);
		assert_int_equal(pool->server_count[i], i == place);
	}
}

static void test_words_and_list_of_each_state(void **state)
{
	struct server_link server = {0};

	(void)state;
	for (unsigned i = 0; i < SERVER_STATES; i++) {
		server.link.state = (uint8_t)i;
		assert_string_equal(server_state_name((enum server_state)i), diagram[i].name);
		assert_string_equal(server_console_state(&server), diagram[i].console);
		assert_string_equal(server_socket_state(&server), diagram[i].socket);
		assert_int_equal(server_list_of((enum server_state)i), diagram[i].list);
	}
}

static void test_only_transitions_of_the_diagram_are_allowed(void **state)
{
	(void)state;
	for (unsigned from = 0; from < SERVER_STATES; from++) {
		for (unsigned to = 0; to < SERVER_STATES; to++)
			assert_int_equal(
				server_may((enum server_state)from, (enum server_state)to),
				(diagram[from].may >> to) & 1);
	}
}

static void walk(bool last)
{
	unsigned walked = 0;

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
			walked++;
		}
	}
	assert_int_equal(walked, 40);
}

static void test_each_transition_leads_to_its_list(void **state)
{
	(void)state;
	walk(false);
	walk(true);
}

static void test_entered_list_gets_the_server_first_or_last(void **state)
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

static void test_change_within_a_list_keeps_the_place(void **state)
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

static void test_states_that_count_as_connected(void **state)
{
	struct server_link server = {0};

	(void)state;
	for (unsigned i = 0; i < SERVER_STATES; i++) {
		server.link.state = (uint8_t)i;
		assert_int_equal(server_is_connected(&server),
			i == SERVER_IDLE || i == SERVER_PAIRED || i == SERVER_LOOKING_UP ||
				i == SERVER_DRAINING || i == SERVER_HELD ||
				i == SERVER_RESETTING || i == SERVER_STALE ||
				i == SERVER_CHECKING);
	}
}

static void test_server_is_clean_if_nothing_is_pending(void **state)
{
	struct actor *actor = fake_server(pool);
	struct server_link *server = actor_server(actor);

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
	UNCLEAN_IF(copying_in);
	UNCLEAN_IF(setting);
	UNCLEAN_IF(dirty);
	UNCLEAN_IF(link.remaining);
	assert_true(requests_add(&server->requests, 'Q', REQUEST_FORWARD));
	assert_false(server_is_clean(server));
	requests_drop(&server->requests);
	assert_true(link_hold(&server->link, "x", 1));
	assert_false(server_is_clean(server));
	link_drop_held(&server->link);
	scripted_allow(actor->script, 0);
	assert_int_equal(stream_send_bytes(&server->link.stream, "x", 1), STREAM_SENT_LATER);
	assert_false(server_is_clean(server));
	scripted_allow(actor->script, SCRIPTED_ANY);
	assert_true(server_is_clean(server));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(words_and_list_of_each_state),
		TEST(only_transitions_of_the_diagram_are_allowed),
		TEST(each_transition_leads_to_its_list),
		TEST(entered_list_gets_the_server_first_or_last),
		TEST(change_within_a_list_keeps_the_place),
		TEST(states_that_count_as_connected),
		TEST(server_is_clean_if_nothing_is_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
