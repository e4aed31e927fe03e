/* SPDX-License-Identifier: ISC */
/*
 * What each message means: conversations between a client and a server, and when the two are
 * unpaired.
 *
 * A conversation is a list of steps, separated by blanks; a step is a sign and letters
 * (support/messages/letters):
 *
 *   :PBES   the client sends this, and the server receives it
 *   .12CZ   the server sends this, and the client receives it
 *   -dc     the client sends this, and it is dropped
 *   ~E      the server sends this, and it is dropped
 *   ?c      the client sends this, and the server may receive it or not
 *   =3      the server owes this number of answers
 *   +       client and server are paired
 *   #       they are unpaired: client and server are idle
 */
#include "support/fakes/fake_pool.h"
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

/* Sends the messages in pieces of so many bytes; 0: all at once. */
static void send_in_pieces(struct endpoint *endpoint, const char *letters, size_t piece)
{
	struct buffer buffer;

	buffer_init(&buffer);
	letters_write(&buffer, endpoint->sender, letters);
	for (size_t at = 0; at < buffer.length && !is_closed(endpoint); at += piece) {
		if (piece == 0)
			piece = buffer.length;
		send_bytes(endpoint, buffer.data + at,
			buffer.length - at < piece ? buffer.length - at : piece);
	}
	buffer_free(&buffer);
}

