/* SPDX-License-Identifier: ISC */
/*
 * What each message means: conversations between a client and a server, and when the pair parts.
 *
 * A conversation is a list of steps, apart by blanks; a step is a sign and letters
 * (support/letters):
 *
 *   :PBES   the client says this, and the server hears it
 *   .12CZ   the server says this, and the client hears it
 *   -dc     the client says this, and nobody hears it
 *   ~E      the server says this, and nobody hears it
 *   ?c      the client says this, and it does not matter who hears it
 *   =3      the server owes so many answers
 *   +       they are a pair
 *   #       they are none: the client is idle, and so is the server
 */
#include "support/fakes/fake_pool.h"
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
	start_with("");
	return 0;
}

static int start_session(void **state)
{
	(void)state;
	start_with("pool_mode = session\n");
	return 0;
}

static int start_statement(void **state)
{
	(void)state;
	start_with("pool_mode = statement\n");
	return 0;
}

/* Say it in pieces of so many bytes; 0: all at once. */
static void say_in_pieces(struct actor *who, const char *letters, size_t piece)
{
	struct buffer buffer;

	buffer_init(&buffer);
	letters_write(&buffer, who->speaker, letters);
	for (size_t at = 0; at < buffer.length && !is_gone(who); at += piece) {
		if (piece == 0)
			piece = buffer.length;
		say_bytes(who, buffer.data + at,
			buffer.length - at < piece ? buffer.length - at : piece);
	}
	buffer_free(&buffer);
}

static void take_step(const char *step, size_t piece)
{
	struct actor *who = strchr(".~", step[0]) ? server : client;
	struct actor *other = who == client ? server : client;

	switch (step[0]) {
	case '=':
		assert_int_equal(actor_server(server)->requests.count, atoi(step + 1));
		return;
	case '+':
		assert_state(client, CLIENT_PAIRED);
		assert_state(server, SERVER_PAIRED);
		return;
	case '#':
		assert_state(client, CLIENT_IDLE);
		assert_state(server, SERVER_IDLE);
		return;
	}
	say_in_pieces(who, step + 1, piece);
	hear(other);
	if (step[0] == ':' || step[0] == '.')
		assert_string_equal(other->letters, step + 1);
	else if (step[0] != '?')
		assert_string_equal(other->letters, "");
	assert_heard(who, "");
}

static void play_in_pieces(const char *conversation, size_t piece)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", conversation);
	for (char *step = strtok(copy, " "); step; step = strtok(NULL, " "))
		take_step(step, piece);
}

static void play(const char *conversation)
{
	play_in_pieces(conversation, 0);
	play_in_pieces(conversation, 1);
	play_in_pieces(conversation, 3);
	play_in_pieces(conversation, 7);
}

/* --- simple queries ----------------------------------------------------------------------- */

static void test_a_simple_query_takes_a_server_until_it_is_answered(void **state)
{
	(void)state;
	play("# :Q =1 + .TD + .DC =1 + .Z #");
}

static void test_several_results_of_a_query_have_one_end(void **state)
{
	(void)state;
	play(":Q .TDC + .TDC + .I + .C =1 .Z #");
}

static void test_a_failed_query_is_over_with_its_ready(void **state)
{
	(void)state;
	play(":Q .E =1 + .Z # :Q .TDCE + .Z #");
}

static void test_a_transaction_keeps_its_server(void **state)
{
	(void)state;
	play(":Q .C> + =0 :Q .TDC> + :PBES .12C> + :Q .CZ #");
}

static void test_a_failed_transaction_keeps_its_server_until_it_is_rolled_back(void **state)
{
	(void)state;
	play(":Q .C> :Q .E! + =0 :Q .E! + :Q .CZ #");
}

static void test_pipelined_queries_keep_the_server_until_the_last(void **state)
{
	(void)state;
	play(":QQQ =3 .TDCZ =2 + .EZ =1 + .TDCZ #");
	play(":Q .TDC :Q .Z =1 + .CZ #");
}

static void test_a_pipelined_transaction_ends_with_its_last_ready(void **state)
{
	(void)state;
	play(":QQQ .C> + .TDC> + .CZ #");
}

