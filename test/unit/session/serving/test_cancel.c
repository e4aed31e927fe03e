/* SPDX-License-Identifier: ISC */
/*
 * Cancel requests: which queries they may cancel, how they are sent, and what waits until they
 * have ended.
 */
#include <errno.h>

#include "session/link/close.h"
#include "session/pool/draining.h"
#include "session/serving/cancel.h"
#include "session/serving/control.h"
#include "session/serving/unsent_query.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
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

/* A new client that sends a cancel request with this key. */
static struct endpoint *send_cancel_key(const void *key, size_t length)
{
	struct endpoint *canceler = fake_accept(-1);
	struct buffer buffer;

	buffer_init(&buffer);
	startup_write_cancel(&buffer, key, length);
	send_buffer(canceler, &buffer);
	return canceler;
}

static struct endpoint *cancel(const struct endpoint *client)
{
	const struct client_link *link = endpoint_client(client);

	return send_cancel_key(link->key, link->key_length);
}

/* A client with a long query. */
static struct endpoint *busy_client(void)
{
	struct endpoint *client = fake_client(pool);

	send_query(client, "slow");
	return client;
}

static void assert_canceler_closed(struct endpoint *canceler, const char *reason)
{
	assert_closed_silently(canceler);
	assert_true(fake_logged(reason));
}

/* --- requests that are refused ------------------------------------------------------------ */

static void test_unknown_key_is_refused(void **state)
{
	uint8_t key[CANCEL_KEY_MAX] = {1};

	(void)state;
	assert_canceler_closed(
		send_cancel_key(key, 8), "closing because: failed cancel request");
	assert_canceler_closed(
		send_cancel_key(key, 20), "closing because: failed cancel request");
	assert_null(fake_launched());
}

static void test_key_of_invalid_length_is_refused(void **state)
{
	uint8_t key[300] = {1};

	(void)state;
	assert_canceler_closed(send_cancel_key(key, 4), "closing because: bad cancel request");
	assert_canceler_closed(send_cancel_key(key, 0), "");
	assert_canceler_closed(send_cancel_key(key, 7), "");
	assert_canceler_closed(send_cancel_key(key, 300), "");
}

static void test_prefix_of_a_key_is_refused(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client();
	uint8_t key[20] = {0};

	(void)state;
	memcpy(key, endpoint_client(client)->key, 8);
	assert_canceler_closed(send_cancel_key(key, 9), "");
	assert_canceler_closed(send_cancel_key(key, 20), "");
	assert_state(server, SERVER_PAIRED);
	assert_null(fake_launched());
}

static void test_idle_client_is_not_cancelled(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	assert_canceler_closed(
		cancel(client), "closing because: cancel request for idle client");
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
}

static void test_client_idle_in_transaction_is_not_cancelled(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client();

	(void)state;
	send_letters(server, "C>");
	assert_state(client, CLIENT_PAIRED);
	assert_canceler_closed(
		cancel(client), "closing because: cancel request for idle client");
	assert_null(fake_launched());
}

/* In one turn a client needs the stale server, and a cancel request a connection. */
static void test_a_stale_server_is_checked_while_a_cancel_request_connects(void **state)
{
	static const uint8_t query[] = {PQ_QUERY, 0, 0, 0, 5, 0};
	struct endpoint *stale = fake_server(pool), *client, *other = fake_client(pool);

	(void)state;
	server_enter(endpoint_server(stale), SERVER_STALE);
	fake_server(pool);
	client = busy_client();
	fake_advance(60 * USEC_PER_SEC);
	scripted_feed(other->script, query, sizeof(query));
	scripted_run_all(other->script);
	cancel(client);
	assert_non_null(fake_launched());
	assert_state(stale, SERVER_CHECKING);
	send_letters(stale, "IZ");
	assert_state(other, CLIENT_PAIRED);
}

static void test_request_for_the_previous_query_is_dropped(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *canceler;

	(void)state;
	canceler = cancel(client);
	send_letters(server, "C>");
	fake_advance(USEC_PER_SEC);
	send_letters(client, "Q");
	fake_connected(fake_launched(), 0);
	assert_canceler_closed(canceler,
		"closing because: not sending cancel request for client that is now idle");
	assert_int_equal(endpoint_server(server)->cancels, 0);
	assert_state(server, SERVER_PAIRED);
}

static void test_query_on_a_server_without_a_key_is_not_cancelled(void **state)
{
	struct endpoint *server = fake_server(pool), *client;

	(void)state;
	free(endpoint_server(server)->cancel_key);
	endpoint_server(server)->cancel_key = NULL;
	client = busy_client();
	assert_canceler_closed(cancel(client), "closing because: failed cancel request");
	assert_null(fake_launched());
}

