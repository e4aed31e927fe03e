/* SPDX-License-Identifier: ISC */
/*
 * Messages that a client gets between its answers (NotificationResponse, NoticeResponse), and the
 * queue of those that it has not got yet. A message is kept once, however many clients wait for it.
 */
#ifndef PGUSHER_SESSION_NOTIFY_NOTIFICATION_H
#define PGUSHER_SESSION_NOTIFY_NOTIFICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/stream.h"

/* One whole message, which its references share. */
struct notification {
	uint32_t references;
	uint32_t length;
	uint8_t bytes[];
};

/* All zeros is an empty queue. */
struct notification_queue {
	struct notification **items; /* owned, with a reference to each */
	uint32_t first, count, capacity; /* those from `first` on are in the queue */
	size_t bytes; /* length of all messages, and what the queue needs for them */
};

/* Copy a message. Returns NULL when out of memory. The caller owns the reference. */
struct notification *notification_new(const void *bytes, size_t length);

struct notification *notification_ref(struct notification *notification);

/* Release a reference; the last one frees the message. NULL is allowed. */
void notification_unref(struct notification *notification);

/* Append a message, with a reference of its own. Returns false when out of memory. */
bool notification_queue_add(
	struct notification_queue *queue, struct notification *notification);

/* Move all messages of `from` behind those of `to`. Returns false when out of memory. */
bool notification_queue_move(struct notification_queue *to, struct notification_queue *from);

/*
 * Send messages from the front, until the queue is empty or the stream has to keep some bytes.
 * Returns false if the stream is broken. Never closes it.
 */
bool notification_queue_send(struct notification_queue *queue, struct stream *stream);

/* Drop all messages and free the memory. */
void notification_queue_clear(struct notification_queue *queue);

#endif
