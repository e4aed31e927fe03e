/* SPDX-License-Identifier: ISC */
/*
 * A non-blocking byte stream on the event loop.
 *
 * A stream_kind implements the transport (a plain socket, TLS, a script in tests), so that
 * callers need not distinguish them. A stream has one libevent event, for reading. Bytes that
 * the kernel does not take at once are copied to a backlog with an event for writing, which is
 * freed when it is empty: an idle stream has no memory besides this struct.
 *
 * A stream never closes itself: it calls its handlers, and they call stream_close().
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

#include "base/buffer.h"
#include "net/loop.h"

/*
 * What stream_receive() returns besides a number of bytes: the peer has closed its side; there
 * is nothing to receive now; the connection has failed.
 */
enum { STREAM_END = 0, STREAM_AGAIN = -1, STREAM_BROKEN = -2 };

enum stream_sent {
	STREAM_SENT_ALL, /* the kernel has taken everything */
	STREAM_SENT_LATER, /* the rest is in the backlog: stop reading from its source */
	STREAM_SENT_NOT, /* the stream is broken, or out of memory for the rest */
};

struct stream;

/* Callbacks of a stream, from the event loop unless noted; each may close the stream. */
struct stream_handlers {
	/* Bytes, an end or an error can be received. */
	void (*readable)(struct stream *stream);
	/* The backlog is empty again. */
	void (*drained)(struct stream *stream);
	/* The peer has closed the connection while reading is paused. NULL: not watched. */
	void (*hung_up)(struct stream *stream);
	/* stream_connect() has ended: error is 0 or an errno. */
	void (*connected)(struct stream *stream, int error);
	/* The TLS handshake is done; called from inside stream_receive(). May be NULL. */
	void (*secured)(struct stream *stream);
};

struct stream_kind {
	/* As stream_receive(). */
	ssize_t (*receive)(struct stream *stream, void *data, size_t size);
	/* Returns the number of bytes taken, STREAM_AGAIN or STREAM_BROKEN. */
	ssize_t (*send)(struct stream *stream, const struct iovec *pieces, int count);
	void (*close)(struct stream *stream);
	/*
	 * Encrypt the pieces into one piece, which stays valid until the next call of the kind.
	 * Returns false when they cannot be sent. NULL: pieces are sent as they are.
	 */
	bool (*seal)(struct stream *stream, const struct iovec *pieces, int count,
		struct iovec *out);
	/* Send a closing message; called before close() if the backlog is empty. NULL: none. */
	void (*shut_down)(struct stream *stream);
	/*
	 * Parts of stream_leave() and stream_join(): drop what belongs to the loop; get the same
	 * from the new loop, and return false when out of memory. NULL: nothing belongs to it.
	 */
	void (*leave)(struct stream *stream);
	bool (*join)(struct stream *stream);
};

struct backlog;
struct tcp_options;
struct tls;

/* The unsent bytes of a stream that is away from all loops. */
struct stream_unsent {
	struct buffer bytes;
	size_t sent; /* number of bytes at the front that are sent already */
};

struct stream {
	union {
		struct event event;
		struct stream_unsent unsent; /* instead of the event while `loop` is NULL */
	};
	struct loop *loop; /* NULL: away, between stream_leave() and stream_join() */
	const struct stream_kind *kind;
	const struct stream_handlers *handlers;
	struct backlog *backlog; /* NULL: no unsent bytes */
	struct tls *tls; /* owned; NULL: not encrypted */
	int fd; /* -1: closed, or scripted */
	bool paused; /* stream_pause(): do not call readable() */
	bool parked; /* the read event is removed: it fired while paused, or frozen is set */
	bool watched; /* while parked: loop_watch_hang_up() is active */
	bool frozen; /* stream_freeze(): only stream_thaw() adds the read event again */
	/* More to receive that no event of the kernel reports; until the kind's next receive. */
	bool unread;
};

/* The kind of a plain socket, and its functions, which kinds on top of it also use. */
extern const struct stream_kind stream_raw;
ssize_t stream_raw_receive(struct stream *stream, void *data, size_t size);
ssize_t stream_raw_send(struct stream *stream, const struct iovec *pieces, int count);
void stream_raw_close(struct stream *stream);

/*
 * Open a stream on a connected, non-blocking descriptor, which the stream then owns. No event
 * is reported until stream_watch(). The handlers must outlive the stream.
 */
void stream_open(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers);

/*
 * Start waiting for readable events. Bytes that have already arrived may be received before,
 * which saves an event. Returns false when out of memory.
 */
