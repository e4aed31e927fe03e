/* SPDX-License-Identifier: ISC */
/* The HTTP server: real sockets, a clock that the test sets. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/http/http.h"

static struct loop loop;
static struct loop_clock loop_clock;
static struct http *http;
static int port;
static usec_t fake_now;

/* What the callbacks have recorded. */
static struct http_request *asked[HTTP_REQUESTS + 8];
static unsigned asked_count;
static unsigned replied_count, released_count;
static int last_code;

static usec_t fake_clock(void)
{
	return fake_now;
}

static void on_asked(void *context, struct http_request *request)
{
	assert_ptr_equal(context, &loop);
	asked[asked_count++] = request;
}

static void on_replied(void *context, const char *path, int code)
{
	assert_ptr_equal(context, &loop);
	assert_non_null(path);
	replied_count++;
	last_code = code;
}

static void on_released(void *owner)
{
	assert_ptr_equal(owner, &released_count);
	released_count++;
}

/* Returns a listening socket; its port becomes the server's. */
static int listening(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 128), 0);
	getsockname(fd, (struct sockaddr *)&at, &length);
	port = ntohs(at.sin_port);
	return fd;
}

static int set_up(void **state)
{
	const struct http_options options = {
		.addresses = "",
		.socket = listening(),
		.asked = on_asked,
		.replied = on_replied,
		.context = &loop,
	};
	char why[128];

	(void)state;
	alarm(60);
	asked_count = replied_count = released_count = 0;
	fake_now = 1000 * USEC_PER_SEC;
	clock_set_source(fake_clock);
	if (!loop_init(&loop, &loop_clock))
		return -1;
	http = http_open(&loop, &options, why, sizeof(why));
	return http ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < asked_count; i++)
		http_reply_text(asked[i], 200, "text/plain", "");
	http_close(http);
	loop_free(&loop);
	clock_set_source(NULL);
	return 0;
}

static void turn(unsigned count)
{
	while (count-- > 0)
		loop_turn(&loop, false);
}

static int connected(const char *said)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	at.sin_port = htons((uint16_t)port);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
		assert_int_equal(errno, EINPROGRESS);
	turn(4);
	if (said[0] != '\0')
		assert_int_equal(send(fd, said, strlen(said), MSG_NOSIGNAL), strlen(said));
	turn(4);
	return fd;
}

static size_t heard_length; /* of the last text heard */

/* Returns all bytes received so far; NULL when the server has not closed the connection yet. */
static const char *heard(int fd)
{
	static char text[8 * 1024 * 1024];
	size_t length = 0;
	ssize_t more;

	turn(4);
	while ((more = recv(fd, text + length, sizeof(text) - 1 - length, 0)) > 0)
		length += (size_t)more;
	text[length] = '\0';
	heard_length = length;
	if (more < 0 && errno == EAGAIN)
		return NULL;
	close(fd);
	return text;
}

#define ask "GET /page?x HTTP/1.1\r\nAccept: this\r\n\r\n"

static void test_a_request_may_be_answered_in_a_later_turn(void **state)
{
	const int fd = connected(ask);
	const struct http_answer answer = {
		200, "text/x", "body", 4, on_released, &released_count};
	const char *text;

	(void)state;
	assert_int_equal(asked_count, 1);
	assert_string_equal(http_path(asked[0]), "/page");
	assert_string_equal(http_header(asked[0], "accept"), "this");
	assert_string_equal(http_header(asked[0], "other"), "");
	assert_null(heard(fd));
	http_reply(asked[--asked_count], &answer);
	text = heard(fd);
	assert_non_null(text);
	assert_non_null(strstr(text, "HTTP/1.1 200 "));
	assert_non_null(strstr(text, "Content-Type: text/x\r\n"));
	assert_non_null(strstr(text, "Connection: close\r\n"));
	assert_non_null(strstr(text, "\r\n\r\nbody"));
	assert_int_equal(released_count, 1);
	assert_int_equal(replied_count, 1);
	assert_int_equal(http_connections(http), 0);
}

static void test_response_to_head_has_no_body(void **state)
{
	const int fd = connected("HEAD / HTTP/1.0\r\n\r\n");
	const struct http_answer answer = {
		200, "text/x", "body", 4, on_released, &released_count};
	const char *text;

	(void)state;
	http_reply(asked[--asked_count], &answer);
	text = heard(fd);
	assert_non_null(strstr(text, "Content-Length: 4\r\n"));
	assert_null(strstr(text, "body"));
	assert_int_equal(released_count, 1);
}

