/* SPDX-License-Identifier: ISC */
/* To which host of a list a server login connects, and when it tries the next host. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/server_upkeep.h"
#include "session/pool/launch.h"
#include "session/server/server_login.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"

static struct pool *pool;
static struct endpoint *server; /* the server of the running attempt */

static void start_with(const char *database)
{
	char config[1600];

	snprintf(config, sizeof(config),
		"[databases]\ndb = %s\n[pgbouncer]\npool_mode = transaction\n"
		"server_connect_timeout = 12\n",
		database);
	fake_start(config);
	pool = fake_pool("db", "alice");
}

/* The server connects to the socket in this folder. */
static void assert_at(const char *folder)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/.s.PGSQL.%u", folder, pool->database->config->port);
	assert_string_equal(
		((const struct sockaddr_un *)&endpoint_server(server)->where)->sun_path, path);
}

static void launch(const char *folder)
{
	assert_true(launch_server(pool, false));
	server = fake_launched();
	assert_non_null(server);
	assert_at(folder);
}

/*
 * The current host refuses the connection: the attempt continues with the host in this folder.
 */
static void refuse_and_expect(const char *folder)
{
	fake_connected(server, ECONNREFUSED);
	server = fake_launched();
	assert_non_null(server);
	assert_at(folder);
}

static void log_in(void)
{
	fake_connected(server, 0);
	send_letters(server, "RKZ");
	assert_state(server, SERVER_IDLE);
}

/* Advances the clock and checks the login once, as the janitor does. */
static void advance(usec_t time)
{
	fake_advance(time);
	server_login_check_progress(endpoint_server(server), loop_now(&fake_loop));
}

/* The current host has timed out: the login continues with the host in this folder. */
static void assert_next_host(const char *folder)
{
	server = fake_launched();
	assert_non_null(server);
	assert_at(folder);
	assert_state(server, SERVER_CONNECTING);
}

static void assert_failed(const char *reason)
{
	char line[200];

	assert_closed(server);
	assert_true(pool->failing);
	assert_string_equal(pool->last_failure.text, reason);
	snprintf(line, sizeof(line), "closing because: %s", reason);
	assert_true(fake_logged(line));
	assert_int_equal(pool_servers(pool), 0);
}

/* --- order -------------------------------------------------------------------------------- */

static void test_hosts_are_used_in_turn(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c port=77");
	for (int i = 0; i < 2; i++) {
		launch("/a");
		log_in();
		launch("/b");
		log_in();
		launch("/c");
		log_in();
	}
}

static void test_host_that_refused_has_used_its_turn(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c");
	launch("/a");
	refuse_and_expect("/b");
	log_in();
	launch("/c");
	log_in();
}

static void test_load_balance_disabled_uses_the_next_host_after_a_failure_only(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c load_balance_hosts=disable");
	launch("/a");
	log_in();
	launch("/a");
	refuse_and_expect("/b");
	refuse_and_expect("/c");
	log_in();
	launch("/c");
	log_in();
	launch("/c");
	refuse_and_expect("/a");
	log_in();
}

/* A refused login ends the attempt, unlike a timeout; the next attempt takes the next host. */
static void test_load_balance_disabled_uses_the_next_host_after_a_refused_login(void **state)
{
	(void)state;
	start_with("host=/a,/b load_balance_hosts=disable");
	launch("/a");
	fake_connected(server, 0);
	send_error(server, "57P03", "the database system is starting up");
	assert_closed(server);
	fake_advance(15 * USEC_PER_SEC);
	launch("/b");
	log_in();
	launch("/b");
}