static void test_console_is_notified_of_a_request(void **state)
{
	struct endpoint *console = fake_accept(-1);
	struct client_link *client = endpoint_client(console);

	(void)state;
	client_enter(client, CLIENT_AUTHENTICATING);
	client->link.pool = fake_registry.console_pool;
	client_enter(client, CLIENT_CONSOLE);
	assert_true(cancel_keys_issue(
		&fake_registry.process->cancel_keys, client, 8, &fake_loop.random));
	assert_canceler_closed(
		cancel(console), "closing because: cancel request for console client");
	assert_int_equal(fake_console.canceled, 1);
	assert_state(console, CLIENT_CONSOLE);
}

static void test_key_of_a_disconnected_client_is_refused(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client();
	uint8_t key[8];

	(void)state;
	memcpy(key, endpoint_client(client)->key, 8);
	assert_received(server, "Q");
	disconnect(client);
	assert_canceler_closed(
		send_cancel_key(key, 8), "closing because: failed cancel request");
}

/* --- queries that wait -------------------------------------------------------------------- */

/* A client that waits for the end of a pause with these messages. */
static struct endpoint *waiting_client(const char *letters)
{
	struct endpoint *client = fake_client(pool);

	pool->database->paused = true;
	send_letters(client, letters);
	assert_state(client, CLIENT_WAITING);
	return client;
}

static void assert_cancelled(struct endpoint *client, const char *expected)
{
	assert_canceler_closed(
		cancel(client), "closing because: cancel request for waiting client");
	assert_received(client, expected);
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

static void test_waiting_query_is_cancelled_at_once(void **state)
{
	static const char *const cases[] = {"Q", "F", "PBDES", "PBES", "HES", "CS"};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = waiting_client(cases[i]);

		assert_cancelled(client, "EZ");
		assert_state(client, CLIENT_IDLE);
		assert_int_equal(endpoint_client(client)->query_start, 0);
		assert_int_equal(endpoint_client(client)->transaction_start, 0);
		send_letters(client, "X");
	}
	assert_int_equal(
		fake_registry.counters.cancel_requests[CANCEL_FORWARDED], COUNT(cases));
	assert_null(fake_launched());
}

static void test_query_after_a_cancelled_one_still_waits(void **state)
{
	struct endpoint *server = fake_server(pool), *client = waiting_client("QQ");

	(void)state;
	assert_cancelled(client, "EZ");
	assert_state(client, CLIENT_WAITING);
	assert_cancelled(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	send_letters(client, "PBESQ");
	assert_cancelled(client, "EZ");
	resume_pool();
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
}

/* Each is sent with the query behind it in one message of the client. */
static void test_cancelled_query_is_not_sent_again_for_a_server_that_fails(void **state)
{
	static const char *const cases[] = {"QQ", "PBESQ", "FQ"};
	struct endpoint *server = fake_server(pool), *broken, *client;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		client = waiting_client(cases[i]);
		broken = fake_server(pool);
		scripted_break(broken->script);
		pool->database->paused = false;
		unsent_query_end(endpoint_client(client), REASON_SETTING_CANCELED);
		assert_received(client, "EZ");
		assert_closed(broken);
		assert_received(server, "Q");
		send_letters(server, "CZ");
		assert_received(client, "CZ");
	}
}

/* PostgreSQL cannot cancel a Sync. */
static void test_waiting_sync_is_answered_without_an_error(void **state)
{
	struct endpoint *client = waiting_client("S");

	(void)state;
	assert_canceler_closed(
		cancel(client), "closing because: cancel request for waiting client");
	assert_received(client, "Z");
	assert_state(client, CLIENT_IDLE);
}

static void test_cancelled_batch_is_dropped_up_to_its_sync(void **state)
{
	struct endpoint *server = fake_server(pool), *client = waiting_client("PB");

	(void)state;
	assert_cancelled(client, "E");
	resume_pool();
	send_letters(client, "DEHC");
	send_letters(client, "QFPdcf");
	assert_received(client, "");
	assert_state(client, CLIENT_IDLE);
	assert_canceler_closed(
		cancel(client), "closing because: cancel request for idle client");
	send_letters(client, "SQ");
	assert_received(client, "Z");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
}

static void test_client_may_terminate_within_a_cancelled_batch(void **state)
{
	struct endpoint *client = waiting_client("PB");

	(void)state;
	assert_cancelled(client, "E");
	send_letters(client, "X");
	assert_closed_silently(client);
	assert_true(fake_logged("client close request"));
}

static void test_unknown_message_in_a_cancelled_batch_closes_the_client(void **state)
{
	struct endpoint *client = waiting_client("PB");

	(void)state;
	assert_cancelled(client, "E");
	send_bytes(client, "y\0\0\0\4", 5);
	assert_closed_with_error(client, "08P01", "unknown pkt");
}