static void take_step(const char *step, size_t piece)
{
	struct endpoint *endpoint = strchr(".~", step[0]) ? server : client;
	struct endpoint *other = endpoint == client ? server : client;

	switch (step[0]) {
	case '=':
		assert_int_equal(endpoint_server(server)->requests.count, atoi(step + 1));
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
	send_in_pieces(endpoint, step + 1, piece);
	read_letters(other);
	if (step[0] == ':' || step[0] == '.')
		assert_string_equal(other->letters, step + 1);
	else if (step[0] != '?')
		assert_string_equal(other->letters, "");
	assert_received(endpoint, "");
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

static void test_simple_query_takes_a_server_until_it_is_answered(void **state)
{
	(void)state;
	play("# :Q =1 + .TD + .DC =1 + .Z #");
}

static void test_query_with_several_results_ends_with_one_ready_for_query(void **state)
{
	(void)state;
	play(":Q .TDC + .TDC + .I + .C =1 .Z #");
}

static void test_failed_query_ends_with_ready_for_query(void **state)
{
	(void)state;
	play(":Q .E =1 + .Z # :Q .TDCE + .Z #");
}

static void test_transaction_keeps_its_server(void **state)
{
	(void)state;
	play(":Q .C> + =0 :Q .TDC> + :PBES .12C> + :Q .CZ #");
}

static void test_failed_transaction_keeps_its_server_until_rollback(void **state)
{
	(void)state;
	play(":Q .C> :Q .E! + =0 :Q .E! + :Q .CZ #");
}

static void test_pipelined_queries_keep_the_server_until_the_last_answer(void **state)
{
	(void)state;
	play(":QQQ =3 .TDCZ =2 + .EZ =1 + .TDCZ #");
	play(":Q .TDC :Q .Z =1 + .CZ #");
}

static void test_pipelined_transaction_ends_with_the_last_ready_for_query(void **state)
{
	(void)state;
	play(":QQQ .C> + .TDC> + .CZ #");
}

static void test_function_call_is_handled_as_a_query(void **state)
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

static void test_statement_description_may_be_two_messages(void **state)
{
	(void)state;
	play(":PDS .1t =2 .T =1 .Z # :PDS .1tnZ # :PDS .1nZ #");
}

static void test_empty_query_and_portal_suspended_answer_an_execute(void **state)
{
	(void)state;
	play(":PBES .12IZ # :PBEH .12DDs =0 + :EHES .DDs =2 + .C =1 .Z #");
}

static void test_lone_sync_is_answered(void **state)
{
	(void)state;
	play(":S =1 + .Z # :SSS .Z =2 + .Z + .Z #");
}

static void test_flush_is_not_answered(void **state)
{
	(void)state;
	play(":PDH =2 .1tT =0 + :BEH .2DC + :H + :S .Z #");
}

static void test_pipelined_batches_are_answered_in_order(void **state)
{
	(void)state;
	play(":PBESPBESPBES =12 .12DCZ =8 + .12DC + .Z =4 + .12DCZ #");
}

static void test_error_skips_the_rest_of_its_batch(void **state)
{
	(void)state;
	play(":PBDES .E + .Z # :PBDES .1E + .Z # :PBDES .12TE + .Z #");
	play(":PBES .12DE + .Z #");
}

static void test_error_does_not_affect_the_next_batch(void **state)
{
	(void)state;
	play(":PBESPBESS .1E + .Z =5 + .12DCZ =1 + .Z #");
	play(":PBESPBESPBES .EZ =8 .1EZ =4 .12DCZ #");
}

static void test_error_is_forwarded_before_its_sync_arrives(void **state)
{
	(void)state;
	play(":PBE .12E + :S =1 + .Z #");
	play(":PB .E + :EPB + :E + :S .Z # :PBES .12DCZ #");
	play(":P .E :S .Z # :PBESS .EZ + .Z #");
}

static void test_query_in_a_failed_batch_is_not_answered(void **state)
{
	(void)state;
	play(":PB .E :QS + .Z # :PBQS .E + .Z #");
}

static void test_failed_batch_in_a_transaction_keeps_the_server(void **state)
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

static void test_failed_batch_without_a_sync_uses_no_memory(void **state)
{
	(void)state;
	play(":PBE .1E");
	for (int i = 0; i < 200; i++)
		play_in_pieces("?PBDEPBDEPBDEPBDE", 0);
	assert_true(endpoint_server(server)->requests.count == 0 ||
		endpoint_server(server)->requests.count == 3200);
	play_in_pieces(":S .Z #", 0);
}

/* --- COPY --------------------------------------------------------------------------------- */

static void test_copy_out_is_forwarded_like_other_answers(void **state)
{
	(void)state;
	play(":Q .Hddd + .c + .C + .Z # :PBES .12Hddc + .CZ #");
}

static void test_copy_in_ends_with_copy_done(void **state)
{
	(void)state;
	play(":Q .G + :ddd + :c =2 + .C =1 + .Z #");
	play(":Q .G :f + .E + .Z #");
}

static void test_copy_in_by_an_execute_ends_with_the_sync_after_copy_done(void **state)
{
	(void)state;
	play(":PBE .12G :ddc =2 + .C =0 + :S .Z #");
	play(":PBE .12G :dcS .CZ #");
	play(":PBE .12G :df .E + :S .Z #");
}

static void test_sync_during_a_copy_in_is_not_answered(void **state)
{
	(void)state;
	play(":PBES .12G =2 :dS + :dc + .C =0 + :S .Z #");
	play(":PBES .12G :dSdcS =5 .C =1 + .Z #");
	play(":PBES .12G :dcSS .CZ + .Z #");
}

static void test_copy_data_may_be_sent_before_copy_in_response(void **state)
{
	(void)state;
	play(":Qddc .G + .C + .Z #");
	play(":QddcQ .GCZ =1 + .TDCZ #");
	play(":PBEddcS .12GC + .Z #");
	play(":PBEddcSPBES .12GCZ =4 + .12DCZ #");
	play(":Q :dd .G :d :c .CZ #");
}

static void test_copy_data_without_a_copy_expects_no_answer(void **state)
{
	(void)state;
	play(":Qddc .E + .Z # :Qdc .CZ #");
	play(":QdcQ .EZ + .TDCZ #");
	play(":PBEdcS .1E + .Z # :PBEdcSQ .EZ + .TDCZ #");
}

static void test_failed_copy_ends_with_ready_for_query(void **state)
{
	(void)state;
	play(":Q .G :d .E + .Z #");
	play(":Q .G :dc .EZ #");
	play(":Qdc .GEZ #");
	play(":QdcQ .GE + .Z =1 + .TDCZ #");
	play(":Qdf .GEZ #");
}

static void test_copy_data_after_a_failed_copy_is_dropped(void **state)
{
	(void)state;
	play(":Q .G :d .EZ # -ddd # -c # :Q .TDCZ #");
	play(":Q .G :d .EZ # -ddf # :PBES .12DCZ #");
	play("-d # -c # -f #");
}

static void test_copy_data_after_a_failed_copy_in_a_transaction_is_ignored(void **state)
{
	(void)state;
	play(":Q .C> :Q .G :d .E! + ?dc + =0 :Q .CZ #");
}

static void test_failed_copy_by_an_execute_waits_for_its_sync(void **state)
{
	(void)state;
	play(":PBE .12G :d .E + ?dc + :S + .Z #");
	play(":PBE .12G :d .E + ?dcS + .Z #");
	play(":PBE .12G :dcS .E + .Z #");
	play(":PBEdcS .12GE + .Z #");
	play(":PBEdcSPBES .12GE + .Z =4 + .12DCZ #");
	/* The server ignores a Sync before the error; it answers the one after the CopyDone. */
	play(":PBES .12G :d .E + ?dcS + .Z #");
}

static void test_two_pipelined_copies_are_answered_in_order(void **state)
{
	(void)state;
	play(":Q .G :dcQ .CZ =1 + .G + :dc + .CZ #");
	play(":QdcQdc .GCZ + .GCZ #");
}

/* --- unsolicited messages ----------------------------------------------------------------- */

static void test_notices_may_arrive_between_any_two_messages(void **state)
{
	(void)state;
	play(":Q .NT + .AD + .SC + .N + .Z #");
	play(":PBES .N1 + .A2 + .NSADN =2 + .CNZ #");
}

static void test_notice_received_with_ready_for_query_is_forwarded(void **state)
{
	(void)state;
	play_in_pieces(":Q .TDCZN # :Q .TDCZAS # :Q .TDCZ #", 0);
}

static void test_error_after_ready_for_query_is_not_forwarded_and_closes_the_server(
	void **state)
{
	(void)state;
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "TDCZE");
	assert_received(client, "TDCZ");
	assert_state(client, CLIENT_IDLE);
	assert_received(server, "X");
	assert_closed(server);
}

static void test_error_after_ready_for_query_cut_anywhere_is_not_forwarded(void **state)
{
	struct buffer answer;
	size_t end;

	(void)state;
	buffer_init(&answer);
	letters_write(&answer, FROM_SERVER, "TDCZ");
	end = answer.length;
	letters_write(&answer, FROM_SERVER, "E");
	for (size_t cut = end + 1; cut < answer.length; cut++) {
		send_letters(client, "Q");
		assert_received(server, "Q");
		send_bytes(server, answer.data, cut);
		assert_received(client, "TDCZ");
		if (!is_closed(server))
			send_bytes(server, answer.data + cut, answer.length - cut);
		assert_received(client, "");
		assert_state(client, CLIENT_IDLE);
		assert_received(server, "X");
		assert_closed(server);
		server = fake_server(pool);
	}
	buffer_free(&answer);
}

static void test_error_after_ready_for_query_and_notices_is_not_forwarded(void **state)
{
	(void)state;
	send_letters(client, "Q");
	send_letters(server, "TDCZNSE");
	assert_string_equal(
		strchr(read_letters(client), 'E') ? "error" : "no error", "no error");
	assert_state(client, CLIENT_IDLE);
	assert_closed(server);
}

static void test_unexpected_message_after_ready_for_query_closes_the_server(void **state)
{
	(void)state;
	for (const char *unasked = "DTCI123nst"; *unasked; unasked++) {
		const char letter[] = {'T', 'D', 'C', 'Z', *unasked, '\0'};

		send_letters(client, "Q");
		send_letters(server, letter);
		assert_state(client, CLIENT_IDLE);
		assert_closed(server);
		server = fake_server(pool);
		read_letters(client);
	}
}

static void test_second_ready_for_query_does_not_affect_the_client(void **state)
{
	(void)state;
	play_in_pieces(":Q .TDC ~", 0);
	send_letters(server, "ZZ");
	assert_state(client, CLIENT_IDLE);
	assert_true(is_closed(server) || endpoint_link(server)->state == SERVER_IDLE);
}

static void test_session_client_receives_the_fatal_error_of_its_server(void **state)
{
	(void)state;
	send_letters(client, "Q");
	send_letters(server, "TDCZ");
	assert_received(client, "TDCZ");
	assert_state(client, CLIENT_PAIRED);
	send_error(server, "57P01", "terminating connection");
	assert_received(client, "E");
	assert_string_equal(client->text, "terminating connection");
	disconnect(server);
	assert_closed_with_error(client, "08006", "server conn crashed?");
}

/* --- pool modes --------------------------------------------------------------------------- */

static void test_session_client_stays_paired_after_a_transaction(void **state)
{
	(void)state;
	play_in_pieces(":Q .TDCZ + :PBES .12DCZ + :H + ?c + :Q .C> :Q .CZ +", 0);
	send_letters(client, "X");
	assert_closed(client);
	assert_state(server, SERVER_IDLE);
}

static void test_statement_mode_refuses_a_transaction(void **state)
{
	(void)state;
	play(":Q .TDCZ #");
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_letters(server, "C>");
	/* The client does not even receive the answer to its BEGIN. */
	assert_closed_with_error(
		client, "08P01", "transaction blocks not allowed in statement pooling mode");
	assert_received(server, "X");
	assert_closed(server);
}

static void test_statement_mode_refuses_a_failed_transaction(void **state)
{
	(void)state;
	send_letters(client, "Q");
	send_letters(server, "CE!");
	assert_closed_with_error(
		client, "08P01", "transaction blocks not allowed in statement pooling mode");
	assert_closed(server);
}

static void test_statement_mode_refuses_a_pipelined_transaction(void **state)
{
	(void)state;
	send_letters(client, "QQ");
	send_letters(server, "C>");
	assert_closed_with_error(
		client, "08P01", "transaction blocks not allowed in statement pooling mode");
	assert_closed(server);
}

static void test_changed_pool_mode_applies_to_paired_clients(void **state)
{
	(void)state;
	send_letters(client, "Q");
	fake_set("pool_mode", "session");
	send_letters(server, "TDCZ");
	assert_state(server, SERVER_PAIRED);
	fake_set("pool_mode", "transaction");
	send_letters(client, "Q");
	send_letters(server, "TDCZ");
	/* What the client has left in the session is not known. */
	assert_closed(server);
}

/* --- messages that are not allowed -------------------------------------------------------- */

static void test_unknown_transaction_status_closes_the_server(void **state)
{
	static const char *const bodies[] = {"X", "", "II", "i"};

	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct buffer buffer;

		buffer_init(&buffer);
		writer_message(&buffer, 'Z', bodies[i], strlen(bodies[i]));
		send_letters(client, "Q");
		assert_received(server, "Q");
		send_buffer(server, &buffer);
		assert_closed_with_error(client, "08P01", "bad pkt header");
		assert_received(server, "X");
		assert_closed(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

static bool is_letter_of(const char *letters, unsigned type)
{
	return type < 128 && strchr(letters, (int)type) != NULL && type != 0;
}

static void test_message_type_that_no_client_sends_closes_the_client(void **state)
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
			writer_int32(&buffer, 100); /* the rest of the message is not sent */
			if (paired) {
				send_letters(client, "Q");
				assert_received(server, "Q");
			}
			send_buffer(client, &buffer);
			assert_closed_with_error(client, "08P01", "unknown pkt");
			client = fake_client(pool);
			if (paired) {
				assert_state(server, SERVER_DRAINING);
				send_letters(server, "CZ");
			}
		}
	}
	assert_state(server, SERVER_IDLE);
}

