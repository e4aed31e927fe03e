/* SPDX-License-Identifier: ISC */
/* Plain streams that move from one loop to another, and to another address on the way. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/stream.h"
#include "support/fakes/scripted_stream.h"

enum { LOT = 4 * 1024 * 1024 };

static struct loop old_loop, new_loop;
static struct loop_clock loop_clock;
static struct stream *stream; /* allocated anew for each move */
static int peer; /* the other end of the stream; -1: none */

/* What the handlers have recorded. */
static int reads, drains, hang_ups;
static ssize_t last_read;
static char received[65536];
static bool leave_when_readable;

static void on_readable(struct stream *from)
{
	reads++;
	if (leave_when_readable) {
		stream_leave(stream);
		return;
	}
	memset(received, 0, sizeof(received));
	last_read = stream_receive(from, received, sizeof(received) - 1);
}

static void on_drained(struct stream *from)
{
	(void)from;
	drains++;
}

static void on_hung_up(struct stream *from)
{
	(void)from;
	hang_ups++;
}

static const struct stream_handlers handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.hung_up = on_hung_up,
};

/* The handlers of the old loop: only the loop that a stream has left would call them. */
static void on_wrong_event(struct stream *from)
{
	(void)from;
	fail();
}

static const struct stream_handlers no_handlers = {
	.readable = on_wrong_event,
	.drained = on_wrong_event,
	.hung_up = on_wrong_event,
};

static void turn(int times)
{
	while (times-- > 0) {
		loop_turn(&old_loop, false);
		loop_turn(&new_loop, false);
	}
}

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	alarm(60);
	reads = drains = hang_ups = 0;
	last_read = -100;
	leave_when_readable = false;
	if (!loop_init(&old_loop, &loop_clock) || !loop_init(&new_loop, &loop_clock))
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
		return -1;
	peer = pair[0];
	stream = malloc(sizeof(*stream));
	stream_open(stream, &old_loop, pair[1], &handlers);
	return stream_watch(stream) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	stream_close(stream);
	free(stream);
	if (peer >= 0)
		close(peer);
	assert_int_equal(old_loop.backlogs.used, 0);
	assert_int_equal(new_loop.backlogs.used, 0);
	loop_free(&old_loop);
	loop_free(&new_loop);
	return 0;
}

/* Copy the stream to another address, and free the memory at the old one. */
static void carry(void)
{
	struct stream *copy = malloc(sizeof(*copy));

	assert_non_null(copy);
	memcpy(copy, stream, sizeof(*copy));
	memset(stream, 0xee, sizeof(*stream));
	free(stream);
	stream = copy;
}

static void leave(void)
{
	stream_leave(stream);
	stream->handlers = &no_handlers;
	carry();
	assert_int_equal(old_loop.backlogs.used, 0);
}

static void join(struct loop *loop)
{
	assert_true(stream_join(stream, loop, &handlers));
}

static void move(void)
{
	leave();
	turn(2);
	join(&new_loop);
}

static void tell(const char *text)
{
	assert_int_equal(write(peer, text, strlen(text)), (ssize_t)strlen(text));
}

/* --- reading ---------------------------------------------------------------------------- */

static void test_moved_stream_is_read_by_the_new_loop_only(void **state)
{
	(void)state;
	move();
	tell("hello");
	loop_turn(&old_loop, false);
	assert_int_equal(reads, 0);
	loop_turn(&new_loop, false);
	assert_int_equal(reads, 1);
	assert_string_equal(received, "hello");
	assert_int_equal(stream_send_bytes(stream, "there", 5), STREAM_SENT_ALL);
	assert_int_equal(read(peer, received, sizeof(received)), 5);
}

static void test_old_loop_may_be_freed(void **state)
{
	(void)state;
	leave();
	loop_free(&old_loop);
	join(&new_loop);
	tell("hello");
	loop_turn(&new_loop, false);
	assert_string_equal(received, "hello");
	assert_true(loop_init(&old_loop, &loop_clock));
}

