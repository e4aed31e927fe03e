/* SPDX-License-Identifier: ISC */
/*
 * Two of our streams connected by a socket pair, with TLS: each side may move to the other loop
 * and to another address. The loop that both have left is freed, with its buffers.
 */
#include <errno.h>
#include <pthread.h>
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

#include "net/tls.h"
#include "support/files/certificates.h"

enum { BULK = 1200 * 1000 };

/* One of the two sides, and what its handlers have recorded. */
struct side {
	struct stream *stream; /* allocated anew for each move */
	uint8_t *bytes;
	size_t length;
	ssize_t last;
	size_t room; /* for one receive; 0: the usual */
	int secured, drained;
	bool pauses, leaves; /* after the next receive of some bytes */
};

static struct loop old_loop, new_loop;
static bool has_old_loop;
static struct loop_clock loop_clock;
static struct side near, far; /* the TLS client, the TLS server */
static char folder[64], cert_path[96], key_path[96];
static uint8_t bulk[BULK];

static struct side *side_of(const struct stream *stream)
{
	return stream == near.stream ? &near : &far;
}

static void leave(struct side *side)
{
	struct stream *copy = malloc(sizeof(*copy));

	assert_non_null(copy);
	stream_leave(side->stream);
	memcpy(copy, side->stream, sizeof(*copy));
	memset(side->stream, 0xee, sizeof(*side->stream));
	free(side->stream);
	side->stream = copy;
}

static void on_readable(struct stream *stream)
{
	struct side *side = side_of(stream);
	uint8_t *into = stream->loop->receive;

	side->last = stream_receive(stream, into, side->room ? side->room : LOOP_RECEIVE_SIZE);
	if (side->last > 0) {
		side->bytes = realloc(side->bytes, side->length + (size_t)side->last);
		memcpy(side->bytes + side->length, into, (size_t)side->last);
		side->length += (size_t)side->last;
		if (side->pauses)
			stream_pause(stream);
		if (side->leaves)
			leave(side);
	} else if (side->last != STREAM_AGAIN) {
		stream_pause(stream);
	}
}

static void on_drained(struct stream *stream)
{
	side_of(stream)->drained++;
}

static void on_secured(struct stream *stream)
{
	side_of(stream)->secured++;
}

static const struct stream_handlers handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.secured = on_secured,
};

static void turn(int times)
{
	while (times-- > 0) {
		if (has_old_loop)
			loop_turn(&old_loop, false);
		loop_turn(&new_loop, false);
	}
}

static bool open_side(struct side *side, int fd)
{
	*side = (struct side){.stream = malloc(sizeof(*side->stream))};
	stream_open(side->stream, &old_loop, fd, &handlers);
	return stream_watch(side->stream);
}

static void close_side(struct side *side)
{
	if (!side->stream)
		return;
	stream_close(side->stream);
	free(side->stream);
	free(side->bytes);
	*side = (struct side){0};
}

static void free_old_loop(void)
{
	if (has_old_loop)
		loop_free(&old_loop);
	has_old_loop = false;
}

static int make_certificate(void **state)
{
	const struct certificate_wish wish = {.common_name = "db"};
	struct certificate leaf = certificate_make(&wish);

	(void)state;
	strcpy(folder, "/tmp/pgusher-test.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(cert_path, sizeof(cert_path), "%s/cert", folder);
	snprintf(key_path, sizeof(key_path), "%s/key", folder);
	certificate_save(&leaf, cert_path);
	certificate_save_key(&leaf, key_path);
	certificate_free(&leaf);
	for (size_t i = 0; i < sizeof(bulk); i++)
		bulk[i] = (uint8_t)(i * 7 >> 3);
	return 0;
}

static int remove_certificate(void **state)
{
	(void)state;
	unlink(cert_path);
	unlink(key_path);
	return rmdir(folder);
}

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	alarm(60);
	if (!loop_init(&old_loop, &loop_clock) || !loop_init(&new_loop, &loop_clock))
		return -1;
	has_old_loop = true;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
		return -1;
	return open_side(&near, pair[0]) && open_side(&far, pair[1]) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	close_side(&near);
	close_side(&far);
	free_old_loop();
	loop_free(&new_loop);
	return 0;
}