static void test_message_type_that_no_server_sends_closes_the_server(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		struct buffer buffer;

		if (is_letter_of("DdcHtV123TnIsCGENASZ", type))
			continue;
		buffer_init(&buffer);
		writer_byte(&buffer, (uint8_t)type);
		writer_int32(&buffer, 100);
		send_letters(client, "Q");
		assert_received(server, "Q");
		send_buffer(server, &buffer);
		assert_closed_with_error(client, "08P01", "unknown pkt");
		assert_received(server, "X");
		assert_closed(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

static void test_disable_pqexec_refuses_simple_queries(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\npool_mode = transaction\n"
		   "disable_pqexec = 1\n");
	pool = fake_pool("db", "alice");
	client = fake_client(pool);
	server = fake_server(pool);
	play(":PBES .12DCZ #");
	send_letters(client, "Q");
	assert_closed_with_error(client, "08P01", "PQexec disallowed");
	assert_received(server, "");
	assert_state(server, SERVER_IDLE);
}

/* --- parameters --------------------------------------------------------------------------- */

static const char *parameter(const struct link *link, const char *name)
{
	const int index = parameter_index(fake_registry.parameters, name);

	assert_true(index >= 0);
	return parameters_get(link->parameters, (unsigned)index);
}

static void test_parameter_status_is_stored_for_both_and_forwarded(void **state)
{
	(void)state;
	send_letters(client, "Q");
	send_parameter_status(server, "timezone", "UTC");
	send_parameter_status(server, "application_name", "shell");
	send_parameter_status(server, "in_hot_standby", "on");
	assert_received(client, "SSS");
	assert_string_equal(parameter(endpoint_link(client), "TimeZone"), "UTC");
	assert_string_equal(parameter(endpoint_link(server), "TimeZone"), "UTC");
	assert_string_equal(parameter(endpoint_link(client), "application_name"), "shell");
	assert_ptr_equal(endpoint_link(client)->parameters, endpoint_link(server)->parameters);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_malformed_parameter_status_closes_the_server(void **state)
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
		send_letters(client, "Q");
		assert_received(server, "Q");
		send_buffer(server, &buffer);
		assert_closed_with_error(client, "08P01", "broken ParameterStatus packet");
		assert_closed(server);
		client = fake_client(pool);
		server = fake_server(pool);
	}
}

