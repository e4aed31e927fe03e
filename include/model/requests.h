/* SPDX-License-Identifier: ISC */
/*
 * The requests that a server has not answered yet, oldest first: a ring of small entries.
 *
 * Protocol: "Message Flow", Pipelining. An entry is added when a message that has an answer is
 * sent to the server, and removed with the end of that answer. If the ring is empty, the server
 * owes no answer. The ring is inside its link at first, and moves to the heap for long
 * pipelines only.
 */
#ifndef PGUSHER_MODEL_REQUESTS_H
#define PGUSHER_MODEL_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REQUESTS_INLINE = 16,
	/*
	 * With more requests in flight the client is not read until the server has answered
	 * some.
	 */
	REQUESTS_MAX = 1 << 16,
};

/* What to do with the answer. The numbers must not change: a takeover sends them. */
enum request_action {
	REQUEST_FORWARD = 0, /* pass it to the client */
	REQUEST_SWALLOW = 1, /* drop it: the request is ours */
	REQUEST_ANSWER =
		2, /* nothing was sent: answer in its place, in the order of requests */
	REQUEST_UNKNOWN = 3, /* made to fail on purpose: send the client error 26000 instead */
	REQUEST_REFUSED = 4, /* the same with error 53400 */
	REQUEST_STALE = 5, /* the same with error 0A000 */

	REQUEST_ACTION = 0x0f, /* mask of the above */
	REQUEST_NOTED = 0x10, /* it has an operation: see model/server_statements */
	REQUEST_KNOWN = 0x20, /* a SET whose effect is known: see session/state/changes */
	REQUEST_BARRED = 0x40, /* made to fail: see session/state/refusal */
	REQUEST_UNNAMED = 0x80, /* it uses the unnamed statement under our name */
};

struct request {
	uint8_t type; /* of the message: PQ_QUERY, PQ_PARSE, ... */
	uint8_t action; /* enum request_action, optionally with REQUEST_NOTED */
};

static inline bool request_is(const struct request *request, enum request_action action)
{
	return (request->action & REQUEST_ACTION) == (uint8_t)action;
}

/*
 * All zeros is an empty ring. A ring points into itself after first use, so it must not be
 * moved.
 */
struct requests {
	struct request *entries; /* `few`, or owned memory; NULL: never used */
	uint32_t first, count, capacity; /* capacity is 0 or a power of two */
	/*
	 * Entries with REQUEST_NOTED that requests_drop_...() removed; a reader sets it to 0.
	 */
	uint32_t lost;
	struct request few[REQUESTS_INLINE];
};

/* As requests_add(), when there is no room. Private. */
bool requests_add_more(struct requests *requests, uint8_t type, unsigned action);

/* As requests_reserve(), when there is no room. Private. */
bool requests_reserve_more(struct requests *requests, uint32_t count);

/*
 * Have room for `count` more entries. Returns false when the ring is full or memory is short.
 */
static inline bool requests_reserve(struct requests *requests, uint32_t count)
{
	return requests->count + count <= requests->capacity ||
		requests_reserve_more(requests, count);
}

/* Change the action of the oldest entry, which must exist, to REQUEST_SWALLOW. */
void requests_swallow_first(struct requests *requests);

/* Add an entry at the end. Returns false when the ring is full or memory is short. */
static inline bool requests_add(struct requests *requests, uint8_t type, unsigned action)
{
	if (requests->count == requests->capacity)
		return requests_add_more(requests, type, action);
	requests->entries[(requests->first + requests->count++) & (requests->capacity - 1)] =
		(struct request){type, (uint8_t)action};
	return true;
}

/* Add a flag to the newest entry, which must exist. */
static inline void requests_mark_last(struct requests *requests, unsigned flag)
{
	requests->entries[(requests->first + requests->count - 1) & (requests->capacity - 1)]
		.action |= (uint8_t)flag;
}

/* Returns the oldest entry, or NULL; valid until the ring changes. */
static inline const struct request *requests_first(const struct requests *requests)
{
	return requests->count == 0 ? NULL : requests->entries + requests->first;
}

/* Returns the entry at this index, which must exist; the oldest one has index 0. */
static inline const struct request *requests_at(const struct requests *requests, uint32_t index)
{
	return &requests->entries[(requests->first + index) & (requests->capacity - 1)];
}

/* Make the ring empty and free its memory on the heap; keeps `lost`. */
void requests_reset(struct requests *requests);

/* Remove the oldest entry, which must exist. */
static inline void requests_drop(struct requests *requests)
{
	requests->first = (requests->first + 1) & (requests->capacity - 1);
	/* After a long pipeline: an idle link keeps no memory on the heap. */
	if (--requests->count == 0 && requests->capacity > REQUESTS_INLINE)
		requests_reset(requests);
}

/*
 * Remove all entries up to and including the first one of these types; all, if there is none of
 * these types.
 */
void requests_drop_through(struct requests *requests, uint8_t type, uint8_t or_type);

/* Remove all entries before the first one of this type; all, if there is none. */
void requests_drop_until(struct requests *requests, uint8_t type);

/*
 * A COPY has ended: as requests_drop_through(), but a simple Query that began the COPY stays
 * the oldest entry, since its ReadyForQuery is still to come.
 */
void requests_end_copy(struct requests *requests, uint8_t type, uint8_t or_type);

/* As requests_reset(), and set `lost` to 0. */
void requests_clear(struct requests *requests);

static inline bool requests_is_empty(const struct requests *requests)
{
	return requests->count == 0;
}

#endif