static struct tls_context *make(const struct tls_options *options)
{
	char why[256];
	struct tls_context *context = tls_context_new(options, why, sizeof(why));

	if (!context)
		fail_msg("%s", why);
	return context;
}

static struct tls_context *client_context(void)
{
	const struct tls_options options = {.side = TLS_TOWARDS_SERVERS};

	return make(&options);
}

static struct tls_context *server_context(const char *protocols)
{
	const struct tls_options options = {
		.side = TLS_TOWARDS_CLIENTS,
		.protocols = protocols,
		.cert_file = cert_path,
		.key_file = key_path,
	};

	return make(&options);
}

/* The client has sent its first message, and the server has not received it. */
static void begin(const char *protocols)
{
	struct tls_context *ours = client_context(), *theirs = server_context(protocols);

	assert_true(tls_accept(far.stream, theirs));
	assert_true(tls_connect(near.stream, ours, "db", false));
	tls_context_unref(ours);
	tls_context_unref(theirs);
}

static void meet(void)
{
	begin("");
	turn(8);
	assert_int_equal(near.secured, 1);
	assert_int_equal(far.secured, 1);
}

static void join(struct side *side)
{
	assert_true(stream_join(side->stream, &new_loop, &handlers));
}

static void move(struct side *side)
{
	leave(side);
	turn(2);
	join(side);
}

static void move_both(void)
{
	leave(&near);
	leave(&far);
	free_old_loop();
	join(&near);
	join(&far);
}

static void send_text(struct side *side, const char *text)
{
	assert_int_equal(stream_send_bytes(side->stream, text, strlen(text)), STREAM_SENT_ALL);
}

static void assert_has(const struct side *side, const char *text)
{
	assert_int_equal(side->length, strlen(text));
	assert_memory_equal(side->bytes, text, strlen(text));
}

static void assert_they_talk(void)
{
	send_text(&near, "hello");
	send_text(&far, "there");
	turn(2);
	assert_has(&far, "hello");
	assert_has(&near, "there");
}

static uint64_t handshakes(const struct loop *loop, enum tls_side side, bool good)
{
	return histogram_count(&loop->handshakes[side][good]);
}

/* --- after the handshake ------------------------------------------------------------------ */

static void test_encrypted_stream_moves_without_its_peer(void **state)
{
	(void)state;
	meet();
	move(&far);
	assert_they_talk();
}

static void test_both_sides_move_and_the_old_loop_ends(void **state)
{
	(void)state;
	meet();
	move_both();
	assert_they_talk();
	stream_close(near.stream);
	turn(2);
	assert_int_equal(far.last, STREAM_END);
}

static void test_unsent_records_are_sent_by_the_new_loop(void **state)
{
	(void)state;
	meet();
	stream_pause(far.stream);
	assert_int_equal(stream_send_bytes(near.stream, bulk, BULK), STREAM_SENT_LATER);
	assert_int_equal(old_loop.backlogs.used, 1);
	move(&near);
	assert_int_equal(old_loop.backlogs.used, 0);
	assert_int_equal(stream_send_bytes(near.stream, "end", 3), STREAM_SENT_LATER);
	stream_resume(far.stream);
	turn(100);
	assert_int_equal(far.length, BULK + 3);
	assert_memory_equal(far.bytes, bulk, BULK);
	assert_memory_equal(far.bytes + BULK, "end", 3);
	assert_int_equal(near.drained, 1);
	assert_int_equal(new_loop.backlogs.used, 0);
}

/* Take the record that the client sends, so that the test can pass it on in parts. */
static size_t take_record(uint8_t *record, size_t size, const char *text)
{
	const int fd = dup(near.stream->fd);
	int pair[2];
	ssize_t length;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(dup2(pair[0], near.stream->fd), near.stream->fd);
	send_text(&near, text);
	length = read(pair[1], record, size);
	assert_true(length > 5 && length < (ssize_t)size);
	assert_int_equal(dup2(fd, near.stream->fd), near.stream->fd);
	close(pair[0]);
	close(pair[1]);
	close(fd);
	return (size_t)length;
}

