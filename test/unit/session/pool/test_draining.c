/* SPDX-License-Identifier: ISC */
/*
 * Draining: after its client disconnected during a request, a server is brought back to an idle
 * state, or closed.
 */
#include "model/registry.h"
#include "session/link/close.h"
#include "session/pool/draining.h"
#include "session/serving/control.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;
static struct endpoint *client, *server;

static void start_with(const char *settings)
{
	pool = fake_start_pool(settings);
	client = fake_client(pool);
	server = fake_server(pool);
}

static int start(void **state)
{
	(void)state;
	start_with("default_pool_size = 1\n");
	return 0;
}

static int start_session(void **state)
{
	(void)state;
	start_with("default_pool_size = 1\npool_mode = session\n"
		   "server_reset_query = DISCARD ALL\n");
	return 0;
}

/* Messages of client and server, before the client disconnects. */
static void exchange(const char *asked, const char *answered)
{
	send_letters(client, asked);
	read_letters(server);
	send_letters(server, answered);
}

/* Advances the clock and inspects the server once, as the janitor does. */
static void inspect_after(usec_t time)
{
	fake_advance(time);
	draining_inspect(endpoint_server(server), loop_now(&fake_loop));
	fake_turn();
}

static void assert_server_closed(const char *reason)
{
	char line[200];

	assert_closed(server);
	snprintf(line, sizeof(line), "closing because: %s (age=", reason);
	assert_true(fake_logged(line));
}

static const char not_ready[] = "client disconnect while server was not ready";

/* --- what the client left unfinished ------------------------------------------------------ */

static const struct {
	const char *asked, *answered;
	const char *expected; /* what is sent to the server when the client disconnects */
	const char *said; /* its answer to that */
} tails[] = {
	/* One query, at each point of its answer. */
	{"Q", "", "", "TDCZ"},
	{"Q", "T", "", "DCZ"},
	{"Q", "TDD", "", "EZ"},
	{"Q", "TDC", "", "TDCZ"},
	{"Q", "N", "", "SACZ"},
	{"F", "", "", "VZ"},
	/* An open transaction, and a failed one. */
	{"Q", "C>", "Q", "CZ"},
	{"Q", "E!", "Q", "CZ"},
	{"QQ", "C>", "", "EZ"},
	/* A batch with its Sync. */
	{"PBDES", "", "", "12TDCZ"},
	{"PBDES", "12", "", "EZ"},
	{"S", "", "", "Z"},
	/* A batch without its Sync: a Sync alone would commit it. */
	{"P", "", "QS", "1CZZ"},
	{"PBE", "", "QS", "12CNCZZ"},
	{"PBE", "", "QS", "12EZ"},
	{"PBEH", "12C", "QS", "NCZZ"},
	{"PBEH", "12D", "QS", "sCZZ"},
	{"PH", "E", "S", "Z"},
	{"PBEHPB", "E", "S", "Z"},
	{"SPH", "Z1", "QS", "CZZ"},
	/* A COPY that waits for data, one with all of its data, one that has not started. */
	{"Q", "G", "f", "EZ"},
	{"Qdd", "G", "f", "EZ"},
	{"Qdc", "", "", "GCZ"},
	{"Qdf", "G", "", "EZ"},
	{"PBE", "12G", "fS", "EZ"},
	{"PBES", "12G", "fS", "EZ"},
	{"PBESdcS", "12G", "", "CZ"},
	{"PBESdc", "12G", "QS", "CCZZ"},
	{"PBEdc", "12", "QS", "GCCZZ"},
	{"PBEdc", "12", "QS", "EZ"},
	{"QQdc", "", "", "TDCZGCZ"},
	{"QdcQ", "G", "", "CZTDCZ"},
	/* COPY to the client. */
	{"Q", "Hd", "", "ddcCZ"},
	{"Q", "Hd", "", "dEZ"},
};