static void test_bytes_that_arrive_while_the_stream_is_away_are_received(void **state)
{
	(void)state;
	leave();
	tell("hello");
	turn(2);
	assert_int_equal(reads, 0);
	join(&new_loop);
	turn(1);
	assert_string_equal(received, "hello");
}

static void test_end_while_the_stream_is_away_is_reported(void **state)
{
	(void)state;
	leave();
	close(peer);
	peer = -1;
	join(&new_loop);
	turn(1);
	assert_int_equal(last_read, STREAM_END);
}

static void test_stream_may_leave_in_its_own_handler(void **state)
{
	(void)state;
	leave_when_readable = true;
	tell("hello");
	loop_turn(&old_loop, false);
	carry();
	leave_when_readable = false;
	turn(2);
	assert_int_equal(reads, 1);
	join(&new_loop);
	turn(1);
	assert_int_equal(reads, 2);
	assert_string_equal(received, "hello");
}

/* Both are readable in one turn, and the first that is called makes `stream` leave. */
static void test_event_of_the_turn_in_which_the_stream_leaves_is_dropped(void **state)
{
	struct stream other;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	stream_open(&other, &old_loop, pair[1], &handlers);
	assert_true(stream_watch(&other));
	leave_when_readable = true;
	stream_announce_unread(&other);
	stream_announce_unread(stream);
	loop_turn(&old_loop, false);
	assert_int_equal(reads, 1);
	carry();
	stream->unread = false;
	leave_when_readable = false;
	join(&new_loop);
	stream_close(&other);
	turn(2);
	assert_int_equal(reads, 1);
	close(pair[0]);
}

static void test_announced_bytes_are_announced_in_the_new_loop(void **state)
{
	(void)state;
	stream_announce_unread(stream);
	leave();
	turn(1);
	assert_int_equal(reads, 0);
	join(&new_loop);
	turn(1);
	assert_int_equal(reads, 1);
	assert_int_equal(last_read, STREAM_AGAIN);
}

static void test_stream_may_move_back_and_forth(void **state)
{
	(void)state;
	for (int i = 1; i <= 6; i++) {
		leave();
		join(i % 2 ? &new_loop : &old_loop);
		tell("x");
		loop_turn(i % 2 ? &old_loop : &new_loop, false);
		assert_int_equal(reads, i - 1);
		loop_turn(i % 2 ? &new_loop : &old_loop, false);
		assert_int_equal(reads, i);
	}
}

static void test_limit_of_a_receive_is_that_of_the_new_loop(void **state)
{
	const int fd = dup(stream->fd);
	static const char bytes[10000];

	(void)state;
	stream_close(stream);
	old_loop.receive_limit = 2000;
	new_loop.receive_limit = 1000;
	stream_open(stream, &old_loop, fd, &handlers);
	assert_true(stream_watch(stream));
	move();
	assert_int_equal(write(peer, bytes, sizeof(bytes)), sizeof(bytes));
	turn(1);
	assert_int_equal(last_read, 1000);
	turn(9);
	assert_int_equal(reads, 10);
}

/* --- pauses ----------------------------------------------------------------------------- */

static void test_paused_stream_stays_paused(void **state)
{
	(void)state;
	stream_pause(stream);
	move();
	tell("later");
	turn(3);
	assert_int_equal(reads, 0);
	assert_true(stream->parked);
	stream_resume(stream);
	turn(1);
	assert_string_equal(received, "later");
}

static void park(void)
{
	stream_pause(stream);
	tell("later");
	turn(2);
	assert_true(stream->parked);
}

static void test_parked_stream_stays_parked(void **state)
{
	(void)state;
	park();
	move();
	turn(2);
	assert_int_equal(reads, 0);
	assert_true(stream->parked);
	stream_resume(stream);
	turn(1);
	assert_string_equal(received, "later");
	assert_int_equal(hang_ups, 0);
}

static void test_hang_up_of_a_parked_stream_is_reported_by_the_new_loop(void **state)
{
	(void)state;
	park();
	move();
	close(peer);
	peer = -1;
	loop_turn(&old_loop, false);
	assert_int_equal(hang_ups, 0);
	turn(2);
	assert_int_equal(hang_ups, 1);
	stream_resume(stream);
	turn(1);
	assert_string_equal(received, "later");
}