static void test_incomplete_record_is_completed_in_the_new_loop(void **state)
{
	uint8_t record[200];
	size_t length;

	(void)state;
	meet();
	move(&near);
	length = take_record(record, sizeof(record), "hello");
	assert_int_equal(write(near.stream->fd, record, length / 2), (ssize_t)(length / 2));
	turn(2);
	assert_int_equal(far.length, 0);
	leave(&far);
	free_old_loop();
	join(&far);
	assert_int_equal(write(near.stream->fd, record + length / 2, length - length / 2),
		(ssize_t)(length - length / 2));
	turn(2);
	assert_has(&far, "hello");
}

/* The rest of a decrypted record, which no event of the kernel reports. */
static void test_announced_rest_of_a_record_is_received_in_the_new_loop(void **state)
{
	(void)state;
	meet();
	far.room = 4;
	far.leaves = true;
	send_text(&near, "hello, world");
	turn(2);
	assert_int_equal(far.length, 4);
	far.leaves = false;
	join(&far);
	turn(5);
	assert_has(&far, "hello, world");
}

static void test_announced_rest_waits_for_the_end_of_a_pause(void **state)
{
	(void)state;
	meet();
	far.room = 4;
	far.pauses = true;
	send_text(&near, "hello, world");
	turn(2);
	assert_int_equal(far.length, 4);
	far.pauses = false;
	move(&far);
	turn(5);
	assert_int_equal(far.length, 4);
	stream_resume(far.stream);
	turn(5);
	assert_has(&far, "hello, world");
}

/* close_notify on a connection that stays open: no event of the kernel reports the end. */
static void test_announced_end_is_reported_in_the_new_loop(void **state)
{
	const int fd = dup(near.stream->fd);

	(void)state;
	meet();
	far.leaves = true;
	send_text(&near, "bye");
	stream_close(near.stream);
	turn(2);
	assert_has(&far, "bye");
	join(&far);
	turn(2);
	assert_int_equal(far.last, STREAM_END);
	close(fd);
}

static void test_encrypted_stream_may_be_closed_while_it_is_away(void **state)
{
	(void)state;
	meet();
	leave(&near);
	leave(&far);
	free_old_loop();
	stream_close(far.stream);
	assert_false(stream_is_open(far.stream));
	join(&near);
	turn(1);
	assert_int_equal(near.last, STREAM_END);
}

static void test_peer_of_a_stream_closed_while_it_was_away_reads_the_end(void **state)
{
	(void)state;
	meet();
	stream_pause(far.stream);
	assert_int_equal(stream_send_bytes(near.stream, bulk, BULK), STREAM_SENT_LATER);
	leave(&near);
	stream_close(near.stream);
	stream_resume(far.stream);
	turn(50);
	assert_true(far.length > 0 && far.length < BULK);
	assert_int_equal(far.last, STREAM_END);
}

/* --- during the handshake ----------------------------------------------------------------- */

static void assert_handshake_ends_in_the_new_loop(void)
{
	turn(8);
	assert_int_equal(near.secured, 1);
	assert_int_equal(far.secured, 1);
	assert_int_equal(handshakes(&new_loop, TLS_TOWARDS_CLIENTS, true), 1);
	assert_int_equal(handshakes(&new_loop, TLS_TOWARDS_SERVERS, true), 1);
	assert_they_talk();
}

static void test_handshake_that_has_begun_ends_in_the_new_loop(void **state)
{
	(void)state;
	begin("");
	move_both();
	assert_handshake_ends_in_the_new_loop();
}

static void test_handshake_of_which_half_is_done_ends_in_the_new_loop(void **state)
{
	(void)state;
	begin("");
	/* The server answers the first message. */
	stream_pause(near.stream);
	turn(2);
	assert_int_equal(far.last, STREAM_AGAIN);
	assert_int_equal(near.secured, 0);
	stream_resume(near.stream);
	move_both();
	assert_handshake_ends_in_the_new_loop();
}

