/* SPDX-License-Identifier: ISC */
/*
 * auth_query in a database that is at home at another worker than the client: the look-up there,
 * its answer, its end, and its time limits here.
 */
#include "session/link/login.h"
#include "session/pool/lookup.h"
#include "session/serving/control.h"
#include "support/fakes/fake_auth_query.h"
#include "support/fakes/fake_login.h"
#include "wire/startup.h"
#include "wire/writer.h"

/*
 * `far` and its clients are at worker 1, `near` at worker 0, and each looks up its users in the other
 * one. Workers have their turns in this order: mail from worker 1 arrives in a later turn.
 */
static struct pool *near_pool, *far_pool; /* in which users are looked up */

static void start_with(const char *settings)
{
	char config[1500];

	snprintf(config, sizeof(config),
		"[databases]\n"
		"far = host=/tmp pool_size=4 auth_dbname=near\n"
		"near = host=/tmp pool_size=4 auth_dbname=far auth_query='select own'\n"
		"other = host=/tmp auth_dbname=near auth_query='select other'\n"
		"spare = host=/tmp\n"
		"taboo = host=/tmp auth_dbname=pgbouncer\n"
		"[pgbouncer]\n"
		"pool_mode = transaction\n"
		"auth_user = asker\n"
		"auth_query = select asked\n"
		"%s",
		settings);
	fake_workers = 2;
	fake_start(config);
	near_pool = fake_pool("near", "asker");
	far_pool = fake_pool("far", "asker");
	assert_int_equal(near_pool->registry->number, 0);
	assert_int_equal(far_pool->registry->number, 1);
	assert_int_equal(fake_pool("taboo", "asker")->registry->number, 1);
	assert_int_equal(fake_pool("other", "asker")->registry->number, 1);
}

static int start_trust(void **state)
{
	(void)state;
	start_with("auth_type = trust\n");
	return 0;
}

static int start_plain(void **state)
{
	(void)state;
	start_with("auth_type = plain\n");
	return 0;
}

static int start_with_template(void **state)
{
	(void)state;
	fake_workers = 2;
	fake_start("[databases]\n"
		   "* = host=/tmp\n"
		   "[pgbouncer]\n"
		   "auth_type = trust\n"
		   "auth_user = asker\n");
	return 0;
}

static struct endpoint *connect_to(const char *database, const char *user)
{
	struct endpoint *client = fake_accept(-1);

	fake_deliver();
	send_startup(client, PROTOCOL_3_0, "user", user, "database", database, NULL);
	fake_deliver();
	return client;
}

/* With a pool beforehand, so that the client need not wait for the welcome message. */
static struct endpoint *connect_as(const char *user, const char *database)
{
	fake_pool(database, user);
	return connect_to(database, user);
}

static void accept_login(struct endpoint *server)
{
	assert_non_null(server);
	fake_connected(server, 0);
	assert_received(server, "^");
	send_letters(server, "RKZ");
	fake_deliver();
}

static void assert_asked_for(struct endpoint *server, const char *user, const char *query)
{
	size_t length;
	const uint8_t *sent = scripted_output(server->script, &length);

	assert_received(server, "PBDES");
	assert_state(server, SERVER_LOOKING_UP);
	assert_string_equal(endpoint_server(server)->lookup->user, user);
	assert_non_null(memmem(sent, length, query, strlen(query)));
}

static const struct asker *asker_of(const struct endpoint *client)
{
	assert_state(client, CLIENT_LOOKING_UP);
	assert_non_null(endpoint_client(client)->login->remote);
	return &endpoint_client(client)->login->asker;
}

#define assert_config_error(client)                                                            \
	assert_closed_with_error(client, "08P01", "bouncer config error")

static void assert_nothing_waits(const struct pool *pool)
{
	assert_int_equal(pool->looking_up, 0);
	assert_int_equal(pool->lookups_waiting, 0);
	assert_int_equal(pool->lookups_running, 0);
}

/* --- the answer --------------------------------------------------------------------------- */

