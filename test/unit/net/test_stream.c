/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/address.h"
#include "net/stream.h"
#include "net/tcp_options.h"
#include "support/fakes/scripted_stream.h"

static struct loop loop;
static struct loop_clock loop_clock;
static struct stream stream;
static const struct tcp_options options;
static int peer; /* the other end of the stream; -1: none */

/* What the handlers have recorded. */
static int reads, drains, hang_ups, connects;
static int connect_error;
static ssize_t last_read;
static char received[256];
static bool close_when_readable, close_when_hung_up, resume_when_drained;

static void on_readable(struct stream *from)
{
	reads++;
	if (close_when_readable) {
		stream_close(from);
		return;
	}
	memset(received, 0, sizeof(received));
	last_read = stream_receive(from, received, sizeof(received) - 1);
}

static void on_drained(struct stream *from)
{
	drains++;
	if (resume_when_drained)
		stream_resume(from);
}

static void on_hung_up(struct stream *from)
{
	hang_ups++;
	if (close_when_hung_up)
		stream_close(from);
}

static void on_connected(struct stream *from, int error)
{
	(void)from;
	connects++;
	connect_error = error;
}

static const struct stream_handlers handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.hung_up = on_hung_up,
	.connected = on_connected,
};

/* Handlers without hung_up(). */
static const struct stream_handlers plain_handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.connected = on_connected,
};

static void turn(int times)
{
	while (times-- > 0)
		loop_turn(&loop, false);
}

static int set_up_loop(void **state)
{
	(void)state;
	alarm(60);
	reads = drains = hang_ups = connects = 0;
	connect_error = -1;
	last_read = -100;
	close_when_readable = close_when_hung_up = resume_when_drained = false;
	peer = -1;
	memset(&stream, 0, sizeof(stream));
	return loop_init(&loop, &loop_clock) ? 0 : -1;
}