static void test_function_calls_are_queries(void **state)
{
	(void)state;
	play(":F =1 .V + .Z # :F .E + .Z # :FQF .VZTDCZVZ #");
}

/* --- batches ------------------------------------------------------------------------------ */

static void test_each_message_of_a_batch_is_answered(void **state)
{
	(void)state;
	play(":P =1 + .1 =0 + :B =1 + .2 + :D .T + :E .DDC + :C .3 + :S =1 .Z #");
	play(":PBDEC =5 :S =6 .12 =4 .TDC =2 .3Z #");
}

static void test_a_description_may_come_in_two_messages(void **state)
{
	(void)state;
	play(":PDS .1t =2 .T =1 .Z # :PDS .1tnZ # :PDS .1nZ #");
}

static void test_an_empty_statement_and_a_suspended_portal_are_executed(void **state)
{
	(void)state;
	play(":PBES .12IZ # :PBEH .12DDs =0 + :EHES .DDs =2 + .C =1 .Z #");
}

static void test_a_lone_sync_is_answered(void **state)
{
	(void)state;
	play(":S =1 + .Z # :SSS .Z =2 + .Z + .Z #");
}

static void test_a_flush_is_not_answered(void **state)
{
	(void)state;
	play(":H # :PDH =2 .1tT =0 + :BEH .2DC + :H + :S .Z #");
}

static void test_batches_one_behind_the_other_are_answered_in_order(void **state)
{
	(void)state;
	play(":PBESPBESPBES =12 .12DCZ =8 + .12DC + .Z =4 + .12DCZ #");
}

static void test_an_error_skips_the_rest_of_its_batch(void **state)
{
	(void)state;
	play(":PBDES .E + .Z # :PBDES .1E + .Z # :PBDES .12TE + .Z #");
	play(":PBES .12DE + .Z #");
}

static void test_an_error_does_not_touch_the_next_batch(void **state)
{
	(void)state;
	play(":PBESPBESS .1E + .Z =5 + .12DCZ =1 + .Z #");
	play(":PBESPBESPBES .EZ =8 .1EZ =4 .12DCZ #");
}

static void test_an_error_is_told_though_its_sync_is_still_to_come(void **state)
{
	(void)state;
	play(":PBE .12E + :S =1 + .Z #");
	play(":PB .E + :EPB + :E + :S .Z # :PBES .12DCZ #");
	play(":P .E :S .Z # :PBESS .EZ + .Z #");
}

static void test_a_query_in_a_batch_that_has_failed_is_not_answered(void **state)
{
	(void)state;
	play(":PB .E :QS + .Z # :PBQS .E + .Z #");
}

static void test_a_failed_batch_in_a_transaction_keeps_the_server(void **state)
{
	(void)state;
	play(":Q .C> :PBES .1E + .! + :PBES .E! + :Q .CZ #");
}

static void test_queries_and_batches_may_be_mixed(void **state)
{
	(void)state;
	play(":QPBESQ .TDCZ12DCZ + .TDCZ #");
	play(":PBQ .12TDC + .Z # :PBQS .12TDCZ + .Z #");
}

static void test_an_endless_failed_batch_needs_no_memory(void **state)
{
	(void)state;
	play(":PBE .1E");
	for (int i = 0; i < 200; i++)
		play_in_pieces("?PBDEPBDEPBDEPBDE", 0);
	assert_true(actor_server(server)->requests.count == 0 ||
		actor_server(server)->requests.count == 3200);
	play_in_pieces(":S .Z #", 0);
}

/* --- COPY --------------------------------------------------------------------------------- */

static void test_copy_out_is_an_answer_like_others(void **state)
{
	(void)state;
	play(":Q .Hddd + .c + .C + .Z # :PBES .12Hddc + .CZ #");
}

static void test_copy_in_ends_with_its_copy_done(void **state)
{
	(void)state;
	play(":Q .G + :ddd + :c =2 + .C =1 + .Z #");
	play(":Q .G :f + .E + .Z #");
}