static void test_unfinished_requests_are_ended(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(tails); i++) {
		for (unsigned way = 0; way < 4; way++) {
			exchange(tails[i].asked, tails[i].answered);
			if (way == 0)
				disconnect(client);
			else if (way == 1)
				send_letters(client, "X");
			else if (way == 2)
				break_connection(client);
			else
				control_kill_client(&fake_registry, endpoint_link(client)->id);
			fake_turn();
			assert_closed(client);
			assert_received(server, tails[i].expected);
			assert_state(server, SERVER_DRAINING);
			send_letters(server, tails[i].said);
			assert_state(server, SERVER_IDLE);
			assert_received(server, "");
			client = fake_client(pool);
		}
	}
	assert_false(fake_logged("server was not ready"));
	assert_false(fake_logged("server got dirty"));
	/* Connections for cancel requests that are no longer needed. */
	for (struct endpoint *carrier; (carrier = fake_launched()) != NULL;) {
		if (!is_closed(carrier))
			fake_connected(carrier, 0);
		assert_closed_silently(carrier);
	}
}

static void test_open_transaction_is_rolled_back(void **state)
{
	size_t length;

	(void)state;
	exchange("QQ", "C>");
	disconnect(client);
	assert_received(server, "");
	send_letters(server, "E!");
	assert_received(server, "Q");
	assert_string_equal((const char *)received_body(server, &length), "ROLLBACK");
	assert_state(server, SERVER_DRAINING);
	send_letters(server, "C");
	assert_state(server, SERVER_DRAINING);
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static void test_failed_batch_in_a_transaction_is_rolled_back(void **state)
{
	(void)state;
	exchange("Q", "C>");
	exchange("PBEH", "E");
	disconnect(client);
	assert_received(server, "S");
	send_letters(server, "!");
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_failed_rollback_closes_the_server(void **state)
{
	(void)state;
	exchange("Q", "C>");
	disconnect(client);
	send_letters(server, "E!");
	assert_server_closed(not_ready);
}

static void test_query_skipped_in_a_failed_batch_is_not_waited_for(void **state)
{
	(void)state;
	exchange("PBQ", "");
	disconnect(client);
	assert_received(server, "");
	send_letters(server, "E");
	assert_received(server, "S");
	send_letters(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static void test_unsolicited_error_after_draining_makes_the_server_dirty(void **state)
{
	(void)state;
	fake_set("server_check_delay", "0");
	fake_set("server_check_query", "select 1");
	exchange("Q", "C>");
	disconnect(client);
	send_letters(server, "CZ");
	assert_state(server, SERVER_STALE);
	send_letters(server, "E");
	assert_true(endpoint_server(server)->dirty);
}

/*
 * Our Query replaces the unnamed statement, so that the next client has its own prepared again.
 */
static void test_draining_replaces_the_unnamed_statement(void **state)
{
	struct endpoint *next = fake_client(pool);

	(void)state;
	send_letters(next, "PS");
	send_letters(server, "1Z");
	exchange("PH", "1");
	disconnect(client);
	assert_received(server, "QS");
	send_letters(server, "CZZ");
	assert_state(server, SERVER_IDLE);
	send_letters(next, "BES");
	assert_received(server, "PBES");
}

static void test_copy_that_starts_while_draining_is_failed(void **state)
{
	(void)state;
	exchange("Q", "");
	disconnect(client);
	assert_received(server, "");
	send_letters(server, "G");
	assert_received(server, "f");
	send_letters(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

/* CopyFail ends the COPY, so no cancel request is needed. */
static void test_copy_that_waits_for_data_is_not_cancelled(void **state)
{
	(void)state;
	exchange("Q", "G");
	disconnect(client);
	assert_int_equal(pool->cancels_due, 0);
	assert_null(fake_launched());
	assert_received(server, "f");
	send_letters(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_ambiguous_requests_close_the_server(void **state)
{
	static const struct {
		const char *asked, *answered, *said;
	} cases[] = {
		/* It is unknown whether the second query ends the COPY or was ignored by it. */
		{"QQ", "G", NULL},
		{"QQdc", "G", NULL},
		/* It is unknown whether this Sync is answered, or is ignored by a COPY. */
		{"PBESdc", "12", NULL},
		/* The COPY ignored our ROLLBACK. */
		{"PBE", "", "12G"},
		{"QQ", "", "G"},
		{"QQdc", "", "G"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		exchange(cases[i].asked, cases[i].answered);
		disconnect(client);
		if (cases[i].said)
			send_letters(server, cases[i].said);
		assert_closed(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
	assert_int_equal(fake_log_count(not_ready), COUNT(cases));
}

/* --- servers that are closed -------------------------------------------------------------- */

static void test_incomplete_message_of_the_client_closes_the_server(void **state)
{
	uint8_t part[5000] = {PQ_QUERY, 0, 0, 0x23, 0x28};

	(void)state;
	pool->session_state = SESSION_STATE_IGNORE; /* else such a text is awaited as a whole */
	send_bytes(client, part, sizeof(part));
	assert_state(client, CLIENT_PAIRED);
	disconnect(client);
	assert_closed(client);
	assert_server_closed(not_ready);
	/* No Terminate is sent: the server would read it as the rest of the message. */
	assert_int_equal(received_length(server), sizeof(part));
}

static void test_incomplete_message_of_the_server_is_read_to_its_end(void **state)
{
	uint8_t row[300] = {PQ_DATA_ROW, 0, 0, 1, 43};

	(void)state;
	exchange("Q", "T");
	send_bytes(server, row, 100);
	disconnect(client);
	assert_state(server, SERVER_DRAINING);
	send_bytes(server, row + 100, 200);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_unexpected_message_closes_the_server(void **state)
{
	static const char *const said[] = {"TDCZD", "TDCZZ", "TDCZE", "TDCZTDCZ"};

	(void)state;
	for (size_t i = 0; i < COUNT(said); i++) {
		exchange("Q", "");
		disconnect(client);
		send_letters(server, said[i]);
		assert_closed(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

static void test_unknown_message_closes_the_server(void **state)
{
	(void)state;
	exchange("Q", "");
	disconnect(client);
	send_bytes(server, "y\0\0\0\4", 5);
	assert_server_closed("unknown pkt");
	client = fake_client(pool);
	server = fake_server(pool);
	exchange("Q", "");
	disconnect(client);
	send_bytes(server, "Z\0\0\0\5?", 6);
	assert_server_closed("bad pkt header");
}

static void test_server_without_a_cancel_key_is_closed(void **state)
{
	(void)state;
	free(endpoint_server(server)->cancel_key);
	endpoint_server(server)->cancel_key = NULL;
	exchange("Q", "");
	disconnect(client);
	assert_server_closed(not_ready);
	assert_received(server, "X");
}

static void test_open_transaction_is_rolled_back_without_a_cancel_key(void **state)
{
	(void)state;
	free(endpoint_server(server)->cancel_key);
	endpoint_server(server)->cancel_key = NULL;
	exchange("Q", "C>");
	disconnect(client);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_blocked_server_is_closed(void **state)
{
	(void)state;
	scripted_allow(server->script, 3);
	send_letters(client, "Q");
	assert_true(stream_is_blocked(&endpoint_link(server)->stream));
	disconnect(client);
	assert_closed(client);
	assert_closed(server);
	assert_received(server, "~");
}

/* All requests are answered, but not all of our bytes are sent. */
static void test_blocked_server_stays_draining(void **state)
{
	(void)state;
	exchange("Q", "G");
	read_letters(server);
	scripted_allow(server->script, 3);
	disconnect(client);
	assert_received(server, "~");
	send_letters(server, "EZ");
	assert_state(server, SERVER_DRAINING);
}

static void test_server_within_a_message_header_stays_draining(void **state)
{
	(void)state;
	exchange("Q", "TDC");
	disconnect(client);
	send_bytes(server, "Z\0\0\0\5IS\0\0", 9);
	assert_state(server, SERVER_DRAINING);
	send_bytes(server, "\0\10a\0b\0", 6);
	assert_state(server, SERVER_IDLE);
}

static void test_blocked_server_is_drained_after_a_terminate(void **state)
{
	(void)state;
	scripted_allow(server->script, 3);
	send_letters(client, "QX");
	/* The Terminate is not read while the server is blocked: it arrives later. */
	allow_output(server, SCRIPTED_ANY);
	assert_received(server, "Q");
	assert_state(server, SERVER_DRAINING);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_server_may_disconnect_while_draining(void **state)
{
	(void)state;
	exchange("Q", "");
	disconnect(client);
	disconnect(server);
	assert_server_closed("server conn crashed?");
	assert_int_equal(pool->cancels_due, 0);
}

static void test_kill_closes_a_draining_server(void **state)
{
	(void)state;
	exchange("Q", "");
	disconnect(client);
	control_kill(&fake_registry, pool->database, false);
	fake_turn();
	assert_server_closed("database removed");
}

static void test_takeover_closes_a_draining_server(void **state)
{
	(void)state;
	exchange("Q", "");
	fake_registry.process->still = true;
	disconnect(client);
	assert_server_closed(not_ready);
	fake_registry.process->still = false;
}

/* --- cancel requests of ours -------------------------------------------------------------- */

/* The connection that was launched last is established. */
static struct endpoint *connected_carrier(void)
{
	struct endpoint *carrier = fake_launched();

	assert_non_null(carrier);
	fake_connected(carrier, 0);
	assert_state(carrier, SERVER_CANCELING);
	return carrier;
}

static void test_running_query_is_cancelled(void **state)
{
	struct endpoint *carrier;

	(void)state;
	send_query(client, "slow");
	postgres_work(server);
	disconnect(client);
	carrier = connected_carrier();
	assert_int_equal(endpoint_server(server)->cancels, 1);
	postgres_work(carrier);
	assert_closed(carrier);
	assert_int_equal(postgres_backend(server)->canceled, 1);
	assert_state(server, SERVER_DRAINING);
	postgres_work(server);
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
}

static void test_running_query_in_a_transaction_is_cancelled_and_rolled_back(void **state)
{
	(void)state;
	send_query(client, "begin");
	postgres_work(server);
	send_query(client, "slow");
	postgres_work(server);
	disconnect(client);
	postgres_work(connected_carrier());
	postgres_work(server);
	assert_state(server, SERVER_IDLE);
	assert_int_equal(postgres_backend(server)->status, 'I');
}

static void test_server_stays_draining_until_the_request_has_ended(void **state)
{
	struct endpoint *carrier, *next = fake_client(pool);

	(void)state;
	exchange("Q", "");
	disconnect(client);
	send_letters(next, "Q");
	carrier = connected_carrier();
	/* The query has ended by itself; the request might cancel the next one. */
	send_letters(server, "TDCZ");
	assert_state(server, SERVER_DRAINING);
	assert_state(next, CLIENT_WAITING);
	assert_received(server, "");
	disconnect(carrier);
	assert_closed(carrier);
	assert_state(next, CLIENT_PAIRED);
	assert_received(server, "Q");
}

static void test_rollback_waits_for_the_end_of_the_request(void **state)
{
	struct endpoint *carrier;

	(void)state;
	exchange("QQ", "C>");
	disconnect(client);
	carrier = connected_carrier();
	send_letters(server, "C>");
	assert_received(server, "");
	disconnect(carrier);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_query_that_ends_before_the_request_is_not_cancelled(void **state)
{
	struct endpoint *carrier;

	(void)state;
	exchange("Q", "");
	disconnect(client);
	assert_int_equal(pool->cancels_due, 1);
	send_letters(server, "TDCZ");
	assert_state(server, SERVER_IDLE);
	assert_int_equal(pool->cancels_due, 0);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_closed_silently(carrier);
	assert_true(fake_logged("not sending cancel request for client that is now idle"));
}

static void test_each_pipelined_query_is_cancelled(void **state)
{
	struct endpoint *carrier;

	(void)state;
	exchange("QQQ", "");
	disconnect(client);
	for (int i = 0; i < 3; i++) {
		carrier = connected_carrier();
		/* Both orders of the two events. */
		if (i % 2 == 0)
			disconnect(carrier);
		send_letters(server, "EZ");
		if (i % 2 == 1)
			disconnect(carrier);
		assert_closed(carrier);
	}
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
}

static void test_request_without_effect_is_repeated(void **state)
{
	(void)state;
	exchange("Q", "");
	disconnect(client);
	disconnect(connected_carrier());
	assert_state(server, SERVER_DRAINING);
	assert_null(fake_launched());
	inspect_after(USEC_PER_SEC / 3);
	disconnect(connected_carrier());
	send_letters(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_request_whose_connection_broke_is_repeated(void **state)
{
	struct endpoint *carrier;

	(void)state;
	exchange("Q", "");
	disconnect(client);
	carrier = fake_launched();
	scripted_break(carrier->script);
	fake_connected(carrier, 0);
	assert_closed(carrier);
	assert_int_equal(endpoint_server(server)->cancels, 0);
	assert_null(fake_launched());
	inspect_after(USEC_PER_SEC / 3);
	disconnect(connected_carrier());
	send_letters(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_query_before_a_terminate_is_cancelled_after_two_seconds(void **state)
{
	(void)state;
	exchange("QX", "");
	assert_closed(client);
	inspect_after(2 * USEC_PER_SEC);
	assert_int_equal(pool->cancels_due, 0);
	assert_null(fake_launched());
	inspect_after(1);
	disconnect(connected_carrier());
	send_letters(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_each_query_before_a_terminate_has_two_seconds(void **state)
{
	(void)state;
	exchange("QQX", "");
	assert_closed(client);
	send_letters(server, "CZ");
	inspect_after(2 * USEC_PER_SEC);
	assert_int_equal(pool->cancels_due, 0);
	assert_null(fake_launched());
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_draining_is_limited_by_cancel_wait_timeout(void **state)
{
	(void)state;
	fake_set("cancel_wait_timeout", "5");
	exchange("Q", "");
	disconnect(client);
	inspect_after(7 * USEC_PER_SEC);
	assert_state(server, SERVER_DRAINING);
	inspect_after(1);
	assert_server_closed(not_ready);
	assert_int_equal(pool->cancels_due, 0);
}

static void test_draining_is_limited_without_cancel_wait_timeout(void **state)
{
	(void)state;
	fake_set("cancel_wait_timeout", "0");
	exchange("Q", "");
	disconnect(client);
	inspect_after(12 * USEC_PER_SEC);
	assert_state(server, SERVER_DRAINING);
	inspect_after(1);
	assert_server_closed(not_ready);
}

/* The request may still be in flight, since its result is unknown. */
static void test_server_is_closed_when_its_request_is_lost(void **state)
{
	struct endpoint *carrier;

	(void)state;
	exchange("Q", "");
	disconnect(client);
	carrier = connected_carrier();
	send_letters(server, "TDCZ");
	server_close_for(endpoint_server(carrier), REASON_CANCEL_WAIT_TIMEOUT);
	fake_turn();
	assert_server_closed("cancel_wait_timeout");
}

/* A megabyte of rows. */
static struct buffer megabyte_of_rows(void)
{
	struct buffer rows;

	buffer_init(&rows);
	for (int i = 0; i < 1024; i++) {
		const size_t mark = writer_begin(&rows, PQ_DATA_ROW);

		memset(buffer_extend(&rows, 1019), 'x', 1019);
		writer_end(&rows, mark);
	}
	return rows;
}

static void test_server_is_paused_after_a_megabyte_until_the_request_is_sent(void **state)
{
	struct buffer rows = megabyte_of_rows();
	struct endpoint *carrier;

	(void)state;
	for (int way = 0; way < 2; way++) {
		exchange("Q", "T");
		send_letters(client, "H");
		if (way == 0)
			disconnect(client);
		else
			send_letters(client, "X");
		read_letters(server);
		send_bytes(server, rows.data, rows.length);
		assert_false(endpoint_link(server)->stream.paused);
		send_letters(server, "D");
		assert_true(endpoint_link(server)->stream.paused);
		scripted_feed(server->script, rows.data, rows.length);
		carrier = connected_carrier();
		assert_int_equal(scripted_unread(server->script), rows.length);
		disconnect(carrier);
		assert_false(endpoint_link(server)->stream.paused);
		send_letters(server, "EZ");
		assert_state(server, SERVER_IDLE);
		client = fake_client(pool);
	}
	buffer_free(&rows);
}

static void test_answer_without_end_closes_the_server(void **state)
{
	struct buffer rows = megabyte_of_rows();

	(void)state;
	exchange("Q", "T");
	disconnect(client);
	disconnect(connected_carrier());
	for (int i = 0; i < 16; i++) {
		send_bytes(server, rows.data, rows.length);
		assert_state(server, SERVER_DRAINING);
	}
	send_letters(server, "D");
	assert_server_closed(not_ready);
	buffer_free(&rows);
}

static void test_limit_of_an_answer_applies_to_each_query(void **state)
{
	struct buffer rows = megabyte_of_rows();

	(void)state;
	exchange("QQ", "T");
	disconnect(client);
	disconnect(connected_carrier());
	for (int i = 0; i < 15; i++)
		send_bytes(server, rows.data, rows.length);
	send_letters(server, "EZ");
	send_bytes(server, rows.data, rows.length - 1024);
	assert_false(endpoint_link(server)->stream.paused);
	send_bytes(server, rows.data, 1024);
	disconnect(connected_carrier());
	for (int i = 0; i < 15; i++)
		send_bytes(server, rows.data, rows.length);
	send_letters(server, "EZ");
	assert_state(server, SERVER_IDLE);
	buffer_free(&rows);
}

static void test_answer_without_end_closes_a_server_without_a_cancel_key(void **state)
{
	struct buffer rows = megabyte_of_rows();

	(void)state;
	free(endpoint_server(server)->cancel_key);
	endpoint_server(server)->cancel_key = NULL;
	exchange("Q", "T");
	send_letters(client, "X");
	send_bytes(server, rows.data, rows.length);
	assert_state(server, SERVER_DRAINING);
	send_letters(server, "D");
	assert_server_closed(not_ready);
	buffer_free(&rows);
}

static void test_message_that_is_too_long_closes_the_server(void **state)
{
	(void)state;
	exchange("Q", "T");
	send_bytes(server, "D\x20\0\0\0", 5);
	disconnect(client);
	assert_server_closed(not_ready);
}

static void test_waiting_clients_are_served_in_order(void **state)
{
	struct endpoint *waiting[3];

	(void)state;
	exchange("Q", "");
	for (int i = 0; i < 3; i++) {
		waiting[i] = fake_client(pool);
		send_letters(waiting[i], "Q");
	}
	disconnect(client);
	disconnect(connected_carrier());
	send_letters(server, "EZ");
	for (int i = 0; i < 3; i++) {
		assert_state(waiting[i], CLIENT_PAIRED);
		send_letters(server, "TDCZ");
		assert_received(waiting[i], "TDCZ");
	}
	assert_null(fake_launched());
}

/* The server was paused because its client was slow. */
static void test_paused_server_is_read_again(void **state)
{
	(void)state;
	send_letters(client, "Q");
	scripted_allow(client->script, 3);
	send_letters(server, "TDDD");
	assert_true(endpoint_link(server)->stream.paused);
	scripted_feed(server->script, "D\0\0\0\4", 5);
	break_connection(client);
	assert_closed(client);
	assert_false(endpoint_link(server)->stream.paused);
	send_letters(server, "DCZ");
	assert_state(server, SERVER_IDLE);
}

/* --- session mode ------------------------------------------------------------------------- */

static void test_session_is_reset_after_draining(void **state)
{
	(void)state;
	exchange("Q", "C>");
	disconnect(client);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_RESETTING);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
	assert_false(endpoint_server(server)->drained);
}

static void test_failed_reset_closes_a_drained_server(void **state)
{
	(void)state;
	exchange("Q", "C>");
	disconnect(client);
	send_letters(server, "CZ");
	assert_state(server, SERVER_RESETTING);
	send_letters(server, "EZ");
	assert_server_closed("reset query failed");
}

static void test_failed_reset_keeps_a_clean_server(void **state)
{
	(void)state;
	exchange("Q", "CZ");
	disconnect(client);
	assert_state(server, SERVER_RESETTING);
	send_letters(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_session, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(unfinished_requests_are_ended),
		TEST(open_transaction_is_rolled_back),
		TEST(failed_batch_in_a_transaction_is_rolled_back),
		TEST(failed_rollback_closes_the_server),
		TEST(query_skipped_in_a_failed_batch_is_not_waited_for),
		TEST(unsolicited_error_after_draining_makes_the_server_dirty),
		TEST(draining_replaces_the_unnamed_statement),
		TEST(copy_that_starts_while_draining_is_failed),
		TEST(copy_that_waits_for_data_is_not_cancelled),
		TEST(ambiguous_requests_close_the_server),
		TEST(incomplete_message_of_the_client_closes_the_server),
		TEST(incomplete_message_of_the_server_is_read_to_its_end),
		TEST(unexpected_message_closes_the_server),
		TEST(unknown_message_closes_the_server),
		TEST(server_without_a_cancel_key_is_closed),
		TEST(open_transaction_is_rolled_back_without_a_cancel_key),
		TEST(blocked_server_is_closed),
		TEST(blocked_server_stays_draining),
		TEST(server_within_a_message_header_stays_draining),
		TEST(blocked_server_is_drained_after_a_terminate),
		TEST(server_may_disconnect_while_draining),
		TEST(kill_closes_a_draining_server),
		TEST(takeover_closes_a_draining_server),
		TEST(running_query_is_cancelled),
		TEST(running_query_in_a_transaction_is_cancelled_and_rolled_back),
		TEST(server_stays_draining_until_the_request_has_ended),
		TEST(rollback_waits_for_the_end_of_the_request),
		TEST(query_that_ends_before_the_request_is_not_cancelled),
		TEST(each_pipelined_query_is_cancelled),
		TEST(request_without_effect_is_repeated),
		TEST(request_whose_connection_broke_is_repeated),
		TEST(query_before_a_terminate_is_cancelled_after_two_seconds),
		TEST(each_query_before_a_terminate_has_two_seconds),
		TEST(draining_is_limited_by_cancel_wait_timeout),
		TEST(draining_is_limited_without_cancel_wait_timeout),
		TEST(server_is_closed_when_its_request_is_lost),
		TEST(server_is_paused_after_a_megabyte_until_the_request_is_sent),
		TEST(answer_without_end_closes_the_server),
		TEST(limit_of_an_answer_applies_to_each_query),
		TEST(answer_without_end_closes_a_server_without_a_cancel_key),
		TEST(message_that_is_too_long_closes_the_server),
		TEST(waiting_clients_are_served_in_order),
		TEST(paused_server_is_read_again),
		SESSION_TEST(session_is_reset_after_draining),
		SESSION_TEST(failed_reset_closes_a_drained_server),
		SESSION_TEST(failed_reset_keeps_a_clean_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
