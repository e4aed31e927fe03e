/* SPDX-License-Identifier: ISC */
/* Cancel requests: whom they may hit, what carries them, and what waits for them to end. */
#include <errno.h>

#include "session/link/close.h"
#include "session/pool/draining.h"
#include "session/work/cancel.h"
#include "session/work/control.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/startup.h"
#include "wire/writer.h"

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	pool = fake_start_pool(
		"default_pool_size = 2\nmax_client_conn = 4\nquery_wait_notify = 0\n");
	return 0;
}

/* Somebody shows this key. */
static struct actor *show(const void *key, size_t length)
{
	struct actor *asker = fake_accept(-1);
	struct buffer buffer;

	buffer_init(&buffer);
	startup_write_cancel(&buffer, key, length);
	say_buffer(asker, &buffer);
	return asker;
}

static struct actor *cancel(const struct actor *client)
{
	const struct client_link *link = actor_client(client);

	return show(link->key, link->key_length);
}

/* A client with a query that takes its time. */
static struct actor *busy_client(void)
{
	struct actor *client = fake_client(pool);

	say_query(client, "slow");
	return client;
}

static void assert_closed_for(struct actor *asker, const char *reason)
{
	assert_dropped(asker);
	assert_true(fake_logged(reason));
}

/* --- who is not even tried ---------------------------------------------------------------- */

static void test_a_key_that_nobody_has_hits_nobody(void **state)
{
	uint8_t key[CANCEL_KEY_MAX] = {1};

	(void)state;
	assert_closed_for(show(key, 8), "closing because: failed cancel request");
	assert_closed_for(show(key, 20), "closing because: failed cancel request");
	assert_null(fake_launched());
}

static void test_a_key_of_a_length_that_none_has_is_refused(void **state)
{
	uint8_t key[300] = {1};

	(void)state;
	assert_closed_for(show(key, 4), "closing because: bad cancel request");
	assert_closed_for(show(key, 0), "");
	assert_closed_for(show(key, 7), "");
	assert_closed_for(show(key, 300), "");
}

static void test_the_beginning_of_a_key_is_none(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client();
	uint8_t key[20] = {0};

	(void)state;
	memcpy(key, actor_client(client)->key, 8);
	assert_closed_for(show(key, 9), "");
	assert_closed_for(show(key, 20), "");
	assert_state(server, SERVER_PAIRED);
	assert_null(fake_launched());
}

static void test_an_idle_client_is_not_cancelled(void **state)
{
	struct actor *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	assert_closed_for(cancel(client), "closing because: cancel request for idle client");
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
}

static void test_between_two_queries_nothing_is_cancelled(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client();

	(void)state;
	say(server, "C>");
	assert_state(client, CLIENT_PAIRED);
	assert_closed_for(cancel(client), "closing because: cancel request for idle client");
	assert_null(fake_launched());
}

static void test_the_next_query_is_not_hit_by_a_request_for_the_last(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *asker;

	(void)state;
	asker = cancel(client);
	say(server, "C>");
	fake_advance(USEC_PER_SEC);
	say(client, "Q");
	fake_connected(fake_launched(), 0);
	assert_closed_for(asker,
		"closing because: not sending cancel request for client that is now idle");
	assert_int_equal(actor_server(server)->cancels, 0);
	assert_state(server, SERVER_PAIRED);
}

static void test_a_server_that_gave_no_key_cannot_be_asked(void **state)
{
	struct actor *server = fake_server(pool), *client;

	(void)state;
	free(actor_server(server)->cancel_key);
	actor_server(server)->cancel_key = NULL;
	client = busy_client();
	assert_closed_for(cancel(client), "closing because: failed cancel request");
	assert_null(fake_launched());
}

static void test_a_console_is_told(void **state)
{
	struct actor *console = fake_accept(-1);
	struct client_link *client = actor_client(console);

	(void)state;
	client_enter(client, CLIENT_AUTHENTICATING);
	client->link.pool = fake_registry.console_pool;
	client_enter(client, CLIENT_CONSOLE);
	assert_true(cancel_keys_issue(
		&fake_registry.process->cancel_keys, client, 8, &fake_loop.random));
	assert_closed_for(
		cancel(console), "closing because: cancel request for console client");
	assert_int_equal(fake_console.canceled, 1);
	assert_state(console, CLIENT_CONSOLE);
}

