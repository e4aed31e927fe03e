/* SPDX-License-Identifier: ISC */
/* Servers whose client has gone in the middle: how they are brought back, and when they are not. */
#include "model/registry.h"
#include "session/link/close.h"
#include "session/pool/draining.h"
#include "session/work/control.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/writer.h"

static struct pool *pool;
static struct actor *client, *server;

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

/* Letters of both sides, before the client goes. */
static void talk(const char *asked, const char *answered)
{
	say(client, asked);
	hear(server);
	say(server, answered);
}

/* A regular look at it after this time. */
static void look_after(usec_t time)
{
	fake_advance(time);
	draining_inspect(actor_server(server), loop_now(&fake_loop));
	fake_turn();
}

static void assert_closed_for(const char *reason)
{
	char line[200];

	assert_gone(server);
	snprintf(line, sizeof(line), "closing because: %s (age=", reason);
	assert_true(fake_logged(line));
}

static const char not_ready[] = "client disconnect while server was not ready";

/* --- what its client left behind ---------------------------------------------------------- */

static const struct {
	const char *asked, *answered;
	const char *heard; /* what the server is sent when the client goes */
	const char *said; /* what it says then */
} tails[] = {
	/* One query, at each point of its answer. */
	{"Q", "", "", "TDCZ"},
	{"Q", "T", "", "DCZ"},
	{"Q", "TDD", "", "EZ"},
	{"Q", "TDC", "", "TDCZ"},
	{"Q", "N", "", "SACZ"},
	{"F", "", "", "VZ"},
	/* An open transaction, and one that has failed. */
	{"Q", "C>", "Q", "CZ"},
	{"Q", "E!", "Q", "CZ"},
	{"QQ", "C>", "", "EZ"},
	/* A batch with its Sync. */
	{"PBDES", "", "", "12TDCZ"},
	{"PBDES", "12", "", "EZ"},
	{"S", "", "", "Z"},
	/* Without: a Sync alone would commit it. */
	{"P", "", "QS", "1CZZ"},
	{"PBE", "", "QS", "12CNCZZ"},
	{"PBE", "", "QS", "12EZ"},
	{"PBEH", "12C", "QS", "NCZZ"},
	{"PBEH", "12D", "QS", "sCZZ"},
	{"PH", "E", "S", "Z"},
	{"PBEHPB", "E", "S", "Z"},
	{"SPH", "Z1", "QS", "CZZ"},
	/* A COPY that waits for data, one that has them all, one that has not begun. */
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

static void test_what_its_client_left_is_ended(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(tails); i++) {
		for (unsigned way = 0; way < 4; way++) {
			talk(tails[i].asked, tails[i].answered);
			if (way == 0)
				leave(client);
			else if (way == 1)
				say(client, "X");
			else if (way == 2)
				vanish(client);
			else
				control_kill_client(&fake_registry, actor_link(client)->id);
			fake_turn();
			assert_gone(client);
			assert_heard(server, tails[i].heard);
			assert_state(server, SERVER_DRAINING);
			say(server, tails[i].said);
			assert_state(server, SERVER_IDLE);
			assert_heard(server, "");
			client = fake_client(pool);
		}
	}
	assert_false(fake_logged("server was not ready"));
	assert_false(fake_logged("server got dirty"));
	/* Connections for cancel requests that were not needed any more. */
	for (struct actor *carrier; (carrier = fake_launched()) != NULL;) {
		if (!is_gone(carrier))
			fake_connected(carrier, 0);
		assert_dropped(carrier);
	}
}

