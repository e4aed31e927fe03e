/* SPDX-License-Identifier: ISC */
/*
 * Queries that end with an error before a server has received any of them: because too many
 * clients wait (max_pool_waiters), or because one has waited for too long
 * (query_wait_timeout_action).
 */
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"
#include "support/messages/statement_messages.h"
#include "support/postgres/fake_postgres.h"

#define SECONDS(n) ((n)*USEC_PER_SEC)
#define FULL "too many clients wait for a server (max_pool_waiters)"

static struct pool *pool;

static void start_with(const char *settings)
{
	char config[1000];

	snprintf(config, sizeof(config),
		"[databases]\n"
		"db = host=/tmp\n"
		"narrow = host=/tmp max_pool_waiters=1 query_wait_timeout_action=disconnect\n"
		"endless = host=/tmp max_pool_waiters=0\n"
		"[users]\n"
		"patient = max_pool_waiters=3 query_wait_timeout_action=error\n"
		"hasty = query_wait_timeout_action=disconnect\n"
		"[pgbouncer]\n"
		"pool_mode = transaction\n"
		"auth_type = trust\n"
		"server_reset_query =\n"
		"default_pool_size = 1\n"
		"query_wait_notify = 0\n"
		"query_wait_timeout = 6\n%s",
		settings);
	fake_start(config);
	pool = fake_pool("db", "alice");
}

/* The queue of a pool holds two clients. */
static int start_bounded(void **state)
{
	(void)state;
	start_with("max_pool_waiters = 2\n");
	return 0;
}

/* A wait of more than six seconds ends with an error. */
static int start_patient(void **state)
{
	(void)state;
	start_with("query_wait_timeout_action = error\n");
	return 0;
}

static struct endpoint *client_with(struct pool *in, const char *letters)
{
	struct endpoint *client = fake_client(in);

	send_letters(client, letters);
	return client;
}

/* A new client of the pool, whose query has to wait. */
static struct endpoint *waiter_of(struct pool *in)
{
	struct endpoint *client = client_with(in, "Q");

	assert_state(client, CLIENT_WAITING);
	return client;
}

/* A server that runs the query of a client, and no more can be launched. */
static struct endpoint *busy_server(struct pool *in)
{
	struct endpoint *server = fake_server(in);

	assert_state(client_with(in, "Q"), CLIENT_PAIRED);
	assert_received(server, "Q");
	return server;
}

/* The same with a full queue, of two clients. */
static struct endpoint *overloaded_server(void)
{
	struct endpoint *server = busy_server(pool);

	waiter_of(pool);
	waiter_of(pool);
	return server;
}

/* The server ends its query, and those of the queue. */
static void end_overload(struct endpoint *server)
{
	for (int i = 0; i < 3; i++)
		send_letters(server, "CZ");
	assert_received(server, "QQ");
	assert_state(server, SERVER_IDLE);
}

/* What the client has received: an ErrorResponse with this content is the last error in it. */
#define assert_answered(client, letters, code, message)                                        \
	do {                                                                                   \
		struct endpoint *const answered = (client);                                    \
                                                                                               \
		assert_string_equal(read_letters(answered), letters);                          \
		assert_string_equal(answered->severity, "ERROR");                              \
		assert_string_equal(answered->sqlstate, code);                                 \
		assert_string_equal(answered->text, message);                                  \
	} while (0)

#define assert_refused(client, letters)                                                        \
	do {                                                                                   \
		assert_answered(client, letters, "53300", FULL);                               \
		assert_state(client, CLIENT_IDLE);                                             \
	} while (0)

#define assert_timed_out(client, letters)                                                      \
	assert_answered(client, letters, "57014", "query_wait_timeout")

/* --- the bound of a queue ----------------------------------------------------------------- */

/* setting: max_pool_waiters */
static void test_client_beyond_max_pool_waiters_gets_an_error_at_once(void **state)
{
	struct endpoint *server = overloaded_server(), *client = client_with(pool, "Q");

	(void)state;
	assert_refused(client, "EZ");
	assert_int_equal(scripted_sends(client->script), 1);
	assert_int_equal(endpoint_client(client)->query_start, 0);
	assert_int_equal(endpoint_client(client)->transaction_start, 0);
	assert_true(fake_logged("pooler error: " FULL));
	assert_int_equal(pool->unsent[UNSENT_QUEUE_FULL], 1);
	/* The next query is tried anew. */
	send_letters(client, "Q");
	assert_refused(client, "EZ");
	end_overload(server);
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	assert_int_equal(pool->unsent[UNSENT_QUEUE_FULL], 2);
}