static void test_the_key_of_a_client_that_is_gone_hits_nobody(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client();
	uint8_t key[8];

	(void)state;
	memcpy(key, actor_client(client)->key, 8);
	assert_heard(server, "Q");
	leave(client);
	assert_closed_for(show(key, 8), "closing because: failed cancel request");
}

/* --- queries that wait -------------------------------------------------------------------- */

/* What a client said that waits for the end of a pause. */
static struct actor *waiting_client(const char *letters)
{
	struct actor *client = fake_client(pool);

	pool->database->paused = true;
	say(client, letters);
	assert_state(client, CLIENT_WAITING);
	return client;
}

static void assert_cancelled(struct actor *client, const char *heard)
{
	assert_closed_for(cancel(client), "closing because: cancel request for waiting client");
	assert_heard(client, heard);
	assert_string_equal(client->severity, "ERROR");
	assert_string_equal(client->sqlstate, "57014");
	assert_string_equal(client->text, "canceling statement due to user request");
	assert_false(fake_logged("pooler error"));
}

static void resume_pool(void)
{
	pool->database->paused = false;
	pool_needs_work(pool);
	fake_turn();
}

static void test_a_query_that_waits_is_answered(void **state)
{
	static const char *const cases[] = {"Q", "F", "S", "PBDES", "PBES", "HS", "CS"};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct actor *client = waiting_client(cases[i]);

		assert_cancelled(client, "EZ");
		assert_state(client, CLIENT_IDLE);
		assert_int_equal(actor_client(client)->query_start, 0);
		assert_int_equal(actor_client(client)->transaction_start, 0);
		say(client, "X");
	}
	assert_int_equal(
		fake_registry.counters.cancel_requests[CANCEL_FORWARDED], COUNT(cases));
	assert_null(fake_launched());
}