/* A query longer than pkt_buf; its rest has not arrived yet. */
static void test_cancelled_long_query_is_dropped_to_its_end(void **state)
{
	uint8_t message[9001] = {'Q', 0, 0, 0x23, 0x28};
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	pool->database->paused = true;
	send_bytes(client, message, 5000);
	assert_state(client, CLIENT_WAITING);
	assert_cancelled(client, "EZ");
	send_bytes(client, message + 5000, 3000);
	resume_pool();
	assert_state(client, CLIENT_IDLE);
	send_bytes(client, message + 8000, 1001);
	assert_state(client, CLIENT_IDLE);
	send_letters(client, "Q");
	assert_received(server, "Q");
}

static void test_broken_waiting_client_is_closed(void **state)
{
	struct endpoint *client = waiting_client("Q");

	(void)state;
	scripted_break(client->script);
	cancel(client);
	assert_closed(client);
}

static void test_cancelled_waiting_client_is_idle_afterwards(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("client_idle_timeout", "5");
	client = waiting_client("Q");
	assert_cancelled(client, "EZ");
	fake_advance(6 * USEC_PER_SEC);
	assert_closed_with_error(client, "57P05", "client_idle_timeout");
}

static void set_time_zone(const struct endpoint *endpoint, const char *value)
{
	struct parameter_table *table = fake_registry.parameters;
	struct link *link = endpoint_link(endpoint);
	struct parameters *set = parameters_with(
		table, link->parameters, (unsigned)parameter_index(table, "TimeZone"), value);

	parameters_unref(link->parameters);
	link->parameters = set;
}

/* The parameters are set before the client's messages, of which none has been sent. */
static void test_query_is_cancelled_at_once_while_its_server_is_set_up(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	set_time_zone(server, "GMT");
	set_time_zone(client, "Caf\xc3\xa9");
	send_letters(client, "Q");
	assert_received(server, "Q");
	assert_cancelled(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	/* The server returns to the pool when our query is answered. */
	assert_state(server, SERVER_DRAINING);
	assert_null(fake_launched());
	send_parameter_status(server, "TimeZone", "Caf\xc3\xa9");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
	send_letters(client, "Q");
	assert_received(server, "Q");
}

/* A query that was sent with our SETs may be running. */
static void test_query_sent_with_sets_is_cancelled_on_its_server(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool), *carrier;

	(void)state;
	set_time_zone(server, "GMT");
	set_time_zone(client, "UTC");
	send_letters(client, "Q");
	assert_received(server, "QQ");
	cancel(client);
	assert_received(client, "");
	carrier = fake_launched();
	assert_non_null(carrier);
	send_parameter_status(server, "TimeZone", "UTC");
	send_letters(server, "CCCZ");
	fake_connected(carrier, 0);
	assert_string_equal(read_letters(carrier), "^");
	send_error(server, "57014", "canceling statement due to user request");
	send_letters(server, "Z");
	assert_received(client, "EZ");
	assert_state(client, CLIENT_IDLE);
}

static void test_blocked_server_of_a_cancelled_query_is_drained(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	(void)state;
	set_time_zone(server, "GMT");
	set_time_zone(client, "Caf\xc3\xa9");
	scripted_allow(server->script, 3);
	send_letters(client, "Q");
	assert_cancelled(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_DRAINING);
	/* The server runs nothing of a client, so nothing is cancelled there. */
	fake_advance(3 * USEC_PER_SEC);
	draining_inspect(endpoint_server(server), loop_now(&fake_loop));
	assert_int_equal(pool->cancels_due, 0);
	allow_output(server, SCRIPTED_ANY);
	assert_received(server, "Q");
	send_parameter_status(server, "TimeZone", "Caf\xc3\xa9");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_request_is_sent_while_the_database_is_paused(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_server(pool);
	client = busy_client();
	pool->database->paused = true;
	cancel(client);
	fake_connected(fake_launched(), 0);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_SENT], 1);
}

/* --- a request that is sent --------------------------------------------------------------- */

static void test_request_has_the_key_of_the_paired_server(void **state)
{
	struct endpoint *server = fake_server(pool), *other = fake_server(pool);
	struct endpoint *client = busy_client(), *second = busy_client();
	struct endpoint *canceler = cancel(second), *carrier;
	size_t length;
	const uint8_t *output;

	(void)state;
	assert_ptr_equal(endpoint_link(client)->peer, endpoint_link(other));
	assert_state(canceler, CLIENT_CANCEL_WAITING);
	carrier = fake_launched();
	assert_non_null(carrier);
	fake_connected(carrier, 0);
	assert_state(carrier, SERVER_CANCELING);
	assert_state(canceler, CLIENT_CANCEL_SENT);
	output = scripted_output(carrier->script, &length);
	assert_int_equal(length, 16);
	assert_memory_equal(output, "\0\0\0\x10\x04\xd2\x16\x2e", 8);
	assert_memory_equal(output + 8, endpoint_server(server)->cancel_key, 8);
	assert_int_equal(endpoint_server(server)->cancels, 1);
	/* The request has ended when its connection is closed by the server. */
	disconnect(carrier);
	assert_closed(carrier);
	assert_canceler_closed(canceler, "closing because: successfully sent cancel request");
	assert_int_equal(endpoint_server(server)->cancels, 0);
	assert_state(client, CLIENT_PAIRED);
	assert_state(second, CLIENT_PAIRED);
	assert_false(pool->failing);
}

