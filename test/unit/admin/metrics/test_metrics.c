/* SPDX-License-Identifier: ISC */
/* The endpoint: which request gets which page, refused requests, /healthz and /readyz. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/metrics/metrics.h"
#include "support/fakes/fake_pool.h"

static struct listeners listeners;
static struct listener listener;
static struct metrics metrics;
static int port;

static int open_listener(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	const int small = 4096;

	/* Accepted sockets inherit the size, so a page does not fit in the socket's buffer. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 128), 0);
	getsockname(fd, (struct sockaddr *)&at, &length);
	port = ntohs(at.sin_port);
	return fd;
}

static int start(void **state)
{
	char why[128];

	(void)state;
	fake_start("[databases]\napp = host=/tmp\n[pgbouncer]\n");
	listeners = (struct listeners){0};
	TAILQ_INIT(&listeners.list);
	TAILQ_INSERT_TAIL(&listeners.list, &listener, entry);
	metrics_init(&metrics, &fake_registry, &listeners, open_listener(), NULL);
	assert_true(metrics_follow(&metrics, why, sizeof(why)));
	return 0;
}

static int end(void **state)
{
	metrics_close(&metrics);
	return fake_end(state);
}

/* Enough turns of the loop to write a page. */
static void turns(void)
{
	for (unsigned i = 0; i < 300; i++)
		loop_turn(&fake_loop, false);
}

/* A connection with a small receive buffer. */
static int open_connection(void)
{
	const int small = 2048;
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	at.sin_port = htons((uint16_t)port);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
		assert_int_equal(errno, EINPROGRESS);
	for (unsigned i = 0; i < 4; i++)
		loop_turn(&fake_loop, false);
	return fd;
}

static int send_request(const char *path)
{
	const int fd = open_connection();
	char text[256];
	const int length = snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n\r\n", path);

	assert_int_equal(send(fd, text, (size_t)length, MSG_NOSIGNAL), length);
	return fd;
}

/* The whole answer; closes the connection. */
static const char *read_answer(int fd)
{
	static char text[1 << 20];
	size_t length = 0;
	ssize_t more = -1;

	for (unsigned i = 0; i < 5000 && more != 0; i++) {
		loop_turn(&fake_loop, false);
		while ((more = recv(fd, text + length, sizeof(text) - 1 - length, 0)) > 0)
			length += (size_t)more;
	}
	text[length] = '\0';
	close(fd);
	return text;
}

static bool answers(const char *path, const char *status, const char *line)
{
	const char *text = read_answer(send_request(path));

	return strncmp(text + strlen("HTTP/1.0 "), status, 3) == 0 &&
		strlen(text) > strlen(line) + 4 &&
		strcmp(strstr(text, "\r\n\r\n") + 4, line) == 0;
}

/* --- health ------------------------------------------------------------------------------- */

static void test_ready_while_clients_are_accepted(void **state)
{
	(void)state;
	assert_true(answers("/readyz", "200", "ready\n"));
	listeners.resting = true;
	assert_true(answers("/readyz", "503", "not accepting clients: out of descriptors\n"));
	listeners.paused = true;
	assert_true(answers("/readyz", "503", "not listening\n"));
	listeners.paused = listeners.resting = false;
	TAILQ_INIT(&listeners.list);
	assert_true(answers("/readyz", "503", "not listening\n"));
	fake_registry.process->operation = OPERATION_PAUSED;
	assert_true(answers("/readyz", "503", "paused\n"));
	fake_registry.process->operation = OPERATION_SUSPENDED;
	assert_true(answers("/readyz", "503", "suspended\n"));
	fake_registry.process->shutdown = SHUTDOWN_WAIT_FOR_CLIENTS;
	assert_true(answers("/readyz", "503", "shutting down\n"));
	assert_true(answers("/healthz", "200", "ok\n"));
	fake_registry.process->shutdown = SHUTDOWN_NONE;
	fake_registry.process->operation = OPERATION_RUNNING;
}

/* --- pages -------------------------------------------------------------------------------- */

static void many_pools(void)
{
	char name[32];

	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "user%u", i);
		fake_pool("app", name);
	}
}

static void test_requests_during_the_writing_of_a_page_share_the_next_one(void **state)
{
	int fds[6];

	(void)state;
	many_pools();
	for (unsigned i = 0; i < 6; i++)
		fds[i] = send_request("/metrics");
	turns();
	assert_int_equal(metrics.requests[0][0], 6);
	assert_true(metrics.pages <= 3);
	for (unsigned i = 0; i < 6; i++)
		assert_non_null(strstr(read_answer(fds[i]), "pgbouncer_up 1\n"));
	turns();
	assert_int_equal(metrics.pages, 0);
	assert_null(metrics.newest);
}

static void test_slow_readers_keep_few_pages_in_memory(void **state)
{
	int fds[20];

	(void)state;
	many_pools();
	for (unsigned i = 0; i < 20; i++) {
		fds[i] = send_request("/metrics");
		turns();
		assert_true(metrics.pages <= METRICS_PAGES);
	}
	assert_int_equal(metrics.pages, METRICS_PAGES);
	assert_int_equal(metrics.requests[0][0], 20);
	for (unsigned i = 0; i < 20; i++)
		assert_non_null(
			strstr(read_answer(fds[i]), "pgusher_metric_series_dropped 0\n"));
	turns();
	assert_int_equal(metrics.pages, 0);
}

static void test_waiting_requests_are_answered_on_close(void **state)
{
	const int fd = send_request("/metrics");

	(void)state;
	many_pools();
	loop_turn(&fake_loop, false);
	loop_turn(&fake_loop, false);
	assert_int_equal(metrics.waiting_count, 1);
	metrics_close(&metrics);
	assert_int_equal(metrics.waiting_count, 0);
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, end)
	const struct CMUnitTest tests[] = {
		TEST(ready_while_clients_are_accepted),
		TEST(requests_during_the_writing_of_a_page_share_the_next_one),
		TEST(slow_readers_keep_few_pages_in_memory),
		TEST(waiting_requests_are_answered_on_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