static void test_what_stands_behind_it_waits_on(void **state)
{
	struct actor *server = fake_server(pool), *client = waiting_client("QQ");

	(void)state;
	assert_cancelled(client, "EZ");
	assert_state(client, CLIENT_WAITING);
	assert_cancelled(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	say(client, "PBESQ");
	assert_cancelled(client, "EZ");
	resume_pool();
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_heard(client, "CZ");
}

static void test_a_batch_is_skipped_up_to_its_sync_whenever_that_comes(void **state)
{
	struct actor *server = fake_server(pool), *client = waiting_client("PB");

	(void)state;
	assert_cancelled(client, "E");
	resume_pool();
	say(client, "DEHC");
	say(client, "QFPdcf");
	assert_heard(client, "");
	assert_state(client, CLIENT_IDLE);
	assert_closed_for(cancel(client), "closing because: cancel request for idle client");
	say(client, "SQ");
	assert_heard(client, "Z");
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_heard(client, "CZ");
}

static void test_it_may_leave_while_it_is_skipped(void **state)
{
	struct actor *client = waiting_client("PB");

	(void)state;
	assert_cancelled(client, "E");
	say(client, "X");
	assert_dropped(client);
	assert_true(fake_logged("client close request"));
}

static void test_nonsense_is_not_skipped(void **state)
{
	struct actor *client = waiting_client("PB");

	(void)state;
	assert_cancelled(client, "E");
	say_bytes(client, "y\0\0\0\4", 5);
	assert_told(client, "08P01", "unknown pkt");
}

/* Longer than a packet buffer: its rest is still to come. */
static void test_a_long_query_is_skipped_to_its_end(void **state)
{
	uint8_t message[9001] = {'Q', 0, 0, 0x23, 0x28};
	struct actor *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	pool->database->paused = true;
	say_bytes(client, message, 5000);
	assert_state(client, CLIENT_WAITING);
	assert_cancelled(client, "EZ");
	say_bytes(client, message + 5000, 3000);
	resume_pool();
	assert_state(client, CLIENT_IDLE);
	say_bytes(client, message + 8000, 1001);
	assert_state(client, CLIENT_IDLE);
	say(client, "Q");
	assert_heard(server, "Q");
}

static void test_who_takes_nothing_is_closed(void **state)
{
	struct actor *client = waiting_client("Q");

	(void)state;
	scripted_break(client->script);
	cancel(client);
	assert_gone(client);
}

static void test_who_was_cancelled_is_idle_from_then_on(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("client_idle_timeout", "5");
	client = waiting_client("Q");
	assert_cancelled(client, "EZ");
	fake_advance(6 * USEC_PER_SEC);
	assert_told(client, "57P05", "client_idle_timeout");
}

static void have_time_zone(const struct actor *actor, const char *value)
{
	struct parameter_table *table = fake_registry.parameters;
	struct link *link = actor_link(actor);
	struct parameters *set = parameters_with(
		table, link->parameters, (unsigned)parameter_index(table, "TimeZone"), value);

	parameters_unref(link->parameters);
	link->parameters = set;
}

/* Its SETs go alone, so nothing of the client's has been sent. */
static void test_a_query_whose_server_is_being_prepared_is_answered(void **state)
{
	struct actor *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	have_time_zone(server, "GMT");
	have_time_zone(client, "Caf\xc3\xa9");
	say(client, "Q");
	assert_heard(server, "Q");
	assert_cancelled(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	/* The server is as good as any when it has done what we asked. */
	assert_state(server, SERVER_DRAINING);
	assert_null(fake_launched());
	say_parameter(server, "TimeZone", "Caf\xc3\xa9");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
	say(client, "Q");
	assert_heard(server, "Q");
}

/* A query that went with our SETs may be running. */
static void test_a_query_behind_settings_is_cancelled_on_its_server(void **state)
{
	struct actor *server = fake_server(pool), *client = fake_client(pool), *carrier;

	(void)state;
	have_time_zone(server, "GMT");
	have_time_zone(client, "UTC");
	say(client, "Q");
	assert_heard(server, "QQ");
	cancel(client);
	assert_heard(client, "");
	carrier = fake_launched();
	assert_non_null(carrier);
	say_parameter(server, "TimeZone", "UTC");
	say(server, "CCCZ");
	fake_connected(carrier, 0);
	assert_string_equal(hear(carrier), "^");
	say_error(server, "57014", "canceling statement due to user request");
	say(server, "Z");
	assert_heard(client, "EZ");
	assert_state(client, CLIENT_IDLE);
}

static void test_a_server_that_takes_nothing_of_our_words_is_waited_for(void **state)
{
	struct actor *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	have_time_zone(server, "GMT");
	have_time_zone(client, "Caf\xc3\xa9");
	scripted_allow(server->script, 3);
	say(client, "Q");
	assert_cancelled(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_DRAINING);
	/* It runs nothing of a client's that could be cancelled. */
	fake_advance(3 * USEC_PER_SEC);
	draining_inspect(actor_server(server), loop_now(&fake_loop));
	assert_int_equal(pool->cancels_due, 0);
	allow(server, SCRIPTED_ANY);
	assert_heard(server, "Q");
	say_parameter(server, "TimeZone", "Caf\xc3\xa9");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_requests_are_carried_in_a_pause_too(void **state)
{
	struct actor *client;

	(void)state;
	fake_server(pool);
	client = busy_client();
	pool->database->paused = true;
	cancel(client);
	fake_connected(fake_launched(), 0);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_SENT], 1);
}

/* --- a request on its way ----------------------------------------------------------------- */

static void test_a_request_carries_the_key_of_the_very_server(void **state)
{
	struct actor *server = fake_server(pool), *other = fake_server(pool);
	struct actor *client = busy_client(), *second = busy_client();
	struct actor *asker = cancel(second), *carrier;
	size_t length;
	const uint8_t *output;

	(void)state;
	assert_ptr_equal(actor_link(client)->peer, actor_link(other));
	assert_state(asker, CLIENT_CANCEL_WAITING);
	carrier = fake_launched();
	assert_non_null(carrier);
	fake_connected(carrier, 0);
	assert_state(carrier, SERVER_CANCELING);
	assert_state(asker, CLIENT_CANCEL_SENT);
	output = scripted_output(carrier->script, &length);
	assert_int_equal(length, 16);
	assert_memory_equal(output, "\0\0\0\x10\x04\xd2\x16\x2e", 8);
	assert_memory_equal(output + 8, actor_server(server)->cancel_key, 8);
	assert_int_equal(actor_server(server)->cancels, 1);
	/* The end of its connection is the end of the request. */
	leave(carrier);
	assert_gone(carrier);
	assert_closed_for(asker, "closing because: successfully sent cancel request");
	assert_int_equal(actor_server(server)->cancels, 0);
	assert_state(client, CLIENT_PAIRED);
	assert_state(second, CLIENT_PAIRED);
	assert_false(pool->failing);
}

static void test_the_cancelled_query_ends_as_the_server_says(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *carrier;
	struct actor *asker;

	(void)state;
	postgres_work(server);
	assert_true(postgres_backend(server)->stuck);
	asker = cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	postgres_work(carrier);
	postgres_work(server);
	assert_heard(client, "EZ");
	assert_string_equal(client->sqlstate, "57014");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_dropped(asker);
	assert_gone(carrier);
}

static void test_whatever_is_said_to_a_carrier_is_ignored(void **state)
{
	struct actor *carrier, *asker;

	(void)state;
	fake_server(pool);
	asker = cancel(busy_client());
	carrier = fake_launched();
	fake_connected(carrier, 0);
	say(carrier, "ENNN");
	assert_state(carrier, SERVER_CANCELING);
	assert_state(asker, CLIENT_CANCEL_SENT);
	vanish(carrier);
	assert_gone(carrier);
	assert_dropped(asker);
}

static void test_nothing_more_is_read_from_an_asker(void **state)
{
	struct actor *asker;

	(void)state;
	fake_server(pool);
	asker = cancel(busy_client());
	say(asker, "QX");
	assert_int_equal(scripted_unread(asker->script), 19);
	assert_state(asker, CLIENT_CANCEL_WAITING);
}

static void test_bytes_behind_the_request_are_ignored(void **state)
{
	struct actor *asker = fake_accept(-1), *client;
	struct buffer buffer;

	(void)state;
	fake_server(pool);
	client = busy_client();
	buffer_init(&buffer);
	startup_write_cancel(&buffer, actor_client(client)->key, 8);
	letters_write(&buffer, CLIENT_SPEAKS, "Q");
	say_buffer(asker, &buffer);
	assert_state(asker, CLIENT_CANCEL_WAITING);
	fake_connected(fake_launched(), 0);
	assert_state(asker, CLIENT_CANCEL_SENT);
}

static void test_a_request_may_come_byte_by_byte(void **state)
{
	struct actor *asker = fake_accept(-1), *client;
	struct buffer buffer;

	(void)state;
	fake_server(pool);
	client = busy_client();
	buffer_init(&buffer);
	startup_write_cancel(&buffer, actor_client(client)->key, 8);
	for (size_t i = 0; i < buffer.length; i++) {
		assert_state(asker, CLIENT_GREETING);
		say_bytes(asker, buffer.data + i, 1);
	}
	assert_state(asker, CLIENT_CANCEL_WAITING);
	buffer_free(&buffer);
}

static void test_askers_are_taken_though_there_are_too_many_clients(void **state)
{
	struct actor *client, *askers[10];

	(void)state;
	fake_server(pool);
	client = busy_client();
	for (size_t i = 0; i < COUNT(askers); i++)
		askers[i] = cancel(client);
	for (size_t i = 0; i < COUNT(askers); i++)
		assert_state(askers[i], CLIENT_CANCEL_WAITING);
}

/* --- who leaves meanwhile ----------------------------------------------------------------- */

static void test_the_query_ends_before_the_request_is_sent(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *asker, *carrier;

	(void)state;
	asker = cancel(client);
	assert_int_equal(actor_server(server)->cancels_queued, 1);
	say(server, "TDCZ");
	assert_closed_for(asker,
		"closing because: not sending cancel request for client that is now idle");
	assert_state(server, SERVER_IDLE);
	/* What was launched for it has nothing to do any more. */
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_dropped(carrier);
	assert_false(pool->failing);
	assert_int_equal(pool_servers(pool), 1);
}

static void test_the_query_ends_after_the_request_was_sent(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *asker, *carrier;
	struct actor *next = fake_client(pool);

	(void)state;
	fake_set("default_pool_size", "1");
	asker = cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	say(server, "TDCZ");
	assert_heard(client, "TDCZ");
	assert_state(client, CLIENT_IDLE);
	/* It may still hit the server, so nobody else gets that. */
	assert_state(server, SERVER_HELD);
	say(next, "Q");
	assert_state(next, CLIENT_WAITING);
	leave(carrier);
	assert_dropped(asker);
	assert_state(next, CLIENT_PAIRED);
	assert_ptr_equal(actor_link(next)->peer, actor_link(server));
	say(server, "CZ");
	assert_heard(next, "CZ");
}

static void test_a_held_server_waits_for_the_last_of_several_requests(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client();
	struct actor *askers[3], *carriers[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		askers[i] = cancel(client);
		carriers[i] = fake_launched();
		assert_non_null(carriers[i]);
		fake_connected(carriers[i], 0);
	}
	assert_int_equal(actor_server(server)->cancels, 3);
	say(server, "TDCZ");
	for (int i = 0; i < 3; i++) {
		assert_state(server, SERVER_HELD);
		leave(carriers[i]);
		assert_dropped(askers[i]);
	}
	assert_state(server, SERVER_IDLE);
}

static void test_a_held_server_is_reset_afterwards(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *carrier;

	(void)state;
	fake_set("server_reset_query", "DISCARD ALL");
	fake_set("pool_mode", "session");
	cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_heard(server, "Q");
	say(server, "TDCZ");
	assert_state(server, SERVER_PAIRED);
	say(client, "X");
	assert_state(server, SERVER_HELD);
	assert_heard(server, "");
	leave(carrier);
	assert_state(server, SERVER_RESETTING);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_held_server_ends(void **state)
{
	struct actor *server = fake_server(pool), *asker, *carrier;

	(void)state;
	asker = cancel(busy_client());
	carrier = fake_launched();
	fake_connected(carrier, 0);
	say(server, "TDCZ");
	leave(server);
	assert_gone(server);
	assert_null(actor_server(carrier)->cancel_target);
	leave(carrier);
	assert_dropped(asker);
}

static void test_the_server_ends_before_the_request_is_sent(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *asker, *carrier;

	(void)state;
	asker = cancel(client);
	leave(server);
	assert_gone(client);
	assert_dropped(asker);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_gone(carrier);
	assert_int_equal(pool_servers(pool), 0);
}

static void test_the_client_leaves_before_the_request_is_sent(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *asker;

	(void)state;
	asker = cancel(client);
	leave(client);
	assert_gone(client);
	/* It does what we would have to do now, and nothing is asked for twice. */
	assert_state(server, SERVER_DRAINING);
	assert_int_equal(pool->cancels_due, 0);
	fake_connected(fake_launched(), 0);
	assert_state(asker, CLIENT_CANCEL_SENT);
	assert_int_equal(actor_server(server)->cancels, 1);
}

static void test_an_asker_that_leaves_is_carried_out_all_the_same(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *asker, *carrier;

	(void)state;
	asker = cancel(client);
	leave(asker);
	assert_state(asker, CLIENT_CANCEL_WAITING);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_heard(carrier, "^");
	assert_int_equal(actor_server(server)->cancels, 1);
	leave(carrier);
	assert_gone(asker);
	assert_int_equal(actor_server(server)->cancels, 0);
}

static void test_an_asker_that_is_killed_after_sending_leaves_its_request(void **state)
{
	struct actor *server = fake_server(pool), *asker, *carrier;

	(void)state;
	asker = cancel(busy_client());
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_true(control_kill_client(&fake_registry, actor_link(asker)->id));
	fake_turn();
	assert_gone(asker);
	assert_state(carrier, SERVER_CANCELING);
	say(server, "TDCZ");
	assert_state(server, SERVER_HELD);
	leave(carrier);
	assert_state(server, SERVER_IDLE);
}

/* What was asked for has ended; our ROLLBACK is not meant. */
static void test_a_request_that_waits_hits_no_rollback(void **state)
{
	struct actor *server = fake_server(pool), *client = fake_client(pool), *asker, *carrier;

	(void)state;
	say(client, "QQ");
	say(server, "C>");
	hear(server);
	asker = cancel(client);
	carrier = fake_launched();
	leave(client);
	say(server, "C>");
	assert_heard(server, "Q");
	assert_dropped(asker);
	fake_connected(carrier, 0);
	assert_int_equal(actor_server(server)->cancels, 0);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_killed_database_takes_all_of_it_along(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client();
	struct actor *sent = cancel(client), *carrier = fake_launched(), *waiting, *second;

	(void)state;
	fake_connected(carrier, 0);
	waiting = cancel(client);
	second = fake_launched();
	assert_non_null(second);
	say(server, "TDCZ");
	control_kill(&fake_registry, pool->database, false);
	fake_turn();
	assert_gone(server);
	assert_gone(carrier);
	assert_gone(second);
	assert_gone(sent);
	assert_gone(waiting);
	assert_gone(client);
}

/* --- connections for requests ------------------------------------------------------------- */

static void test_requests_may_double_the_size_of_the_pool(void **state)
{
	struct actor *clients[2], *carrier;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fake_server(pool);
		clients[i] = busy_client();
	}
	for (int i = 0; i < 5; i++)
		cancel(clients[i % 2]);
	for (int i = 0; i < 2; i++) {
		carrier = fake_launched();
		assert_non_null(carrier);
		assert_null(fake_launched()); /* one at a time */
		fake_connected(carrier, 0);
		assert_state(carrier, SERVER_CANCELING);
	}
	assert_null(fake_launched());
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 3);
	/* One has done its work, for another that wanted the same too: there is room for the next. */
	leave(carrier);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 2);
	carrier = fake_launched();
	assert_non_null(carrier);
	fake_connected(carrier, 0);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 1);
}