static void test_error_of_a_cancelled_query_is_forwarded(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *carrier;
	struct endpoint *canceler;

	(void)state;
	postgres_work(server);
	assert_true(postgres_backend(server)->stuck);
	canceler = cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	postgres_work(carrier);
	postgres_work(server);
	assert_received(client, "EZ");
	assert_string_equal(client->sqlstate, "57014");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_closed_silently(canceler);
	assert_closed(carrier);
}

static void test_answer_to_a_request_is_ignored(void **state)
{
	struct endpoint *carrier, *canceler;

	(void)state;
	fake_server(pool);
	canceler = cancel(busy_client());
	carrier = fake_launched();
	fake_connected(carrier, 0);
	send_letters(carrier, "ENNN");
	assert_state(carrier, SERVER_CANCELING);
	assert_state(canceler, CLIENT_CANCEL_SENT);
	break_connection(carrier);
	assert_closed(carrier);
	assert_closed_silently(canceler);
}

static void test_canceler_is_not_read_after_its_request(void **state)
{
	struct endpoint *canceler;

	(void)state;
	fake_server(pool);
	canceler = cancel(busy_client());
	send_letters(canceler, "QX");
	assert_int_equal(scripted_unread(canceler->script), 19);
	assert_state(canceler, CLIENT_CANCEL_WAITING);
}

static void test_bytes_after_the_request_are_ignored(void **state)
{
	struct endpoint *canceler = fake_accept(-1), *client;
	struct buffer buffer;

	(void)state;
	fake_server(pool);
	client = busy_client();
	buffer_init(&buffer);
	startup_write_cancel(&buffer, endpoint_client(client)->key, 8);
	letters_write(&buffer, FROM_CLIENT, "Q");
	send_buffer(canceler, &buffer);
	assert_state(canceler, CLIENT_CANCEL_WAITING);
	fake_connected(fake_launched(), 0);
	assert_state(canceler, CLIENT_CANCEL_SENT);
}

static void test_request_may_arrive_byte_by_byte(void **state)
{
	struct endpoint *canceler = fake_accept(-1), *client;
	struct buffer buffer;

	(void)state;
	fake_server(pool);
	client = busy_client();
	buffer_init(&buffer);
	startup_write_cancel(&buffer, endpoint_client(client)->key, 8);
	for (size_t i = 0; i < buffer.length; i++) {
		assert_state(canceler, CLIENT_GREETING);
		send_bytes(canceler, buffer.data + i, 1);
	}
	assert_state(canceler, CLIENT_CANCEL_WAITING);
	buffer_free(&buffer);
}

static void test_cancelers_are_accepted_beyond_max_client_conn(void **state)
{
	struct endpoint *client, *cancelers[10];

	(void)state;
	fake_server(pool);
	client = busy_client();
	for (size_t i = 0; i < COUNT(cancelers); i++)
		cancelers[i] = cancel(client);
	for (size_t i = 0; i < COUNT(cancelers); i++)
		assert_state(cancelers[i], CLIENT_CANCEL_WAITING);
}

/* --- changes meanwhile -------------------------------------------------------------------- */

static void test_request_is_dropped_when_its_query_has_ended(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *canceler,
			*carrier;

	(void)state;
	canceler = cancel(client);
	assert_int_equal(endpoint_server(server)->cancels_queued, 1);
	send_letters(server, "TDCZ");
	assert_canceler_closed(canceler,
		"closing because: not sending cancel request for client that is now idle");
	assert_state(server, SERVER_IDLE);
	/* The connection that was launched for the request is no longer needed. */
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_closed_silently(carrier);
	assert_false(pool->failing);
	assert_int_equal(pool_servers(pool), 1);
}

static void test_server_is_held_until_a_sent_request_has_ended(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *canceler,
			*carrier;
	struct endpoint *next = fake_client(pool);

	(void)state;
	fake_set("default_pool_size", "1");
	canceler = cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	send_letters(server, "TDCZ");
	assert_received(client, "TDCZ");
	assert_state(client, CLIENT_IDLE);
	/* The request may still cancel a query of the server, so the server is held. */
	assert_state(server, SERVER_HELD);
	send_letters(next, "Q");
	assert_state(next, CLIENT_WAITING);
	disconnect(carrier);
	assert_closed_silently(canceler);
	assert_state(next, CLIENT_PAIRED);
	assert_ptr_equal(endpoint_link(next)->peer, endpoint_link(server));
	send_letters(server, "CZ");
	assert_received(next, "CZ");
}

