/* SPDX-License-Identifier: ISC */
#include "net/passing.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buffer.h"

enum {
	/* Most messages sent per event, so that other connections get their turn. */
	MESSAGES_AT_ONCE = 256,
};

struct message {
	size_t length;
	int fd; /* -1: none, or it has been sent */
};

struct passing {
	struct event event;
	int socket;
	passing_function *done;
	void *context;
	struct buffer
		bytes; /* of all messages, one after the other; wiped, they may be secrets */
	struct buffer messages; /* struct message */
	size_t at_byte, at_message;
	bool begun;
};

struct passing *passing_new(
	struct loop *loop, int socket, passing_function *done, void *context)
{
	struct passing *passing = calloc(1, sizeof(*passing));

	if (!passing)
		return NULL;
	passing->socket = socket;
	passing->done = done;
	passing->context = context;
	buffer_init_secret(&passing->bytes);
	event_assign(&passing->event, loop->base, socket, EV_WRITE | EV_PERSIST, NULL, NULL);
	return passing;
}

bool passing_add(struct passing *passing, const void *message, size_t length, int fd)
{
	const struct message entry = {.length = length, .fd = fd};

	return buffer_append(&passing->bytes, message, length) &&
		buffer_append(&passing->messages, &entry, sizeof(entry));
}

/* As sendmsg(). */
static ssize_t send_message(const struct passing *passing, const struct message *message)
{
	union {
		struct cmsghdr header;
		uint8_t space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec piece = {
		.iov_base = passing->bytes.data + passing->at_byte,
		.iov_len = message->length,
	};
	struct msghdr out = {.msg_iov = &piece, .msg_iovlen = 1};

	if (message->fd >= 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &message->fd, sizeof(int));
		out.msg_control = &control;
		out.msg_controllen = sizeof(control.space);
	}
	return sendmsg(passing->socket, &out, MSG_NOSIGNAL);
}

static bool must_wait(int error)
{
	/*
	 * Too many descriptors in flight (ETOOMANYREFS), or too little memory: try again later.
	 */
	return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM ||
		error == ETOOMANYREFS;
}

static void end(struct passing *passing, bool sent)
{
	event_del(&passing->event);
	passing->done(passing->context, sent);
}

static void on_writable(evutil_socket_t fd, short what, void *argument)
{
	struct passing *passing = argument;
	const size_t count = passing->messages.length / sizeof(struct message);
	struct message *messages = (struct message *)passing->messages.data;

	(void)fd;
	(void)what;
	for (int i = 0; i < MESSAGES_AT_ONCE && passing->at_message < count; i++) {
		struct message *message = &messages[passing->at_message];
		const ssize_t sent = send_message(passing, message);

		if (sent < 0) {
			if (!must_wait(errno))
				end(passing, false);
			return;
		}
		/* The descriptor is sent with the first byte. */
		message->fd = -1;
		message->length -= (size_t)sent;
		passing->at_byte += (size_t)sent;
		if (message->length > 0)
			return;
		passing->at_message++;
	}
	if (passing->at_message == count)
		end(passing, true);
}

bool passing_begin(struct passing *passing)
{
	struct event_base *base = event_get_base(&passing->event);

	event_assign(&passing->event, base, passing->socket, EV_WRITE | EV_PERSIST, on_writable,
		passing);
	passing->begun = event_add(&passing->event, NULL) == 0;
	return passing->begun;
}

void passing_free(struct passing *passing)
{
	if (!passing)
		return;
	if (passing->begun)
		event_del(&passing->event);
	buffer_wipe(&passing->bytes);
	buffer_free(&passing->messages);
	free(passing);
}