static void test_a_transaction_that_is_open_at_the_end_is_rolled_back(void **state)
{
	size_t length;

	(void)state;
	talk("QQ", "C>");
	leave(client);
	assert_heard(server, "");
	say(server, "E!");
	assert_heard(server, "Q");
	assert_string_equal((const char *)heard_body(server, &length), "ROLLBACK");
	assert_state(server, SERVER_DRAINING);
	say(server, "C");
	assert_state(server, SERVER_DRAINING);
	say(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static void test_a_failed_batch_in_a_transaction_is_rolled_back_too(void **state)
{
	(void)state;
	talk("Q", "C>");
	talk("PBEH", "E");
	leave(client);
	assert_heard(server, "S");
	say(server, "!");
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_rollback_that_leaves_a_transaction_open_ends_the_server(void **state)
{
	(void)state;
	talk("Q", "C>");
	leave(client);
	say(server, "E!");
	assert_closed_for(not_ready);
}

static void test_a_query_that_is_skipped_with_its_batch_is_not_waited_for(void **state)
{
	(void)state;
	talk("PBQ", "");
	leave(client);
	assert_heard(server, "");
	say(server, "E");
	assert_heard(server, "S");
	say(server, "Z");
	assert_state(server, SERVER_IDLE);
}

static void test_what_it_says_unasked_afterwards_makes_it_unfit(void **state)
{
	(void)state;
	fake_set("server_check_delay", "0");
	fake_set("server_check_query", "select 1");
	talk("Q", "C>");
	leave(client);
	say(server, "CZ");
	assert_state(server, SERVER_STALE);
	say(server, "E");
	assert_true(actor_server(server)->dirty);
}

/* A Query ends it, ours as any other: whoever calls the same text so has it parsed again. */
static void test_its_unnamed_statement_ends_with_it(void **state)
{
	struct actor *next = fake_client(pool);

	(void)state;
	say(next, "PS");
	say(server, "1Z");
	talk("PH", "1");
	leave(client);
	assert_heard(server, "QS");
	say(server, "CZZ");
	assert_state(server, SERVER_IDLE);
	say(next, "BES");
	assert_heard(server, "PBES");
}

static void test_a_copy_that_begins_when_nobody_is_there_is_failed(void **state)
{
	(void)state;
	talk("Q", "");
	leave(client);
	assert_heard(server, "");
	say(server, "G");
	assert_heard(server, "f");
	say(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

/* Its end comes with the CopyFail, so that nobody has to be asked to cancel anything. */
static void test_a_copy_that_waits_for_data_is_not_cancelled(void **state)
{
	(void)state;
	talk("Q", "G");
	leave(client);
	assert_int_equal(pool->cancels_due, 0);
	assert_null(fake_launched());
	assert_heard(server, "f");
	say(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_what_cannot_be_told_apart_is_closed(void **state)
{
	static const struct {
		const char *asked, *answered, *said;
	} cases[] = {
		/* What the second query is for the COPY, nobody knows. */
		{"QQ", "G", NULL},
		{"QQdc", "G", NULL},
		/* Is that Sync answered, or does it stand before the data of a COPY? */
		{"PBESdc", "12", NULL},
		/* Our ROLLBACK was taken for data. */
		{"PBE", "", "12G"},
		{"QQ", "", "G"},
		{"QQdc", "", "G"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		talk(cases[i].asked, cases[i].answered);
		leave(client);
		if (cases[i].said)
			say(server, cases[i].said);
		assert_gone(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
	assert_int_equal(fake_logged_times(not_ready), COUNT(cases));
}

/* --- what is never given back ------------------------------------------------------------- */

static void test_half_a_message_of_its_client_ends_the_server(void **state)
{
	uint8_t part[5000] = {PQ_QUERY, 0, 0, 0x23, 0x28};

	(void)state;
	say_bytes(client, part, sizeof(part));
	assert_state(client, CLIENT_PAIRED);
	leave(client);
	assert_gone(client);
	assert_closed_for(not_ready);
	/* No Terminate, which it would take for the rest. */
	assert_int_equal(heard_bytes(server), sizeof(part));
}

static void test_half_a_message_of_the_server_is_read_to_its_end(void **state)
{
	uint8_t row[300] = {PQ_DATA_ROW, 0, 0, 1, 43};

	(void)state;
	talk("Q", "T");
	say_bytes(server, row, 100);
	leave(client);
	assert_state(server, SERVER_DRAINING);
	say_bytes(server, row + 100, 200);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_what_nobody_asked_for_ends_the_server(void **state)
{
	static const char *const said[] = {"TDCZD", "TDCZZ", "TDCZE", "TDCZTDCZ"};

	(void)state;
	for (size_t i = 0; i < COUNT(said); i++) {
		talk("Q", "");
		leave(client);
		say(server, said[i]);
		assert_gone(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

static void test_what_nobody_understands_ends_the_server(void **state)
{
	(void)state;
	talk("Q", "");
	leave(client);
	say_bytes(server, "y\0\0\0\4", 5);
	assert_closed_for("unknown pkt");
	client = fake_client(pool);
	server = fake_server(pool);
	talk("Q", "");
	leave(client);
	say_bytes(server, "Z\0\0\0\5?", 6);
	assert_closed_for("bad pkt header");
}

static void test_a_server_without_a_key_is_not_waited_for(void **state)
{
	(void)state;
	free(actor_server(server)->cancel_key);
	actor_server(server)->cancel_key = NULL;
	talk("Q", "");
	leave(client);
	assert_closed_for(not_ready);
	assert_heard(server, "X");
}

static void test_without_a_key_an_open_transaction_is_rolled_back_all_the_same(void **state)
{
	(void)state;
	free(actor_server(server)->cancel_key);
	actor_server(server)->cancel_key = NULL;
	talk("Q", "C>");
	leave(client);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_what_the_server_has_not_taken_is_not_sent_any_more(void **state)
{
	(void)state;
	scripted_allow(server->script, 3);
	say(client, "Q");
	assert_true(stream_is_blocked(&actor_link(server)->stream));
	leave(client);
	assert_gone(client);
	assert_gone(server);
	assert_heard(server, "~");
}

/* What it has answered is all it was asked, but not all that it was sent. */
static void test_a_server_that_has_not_taken_our_words_is_not_given_back(void **state)
{
	(void)state;
	talk("Q", "G");
	hear(server);
	scripted_allow(server->script, 3);
	leave(client);
	assert_heard(server, "~");
	say(server, "EZ");
	assert_state(server, SERVER_DRAINING);
}

static void test_a_server_in_the_middle_of_a_header_is_not_given_back(void **state)
{
	(void)state;
	talk("Q", "TDC");
	leave(client);
	say_bytes(server, "Z\0\0\0\5IS\0\0", 9);
	assert_state(server, SERVER_DRAINING);
	say_bytes(server, "\0\10a\0b\0", 6);
	assert_state(server, SERVER_IDLE);
}

static void test_after_a_terminate_it_is(void **state)
{
	(void)state;
	scripted_allow(server->script, 3);
	say(client, "QX");
	/* It does not read more than the server takes: the Terminate comes later. */
	allow(server, SCRIPTED_ANY);
	assert_heard(server, "Q");
	assert_state(server, SERVER_DRAINING);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_the_server_ends(void **state)
{
	(void)state;
	talk("Q", "");
	leave(client);
	leave(server);
	assert_closed_for("server conn crashed?");
	assert_int_equal(pool->cancels_due, 0);
}

static void test_its_pool_is_emptied(void **state)
{
	(void)state;
	talk("Q", "");
	leave(client);
	control_kill(&fake_registry, pool->database, false);
	fake_turn();
	assert_closed_for("database removed");
}

static void test_who_comes_to_rest_waits_for_no_such_server(void **state)
{
	(void)state;
	talk("Q", "");
	fake_registry.process->still = true;
	leave(client);
	assert_closed_for(not_ready);
	fake_registry.process->still = false;
}

/* --- cancel requests of ours -------------------------------------------------------------- */

/* The connection that was launched last is up. */
static struct actor *connected(void)
{
	struct actor *carrier = fake_launched();

	assert_non_null(carrier);
	fake_connected(carrier, 0);
	assert_state(carrier, SERVER_CANCELING);
	return carrier;
}

static void test_a_running_query_is_cancelled(void **state)
{
	struct actor *carrier;

	(void)state;
	say_query(client, "slow");
	postgres_work(server);
	leave(client);
	carrier = connected();
	assert_int_equal(actor_server(server)->cancels, 1);
	postgres_work(carrier);
	assert_gone(carrier);
	assert_int_equal(postgres_backend(server)->canceled, 1);
	assert_state(server, SERVER_DRAINING);
	postgres_work(server);
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
}

static void test_in_a_transaction_it_is_cancelled_and_rolled_back(void **state)
{
	(void)state;
	say_query(client, "begin");
	postgres_work(server);
	say_query(client, "slow");
	postgres_work(server);
	leave(client);
	postgres_work(connected());
	postgres_work(server);
	assert_state(server, SERVER_IDLE);
	assert_int_equal(postgres_backend(server)->status, 'I');
}

static void test_nobody_gets_the_server_before_the_request_has_ended(void **state)
{
	struct actor *carrier, *next = fake_client(pool);

	(void)state;
	talk("Q", "");
	leave(client);
	say(next, "Q");
	carrier = connected();
	/* Its query has ended by itself; the request might hit the next one. */
	say(server, "TDCZ");
	assert_state(server, SERVER_DRAINING);
	assert_state(next, CLIENT_WAITING);
	assert_heard(server, "");
	leave(carrier);
	assert_gone(carrier);
	assert_state(next, CLIENT_PAIRED);
	assert_heard(server, "Q");
}

static void test_nothing_is_rolled_back_before_the_request_has_ended(void **state)
{
	struct actor *carrier;

	(void)state;
	talk("QQ", "C>");
	leave(client);
	carrier = connected();
	say(server, "C>");
	assert_heard(server, "");
	leave(carrier);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_query_that_ends_first_is_not_cancelled(void **state)
{
	struct actor *carrier;

	(void)state;
	talk("Q", "");
	leave(client);
	assert_int_equal(pool->cancels_due, 1);
	say(server, "TDCZ");
	assert_state(server, SERVER_IDLE);
	assert_int_equal(pool->cancels_due, 0);
	carrier = fake_launched();
	fake_connected(carrier, 0);
	assert_dropped(carrier);
	assert_true(fake_logged("not sending cancel request for client that is now idle"));
}

static void test_of_several_queries_each_is_cancelled_when_it_runs(void **state)
{
	struct actor *carrier;

	(void)state;
	talk("QQQ", "");
	leave(client);
	for (int i = 0; i < 3; i++) {
		carrier = connected();
		/* Whichever of the two is heard of first. */
		if (i % 2 == 0)
			leave(carrier);
		say(server, "EZ");
		if (i % 2 == 1)
			leave(carrier);
		assert_gone(carrier);
	}
	assert_state(server, SERVER_IDLE);
	assert_null(fake_launched());
}

static void test_a_request_without_effect_is_followed_by_another(void **state)
{
	(void)state;
	talk("Q", "");
	leave(client);
	leave(connected());
	assert_state(server, SERVER_DRAINING);
	assert_null(fake_launched());
	look_after(USEC_PER_SEC / 3);
	leave(connected());
	say(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_connection_that_breaks_is_followed_by_another(void **state)
{
	struct actor *carrier;

	(void)state;
	talk("Q", "");
	leave(client);
	carrier = fake_launched();
	scripted_break(carrier->script);
	fake_connected(carrier, 0);
	assert_gone(carrier);
	assert_int_equal(actor_server(server)->cancels, 0);
	assert_null(fake_launched());
	look_after(USEC_PER_SEC / 3);
	leave(connected());
	say(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_after_a_terminate_a_query_has_two_seconds(void **state)
{
	(void)state;
	talk("QX", "");
	assert_gone(client);
	look_after(2 * USEC_PER_SEC);
	assert_int_equal(pool->cancels_due, 0);
	assert_null(fake_launched());
	look_after(1);
	leave(connected());
	say(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

static void test_so_has_each_that_was_sent_before_it(void **state)
{
	(void)state;
	talk("QQX", "");
	assert_gone(client);
	say(server, "CZ");
	look_after(2 * USEC_PER_SEC);
	assert_int_equal(pool->cancels_due, 0);
	assert_null(fake_launched());
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_server_that_never_ends_is_closed_in_time(void **state)
{
	(void)state;
	fake_set("cancel_wait_timeout", "5");
	talk("Q", "");
	leave(client);
	look_after(7 * USEC_PER_SEC);
	assert_state(server, SERVER_DRAINING);
	look_after(1);
	assert_closed_for(not_ready);
	assert_int_equal(pool->cancels_due, 0);
}

static void test_without_a_limit_for_requests_it_is_closed_in_time_too(void **state)
{
	(void)state;
	fake_set("cancel_wait_timeout", "0");
	talk("Q", "");
	leave(client);
	look_after(12 * USEC_PER_SEC);
	assert_state(server, SERVER_DRAINING);
	look_after(1);
	assert_closed_for(not_ready);
}

/* The request is on its way as long as nobody knows what became of it. */
static void test_a_request_that_is_lost_takes_the_server_along(void **state)
{
	struct actor *carrier;

	(void)state;
	talk("Q", "");
	leave(client);
	carrier = connected();
	say(server, "TDCZ");
	server_close_for(actor_server(carrier), REASON_CANCEL_WAIT_TIMEOUT);
	fake_turn();
	assert_closed_for("cancel_wait_timeout");
}

/* A megabyte of rows. */
static struct buffer many_rows(void)
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

static void test_more_than_a_megabyte_is_not_read_before_it_is_cancelled(void **state)
{
	struct buffer rows = many_rows();
	struct actor *carrier;

	(void)state;
	for (int way = 0; way < 2; way++) {
		talk("Q", "T");
		say(client, "H");
		if (way == 0)
			leave(client);
		else
			say(client, "X");
		hear(server);
		say_bytes(server, rows.data, rows.length);
		assert_false(actor_link(server)->stream.paused);
		say(server, "D");
		assert_true(actor_link(server)->stream.paused);
		scripted_feed(server->script, rows.data, rows.length);
		carrier = connected();
		assert_int_equal(scripted_unread(server->script), rows.length);
		leave(carrier);
		assert_false(actor_link(server)->stream.paused);
		say(server, "EZ");
		assert_state(server, SERVER_IDLE);
		client = fake_client(pool);
	}
	buffer_free(&rows);
}

static void test_what_is_said_without_end_ends_the_server(void **state)
{
	struct buffer rows = many_rows();

	(void)state;
	talk("Q", "T");
	leave(client);
	leave(connected());
	for (int i = 0; i < 16; i++) {
		say_bytes(server, rows.data, rows.length);
		assert_state(server, SERVER_DRAINING);
	}
	say(server, "D");
	assert_closed_for(not_ready);
	buffer_free(&rows);
}

static void test_each_of_several_queries_may_say_that_much(void **state)
{
	struct buffer rows = many_rows();

	(void)state;
	talk("QQ", "T");
	leave(client);
	leave(connected());
	for (int i = 0; i < 15; i++)
		say_bytes(server, rows.data, rows.length);
	say(server, "EZ");
	say_bytes(server, rows.data, rows.length - 1024);
	assert_false(actor_link(server)->stream.paused);
	say_bytes(server, rows.data, 1024);
	leave(connected());
	for (int i = 0; i < 15; i++)
		say_bytes(server, rows.data, rows.length);
	say(server, "EZ");
	assert_state(server, SERVER_IDLE);
	buffer_free(&rows);
}

static void test_without_a_key_too_much_ends_it(void **state)
{
	struct buffer rows = many_rows();

	(void)state;
	free(actor_server(server)->cancel_key);
	actor_server(server)->cancel_key = NULL;
	talk("Q", "T");
	say(client, "X");
	say_bytes(server, rows.data, rows.length);
	assert_state(server, SERVER_DRAINING);
	say(server, "D");
	assert_closed_for(not_ready);
	buffer_free(&rows);
}

static void test_a_message_that_is_too_long_is_not_read(void **state)
{
	(void)state;
	talk("Q", "T");
	say_bytes(server, "D\x20\0\0\0", 5);
	leave(client);
	assert_closed_for(not_ready);
}

static void test_those_who_wait_are_served_in_order(void **state)
{
	struct actor *waiters[3];

	(void)state;
	talk("Q", "");
	for (int i = 0; i < 3; i++) {
		waiters[i] = fake_client(pool);
		say(waiters[i], "Q");
	}
	leave(client);
	leave(connected());
	say(server, "EZ");
	for (int i = 0; i < 3; i++) {
		assert_state(waiters[i], CLIENT_PAIRED);
		say(server, "TDCZ");
		assert_heard(waiters[i], "TDCZ");
	}
	assert_null(fake_launched());
}

/* A slow reader had its server paused. */
static void test_a_server_that_was_paused_is_read_on(void **state)
{
	(void)state;
	say(client, "Q");
	scripted_allow(client->script, 3);
	say(server, "TDDD");
	assert_true(actor_link(server)->stream.paused);
	scripted_feed(server->script, "D\0\0\0\4", 5);
	vanish(client);
	assert_gone(client);
	assert_false(actor_link(server)->stream.paused);
	say(server, "DCZ");
	assert_state(server, SERVER_IDLE);
}

/* --- session mode ------------------------------------------------------------------------- */

static void test_its_session_is_reset_afterwards(void **state)
{
	(void)state;
	talk("Q", "C>");
	leave(client);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_RESETTING);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
	assert_false(actor_server(server)->drained);
}

static void test_a_reset_that_fails_ends_it(void **state)
{
	(void)state;
	talk("Q", "C>");
	leave(client);
	say(server, "CZ");
	assert_state(server, SERVER_RESETTING);
	say(server, "EZ");
	assert_closed_for("reset query failed");
}

static void test_a_clean_one_has_such_an_error_forgiven(void **state)
{
	(void)state;
	talk("Q", "CZ");
	leave(client);
	assert_state(server, SERVER_RESETTING);
	say(server, "EZ");
	assert_state(server, SERVER_IDLE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_session, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(what_its_client_left_is_ended),
		TEST(a_transaction_that_is_open_at_the_end_is_rolled_back),
		TEST(a_failed_batch_in_a_transaction_is_rolled_back_too),
		TEST(a_rollback_that_leaves_a_transaction_open_ends_the_server),
		TEST(a_query_that_is_skipped_with_its_batch_is_not_waited_for),
		TEST(what_it_says_unasked_afterwards_makes_it_unfit),
		TEST(its_unnamed_statement_ends_with_it),
		TEST(a_copy_that_begins_when_nobody_is_there_is_failed),
		TEST(a_copy_that_waits_for_data_is_not_cancelled),
		TEST(what_cannot_be_told_apart_is_closed),
		TEST(half_a_message_of_its_client_ends_the_server),
		TEST(half_a_message_of_the_server_is_read_to_its_end),
		TEST(what_nobody_asked_for_ends_the_server),
		TEST(what_nobody_understands_ends_the_server),
		TEST(a_server_without_a_key_is_not_waited_for),
		TEST(without_a_key_an_open_transaction_is_rolled_back_all_the_same),
		TEST(what_the_server_has_not_taken_is_not_sent_any_more),
		TEST(a_server_that_has_not_taken_our_words_is_not_given_back),
		TEST(a_server_in_the_middle_of_a_header_is_not_given_back),
		TEST(after_a_terminate_it_is),
		TEST(the_server_ends),
		TEST(its_pool_is_emptied),
		TEST(who_comes_to_rest_waits_for_no_such_server),
		TEST(a_running_query_is_cancelled),
		TEST(in_a_transaction_it_is_cancelled_and_rolled_back),
		TEST(nobody_gets_the_server_before_the_request_has_ended),
		TEST(nothing_is_rolled_back_before_the_request_has_ended),
		TEST(a_query_that_ends_first_is_not_cancelled),
		TEST(of_several_queries_each_is_cancelled_when_it_runs),
		TEST(a_request_without_effect_is_followed_by_another),
		TEST(a_connection_that_breaks_is_followed_by_another),
		TEST(after_a_terminate_a_query_has_two_seconds),
		TEST(so_has_each_that_was_sent_before_it),
		TEST(a_server_that_never_ends_is_closed_in_time),
		TEST(without_a_limit_for_requests_it_is_closed_in_time_too),
		TEST(a_request_that_is_lost_takes_the_server_along),
		TEST(more_than_a_megabyte_is_not_read_before_it_is_cancelled),
		TEST(what_is_said_without_end_ends_the_server),
		TEST(each_of_several_queries_may_say_that_much),
		TEST(without_a_key_too_much_ends_it),
		TEST(a_message_that_is_too_long_is_not_read),
		TEST(those_who_wait_are_served_in_order),
		TEST(a_server_that_was_paused_is_read_on),
		SESSION_TEST(its_session_is_reset_afterwards),
		SESSION_TEST(a_reset_that_fails_ends_it),
		SESSION_TEST(a_clean_one_has_such_an_error_forgiven),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