static void test_server_is_held_until_the_last_request_has_ended(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client();
	struct endpoint *cancelers[3], *carriers[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		cancelers[i] = cancel(client);
		carriers[i] = fake_launched();
		assert_non_null(carriers[i]);
		fake_connected(carriers[i], 0);
	}
	assert_int_equal(endpoint_server(server)->cancels, 3);
	send_letters(server, "TDCZ");
	for (int i = 0; i < 3; i++) {
		assert_state(server, SERVER_HELD);
		disconnect(carriers[i]);
		assert_closed_silently(cancelers[i]);
	}
	assert_state(server, SERVER_IDLE);
}

static void test_held_server_is_reset_afterwards(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *carrier;

	(void)state;
	fake_set("server_reset_query", "DISCARD ALL");
	fake_set("pool_mode", "session");
	cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_received(server, "Q");
	send_letters(server, "TDCZ");
	assert_state(server, SERVER_PAIRED);
	send_letters(client, "X");
	assert_state(server, SERVER_HELD);
	assert_received(server, "");
	disconnect(carrier);
	assert_state(server, SERVER_RESETTING);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_held_server_may_disconnect(void **state)
{
	struct endpoint *server = fake_server(pool), *canceler, *carrier;

	(void)state;
	canceler = cancel(busy_client());
	carrier = fake_launched();
	fake_connected(carrier, 0);
	send_letters(server, "TDCZ");
	disconnect(server);
	assert_closed(server);
	assert_null(endpoint_server(carrier)->cancel_target);
	disconnect(carrier);
	assert_closed_silently(canceler);
}

static void test_request_is_dropped_when_its_server_disconnects(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *canceler,
			*carrier;

	(void)state;
	canceler = cancel(client);
	disconnect(server);
	assert_closed(client);
	assert_closed_silently(canceler);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_closed(carrier);
	assert_int_equal(pool_servers(pool), 0);
}

static void test_request_of_a_disconnected_client_is_sent(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *canceler;

	(void)state;
	canceler = cancel(client);
	disconnect(client);
	assert_closed(client);
	/* This request does what draining would do, so draining sends none. */
	assert_state(server, SERVER_DRAINING);
	assert_int_equal(pool->cancels_due, 0);
	fake_connected(fake_launched(), 0);
	assert_state(canceler, CLIENT_CANCEL_SENT);
	assert_int_equal(endpoint_server(server)->cancels, 1);
}

static void test_request_of_a_disconnected_canceler_is_sent(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *canceler,
			*carrier;

	(void)state;
	canceler = cancel(client);
	disconnect(canceler);
	assert_state(canceler, CLIENT_CANCEL_WAITING);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_received(carrier, "^");
	assert_int_equal(endpoint_server(server)->cancels, 1);
	disconnect(carrier);
	assert_closed(canceler);
	assert_int_equal(endpoint_server(server)->cancels, 0);
}

static void test_request_of_a_killed_canceler_continues(void **state)
{
	struct endpoint *server = fake_server(pool), *canceler, *carrier;

	(void)state;
	canceler = cancel(busy_client());
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_true(control_kill_client(&fake_registry, endpoint_link(canceler)->id));
	fake_turn();
	assert_closed(canceler);
	assert_state(carrier, SERVER_CANCELING);
	send_letters(server, "TDCZ");
	assert_state(server, SERVER_HELD);
	disconnect(carrier);
	assert_state(server, SERVER_IDLE);
}

/* The client's query has ended; the request must not cancel our ROLLBACK. */
static void test_waiting_request_does_not_cancel_our_rollback(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool), *canceler,
			*carrier;

	(void)state;
	send_letters(client, "QQ");
	send_letters(server, "C>");
	read_letters(server);
	canceler = cancel(client);
	carrier = fake_launched();
	disconnect(client);
	send_letters(server, "C>");
	assert_received(server, "Q");
	assert_closed_silently(canceler);
	fake_connected(carrier, 0);
	assert_int_equal(endpoint_server(server)->cancels, 0);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_kill_closes_requests_and_their_connections(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client();
	struct endpoint *sent = cancel(client), *carrier = fake_launched(), *waiting, *second;

	(void)state;
	fake_connected(carrier, 0);
	waiting = cancel(client);
	second = fake_launched();
	assert_non_null(second);
	send_letters(server, "TDCZ");
	control_kill(&fake_registry, pool->database, false);
	fake_turn();
	assert_closed(server);
	assert_closed(carrier);
	assert_closed(second);
	assert_closed(sent);
	assert_closed(waiting);
	assert_closed(client);
}

/* --- connections for requests ------------------------------------------------------------- */

static void test_request_does_not_wait_for_the_end_of_a_login(void **state)
{
	struct endpoint *client, *login, *carrier;

	(void)state;
	fake_server(pool);
	client = busy_client();
	send_query(fake_client(pool), "slow");
	login = fake_launched();
	assert_non_null(login);
	fake_connected(login, 0);
	assert_state(login, SERVER_AUTHENTICATING);
	cancel(client);
	carrier = fake_launched();
	assert_non_null(carrier);
	/* One connection is enough for one request. */
	pool_needs_work(pool);
	fake_turn();
	assert_null(fake_launched());
	fake_connected(carrier, 0);
	assert_state(carrier, SERVER_CANCELING);
}

static void test_requests_use_at_most_as_many_connections_as_the_pool(void **state)
{
	struct endpoint *clients[2], *carrier;

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
		fake_connected(carrier, 0);
		assert_state(carrier, SERVER_CANCELING);
	}
	assert_null(fake_launched());
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 3);
	/*
	 * One request has ended, with another for the same server: there is room for the next.
	 */
	disconnect(carrier);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 2);
	carrier = fake_launched();
	assert_non_null(carrier);
	fake_connected(carrier, 0);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 1);
}