static void test_hang_up_while_the_stream_is_away_is_reported(void **state)
{
	(void)state;
	park();
	leave();
	close(peer);
	peer = -1;
	turn(2);
	join(&new_loop);
	turn(2);
	assert_int_equal(hang_ups, 1);
}

static void test_announcement_outlasts_a_pause(void **state)
{
	(void)state;
	stream_pause(stream);
	stream_announce_unread(stream);
	move();
	turn(2);
	assert_int_equal(reads, 0);
	stream_resume(stream);
	turn(1);
	assert_int_equal(reads, 1);
}

static void test_frozen_stream_stays_frozen(void **state)
{
	(void)state;
	stream_freeze(stream);
	tell("hello");
	move();
	turn(2);
	stream_resume(stream);
	turn(2);
	assert_int_equal(reads, 0);
	stream_thaw(stream);
	turn(1);
	assert_string_equal(received, "hello");
}

static void test_hang_up_of_a_frozen_stream_is_reported_when_it_is_thawed(void **state)
{
	(void)state;
	stream_pause(stream);
	stream_freeze(stream);
	move();
	close(peer);
	peer = -1;
	turn(2);
	assert_int_equal(hang_ups, 0);
	stream_thaw(stream);
	turn(2);
	assert_int_equal(hang_ups, 1);
}

/* --- unsent bytes ----------------------------------------------------------------------- */

static uint8_t *make_pattern(void)
{
	uint8_t *bytes = malloc(LOT);

	assert_non_null(bytes);
	for (size_t i = 0; i < LOT; i++)
		bytes[i] = (uint8_t)(i * 31 >> 5);
	return bytes;
}

/* Let the peer read the bytes from here to there, and compare them with the pattern. */
static void peer_reads(const uint8_t *pattern, size_t at, size_t until)
{
	static uint8_t bytes[65536];

	while (at < until) {
		const size_t left = until - at;
		const ssize_t got =
			read(peer, bytes, left < sizeof(bytes) ? left : sizeof(bytes));

		if (got < 0) {
			assert_int_equal(errno, EAGAIN);
			turn(1);
			continue;
		}
		assert_true(got > 0);
		assert_memory_equal(bytes, pattern + at, (size_t)got);
		at += (size_t)got;
	}
}

static void test_unsent_bytes_are_sent_by_the_new_loop(void **state)
{
	uint8_t *pattern = make_pattern();

	(void)state;
	assert_int_equal(stream_send_bytes(stream, pattern, LOT - 100), STREAM_SENT_LATER);
	/* A part of the backlog is sent by the old loop. */
	peer_reads(pattern, 0, LOT / 3);
	move();
	assert_int_equal(new_loop.backlogs.used, 1);
	assert_true(stream_is_blocked(stream));
	assert_int_equal(
		stream_send_bytes(stream, pattern + LOT - 100, 100), STREAM_SENT_LATER);
	assert_int_equal(drains, 0);
	peer_reads(pattern, LOT / 3, LOT);
	turn(1);
	assert_int_equal(drains, 1);
	assert_false(stream_is_blocked(stream));
	assert_int_equal(new_loop.backlogs.used, 0);
	free(pattern);
}

static void test_parked_stream_with_unsent_bytes_moves(void **state)
{
	uint8_t *pattern = make_pattern();

	(void)state;
	park();
	assert_int_equal(stream_send_bytes(stream, pattern, LOT), STREAM_SENT_LATER);
	move();
	peer_reads(pattern, 0, LOT);
	turn(1);
	assert_int_equal(drains, 1);
	assert_int_equal(reads, 0);
	stream_resume(stream);
	turn(1);
	assert_string_equal(received, "later");
	free(pattern);
}