static void check_login(struct pool *pool, const char *database, const char *query)
{
	struct endpoint *server = fake_server(pool), *client = connect_as("alice", database);
	struct registry *home = registry_find_database(&fake_registry, database)->registry;

	assert_state(client, CLIENT_LOOKING_UP);
	assert_asked_for(server, "alice", query);
	assert_int_equal(pool->looking_up, 1);
	answer(server, "alice", "secret");
	fake_deliver();
	assert_received(client, "RKZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_ptr_equal(link_registry(endpoint_link(client)), home);
	assert_int_equal(registry_find_user(home, "alice")->clients, 1);
	assert_string_equal(pool_secret(endpoint_link(client)->pool), "secret");
	assert_nothing_waits(pool);
}

static void test_user_is_looked_up_at_the_home_of_the_authentication_database(void **state)
{
	(void)state;
	check_login(near_pool, "far", "select asked");
	check_login(far_pool, "near", "select own");
	assert_null(registry_find_user(&fake_registry, "stranger"));
}

static void test_client_authenticates_with_the_secret_in_the_answer(void **state)
{
	struct endpoint *server = fake_server(near_pool), *client = connect_as("alice", "far");

	(void)state;
	answer(server, "alice", "secret");
	fake_deliver();
	assert_received(client, "R");
	send_password(client, "secret");
	assert_received(client, "RKZ");
	client = connect_to("far", "alice");
	answer(server, "alice", "another");
	fake_deliver();
	assert_received(client, "R");
	send_password(client, "secret");
	assert_closed_with_error(client, "28P01", "password authentication failed");
}

static void test_every_password_is_refused_without_a_secret(void **state)
{
	struct endpoint *server = fake_server(near_pool), *client = connect_as("alice", "far");

	(void)state;
	answer(server, "alice", NULL);
	fake_deliver();
	assert_received(client, "R");
	send_password(client, "secret");
	assert_closed_with_error(client, "28P01", "password authentication failed");
}

static void test_name_in_the_answer_becomes_the_user_of_the_client(void **state)
{
	struct endpoint *server = fake_server(near_pool), *client;

	(void)state;
	fake_pool("far", "bob");
	client = connect_to("far", "alice");
	answer(server, "bob", "secret");
	fake_deliver();
	assert_string_equal(endpoint_client(client)->user->name, "bob");
}

static void test_answer_without_a_row_means_no_such_user(void **state)
{
	struct endpoint *server = fake_server(near_pool), *client = connect_to("far", "ghost");

	(void)state;
	answer_no_row(server);
	fake_deliver();
	assert_closed_with_error(client, "28000", "no such user");
	assert_true(fake_logged("login failed: db=far user=ghost"));
}

static void test_failed_query_is_a_configuration_error(void **state)
{
	struct endpoint *server = fake_server(near_pool), *client = connect_to("far", "alice");

	(void)state;
	send_error(server, "42601", "syntax error");
	fake_deliver();
	assert_config_error(client);
	assert_closed(server);
	assert_nothing_waits(near_pool);
}

static void test_login_error_of_the_server_reaches_the_client(void **state)
{
	struct endpoint *client = connect_to("far", "alice"), *server = fake_launched();

	(void)state;
	fake_connected(server, 0);
	send_error(server, "28000", "role \"asker\" does not exist");
	fake_deliver();
	assert_closed_with_error(client, "28000", "role \"asker\" does not exist");
	assert_closed_with_error(connect_to("far", "alice"), "08006",
		"server login has been failing, cached error: role \"asker\" does not exist "
		"(server_login_retry)");
}

/* --- where -------------------------------------------------------------------------------- */

static void test_console_database_is_refused_as_auth_dbname(void **state)
{
	(void)state;
	assert_config_error(connect_to("taboo", "alice"));
	assert_true(fake_logged(
		"cannot use the reserved \"pgbouncer\" database as an auth_dbname"));
}

static void test_disabled_auth_dbname_is_reported_by_its_name(void **state)
{
	(void)state;
	near_pool->database->disabled = true;
	assert_closed_with_error(connect_to("far", "alice"), "55000",
		"authentication database \"near\" is disabled");
}

/* A name whose automatic database would be at home at this worker. */
static void find_name(char name[16], unsigned worker)
{
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, 16, "auto%u", i);
		if (directory_home_of(&fake_process, name)->number == worker)
			return;
	}
	fail();
}