static void test_number_of_waiting_requests_is_limited(void **state)
{
	struct endpoint *client, *other;

	(void)state;
	fake_server(pool);
	client = busy_client();
	fake_server(pool);
	other = busy_client();
	fake_connect_error = ECONNREFUSED;
	for (int i = 0; i < 10000; i++)
		cancel(client);
	assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 100);
	assert_int_equal(fake_registry.process->limits.clients, 102);
	/* Requests for other servers are still accepted. */
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

static void test_one_connection_serves_all_waiting_requests_for_a_server(void **state)
{
	struct endpoint *client, *cancelers[5], *late, *carrier;

	(void)state;
	fake_server(pool);
	client = busy_client();
	for (size_t i = 0; i < COUNT(cancelers); i++)
		cancelers[i] = cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	fake_advance(USEC_PER_SEC);
	late = cancel(client);
	disconnect(carrier);
	for (size_t i = 0; i < COUNT(cancelers); i++)
		assert_closed(cancelers[i]);
	assert_state(late, CLIENT_CANCEL_WAITING);
}

static void test_held_server_is_closed_when_its_request_is_lost(void **state)
{
	struct endpoint *server = fake_server(pool), *carrier;

	(void)state;
	cancel(busy_client());
	carrier = fake_launched();
	fake_connected(carrier, 0);
	send_letters(server, "TDCZ");
	assert_state(server, SERVER_HELD);
	server_close_for(endpoint_server(carrier), REASON_CANCEL_WAIT_TIMEOUT);
	fake_turn();
	assert_closed(server);
}

static void test_paired_server_is_closed_afterwards_when_its_request_is_lost(void **state)
{
	struct endpoint *server = fake_server(pool), *client = busy_client(), *carrier;

	(void)state;
	cancel(client);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	server_close_for(endpoint_server(carrier), REASON_CANCEL_WAIT_TIMEOUT);
	fake_turn();
	assert_state(server, SERVER_PAIRED);
	send_letters(server, "TDCZ");
	assert_received(client, "TDCZ");
	assert_closed(server);
	assert_true(fake_logged("closing because: close_needed"));
}

static void test_requests_precede_waiting_clients(void **state)
{
	struct endpoint *client, *waiting, *carrier, *server;

	(void)state;
	fake_set("cancel_wait_timeout", "60");
	fake_server(pool);
	client = busy_client();
	pool->failing = true; /* so that no server for the waiting client is launched yet */
	pool->last_launch = loop_now(&fake_loop);
	waiting = busy_client();
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
	disconnect(carrier);
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	assert_state(server, SERVER_AUTHENTICATING);
	assert_state(waiting, CLIENT_WAITING);
}

static void test_idle_server_is_paired_while_requests_wait(void **state)
{
	struct endpoint *busy = busy_client(), *waiting;

	(void)state;
	fake_connected(fake_launched(), 0);
	postgres_work(fake_next_endpoint(NULL));
	assert_state(busy, CLIENT_PAIRED);
	cancel(busy);
	pool->database->paused = true;
	waiting = fake_client(pool);
	send_letters(waiting, "Q");
	fake_server(pool);
	control_resume(&fake_registry, pool->database);
	fake_turn();
	assert_state(waiting, CLIENT_PAIRED);
}

