/* SPDX-License-Identifier: ISC */
#include "admin/show/telling.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "admin/console/topics.h"
#include "wire/writer.h"

/*
 * What all answers together may take of one turn, counted in comparisons of two rows, and what it
 * costs to tell of one thing. As measured that is less than a millisecond.
 */
enum { SLICE_EFFORT = 2048, TELL_EFFORT = 8, LEAST_EFFORT = 8 * TELL_EFFORT };

/* So many connections are noted at once; to look at one may cost as much as a comparison. */
enum { FEW_LINKS = 512 };

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
	call->registry->process->tellings++;
	return telling;
}

void telling_free(struct telling *telling)
{
	struct registry *registry;

	if (!telling)
		return;
	registry = telling->registry;
	result_free(&telling->result);
	if (telling->is_walking)
		link_walk_end(&telling->walk);
	sorting_end(&telling->sorting);
	buffer_free(&telling->order);
	buffer_free(&telling->notes);
	free(telling);
	if (--registry->process->tellings == 0)
		handles_clear(&registry->process->handles);
}

void telling_note(struct telling *telling, uint64_t *handle, const void *thing, unsigned kind)
{
	struct note note = {.kind = kind};

	/* The registry's own things are told of, whoever looks at them as constant. */
	note.handle = handles_give(&telling->registry->process->handles, handle, (void *)thing);
	if (note.handle == 0 || !buffer_append(&telling->notes, &note, sizeof(note)))
		telling->notes.failed = true;
}

/* --- connections, if they are many ----------------------------------------------------------- */

static bool has_many_links(const struct registry *registry)
{
	return registry->clients.used + registry->servers.used > FEW_LINKS;
}

static void begin_walk(struct telling *telling)
{
	telling->topic->walk->start(telling);
	telling->last_id = telling->registry->process->last_id;
	telling->is_walking = true;
	link_walk_begin(&telling->walk, telling->registry);
}

static struct note *notes_of(const struct telling *telling)
{
	return (struct note *)(void *)telling->notes.data;
}

static size_t count_notes(const struct telling *telling)
{
	return telling->notes.length / sizeof(struct note);
}

/* What kind says of a link is its place. */
static void note_at_place(struct telling *telling, struct link *link)
{
	const uint32_t place = telling->topic->walk->place(link);
	const size_t count = count_notes(telling);

	if (place == 0 || link->id > telling->last_id)
		return;
	if (count > 0 && notes_of(telling)[count - 1].kind > place)
		telling->is_unordered = true;
	telling_note(telling, &link->handle, link, place);
}

/* False: the slice is over. */
static bool walk_on(struct telling *telling, unsigned *effort)
{
	struct link *link;

	while (telling->is_walking) {
		if (*effort == 0)
			return false;
		(*effort)--;
		link = link_walk_next(&telling->walk);
		if (link) {
			note_at_place(telling, link);
		} else {
			link_walk_end(&telling->walk);
			telling->is_walking = false;
		}
	}
	return true;
}

static int compare_notes(size_t a, size_t b, const void *context)
{
	const struct note *notes = context;

	return (notes[a].kind > notes[b].kind) - (notes[a].kind < notes[b].kind);
}

static bool begin_order(struct telling *telling)
{
	const size_t count = count_notes(telling);
	size_t *numbers =
		(size_t *)(void *)buffer_extend(&telling->order, count * sizeof(size_t));

	for (size_t i = 0; numbers && i < count; i++)
		numbers[i] = i;
	telling->is_sorting = true;
	return numbers && sorting_begin(&telling->sorting, numbers, count);
}

/* Put the notes in the order of their places. False: the slice is over, or there is no memory. */
static bool order_on(struct telling *telling, unsigned *effort)
{
	if (!telling->is_unordered)
		return true;
	if (!telling->is_sorting && !begin_order(telling)) {
		telling->result.out->failed = true;
		return false;
	}
	if (!sorting_go_on(&telling->sorting, compare_notes, notes_of(telling), effort))
		return false;
	telling->is_unordered = false;
	sorting_end(&telling->sorting);
	return true;
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
	if (topic->walk && topic->walk->place && has_many_links(telling->registry))
		begin_walk(telling);
	else if (topic->walk)
		topic->walk->note(telling);
	else
		topic->fill(&telling->result,
			&(struct command_call){.registry = telling->registry,
				.client = telling->client,
				.topic = topic});
}

static void tell(struct telling *telling, size_t number)
{
	const size_t *order = (const size_t *)(const void *)telling->order.data;
	const struct note *note = &notes_of(telling)[order ? order[number] : number];
	void *thing = handles_find(&telling->registry->process->handles, note->handle);

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
	const size_t count = count_notes(telling);

	for (unsigned told = 1; telling->told < count && !result_is_full(&telling->result);
		told++) {
		if (*effort < TELL_EFFORT)
			return false;
		*effort -= TELL_EFFORT;
		tell(telling, telling->told++);
		if (is_over(telling, end, told))
			*effort = 0;
	}
	telling->has_told_all = true;
	buffer_free(&telling->notes);
	buffer_free(&telling->order);
	return true;
}

static bool go_on(struct telling *telling, struct buffer *out, unsigned effort, usec_t end)
{
	telling->result.out = out;
	if (!telling->has_begun)
		begin(telling, out);
	if (!walk_on(telling, &effort))
		return out->failed;
	if (telling->notes.failed)
		out->failed = true;
	if (out->failed || !order_on(telling, &effort))
		return out->failed;
	if (!telling->has_told_all && !tell_all(telling, &effort, end))
		return out->failed;
	if (!result_end_partly(&telling->result, &effort))
		return false;
	writer_command_complete(out, "SHOW");
	return true;
}

bool telling_go_on(struct telling *telling, struct buffer *out)
{
	const unsigned share = SLICE_EFFORT / telling->registry->process->tellings;

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
	return telling
		? telling->notes.length + telling->order.length + result_held(&telling->result)
		: 0;
}