static void test_auth_dbname_may_come_from_the_template(void **state)
{
	char here[16], there[16], line[64];
	struct endpoint *client, *server;
	struct database *made;

	(void)state;
	find_name(here, 0);
	find_name(there, 1);
	fake_set("auth_dbname", there);
	client = connect_to(here, "alice");
	assert_state(client, CLIENT_LOOKING_UP);
	made = registry_find_database(fake_registry_of(1), there);
	assert_non_null(made);
	snprintf(line, sizeof(line), "registered new auto-database: %s", there);
	assert_int_equal(fake_log_count(line), 1);
	server = fake_launched();
	assert_ptr_equal(endpoint_link(server)->pool->database, made);
	accept_login(server);
	answer(server, "alice", "secret");
	fake_deliver();
	assert_state(client, CLIENT_WELCOMING);
}

/* --- shared look-ups ---------------------------------------------------------------------- */

static void test_equal_questions_share_a_query(void **state)
{
	struct endpoint *clients[3], *server;

	(void)state;
	near_pool->database->paused = true;
	for (int i = 0; i < 3; i++)
		clients[i] = connect_as(i < 2 ? "alice" : "bob", "far");
	assert_int_equal(near_pool->looking_up, 3);
	assert_int_equal(near_pool->lookups_waiting, 2);
	control_resume(&fake_registry, near_pool->database);
	server = fake_server(near_pool);
	fake_deliver();
	assert_asked_for(server, "alice", "select asked");
	answer(server, "alice", "secret");
	fake_deliver();
	assert_received(clients[0], "RKZ");
	assert_received(clients[1], "RKZ");
	assert_state(clients[2], CLIENT_LOOKING_UP);
}

static void test_other_query_for_the_same_name_is_not_shared(void **state)
{
	(void)state;
	near_pool->database->paused = true;
	connect_to("far", "alice");
	connect_to("other", "alice");
	assert_int_equal(near_pool->lookups_waiting, 2);
}

/* Clients of `far` are at worker 1, those of `spare` at worker 0. */
static void test_questions_of_both_workers_wait_in_one_queue(void **state)
{
	struct endpoint *server;

	(void)state;
	fake_set("default_pool_size", "1");
	fake_set("auth_dbname", "near");
	near_pool->database->paused = true;
	connect_to("far", "alice");
	connect_to("spare", "bob");
	connect_to("far", "carol");
	assert_int_equal(near_pool->lookups_waiting, 3);
	control_resume(&fake_registry, near_pool->database);
	server = fake_server(near_pool);
	fake_deliver();
	assert_asked_for(server, "alice", "select asked");
	answer(server, "alice", "secret");
	assert_asked_for(server, "bob", "select asked");
	answer(server, "bob", "secret");
	assert_asked_for(server, "carol", "select asked");
}

/* --- clients that leave ------------------------------------------------------------------- */

static void test_question_in_the_queue_ends_with_its_client(void **state)
{
	struct endpoint *client = connect_to("far", "alice");

	(void)state;
	assert_int_equal(near_pool->lookups_waiting, 1);
	break_connection(client);
	fake_deliver();
	assert_closed(client);
	assert_nothing_waits(near_pool);
	assert_true(TAILQ_EMPTY(&near_pool->lookups));
}

static void test_server_is_closed_when_the_last_client_of_its_query_leaves(void **state)
{
	struct endpoint *server, *clients[2];

	(void)state;
	near_pool->database->paused = true;
	clients[0] = connect_to("far", "alice");
	clients[1] = connect_to("far", "alice");
	control_resume(&fake_registry, near_pool->database);
	server = fake_server(near_pool);
	fake_deliver();
	assert_asked_for(server, "alice", "select asked");
	disconnect(clients[0]);
	fake_deliver();
	assert_state(server, SERVER_LOOKING_UP);
	disconnect(clients[1]);
	fake_deliver();
	assert_closed(server);
	assert_nothing_waits(near_pool);
}

/* These bytes arrive and are handled, and no worker has a turn after that. */
static void feed(struct endpoint *endpoint, struct buffer *bytes)
{
	scripted_feed(endpoint->script, bytes->data, bytes->length);
	scripted_run_all(endpoint->script);
	buffer_free(bytes);
}

