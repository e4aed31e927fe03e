/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/takeover/takeover_parts.h"

enum {
	/*
	 * Longest message: a record may hold the backlog of a slow client with a large result.
	 */
	MESSAGE_MAX = 1 << 30,
	RECEIVE_SIZE = 64 * 1024,
	/* Most descriptors that one recvmsg() returns. */
	DESCRIPTORS_AT_ONCE = 16,
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

void takeover_watch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

void takeover_forget_signal(void)
{
	interrupted = 0;
}

bool takeover_fail(struct takeover *takeover, const char *why)
{
	snprintf(takeover->why, takeover->why_size, "%s",
		interrupted ? "takeover was in progress, going down immediately" : why);
	return false;
}

void takeover_set_timeout(const struct takeover *takeover, usec_t patience)
{
	const struct timeval limit = {
		.tv_sec = patience / USEC_PER_SEC,
		.tv_usec = patience % USEC_PER_SEC,
	};

	setsockopt(takeover->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(takeover->socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* recvmsg() failed, with errno. */
static bool fail_receive(struct takeover *takeover)
{
	takeover->timed_out = errno == EAGAIN || errno == EWOULDBLOCK;
	return takeover_fail(takeover,
		takeover->timed_out ? "the old process does not answer"
				    : "the old process has closed the connection");
}

/* --- bytes -------------------------------------------------------------------------------- */

bool takeover_send(struct takeover *takeover, const struct buffer *message)
{
	size_t at = 0;

	while (!message->failed && at < message->length && !interrupted) {
		const ssize_t sent = send(takeover->socket, message->data + at,
			message->length - at, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			break;
		if (sent > 0)
			at += (size_t)sent;
	}
	return at == message->length ||
		takeover_fail(takeover, "cannot send to the old process");
}

static void keep_descriptors(struct takeover *takeover, struct msghdr *message)
{
	struct cmsghdr *part;

	for (part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
			buffer_append(&takeover->descriptors, CMSG_DATA(part),
				part->cmsg_len - CMSG_LEN(0));
	}
}

static bool receive(struct takeover *takeover)
{
	static uint8_t bytes[RECEIVE_SIZE];
	union {
		struct cmsghdr header;
		uint8_t space[CMSG_SPACE(DESCRIPTORS_AT_ONCE * sizeof(int))];
	} control;
	struct iovec piece = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const ssize_t got = recvmsg(takeover->socket, &message, MSG_CMSG_CLOEXEC);

	if (got < 0 && errno == EINTR && !interrupted)
		return true;
	if (got == 0)
		return takeover_fail(takeover, "the old process has closed the connection");
	if (got < 0)
		return fail_receive(takeover);
	keep_descriptors(takeover, &message);
	buffer_append(&takeover->input, bytes, (size_t)got);
	explicit_bzero(bytes, (size_t)got);
	if (message.msg_flags & MSG_CTRUNC)
		return takeover_fail(
			takeover, "no descriptors left for those of the old process");
	return (!takeover->input.failed && !takeover->descriptors.failed) ||
		takeover_fail(takeover, "no memory for a takeover");
}

bool takeover_next_message(struct takeover *takeover, struct frame *frame)
{
	for (;;) {
		switch (frame_peek(
			takeover->input.data, takeover->input.length, MESSAGE_MAX, frame)) {
		case FRAME_WHOLE:
			return true;
		case FRAME_MALFORMED:
			return takeover_fail(
				takeover, "the old process speaks another protocol");
		case FRAME_PARTIAL:
		case FRAME_SHORT:
			if (!receive(takeover))
				return false;
		}
	}
}

int takeover_take_descriptor(struct takeover *takeover)
{
	int fd;

	if (takeover->descriptors.length < sizeof(fd))
		return -1;
	memcpy(&fd, takeover->descriptors.data, sizeof(fd));
	buffer_consume(&takeover->descriptors, sizeof(fd));
	return fd;
}
