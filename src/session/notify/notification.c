/* SPDX-License-Identifier: ISC */
#include "session/notify/notification.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* Messages and bytes of one send: what a client does not take is copied. */
	PIECES = 32,
	BYTES = 16 * 1024,
	/* What one message costs besides its bytes. */
	ITEM_COST = 2 * sizeof(struct notification *),
	/* A queue of so few keeps its memory when it is empty. */
	FEW = 4,
};

struct notification *notification_new(const void *bytes, size_t length)
{
	struct notification *notification = malloc(sizeof(*notification) + length);

	if (!notification)
		return NULL;
	notification->references = 1;
	notification->length = (uint32_t)length;
	memcpy(notification->bytes, bytes, length);
	return notification;
}

struct notification *notification_ref(struct notification *notification)
{
	notification->references++;
	return notification;
}

void notification_unref(struct notification *notification)
{
	if (notification && --notification->references == 0)
		free(notification);
}

/* --- the queue ---------------------------------------------------------------------------- */

static bool make_room(struct notification_queue *queue, uint32_t count)
{
	uint32_t capacity = queue->capacity ? queue->capacity : FEW;
	struct notification **items;

	if (queue->first > 0) {
		memmove(queue->items, queue->items + queue->first,
			queue->count * sizeof(*queue->items));
		queue->first = 0;
	}
	while (capacity - queue->count < count)
		capacity *= 2;
	if (capacity == queue->capacity)
		return true;
	items = realloc(queue->items, capacity * sizeof(*items));
	if (!items)
		return false;
	queue->items = items;
	queue->capacity = capacity;
	return true;
}

bool notification_queue_add(struct notification_queue *queue, struct notification *notification)
{
	if (queue->first + queue->count == queue->capacity && !make_room(queue, 1))
		return false;
	queue->items[queue->first + queue->count++] = notification_ref(notification);
	queue->bytes += notification->length + ITEM_COST;
	return true;
}

bool notification_queue_move(struct notification_queue *to, struct notification_queue *from)
{
	if (from->count > 0 && !make_room(to, from->count))
		return false;
	for (uint32_t i = 0; i < from->count; i++)
		notification_queue_add(to, from->items[from->first + i]);
	notification_queue_clear(from);
	return true;
}

static void drop_front(struct notification_queue *queue, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct notification *item = queue->items[queue->first++];

		queue->bytes -= item->length + ITEM_COST;
		notification_unref(item);
	}
	queue->count -= count;
	if (queue->count == 0 && queue->capacity > FEW)
		notification_queue_clear(queue);
	else if (queue->count == 0)
		queue->first = 0;
}

bool notification_queue_send(struct notification_queue *queue, struct stream *stream)
{
	while (queue->count > 0 && !stream_is_blocked(stream)) {
		struct iovec pieces[PIECES];
		size_t bytes = 0;
		uint32_t count = 0;

		while (count < queue->count && count < PIECES && bytes < BYTES) {
			struct notification *item = queue->items[queue->first + count];

			pieces[count++] = (struct iovec){item->bytes, item->length};
			bytes += item->length;
		}
		if (stream_send(stream, pieces, (int)count) == STREAM_SENT_NOT)
			return false;
		drop_front(queue, count);
	}
	return true;
}

void notification_queue_clear(struct notification_queue *queue)
{
	for (uint32_t i = 0; i < queue->count; i++)
		notification_unref(queue->items[queue->first + i]);
	free(queue->items);
	*queue = (struct notification_queue){0};
}
