/* SPDX-License-Identifier: ISC */
/*
 * One non-blocking byte stream and its place in the event loop.
 *
 * What a stream is made of (a plain socket, TLS, in tests a script) stands in its
 * stream_kind, so the floors above never ask. A stream has one libevent event, for reading. What
 * a peer does not take at once is copied to a backlog that brings its own write event and goes
 * away when it is empty: an idle stream owns no memory but itself.
 *
 * The stream never closes itself: it tells its handlers and they call stream_close().
 */
#ifndef PGUSHER_NET_STREAM_H
#define PGUSHER_NET_STREAM_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "net/loop.h"

/* What stream_receive() returns besides a number of bytes. */
enum { STREAM_END = 0, STREAM_AGAIN = -1, STREAM_BROKEN = -2 };

enum stream_sent {
	STREAM_SENT_ALL, /* everything is with the kernel */
	STREAM_SENT_LATER, /* the rest is in the backlog: stop reading what feeds it */
	STREAM_SENT_NOT, /* the stream is broken, or there is no memory for the rest */
};

struct stream;

/* How the floors above are told; each may close the stream. */
struct stream_handlers {
	/* There is something to receive (or an end, or an error). */
	void (*readable)(struct stream *stream);
	/* The backlog is empty again. */
	void (*drained)(struct stream *stream);
	/* Reading is paused and the peer has gone. NULL: not interested. */
	void (*hung_up)(struct stream *stream);
	/* A connect has ended: error is 0 or an errno. */
	void (*connected)(struct stream *stream, int error);
	/* A TLS handshake is done; told from inside of stream_receive(). NULL: not interested. */
	void (*secured)(struct stream *stream);
};

struct stream_kind {
	ssize_t (*receive)(struct stream *stream, void *data, size_t size);
	/* Bytes taken, STREAM_AGAIN or STREAM_BROKEN. */
	ssize_t (*send)(struct stream *stream, const struct iovec *pieces, int count);
	void (*close)(struct stream *stream);
	/*
	 * Turn what is to be sent into the one piece that really is, lent until the next call.
	 * False: it cannot be sent. NULL: it goes as it is.
	 */
	bool (*seal)(struct stream *stream, const struct iovec *pieces, int count,
		struct iovec *out);
	/* Last words, when nothing waits to be sent before them. NULL: none. */
	void (*take_leave)(struct stream *stream);
};

struct backlog;
struct tls;

struct stream {
	struct event event;
	struct loop *loop;
	const struct stream_kind *kind;
	const struct stream_handlers *handlers;
	struct backlog *backlog; /* NULL: nothing waits to be written */
	struct tls *tls; /* owned; NULL: in the clear */
	int fd; /* -1: closed, or scripted */
	bool paused; /* do not read */
	bool parked; /* and the read event has been taken out, since it fired while paused */
	bool watched; /* while parked: the loop tells when the peer goes */
	bool frozen; /* and nothing but stream_thaw() puts it back */
	bool unread; /* there is more to receive, which the kernel does not know of */
};

/* A plain socket, and its operations for what stands upon it. */
extern const struct stream_kind stream_raw;
ssize_t stream_raw_receive(struct stream *stream, void *data, size_t size);
ssize_t stream_raw_send(struct stream *stream, const struct iovec *pieces, int count);
void stream_raw_close(struct stream *stream);

/* Take over an open, non-blocking descriptor. Nothing is read until stream_watch(). */
void stream_open(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers);

/*
 * Start reading. Whatever the descriptor holds already may be received before: the kernel is then
 * not asked to tell of what has been read. False: no memory.
 */
bool stream_watch(struct stream *stream);

/*
 * Start a connection to the address. False with errno when it fails at once; else
 * handlers->connected follows, never from inside this call. Reading starts when it succeeded.
 */
bool stream_connect(struct stream *stream, struct loop *loop, const struct sockaddr *address,
	socklen_t length, const struct stream_handlers *handlers);

/*
 * Tell others from now on. An open stream may be paused at that: if its peer has gone unnoticed,
 * since nobody was interested, the new handlers hear of it.
 */
void stream_set_handlers(struct stream *stream, const struct stream_handlers *handlers);

/* Close the descriptor, drop the backlog, leave the loop. Safe on a closed stream. */
void stream_close(struct stream *stream);

static inline bool stream_is_open(const struct stream *stream)
{
	return stream->kind != NULL;
}

/* Receive once. Bytes, STREAM_END, STREAM_AGAIN or STREAM_BROKEN. */
static inline ssize_t stream_receive(struct stream *stream, void *data, size_t size)
{
	return stream->kind->receive(stream, data, size);
}

/*
 * Send these pieces in one call, after whatever the backlog holds. The pieces are the caller's
 * and may be changed by the call.
 */
enum stream_sent stream_send(struct stream *stream, struct iovec *pieces, int count);

/* What a kind's own `seal` has made, or what it has to say by itself: sent as it is. */
enum stream_sent stream_send_sealed(struct stream *stream, const void *data, size_t length);

/* Tell handlers->readable once more, when reading is not paused, though the kernel has nothing. */
void stream_tell_unread(struct stream *stream);

/* stream_send() of one piece. */
enum stream_sent stream_send_bytes(struct stream *stream, const void *data, size_t length);

/* Is something still waiting to be written? */
static inline bool stream_is_blocked(const struct stream *stream)
{
	return stream->backlog != NULL;
}

/* How many bytes wait in the backlog. */
size_t stream_backlog_length(const struct stream *stream);

/*
 * Stop or go on reading. Pausing costs nothing: the event stays where it is, and is taken out
 * only if something does arrive; most waiting clients send nothing until they are answered.
 */
static inline void stream_pause(struct stream *stream)
{
	stream->paused = true;
}

void stream_resume(struct stream *stream);

/*
 * Read nothing, and notice nothing, until it is thawed: pausing and resuming are remembered
 * meanwhile. What waits to be written goes on being written.
 */
void stream_freeze(struct stream *stream);
void stream_thaw(struct stream *stream);

/*
 * Take it out of the loop altogether: what waits to be written rests too, so that all there is to
 * know can be written down. stream_attach() undoes it. Never while it is connecting.
 */
void stream_detach(struct stream *stream);
void stream_attach(struct stream *stream);

/* A stream that has just been opened, and not watched: detached it is, paused or not. */
void stream_open_detached(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers, bool paused);

/* These bytes were to be sent, by whoever had the stream before. False: no memory. */
bool stream_owe(struct stream *stream, const void *data, size_t length);

#endif