/* A response larger than what the kernel takes at once. */
static void test_client_may_end_its_side_behind_its_request(void **state)
{
	static char body[4 * 1024 * 1024];
	const struct http_answer answer = {
		200, "text/x", body, sizeof(body), on_released, &released_count};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const int fd = connected(i == 0 ? ask : "");
		size_t length = 0;

		if (i > 0) /* the request and its end arrive together */
			assert_int_equal(send(fd, ask, strlen(ask), MSG_NOSIGNAL), strlen(ask));
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		turn(4);
		assert_int_equal(asked_count, 1);
		http_reply(asked[--asked_count], &answer);
		for (unsigned tries = 0; tries < 1000; tries++) {
			const char *text = heard(fd);

			length += heard_length;
			if (text)
				break;
		}
		assert_true(length > sizeof(body));
		assert_int_equal(released_count, i + 1);
	}
}

static void test_request_of_a_closed_connection_may_be_answered(void **state)
{
	const struct http_answer answer = {
		200, "text/x", "body", 4, on_released, &released_count};
	int fds[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		fds[i] = connected(ask);
	assert_int_equal(asked_count, 3);
	close(fds[0]);
	turn(4);
	fake_now += HTTP_TIME + USEC_PER_SEC;
	turn(4);
	fake_now += USEC_PER_SEC; /* deadlines fire a little after such a jump */
	turn(4);
	assert_int_equal(http_connections(http), 0);
	while (asked_count > 0)
		http_reply(asked[--asked_count], &answer);
	turn(4);
	assert_int_equal(released_count, 3);
	assert_string_equal(heard(fds[1]), "");
	assert_string_equal(heard(fds[2]), "");
}

static void test_time_limit_starts_at_the_accept(void **state)
{
	const int fd = connected("G");

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		fake_now += HTTP_TIME / 10;
		assert_null(heard(fd));
		assert_int_equal(send(fd, "E", 1, MSG_NOSIGNAL), 1);
	}
	fake_now += HTTP_TIME / 10 + WHEEL_TICK;
	assert_string_equal(heard(fd), "");
}

/*
 * The oldest connection without a request makes room; one with a request stays as long as
 * possible.
 */
static void test_one_connection_too_many_closes_the_oldest_without_a_request(void **state)
{
	int asker = connected(ask), silent[HTTP_CONNECTIONS], last;

	(void)state;
	for (unsigned i = 0; i < HTTP_CONNECTIONS - 1; i++)
		silent[i] = connected("");
	assert_int_equal(http_connections(http), HTTP_CONNECTIONS);
	last = connected(ask);
	assert_int_equal(http_connections(http), HTTP_CONNECTIONS);
	assert_int_equal(asked_count, 2);
	assert_string_equal(heard(silent[0]), "");
	assert_null(heard(silent[1]));
	while (asked_count > 0)
		http_reply_text(asked[--asked_count], 200, "text/plain", "x");
	assert_non_null(strstr(heard(asker), "200"));
	assert_non_null(strstr(heard(last), "200"));
	for (unsigned i = 1; i < HTTP_CONNECTIONS - 1; i++)
		close(silent[i]);
}

static void test_when_all_have_a_request_the_oldest_is_closed(void **state)
{
	int fds[HTTP_CONNECTIONS + 1];

	(void)state;
	for (unsigned i = 0; i <= HTTP_CONNECTIONS; i++)
		fds[i] = connected(ask);
	assert_int_equal(asked_count, HTTP_CONNECTIONS + 1);
	assert_int_equal(http_connections(http), HTTP_CONNECTIONS);
	assert_string_equal(heard(fds[0]), "");
	for (unsigned i = 1; i <= HTTP_CONNECTIONS; i++)
		close(fds[i]);
}

static void test_number_of_unanswered_requests_is_limited(void **state)
{
	int fds[HTTP_REQUESTS + 1];

	(void)state;
	for (unsigned i = 0; i <= HTTP_REQUESTS; i++)
		fds[i] = connected(ask);
	assert_int_equal(asked_count, HTTP_REQUESTS);
	assert_int_equal(last_code, 503);
	assert_non_null(strstr(heard(fds[HTTP_REQUESTS]), " 503 "));
	for (unsigned i = 0; i < HTTP_REQUESTS; i++)
		close(fds[i]);
}