static void test_each_kind_of_query_is_refused_as_a_whole(void **state)
{
	static const struct {
		const char *sent, *answer, *then;
	} cases[] = {
		{"Q", "EZ", ""},
		{"F", "EZ", ""},
		{"PBDES", "EZ", ""},
		{"BES", "EZ", ""},
		{"CS", "EZ", ""},
		/* PostgreSQL has no error for a Sync. */
		{"S", "Z", ""},
		{"SS", "ZZ", ""},
		{"HS", "Z", ""},
		/* Each of several queries is tried anew. */
		{"QQ", "EZEZ", ""},
		{"PBESPBES", "EZEZ", ""},
		{"PBESQS", "EZEZZ", ""},
		/* Before its Sync the batch does not end, whatever it contains. */
		{"P", "E", "Z"},
		{"PHBEH", "E", "Z"},
		{"PBEQFdcf", "E", "Z"},
		/* Outside of a COPY its messages have no effect. */
		{"d", "", ""},
		{"dcfQ", "EZ", ""},
		{"QddcPBES", "EZEZ", ""},
		{"H", "", ""},
	};
	struct endpoint *server = overloaded_server();

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = client_with(pool, cases[i].sent);

		assert_received(client, cases[i].answer);
		assert_state(client, CLIENT_IDLE);
		if (cases[i].then[0]) {
			send_letters(client, "S");
			assert_received(client, cases[i].then);
		}
		send_letters(client, "Q");
		assert_refused(client, "EZ");
		disconnect(client);
	}
	assert_received(server, "");
	end_overload(server);
}

/* The client is not answered before it has sent so much that a query can be recognised. */
static void test_query_that_arrives_in_pieces_is_refused_once(void **state)
{
	static const char *const queries[] = {"Q", "PBDES", "F"};

	(void)state;
	overloaded_server();
	for (size_t i = 0; i < COUNT(queries); i++) {
		struct endpoint *client = fake_client(pool);
		struct buffer message;

		buffer_init(&message);
		letters_write(&message, FROM_CLIENT, queries[i]);
		for (size_t at = 0; at < message.length; at++)
			send_bytes(client, message.data + at, 1);
		assert_refused(client, "EZ");
		buffer_free(&message);
	}
}

/* Longer than pkt_buf: a query that need not be whole to get a server. */
static void test_long_message_of_a_refused_query_is_dropped_to_its_end(void **state)
{
	static const struct {
		char type;
		const char *first, *last;
	} cases[] = {{PQ_QUERY, "EZ", ""}, {PQ_PARSE, "E", "Z"}, {PQ_BIND, "E", "Z"}};
	static uint8_t message[3 << 20] = {0, 0, 0x2f, 0xff, 0xff};
	struct endpoint *server = overloaded_server();

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = fake_client(pool);

		message[0] = (uint8_t)cases[i].type;
		send_bytes(client, message, 4000);
		assert_received(client, "");
		send_bytes(client, message + 4000, 1000);
		assert_refused(client, cases[i].first);
		for (size_t at = 5000; at < sizeof(message);) {
			const size_t rest = sizeof(message) - at;
			const size_t length = rest < 100000 ? rest : 100000;

			send_bytes(client, message + at, length);
			at += length;
			assert_int_equal(endpoint_link(client)->held_length, 0);
		}
		assert_received(client, "");
		send_letters(client, "S");
		assert_received(client, "Z");
		send_letters(client, "Q");
		assert_refused(client, "EZ");
	}
	assert_received(server, "");
}

/* The server becomes free between two batches of a client that does not read its answers. */
static void test_next_batch_of_a_refused_one_is_served_when_a_server_is_free(void **state)
{
	struct endpoint *server = overloaded_server(), *client = client_with(pool, "PB");

	(void)state;
	assert_refused(client, "E");
	end_overload(server);
	send_letters(client, "DES");
	assert_received(client, "Z");
	assert_received(server, "");
	send_letters(client, "PBES");
	assert_received(server, "PBES");
	send_letters(server, "12CZ");
	assert_received(client, "12CZ");
}