static void test_a_storm_of_requests_keeps_no_descriptors(void **state)
{
	struct actor *client, *other;

	(void)state;
	fake_server(pool);
	client = busy_client();
	fake_server(pool);
	other = busy_client();
	fake_refuses_connects = true;
	for (int i = 0; i < 10000; i++)
		cancel(client);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 100);
	assert_int_equal(fake_registry.process->limits.clients, 102);
	/* That costs nobody else his request. */
	cancel(other);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 101);
	cancel(other);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 101);
	fake_advance(10 * USEC_PER_SEC);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 0);
	assert_int_equal(fake_registry.process->limits.clients, 2);
	assert_int_equal(fake_registry.counters.cancel_requests[CANCEL_TIMEOUT], 101);
	assert_state(client, CLIENT_PAIRED);
}

static void test_one_connection_carries_all_that_want_the_same(void **state)
{
	struct actor *client, *askers[5], *late, *carrier;

	(void)state;
	fake_server(pool);
	client = busy_client();
	for (size_t i = 0; i < COUNT(askers); i++)
		askers[i] = cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	fake_advance(USEC_PER_SEC);
	late = cancel(client);
	leave(carrier);
	for (size_t i = 0; i < COUNT(askers); i++)
		assert_gone(askers[i]);
	assert_state(late, CLIENT_CANCEL_WAITING);
}

