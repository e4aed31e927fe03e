/* SPDX-License-Identifier: ISC */
/*
 * The requests a server still owes answers for, oldest first: a ring of small entries.
 *
 * Protocol: "Message Flow", Pipelining. An entry is made when a message that will be answered is
 * passed to the server and taken out by the answer that ends it. A link with an empty ring owes
 * nothing. The ring starts inside its link and moves to the heap for long pipelines only.
 */
#ifndef PGUSHER_MODEL_REQUESTS_H
#define PGUSHER_MODEL_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REQUESTS_INLINE = 16,
	/* Beyond this the client waits until the server has answered some. */
	REQUESTS_MAX = 1 << 16,
};

/* What becomes of the answer. Numbers are for ever: they are told to other processes. */
enum request_action {
	REQUEST_FORWARD = 0, /* it goes to the client */
	REQUEST_SWALLOW = 1, /* we asked: nobody sees it */
	REQUEST_ANSWER =
		2, /* nothing was sent: the answer is ours to give, when its turn comes */
	REQUEST_UNKNOWN = 3, /* it was made to fail: the client is told 26000 */
	REQUEST_REFUSED = 4, /* the same, and 53400 */
	REQUEST_STALE = 5, /* the same, and 0A000 */

	REQUEST_ACTION = 0x0f, /* the bits of the above */
	REQUEST_NOTED = 0x10, /* an operation belongs to it: see model/server_statements */
};

struct request {
	uint8_t type; /* the message: PQ_QUERY, PQ_PARSE, … */
	uint8_t action; /* enum request_action, perhaps with REQUEST_NOTED */
};

static inline bool request_is(const struct request *request, enum request_action action)
{
	return (request->action & REQUEST_ACTION) == (uint8_t)action;
}

/* All zero is an empty one. It points into itself once it has been used, so it must not move. */
struct requests {
	struct request *entries; /* the inline ones, or owned; NULL: never used */
	uint32_t first, count, capacity; /* capacity is 0 or a power of two */
	uint32_t
		lost; /* noted ones that requests_drop_… took out: to be set to 0 by who asks */
	struct request few[REQUESTS_INLINE];
};

/* As requests_add(), when there is no room. */
bool requests_add_more(struct requests *requests, uint8_t type, unsigned action);

/* As requests_reserve(), when there is no room. */
bool requests_reserve_more(struct requests *requests, uint32_t count);

/* Have room for so many more. False when the ring is full or memory is short. */
static inline bool requests_reserve(struct requests *requests, uint32_t count)
{
	return requests->count + count <= requests->capacity ||
		requests_reserve_more(requests, count);
}

/* The oldest's answer goes nowhere; there must be one. */
void requests_swallow_first(struct requests *requests);

/* Add one at the end. False when the ring is full or memory is short. */
static inline bool requests_add(struct requests *requests, uint8_t type, unsigned action)
{
	if (requests->count == requests->capacity)
		return requests_add_more(requests, type, action);
	requests->entries[(requests->first + requests->count++) & (requests->capacity - 1)] =
		(struct request){type, (uint8_t)action};
	return true;
}

/* The oldest, or NULL. */
static inline const struct request *requests_first(const struct requests *requests)
{
	return requests->count == 0 ? NULL : requests->entries + requests->first;
}

/* The entry at this place, counted from the oldest, which is 0; there must be one. */
static inline const struct request *requests_at(const struct requests *requests, uint32_t index)
{
	return &requests->entries[(requests->first + index) & (requests->capacity - 1)];
}

/* Be as new, and give back what is on the heap. */
void requests_reset(struct requests *requests);

/* Take the oldest out; there must be one. */
static inline void requests_drop(struct requests *requests)
{
	requests->first = (requests->first + 1) & (requests->capacity - 1);
	/* A long pipeline has ended: an idle link keeps nothing on the heap. */
	if (--requests->count == 0 && requests->capacity > REQUESTS_INLINE)
		requests_reset(requests);
}

/*
 * Take out everything up to and including the first entry of one of these types; everything, if
 * there is none.
 */
void requests_drop_through(struct requests *requests, uint8_t type, uint8_t or_type);

/*
 * Take out everything before the first entry of this type; everything, if there is none.
 */
void requests_drop_until(struct requests *requests, uint8_t type);

/*
 * A COPY has ended: as requests_drop_through(), but a simple Query that began it stays the
 * oldest, since its ReadyForQuery is still to come.
 */
void requests_end_copy(struct requests *requests, uint8_t type, uint8_t or_type);

/* Take everything out and give the memory back. */
void requests_clear(struct requests *requests);

static inline bool requests_is_empty(const struct requests *requests)
{
	return requests->count == 0;
}

#endif
