/* SPDX-License-Identifier: ISC */
/* To which host a login goes, and when it goes on to the next. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "session/pool/launch.h"
#include "session/server/server_login.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"

static struct pool *pool;
static struct actor *server; /* of the attempt that goes on */

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

/* It connects to the socket in this folder. */
static void assert_at(const char *folder)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/.s.PGSQL.%u", folder, pool->database->config->port);
	assert_string_equal(
		((const struct sockaddr_un *)&actor_server(server)->where)->sun_path, path);
}

static void launch(const char *folder)
{
	assert_true(launch_server(pool, false));
	server = fake_launched();
	assert_non_null(server);
	assert_at(folder);
}

/* The present host refuses: the attempt goes on at the one in this folder. */
static void refused_then(const char *folder)
{
	fake_connected(server, ECONNREFUSED);
	server = fake_launched();
	assert_non_null(server);
	assert_at(folder);
}

static void log_in(void)
{
	fake_connected(server, 0);
	say(server, "RKZ");
	assert_state(server, SERVER_IDLE);
}

/* Time passes, with a look at the login as the regular upkeep has it. */
static void pass(usec_t time)
{
	fake_advance(time);
	server_login_hurry(actor_server(server), loop_now(&fake_loop));
}

/* The login has gone on to the next host, as nothing was heard of the one before. */
static void assert_went_on(const char *folder)
{
	server = fake_launched();
	assert_non_null(server);
	assert_at(folder);
	assert_state(server, SERVER_CONNECTING);
}