static void test_request_uses_a_connection_being_launched(void **state)
{
	struct endpoint *client, *waiting, *canceler, *launched;

	(void)state;
	fake_server(pool);
	client = busy_client();
	waiting = busy_client();
	launched = fake_launched();
	assert_non_null(launched);
	memcpy(&endpoint_server(launched)->where,
		&server_of(endpoint_link(client)->peer)->where,
		sizeof(struct sockaddr_storage));
	endpoint_server(launched)->where_length =
		server_of(endpoint_link(client)->peer)->where_length;
	canceler = cancel(client);
	fake_connected(launched, 0);
	assert_state(launched, SERVER_CANCELING);
	assert_state(canceler, CLIENT_CANCEL_SENT);
	/* The waiting client has another server launched as soon as there is room. */
	assert_null(fake_launched());
	disconnect(launched);
	launched = fake_launched();
	assert_non_null(launched);
	fake_connected(launched, 0);
	postgres_work(launched);
	assert_ptr_equal(endpoint_link(waiting)->peer, endpoint_link(launched));
}

static void test_request_does_not_use_a_connection_to_another_address(void **state)
{
	struct endpoint *client, *canceler, *launched;

	(void)state;
	fake_server(pool);
	client = busy_client();
	busy_client();
	launched = fake_launched();
	canceler = cancel(client);
	fake_connected(launched, 0);
	assert_state(launched, SERVER_AUTHENTICATING);
	assert_state(canceler, CLIENT_CANCEL_WAITING);
	postgres_work(launched);
	launched = fake_launched();
	fake_connected(launched, 0);
	assert_state(launched, SERVER_CANCELING);
	assert_state(canceler, CLIENT_CANCEL_SENT);
}

static void test_failed_connection_is_retried_after_server_login_retry(void **state)
{
	struct endpoint *canceler;

	(void)state;
	fake_set("cancel_wait_timeout", "60");
	fake_server(pool);
	canceler = cancel(busy_client());
	fake_connected(fake_launched(), ECONNREFUSED);
	assert_state(canceler, CLIENT_CANCEL_WAITING);
	assert_null(fake_launched());
	fake_advance(15 * USEC_PER_SEC);
	pool_needs_work(pool);
	fake_turn();
	fake_connected(fake_launched(), 0);
	assert_state(canceler, CLIENT_CANCEL_SENT);
}

static void test_request_ends_when_its_connection_breaks(void **state)
{
	struct endpoint *server = fake_server(pool), *canceler, *carrier;

	(void)state;
	canceler = cancel(busy_client());
	carrier = fake_launched();
	scripted_break(carrier->script);
	fake_connected(carrier, 0);
	assert_closed(carrier);
	assert_closed_silently(canceler);
	assert_int_equal(endpoint_server(server)->cancels, 0);
	assert_int_equal(endpoint_server(server)->cancels_queued, 0);
	assert_null(fake_launched());
}

static void test_request_is_dropped_after_cancel_wait_timeout(void **state)
{
	struct endpoint *server = fake_server(pool), *canceler;

	(void)state;
	canceler = cancel(busy_client());
	fake_advance(9 * USEC_PER_SEC);
	assert_state(canceler, CLIENT_CANCEL_WAITING);
	fake_advance(USEC_PER_SEC);
	assert_canceler_closed(canceler, "closing because: cancel_wait_timeout");
	assert_int_equal(endpoint_server(server)->cancels_queued, 0);
}

static void test_request_waits_without_cancel_wait_timeout(void **state)
{
	struct endpoint *canceler;

	(void)state;
	fake_set("cancel_wait_timeout", "0");
	fake_server(pool);
	canceler = cancel(busy_client());
	fake_advance(1000 * USEC_PER_SEC);
	assert_state(canceler, CLIENT_CANCEL_WAITING);
}

/* --- a request for a query that has waited ------------------------------------------------ */

/*
 * A client that has waited for the only server, and a request that comes `late` microseconds after
 * its query was passed on. Returns the client with the request.
 */
static struct endpoint *cancel_after_wait(struct endpoint *server, usec_t late)
{
	struct endpoint *client = waiting_client("Q");

	fake_advance(USEC_PER_SEC);
	resume_pool();
	assert_state(client, CLIENT_PAIRED);
	assert_received(server, "Q");
	fake_advance(late);
	return cancel(client);
}

static void test_request_for_a_query_just_passed_on_is_held(void **state)
{
	struct endpoint *canceler = cancel_after_wait(fake_server(pool), 0);

	(void)state;
	assert_state(canceler, CLIENT_CANCEL_WAITING);
	fake_advance(USEC_PER_SEC / 10);
	assert_null(fake_launched());
	fake_advance(USEC_PER_SEC / 5);
	fake_connected(fake_launched(), 0);
	assert_state(canceler, CLIENT_CANCEL_SENT);
}

static void test_request_for_a_query_passed_on_before_is_not_held(void **state)
{
	struct endpoint *canceler = cancel_after_wait(fake_server(pool), USEC_PER_SEC / 4);

	(void)state;
	fake_connected(fake_launched(), 0);
	assert_state(canceler, CLIENT_CANCEL_SENT);
}