static void test_a_lost_request_takes_the_held_server_along(void **state)
{
	struct actor *server = fake_server(pool), *carrier;

	(void)state;
	cancel(busy_client());
	carrier = fake_launched();
	fake_connected(carrier, 0);
	say(server, "TDCZ");
	assert_state(server, SERVER_HELD);
	server_close_for(actor_server(carrier), REASON_CANCEL_WAIT_TIMEOUT);
	fake_turn();
	assert_gone(server);
}

static void test_a_lost_request_keeps_the_server_from_others(void **state)
{
	struct actor *server = fake_server(pool), *client = busy_client(), *carrier;

	(void)state;
	cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	server_close_for(actor_server(carrier), REASON_CANCEL_WAIT_TIMEOUT);
	fake_turn();
	assert_state(server, SERVER_PAIRED);
	say(server, "TDCZ");
	assert_heard(client, "TDCZ");
	assert_gone(server);
	assert_true(fake_logged("closing because: close_needed"));
}

static void test_requests_go_before_waiting_clients(void **state)
{
	struct actor *client, *waiter, *carrier, *server;

	(void)state;
	fake_set("cancel_wait_timeout", "60");
	fake_server(pool);
	client = busy_client();
	pool->failing = true; /* so that the waiter's server is not launched yet */
	pool->last_launch = loop_now(&fake_loop);
	waiter = busy_client();
	assert_null(fake_launched());
	cancel(client);
	fake_advance(15 * USEC_PER_SEC);
	pool_needs_work(pool);
	fake_turn();
	carrier = fake_launched();
	assert_non_null(carrier);
	fake_connected(carrier, 0);
	assert_state(carrier, SERVER_CANCELING);
	pool->failing = false;
	leave(carrier);
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	assert_state(server, SERVER_AUTHENTICATING);
	assert_state(waiter, CLIENT_WAITING);
}