static void assert_failed(const char *reason)
{
	char line[200];

	assert_gone(server);
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

static void test_a_host_that_was_tried_in_vain_has_had_its_turn(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c");
	launch("/a");
	refused_then("/b");
	log_in();
	launch("/c");
	log_in();
}

static void test_without_balancing_the_next_host_is_for_failures(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c load_balance_hosts=disable");
	launch("/a");
	log_in();
	launch("/a");
	refused_then("/b");
	refused_then("/c");
	log_in();
	launch("/c");
	log_in();
	launch("/c");
	refused_then("/a");
	log_in();
}

/* A failure that is not the host's silence ends the attempt; the next one takes the next host. */
static void test_without_balancing_a_refused_login_moves_on(void **state)
{
	(void)state;
	start_with("host=/a,/b load_balance_hosts=disable");
	launch("/a");
	fake_connected(server, 0);
	say_error(server, "57P03", "the database system is starting up");
	assert_gone(server);
	fake_advance(15 * USEC_PER_SEC);
	launch("/b");
	log_in();
	launch("/b");
}

static void test_the_attempt_fails_when_all_hosts_have(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c");
	launch("/a");
	refused_then("/b");
	assert_false(pool->failing);
	refused_then("/c");
	assert_false(pool->failing);
	fake_connected(server, ECONNREFUSED);
	assert_null(fake_launched());
	assert_failed("connect failed");
}

static void test_the_attempt_fails_at_once_when_all_hosts_do(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c");
	fake_refuses_connects = true;
	assert_false(launch_server(pool, false));
	assert_null(fake_launched());
	assert_true(pool->failing);
	assert_int_equal(pool->next_host, 3);
	assert_int_equal(pool_servers(pool), 0);
	fake_refuses_connects = false;
}

static void test_one_of_many_sockets_may_have_no_path(void **state)
{
	char database[300] = "host=/";

	(void)state;
	memset(database + 6, 'x', 200);
	strcat(database, ",@abstract");
	start_with(database);
	assert_true(launch_server(pool, false));
	server = fake_launched();
	assert_string_equal(
		((const struct sockaddr_un *)&actor_server(server)->where)->sun_path + 1,
		"abstract/.s.PGSQL.5432");
	assert_int_equal(actor_server(server)->host, 1);
}

static void test_an_address_and_a_socket_may_stand_in_one_list(void **state)
{
	(void)state;
	start_with("host=192.0.2.7,fd00::1,/c port=77");
	assert_true(launch_server(pool, false));
	/* A script has no descriptor to set options of, so both addresses fail at once. */
	assert_true(fake_logged("sbuf_connect failed to connect to 192.0.2.7:77: "));
	assert_true(fake_logged("sbuf_connect failed to connect to [fd00::1]:77: "));
	assert_gone(fake_launched());
	assert_gone(fake_launched());
	server = fake_launched();
	assert_at("/c");
	assert_int_equal(actor_server(server)->host, 2);
	log_in();
}

static void test_a_cancel_request_goes_to_its_servers_host_only(void **state)
{
	struct actor *target;

	(void)state;
	start_with("host=/a,/b");
	launch("/a");
	log_in();
	target = server;
	assert_true(server_login_begin(pool, actor_server(target), fake_registry.login_owner));
	server = fake_launched();
	assert_at("/a");
	fake_connected(server, ECONNREFUSED);
	assert_null(fake_launched());
	assert_gone(server);
	assert_int_equal(pool->next_host, 1);
}

/* --- silence ------------------------------------------------------------------------------ */

static void test_a_silent_host_has_its_share_of_the_time(void **state)
{
	(void)state;
	start_with("host=/a,/b,/c");
	launch("/a");
	pass(3900 * USEC_PER_MSEC);
	assert_null(fake_launched());
	pass(200 * USEC_PER_MSEC);
	assert_went_on("/b");
	assert_true(fake_logged("no answer from the server, trying the next one"));
	pass(4 * USEC_PER_SEC);
	assert_went_on("/c");
	/* The last one has all that is left: that is the limit of every login. */
	pass(10 * USEC_PER_SEC);
	assert_null(fake_launched());
	log_in();
}

static void test_a_host_that_accepts_and_says_nothing_is_silent(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	launch("/a");
	fake_connected(server, 0);
	assert_state(server, SERVER_AUTHENTICATING);
	pass(6100 * USEC_PER_MSEC);
	assert_went_on("/b");
	log_in();
}

static void test_a_host_that_has_spoken_is_waited_for(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	launch("/a");
	fake_connected(server, 0);
	say(server, "R");
	pass(11 * USEC_PER_SEC);
	assert_null(fake_launched());
	say(server, "KZ");
	assert_state(server, SERVER_IDLE);
}

static void test_a_host_that_hangs_up_without_a_word_is_none(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	launch("/a");
	fake_connected(server, 0);
	leave(server);
	assert_went_on("/b");
	fake_connected(server, 0);
	say(server, "R");
	leave(server);
	assert_failed("server conn crashed?");
}

static void test_without_a_limit_nobody_is_hurried(void **state)
{
	(void)state;
	start_with("host=/a,/b");
	fake_set("server_connect_timeout", "0");
	launch("/a");
	pass(1000 * USEC_PER_SEC);
	assert_null(fake_launched());
	assert_at("/a");
}

static void test_many_hosts_have_a_second_each_while_there_is_time(void **state)
{
	(void)state;
	start_with(
		"host=/a,/b,/c,/d,/e,/f,/g,/h,/i,/j,/k,/l,/m,/n,/o,/p,/q,/r,/s,/t,/u,/v,/w,/x");
	launch("/a");
	pass(900 * USEC_PER_MSEC);
	assert_null(fake_launched());
	pass(200 * USEC_PER_MSEC);
	assert_went_on("/b");
}

/* --- names -------------------------------------------------------------------------------- */

/* A name server that never answers: only its socket is there. */
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

static void test_a_name_that_is_not_found_in_time_is_left_for_the_next_host(void **state)
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
	server_login_hurry((struct server_link *)link, loop_now(&fake_loop));
	assert_true(fake_logged("no answer from dark.test, trying the next one"));
	assert_went_on("/b");
	log_in();
	resolver_free(fake_registry.resolver);
	fake_registry.resolver = NULL;
	close(fd);
}

/* --- no host ------------------------------------------------------------------------------ */

static void test_without_a_host_the_server_is_at_our_own_sockets(void **state)
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

static void test_a_path_too_long_for_a_socket_fails(void **state)
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
		TEST(a_host_that_was_tried_in_vain_has_had_its_turn),
		TEST(without_balancing_the_next_host_is_for_failures),
		TEST(without_balancing_a_refused_login_moves_on),
		TEST(the_attempt_fails_when_all_hosts_have),
		TEST(the_attempt_fails_at_once_when_all_hosts_do),
		TEST(one_of_many_sockets_may_have_no_path),
		TEST(an_address_and_a_socket_may_stand_in_one_list),
		TEST(a_cancel_request_goes_to_its_servers_host_only),
		TEST(a_silent_host_has_its_share_of_the_time),
		TEST(a_host_that_accepts_and_says_nothing_is_silent),
		TEST(a_host_that_has_spoken_is_waited_for),
		TEST(a_host_that_hangs_up_without_a_word_is_none),
		TEST(without_a_limit_nobody_is_hurried),
		TEST(many_hosts_have_a_second_each_while_there_is_time),
		TEST(a_name_that_is_not_found_in_time_is_left_for_the_next_host),
		TEST(without_a_host_the_server_is_at_our_own_sockets),
		TEST(a_path_too_long_for_a_socket_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
