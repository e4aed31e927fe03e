/* SPDX-License-Identifier: ISC */
#include "admin/telling.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "admin/topics.h"
#include "wire/writer.h"

/*
 * What all answers together may take of one turn, counted in comparisons of two rows, and what it
 * costs to tell of one thing. As measured that is less than a millisecond.
 */
enum { SLICE_EFFORT = 2048, TELL_EFFORT = 8, LEAST_EFFORT = 8 * TELL_EFFORT };

/* A slice that takes longer than this, on a slow machine, ends at the next look at the clock. */
#define SLICE_TIME USEC_PER_MSEC

enum { CLOCK_PERIOD = 32 };

struct note {
	uint64_t handle;
	unsigned kind;
};

struct telling *telling_new(const struct command_call *call)
{
	const struct topic *topic = call->topic;
	const size_t memory = topic->walk ? topic->walk->memory_size : 0;
	struct telling *telling = calloc(1, sizeof(*telling) + memory);

	if (!telling)
		return NULL;
	telling->registry = call->registry;
	telling->client = call->client;
	telling->text_length = strlen(call->text);
	telling->topic = topic;
	telling->result.wish = call->wish;
	if (call->wish.clauses) {
		telling->clauses = *call->wish.clauses;
		telling->result.wish.clauses = &telling->clauses;
	}
	call->registry->tellings++;
	return telling;
}

void telling_free(struct telling *telling)
{
	struct registry *registry;

	if (!telling)
		return;
	registry = telling->registry;
	result_free(&telling->result);
	buffer_free(&telling->notes);
	free(telling);
	if (--registry->tellings == 0)
		handles_clear(&registry->handles);
}

void telling_note(struct telling *telling, uint64_t *handle, const void *thing, unsigned kind)
{
	struct note note = {.kind = kind};

	/* The registry's own things are told of, whoever looks at them as constant. */
	note.handle = handles_give(&telling->registry->handles, handle, (void *)thing);
	if (note.handle == 0 || !buffer_append(&telling->notes, &note, sizeof(note)))
		telling->notes.failed = true;
}

/* --- slices ------------------------------------------------------------------------------- */

static void begin(struct telling *telling, struct buffer *out)
{
	const struct topic *topic = telling->topic;
	const struct result_wish wish = telling->result.wish;

	telling->has_begun = true;
	if (topic->column_count > 0)
		result_begin(&telling->result, out, topic->columns, topic->column_count, &wish);
	telling->result.out = out;
	if (topic->walk)
		topic->walk->note(telling);
	else
		topic->fill(&telling->result,
			&(struct command_call){.registry = telling->registry,
				.client = telling->client,
				.topic = topic});
	if (telling->notes.failed)
		out->failed = true;
}

static void tell(struct telling *telling, const struct note *note)
{
	void *thing = handles_find(&telling->registry->handles, note->handle);

	if (thing)
		telling->topic->walk->tell(telling, thing, note->kind);
}

/* Is it time to end the slice? The clock is asked now and then only. */
static bool is_over(const struct telling *telling, usec_t end, unsigned told)
{
	return telling->result.out->length > RESULT_SLICE_SIZE ||
		(told % CLOCK_PERIOD == 0 && clock_monotonic() > end);
}

/* False: the slice is over. */
static bool tell_all(struct telling *telling, unsigned *effort, usec_t end)
{
	const struct note *notes = (const struct note *)(const void *)telling->notes.data;
	const size_t count = telling->notes.length / sizeof(*notes);

	for (unsigned told = 1; telling->told < count && !result_is_full(&telling->result);
		told++) {
		if (*effort < TELL_EFFORT)
			return false;
		*effort -= TELL_EFFORT;
		tell(telling, &notes[telling->told++]);
		if (is_over(telling, end, told))
			*effort = 0;
	}
	telling->has_told_all = true;
	buffer_free(&telling->notes);
	return true;
}

static bool go_on(struct telling *telling, struct buffer *out, unsigned effort, usec_t end)
{
	telling->result.out = out;
	if (!telling->has_begun)
		begin(telling, out);
	if (out->failed)
		return true;
	if (!telling->has_told_all && !tell_all(telling, &effort, end))
		return out->failed;
	if (!result_end_partly(&telling->result, &effort))
		return false;
	writer_command_complete(out, "SHOW");
	return true;
}

bool telling_go_on(struct telling *telling, struct buffer *out)
{
	const unsigned share = SLICE_EFFORT / telling->registry->tellings;

	return go_on(telling, out, share > LEAST_EFFORT ? share : LEAST_EFFORT,
		clock_monotonic() + SLICE_TIME);
}

void telling_finish(struct telling *telling, struct buffer *out)
{
	while (!go_on(telling, out, UINT_MAX, INT64_MAX))
		;
}

size_t telling_held(const struct telling *telling)
{
	return telling ? telling->notes.length + result_held(&telling->result) : 0;
}
