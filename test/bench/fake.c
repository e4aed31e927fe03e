/* SPDX-License-Identifier: ISC */
/*
 * A server that uses almost no CPU time, so that measurements are the pooler's: it supports what a
 * pooler and its clients need of protocol 3.0, and answers from memory. One thread, one receive and
 * one send for each packet of requests; it accepts every login and checks nothing.
 *
 *   fake PORT                            prints `ready` when it listens on 127.0.0.1, ends with its input
 *   SELECT bulk COUNT SIZE               so many rows with one value of so many bytes
 *   COPY bulk COUNT SIZE TO STDOUT       the same as CopyData
 *   COPY sink FROM STDIN                 discards the data
 *   SET and the like                     done, without rows
 *   anything else                        one row, 1
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVE_SIZE = 256 * 1024, ANSWER_SIZE = 64 * 1024, BLOCK_SIZE = 256 * 1024 };

/* One connection. `held` has the received part of an incomplete message. */
struct session {
	int fd;
	bool logged_in;
	uint64_t skip; /* bytes of CopyData still to come */
	uint8_t *held;
	size_t held_length;
};

static uint8_t receive_area[RECEIVE_SIZE];
static uint8_t answer[ANSWER_SIZE];
static size_t answer_length;
static uint32_t next_key = 1;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint32_t get_int32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_int32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 24);
	at[1] = (uint8_t)(value >> 16);
	at[2] = (uint8_t)(value >> 8);
	at[3] = (uint8_t)value;
}

/* --- answers ------------------------------------------------------------------------------ */

/* Send all bytes, waiting for room; the next receive notices a closed connection. */
static void send_all(int fd, const uint8_t *data, size_t length)
{
	while (length > 0) {
		const ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN) {
			struct pollfd room = {.fd = fd, .events = POLLOUT};

			poll(&room, 1, -1);
			continue;
		}
		if (sent < 0)
			return;
		data += sent;
		length -= (size_t)sent;
	}
}

static void flush_answer(const struct session *session)
{
	send_all(session->fd, answer, answer_length);
	answer_length = 0;
}

static void add(const struct session *session, char type, const void *body, size_t length)
{
	if (answer_length + 5 + length > sizeof(answer))
		flush_answer(session);
	answer[answer_length] = (uint8_t)type;
	put_int32(answer + answer_length + 1, (uint32_t)(length + 4));
	memcpy(answer + answer_length + 5, body, length);
	answer_length += 5 + length;
}

static void add_tag(const struct session *session, const char *tag)
{
	add(session, 'C', tag, strlen(tag) + 1);
}

static void add_ready(const struct session *session)
{
	add(session, 'Z', "I", 1);
}

static void add_columns(const struct session *session)
{
	static const uint8_t columns[] = "\0\1"
					 "v\0"
					 "\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0";

	add(session, 'T', columns, sizeof(columns));
}

static void add_row(const struct session *session)
{
	static const uint8_t row[7] = {0, 1, 0, 0, 0, 1, '1'};

	add(session, 'D', row, sizeof(row));
}

static void add_parameter(const struct session *session, const char *name, const char *value)
{
	char pair[64];
	const int length = snprintf(pair, sizeof(pair), "%s%c%s", name, 0, value);

	add(session, 'S', pair, (size_t)length + 1);
}

static void welcome(struct session *session)
{
	uint8_t key[8];

	add(session, 'R', "\0\0\0\0", 4);
	add_parameter(session, "server_version", "15.0");
	add_parameter(session, "server_encoding", "UTF8");
	add_parameter(session, "client_encoding", "UTF8");
	add_parameter(session, "application_name", "");
	add_parameter(session, "DateStyle", "ISO, MDY");
	add_parameter(session, "IntervalStyle", "postgres");
	add_parameter(session, "TimeZone", "UTC");
	add_parameter(session, "integer_datetimes", "on");
	add_parameter(session, "standard_conforming_strings", "on");
	put_int32(key, next_key++);
	put_int32(key + 4, 0x5eed);
	add(session, 'K', key, sizeof(key));
	add_ready(session);
	session->logged_in = true;
}

/* As many messages of one kind as asked for, in blocks. */
static void add_many(const struct session *session, char type, const uint8_t *body,
	size_t length, long count)
{
	static uint8_t block[BLOCK_SIZE];
	const size_t each = 5 + length;
	const long in_block = (long)(sizeof(block) / each);

	flush_answer(session);
	for (long i = 0; i < in_block; i++) {
		block[(size_t)i * each] = (uint8_t)type;
		put_int32(block + (size_t)i * each + 1, (uint32_t)(length + 4));
		memcpy(block + (size_t)i * each + 5, body, length);
	}
	for (long sent = 0; sent < count; sent += in_block)
		send_all(session->fd, block,
			(size_t)(count - sent < in_block ? count - sent : in_block) * each);
}