static void test_copy_in_by_an_execute_ends_with_the_sync_behind_it(void **state)
{
	(void)state;
	play(":PBE .12G :ddc =2 + .C =0 + :S .Z #");
	play(":PBE .12G :dcS .CZ #");
	play(":PBE .12G :df .E + :S .Z #");
}

static void test_syncs_while_copying_are_not_answered(void **state)
{
	(void)state;
	play(":PBES .12G =2 :dS + :dc + .C =0 + :S .Z #");
	play(":PBES .12G :dSdcS =5 .C =1 + .Z #");
	play(":PBES .12G :dcSS .CZ + .Z #");
}

static void test_a_copy_may_be_sent_ahead_of_its_begin(void **state)
{
	(void)state;
	play(":Qddc .G + .C + .Z #");
	play(":QddcQ .GCZ =1 + .TDCZ #");
	play(":PBEddcS .12GC + .Z #");
	play(":PBEddcSPBES .12GCZ =4 + .12DCZ #");
	play(":Q :dd .G :d :c .CZ #");
}

static void test_a_copy_that_never_begins_owes_nothing(void **state)
{
	(void)state;
	play(":Qddc .E + .Z # :Qdc .CZ #");
	play(":QdcQ .EZ + .TDCZ #");
	play(":PBEdcS .1E + .Z # :PBEdcSQ .EZ + .TDCZ #");
}

static void test_a_copy_that_fails_is_over_with_its_ready(void **state)
{
	(void)state;
	play(":Q .G :d .E + .Z #");
	play(":Q .G :dc .EZ #");
	play(":Qdc .GEZ #");
	play(":QdcQ .GE + .Z =1 + .TDCZ #");
	play(":Qdf .GEZ #");
}

static void test_the_tail_of_a_failed_copy_reaches_nobody(void **state)
{
	(void)state;
	play(":Q .G :d .EZ # -ddd # -c # :Q .TDCZ #");
	play(":Q .G :d .EZ # -ddf # :PBES .12DCZ #");
	play("-d # -c # -f #");
}

static void test_the_tail_of_a_failed_copy_in_a_transaction_changes_nothing(void **state)
{
	(void)state;
	play(":Q .C> :Q .G :d .E! + ?dc + =0 :Q .CZ #");
}

static void test_a_copy_by_an_execute_that_fails_waits_for_its_sync(void **state)
{
	(void)state;
	play(":PBE .12G :d .E + ?dc + :S + .Z #");
	play(":PBE .12G :d .E + ?dcS + .Z #");
	play(":PBE .12G :dcS .E + .Z #");
	play(":PBEdcS .12GE + .Z #");
	play(":PBEdcSPBES .12GE + .Z =4 + .12DCZ #");
	/* A Sync before the error was ignored; the one behind the CopyDone is answered. */
	play(":PBES .12G :d .E + ?dcS + .Z #");
}

static void test_two_copies_one_after_the_other(void **state)
{
	(void)state;
	play(":Q .G :dcQ .CZ =1 + .G + :dc + .CZ #");
	play(":QdcQdc .GCZ + .GCZ #");
}

/* --- what comes unasked ------------------------------------------------------------------- */

static void test_notices_may_come_at_any_place(void **state)
{
	(void)state;
	play(":Q .NT + .AD + .SC + .N + .Z #");
	play(":PBES .N1 + .A2 + .NSADN =2 + .CNZ #");
}

static void test_a_notice_behind_the_end_is_passed_on(void **state)
{
	(void)state;
	play_in_pieces(":Q .TDCZN # :Q .TDCZAS # :Q .TDCZ #", 0);
}

static void test_an_error_behind_the_end_retires_the_server_unseen(void **state)
{
	(void)state;
	say(client, "Q");
	assert_heard(server, "Q");
	say(server, "TDCZE");
	assert_heard(client, "TDCZ");
	assert_state(client, CLIENT_IDLE);
	assert_heard(server, "X");
	assert_gone(server);
}

