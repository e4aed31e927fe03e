/* SPDX-License-Identifier: ISC */
/*
 * Logins behind a PROXY header: in which parts it comes, which sources may send it, and what a
 * client that has one is taken for.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "net/proxy_header.h"
#include "session/link/peer_credentials.h"
#include "session/login/client_accept.h"
#include "support/fakes/fake_login.h"
#include "wire/message.h"
#include "wire/startup.h"

/* fake_accept() makes clients from 192.0.2.1:50000. */
#define LINE "PROXY TCP4 10.1.2.3 192.0.2.9 4660 6432\r\n"
#define LOCAL "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"
#define NOT_TOLD "\r\n\r\n\0\r\nQUIT\n\x21\0\0\0"
#define STARTUP "\0\0\0\x20\0\3\0\0user\0alice\0database\0db\0"

enum { LINE_SIZE = sizeof(LINE) - 1, BINARY_SIZE = 16 };

static void start_with(const char *settings)
{
	char config[500];

	snprintf(config, sizeof(config),
		"[databases]\n"
		"db = host=/tmp\n"
		"[pgbouncer]\n"
		"auth_type = trust\n"
		"%s",
		settings);
	fake_start(config);
	fake_user("alice", "");
	fake_pool("db", "alice");
}

static int start_optional(void **state)
{
	(void)state;
	start_with("proxy_protocol = optional\n"
		   "proxy_networks = 10.0.0.0/8, 192.0.2.1 unix\n");
	return 0;
}

static int start_required(void **state)
{
	(void)state;
	start_with("proxy_protocol = required\n"
		   "proxy_networks = 192.0.2.0/24, unix\n");
	return 0;
}

static int start_elsewhere(void **state)
{
	(void)state;
	start_with("proxy_protocol = required\n"
		   "proxy_networks = 10.0.0.0/8\n");
	return 0;
}

static int start_off(void **state)
{
	(void)state;
	start_with("proxy_networks = 0.0.0.0/0\n");
	return 0;
}

static void send_startup_message(struct endpoint *client)
{
	send_bytes(client, STARTUP, sizeof(STARTUP));
}

static void assert_remote(struct endpoint *client, const char *text)
{
	char out[ADDRESS_TEXT_SIZE];

	assert_string_equal(address_text(&endpoint_client(client)->link.remote, out), text);
}

static void assert_logged_in_from(struct endpoint *client, const char *text)
{
	read_letters(client);
	assert_state(client, CLIENT_IDLE);
	assert_remote(client, text);
}

static void assert_refused(struct endpoint *client, const char *fault)
{
	char text[100];

	snprintf(text, sizeof(text), "PROXY header refused: %s", fault);
	assert_closed_with_error(client, "08P01", text);
	assert_int_equal(fake_registry.helds.used, 0);
}

/* --- parts -------------------------------------------------------------------------------- */

static void test_header_may_arrive_byte_by_byte(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	for (size_t i = 0; i < LINE_SIZE; i++) {
		assert_remote(client, "192.0.2.1:50000");
		send_bytes(client, LINE + i, 1);
	}
	assert_remote(client, "10.1.2.3:4660");
	for (size_t i = 0; i < sizeof(STARTUP); i++)
		send_bytes(client, STARTUP + i, 1);
	assert_logged_in_from(client, "10.1.2.3:4660");
}

static void test_header_may_arrive_with_the_startup_message(void **state)
{
	static const char bytes[] = LINE STARTUP;

	(void)state;
	for (size_t first = 1; first < sizeof(bytes); first++) {
		struct endpoint *client = fake_accept(-1);

		send_bytes(client, bytes, first);
		send_bytes(client, bytes + first, sizeof(bytes) - first);
		assert_logged_in_from(client, "10.1.2.3:4660");
		disconnect(client);
	}
}

/* The most that one receive brings, with a header of the greatest size before it. */
static void test_longest_header_leaves_room_for_what_follows(void **state)
{
	static uint8_t bytes[PROXY_HEADER_MAX + LOOP_RECEIVE_SIZE];
	struct endpoint *client = fake_accept(-1);

	(void)state;
	memcpy(bytes, LOCAL, BINARY_SIZE);
	bytes[14] = (PROXY_HEADER_MAX - BINARY_SIZE) >> 8;
	bytes[15] = (PROXY_HEADER_MAX - BINARY_SIZE) & 0xff;
	send_bytes(client, bytes, PROXY_HEADER_MAX - 1);
	assert_int_equal(endpoint_client(client)->link.held_length, PROXY_HEADER_MAX - 1);
	send_bytes(client, bytes + PROXY_HEADER_MAX - 1, sizeof(bytes) - PROXY_HEADER_MAX + 1);
	assert_true(is_closed(client)); /* what followed was no StartupMessage */
	assert_int_equal(fake_registry.helds.used, 0);
}