/* SUSPEND waits for requests, so they must not wait for its end. */
static void test_held_request_is_sent_during_suspend(void **state)
{
	struct endpoint *canceler = cancel_after_wait(fake_server(pool), 0);

	(void)state;
	fake_process.operation = OPERATION_SUSPENDED;
	fake_advance(USEC_PER_SEC / 2);
	fake_connected(fake_launched(), 0);
	assert_state(canceler, CLIENT_CANCEL_SENT);
	fake_process.operation = OPERATION_RUNNING;
}

/* A held request gives no reason to launch a server that no client waits for. */
static void test_held_request_launches_no_server(void **state)
{
	struct endpoint *canceler = cancel_after_wait(fake_server(pool), 0);

	(void)state;
	pool_needs_work(pool);
	fake_turn();
	assert_null(fake_launched());
	assert_state(canceler, CLIENT_CANCEL_WAITING);
}

static void test_held_request_is_dropped_when_its_query_has_ended(void **state)
{
	struct endpoint *server = fake_server(pool), *canceler = cancel_after_wait(server, 0);

	(void)state;
	send_letters(server, "TDCZ");
	assert_canceler_closed(canceler,
		"closing because: not sending cancel request for client that is now idle");
	fake_advance(USEC_PER_SEC);
	assert_null(fake_launched());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(unknown_key_is_refused),
		TEST(key_of_invalid_length_is_refused),
		TEST(prefix_of_a_key_is_refused),
		TEST(idle_client_is_not_cancelled),
		TEST(client_idle_in_transaction_is_not_cancelled),
		TEST(a_stale_server_is_checked_while_a_cancel_request_connects),
		TEST(request_for_the_previous_query_is_dropped),
		TEST(waiting_query_is_cancelled_at_once),
		TEST(query_after_a_cancelled_one_still_waits),
		TEST(cancelled_query_is_not_sent_again_for_a_server_that_fails),
		TEST(waiting_sync_is_answered_without_an_error),
		TEST(cancelled_batch_is_dropped_up_to_its_sync),
		TEST(client_may_terminate_within_a_cancelled_batch),
		TEST(unknown_message_in_a_cancelled_batch_closes_the_client),
		TEST(cancelled_long_query_is_dropped_to_its_end),
		TEST(broken_waiting_client_is_closed),
		TEST(cancelled_waiting_client_is_idle_afterwards),
		TEST(query_is_cancelled_at_once_while_its_server_is_set_up),
		TEST(query_sent_with_sets_is_cancelled_on_its_server),
		TEST(blocked_server_of_a_cancelled_query_is_drained),
		TEST(waiting_request_does_not_cancel_our_rollback),
		TEST(request_is_sent_while_the_database_is_paused),
		TEST(number_of_waiting_requests_is_limited),
		TEST(one_connection_serves_all_waiting_requests_for_a_server),
		TEST(held_server_is_closed_when_its_request_is_lost),
		TEST(paired_server_is_closed_afterwards_when_its_request_is_lost),
		TEST(query_on_a_server_without_a_key_is_not_cancelled),
		TEST(console_is_notified_of_a_request),
		TEST(key_of_a_disconnected_client_is_refused),
		TEST(request_has_the_key_of_the_paired_server),
		TEST(error_of_a_cancelled_query_is_forwarded),
		TEST(answer_to_a_request_is_ignored),
		TEST(canceler_is_not_read_after_its_request),
		TEST(bytes_after_the_request_are_ignored),
		TEST(request_may_arrive_byte_by_byte),
		TEST(cancelers_are_accepted_beyond_max_client_conn),
		TEST(request_is_dropped_when_its_query_has_ended),
		TEST(server_is_held_until_a_sent_request_has_ended),
		TEST(server_is_held_until_the_last_request_has_ended),
		TEST(held_server_is_reset_afterwards),
		TEST(held_server_may_disconnect),
		TEST(request_is_dropped_when_its_server_disconnects),
		TEST(request_of_a_disconnected_client_is_sent),
		TEST(request_of_a_disconnected_canceler_is_sent),
		TEST(request_of_a_killed_canceler_continues),
		TEST(kill_closes_requests_and_their_connections),
		TEST(request_does_not_wait_for_the_end_of_a_login),
		TEST(requests_use_at_most_as_many_connections_as_the_pool),
		TEST(requests_precede_waiting_clients),
		TEST(idle_server_is_paired_while_requests_wait),
		TEST(request_uses_a_connection_being_launched),
		TEST(request_does_not_use_a_connection_to_another_address),
		TEST(failed_connection_is_retried_after_server_login_retry),
		TEST(request_ends_when_its_connection_breaks),
		TEST(request_is_dropped_after_cancel_wait_timeout),
		TEST(request_waits_without_cancel_wait_timeout),
		TEST(request_for_a_query_just_passed_on_is_held),
		TEST(request_for_a_query_passed_on_before_is_not_held),
		TEST(held_request_is_sent_during_suspend),
		TEST(held_request_launches_no_server),
		TEST(held_request_is_dropped_when_its_query_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