static void test_parameter_status_in_pieces_is_stored_when_complete(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	writer_parameter_status(&buffer, "application_name", "a name of some length");
	send_letters(client, "Q");
	for (size_t i = 0; i < buffer.length; i++) {
		assert_received(client, "");
		send_bytes(server, buffer.data + i, 1);
	}
	assert_received(client, "S");
	assert_string_equal(
		parameter(endpoint_link(client), "application_name"), "a name of some length");
	buffer_free(&buffer);
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

static void test_parameter_status_that_is_too_long_closes_the_server(void **state)
{
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer);
	writer_byte(&buffer, 'S');
	writer_int32(&buffer, 70000);
	send_letters(client, "Q");
	send_buffer(server, &buffer);
	assert_closed_with_error(client, "08P01", "broken ParameterStatus packet");
	assert_closed(server);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(test_##name, start_session, fake_end)
#define STATEMENT_TEST(name)                                                                   \
	cmocka_unit_test_setup_teardown(test_##name, start_statement, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(simple_query_takes_a_server_until_it_is_answered),
		TEST(query_with_several_results_ends_with_one_ready_for_query),
		TEST(failed_query_ends_with_ready_for_query),
		TEST(transaction_keeps_its_server),
		TEST(failed_transaction_keeps_its_server_until_rollback),
		TEST(pipelined_queries_keep_the_server_until_the_last_answer),
		TEST(pipelined_transaction_ends_with_the_last_ready_for_query),
		TEST(function_call_is_handled_as_a_query),
		TEST(each_message_of_a_batch_is_answered),
		TEST(statement_description_may_be_two_messages),
		TEST(empty_query_and_portal_suspended_answer_an_execute),
		TEST(lone_sync_is_answered),
		TEST(flush_is_not_answered),
		TEST(pipelined_batches_are_answered_in_order),
		TEST(error_skips_the_rest_of_its_batch),
		TEST(error_does_not_affect_the_next_batch),
		TEST(error_is_forwarded_before_its_sync_arrives),
		TEST(query_in_a_failed_batch_is_not_answered),
		TEST(failed_batch_in_a_transaction_keeps_the_server),
		TEST(queries_and_batches_may_be_mixed),
		TEST(failed_batch_without_a_sync_uses_no_memory),
		TEST(copy_out_is_forwarded_like_other_answers),
		TEST(copy_in_ends_with_copy_done),
		TEST(copy_in_by_an_execute_ends_with_the_sync_after_copy_done),
		TEST(sync_during_a_copy_in_is_not_answered),
		TEST(copy_data_may_be_sent_before_copy_in_response),
		TEST(copy_data_without_a_copy_expects_no_answer),
		TEST(failed_copy_ends_with_ready_for_query),
		TEST(copy_data_after_a_failed_copy_is_dropped),
		TEST(copy_data_after_a_failed_copy_in_a_transaction_is_ignored),
		TEST(failed_copy_by_an_execute_waits_for_its_sync),
		TEST(two_pipelined_copies_are_answered_in_order),
		TEST(notices_may_arrive_between_any_two_messages),
		TEST(notice_received_with_ready_for_query_is_forwarded),
		TEST(error_after_ready_for_query_is_not_forwarded_and_closes_the_server),
		TEST(error_after_ready_for_query_cut_anywhere_is_not_forwarded),
		TEST(error_after_ready_for_query_and_notices_is_not_forwarded),
		TEST(unexpected_message_after_ready_for_query_closes_the_server),
		TEST(second_ready_for_query_does_not_affect_the_client),
		SESSION_TEST(session_client_receives_the_fatal_error_of_its_server),
		SESSION_TEST(session_client_stays_paired_after_a_transaction),
		STATEMENT_TEST(statement_mode_refuses_a_transaction),
		STATEMENT_TEST(statement_mode_refuses_a_failed_transaction),
		STATEMENT_TEST(statement_mode_refuses_a_pipelined_transaction),
		TEST(changed_pool_mode_applies_to_paired_clients),
		TEST(unknown_transaction_status_closes_the_server),
		TEST(message_type_that_no_client_sends_closes_the_client),
		TEST(message_type_that_no_server_sends_closes_the_server),
		cmocka_unit_test_teardown(test_disable_pqexec_refuses_simple_queries, fake_end),
		TEST(parameter_status_is_stored_for_both_and_forwarded),
		TEST(malformed_parameter_status_closes_the_server),
		TEST(parameter_status_in_pieces_is_stored_when_complete),
		TEST(parameter_status_that_is_too_long_closes_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