static void test_old_handshake_moves_between_all_its_messages(void **state)
{
	(void)state;
	begin("tlsv1.2");
	for (int i = 0; i < 6; i++) {
		struct loop *to = i % 2 ? &old_loop : &new_loop;

		leave(&near);
		leave(&far);
		assert_true(stream_join(near.stream, to, &handlers));
		assert_true(stream_join(far.stream, to, &handlers));
		loop_turn(to, false);
	}
	assert_int_equal(near.secured, 1);
	assert_int_equal(far.secured, 1);
	assert_they_talk();
}

/* The first message comes in two parts. */
static void test_incomplete_message_of_the_handshake_is_completed(void **state)
{
	uint8_t message[4096];
	ssize_t length;

	(void)state;
	stream_pause(far.stream);
	begin("");
	length = recv(far.stream->fd, message, sizeof(message), 0);
	assert_true(length > 100);
	stream_resume(far.stream);
	assert_int_equal(write(near.stream->fd, message, 50), 50);
	turn(2);
	move_both();
	assert_int_equal(
		write(near.stream->fd, message + 50, (size_t)length - 50), length - 50);
	assert_handshake_ends_in_the_new_loop();
}

static void test_stream_may_be_closed_away_from_its_handshake(void **state)
{
	(void)state;
	begin("");
	leave(&near);
	leave(&far);
	free_old_loop();
	stream_close(near.stream);
	join(&far);
	turn(3);
	assert_true(far.last == STREAM_END || far.last == STREAM_BROKEN);
	stream_close(far.stream);
	assert_int_equal(handshakes(&new_loop, TLS_TOWARDS_CLIENTS, false), 1);
	assert_int_equal(handshakes(&new_loop, TLS_TOWARDS_SERVERS, false), 0);
}

/* --- in another thread -------------------------------------------------------------------- */

/* The thread of the new loop: end the handshake of the server, and answer the client. */
static void *serve(void *argument)
{
	(void)argument;
	if (!stream_join(far.stream, &new_loop, &handlers))
		return &far;
	while (far.length < 5 && far.last != STREAM_BROKEN)
		loop_turn(&new_loop, true);
	if (stream_send_bytes(far.stream, "there", 5) != STREAM_SENT_ALL)
		return &far;
	stream_leave(far.stream);
	return NULL;
}

static void test_stream_moves_to_another_thread_and_back(void **state)
{
	pthread_t thread;
	void *failed;

	(void)state;
	begin("");
	leave(&far);
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	while (near.secured == 0)
		loop_turn(&old_loop, true);
	send_text(&near, "hello");
	while (near.length < 5)
		loop_turn(&old_loop, true);
	assert_has(&near, "there");
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_has(&far, "hello");
	assert_true(stream_join(far.stream, &old_loop, &handlers));
	send_text(&near, ", world");
	turn(2);
	assert_has(&far, "hello, world");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_encrypted_stream_moves_without_its_peer),
		TEST(test_both_sides_move_and_the_old_loop_ends),
		TEST(test_unsent_records_are_sent_by_the_new_loop),
		TEST(test_incomplete_record_is_completed_in_the_new_loop),
		TEST(test_announced_rest_of_a_record_is_received_in_the_new_loop),
		TEST(test_announced_rest_waits_for_the_end_of_a_pause),
		TEST(test_announced_end_is_reported_in_the_new_loop),
		TEST(test_encrypted_stream_may_be_closed_while_it_is_away),
		TEST(test_peer_of_a_stream_closed_while_it_was_away_reads_the_end),
		TEST(test_handshake_that_has_begun_ends_in_the_new_loop),
		TEST(test_handshake_of_which_half_is_done_ends_in_the_new_loop),
		TEST(test_old_handshake_moves_between_all_its_messages),
		TEST(test_incomplete_message_of_the_handshake_is_completed),
		TEST(test_stream_may_be_closed_away_from_its_handshake),
		TEST(test_stream_moves_to_another_thread_and_back),
	};

	return cmocka_run_group_tests(tests, make_certificate, remove_certificate);
}