static void test_idle_servers_do_not_wait_for_requests(void **state)
{
	struct actor *busy = busy_client(), *waiting;

	(void)state;
	fake_connected(fake_launched(), 0);
	postgres_work(fake_next_actor(NULL));
	assert_state(busy, CLIENT_PAIRED);
	cancel(busy);
	pool->database->paused = true;
	waiting = fake_client(pool);
	say(waiting, "Q");
	fake_server(pool);
	control_resume(&fake_registry, pool->database);
	fake_turn();
	assert_state(waiting, CLIENT_PAIRED);
}

static void test_a_connection_that_is_on_its_way_carries_the_request(void **state)
{
	struct actor *client, *waiter, *asker, *launched;

	(void)state;
	fake_server(pool);
	client = busy_client();
	waiter = busy_client();
	launched = fake_launched();
	assert_non_null(launched);
	memcpy(&actor_server(launched)->where, &server_of(actor_link(client)->peer)->where,
		sizeof(struct sockaddr_storage));
	actor_server(launched)->where_length =
		server_of(actor_link(client)->peer)->where_length;
	asker = cancel(client);
	fake_connected(launched, 0);
	assert_state(launched, SERVER_CANCELING);
	assert_state(asker, CLIENT_CANCEL_SENT);
	/* And the waiter gets another one, when there is room for it again. */
	assert_null(fake_launched());
	leave(launched);
	launched = fake_launched();
	assert_non_null(launched);
	fake_connected(launched, 0);
	postgres_work(launched);
	assert_ptr_equal(actor_link(waiter)->peer, actor_link(launched));
}

