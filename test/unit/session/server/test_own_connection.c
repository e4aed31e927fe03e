/* SPDX-License-Identifier: ISC */
/* Which clients are server connections of this process. */
#include <netinet/in.h>
#include <unistd.h>

#include "session/server/own_connection.h"
#include "support/fakes/fake_pool.h"

static struct pool *pool;
static int here = -1; /* a socket with the local address of all clients */

static int start(void **state)
{
	const struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)state;
	pool = fake_start_pool("auth_type = trust\n");
	here = socket(AF_INET, SOCK_DGRAM, 0);
	return bind(here, (const struct sockaddr *)&any, sizeof(any));
}

static int end(void **state)
{
	close(here);
	return fake_end(state);
}

static struct address address(uint8_t last, uint16_t port)
{
	return (struct address){AF_INET, port, {.bytes = {127, 0, 0, last}}};
}

/* A server that logs in, with a socket at this address, to that one. */
static struct server_link *log_in_from_to(struct address local, struct address remote)
{
	struct endpoint *client = fake_client(pool);
	struct endpoint *server;

	send_letters(client, "Q");
	server = fake_launched();
	assert_non_null(server);
	endpoint_server(server)->link.remote = remote;
	own_connection_note(endpoint_server(server), &local);
	return endpoint_server(server);
}

static struct server_link *log_in_from(struct address local)
{
	return log_in_from_to(local, address_local(here));
}

static bool is_own_that_says(struct address remote, const char *message)
{
	struct client_link client = {
		.link = {.remote = remote, .stream = {.loop = &fake_loop, .fd = here}}};
	char database[64] = "asked for";
	const bool is = own_connection_is_client(
		&client, message, strlen(message), database, sizeof(database));

	assert_string_equal(database, is && remote.family == AF_INET ? "db" : "asked for");
	return is;
}

static bool is_own(struct address remote)
{
	return is_own_that_says(remote, "greeting");
}

static void test_client_at_the_address_of_a_server_is_own(void **state)
{
	(void)state;
	log_in_from(address(1, 40000));
	assert_true(is_own(address(1, 40000)));
	assert_false(is_own(address(2, 40000)));
	assert_false(is_own(address(1, 40001)));
	/* The same count by port. */
	assert_false(is_own(address(1, 40000 + OWN_PORTS)));
}

/* The kernel may give one port to two connections; a rule of the network shows by the next one. */
static void test_server_that_goes_elsewhere_is_none_but_at_the_second_time(void **state)
{
	struct server_link *server = log_in_from_to(address(1, 40000), address(1, 5432));

	(void)state;
	own_connection_note_startup(server, "greeting", strlen("greeting"));
	assert_false(is_own(address(1, 40000)));
	assert_true(is_own(address(1, 40000)));
	fake_advance(2 * USEC_PER_SEC);
	assert_false(is_own(address(1, 40000)));
}

static void test_client_that_says_something_else_is_none(void **state)
{
	struct server_link *server = log_in_from_to(address(1, 40000), address(1, 5432));
	const struct address again = address(1, 40000);

	(void)state;
	/* Before the server has said anything, and after. */
	assert_false(is_own(address(1, 40000)));
	assert_false(is_own(address(1, 40000)));
	own_connection_note_startup(server, "greeting", strlen("greeting"));
	for (unsigned i = 0; i < 3; i++)
		assert_false(is_own_that_says(address(1, 40000), "greetings"));
	/* Such clients are not counted either. */
	assert_false(is_own(address(1, 40000)));
	/* What it said to another host is not said to this one. */
	own_connection_note(server, &again);
	assert_false(is_own(address(1, 40000)));
}

static void test_server_is_forgotten_after_its_login(void **state)
{
	struct server_link *server;

	(void)state;
	server = log_in_from(address(1, 40000));
	own_connection_forget(server);
	assert_false(is_own(address(1, 40000)));
	own_connection_forget(server);
	assert_int_equal(fake_process.own_connections.ports[40000 % OWN_PORTS], 0);
}

static void test_server_that_goes_on_with_another_host_has_another_address(void **state)
{
	const struct address second = address(1, 40001);
	struct server_link *server;

	(void)state;
	server = log_in_from(address(1, 40000));
	own_connection_note(server, &second);
	assert_false(is_own(address(1, 40000)));
	assert_true(is_own(second));
	assert_int_equal(fake_process.own_connections.ports[40000 % OWN_PORTS], 0);
}

static void test_client_of_this_process_at_a_unix_socket_is_own(void **state)
{
	(void)state;
	assert_true(is_own((struct address){AF_UNIX, 6432, {.pid = getpid()}}));
	assert_false(is_own((struct address){AF_UNIX, 6432, {.pid = getpid() + 1}}));
	assert_false(is_own((struct address){AF_UNIX, 6432, {.pid = 0}}));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(client_at_the_address_of_a_server_is_own),
		TEST(server_that_goes_elsewhere_is_none_but_at_the_second_time),
		TEST(client_that_says_something_else_is_none),
		TEST(server_is_forgotten_after_its_login),
		TEST(server_that_goes_on_with_another_host_has_another_address),
		TEST(client_of_this_process_at_a_unix_socket_is_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
