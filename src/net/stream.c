/* SPDX-License-Identifier: ISC */
#include "net/stream.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "net/crew/own_loop.h"
#include "net/stream_backlog.h"
#include "net/tcp_options.h"

/* --- the plain socket ------------------------------------------------------------------- */

/* Map errno. A shortage of memory passes; the level-triggered event repeats the attempt. */
static ssize_t failed(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS ||
			errno == ENOMEM
		? STREAM_AGAIN
		: STREAM_BROKEN;
}

ssize_t stream_raw_receive(struct stream *stream, void *data, size_t size)
{
	const ssize_t got = recv(stream->fd, data, size, 0);

	return got >= 0 ? got : failed();
}

/* A function of its own, so that sending a single piece needs no protected stack frame. */
__attribute__((noinline)) static ssize_t send_many(
	int fd, const struct iovec *pieces, int count)
{
	const struct msghdr message = {
		.msg_iov = (struct iovec *)pieces,
		.msg_iovlen = count < IOV_MAX ? (size_t)count : IOV_MAX,
	};

	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

ssize_t stream_raw_send(struct stream *stream, const struct iovec *pieces, int count)
{
	const ssize_t sent = count == 1
		? send(stream->fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL)
		: send_many(stream->fd, pieces, count);

	return sent >= 0 ? sent : failed();
}

void stream_raw_close(struct stream *stream)
{
	close(stream->fd);
}

const struct stream_kind stream_raw = {
	.receive = stream_raw_receive,
	.send = stream_raw_send,
	.close = stream_raw_close,
};

/* Fewer bytes have emptied a socket, however small its buffer is. */
enum { LITTLE = 256 };

/*
 * With small buffers of the kernel: receive no more than the socket of the other side has room
 * for, or it would be sent in two steps, and reading would pause in between. The peer sends again
 * while the buffer is emptied, and only now: if a part stayed in it, it would wait for a timer.
 * Half of the limit is worth a send: more receives than that would keep the other side waiting.
 */
static ssize_t receive_some(struct stream *stream, void *data, size_t size)
{
	const size_t limit = stream->loop->receive_limit;
	const size_t most = limit > 0 && limit < size ? limit : size;
	size_t total = 0;
	ssize_t got;

	do {
		got = stream_raw_receive(stream, (uint8_t *)data + total, most - total);
		if (got > 0)
			total += (size_t)got;
	} while (got >= LITTLE && total < most / 2);
	return total > 0 ? (ssize_t)total : got;
}

/* A kind of its own, so that streams without the limit need not look for it. */
static const struct stream_kind stream_limited = {
	.receive = receive_some,
	.send = stream_raw_send,
	.close = stream_raw_close,
};

/* --- reading ---------------------------------------------------------------------------- */

static void on_hang_up(evutil_socket_t fd, short what, void *argument)
{
	struct stream *stream = argument;

	(void)fd;
	(void)what;
	if (stream->handlers->hung_up)
		stream->handlers->hung_up(stream);
}

/* Watch for a hang-up of the peer if there is a handler for it. */
static void watch_hang_up(struct stream *stream)
{
	if (!stream->handlers->hung_up)
		return;
	event_assign(&stream->event, stream->loop->base, -1, 0, on_hang_up, stream);
	/* If this fails for want of memory, the hang-up is noticed when reading resumes. */
	stream->watched = loop_watch_hang_up(stream->loop, stream->fd, &stream->event);
}

/*
 * Something arrived while reading is paused: remove the event, or it would fire in every turn.
 */
static void park(struct stream *stream)
{
	event_del(&stream->event);
	stream->parked = true;
	watch_hang_up(stream);
}

static void unwatch_hang_up(struct stream *stream)
{
	if (stream->watched)
		loop_unwatch_hang_up(stream->loop, stream->fd, &stream->event);
	stream->watched = false;
}

static void unpark(struct stream *stream)
{
	stream->parked = false;
	unwatch_hang_up(stream);
}

void stream_set_handlers(struct stream *stream, const struct stream_handlers *handlers)
{
	stream->handlers = handlers;
	if (stream->parked && !stream->watched && !stream->frozen)
		watch_hang_up(stream);
}

static void on_readable(evutil_socket_t fd, short what, void *argument)
{
	struct stream *stream = argument;

	(void)fd;
	(void)what;
	OWN_LOOP(stream->loop);
	if (stream->paused) {
		park(stream);
		return;
	}
	stream->handlers->readable(stream);
}

void stream_announce_unread(struct stream *stream)
{
	stream->unread = true;
	event_active(&stream->event, EV_READ, 0);
}

static void assign_reading(struct stream *stream)
{
	event_assign(&stream->event, stream->loop->base, stream->fd, EV_READ | EV_PERSIST,
		on_readable, stream);
}

bool stream_watch(struct stream *stream)
{
	return stream->fd < 0 || event_add(&stream->event, NULL) == 0;
}

void stream_resume(struct stream *stream)
{
	OWN_LOOP(stream->loop);
	stream->paused = false;
	if (!stream->parked || stream->frozen)
		return;
	unpark(stream);
	assign_reading(stream);
	if (!stream_watch(stream))
		log_write(LEVEL_ERROR, "cannot go on reading a connection: %m");
	if (stream->unread)
		stream_announce_unread(stream);
}

void stream_freeze(struct stream *stream)
{
	if (stream->parked)
		unpark(stream);
	else if (stream->fd >= 0)
		event_del(&stream->event);
	stream->parked = stream->frozen = true;
}

void stream_thaw(struct stream *stream)
{
	stream->frozen = false;
	if (!stream->paused)
		stream_resume(stream);
	else if (stream->fd >= 0 && !stream->watched)
		watch_hang_up(stream);
}

/* --- opening and closing ---------------------------------------------------------------- */

static void start(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers)
{
	stream->loop = loop;
	stream->fd = fd;
	stream->handlers = handlers;
	stream->kind = loop->receive_limit > 0 ? &stream_limited : &stream_raw;
	stream->backlog = NULL;
	stream->tls = NULL;
	stream->paused = stream->parked = stream->watched = stream->frozen = false;
	stream->unread = false;
}

void stream_open(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers)
{
	start(stream, loop, fd, handlers);
	assign_reading(stream);
}

static void on_connected(evutil_socket_t fd, short what, void *argument)
{
	struct stream *stream = argument;
	int error = 0;
	socklen_t length = sizeof(error);

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
		error = errno;
	assign_reading(stream);
	if (error == 0 && !stream_watch(stream))
		error = ENOMEM;
	stream->handlers->connected(stream, error);
}

bool stream_connect(struct stream *stream, struct loop *loop, const struct sockaddr *address,
	socklen_t length, const struct tcp_options *options,
	const struct stream_handlers *handlers)
{
	const int fd =
		socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return false;
	start(stream, loop, fd, handlers);
	if (address->sa_family != AF_UNIX && !tcp_options_apply(fd, options))
		goto failed;
	if (connect(fd, address, length) != 0 && errno != EINPROGRESS)
		goto failed;
	/* An immediate success is also reported by an event. */
	event_assign(&stream->event, loop->base, fd, EV_WRITE, on_connected, stream);
	if (event_add(&stream->event, NULL) == 0)
		return true;
	errno = ENOMEM;
failed:
	error = errno;
	close(fd);
	stream->kind = NULL;
	stream->fd = -1;
	errno = error;
	return false;
}

/* Remove the read event, or the watch for a hang-up. */
static void remove_event(struct stream *stream)
{
	if (stream->parked)
		unwatch_hang_up(stream);
	else if (stream->fd >= 0)
		event_del(&stream->event);
}

static void drop_backlog(struct stream *stream)
{
	struct backlog *backlog = stream->backlog;

	if (!backlog)
		return;
	if (stream->fd >= 0)
		event_del(&backlog->event);
	buffer_free(&backlog->bytes);
	slab_give(&stream->loop->backlogs, backlog);
	stream->backlog = NULL;
}

/* Send a closing message if the kind has one, and remove all events. */
static void remove_from_loop(struct stream *stream)
{
	if (stream->kind->shut_down && !stream->backlog)
		stream->kind->shut_down(stream);
	drop_backlog(stream);
	remove_event(stream);
	stream->parked = false;
}

void stream_close(struct stream *stream)
{
	if (!stream_is_open(stream))
		return;
	OWN_LOOP(stream->loop);
	if (stream->loop)
		remove_from_loop(stream);
	else
		buffer_free(&stream->unsent.bytes);
	stream->kind->close(stream);
	stream->kind = NULL;
	stream->fd = -1;
}

/* --- writing ---------------------------------------------------------------------------- */

void stream_write_backlog(struct stream *stream)
{
	struct backlog *backlog = stream->backlog;
	const struct iovec rest = {
		.iov_base = backlog->bytes.data + backlog->sent,
		.iov_len = backlog->bytes.length - backlog->sent,
	};
	const ssize_t sent = stream->kind->send(stream, &rest, 1);

	if (sent == STREAM_AGAIN)
		return;
	/* A broken stream drops its backlog here; the next receive reports STREAM_BROKEN. */
	if (sent != STREAM_BROKEN) {
		backlog->sent += (size_t)sent;
		if (backlog->sent < backlog->bytes.length)
			return;
	}
	drop_backlog(stream);
	stream->handlers->drained(stream);
}

static void on_writable(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	stream_write_backlog(argument);
}

static void assign_writing(struct stream *stream)
{
	event_assign(&stream->backlog->event, stream->loop->base, stream->fd,
		EV_WRITE | EV_PERSIST, on_writable, stream);
}

/*
 * Drop sent bytes, so that the backlog of a peer that is always behind does not grow forever.
 */
static void drop_sent(struct backlog *backlog)
{
	if (backlog->sent < backlog->bytes.length / 2)
		return;
	buffer_consume(&backlog->bytes, backlog->sent);
	backlog->sent = 0;
}

static bool append(struct backlog *backlog, const struct iovec *pieces, int count, size_t skip)
{
	if (backlog->sent > 0)
		drop_sent(backlog);
	for (int i = 0; i < count; i++) {
		if (skip >= pieces[i].iov_len) {
			skip -= pieces[i].iov_len;
			continue;
		}
		if (!buffer_append(&backlog->bytes, (const uint8_t *)pieces[i].iov_base + skip,
			    pieces[i].iov_len - skip))
			return false;
		skip = 0;
	}
	return true;
}

static enum stream_sent keep(
	struct stream *stream, const struct iovec *pieces, int count, size_t skip)
{
	struct backlog *backlog = stream->backlog;

	if (!backlog) {
		backlog = slab_take(&stream->loop->backlogs);
		if (!backlog)
			return STREAM_SENT_NOT;
		buffer_init(&backlog->bytes);
		stream->backlog = backlog;
		if (stream->fd >= 0) {
			assign_writing(stream);
			if (event_add(&backlog->event, NULL) != 0)
				return STREAM_SENT_NOT;
		}
	}
	return append(backlog, pieces, count, skip) ? STREAM_SENT_LATER : STREAM_SENT_NOT;
}

static inline enum stream_sent send_or_keep(
	struct stream *stream, const struct iovec *pieces, int count)
{
	ssize_t sent;
	size_t length = count > 0 ? pieces->iov_len : 0;

	if (stream->backlog)
		return keep(stream, pieces, count, 0);
	sent = stream->kind->send(stream, pieces, count);
	for (int i = 1; i < count; i++)
		length += pieces[i].iov_len;
	if (sent == (ssize_t)length)
		return STREAM_SENT_ALL;
	if (sent == STREAM_BROKEN)
		return STREAM_SENT_NOT;
	return keep(stream, pieces, count, sent == STREAM_AGAIN ? 0 : (size_t)sent);
}

/* A function of its own for the same reason as send_many(): saves 20 instructions per send. */
__attribute__((noinline)) static enum stream_sent seal_and_send(
	struct stream *stream, const struct iovec *pieces, int count)
{
	struct iovec sealed;

	if (!stream->kind->seal(stream, pieces, count, &sealed))
		return STREAM_SENT_NOT;
	return send_or_keep(stream, &sealed, 1);
}

enum stream_sent stream_send(struct stream *stream, struct iovec *pieces, int count)
{
	OWN_LOOP(stream->loop);
	if (stream->kind->seal)
		return seal_and_send(stream, pieces, count);
	return send_or_keep(stream, pieces, count);
}

enum stream_sent stream_send_sealed(struct stream *stream, const void *data, size_t length)
{
	const struct iovec piece = {.iov_base = (void *)data, .iov_len = length};

	return send_or_keep(stream, &piece, 1);
}

enum stream_sent stream_send_bytes(struct stream *stream, const void *data, size_t length)
{
	struct iovec piece = {.iov_base = (void *)data, .iov_len = length};

	return stream_send(stream, &piece, 1);
}

void stream_detach(struct stream *stream)
{
	stream_freeze(stream);
	if (stream->backlog && stream->fd >= 0)
		event_del(&stream->backlog->event);
}

void stream_attach(struct stream *stream)
{
	if (stream->backlog && stream->fd >= 0 && event_add(&stream->backlog->event, NULL) != 0)
		log_write(LEVEL_ERROR, "cannot go on writing to a connection: %m");
	stream_thaw(stream);
}

void stream_open_detached(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers, bool paused)
{
	stream_open(stream, loop, fd, handlers);
	stream->paused = paused;
	stream->parked = stream->frozen = true;
}

/* --- moving to another loop -------------------------------------------------------------- */

/* Take the unsent bytes out of the backlog, whose memory belongs to the loop. */
static struct stream_unsent take_unsent(struct stream *stream)
{
	struct backlog *backlog = stream->backlog;
	struct stream_unsent unsent = {0};

	if (!backlog)
		return unsent;
	unsent = (struct stream_unsent){.bytes = backlog->bytes, .sent = backlog->sent};
	buffer_init(&backlog->bytes);
	drop_backlog(stream);
	return unsent;
}

void stream_leave(struct stream *stream)
{
	struct stream_unsent unsent;

	OWN_LOOP(stream->loop);
	/* The event of a connect that has not ended would be lost. */
	CHECK(stream->fd < 0 || event_get_callback(&stream->event) != on_connected);
	if (stream->kind->leave)
		stream->kind->leave(stream);
	remove_event(stream);
	unsent = take_unsent(stream);
	memset(&stream->event, 0, sizeof(stream->event));
	stream->unsent = unsent;
	stream->loop = NULL;
}

/* Put the unsent bytes, if any, into a backlog of this loop. */
static bool give_unsent(struct stream *stream, struct loop *loop)
{
	struct backlog *backlog;

	if (!stream->unsent.bytes.data)
		return true;
	backlog = slab_take(&loop->backlogs);
	if (!backlog)
		return false;
	backlog->bytes = stream->unsent.bytes;
	backlog->sent = stream->unsent.sent;
	stream->backlog = backlog;
	return true;
}

/* Add the events that the stream had when it left. */
static bool add_events(struct stream *stream)
{
	if (stream->backlog && stream->fd >= 0 && event_add(&stream->backlog->event, NULL) != 0)
		return false;
	if (stream->parked) {
		if (!stream->frozen && stream->fd >= 0)
			watch_hang_up(stream);
		return true;
	}
	if (!stream_watch(stream))
		return false;
	if (stream->unread)
		stream_announce_unread(stream);
	return true;
}

bool stream_join(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers)
{
	CHECK(!stream->loop);
	OWN_LOOP(loop);
	if (!give_unsent(stream, loop))
		return false;
	stream->loop = loop;
	stream->handlers = handlers;
	assign_reading(stream);
	if (stream->backlog)
		assign_writing(stream);
	if ((!stream->kind->join || stream->kind->join(stream)) && add_events(stream))
		return true;
	stream_leave(stream);
	return false;
}

bool stream_owe(struct stream *stream, const void *data, size_t length)
{
	const struct iovec piece = {.iov_base = (void *)data, .iov_len = length};

	return length == 0 || keep(stream, &piece, 1, 0) == STREAM_SENT_LATER;
}

bool stream_has_unread(const struct stream *stream)
{
	int bytes = 0;

	return stream->unread ||
		(stream->fd >= 0 && ioctl(stream->fd, FIONREAD, &bytes) == 0 && bytes > 0);
}

size_t stream_backlog_length(const struct stream *stream)
{
	return stream->backlog ? stream->backlog->bytes.length - stream->backlog->sent : 0;
}