static void test_a_connection_to_another_place_does_not_carry_it(void **state)
{
	struct actor *client, *asker, *launched;

	(void)state;
	fake_server(pool);
	client = busy_client();
	busy_client();
	launched = fake_launched();
	asker = cancel(client);
	fake_connected(launched, 0);
	assert_state(launched, SERVER_AUTHENTICATING);
	assert_state(asker, CLIENT_CANCEL_WAITING);
	postgres_work(launched);
	launched = fake_launched();
	fake_connected(launched, 0);
	assert_state(launched, SERVER_CANCELING);
	assert_state(asker, CLIENT_CANCEL_SENT);
}

static void test_a_connection_that_fails_is_tried_again_after_the_pause(void **state)
{
	struct actor *asker;

	(void)state;
	fake_set("cancel_wait_timeout", "60");
	fake_server(pool);
	asker = cancel(busy_client());
	fake_connected(fake_launched(), ECONNREFUSED);
	assert_state(asker, CLIENT_CANCEL_WAITING);
	assert_null(fake_launched());
	fake_advance(15 * USEC_PER_SEC);
	pool_needs_work(pool);
	fake_turn();
	fake_connected(fake_launched(), 0);
	assert_state(asker, CLIENT_CANCEL_SENT);
}

static void test_a_connection_that_breaks_at_once_ends_the_request(void **state)
{
	struct actor *server = fake_server(pool), *asker, *carrier;

	(void)state;
	asker = cancel(busy_client());
	carrier = fake_launched();
	scripted_break(carrier->script);
	fake_connected(carrier, 0);
	assert_gone(carrier);
	assert_dropped(asker);
	assert_int_equal(actor_server(server)->cancels, 0);
	assert_int_equal(actor_server(server)->cancels_queued, 0);
	assert_null(fake_launched());
}