static void test_incomplete_header_is_closed_by_the_login_timeout(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_bytes(client, LINE, LINE_SIZE - 1);
	fake_advance(59 * USEC_PER_SEC);
	send_bytes(client, "\r", 1); /* time is counted from the accept */
	assert_true(is_closed(client));
	client = fake_accept(-1);
	send_bytes(client, LINE, LINE_SIZE - 1);
	fake_advance(61 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "client_login_timeout");
	assert_int_equal(fake_registry.helds.used, 0);
}

/* --- sources ------------------------------------------------------------------------------ */

static void test_header_is_optional(void **state)
{
	(void)state;
	assert_logged_in_from(startup("alice", "db"), "192.0.2.1:50000");
}

static void test_login_without_a_required_header_is_refused(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_startup_message(client);
	assert_closed_with_error(client, "08P01", "PROXY header missing (proxy_protocol)");
	client = fake_accept(-1);
	send_bytes(client, LINE, LINE_SIZE);
	send_startup_message(client);
	assert_logged_in_from(client, "10.1.2.3:4660");
	client = fake_accept(-1);
	send_bytes(client, LOCAL, BINARY_SIZE);
	send_startup_message(client);
	assert_logged_in_from(client, "192.0.2.1:50000");
}

/* A peer forwards it by a connection of its own; its key says enough. */
static void test_cancel_request_needs_no_header(void **state)
{
	struct endpoint *client = fake_accept(-1);
	struct buffer message;

	(void)state;
	buffer_init(&message);
	startup_write_cancel(&message, "12345678", 8);
	send_buffer(client, &message);
	assert_true(is_closed(client));
	assert_int_equal(fake_registry.counters.cancel_requests[CANCEL_UNKNOWN_KEY], 1);
}

static void test_header_from_elsewhere_is_refused(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	/* As soon as it is clear that it is one. */
	send_bytes(client, LINE, 5);
	assert_state(client, CLIENT_GREETING);
	send_bytes(client, LINE + 5, 1);
	assert_refused(client, "its source is not in proxy_networks");
	client = fake_accept(-1);
	send_bytes(client, LOCAL, 12);
	assert_refused(client, "its source is not in proxy_networks");
	/* A client that comes directly needs none. */
	assert_logged_in_from(startup("alice", "db"), "192.0.2.1:50000");
}

static void test_header_is_refused_while_none_is_expected(void **state)
{
	struct endpoint *client = fake_accept(-1);

	(void)state;
	send_bytes(client, LINE, LINE_SIZE);
	assert_refused(client, "proxy_protocol is off");
	client = fake_accept(-1);
	send_bytes(client, NOT_TOLD, BINARY_SIZE);
	assert_refused(client, "proxy_protocol is off");
	client = fake_accept(-1);
	send_bytes(client, "POST /", 6);
	assert_true(is_closed(client));
	assert_int_equal(fake_registry.helds.used, 0);
}

/* --- mistakes ----------------------------------------------------------------------------- */

static void test_second_header_is_refused(void **state)
{
	static const char *const headers[] = {LINE, LOCAL, NOT_TOLD};
	static const size_t sizes[] = {LINE_SIZE, BINARY_SIZE, BINARY_SIZE};

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		char both[2 * LINE_SIZE];
		struct endpoint *client = fake_accept(-1);

		memcpy(both, headers[i / 3], sizes[i / 3]);
		memcpy(both + sizes[i / 3], headers[i % 3], sizes[i % 3]);
		send_bytes(client, both, sizes[i / 3] + sizes[i % 3]);
		assert_refused(client, "it is the second one");
		client = fake_accept(-1);
		send_bytes(client, headers[i / 3], sizes[i / 3]);
		send_bytes(client, headers[i % 3], sizes[i % 3]);
		assert_refused(client, "it is the second one");
	}
}

static void test_malformed_header_is_refused(void **state)
{
	struct endpoint *client = fake_accept(-1);
	char line[200];

	(void)state;
	send_bytes(client, "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", 31);
	assert_refused(client, "it has a character that is not printable ASCII");
	memset(line, ' ', sizeof(line));
	memcpy(line, "PROXY UNKNOWN", 13);
	client = fake_accept(-1);
	send_bytes(client, line, 105);
	assert_state(client, CLIENT_GREETING);
	send_bytes(client, line, 1);
	assert_refused(client, "its line is longer than 107 bytes");
	client = fake_accept(-1);
	send_bytes(client, "\r\n\r\n\0\r\nQUIT\n\x31", 13);
	assert_refused(client, "its version is not 2");
	client = fake_accept(-1);
	send_bytes(client, "PROXIMITY", 9); /* no header, and no message */
	assert_true(is_closed(client));
	assert_int_equal(fake_registry.helds.used, 0);
}

