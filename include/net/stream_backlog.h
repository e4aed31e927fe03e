/* SPDX-License-Identifier: ISC */
/*
 * The unsent bytes of one stream with the event that waits for room: private to net/stream, and
 * here only so that the loop knows the size of the objects in its slab, and for kinds of streams
 * that have no descriptor to wait on.
 */
#ifndef PGUSHER_NET_STREAM_BACKLOG_H
#define PGUSHER_NET_STREAM_BACKLOG_H

#include <event2/event_struct.h>

#include "base/buffer.h"

struct backlog {
	struct event event; /* write readiness; not used by scripted streams */
	struct buffer bytes;
	size_t sent; /* of bytes, from the front */
};

struct stream;

/* There is room: send from the backlog, which must exist; tells the handlers when it is empty. */
void stream_write_backlog(struct stream *stream);

#endif
