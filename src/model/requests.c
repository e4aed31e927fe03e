/* SPDX-License-Identifier: ISC */
#include "model/requests.h"

#include <stdlib.h>

#include "wire/message.h"

static uint32_t capacity_of(const struct requests *requests)
{
	return requests->capacity ? requests->capacity : REQUESTS_INLINE;
}

static struct request *entry(struct requests *requests, uint32_t index)
{
	struct request *entries = requests->entries ? requests->entries : requests->few;

	return &entries[(requests->first + index) & (capacity_of(requests) - 1)];
}

const struct request *requests_at(const struct requests *requests, uint32_t index)
{
	const struct request *entries = requests->entries ? requests->entries : requests->few;

	return &entries[(requests->first + index) & (capacity_of(requests) - 1)];
}

static bool grow(struct requests *requests)
{
	const uint32_t capacity = capacity_of(requests) * 2;
	struct request *entries;

	if (capacity > REQUESTS_MAX)
		return false;
	entries = malloc(capacity * sizeof(*entries));
	if (!entries)
		return false;
	for (uint32_t i = 0; i < requests->count; i++)
		entries[i] = *entry(requests, i);
	free(requests->entries);
	requests->entries = entries;
	requests->capacity = capacity;
	requests->first = 0;
	return true;
}

bool requests_add_more(struct requests *requests, uint8_t type, enum request_action action)
{
	if (requests->count == capacity_of(requests) && !grow(requests))
		return false;
	*entry(requests, requests->count++) = (struct request){type, (uint8_t)action};
	return true;
}

void requests_drop_one_of_many(struct requests *requests)
{
	requests->first = (requests->first + 1) & (capacity_of(requests) - 1);
	requests->count--;
	/* A long pipeline has ended: an idle link keeps nothing on the heap. */
	if (requests->count == 0)
		requests_clear(requests);
}

void requests_drop_through(struct requests *requests, uint8_t type, uint8_t or_type)
{
	while (requests->count > 0) {
		const uint8_t dropped = entry(requests, 0)->type;

		requests_drop(requests);
		if (dropped == type || dropped == or_type)
			return;
	}
}

void requests_drop_until(struct requests *requests, uint8_t type)
{
	while (requests->count > 0 && entry(requests, 0)->type != type)
		requests_drop(requests);
}

void requests_end_copy(struct requests *requests, uint8_t type, uint8_t or_type)
{
	const struct request *first = requests_first(requests);
	const struct request query = first ? *first : (struct request){0};

	requests_drop_through(requests, type, or_type);
	if (query.type != PQ_QUERY)
		return;
	/* Something was just taken out, so there is room in front. */
	requests->first = (requests->first - 1) & (capacity_of(requests) - 1);
	requests->count++;
	*entry(requests, 0) = query;
}

void requests_clear(struct requests *requests)
{
	free(requests->entries);
	requests->entries = NULL;
	requests->capacity = requests->first = requests->count = 0;
}
