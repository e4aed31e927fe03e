/* SPDX-License-Identifier: ISC */
/*
 * Pools with pool_size = auto: when servers are asked for what their host has, what answers mean, and
 * how pools share what is known.
 */
#include "daemon/janitor.h"
#include "session/pool/auto_size.h"
#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/writer.h"

#define REFRESH (300 * USEC_PER_SEC)

static struct janitor janitor;
static struct pool *pool;

static const char config[] =
	"[databases]\ndb = host=10.0.0.1 host_cores=10\nother = host=10.0.0.1 pool_size=10\n"
	"*=host=10.0.0.2\n[users]\ncarol = pool_size=auto\n[pgbouncer]\npool_mode = transaction\n"
	"server_reset_query =\nserver_check_delay = 10000\nquery_wait_notify = 0\n"
	"server_idle_timeout = 0\nserver_lifetime = 36000\nserver_tls_sslmode = disable\n"
	"session_functions_refresh = 0\nserver_login_retry = 1\ndefault_pool_size = auto\n";

static int start(void **state)
{
	(void)state;
	fake_start(config);
	pool = fake_pool("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	return 0;
}

static int stop(void **state)
{
	janitor_stop(&janitor);
	return fake_end(state);
}

/* --- messages ----------------------------------------------------------------------------- */

static void send_row(struct endpoint *server, unsigned count, const char *const *values)
{
	struct buffer out = {0};
	const size_t mark = writer_begin(&out, PQ_DATA_ROW);

	writer_int16(&out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		writer_int32(&out, values[i] ? (uint32_t)strlen(values[i]) : UINT32_MAX);
		writer_bytes(&out, values[i], values[i] ? strlen(values[i]) : 0);
	}
	writer_end(&out, mark);
	send_buffer(server, &out);
}

/* Answer the question for connections, and end it. */
static void tell(struct endpoint *server, const char *connections, const char *role_limit,
	const char *reads_files)
{
	const char *const values[] = {connections, "3", NULL, role_limit, "-1", reads_files};

	send_row(server, COUNT(values), values);
	send_letters(server, "CZ");
}

static void tell_files(struct endpoint *server, const char *online, const char *quota)
{
	const char *const values[] = {online, quota};

	send_row(server, COUNT(values), values);
	send_letters(server, "CZ");
}

static const char *last_query(struct endpoint *server)
{
	size_t length;

	return (const char *)received_body(server, &length);
}

static void assert_asked(struct endpoint *server)
{
	assert_received(server, "Q");
	assert_non_null(strstr(last_query(server), "current_setting('max_connections')"));
}

/* A client of this pool waits for a server, whose login comes to its ReadyForQuery. */
static struct endpoint *log_in_server(struct pool *of)
{
	struct endpoint *server;

	send_query(fake_client(of), "SELECT 1");
	fake_turn();
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	read_letters(server);
	send_letters(server, "RKZ");
	return server;
}

/* The server gets the client's query, and answers. */
static void serve(struct endpoint *server)
{
	assert_received(server, "Q");
	assert_string_equal(last_query(server), "SELECT 1");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

/* A pool with one idle server, which has told of 100 connections. */
static struct endpoint *open_pool(struct pool *of)
{
	struct endpoint *server = log_in_server(of);

	assert_asked(server);
	tell(server, "100", "-1", "f");
	serve(server);
	return server;
}

/* --- asking ------------------------------------------------------------------------------- */

static void test_first_server_is_asked_before_its_client_has_it(void **state)
{
	struct endpoint *server = log_in_server(pool);

	(void)state;
	assert_state(server, SERVER_PREPARING);
	assert_asked(server);
	assert_int_equal(pool_size(pool), SIZING_LEAST);
	tell(server, "100", "-1", "f");
	serve(server);
	/* 10 cores; of 87 connections 10 are the other pool's. */
	assert_int_equal(pool_size(pool), 40);
	assert_int_equal(database_pool_size(pool->database, fake_process.settings), 40);
	assert_true(fake_logged("pool db/alice: pool_size = auto is 40: 10 cores"));
}

static void test_second_server_is_not_asked(void **state)
{
	struct endpoint *first = open_pool(pool), *second;

	(void)state;
	send_query(fake_client(pool), "SELECT 1");
	assert_received(first, "Q");
	second = log_in_server(pool);
	serve(second);
}

static void test_free_server_is_asked_after_five_minutes(void **state)
{
	struct endpoint *server = open_pool(pool);

	(void)state;
	fake_advance(REFRESH - 2 * USEC_PER_SEC);
	assert_received(server, "");
	fake_advance(4 * USEC_PER_SEC);
	assert_asked(server);
	assert_state(server, SERVER_ASKING);
	tell(server, "30", "-1", "f");
	assert_state(server, SERVER_IDLE);
	fake_advance(USEC_PER_SEC);
	/* 30 - 3 - 3 - 10 */
	assert_int_equal(pool_size(pool), 14);
	fake_advance(10 * USEC_PER_SEC);
	assert_received(server, "");
}

static void test_server_in_a_transaction_is_asked_when_it_is_free(void **state)
{
	struct endpoint *server = open_pool(pool), *client = fake_client(pool);

	(void)state;
	send_query(client, "BEGIN");
	read_letters(server);
	send_letters(server, "C>");
	fake_advance(REFRESH + USEC_PER_SEC);
	assert_received(server, "");
	assert_state(server, SERVER_PAIRED);
	send_query(client, "COMMIT");
	read_letters(server);
	send_letters(server, "CZ");
	assert_asked(server);
	assert_state(server, SERVER_ASKING);
	tell(server, "100", "-1", "f");
	assert_state(server, SERVER_IDLE);
}

static void test_no_server_is_asked_before_a_takeover(void **state)
{
	struct endpoint *server = open_pool(pool);

	(void)state;
	pool->sizing->due = true;
	fake_process.draining = true;
	fake_advance(USEC_PER_SEC);
	assert_received(server, "");
	fake_process.draining = false;
	fake_advance(USEC_PER_SEC);
	assert_asked(server);
}

static void test_answer_for_a_pool_that_has_a_number_by_then(void **state)
{
	struct endpoint *server = open_pool(pool);

	(void)state;
	pool->sizing->due = true;
	fake_advance(USEC_PER_SEC);
	assert_asked(server);
	fake_set("default_pool_size", "7");
	pool_reconfigure(pool);
	assert_null(pool->sizing);
	tell(server, "100", "-1", "f");
	assert_state(server, SERVER_IDLE);
	/* It is asked anew, while another answer for the pool that was is under way. */
	fake_set("default_pool_size", "auto");
	pool_reconfigure(pool);
	fake_advance(USEC_PER_SEC);
	assert_asked(server);
	fake_set("default_pool_size", "7");
	pool_reconfigure(pool);
	fake_set("default_pool_size", "auto");
	pool_reconfigure(pool);
	tell(server, "50", "-1", "f");
	assert_asked(server);
	tell(server, "60", "-1", "f");
	fake_turn();
	assert_int_equal(pool->sizing->facts.max_connections, 60);
}

static void test_first_server_at_a_host_is_asked_anew(void **state)
{
	struct endpoint *server = open_pool(pool);

	(void)state;
	disconnect(server);
	fake_advance(2 * USEC_PER_SEC);
	server = log_in_server(pool);
	assert_asked(server);
	tell(server, "20", "-1", "f");
	fake_turn();
	/* 20 - 3 - 2 - 10 */
	assert_int_equal(pool_size(pool), 5);
}

static void test_pool_with_a_number_asks_nothing(void **state)
{
	struct pool *number = fake_pool("other", "alice");
	struct endpoint *server = log_in_server(number);

	(void)state;
	assert_null(number->sizing);
	serve(server);
	fake_advance(REFRESH + 2 * USEC_PER_SEC);
	assert_received(server, "");
}

/* --- answers ------------------------------------------------------------------------------ */

static void test_role_that_may_read_files_is_asked_for_them(void **state)
{
	struct pool *wild = fake_pool("wild", "alice");
	struct endpoint *server = log_in_server(wild);

	(void)state;
	assert_asked(server);
	assert_null(strstr(last_query(server), "cpu/online"));
	tell(server, "100", "-1", "t");
	assert_state(server, SERVER_PREPARING);
	assert_received(server, "Q");
	assert_non_null(strstr(last_query(server), "cpu/online"));
	tell_files(server, "0-7\n", "600000 100000\n");
	serve(server);
	assert_int_equal(pool_size(wild), 24);
	assert_int_equal(wild->sizing->facts.cores_from, CORES_OF_SERVER);
}

static void test_refused_files_leave_the_rest(void **state)
{
	struct pool *wild = fake_pool("wild", "alice");
	struct endpoint *server = log_in_server(wild);

	(void)state;
	tell(server, "100", "-1", "t");
	read_letters(server);
	send_error(server, "58P01", "no such file");
	send_letters(server, "Z");
	serve(server);
	/* Its cores are not known, since it is not on this machine: a quarter of 87. */
	assert_int_equal(pool_size(wild), 21);
	assert_int_equal(wild->sizing->facts.cores_from, CORES_UNKNOWN);
}

static void test_server_that_refuses_is_asked_for_less_and_then_not_at_all(void **state)
{
	struct pool *wild = fake_pool("wild", "alice");
	struct endpoint *server = log_in_server(wild);

	(void)state;
	assert_asked(server);
	send_error(server, "42501", "no");
	send_letters(server, "Z");
	assert_asked(server);
	assert_null(strstr(last_query(server), "rolconnlimit"));
	send_error(server, "42501", "no");
	send_letters(server, "Z");
	serve(server);
	assert_int_equal(pool_size(wild), SIZING_UNKNOWN);
	assert_int_equal(wild->sizing->sizing.bound, SIZED_BY_NOTHING);
}

static void test_server_that_closes_at_the_question_is_asked_for_less(void **state)
{
	struct pool *wild = fake_pool("wild", "alice");
	struct endpoint *server = log_in_server(wild);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_asked(server);
		fake_advance(USEC_PER_SEC / 10);
		disconnect(server);
		fake_advance(2 * USEC_PER_SEC);
		server = fake_launched();
		assert_non_null(server);
		fake_connected(server, 0);
		read_letters(server);
		send_letters(server, "RKZ");
	}
	assert_received(server, "Q");
	assert_string_equal(last_query(server), "");
	send_letters(server, "IZ");
	serve(server);
	assert_int_equal(pool_size(wild), SIZING_UNKNOWN);
}

static void test_error_that_passes_is_no_answer(void **state)
{
	struct endpoint *server = log_in_server(pool);

	(void)state;
	assert_asked(server);
	send_error(server, "57014", "canceling statement due to statement timeout");
	send_letters(server, "Z");
	serve(server);
	assert_int_equal(pool_size(pool), SIZING_LEAST);
	fake_advance(6 * USEC_PER_SEC);
	assert_asked(server);
	tell(server, "100", "-1", "f");
	fake_turn();
	assert_int_equal(pool_size(pool), 40);
}

static void test_limit_of_a_role_is_divided_among_its_pools(void **state)
{
	struct pool *wild = fake_pool("wild", "alice");
	struct endpoint *server = log_in_server(pool);

	(void)state;
	tell(server, "100", "13", "f");
	fake_turn();
	assert_non_null(wild->sizing);
	assert_int_equal(pool_size(pool), 6);
	assert_int_equal(pool->sizing->sizing.bound, SIZED_BY_ROLE);
}

/* --- sharing ------------------------------------------------------------------------------ */

static void test_pools_of_an_entry_share_its_host(void **state)
{
	struct pool *second;

	(void)state;
	open_pool(pool);
	assert_int_equal(pool_size(pool), 40);
	second = fake_pool("db", "bob");
	fake_advance(USEC_PER_SEC);
	assert_int_equal(pool_size(pool), 20);
	/* It has no server yet, but is due to get one. */
	assert_int_equal(pool_size(second), SIZING_LEAST);
	open_pool(second);
	fake_turn();
	assert_int_equal(pool_size(second), 20);
}

static void test_user_may_be_auto_where_the_database_has_a_number(void **state)
{
	struct pool *carol = fake_pool("other", "carol");

	(void)state;
	open_pool(carol);
	assert_non_null(carol->sizing);
	/* A quarter of 87, for carol and for db, which has no pool of its own. */
	fake_pool("db", "alice");
	fake_advance(USEC_PER_SEC);
	assert_int_equal(carol->sizing->facts.pools, 2);
	assert_int_equal(pool_size(carol), 87 / 4 / 2);
	/* A pool of that database with its number, of which carol's is none. */
	assert_int_equal(carol->sizing->facts.fixed, 0);
	fake_pool("other", "alice");
	fake_advance(USEC_PER_SEC);
	assert_int_equal(carol->sizing->facts.fixed, 10);
	assert_int_equal(pool_size(carol), 77 / 4 / 2);
}

static void test_refused_login_lowers_the_size_for_a_minute(void **state)
{
	struct endpoint *server = open_pool(pool), *refused;

	(void)state;
	send_query(fake_client(pool), "SELECT 1");
	read_letters(server);
	send_query(fake_client(pool), "SELECT 1");
	fake_turn();
	refused = fake_launched();
	assert_non_null(refused);
	fake_connected(refused, 0);
	read_letters(refused);
	send_error(refused, "53300", "sorry, too many clients already");
	fake_turn();
	assert_int_equal(pool_size(pool), 1);
	assert_int_equal(pool->sizing->sizing.bound, SIZED_BY_REFUSAL);
	fake_advance(58 * USEC_PER_SEC);
	assert_int_equal(pool_size(pool), 1);
	assert_null(fake_launched());
	fake_advance(3 * USEC_PER_SEC);
	assert_int_equal(pool_size(pool), 40);
	assert_non_null(fake_launched());
}

static void test_larger_size_is_for_clients_that_wait_already(void **state)
{
	struct endpoint *server = open_pool(pool);

	(void)state;
	pool->sizing->refused_at = 1;
	pool->sizing->refused_until = loop_now(&fake_loop) + REFRESH;
	fake_advance(2 * USEC_PER_SEC);
	assert_int_equal(pool_size(pool), 1);
	send_query(fake_client(pool), "SELECT 1");
	read_letters(server);
	send_query(fake_client(pool), "SELECT 1");
	fake_turn();
	assert_null(fake_launched());
	pool->sizing->refused_until = 0;
	/* Without the round that comes once a second. */
	auto_size_round(&fake_registry.sizing_task);
	fake_turn();
	assert_int_equal(pool_size(pool), 40);
	assert_non_null(fake_launched());
}

static void test_other_failures_do_not(void **state)
{
	struct endpoint *server = open_pool(pool), *refused;

	(void)state;
	send_query(fake_client(pool), "SELECT 1");
	read_letters(server);
	send_query(fake_client(pool), "SELECT 1");
	fake_turn();
	refused = fake_launched();
	fake_connected(refused, 0);
	read_letters(refused);
	send_error(refused, "57P03", "the database system is starting up");
	fake_turn();
	assert_int_equal(pool_size(pool), 40);
}

static void test_size_that_is_not_known_closes_no_server(void **state)
{
	struct endpoint *servers[6];

	(void)state;
	for (unsigned i = 0; i < COUNT(servers); i++)
		servers[i] = fake_server(pool);
	/* All of them are asked, as if their host did not answer. */
	pool->sizing->asked = endpoint_server(servers[0]);
	fake_advance(2 * USEC_PER_SEC);
	pool->sizing->asked = NULL;
	for (unsigned i = 0; i < COUNT(servers); i++)
		assert_false(is_closed(servers[i]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_server_is_asked_before_its_client_has_it),
		TEST(test_second_server_is_not_asked),
		TEST(test_free_server_is_asked_after_five_minutes),
		TEST(test_server_in_a_transaction_is_asked_when_it_is_free),
		TEST(test_no_server_is_asked_before_a_takeover),
		TEST(test_answer_for_a_pool_that_has_a_number_by_then),
		TEST(test_first_server_at_a_host_is_asked_anew),
		TEST(test_pool_with_a_number_asks_nothing),
		TEST(test_role_that_may_read_files_is_asked_for_them),
		TEST(test_refused_files_leave_the_rest),
		TEST(test_server_that_refuses_is_asked_for_less_and_then_not_at_all),
		TEST(test_server_that_closes_at_the_question_is_asked_for_less),
		TEST(test_error_that_passes_is_no_answer),
		TEST(test_limit_of_a_role_is_divided_among_its_pools),
		TEST(test_pools_of_an_entry_share_its_host),
		TEST(test_user_may_be_auto_where_the_database_has_a_number),
		TEST(test_refused_login_lowers_the_size_for_a_minute),
		TEST(test_larger_size_is_for_clients_that_wait_already),
		TEST(test_other_failures_do_not),
		TEST(test_size_that_is_not_known_closes_no_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