static void test_each_of_several_logins_tries_every_host(void **state)
{
	static const char *const lists[] = {
		"host=/a,/b", "host=/a,/b load_balance_hosts=disable"};

	(void)state;
	for (size_t i = 0; i < COUNT(lists); i++) {
		struct endpoint *first, *second;

		start_with(lists[i]);
		assert_true(launch_server(pool, false));
		assert_true(launch_server(pool, false));
		first = fake_launched();
		second = fake_launched();
		/* /a is down. In the second list both logins begin with it. */
		server = first;
		refuse_and_expect("/b");
		log_in();
		server = second;
		if (i == 0) {
			assert_at("/b");
		} else {
			assert_at("/a");
			refuse_and_expect("/b");
		}
		log_in();
		assert_false(pool->failing);
		if (i + 1 < COUNT(lists))
			fake_end(NULL);
	}
}

static void test_attempt_fails_when_all_hosts_have_failed(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c");
	launch("/a");
	refuse_and_expect("/b");
	assert_false(pool->failing);
	refuse_and_expect("/c");
	assert_false(pool->failing);
	fake_connected(server, ECONNREFUSED);
	assert_null(fake_launched());
	assert_failed("connect failed");
}

static void test_attempt_fails_at_once_when_no_host_can_be_connected_to(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c");
	fake_connect_error = ECONNREFUSED;
	assert_false(launch_server(pool, false));
	assert_null(fake_launched());
	assert_true(pool->failing);
	assert_int_equal(pool->next_host, 3);
	assert_int_equal(pool_servers(pool), 0);
	fake_connect_error = 0;
}

/* The kernel refuses with EAGAIN to connect to a Unix socket with a full queue. */
static void test_full_queue_of_a_unix_socket_is_tried_again(void **state)
{
	(void)state;
	start_with("host=/a");
	fake_connect_error = EAGAIN;
	assert_true(launch_server(pool, false));
	assert_null(fake_launched());
	fake_advance(3 * USEC_PER_SEC);
	fake_turn();
	assert_false(pool->failing);
	assert_int_equal(pool_servers(pool), 1);
	assert_true(fake_logged("the queue of the server's Unix socket is full, trying again"));
	fake_connect_error = 0;
	fake_advance(USEC_PER_SEC / 5);
	fake_turn();
	server = fake_launched();
	assert_non_null(server);
	assert_at("/a");
	log_in();
	assert_false(pool->failing);
}

static void test_full_queue_is_waited_for_until_the_share_of_its_host_is_over(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	fake_connect_error = EAGAIN;
	assert_true(launch_server(pool, false));
	fake_advance(5 * USEC_PER_SEC);
	server_upkeep_logins(pool, loop_now(&fake_loop));
	assert_int_equal(pool->next_host, 1);
	fake_advance(USEC_PER_SEC);
	fake_connect_error = 0;
	server_upkeep_logins(pool, loop_now(&fake_loop));
	server = fake_launched();
	assert_non_null(server);
	assert_at("/b");
	log_in();
	fake_advance(USEC_PER_SEC);
	fake_turn();
	assert_null(fake_launched());
}

static void test_full_queue_is_a_failure_after_server_connect_timeout(void **state)
{
	(void)state;
	start_with("host=/a");
	fake_connect_error = EAGAIN;
	assert_true(launch_server(pool, false));
	fake_advance(13 * USEC_PER_SEC);
	server_upkeep_logins(pool, loop_now(&fake_loop));
	assert_int_equal(pool_servers(pool), 0);
	assert_true(pool->failing);
	fake_connect_error = 0;
	fake_advance(USEC_PER_SEC);
	fake_turn();
	assert_null(fake_launched());
}

static void test_host_with_a_path_too_long_is_skipped(void **state)
{
	char database[300] = "host=/";

	(void)state;
	memset(database + 6, 'x', 200);
	strcat(database, ",@abstract");
	start_with(database);
	assert_true(launch_server(pool, false));
	server = fake_launched();
	assert_string_equal(
		((const struct sockaddr_un *)&endpoint_server(server)->where)->sun_path + 1,
		"abstract/.s.PGSQL.5432");
	assert_int_equal(endpoint_server(server)->host, 1);
}