static void test_client_may_terminate_after_a_refusal(void **state)
{
	static const char *const cases[] = {"QX", "PBX", "PBESX"};

	(void)state;
	overloaded_server();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = client_with(pool, cases[i]);

		assert_closed(client);
	}
	assert_int_equal(fake_log_count("closing because: client close request"), 3);
}

static void test_unknown_message_behind_a_refused_query_closes_the_client(void **state)
{
	struct endpoint *client;

	(void)state;
	overloaded_server();
	client = client_with(pool, "PB");
	assert_refused(client, "E");
	send_bytes(client, "y\0\0\0\4", 5);
	assert_closed_with_error(client, "08P01", "unknown pkt");
}

/*
 * A client that sends queries and does not read the answers: no more than one answer is kept in
 * memory for it.
 */
static void test_answers_to_a_client_that_does_not_read_are_bounded(void **state)
{
	struct endpoint *client;
	struct buffer queries;
	char expected[2 * 2000 + 1];
	size_t answer;

	(void)state;
	overloaded_server();
	client = client_with(pool, "Q");
	assert_refused(client, "EZ");
	answer = received_length(client);
	buffer_init(&queries);
	for (int i = 0; i < 2000; i++)
		letters_write(&queries, FROM_CLIENT, "Q");
	scripted_allow(client->script, 0);
	send_buffer(client, &queries);
	assert_true(endpoint_link(client)->stream.paused);
	assert_int_equal(stream_backlog_length(&endpoint_link(client)->stream), answer);
	allow_output(client, SCRIPTED_ANY);
	scripted_run_all(client->script);
	for (size_t i = 0; i < sizeof(expected) - 1; i += 2)
		memcpy(expected + i, "EZ", 3);
	assert_refused(client, expected);
}

static void test_broken_client_is_closed_by_a_refusal(void **state)
{
	struct endpoint *client = fake_client(pool);

	(void)state;
	overloaded_server();
	scripted_feed(client->script, "Q\0\0\0\5\0", 6);
	scripted_break(client->script);
	scripted_run_all(client->script);
	assert_closed(client);
}

/* The names that pgusher tracks are those that a server, or a later batch, has confirmed. */
static void test_statements_of_a_refused_batch_are_not_noted(void **state)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);
	struct buffer message;

	(void)state;
	buffer_init(&message);
	message_parse(&message, "kept", "one");
	letters_write(&message, FROM_CLIENT, "S");
	send_buffer(client, &message);
	assert_received(server, "PS");
	send_letters(server, "1Z");
	assert_received(client, "1Z");
	client_with(pool, "Q");
	waiter_of(pool);
	waiter_of(pool);
	buffer_init(&message);
	message_parse(&message, "lost", "two");
	message_close(&message, "kept");
	letters_write(&message, FROM_CLIENT, "S");
	send_buffer(client, &message);
	assert_refused(client, "EZ");
	assert_received(server, "Q");
	end_overload(server);
	buffer_init(&message);
	message_bind(&message, "kept", 0);
	letters_write(&message, FROM_CLIENT, "ES");
	message_parse(&message, "lost", "three");
	letters_write(&message, FROM_CLIENT, "S");
	send_buffer(client, &message);
	assert_received(server, "BESPS");
	send_letters(server, "2CZ1Z");
	assert_received(client, "2CZ1Z");
}

static void test_refusal_does_not_end_the_wait_of_others(void **state)
{
	struct endpoint *server = busy_server(pool), *first = waiter_of(pool);

	(void)state;
	waiter_of(pool);
	for (int i = 0; i < 20; i++)
		assert_refused(client_with(pool, "Q"), "EZ");
	assert_int_equal(pool->client_count[CLIENT_WAITING], 2);
	send_letters(server, "CZ");
	assert_state(first, CLIENT_PAIRED);
	assert_state(client_with(pool, "Q"), CLIENT_WAITING);
	assert_refused(client_with(pool, "Q"), "EZ");
}

/* Twenty clients that begin together must not be refused by a pool that has not grown yet. */
static void test_clients_with_a_server_to_come_are_not_counted(void **state)
{
	struct endpoint *server;

	(void)state;
	fake_set("default_pool_size", "4");
	server = busy_server(pool);
	for (int i = 0; i < 5; i++)
		waiter_of(pool);
	assert_refused(client_with(pool, "Q"), "EZ");
	assert_received(server, "");
	fake_connected(fake_launched(), 0);
	assert_refused(client_with(pool, "Q"), "EZ");
}