static void test_an_error_behind_the_end_is_unseen_wherever_it_is_cut(void **state)
{
	struct buffer answer;
	size_t end;

	(void)state;
	buffer_init(&answer);
	letters_write(&answer, SERVER_SPEAKS, "TDCZ");
	end = answer.length;
	letters_write(&answer, SERVER_SPEAKS, "E");
	for (size_t cut = end + 1; cut < answer.length; cut++) {
		say(client, "Q");
		assert_heard(server, "Q");
		say_bytes(server, answer.data, cut);
		assert_heard(client, "TDCZ");
		if (!is_gone(server))
			say_bytes(server, answer.data + cut, answer.length - cut);
		assert_heard(client, "");
		assert_state(client, CLIENT_IDLE);
		assert_heard(server, "X");
		assert_gone(server);
		server = fake_server(pool);
	}
	buffer_free(&answer);
}

static void test_an_error_between_notices_behind_the_end_is_unseen(void **state)
{
	(void)state;
	say(client, "Q");
	say(server, "TDCZNSE");
	assert_string_equal(strchr(hear(client), 'E') ? "told" : "untold", "untold");
	assert_state(client, CLIENT_IDLE);
	assert_gone(server);
}

static void test_what_nobody_asked_for_retires_the_server(void **state)
{
	(void)state;
	for (const char *unasked = "DTCI123nst"; *unasked; unasked++) {
		const char letter[] = {'T', 'D', 'C', 'Z', *unasked, '\0'};

		say(client, "Q");
		say(server, letter);
		assert_state(client, CLIENT_IDLE);
		assert_gone(server);
		server = fake_server(pool);
		hear(client);
	}
}

static void test_a_second_end_changes_nothing(void **state)
{
	(void)state;
	play_in_pieces(":Q .TDC ~", 0);
	say(server, "ZZ");
	assert_state(client, CLIENT_IDLE);
	assert_true(is_gone(server) || actor_link(server)->state == SERVER_IDLE);
}

static void test_in_session_mode_the_last_words_of_a_server_are_told(void **state)
{
	(void)state;
	say(client, "Q");
	say(server, "TDCZ");
	assert_heard(client, "TDCZ");
	assert_state(client, CLIENT_PAIRED);
	say_error(server, "57P01", "terminating connection");
	assert_heard(client, "E");
	assert_string_equal(client->text, "terminating connection");
	leave(server);
	assert_told(client, "08006", "server conn crashed?");
}

/* --- modes -------------------------------------------------------------------------------- */

static void test_in_session_mode_the_server_stays(void **state)
{
	(void)state;
	play_in_pieces(":Q .TDCZ + :PBES .12DCZ + :H + ?c + :Q .C> :Q .CZ +", 0);
	say(client, "X");
	assert_gone(client);
	assert_state(server, SERVER_IDLE);
}

static void test_in_statement_mode_a_transaction_is_refused(void **state)
{
	(void)state;
	play(":Q .TDCZ #");
	say(client, "Q");
	assert_heard(server, "Q");
	say(server, "C>");
	/* Not even that it began is told. */
	assert_told(
		client, "08P01", "transaction blocks not allowed in statement pooling mode");
	assert_heard(server, "X");
	assert_gone(server);
}

static void test_in_statement_mode_a_failed_transaction_is_refused_too(void **state)
{
	(void)state;
	say(client, "Q");
	say(server, "CE!");
	assert_told(
		client, "08P01", "transaction blocks not allowed in statement pooling mode");
	assert_gone(server);
}

static void test_in_statement_mode_a_transaction_in_a_pipeline_is_refused(void **state)
{
	(void)state;
	say(client, "QQ");
	say(server, "C>");
	assert_told(
		client, "08P01", "transaction blocks not allowed in statement pooling mode");
	assert_gone(server);
}

static void test_a_changed_mode_is_in_force_for_those_who_are_paired(void **state)
{
	(void)state;
	say(client, "Q");
	fake_set("pool_mode", "session");
	say(server, "TDCZ");
	assert_state(server, SERVER_PAIRED);
	fake_set("pool_mode", "transaction");
	say(client, "Q");
	say(server, "TDCZ");
	assert_state(server, SERVER_IDLE);
}

/* --- what may not be said ----------------------------------------------------------------- */