static void test_header_behind_a_message_is_refused(void **state)
{
	struct endpoint *client = fake_accept(-1);
	struct buffer request;

	(void)state;
	buffer_init(&request);
	startup_write_request(&request, SSL_REQUEST_CODE);
	send_buffer(client, &request);
	scripted_forget_output(client->script); /* N */
	send_bytes(client, LINE, LINE_SIZE);
	assert_refused(client, "it is not at the beginning");
}

/* --- what a client is taken for ----------------------------------------------------------- */

static void test_clients_are_counted_by_their_real_addresses(void **state)
{
	struct endpoint *clients[3];

	(void)state;
	fake_set("max_client_conn_per_address", "1");
	for (unsigned i = 0; i < 2; i++) {
		clients[i] = fake_accept(-1);
		send_bytes(clients[i], i ? LINE : "PROXY TCP4 10.1.2.4 10.0.0.1 1 2\r\n",
			i ? LINE_SIZE : 34);
		send_startup_message(clients[i]);
		read_letters(clients[i]);
		assert_state(clients[i], CLIENT_IDLE);
	}
	/* While no header has come it is counted for the proxy. */
	clients[2] = fake_accept(-1);
	assert_true(sources_follow(&fake_process));
	send_bytes(clients[2], LINE, LINE_SIZE);
	send_startup_message(clients[2]);
	assert_closed_with_error(clients[2], "53300",
		"client connections exceeded (max_client_conn_per_address)");
	disconnect(clients[0]);
	disconnect(clients[1]);
	assert_null(fake_process.sources.by_address);
}

/* Two connected Unix sockets, both of this process. */
static int pair[2];

static struct endpoint *accept_unix(void)
{
	const struct sockaddr from = {.sa_family = AF_UNIX};
	struct endpoint *client;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	client_accept(&fake_registry, -1, &from, sizeof(from), true);
	client = fake_next_endpoint(NULL);
	/* A scripted stream has no socket, so that accepting it has found no process. */
	endpoint_client(client)->link.stream.fd = pair[0];
	endpoint_client(client)->link.remote.pid = getpid();
	return client;
}

static void close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static void assert_process(struct endpoint *client, uid_t uid)
{
	struct ucred peer;

	peer_credentials_read(endpoint_client(client), &peer);
	assert_int_equal(peer.uid, uid);
}

static void test_process_behind_a_proxy_is_unknown(void **state)
{
	struct endpoint *client = accept_unix();

	(void)state;
	/* The proxy's own connection is that of its process; that of pgusher may not log in. */
	send_bytes(client, LOCAL, BINARY_SIZE);
	assert_state(client, CLIENT_GREETING);
	assert_int_equal(endpoint_client(client)->link.remote.pid, getpid());
	assert_process(client, getuid());
	close_pair();
	/* A relayed one is not, also if the header has no address. */
	client = accept_unix();
	send_bytes(client, NOT_TOLD, BINARY_SIZE);
	send_startup_message(client);
	assert_logged_in_from(client, "unix:6432");
	assert_process(client, (uid_t)-1);
	close_pair();
	client = accept_unix();
	send_bytes(client, LINE, LINE_SIZE);
	send_startup_message(client);
	assert_logged_in_from(client, "10.1.2.3:4660");
	assert_process(client, (uid_t)-1);
	close_pair();
}

#define TEST(name, start) cmocka_unit_test_setup_teardown(name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_header_may_arrive_byte_by_byte, start_optional),
		TEST(test_header_may_arrive_with_the_startup_message, start_required),
		TEST(test_longest_header_leaves_room_for_what_follows, start_optional),
		TEST(test_incomplete_header_is_closed_by_the_login_timeout, start_optional),
		TEST(test_header_is_optional, start_optional),
		TEST(test_login_without_a_required_header_is_refused, start_required),
		TEST(test_cancel_request_needs_no_header, start_required),
		TEST(test_header_from_elsewhere_is_refused, start_elsewhere),
		TEST(test_header_is_refused_while_none_is_expected, start_off),
		TEST(test_second_header_is_refused, start_required),
		TEST(test_malformed_header_is_refused, start_optional),
		TEST(test_header_behind_a_message_is_refused, start_optional),
		TEST(test_clients_are_counted_by_their_real_addresses, start_required),
		TEST(test_process_behind_a_proxy_is_unknown, start_optional),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