static void test_host_list_may_mix_addresses_and_sockets(void **state)
{
	(void)state;
	start_with("host=192.0.2.7,fd00::1,/c port=77");
	assert_true(launch_server(pool, false));
	fake_connected(fake_launched(), ECONNREFUSED);
	fake_connected(fake_launched(), ECONNREFUSED);
	server = fake_launched();
	assert_at("/c");
	assert_int_equal(endpoint_server(server)->host, 2);
	log_in();
}

static void test_cancel_request_is_sent_to_the_host_of_its_server_only(void **state)
{
	struct endpoint *target;

	(void)state;
	start_with("host=/a,/b");
	launch("/a");
	log_in();
	target = server;
	assert_true(
		server_login_begin(pool, endpoint_server(target), fake_registry.login_owner));
	server = fake_launched();
	assert_at("/a");
	fake_connected(server, ECONNREFUSED);
	assert_null(fake_launched());
	assert_closed(server);
	assert_int_equal(pool->next_host, 1);
}

/* --- hosts that do not answer ------------------------------------------------------------- */

static void test_silent_host_has_its_share_of_the_connect_timeout(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c");
	launch("/a");
	advance(3900 * USEC_PER_MSEC);
	assert_null(fake_launched());
	advance(200 * USEC_PER_MSEC);
	assert_next_host("/b");
	assert_true(fake_logged("no answer from the server, trying the next one"));
	advance(4 * USEC_PER_SEC);
	assert_next_host("/c");
	/* The last host has the remaining time: its limit is that of every login. */
	advance(10 * USEC_PER_SEC);
	assert_null(fake_launched());
	log_in();
}

static void test_host_that_accepts_without_an_answer_times_out(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	launch("/a");
	fake_connected(server, 0);
	assert_state(server, SERVER_AUTHENTICATING);
	advance(6100 * USEC_PER_MSEC);
	assert_next_host("/b");
	log_in();
}

static void test_host_that_has_answered_is_waited_for(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	launch("/a");
	fake_connected(server, 0);
	send_letters(server, "R");
	advance(11 * USEC_PER_SEC);
	assert_null(fake_launched());
	send_letters(server, "KZ");
	assert_state(server, SERVER_IDLE);
}

static void test_host_that_closes_before_any_message_is_skipped(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	launch("/a");
	fake_connected(server, 0);
	disconnect(server);
	assert_next_host("/b");
	fake_connected(server, 0);
	send_letters(server, "R");
	disconnect(server);
	assert_failed("server conn crashed?");
}

static uint64_t timed_out(void)
{
	const struct histogram *found = pool->database->counters->connects[CONNECT_TIMED_OUT];

	return found ? histogram_count(found) : 0;
}

static void test_text_of_a_timeout_says_whether_tcp_was_up(void **state)
{
	(void)state;
	start_with("host=/a");
	launch("/a");
	server_login_time_out(endpoint_server(server));
	assert_failed("connect failed");
	assert_int_equal(timed_out(), 1);
	fake_advance(15 * USEC_PER_SEC);
	launch("/a");
	fake_connected(server, 0);
	server_login_time_out(endpoint_server(server));
	assert_failed("connect timeout");
	assert_int_equal(timed_out(), 2);
}

static void test_no_host_times_out_without_server_connect_timeout(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	fake_set("server_connect_timeout", "0");
	launch("/a");
	advance(1000 * USEC_PER_SEC);
	assert_null(fake_launched());
	assert_at("/a");
}

static void test_each_of_many_hosts_has_at_least_a_second(void **state)
{
	(void)state;
	start_with(
		"host=/a,/b,/c,/d,/e,/f,/g,/h,/i,/j,/k,/l,/m,/n,/o,/p,/q,/r,/s,/t,/u,/v,/w,/x");
	launch("/a");
	advance(900 * USEC_PER_MSEC);
	assert_null(fake_launched());
	advance(200 * USEC_PER_MSEC);
	assert_next_host("/b");
}