static void test_unsent_bytes_of_a_scripted_stream_move(void **state)
{
	struct stream *socket_stream = stream;
	struct script *script;
	size_t length;

	(void)state;
	stream = malloc(sizeof(*stream));
	script = scripted_open(stream, &old_loop, &handlers);
	scripted_allow(script, 3);
	assert_int_equal(stream_send_bytes(stream, "abcdef", 6), STREAM_SENT_LATER);
	move();
	scripted_moved(script, stream);
	assert_int_equal(stream_backlog_length(stream), 3);
	scripted_allow(script, SCRIPTED_ANY);
	assert_memory_equal(scripted_output(script, &length), "abcdef", 6);
	assert_int_equal(length, 6);
	assert_int_equal(drains, 1);
	scripted_free(script);
	free(stream);
	stream = socket_stream;
}

/* --- ends ------------------------------------------------------------------------------- */

static void test_stream_may_be_closed_while_it_is_away(void **state)
{
	uint8_t *pattern = make_pattern();
	char byte;

	(void)state;
	assert_int_equal(stream_send_bytes(stream, pattern, LOT), STREAM_SENT_LATER);
	leave();
	stream_close(stream);
	assert_false(stream_is_open(stream));
	while (read(peer, &byte, 1) == 1)
		;
	assert_int_equal(read(peer, &byte, 1), 0);
	turn(2);
	free(pattern);
}

static void test_moved_stream_may_be_closed(void **state)
{
	uint8_t *pattern = make_pattern();

	(void)state;
	park();
	assert_int_equal(stream_send_bytes(stream, pattern, LOT), STREAM_SENT_LATER);
	move();
	stream_close(stream);
	close(peer);
	peer = -1;
	turn(3);
	assert_int_equal(hang_ups, 0);
	assert_int_equal(drains, 0);
	free(pattern);
}

/* epoll refuses a regular file, as it does a socket when the kernel is out of memory. */
static void try_refused_join(void)
{
	const int socket = dup(stream->fd);
	const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(dup2(file, stream->fd), stream->fd);
	assert_false(stream_join(stream, &new_loop, &handlers));
	assert_int_equal(new_loop.backlogs.used, 0);
	turn(1);
	assert_int_equal(dup2(socket, stream->fd), stream->fd);
	close(file);
	close(socket);
}

static void test_stream_that_could_not_join_may_try_again(void **state)
{
	uint8_t *pattern = make_pattern();

	(void)state;
	assert_int_equal(stream_send_bytes(stream, pattern, LOT), STREAM_SENT_LATER);
	leave();
	try_refused_join();
	carry();
	join(&new_loop);
	peer_reads(pattern, 0, LOT);
	tell("hello");
	turn(1);
	assert_string_equal(received, "hello");
	free(pattern);
}

static void test_stream_that_could_not_join_may_be_closed(void **state)
{
	(void)state;
	leave();
	try_refused_join();
	stream_close(stream);
	assert_int_equal(send(peer, "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_moved_stream_is_read_by_the_new_loop_only),
		TEST(test_old_loop_may_be_freed),
		TEST(test_bytes_that_arrive_while_the_stream_is_away_are_received),
		TEST(test_end_while_the_stream_is_away_is_reported),
		TEST(test_stream_may_leave_in_its_own_handler),
		TEST(test_event_of_the_turn_in_which_the_stream_leaves_is_dropped),
		TEST(test_announced_bytes_are_announced_in_the_new_loop),
		TEST(test_stream_may_move_back_and_forth),
		TEST(test_limit_of_a_receive_is_that_of_the_new_loop),
		TEST(test_paused_stream_stays_paused),
		TEST(test_parked_stream_stays_parked),
		TEST(test_hang_up_of_a_parked_stream_is_reported_by_the_new_loop),
		TEST(test_hang_up_while_the_stream_is_away_is_reported),
		TEST(test_announcement_outlasts_a_pause),
		TEST(test_frozen_stream_stays_frozen),
		TEST(test_hang_up_of_a_frozen_stream_is_reported_when_it_is_thawed),
		TEST(test_unsent_bytes_are_sent_by_the_new_loop),
		TEST(test_parked_stream_with_unsent_bytes_moves),
		TEST(test_unsent_bytes_of_a_scripted_stream_move),
		TEST(test_stream_may_be_closed_while_it_is_away),
		TEST(test_moved_stream_may_be_closed),
		TEST(test_stream_that_could_not_join_may_try_again),
		TEST(test_stream_that_could_not_join_may_be_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