/* One accept a turn, for any number of waiting connections. */
static void test_connections_are_accepted_one_a_turn(void **state)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fds[20];

	(void)state;
	at.sin_port = htons((uint16_t)port);
	for (unsigned i = 0; i < 20; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&at, sizeof(at)), 0);
	}
	for (unsigned i = 1; i <= 20; i++) {
		turn(1);
		assert_int_equal(http_connections(http), i);
	}
	for (unsigned i = 0; i < 20; i++)
		close(fds[i]);
}

static int late_client;

static void connect_in_work(struct loop_task *task)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)task;
	at.sin_port = htons((uint16_t)port);
	assert_int_equal(connect(late_client, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(late_client, ask, strlen(ask), MSG_NOSIGNAL), strlen(ask));
}

static void do_nothing(struct loop_task *task)
{
	(void)task;
}

/* As consoles have one before their commands. */
static void test_connection_of_the_last_poll_of_a_turn_is_served(void **state)
{
	struct loop_task work = {0}, late = {0};

	(void)state;
	late_client = socket(AF_INET, SOCK_STREAM, 0);
	loop_defer_work(&loop, &work, connect_in_work);
	loop_defer_late(&loop, &late, do_nothing);
	turn(4);
	assert_int_equal(asked_count, 1);
	close(late_client);
}

static void test_invalid_requests_do_not_reach_the_callback(void **state)
{
	static const char *const wrong[] = {
		"\r\n\r\n",
		"GET\r\n\r\n",
		"GET / HTTP/9.9\r\n\r\n",
		"GET / HTTP/1.1\r\nno colon\r\n\r\n",
		"FROB / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"PUT / HTTP/1.1\r\n\r\n",
		"\x16\x03\x01\x02",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		close(connected(wrong[i]));
		turn(4);
		assert_int_equal(asked_count, 0);
	}
	fake_now += HTTP_TIME + USEC_PER_SEC;
	turn(4);
	assert_int_equal(http_connections(http), 0);
}

static void test_close_closes_all_connections(void **state)
{
	const int silent = connected(""), half = connected("GET / HT");

	(void)state;
	http_close(http);
	http = NULL;
	assert_string_equal(heard(silent), "");
	assert_string_equal(heard(half), "");
}

static void test_invalid_addresses_are_reported(void **state)
{
	static const struct {
		const char *addresses, *why;
	} cases[] = {
		{"", "no address to listen on"},
		{" , ", "no address to listen on"},
		{"host.example", "'host.example' is no numeric address"},
		{"127.0.0.1, 999.1.1.1", "'999.1.1.1' is no numeric address"},
	};
	char why[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct http_options options = {.addresses = cases[i].addresses,
			.socket = -1,
			.asked = on_asked,
			.replied = on_replied};

		assert_null(http_open(&loop, &options, why, sizeof(why)));
		assert_string_equal(why, cases[i].why);
	}
}

static void test_passed_socket_must_listen(void **state)
{
	const int types[] = {SOCK_STREAM, SOCK_DGRAM};
	char why[128];

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const int fd = socket(AF_INET, types[i], 0);
		const struct http_options options = {
			.socket = fd, .asked = on_asked, .replied = on_replied};

		assert_null(http_open(&loop, &options, why, sizeof(why)));
		assert_string_equal(why, "the socket that was passed does not listen");
		close(fd);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_request_may_be_answered_in_a_later_turn),
		TEST(passed_socket_must_listen),
		TEST(response_to_head_has_no_body),
		TEST(client_may_end_its_side_behind_its_request),
		TEST(request_of_a_closed_connection_may_be_answered),
		TEST(time_limit_starts_at_the_accept),
		TEST(one_connection_too_many_closes_the_oldest_without_a_request),
		TEST(when_all_have_a_request_the_oldest_is_closed),
		TEST(number_of_unanswered_requests_is_limited),
		TEST(connections_are_accepted_one_a_turn),
		TEST(connection_of_the_last_poll_of_a_turn_is_served),
		TEST(invalid_requests_do_not_reach_the_callback),
		TEST(close_closes_all_connections),
		TEST(invalid_addresses_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
