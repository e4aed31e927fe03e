/* SPDX-License-Identifier: ISC */
#include "model/requests.h"

#include <stdlib.h>

#include "wire/message.h"

static struct request *entry(struct requests *requests, uint32_t index)
{
	return &requests->entries[(requests->first + index) & (requests->capacity - 1)];
}

void requests_reset(struct requests *requests)
{
	if (requests->entries != requests->few)
		free(requests->entries);
	requests->entries = requests->few;
	requests->capacity = REQUESTS_INLINE;
	requests->first = requests->count = 0;
}

static bool grow(struct requests *requests)
{
	const uint32_t capacity = requests->capacity * 2;
	struct request *entries;

	if (capacity == 0) {
		requests_reset(requests);
		return true;
	}
	if (capacity > REQUESTS_MAX)
		return false;
	entries = malloc(capacity * sizeof(*entries));
	if (!entries)
		return false;
	for (uint32_t i = 0; i < requests->count; i++)
		entries[i] = *entry(requests, i);
	if (requests->entries != requests->few)
		free(requests->entries);
	requests->entries = entries;
	requests->capacity = capacity;
	requests->first = 0;
	return true;
}

void requests_swallow_first(struct requests *requests)
{
	struct request *first = entry(requests, 0);

	first->action = (uint8_t)((first->action & ~REQUEST_ACTION) | REQUEST_SWALLOW);
}

bool requests_reserve_more(struct requests *requests, uint32_t count)
{
	while (requests->count + count > requests->capacity) {
		if (!grow(requests))
			return false;
	}
	return true;
}

bool requests_add_more(struct requests *requests, uint8_t type, unsigned action)
{
	if (requests->count == requests->capacity && !grow(requests))
		return false;
	*entry(requests, requests->count++) = (struct request){type, (uint8_t)action};
	return true;
}

/* Remove the oldest entry, which gets no answer. */
static void lose(struct requests *requests)
{
	requests->lost += (entry(requests, 0)->action & REQUEST_NOTED) != 0;
	requests_drop(requests);
}

void requests_drop_through(struct requests *requests, uint8_t type, uint8_t or_type)
{
	while (requests->count > 0) {
		const uint8_t dropped = entry(requests, 0)->type;

		lose(requests);
		if (dropped == type || dropped == or_type)
			return;
	}
}

void requests_drop_until(struct requests *requests, uint8_t type)
{
	while (requests->count > 0 && entry(requests, 0)->type != type)
		lose(requests);
}

void requests_end_copy(struct requests *requests, uint8_t type, uint8_t or_type)
{
	const struct request *first = requests_first(requests);
	const struct request query = first ? *first : (struct request){0};

	requests_drop_through(requests, type, or_type);
	if (query.type != PQ_QUERY)
		return;
	/* An entry was just removed, so there is room at the front. */
	requests->first = (requests->first - 1) & (requests->capacity - 1);
	requests->count++;
	*entry(requests, 0) = query;
}

void requests_clear(struct requests *requests)
{
	requests_reset(requests);
	requests->lost = 0;
}
