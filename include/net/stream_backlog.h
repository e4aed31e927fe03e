/* SPDX-License-Identifier: ISC */
/*
 * The unsent bytes of a stream, and the event for writing. Private to net/stream; in a header
 * because net/loop needs the size for its slab, and tests write the backlog of scripted
 * streams.
 */
#ifndef PGUSHER_NET_STREAM_BACKLOG_H
#define PGUSHER_NET_STREAM_BACKLOG_H

#include <event2/event_struct.h>

#include "base/buffer.h"

struct backlog {
	struct event event; /* the descriptor is writable; unused by scripted streams */
	struct buffer bytes;
	size_t sent; /* number of bytes at the front that are sent already */
};

struct stream;

/*
 * The stream can be written: send from the backlog, which must exist. When it is empty, or the
 * stream is broken, the backlog is freed and handlers->drained called, which may close the
 * stream.
 */
void stream_write_backlog(struct stream *stream);

#endif