static int set_up(void **state)
{
	int pair[2];

	if (set_up_loop(state) != 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
		return -1;
	peer = pair[0];
	stream_open(&stream, &loop, pair[1], &handlers);
	return stream_watch(&stream) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	stream_close(&stream);
	if (peer >= 0)
		close(peer);
	assert_int_equal(loop.backlogs.used, 0);
	loop_free(&loop);
	return 0;
}

static int listen_on_loopback(struct sockaddr_in *address)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	socklen_t length = sizeof(*address);

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	assert_int_equal(bind(fd, (struct sockaddr *)address, length), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
	return fd;
}

/* The stream and `peer` are the two ends of a TCP connection. */
static void connect_over_tcp(void)
{
	struct sockaddr_in address;
	const int listening = listen_on_loopback(&address);

	assert_true(stream_connect(&stream, &loop, (struct sockaddr *)&address, sizeof(address),
		&options, &handlers));
	assert_int_equal(connects, 0);
	while (connects == 0)
		loop_turn(&loop, true);
	assert_int_equal(connect_error, 0);
	peer = accept(listening, NULL, NULL);
	assert_true(peer >= 0);
	close(listening);
}

static void reset_peer(void)
{
	const struct linger at_once = {.l_onoff = 1};

	assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close(peer);
	peer = -1;
}

static void tell(const char *text)
{
	assert_int_equal(write(peer, text, strlen(text)), (ssize_t)strlen(text));
}

/* --- reading ---------------------------------------------------------------------------- */

static void test_bytes_of_the_peer_are_received_once(void **state)
{
	(void)state;
	tell("hello");
	turn(3);
	assert_int_equal(reads, 1);
	assert_int_equal(last_read, 5);
	assert_string_equal(received, "hello");
}

static void test_bytes_that_were_not_received_are_known(void **state)
{
	(void)state;
	assert_false(stream_has_unread(&stream));
	assert_int_equal(write(peer, "hello", 5), 5);
	assert_true(stream_has_unread(&stream));
	turn(1);
	assert_int_equal(last_read, 5);
	assert_false(stream_has_unread(&stream));
}

static void test_end_is_readable(void **state)
{
	(void)state;
	shutdown(peer, SHUT_WR);
	turn(1);
	assert_int_equal(last_read, STREAM_END);
}

static void test_nothing_to_receive_returns_again(void **state)
{
	char byte;

	(void)state;
	assert_int_equal(stream_receive(&stream, &byte, 1), STREAM_AGAIN);
}

static void test_reset_connection_is_broken(void **state)
{
	(void)state;
	connect_over_tcp();
	reset_peer();
	turn(1);
	assert_int_equal(last_read, STREAM_BROKEN);
}

static void test_paused_stream_is_not_read_until_resumed(void **state)
{
	(void)state;
	stream_pause(&stream);
	tell("later");
	turn(3);
	assert_int_equal(reads, 0);
	assert_true(stream.parked);
	stream_resume(&stream);
	turn(1);
	assert_int_equal(reads, 1);
	assert_string_equal(received, "later");
}

static void test_pause_in_which_nothing_arrives_needs_no_system_call(void **state)
{
	(void)state;
	stream_pause(&stream);
	turn(2);
	assert_false(stream.parked);
	stream_resume(&stream);
	tell("x");
	turn(1);
	assert_int_equal(reads, 1);
}

static void test_stream_may_be_parked_again_and_again(void **state)
{
	(void)state;
	for (int i = 1; i <= 3; i++) {
		stream_pause(&stream);
		tell("x");
		turn(2);
		assert_true(stream.parked);
		stream_resume(&stream);
		turn(1);
		assert_int_equal(reads, i);
	}
	assert_int_equal(hang_ups, 0);
}

static void test_hang_up_of_a_paused_stream_is_noticed_once(void **state)
{
	(void)state;
	stream_pause(&stream);
	tell("unread");
	turn(2);
	assert_int_equal(hang_ups, 0);
	close(peer);
	peer = -1;
	turn(5);
	assert_int_equal(hang_ups, 1);
	assert_int_equal(reads, 0);
	stream_resume(&stream);
	turn(1);
	assert_string_equal(received, "unread");
	turn(1);
	assert_int_equal(last_read, STREAM_END);
}

static void test_hang_up_as_first_thing_of_a_pause_is_noticed(void **state)
{
	(void)state;
	stream_pause(&stream);
	shutdown(peer, SHUT_WR);
	turn(5);
	assert_int_equal(hang_ups, 1);
}

static void test_reset_of_a_paused_stream_is_noticed_once(void **state)
{
	(void)state;
	connect_over_tcp();
	stream_pause(&stream);
	tell("x");
	while (!stream.parked)
		loop_turn(&loop, true);
	reset_peer();
	turn(5);
	assert_int_equal(hang_ups, 1);
	stream_resume(&stream);
	turn(1);
	assert_true(last_read == STREAM_BROKEN || last_read == 1);
}

static void test_stream_may_be_closed_when_its_peer_hangs_up(void **state)
{
	(void)state;
	close_when_hung_up = true;
	stream_pause(&stream);
	tell("x");
	close(peer);
	peer = -1;
	turn(5);
	assert_int_equal(hang_ups, 1);
	assert_false(stream_is_open(&stream));
}

static void test_hang_up_before_a_resume_in_the_same_turn_is_not_reported(void **state)
{
	(void)state;
	stream_pause(&stream);
	tell("x");
	turn(2);
	close(peer);
	peer = -1;
	stream_resume(&stream);
	turn(2);
	assert_int_equal(hang_ups, 0);
	assert_int_equal(last_read, STREAM_END);
}

static void test_paused_stream_without_a_hang_up_handler_is_not_watched(void **state)
{
	(void)state;
	stream.handlers = &plain_handlers;
	stream_pause(&stream);
	tell("x");
	turn(2);
	close(peer);
	peer = -1;
	turn(3);
	assert_int_equal(hang_ups, 0);
	assert_int_equal(reads, 0);
	stream_resume(&stream);
	turn(1);
	assert_string_equal(received, "x");
}

static void test_new_handlers_get_a_hang_up_that_happened_before(void **state)
{
	(void)state;
	stream_set_handlers(&stream, &plain_handlers);
	stream_pause(&stream);
	tell("x");
	turn(2);
	assert_true(stream.parked);
	close(peer);
	peer = -1;
	turn(2);
	stream_set_handlers(&stream, &handlers);
	stream_set_handlers(&stream, &handlers);
	assert_int_equal(hang_ups, 0);
	turn(3);
	assert_int_equal(hang_ups, 1);
	/* And back to handlers without hung_up(): the event is removed again. */
	stream_set_handlers(&stream, &plain_handlers);
	turn(2);
	stream_resume(&stream);
	turn(1);
	assert_string_equal(received, "x");
}

static void test_stream_may_be_closed_by_its_reader(void **state)
{
	(void)state;
	close_when_readable = true;
	tell("x");
	turn(3);
	assert_int_equal(reads, 1);
	assert_false(stream_is_open(&stream));
	stream_close(&stream);
}

static struct stream other;

static void close_both(struct stream *from)
{
	(void)from;
	reads++;
	stream_close(&stream);
	stream_close(&other);
}

static const struct stream_handlers closing_handlers = {.readable = close_both};

static void test_stream_closed_in_the_turn_in_which_it_is_readable_gets_no_event(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	stream_open(&other, &loop, pair[1], &closing_handlers);
	assert_true(stream_watch(&other));
	stream.handlers = &closing_handlers;
	tell("x");
	assert_int_equal(write(pair[0], "x", 1), 1);
	turn(3);
	assert_int_equal(reads, 1);
	close(pair[0]);
}

/* --- writing ---------------------------------------------------------------------------- */

enum { LOT = 4 * 1024 * 1024 };

static uint8_t *make_pattern(void)
{
	uint8_t *bytes = malloc(LOT);

	assert_non_null(bytes);
	for (size_t i = 0; i < LOT; i++)
		bytes[i] = (uint8_t)(i * 31 >> 5);
	return bytes;
}

/* Let the peer read this number of bytes, and compare them with the pattern. */
static void peer_reads(const uint8_t *pattern, size_t *at, size_t until)
{
	static uint8_t bytes[65536];

	while (*at < until) {
		const ssize_t got = read(peer, bytes, sizeof(bytes));

		if (got < 0) {
			assert_int_equal(errno, EAGAIN);
			turn(1);
			continue;
		}
		assert_true(got > 0);
		assert_memory_equal(bytes, pattern + *at, (size_t)got);
		*at += (size_t)got;
	}
}

static void test_pieces_are_sent_with_one_call(void **state)
{
	char a[] = "one ", b[] = "two ", c[] = "three";
	struct iovec pieces[] = {{a, 4}, {b, 4}, {c, 5}};
	char text[32] = "";

	(void)state;
	assert_int_equal(stream_send(&stream, pieces, 3), STREAM_SENT_ALL);
	assert_false(stream_is_blocked(&stream));
	assert_int_equal(read(peer, text, sizeof(text)), 13);
	assert_string_equal(text, "one two three");
}

static void test_sending_nothing_succeeds(void **state)
{
	(void)state;
	assert_int_equal(stream_send(&stream, NULL, 0), STREAM_SENT_ALL);
	assert_int_equal(stream_send_bytes(&stream, "", 0), STREAM_SENT_ALL);
}

static void test_more_pieces_than_one_call_takes_are_all_sent(void **state)
{
	enum { PIECES = 3000 };
	static struct iovec pieces[PIECES];
	static char text[PIECES + 1];
	size_t at = 0;

	(void)state;
	for (int i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){(char *)"0123456789" + i % 10, 1};
	assert_int_not_equal(stream_send(&stream, pieces, PIECES), STREAM_SENT_NOT);
	while (at < PIECES) {
		const ssize_t got = read(peer, text + at, PIECES - at);

		if (got > 0)
			at += (size_t)got;
		else
			turn(1);
	}
	for (int i = 0; i < PIECES; i++)
		assert_int_equal(text[i], '0' + i % 10);
}

static void test_blocked_bytes_are_sent_when_the_peer_reads(void **state)
{
	uint8_t *pattern = make_pattern();
	struct iovec pieces[] = {{pattern, LOT / 3}, {pattern + LOT / 3, LOT - LOT / 3 - 100}};
	size_t at = 0;

	(void)state;
	assert_int_equal(stream_send(&stream, pieces, 2), STREAM_SENT_LATER);
	assert_true(stream_is_blocked(&stream));
	assert_true(stream_backlog_length(&stream) > 0);
	/* Bytes sent later wait after those in the backlog. */
	assert_int_equal(
		stream_send_bytes(&stream, pattern + LOT - 100, 100), STREAM_SENT_LATER);
	turn(2);
	assert_int_equal(drains, 0);
	peer_reads(pattern, &at, LOT);
	turn(1);
	assert_int_equal(drains, 1);
	assert_false(stream_is_blocked(&stream));
	assert_int_equal(stream_backlog_length(&stream), 0);
	assert_int_equal(loop.backlogs.used, 0);
	free(pattern);
}

static void test_blocked_stream_still_receives(void **state)
{
	uint8_t *pattern = make_pattern();

	(void)state;
	assert_int_equal(stream_send_bytes(&stream, pattern, LOT), STREAM_SENT_LATER);
	tell("hi");
	turn(2);
	assert_int_equal(reads, 1);
	free(pattern);
}

static void test_stream_may_be_blocked_and_parked_at_once(void **state)
{
	uint8_t *pattern = make_pattern();
	size_t at = 0;

	(void)state;
	resume_when_drained = true;
	stream_pause(&stream);
	tell("x");
	turn(2);
	assert_true(stream.parked);
	assert_int_equal(stream_send_bytes(&stream, pattern, LOT), STREAM_SENT_LATER);
	peer_reads(pattern, &at, LOT);
	turn(2);
	assert_int_equal(drains, 1);
	assert_int_equal(reads, 1);
	free(pattern);
}

static void test_slow_peer_does_not_make_the_backlog_grow(void **state)
{
	uint8_t *pattern = make_pattern();
	size_t capacity, at = 0, end = 0;

	(void)state;
	assert_int_equal(stream_send_bytes(&stream, pattern, LOT / 2), STREAM_SENT_LATER);
	end = LOT / 2;
	capacity = stream_backlog_length(&stream) * 2 + 65536;
	while (end < LOT) {
		peer_reads(pattern, &at, at + LOT / 64);
		turn(1);
		assert_int_equal(
			stream_send_bytes(&stream, pattern + end, LOT / 64), STREAM_SENT_LATER);
		end += LOT / 64;
		assert_true(stream_backlog_length(&stream) <= capacity);
	}
	peer_reads(pattern, &at, LOT);
	free(pattern);
}

static void test_sending_to_a_closed_peer_fails(void **state)
{
	(void)state;
	close(peer);
	peer = -1;
	assert_int_equal(stream_send_bytes(&stream, "x", 1), STREAM_SENT_NOT);
}

static void test_backlog_of_a_broken_stream_is_dropped_and_the_end_read(void **state)
{
	uint8_t *pattern = make_pattern();

	(void)state;
	assert_int_equal(stream_send_bytes(&stream, pattern, LOT), STREAM_SENT_LATER);
	close(peer);
	peer = -1;
	turn(2);
	assert_int_equal(drains, 1);
	assert_false(stream_is_blocked(&stream));
	assert_true(last_read == STREAM_END || last_read == STREAM_BROKEN);
	free(pattern);
}

static void test_closing_a_blocked_stream_frees_its_backlog(void **state)
{
	uint8_t *pattern = make_pattern();

	(void)state;
	assert_int_equal(stream_send_bytes(&stream, pattern, LOT), STREAM_SENT_LATER);
	stream_close(&stream);
	assert_int_equal(loop.backlogs.used, 0);
	assert_false(stream_is_blocked(&stream));
	free(pattern);
}

/* --- connecting -------------------------------------------------------------------------- */

static void test_connected_stream_sends_and_receives(void **state)
{
	char text[8] = "";

	(void)state;
	connect_over_tcp();
	assert_int_equal(connects, 1);
	assert_int_equal(stream_send_bytes(&stream, "ping", 4), STREAM_SENT_ALL);
	assert_int_equal(read(peer, text, sizeof(text)), 4);
	tell("pong");
	while (reads == 0)
		loop_turn(&loop, true);
	assert_string_equal(received, "pong");
}

static void test_refused_connect_reports_its_error(void **state)
{
	struct sockaddr_in address;

	(void)state;
	close(listen_on_loopback(&address));
	if (stream_connect(&stream, &loop, (struct sockaddr *)&address, sizeof(address),
		    &options, &handlers)) {
		while (connects == 0)
			loop_turn(&loop, true);
		assert_int_equal(connect_error, ECONNREFUSED);
		turn(2);
		assert_int_equal(reads, 0);
	} else {
		assert_int_equal(errno, ECONNREFUSED);
	}
}

static void test_connect_to_no_unix_socket_fails_at_once(void **state)
{
	struct sockaddr_un address;
	const socklen_t length = address_unix(&address, "@pgusher-no-listener");

	(void)state;
	errno = 0;
	assert_false(stream_connect(
		&stream, &loop, (struct sockaddr *)&address, length, &options, &handlers));
	assert_int_equal(errno, ECONNREFUSED);
	assert_false(stream_is_open(&stream));
	assert_int_equal(stream.fd, -1);
}

/*
 * A receive buffer that is made smaller behind the handshake does not fit its window scale, and
 * the window closes for 200 ms at a time: see net/tcp_options.h.
 */
static void test_buffer_size_is_set_before_the_handshake(void **state)
{
	const struct tcp_options small = {.buffer = 4096};
	struct sockaddr_in address;
	const int listening = listen_on_loopback(&address);
	struct tcp_info info;
	socklen_t length = sizeof(info);

	(void)state;
	assert_true(stream_connect(&stream, &loop, (struct sockaddr *)&address, sizeof(address),
		&small, &handlers));
	while (connects == 0)
		loop_turn(&loop, true);
	assert_int_equal(connect_error, 0);
	assert_int_equal(getsockopt(stream.fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	assert_int_equal(info.tcpi_rcv_wscale, 0);
	close(listening);
}

static void test_unsuitable_options_make_the_connect_fail(void **state)
{
	const struct tcp_options bad = {.user_timeout = -1};
	struct sockaddr_in address;
	const int listening = listen_on_loopback(&address);

	(void)state;
	errno = 0;
	assert_false(stream_connect(
		&stream, &loop, (struct sockaddr *)&address, sizeof(address), &bad, &handlers));
	assert_int_equal(errno, EINVAL);
	assert_false(stream_is_open(&stream));
	close(listening);
}

static void test_connecting_stream_may_be_closed(void **state)
{
	struct sockaddr_in address;
	const int listening = listen_on_loopback(&address);

	(void)state;
	assert_true(stream_connect(&stream, &loop, (struct sockaddr *)&address, sizeof(address),
		&options, &handlers));
	stream_close(&stream);
	turn(3);
	assert_int_equal(connects, 0);
	close(listening);
}

static void test_opening_takes_the_descriptor_over(void **state)
{
	const int fd = stream.fd;

	(void)state;
	assert_true(stream_is_open(&stream));
	stream_close(&stream);
	errno = 0;
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(errno, EBADF);
}

/* --- scripted ---------------------------------------------------------------------------- */

static struct script *script;

static int set_up_scripted(void **state)
{
	if (set_up_loop(state) != 0)
		return -1;
	script = scripted_open(&stream, &loop, &handlers);
	return 0;
}

static int tear_down_scripted(void **state)
{
	scripted_free(script);
	return tear_down(state);
}

static void test_scripted_stream_receives_what_is_fed(void **state)
{
	(void)state;
	assert_false(scripted_run(script));
	scripted_feed(script, "abc", 3);
	scripted_feed(script, "def", 3);
	assert_true(scripted_run(script));
	assert_string_equal(received, "abcdef");
	assert_int_equal(scripted_unread(script), 0);
	assert_false(scripted_run(script));
	scripted_end(script);
	assert_true(scripted_run(script));
	assert_int_equal(last_read, STREAM_END);
	scripted_break(script);
	assert_true(scripted_run(script));
	assert_int_equal(last_read, STREAM_BROKEN);
	assert_int_equal(stream_send_bytes(&stream, "x", 1), STREAM_SENT_NOT);
}

static void test_scripted_stream_records_what_is_sent(void **state)
{
	size_t length;

	(void)state;
	assert_int_equal(stream_send_bytes(&stream, "one", 3), STREAM_SENT_ALL);
	assert_memory_equal(scripted_output(script, &length), "one", 3);
	assert_int_equal(length, 3);
	scripted_forget_output(script);
	scripted_allow(script, 2);
	assert_int_equal(stream_send_bytes(&stream, "two", 3), STREAM_SENT_LATER);
	assert_int_equal(stream_send_bytes(&stream, "four", 4), STREAM_SENT_LATER);
	assert_int_equal(stream_backlog_length(&stream), 5);
	scripted_allow(script, 4);
	assert_int_equal(drains, 0);
	scripted_allow(script, SCRIPTED_ANY);
	assert_int_equal(drains, 1);
	assert_memory_equal(scripted_output(script, &length), "twofour", 7);
	assert_int_equal(length, 7);
}

static void test_scripted_stream_pauses_and_hangs_up(void **state)
{
	(void)state;
	stream_pause(&stream);
	scripted_feed(script, "abc", 3);
	assert_false(scripted_run(script));
	scripted_end(script);
	assert_true(scripted_run(script));
	assert_false(scripted_run(script));
	assert_int_equal(hang_ups, 1);
	stream_resume(&stream);
	assert_true(scripted_run(script));
	assert_int_equal(reads, 1);
	assert_false(scripted_is_closed(script));
	stream_close(&stream);
	assert_true(scripted_is_closed(script));
	assert_false(scripted_run(script));
	assert_null(scripted_of(&stream));
}

int main(void)
{
#define SOCKET_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define CONNECT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_loop, tear_down)
#define SCRIPTED_TEST(name)                                                                    \
	cmocka_unit_test_setup_teardown(name, set_up_scripted, tear_down_scripted)
	const struct CMUnitTest tests[] = {
		SOCKET_TEST(test_bytes_of_the_peer_are_received_once),
		SOCKET_TEST(test_bytes_that_were_not_received_are_known),
		SOCKET_TEST(test_end_is_readable),
		SOCKET_TEST(test_nothing_to_receive_returns_again),
		CONNECT_TEST(test_reset_connection_is_broken),
		SOCKET_TEST(test_paused_stream_is_not_read_until_resumed),
		SOCKET_TEST(test_pause_in_which_nothing_arrives_needs_no_system_call),
		SOCKET_TEST(test_stream_may_be_parked_again_and_again),
		SOCKET_TEST(test_hang_up_of_a_paused_stream_is_noticed_once),
		SOCKET_TEST(test_hang_up_as_first_thing_of_a_pause_is_noticed),
		CONNECT_TEST(test_reset_of_a_paused_stream_is_noticed_once),
		SOCKET_TEST(test_stream_may_be_closed_when_its_peer_hangs_up),
		SOCKET_TEST(test_hang_up_before_a_resume_in_the_same_turn_is_not_reported),
		SOCKET_TEST(test_paused_stream_without_a_hang_up_handler_is_not_watched),
		SOCKET_TEST(test_new_handlers_get_a_hang_up_that_happened_before),
		SOCKET_TEST(test_stream_may_be_closed_by_its_reader),
		SOCKET_TEST(
			test_stream_closed_in_the_turn_in_which_it_is_readable_gets_no_event),
		SOCKET_TEST(test_pieces_are_sent_with_one_call),
		SOCKET_TEST(test_sending_nothing_succeeds),
		SOCKET_TEST(test_more_pieces_than_one_call_takes_are_all_sent),
		SOCKET_TEST(test_blocked_bytes_are_sent_when_the_peer_reads),
		SOCKET_TEST(test_blocked_stream_still_receives),
		SOCKET_TEST(test_stream_may_be_blocked_and_parked_at_once),
		SOCKET_TEST(test_slow_peer_does_not_make_the_backlog_grow),
		SOCKET_TEST(test_sending_to_a_closed_peer_fails),
		SOCKET_TEST(test_backlog_of_a_broken_stream_is_dropped_and_the_end_read),
		SOCKET_TEST(test_closing_a_blocked_stream_frees_its_backlog),
		CONNECT_TEST(test_connected_stream_sends_and_receives),
		CONNECT_TEST(test_refused_connect_reports_its_error),
		CONNECT_TEST(test_connect_to_no_unix_socket_fails_at_once),
		CONNECT_TEST(test_buffer_size_is_set_before_the_handshake),
		CONNECT_TEST(test_unsuitable_options_make_the_connect_fail),
		CONNECT_TEST(test_connecting_stream_may_be_closed),
		SOCKET_TEST(test_opening_takes_the_descriptor_over),
		SCRIPTED_TEST(test_scripted_stream_receives_what_is_fed),
		SCRIPTED_TEST(test_scripted_stream_records_what_is_sent),
		SCRIPTED_TEST(test_scripted_stream_pauses_and_hangs_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