static void test_servers_beyond_other_limits_are_not_to_come(void **state)
{
	static const char *const limits[] = {"max_db_connections", "max_user_connections"};

	(void)state;
	fake_set("default_pool_size", "20");
	for (size_t i = 0; i < COUNT(limits); i++) {
		struct endpoint *server;

		fake_set(limits[i], "1");
		server = overloaded_server();
		assert_refused(client_with(pool, "Q"), "EZ");
		end_overload(server);
		disconnect(server);
		fake_set(limits[i], "0");
	}
}

static void test_pool_without_any_limit_of_servers_refuses_no_client(void **state)
{
	(void)state;
	fake_set("default_pool_size", "0");
	for (int i = 0; i < 20; i++)
		waiter_of(pool);
}

static void test_no_server_comes_while_the_database_is_paused(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("default_pool_size", "20");
	control_pause(&fake_registry, NULL);
	client = waiter_of(pool);
	waiter_of(pool);
	assert_refused(client_with(pool, "Q"), "EZ");
	control_resume(&fake_registry, NULL);
	fake_turn();
	assert_state(client, CLIENT_WAITING);
	assert_state(client_with(pool, "Q"), CLIENT_WAITING);
}

static void test_lower_bound_does_not_end_waits(void **state)
{
	(void)state;
	overloaded_server();
	fake_set("max_pool_waiters", "1");
	assert_int_equal(pool->client_count[CLIENT_WAITING], 2);
	assert_refused(client_with(pool, "Q"), "EZ");
	fake_set("max_pool_waiters", "0");
	waiter_of(pool);
	fake_set("max_pool_waiters", "-1");
	waiter_of(pool);
}

/* How many clients may wait in the pool: more than ten count as ten. */
static int room_of(const char *database, const char *user)
{
	struct pool *in = fake_pool(database, user);
	int room = 0;

	busy_server(in);
	while (room < 10 && endpoint_link(client_with(in, "Q"))->state == CLIENT_WAITING)
		room++;
	return room;
}

/* setting: databases.max_pool_waiters users.max_pool_waiters */
static void test_bound_of_the_user_precedes_that_of_the_database(void **state)
{
	(void)state;
	assert_int_equal(room_of("db", "alice"), 2);
	assert_int_equal(room_of("narrow", "alice"), 1);
	assert_int_equal(room_of("endless", "alice"), 10);
	assert_int_equal(room_of("db", "patient"), 3);
	assert_int_equal(room_of("narrow", "patient"), 3);
	assert_int_equal(room_of("endless", "patient"), 3);
}

static int start_session(void **state)
{
	(void)state;
	start_with("max_pool_waiters = 1\npool_mode = session\n");
	return 0;
}

static void test_first_query_of_a_session_is_refused(void **state)
{
	struct endpoint *server = busy_server(pool), *first = waiter_of(pool), *client;

	(void)state;
	client = client_with(pool, "Q");
	assert_refused(client, "EZ");
	send_letters(server, "CZ");
	assert_received(server, "");
	send_letters(client, "PBES");
	assert_refused(client, "EZ");
	disconnect(first);
	send_letters(client, "PB");
	assert_state(client, CLIENT_WAITING);
}

/* --- the end of a wait -------------------------------------------------------------------- */

/* setting: query_wait_timeout_action */
static void test_wait_ends_with_an_error_and_the_client_stays(void **state)
{
	struct endpoint *server = busy_server(pool), *client = waiter_of(pool);

	(void)state;
	fake_advance(SECONDS(6) - 1);
	assert_state(client, CLIENT_WAITING);
	fake_advance(WHEEL_TICK + 1);
	assert_timed_out(client, "EZ");
	assert_state(client, CLIENT_IDLE);
	assert_int_equal(endpoint_client(client)->query_start, 0);
	assert_int_equal(endpoint_client(client)->transaction_start, 0);
	assert_true(fake_logged("pooler error: query_wait_timeout"));
	assert_false(fake_logged("closing because: query_wait_timeout"));
	assert_int_equal(pool->unsent[UNSENT_QUERY_WAIT_TIMEOUT], 1);
	/* The next wait has its own limit. */
	fake_advance(SECONDS(20));
	send_letters(client, "PBES");
	fake_advance(SECONDS(6) - 1);
	assert_state(client, CLIENT_WAITING);
	fake_advance(WHEEL_TICK + 1);
	assert_timed_out(client, "EZ");
	send_letters(server, "CZ");
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
}