static void test_a_status_that_does_not_exist_ends_the_server(void **state)
{
	static const char *const bodies[] = {"X", "", "II", "i"};

	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct buffer buffer;

		buffer_init(&buffer);
		writer_message(&buffer, 'Z', bodies[i], strlen(bodies[i]));
		say(client, "Q");
		assert_heard(server, "Q");
		say_buffer(server, &buffer);
		assert_told(client, "08P01", "bad pkt header");
		assert_heard(server, "X");
		assert_gone(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

static bool is_letter_of(const char *letters, unsigned type)
{
	return type < 128 && strchr(letters, (int)type) != NULL && type != 0;
}

static void test_a_message_that_no_client_sends_ends_the_client(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		struct buffer buffer;

		if (is_letter_of("QPBDECSHFdcfX", type))
			continue;
		for (unsigned paired = 0; paired < 2; paired++) {
			buffer_init(&buffer);
			writer_int32(&buffer, 0);
			buffer_clear(&buffer);
			writer_byte(&buffer, (uint8_t)type);
			writer_int32(&buffer, 100); /* its end need not come */
			if (paired) {
				say(client, "Q");
				assert_heard(server, "Q");
			}
			say_buffer(client, &buffer);
			assert_told(client, "08P01", "unknown pkt");
			client = fake_client(pool);
			if (paired) {
				assert_state(server, SERVER_DRAINING);
				say(server, "CZ");
			}
		}
	}
	assert_state(server, SERVER_IDLE);
}

static void test_a_message_that_no_server_sends_ends_the_server(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		struct buffer buffer;

		if (is_letter_of("DdcHtV123TnIsCGENASZ", type))
			continue;
		buffer_init(&buffer);
		writer_byte(&buffer, (uint8_t)type);
		writer_int32(&buffer, 100);
		say(client, "Q");
		assert_heard(server, "Q");
		say_buffer(server, &buffer);
		assert_told(client, "08P01", "unknown pkt");
		assert_heard(server, "X");
		assert_gone(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

static void test_simple_queries_can_be_forbidden(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\npool_mode = transaction\n"
		   "disable_pqexec = 1\n");
	pool = fake_pool("db", "alice");
	client = fake_client(pool);
	server = fake_server(pool);
	play(":PBES .12DCZ #");
	say(client, "Q");
	assert_told(client, "08P01", "PQexec disallowed");
	assert_heard(server, "");
	assert_state(server, SERVER_IDLE);
}

/* --- parameters --------------------------------------------------------------------------- */

static const char *parameter(const struct link *link, const char *name)
{
	const int index = parameter_index(fake_registry.parameters, name);

	assert_true(index >= 0);
	return parameters_get(link->parameters, (unsigned)index);
}

static void test_a_reported_parameter_is_known_of_both_and_told(void **state)
{
	(void)state;
	say(client, "Q");
	say_parameter(server, "timezone", "UTC");
	say_parameter(server, "application_name", "shell");
	say_parameter(server, "in_hot_standby", "on");
	assert_heard(client, "SSS");
	assert_string_equal(parameter(actor_link(client), "TimeZone"), "UTC");
	assert_string_equal(parameter(actor_link(server), "TimeZone"), "UTC");
	assert_string_equal(parameter(actor_link(client), "application_name"), "shell");
	assert_ptr_equal(actor_link(client)->parameters, actor_link(server)->parameters);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_broken_parameter_ends_the_server(void **state)
{
	static const struct {
		const char *body;
		size_t length;
	} bodies[] = {{"", 0}, {"TimeZone", 8}, {"TimeZone\0", 9}, {"TimeZone\0UTC", 12}};

	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct buffer buffer;

		buffer_init(&buffer);
		writer_message(&buffer, 'S', bodies[i].body, bodies[i].length);
		say(client, "Q");
		assert_heard(server, "Q");
		say_buffer(server, &buffer);
		assert_told(client, "08P01", "broken ParameterStatus packet");
		assert_gone(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

static void test_a_parameter_is_read_only_when_it_is_whole(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	writer_parameter_status(&buffer, "application_name", "a name of some length");
	say(client, "Q");
	for (size_t i = 0; i < buffer.length; i++) {
		assert_heard(client, "");
		say_bytes(server, buffer.data + i, 1);
	}
	assert_heard(client, "S");
	assert_string_equal(
		parameter(actor_link(client), "application_name"), "a name of some length");
	buffer_free(&buffer);
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_parameter_too_long_to_be_kept_ends_the_server(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	writer_byte(&buffer, 'S');
	writer_int32(&buffer, 70000);
	say(client, "Q");
	say_buffer(server, &buffer);
	assert_told(client, "08P01", "broken ParameterStatus packet");
	assert_gone(server);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_session, fake_end)
#define STATEMENT_TEST(name)                                                                   \
	cmocka_unit_test_setup_teardown(test_##name, start_statement, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(a_simple_query_takes_a_server_until_it_is_answered),
		TEST(several_results_of_a_query_have_one_end),
		TEST(a_failed_query_is_over_with_its_ready),
		TEST(a_transaction_keeps_its_server),
		TEST(a_failed_transaction_keeps_its_server_until_it_is_rolled_back),
		TEST(pipelined_queries_keep_the_server_until_the_last),
		TEST(a_pipelined_transaction_ends_with_its_last_ready),
		TEST(function_calls_are_queries),
		TEST(each_message_of_a_batch_is_answered),
		TEST(a_description_may_come_in_two_messages),
		TEST(an_empty_statement_and_a_suspended_portal_are_executed),
		TEST(a_lone_sync_is_answered),
		TEST(a_flush_is_not_answered),
		TEST(batches_one_behind_the_other_are_answered_in_order),
		TEST(an_error_skips_the_rest_of_its_batch),
		TEST(an_error_does_not_touch_the_next_batch),
		TEST(an_error_is_told_though_its_sync_is_still_to_come),
		TEST(a_query_in_a_batch_that_has_failed_is_not_answered),
		TEST(a_failed_batch_in_a_transaction_keeps_the_server),
		TEST(queries_and_batches_may_be_mixed),
		TEST(an_endless_failed_batch_needs_no_memory),
		TEST(copy_out_is_an_answer_like_others),
		TEST(copy_in_ends_with_its_copy_done),
		TEST(copy_in_by_an_execute_ends_with_the_sync_behind_it),
		TEST(syncs_while_copying_are_not_answered),
		TEST(a_copy_may_be_sent_ahead_of_its_begin),
		TEST(a_copy_that_never_begins_owes_nothing),
		TEST(a_copy_that_fails_is_over_with_its_ready),
		TEST(the_tail_of_a_failed_copy_reaches_nobody),
		TEST(the_tail_of_a_failed_copy_in_a_transaction_changes_nothing),
		TEST(a_copy_by_an_execute_that_fails_waits_for_its_sync),
		TEST(two_copies_one_after_the_other),
		TEST(notices_may_come_at_any_place),
		TEST(a_notice_behind_the_end_is_passed_on),
		TEST(an_error_behind_the_end_retires_the_server_unseen),
		TEST(an_error_behind_the_end_is_unseen_wherever_it_is_cut),
		TEST(an_error_between_notices_behind_the_end_is_unseen),
		TEST(what_nobody_asked_for_retires_the_server),
		TEST(a_second_end_changes_nothing),
		SESSION_TEST(in_session_mode_the_last_words_of_a_server_are_told),
		SESSION_TEST(in_session_mode_the_server_stays),
		STATEMENT_TEST(in_statement_mode_a_transaction_is_refused),
		STATEMENT_TEST(in_statement_mode_a_failed_transaction_is_refused_too),
		STATEMENT_TEST(in_statement_mode_a_transaction_in_a_pipeline_is_refused),
		TEST(a_changed_mode_is_in_force_for_those_who_are_paired),
		TEST(a_status_that_does_not_exist_ends_the_server),
		TEST(a_message_that_no_client_sends_ends_the_client),
		TEST(a_message_that_no_server_sends_ends_the_server),
		cmocka_unit_test_teardown(test_simple_queries_can_be_forbidden, fake_end),
		TEST(a_reported_parameter_is_known_of_both_and_told),
		TEST(a_broken_parameter_ends_the_server),
		TEST(a_parameter_is_read_only_when_it_is_whole),
		TEST(a_parameter_too_long_to_be_kept_ends_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