static void test_client_may_leave_while_its_answer_is_in_the_mail(void **state)
{
	struct endpoint *server = fake_server(far_pool), *client = connect_to("near", "alice");
	struct buffer out;

	(void)state;
	write_row_description(&out);
	write_row(&out, "alice", "secret");
	letters_write(&out, FROM_SERVER, "CZ");
	feed(server, &out);
	assert_nothing_waits(far_pool);
	assert_state(client, CLIENT_LOOKING_UP);
	scripted_end(client->script);
	scripted_run_all(client->script);
	assert_closed(client);
	fake_deliver();
	assert_state(server, SERVER_IDLE);
	assert_null(registry_find_user(&fake_registry, "alice"));
}

static void test_client_may_leave_while_its_question_is_in_the_mail(void **state)
{
	struct endpoint *client;
	struct buffer out;
	size_t mark;

	(void)state;
	fake_process.dealt = 0;
	client = fake_accept(-1);
	fake_deliver();
	buffer_init(&out);
	mark = startup_begin(&out, PROTOCOL_3_0);
	writer_string(&out, "user");
	writer_string(&out, "alice");
	writer_string(&out, "database");
	writer_string(&out, "near");
	startup_end(&out, mark);
	feed(client, &out);
	assert_state(client, CLIENT_LOOKING_UP);
	assert_int_equal(far_pool->looking_up, 0);
	scripted_end(client->script);
	scripted_run_all(client->script);
	assert_closed(client);
	fake_deliver();
	assert_nothing_waits(far_pool);
	assert_null(fake_launched());
}

static void test_process_may_end_while_a_user_is_looked_up(void **state)
{
	(void)state;
	fake_server(far_pool);
	connect_to("near", "alice");
	connect_to("far", "bob");
	connect_to("near", "carol");
	assert_int_equal(far_pool->looking_up, 2);
	assert_int_equal(near_pool->looking_up, 1);
}

/* --- time limits -------------------------------------------------------------------------- */

static void test_question_in_the_queue_has_the_timeouts_of_waiting_clients(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("client_login_timeout", "1");
	fake_set("query_wait_timeout", "5");
	client = connect_to("far", "alice");
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "query_wait_timeout");
	fake_deliver();
	assert_nothing_waits(near_pool);
}

static void test_running_look_up_is_limited_by_client_login_timeout(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	fake_set("client_login_timeout", "5");
	fake_set("query_wait_timeout", "1");
	server = fake_server(far_pool);
	client = connect_to("near", "alice");
	assert_asked_for(server, "alice", "select own");
	assert_int_equal(asker_of(client)->queued_at, 0);
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "client_login_timeout");
	fake_deliver();
	assert_closed(server);
}

static void test_time_in_the_queue_does_not_count_for_client_login_timeout(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	fake_set("client_login_timeout", "5");
	client = connect_to("near", "alice");
	assert_true(asker_of(client)->queued_at > 0);
	fake_advance(20 * USEC_PER_SEC);
	server = fake_launched();
	accept_login(server);
	assert_asked_for(server, "alice", "select own");
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "client_login_timeout");
}

static void test_look_up_that_is_queued_again_waits_again(void **state)
{
	struct endpoint *server = fake_server(far_pool), *client;

	(void)state;
	fake_set("query_wait_timeout", "5");
	fake_set("client_login_timeout", "2");
	fake_advance(USEC_PER_SEC);
	client = connect_to("near", "alice");
	assert_int_equal(asker_of(client)->queued_at, 0);
	disconnect(server);
	fake_deliver();
	assert_true(asker_of(client)->queued_at > 0);
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "query_wait_timeout");
}

/* --- commands ----------------------------------------------------------------------------- */

static void test_questions_wait_while_the_database_is_paused(void **state)
{
	struct endpoint *server = fake_server(near_pool), *client;

	(void)state;
	near_pool->database->paused = true;
	client = connect_as("alice", "far");
	assert_true(asker_of(client)->queued_at > 0);
	assert_received(server, "");
	control_resume(&fake_registry, near_pool->database);
	fake_deliver();
	assert_asked_for(server, "alice", "select asked");
}