static void test_each_kind_of_wait_ends_as_a_whole(void **state)
{
	static const struct {
		const char *sent, *answer, *then;
		enum client_state after;
	} cases[] = {
		{"Q", "EZ", "", CLIENT_IDLE},
		{"F", "EZ", "", CLIENT_IDLE},
		{"PBDES", "EZ", "", CLIENT_IDLE},
		{"S", "Z", "", CLIENT_IDLE},
		{"PB", "E", "Z", CLIENT_IDLE},
		{"PHBEHQFdcf", "E", "Z", CLIENT_IDLE},
		/* What follows the query waits anew, as long as it may. */
		{"QQ", "EZ", "EZ", CLIENT_WAITING},
		{"PBESPBES", "EZ", "EZ", CLIENT_WAITING},
		{"PBESPB", "EZ", "EZ", CLIENT_WAITING},
		{"PBESddcQ", "EZ", "EZ", CLIENT_WAITING},
	};

	(void)state;
	busy_server(pool);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct endpoint *client = client_with(pool, cases[i].sent);

		fake_advance(SECONDS(6) + WHEEL_TICK);
		assert_received(client, cases[i].answer);
		assert_state(client, cases[i].after);
		if (cases[i].after == CLIENT_IDLE) {
			if (cases[i].then[0])
				send_letters(client, "S");
		} else {
			fake_advance(SECONDS(6) + WHEEL_TICK);
			send_letters(client, strcmp(cases[i].sent, "PBESPB") == 0 ? "S" : "");
		}
		assert_received(client, cases[i].then);
		assert_state(client, CLIENT_IDLE);
		disconnect(client);
	}
}

/* A part of the query has been held, the rest has not arrived. */
static void test_long_query_that_has_waited_is_dropped_to_its_end(void **state)
{
	static uint8_t message[200001] = {PQ_PARSE, 0, 3, 0x0d, 0x40};
	struct endpoint *server = busy_server(pool), *client = fake_client(pool);

	(void)state;
	send_bytes(client, message, 100000);
	assert_state(client, CLIENT_WAITING);
	fake_advance(SECONDS(6) + WHEEL_TICK);
	assert_timed_out(client, "E");
	scripted_run_all(client->script);
	send_bytes(client, message + 100000, sizeof(message) - 100000);
	send_letters(client, "BES");
	assert_received(client, "Z");
	assert_received(server, "");
	send_letters(client, "Q");
	assert_state(client, CLIENT_WAITING);
}

/* A query in the queue, and one behind it that is sent when the wait ends: see pkt_buf. */
static void test_batch_behind_one_that_timed_out_gets_a_server_that_is_free(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	control_pause(&fake_registry, NULL);
	client = client_with(pool, "PBESQ");
	fake_advance(SECONDS(6) + WHEEL_TICK);
	assert_timed_out(client, "EZ");
	assert_state(client, CLIENT_WAITING);
	server = fake_server(pool);
	control_resume(&fake_registry, NULL);
	fake_turn();
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
}

static void test_query_timeout_of_a_waiting_client_ends_its_query(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("query_timeout", "3");
	busy_server(pool);
	client = waiter_of(pool);
	fake_advance(SECONDS(3) + WHEEL_TICK);
	assert_answered(client, "EZ", "57014", "query_timeout");
	assert_int_equal(pool->unsent[UNSENT_QUERY_TIMEOUT], 1);
	assert_int_equal(pool->unsent[UNSENT_QUERY_WAIT_TIMEOUT], 0);
}

static void test_client_is_idle_after_its_wait(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("client_idle_timeout", "5");
	busy_server(pool);
	client = waiter_of(pool);
	fake_advance(SECONDS(6) + WHEEL_TICK);
	fake_advance(SECONDS(4));
	assert_timed_out(client, "EZ");
	fake_advance(SECONDS(2));
	assert_closed_with_error(client, "57P05", "client_idle_timeout");
}

