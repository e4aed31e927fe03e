/* SPDX-License-Identifier: ISC */
/* The connections that watch hosts: when they ask, when they are opened again, and their end. */
#include "daemon/janitor.h"
#include "model/host/host_items.h"
#include "support/fakes/fake_pool.h"
#include "wire/writer.h"

static struct janitor janitor;
static struct pool *pool;
static struct endpoint *server;

static int start_with(const char *hosts)
{
	char config[500];

	snprintf(config, sizeof(config),
		"[databases]\ndb = host=%s target_session_attrs=primary\n[pgbouncer]\n"
		"pool_mode = transaction\nserver_reset_query =\nserver_check_delay = 1000\n"
		"query_wait_notify = 0\nserver_idle_timeout = 0\nserver_lifetime = 3600\n"
		"server_tls_sslmode = disable\n",
		hosts);
	fake_start(config);
	pool = fake_pool("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	fake_client(pool);
	fake_advance(USEC_PER_SEC);
	server = fake_launched();
	assert_non_null(server);
	assert_true(endpoint_server(server)->watches);
	return 0;
}

static int start(void **state)
{
	(void)state;
	return start_with("10.0.0.1");
}

static int start_two(void **state)
{
	(void)state;
	return start_with("10.0.0.1,10.0.0.2");
}

static int stop(void **state)
{
	janitor_stop(&janitor);
	return fake_end(state);
}

static void log_in(struct endpoint *end)
{
	fake_connected(end, 0);
	send_letters(end, "R");
	send_parameter_status(end, "in_hot_standby", "off");
	send_letters(end, "KZ");
}

static void answer_probe(struct endpoint *end)
{
	static const char row[] = "D\0\0\0\x10\0\2\0\0\0\1f\0\0\0\1f";

	send_bytes(end, row, sizeof(row) - 1);
	send_letters(end, "CZ");
}

static struct host *host_of(struct endpoint *end)
{
	return endpoint_server(end)->at;
}

/* Returns how many connections are launched within this time; each logs in and is lost. */
static unsigned launches(usec_t time, bool answers)
{
	unsigned count = 0;

	for (usec_t passed = 0; passed < time; passed += USEC_PER_SEC / 20) {
		struct endpoint *next = fake_launched();

		if (next) {
			count++;
			log_in(next);
			if (answers)
				answer_probe(next);
			disconnect(next);
		}
		fake_advance(USEC_PER_SEC / 20);
	}
	return count;
}

/* --- asking ------------------------------------------------------------------------------- */

static void test_host_is_asked_at_intervals(void **state)
{
	(void)state;
	log_in(server);
	answer_probe(server);
	read_letters(server);
	fake_advance(4 * USEC_PER_SEC);
	assert_received(server, "");
	fake_advance(2 * USEC_PER_SEC);
	assert_received(server, "Q");
	answer_probe(server);
	fake_advance(3 * USEC_PER_SEC);
	assert_false(is_closed(server));
}

static void test_host_that_does_not_answer_is_given_up(void **state)
{
	(void)state;
	log_in(server);
	fake_advance(6 * USEC_PER_SEC);
	assert_closed(server);
	assert_true(fake_logged("does not answer"));
}

static void test_servers_of_a_host_that_does_not_answer_are_retired(void **state)
{
	struct endpoint *used = fake_server(pool);

	(void)state;
	log_in(server);
	answer_probe(server);
	host_use(endpoint_server(used), host_of(server));
	/* The next probe is not answered. */
	fake_advance(12 * USEC_PER_SEC);
	assert_closed(server);
	assert_closed(used);
}

/* What another server is asked is no question to the connection that watches. */
static void test_host_whose_other_servers_are_asked_is_not_given_up(void **state)
{
	struct endpoint *used;

	(void)state;
	log_in(server);
	answer_probe(server);
	read_letters(server);
	used = fake_server(pool);
	host_use(endpoint_server(used), host_of(server));
	fake_set("server_check_role", "always");
	server_enter(endpoint_server(used), SERVER_STALE);
	fake_advance(2 * USEC_PER_SEC);
	send_query(fake_client(pool), "x");
	assert_received(used, "Q");
	answer_probe(used);
	fake_advance(4 * USEC_PER_SEC);
	assert_received(server, "Q");
	answer_probe(server);
	fake_advance(4 * USEC_PER_SEC);
	assert_false(is_closed(server));
	assert_false(fake_logged("does not answer"));
}

static void refuse(const char *sqlstate)
{
	send_error(server, sqlstate, "no");
	send_letters(server, "Z");
}

static void test_only_a_refusal_for_good_shortens_the_question(void **state)
{
	(void)state;
	log_in(server);
	refuse("53200");
	assert_int_equal(host_of(server)->question, HOST_ASKED_ALL);
	fake_advance(6 * USEC_PER_SEC);
	refuse("42501");
	assert_int_equal(host_of(server)->question, HOST_ASKED_ROLE);
	fake_advance(6 * USEC_PER_SEC);
	refuse("XX000");
	assert_int_equal(host_of(server)->question, HOST_ASKED_ROLE);
}

/* --- the end of a connection -------------------------------------------------------------- */

static void test_connection_that_ends_is_opened_again_at_once(void **state)
{
	(void)state;
	log_in(server);
	answer_probe(server);
	fake_advance(2 * USEC_PER_SEC);
	disconnect(server);
	fake_turn();
	assert_non_null(fake_launched());
}

static void test_host_that_closes_after_its_login_is_not_dialled_all_the_time(void **state)
{
	(void)state;
	log_in(server);
	disconnect(server);
	assert_in_range(launches(10 * USEC_PER_SEC, false), 1, 3);
}

static void test_host_that_closes_after_its_answer_is_not_dialled_all_the_time(void **state)
{
	(void)state;
	log_in(server);
	answer_probe(server);
	disconnect(server);
	assert_in_range(launches(10 * USEC_PER_SEC, true), 1, 11);
}

/* --- the end of a host -------------------------------------------------------------------- */

static void test_host_of_an_old_address_ends_with_its_connection(void **state)
{
	(void)state;
	log_in(server);
	answer_probe(server);
	/* As if the DNS had moved the name. */
	hosts_leave(&fake_registry.hosts, "10.0.0.1", NULL);
	server_retire(endpoint_server(server), SERVER_CLOSED_DNS);
	fake_advance(USEC_PER_SEC);
	assert_closed(server);
}

/* --- a server that is closed by what it tells ---------------------------------------------- */

/* A server of the first host, of which no role is known, and that has failed since. */
static struct endpoint *server_of_lost_host(void)
{
	struct host *lost, *other;
	struct host_item item;

	stop(NULL);
	fake_start("[databases]\ndb = host=10.0.0.1,10.0.0.2 target_session_attrs=primary\n"
		   "[pgbouncer]\npool_mode = transaction\nserver_reset_query =\n"
		   "host_check_interval = 0\n");
	pool = fake_pool("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	item = host_items_nth(pool, 0);
	lost = hosts_open(&fake_registry.hosts, &item, NULL);
	item = host_items_nth(pool, 1);
	other = hosts_open(&fake_registry.hosts, &item, NULL);
	host_set_role(other, HOST_ROLE_PRIMARY, HOST_TOLD_BY_LOGIN, loop_now(&fake_loop));
	host_failed(lost, "no", loop_now(&fake_loop), &fake_loop.random);
	server = fake_server(pool);
	host_use(endpoint_server(server), lost);
	return server;
}

static void test_report_may_close_its_own_server(void **state)
{
	struct endpoint *client;

	(void)state;
	server_of_lost_host();
	client = fake_client(pool);
	send_letters(client, "Q");
	assert_received(server, "Q");
	send_parameter_status(server, "in_hot_standby", "off");
	assert_closed(server);
	assert_closed(client);
}

static void test_answer_may_close_its_own_server(void **state)
{
	static const char row[] = "D\0\0\0\x10\0\2\0\0\0\1f\0\0\0\1f"
				  "S\0\0\0\x18"
				  "client_encoding\0"
				  "UTF";

	(void)state;
	server_of_lost_host();
	endpoint_server(server)->role_doubted = true;
	server_enter(endpoint_server(server), SERVER_STALE);
	send_letters(fake_client(pool), "Q");
	assert_received(server, "Q");
	send_bytes(server, row, sizeof(row));
	assert_closed(server);
}

/* A doubt that comes after the question is not forgotten with its answer. */
static void test_server_that_is_doubted_while_asked_is_asked_again(void **state)
{
	struct endpoint *used;

	(void)state;
	log_in(server);
	answer_probe(server);
	used = fake_server(pool);
	host_use(endpoint_server(used), host_of(server));
	endpoint_server(used)->role_doubted = true;
	server_enter(endpoint_server(used), SERVER_STALE);
	send_query(fake_client(pool), "x");
	assert_received(used, "Q");
	endpoint_server(used)->role_doubted = true;
	answer_probe(used);
	assert_received(used, "Q");
	assert_state(used, SERVER_CHECKING);
	answer_probe(used);
	assert_state(used, SERVER_PAIRED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(host_is_asked_at_intervals),
		TEST(host_that_does_not_answer_is_given_up),
		cmocka_unit_test_setup_teardown(
			test_servers_of_a_host_that_does_not_answer_are_retired, start_two,
			stop),
		TEST(host_whose_other_servers_are_asked_is_not_given_up),
		TEST(only_a_refusal_for_good_shortens_the_question),
		TEST(connection_that_ends_is_opened_again_at_once),
		TEST(host_that_closes_after_its_login_is_not_dialled_all_the_time),
		TEST(host_that_closes_after_its_answer_is_not_dialled_all_the_time),
		TEST(host_of_an_old_address_ends_with_its_connection),
		TEST(report_may_close_its_own_server),
		TEST(answer_may_close_its_own_server),
		TEST(server_that_is_doubted_while_asked_is_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