static void kill(struct database *database)
{
	process_stop_others(&fake_process);
	control_kill(&fake_registry, database, true);
	process_let_others_run(&fake_process);
	fake_deliver();
}

static void test_kill_closes_all_logins_looked_up_in_the_database(void **state)
{
	struct endpoint *server = fake_server(far_pool), *running, *queued;

	(void)state;
	running = connect_to("near", "alice");
	queued = connect_to("near", "bob");
	assert_asked_for(server, "alice", "select own");
	kill(far_pool->database);
	assert_config_error(running);
	assert_closed_with_error(queued, "57P01", "database removed");
	assert_closed(server);
}

static void test_kill_client_closes_a_login_that_is_looked_up_elsewhere(void **state)
{
	struct endpoint *client = connect_to("far", "alice");

	(void)state;
	process_stop_others(&fake_process);
	assert_true(control_kill_client(&fake_registry, endpoint_link(client)->id));
	process_let_others_run(&fake_process);
	fake_deliver();
	assert_closed_with_error(client, "57P01", "admin forced disconnect");
	assert_nothing_waits(near_pool);
}

static void test_shutdown_wait_for_servers_refuses_questions(void **state)
{
	(void)state;
	fake_process.shutdown = SHUTDOWN_WAIT_FOR_SERVERS;
	assert_closed_with_error(connect_to("far", "bob"), "57P01", "server shutting down");
	fake_process.shutdown = SHUTDOWN_NONE;
}

static void test_reserve_pool_is_used_for_questions(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("reserve_pool_size", "1");
	fake_set("reserve_pool_timeout", "2");
	for (int i = 0; i < 4; i++)
		fake_server(near_pool);
	for (int i = 0; i < 4; i++) {
		client = fake_client(near_pool);
		send_letters(client, "Q");
	}
	connect_to("far", "alice");
	assert_null(fake_launched());
	fake_advance(3 * USEC_PER_SEC);
	pool_needs_work(near_pool);
	fake_turn();
	assert_non_null(fake_launched());
	assert_true(fake_logged("taking connection from reserve_pool"));
}

int main(void)
{
#define TRUST(name) cmocka_unit_test_setup_teardown(test_##name, start_trust, fake_end)
#define PLAIN(name) cmocka_unit_test_setup_teardown(test_##name, start_plain, fake_end)
	const struct CMUnitTest tests[] = {
		TRUST(user_is_looked_up_at_the_home_of_the_authentication_database),
		PLAIN(client_authenticates_with_the_secret_in_the_answer),
		PLAIN(every_password_is_refused_without_a_secret),
		TRUST(name_in_the_answer_becomes_the_user_of_the_client),
		TRUST(answer_without_a_row_means_no_such_user),
		TRUST(failed_query_is_a_configuration_error),
		TRUST(login_error_of_the_server_reaches_the_client),
		TRUST(console_database_is_refused_as_auth_dbname),
		TRUST(disabled_auth_dbname_is_reported_by_its_name),
		cmocka_unit_test_setup_teardown(test_auth_dbname_may_come_from_the_template,
			start_with_template, fake_end),
		TRUST(equal_questions_share_a_query),
		TRUST(other_query_for_the_same_name_is_not_shared),
		TRUST(questions_of_both_workers_wait_in_one_queue),
		TRUST(question_in_the_queue_ends_with_its_client),
		TRUST(server_is_closed_when_the_last_client_of_its_query_leaves),
		TRUST(client_may_leave_while_its_answer_is_in_the_mail),
		TRUST(client_may_leave_while_its_question_is_in_the_mail),
		TRUST(process_may_end_while_a_user_is_looked_up),
		TRUST(question_in_the_queue_has_the_timeouts_of_waiting_clients),
		TRUST(running_look_up_is_limited_by_client_login_timeout),
		TRUST(time_in_the_queue_does_not_count_for_client_login_timeout),
		TRUST(look_up_that_is_queued_again_waits_again),
		TRUST(questions_wait_while_the_database_is_paused),
		TRUST(kill_closes_all_logins_looked_up_in_the_database),
		TRUST(kill_client_closes_a_login_that_is_looked_up_elsewhere),
		TRUST(shutdown_wait_for_servers_refuses_questions),
		TRUST(reserve_pool_is_used_for_questions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