static void test_a_request_that_waits_too_long_is_dropped(void **state)
{
	struct actor *server = fake_server(pool), *asker;

	(void)state;
	asker = cancel(busy_client());
	fake_advance(9 * USEC_PER_SEC);
	assert_state(asker, CLIENT_CANCEL_WAITING);
	fake_advance(USEC_PER_SEC);
	assert_closed_for(asker, "closing because: cancel_wait_timeout");
	assert_int_equal(actor_server(server)->cancels_queued, 0);
}

static void test_without_a_limit_a_request_waits(void **state)
{
	struct actor *asker;

	(void)state;
	fake_set("cancel_wait_timeout", "0");
	fake_server(pool);
	asker = cancel(busy_client());
	fake_advance(1000 * USEC_PER_SEC);
	assert_state(asker, CLIENT_CANCEL_WAITING);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(a_key_that_nobody_has_hits_nobody),
		TEST(a_key_of_a_length_that_none_has_is_refused),
		TEST(the_beginning_of_a_key_is_none),
		TEST(an_idle_client_is_not_cancelled),
		TEST(between_two_queries_nothing_is_cancelled),
		TEST(the_next_query_is_not_hit_by_a_request_for_the_last),
		TEST(a_query_that_waits_is_answered),
		TEST(what_stands_behind_it_waits_on),
		TEST(a_batch_is_skipped_up_to_its_sync_whenever_that_comes),
		TEST(it_may_leave_while_it_is_skipped),
		TEST(nonsense_is_not_skipped),
		TEST(a_long_query_is_skipped_to_its_end),
		TEST(who_takes_nothing_is_closed),
		TEST(who_was_cancelled_is_idle_from_then_on),
		TEST(a_query_whose_server_is_being_prepared_is_answered),
		TEST(a_query_behind_settings_is_cancelled_on_its_server),
		TEST(a_server_that_takes_nothing_of_our_words_is_waited_for),
		TEST(a_request_that_waits_hits_no_rollback),
		TEST(requests_are_carried_in_a_pause_too),
		TEST(a_storm_of_requests_keeps_no_descriptors),
		TEST(one_connection_carries_all_that_want_the_same),
		TEST(a_lost_request_takes_the_held_server_along),
		TEST(a_lost_request_keeps_the_server_from_others),
		TEST(a_server_that_gave_no_key_cannot_be_asked),
		TEST(a_console_is_told),
		TEST(the_key_of_a_client_that_is_gone_hits_nobody),
		TEST(a_request_carries_the_key_of_the_very_server),
		TEST(the_cancelled_query_ends_as_the_server_says),
		TEST(whatever_is_said_to_a_carrier_is_ignored),
		TEST(nothing_more_is_read_from_an_asker),
		TEST(bytes_behind_the_request_are_ignored),
		TEST(a_request_may_come_byte_by_byte),
		TEST(askers_are_taken_though_there_are_too_many_clients),
		TEST(the_query_ends_before_the_request_is_sent),
		TEST(the_query_ends_after_the_request_was_sent),
		TEST(a_held_server_waits_for_the_last_of_several_requests),
		TEST(a_held_server_is_reset_afterwards),
		TEST(a_held_server_ends),
		TEST(the_server_ends_before_the_request_is_sent),
		TEST(the_client_leaves_before_the_request_is_sent),
		TEST(an_asker_that_leaves_is_carried_out_all_the_same),
		TEST(an_asker_that_is_killed_after_sending_leaves_its_request),
		TEST(a_killed_database_takes_all_of_it_along),
		TEST(requests_may_double_the_size_of_the_pool),
		TEST(requests_go_before_waiting_clients),
		TEST(idle_servers_do_not_wait_for_requests),
		TEST(a_connection_that_is_on_its_way_carries_the_request),
		TEST(a_connection_to_another_place_does_not_carry_it),
		TEST(a_connection_that_fails_is_tried_again_after_the_pause),
		TEST(a_connection_that_breaks_at_once_ends_the_request),
		TEST(a_request_that_waits_too_long_is_dropped),
		TEST(without_a_limit_a_request_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