static void answer_query(const struct session *session, const char *sql)
{
	static uint8_t body[128 * 1024];
	long count;
	long size;

	if (!body[sizeof(body) - 1])
		memset(body, 'x', sizeof(body));
	if (sscanf(sql, "SELECT bulk %ld %ld", &count, &size) == 2 && size > 0 &&
		size < 100000) {
		memcpy(body, "\0\1", 2);
		put_int32(body + 2, (uint32_t)size);
		add_columns(session);
		add_many(session, 'D', body, (size_t)size + 6, count);
		add_tag(session, "SELECT");
	} else if (sscanf(sql, "COPY bulk %ld %ld", &count, &size) == 2 && size > 0 &&
		size < 100000) {
		add(session, 'H', "\0\0\1\0\0", 5);
		add_many(session, 'd', body, (size_t)size, count);
		add(session, 'c', "", 0);
		add_tag(session, "COPY");
	} else if (strncmp(sql, "COPY sink", 9) == 0) {
		add(session, 'G', "\0\0\1\0\0", 5);
		return;
	} else if (strncasecmp(sql, "SELECT", 6) != 0) {
		add_tag(session, "SET");
	} else {
		add_columns(session);
		add_row(session);
		add_tag(session, "SELECT 1");
	}
	add_ready(session);
}

/* --- requests ----------------------------------------------------------------------------- */

/* Handle a message. Returns false to close the connection. */
static bool take_message(
	struct session *session, uint8_t type, const uint8_t *body, size_t length)
{
	switch (type) {
	case 'Q':
		if (length == 0 || body[length - 1])
			return false;
		answer_query(session, (const char *)body);
		return true;
	case 'P':
		add(session, '1', "", 0);
		return true;
	case 'B':
		add(session, '2', "", 0);
		return true;
	case 'D':
		add_columns(session);
		return true;
	case 'E':
		add_row(session);
		add_tag(session, "SELECT 1");
		return true;
	case 'C':
		add(session, '3', "", 0);
		return true;
	case 'S':
		add_ready(session);
		return true;
	case 'c':
		add_tag(session, "COPY");
		add_ready(session);
		return true;
	case 'H':
		return true;
	default:
		return false;
	}
}

static bool take_startup(struct session *session, uint32_t code)
{
	if (code == 80877103 || code == 80877104) {
		answer[answer_length++] = 'N';
		return true;
	}
	if (code >> 16 != 3)
		return false;
	welcome(session);
	return true;
}

/* Handle every complete message; returns their size in bytes, or -1 to close. */
static ssize_t take_all(struct session *session, const uint8_t *data, size_t length)
{
	size_t at = 0;

	while (at < length) {
		const size_t head = session->logged_in ? 1 : 0;
		size_t total;

		if (session->skip) {
			const size_t some = session->skip < length - at ? (size_t)session->skip
									: length - at;

			session->skip -= some;
			at += some;
			continue;
		}
		if (length - at < head + 4)
			break;
		total = head + get_int32(data + at + head);
		if (total < head + 4 || total > RECEIVE_SIZE / 2)
			return -1;
		if (head && data[at] == 'd') {
			session->skip = total;
			continue;
		}
		if (length - at < total)
			break;
		if (head) {
			if (!take_message(session, data[at], data + at + 5, total - 5))
				return -1;
		} else if (total < 8 || !take_startup(session, get_int32(data + at + 4))) {
			return -1;
		}
		at += total;
	}
	return (ssize_t)at;
}

/* One receive, its answers, one send. Returns false to close the connection. */
static bool serve(struct session *session)
{
	ssize_t got;
	ssize_t taken;
	size_t length = session->held_length;

	if (length)
		memcpy(receive_area, session->held, length);
	got = recv(session->fd, receive_area + length, sizeof(receive_area) - length, 0);
	if (got < 0 && errno == EAGAIN)
		return true;
	if (got <= 0)
		return false;
	length += (size_t)got;
	taken = take_all(session, receive_area, length);
	flush_answer(session);
	if (taken < 0)
		return false;
	free(session->held);
	session->held = NULL;
	session->held_length = length - (size_t)taken;
	if (session->held_length) {
		session->held = malloc(session->held_length);
		if (!session->held)
			return false;
		memcpy(session->held, receive_area + taken, session->held_length);
	}
	return true;
}

/* --- the loop ----------------------------------------------------------------------------- */

static void watch(int epoll, int fd, void *connection)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("epoll_ctl");
}

static void accept_all(int epoll, int listener)
{
	const int on = 1;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct session *session = calloc(1, sizeof(*session));

		if (!session)
			fail("calloc");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		session->fd = fd;
		watch(epoll, fd, session);
	}
}

static int listen_on(const char *port)
{
	const int on = 1;
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, 4096) < 0)
		fail("listen");
	return fd;
}

int main(int argc, char **argv)
{
	struct epoll_event events[256];
	static int input_is_ready; /* only its address matters */
	int listener;
	int epoll;

	if (argc != 2) {
		fprintf(stderr, "usage: fake PORT\n");
		return 2;
	}
	listener = listen_on(argv[1]);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	watch(epoll, listener, NULL);
	watch(epoll, STDIN_FILENO, &input_is_ready);
	puts("ready");
	fflush(stdout);
	for (;;) {
		const int count = epoll_wait(epoll, events, 256, -1);

		for (int i = 0; i < count; i++) {
			struct session *session = events[i].data.ptr;

			if (!session) {
				accept_all(epoll, listener);
			} else if ((void *)session == &input_is_ready) {
				return 0;
			} else if (!serve(session)) {
				close(session->fd);
				free(session->held);
				free(session);
			}
		}
	}
}