bool stream_watch(struct stream *stream);

/*
 * Open a socket, set these options unless it is a Unix socket, and start to connect to the
 * address. Returns false with errno when that fails at once; the stream is then closed.
 * Otherwise handlers->connected is called later, never from inside this call. After a success
 * the stream is watched.
 */
bool stream_connect(struct stream *stream, struct loop *loop, const struct sockaddr *address,
	socklen_t length, const struct tcp_options *options,
	const struct stream_handlers *handlers);

/*
 * Replace the handlers of an open stream. If the stream is paused and the old handlers did not
 * watch for hang-ups, a hang-up that has already happened is reported to the new ones.
 */
void stream_set_handlers(struct stream *stream, const struct stream_handlers *handlers);

/*
 * Remove the stream from the loop, drop its backlog and close its descriptor. No handler is
 * called any more. Does nothing on a closed stream.
 */
void stream_close(struct stream *stream);

static inline bool stream_is_open(const struct stream *stream)
{
	return stream->kind != NULL;
}

/* Receive once. Returns a number of bytes, STREAM_END, STREAM_AGAIN or STREAM_BROKEN. */
static inline ssize_t stream_receive(struct stream *stream, void *data, size_t size)
{
	return stream->kind->receive(stream, data, size);
}

/*
 * Send these pieces with one system call, or append them to the backlog if there is one. Bytes
 * that are not sent are copied. The array of pieces may be changed by the call. Never closes
 * the stream.
 */
enum stream_sent stream_send(struct stream *stream, struct iovec *pieces, int count);

/* Send bytes that are already encrypted, without a call of the kind's `seal`. */
enum stream_sent stream_send_sealed(struct stream *stream, const void *data, size_t length);

/*
 * Call handlers->readable once more, when reading is not paused, without an event of the
 * kernel.
 */
void stream_announce_unread(struct stream *stream);

/* stream_send() of one piece. */
enum stream_sent stream_send_bytes(struct stream *stream, const void *data, size_t length);

/* Returns whether unsent bytes are in the backlog. */
static inline bool stream_is_blocked(const struct stream *stream)
{
	return stream->backlog != NULL;
}

/*
 * Returns whether bytes have arrived that were not received yet, as far as the kernel knows.
 * False for a stream without a descriptor.
 */
bool stream_has_unread(const struct stream *stream);

/* Returns the number of unsent bytes in the backlog. */
size_t stream_backlog_length(const struct stream *stream);

/*
 * Stop and resume reading. A pause needs no system call: the read event is removed only if
 * something arrives meanwhile, and most clients that wait send nothing before the response.
 */
static inline void stream_pause(struct stream *stream)
{
	stream->paused = true;
}

void stream_resume(struct stream *stream);

/*
 * Neither read nor watch for hang-ups until stream_thaw(); pauses and resumes meanwhile take
 * effect then. The backlog is still written.
 */
void stream_freeze(struct stream *stream);
void stream_thaw(struct stream *stream);

/*
 * As stream_freeze(), and also stop writing the backlog, so that the state of the stream does
 * not change while it is saved for another process. stream_attach() undoes it. Not to be called
 * before handlers->connected.
 */
void stream_detach(struct stream *stream);
void stream_attach(struct stream *stream);

/*
 * Move a stream from one loop to another, whose thread may be another one. The thread of the old
 * loop calls stream_leave(); from then on the stream is *away*: nothing in it points to the old
 * loop, and its bytes may be copied to another address, where the copy replaces it. The thread
 * of the new loop calls stream_join() at the final address, with the handlers to be used there.
 * Pauses, freezes, unsent bytes, TLS and what stream_announce_unread() announced stay as they
 * are; a hang-up of the peer while reading is paused may be reported once more.
 *
 * While a stream is away, only stream_join() and stream_close() may be called for it; when it is
 * closed then, TLS sends no closing message. stream_leave() may be called from a handler, but
 * not before handlers->connected, and not from handlers->secured. stream_join() also does what
 * stream_watch() does, calls no handler, and returns false when out of memory: the stream is
 * then still away.
 */
void stream_leave(struct stream *stream);
bool stream_join(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers);

/* As stream_open(); the stream is detached, and paused or not, until stream_attach(). */
void stream_open_detached(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers, bool paused);

/*
 * Put bytes into the backlog that the old process of a takeover has not sent. Returns false
 * when out of memory.
 */
bool stream_owe(struct stream *stream, const void *data, size_t length);

#endif