static void test_broken_client_is_closed_at_the_end_of_its_wait(void **state)
{
	struct endpoint *client;

	(void)state;
	busy_server(pool);
	client = waiter_of(pool);
	scripted_break(client->script);
	fake_advance(SECONDS(7));
	assert_closed(client);
}

static void test_login_that_waits_is_closed(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	pool_forget_welcome(pool);
	fake_user("alice", "secret");
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", NULL);
	assert_state(client, CLIENT_WELCOMING);
	fake_advance(SECONDS(7));
	assert_closed_with_error(client, "57014", "query_wait_timeout");
}

/* setting: databases.query_wait_timeout_action users.query_wait_timeout_action */
static void test_action_of_the_user_precedes_that_of_the_database(void **state)
{
	static const struct {
		const char *database, *user;
		bool stays;
	} cases[] = {
		{"db", "alice", true},
		{"narrow", "alice", false},
		{"db", "hasty", false},
		{"narrow", "patient", true},
	};
	struct endpoint *clients[COUNT(cases)];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct pool *in = fake_pool(cases[i].database, cases[i].user);

		busy_server(in);
		clients[i] = waiter_of(in);
	}
	fake_advance(SECONDS(7));
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (cases[i].stays)
			assert_timed_out(clients[i], "EZ");
		else
			assert_closed_with_error(clients[i], "57014", "query_wait_timeout");
	}
}

static void test_changed_action_applies_to_clients_that_wait(void **state)
{
	struct endpoint *one, *two;

	(void)state;
	busy_server(pool);
	one = waiter_of(pool);
	fake_set("query_wait_timeout_action", "disconnect");
	fake_advance(SECONDS(7));
	assert_closed_with_error(one, "57014", "query_wait_timeout");
	two = waiter_of(pool);
	fake_set("query_wait_timeout_action", "error");
	fake_advance(SECONDS(7));
	assert_timed_out(two, "EZ");
}

/* --- all tests ---------------------------------------------------------------------------- */

#define BOUNDED(name) cmocka_unit_test_setup_teardown(test_##name, start_bounded, fake_end)
#define PATIENT(name) cmocka_unit_test_setup_teardown(test_##name, start_patient, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOUNDED(client_beyond_max_pool_waiters_gets_an_error_at_once),
		BOUNDED(each_kind_of_query_is_refused_as_a_whole),
		BOUNDED(query_that_arrives_in_pieces_is_refused_once),
		BOUNDED(long_message_of_a_refused_query_is_dropped_to_its_end),
		BOUNDED(next_batch_of_a_refused_one_is_served_when_a_server_is_free),
		BOUNDED(client_may_terminate_after_a_refusal),
		BOUNDED(unknown_message_behind_a_refused_query_closes_the_client),
		BOUNDED(answers_to_a_client_that_does_not_read_are_bounded),
		BOUNDED(broken_client_is_closed_by_a_refusal),
		BOUNDED(statements_of_a_refused_batch_are_not_noted),
		BOUNDED(refusal_does_not_end_the_wait_of_others),
		BOUNDED(clients_with_a_server_to_come_are_not_counted),
		BOUNDED(servers_beyond_other_limits_are_not_to_come),
		BOUNDED(pool_without_any_limit_of_servers_refuses_no_client),
		BOUNDED(no_server_comes_while_the_database_is_paused),
		BOUNDED(lower_bound_does_not_end_waits),
		BOUNDED(bound_of_the_user_precedes_that_of_the_database),
		cmocka_unit_test_setup_teardown(
			test_first_query_of_a_session_is_refused, start_session, fake_end),
		PATIENT(wait_ends_with_an_error_and_the_client_stays),
		PATIENT(each_kind_of_wait_ends_as_a_whole),
		PATIENT(long_query_that_has_waited_is_dropped_to_its_end),
		PATIENT(batch_behind_one_that_timed_out_gets_a_server_that_is_free),
		PATIENT(query_timeout_of_a_waiting_client_ends_its_query),
		PATIENT(client_is_idle_after_its_wait),
		PATIENT(broken_client_is_closed_at_the_end_of_its_wait),
		PATIENT(login_that_waits_is_closed),
		PATIENT(action_of_the_user_precedes_that_of_the_database),
		PATIENT(changed_action_applies_to_clients_that_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