/* --- names -------------------------------------------------------------------------------- */

/* A name server that never answers: its socket is open, and never read. */
static int start_silent_resolver(void)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(in);
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char servers[32], why[128];
	const struct resolver_options options = {.servers = servers, .names_max = 10};

	assert_int_equal(bind(fd, (struct sockaddr *)&in, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &length), 0);
	snprintf(servers, sizeof(servers), "127.0.0.1:%d", ntohs(in.sin_port));
	fake_registry.resolver = resolver_new(&fake_loop, &options, why, sizeof(why));
	assert_non_null(fake_registry.resolver);
	return fd;
}

static void test_host_name_that_is_not_resolved_in_time_is_skipped(void **state)
{
	const struct server_link *link;
	int fd;

	(void)state;
	start_with("host=dark.test,/b");
	fd = start_silent_resolver();
	assert_true(launch_server(pool, false));
	assert_null(fake_launched());
	link = server_of(TAILQ_FIRST(&pool->servers[SERVERS_LOGIN]));
	fake_advance(6100 * USEC_PER_MSEC);
	server_login_check_progress((struct server_link *)link, loop_now(&fake_loop));
	assert_true(fake_logged("no answer from dark.test, trying the next one"));
	assert_next_host("/b");
	log_in();
	resolver_free(fake_registry.resolver);
	fake_registry.resolver = NULL;
	close(fd);
}

/* --- no host ------------------------------------------------------------------------------ */

static void test_database_without_a_host_uses_unix_socket_dir(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = dbname=x\n[pgbouncer]\nunix_socket_dir = /run/here\n");
	pool = fake_pool("db", "alice");
	launch("/run/here");
	log_in();
	fake_end(NULL);
	fake_start("[databases]\ndb = dbname=x\n[pgbouncer]\nunix_socket_dir =\n");
	pool = fake_pool("db", "alice");
	assert_false(launch_server(pool, false));
	assert_string_equal(pool->last_failure.text, "cannot connect");
}

static void test_socket_path_that_is_too_long_fails(void **state)
{
	char database[300] = "host=/";

	(void)state;
	memset(database + 6, 'x', 200);
	start_with(database);
	assert_false(launch_server(pool, false));
	assert_true(pool->failing);
	assert_int_equal(pool_servers(pool), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(test_##name, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(hosts_are_used_in_turn),
		TEST(host_that_refused_has_used_its_turn),
		TEST(load_balance_disabled_uses_the_next_host_after_a_failure_only),
		TEST(load_balance_disabled_uses_the_next_host_after_a_refused_login),
		TEST(each_of_several_logins_tries_every_host),
		TEST(attempt_fails_when_all_hosts_have_failed),
		TEST(attempt_fails_at_once_when_no_host_can_be_connected_to),
		TEST(full_queue_of_a_unix_socket_is_tried_again),
		TEST(full_queue_is_waited_for_until_the_share_of_its_host_is_over),
		TEST(full_queue_is_a_failure_after_server_connect_timeout),
		TEST(host_with_a_path_too_long_is_skipped),
		TEST(host_list_may_mix_addresses_and_sockets),
		TEST(cancel_request_is_sent_to_the_host_of_its_server_only),
		TEST(silent_host_has_its_share_of_the_connect_timeout),
		TEST(host_that_accepts_without_an_answer_times_out),
		TEST(host_that_has_answered_is_waited_for),
		TEST(host_that_closes_before_any_message_is_skipped),
		TEST(text_of_a_timeout_says_whether_tcp_was_up),
		TEST(no_host_times_out_without_server_connect_timeout),
		TEST(each_of_many_hosts_has_at_least_a_second),
		TEST(host_name_that_is_not_resolved_in_time_is_skipped),
		TEST(database_without_a_host_uses_unix_socket_dir),
		TEST(socket_path_that_is_too_long_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
