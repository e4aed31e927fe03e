/* SPDX-License-Identifier: ISC */
#include "admin/show/show_stream.h"

#include <limits.h>
#include <stdlib.h>

#include "wire/writer.h"

/*
 * What all answers together may spend in one turn, in comparisons of two rows, and what the
 * rows of one object cost. Measured: a turn's share takes less than a millisecond.
 */
enum { SLICE_EFFORT = 2048, OBJECT_EFFORT = 8, LEAST_EFFORT = 8 * OBJECT_EFFORT };

/*
 * Up to so many links are listed in one turn; to look at one may cost as much as a comparison.
 */
enum { FEW_LINKS = 512 };

/* On a slow machine a slice ends after this time, at the next look at the clock. */
#define SLICE_TIME USEC_PER_MSEC

enum { CLOCK_PERIOD = 32 };

struct listed_object {
	uint64_t handle;
	unsigned kind; /* of a link that was found by the walk: its place */
};

struct show_stream *show_stream_new(const struct show_request *request)
{
	const struct topic *topic = request->topic;
	const size_t state_size = topic->walk ? topic->walk->state_size : 0;
	struct show_stream *show = calloc(1, sizeof(*show) + state_size);

	if (!show)
		return NULL;
	show->registry = request->registry;
	show->client = request->client;
	show->text_length = request->text_length;
	show->topic = topic;
	show->result.options = request->options;
	if (request->options.clauses) {
		show->clauses = *request->options.clauses;
		show->result.options.clauses = &show->clauses;
	}
	process_use_handles(request->registry->process);
	return show;
}

void show_stream_free(struct show_stream *show)
{
	struct registry *registry;

	if (!show)
		return;
	registry = show->registry;
	result_free(&show->result);
	if (show->is_walking) {
		/* The walk may be at links of another worker. */
		process_stop_others(registry->process);
		link_walk_end(&show->walk);
		process_let_others_run(registry->process);
	}
	sorting_end(&show->sorting);
	buffer_free(&show->order);
	buffer_free(&show->objects);
	free(show);
	process_give_handles_back(registry->process);
}

void show_stream_add_object(
	struct show_stream *show, uint64_t *handle, const void *object, unsigned kind)
{
	struct listed_object listed = {.kind = kind};

	/* Some callers only have a constant view of the registry's objects. */
	listed.handle = handles_give(&show->registry->process->handles, handle, (void *)object);
	if (listed.handle == 0 || !buffer_append(&show->objects, &listed, sizeof(listed)))
		show->objects.failed = true;
}

/* --- many links --------------------------------------------------------------------------- */

static bool has_many_links(const struct process *process)
{
	const struct registry *each;
	size_t count = 0;

	EACH_REGISTRY (each, process)
		count += each->clients.used + each->servers.used;
	return count > FEW_LINKS;
}

static void begin_walk(struct show_stream *show)
{
	show->last_id = show->registry->process->last_id;
	show->is_walking = true;
	link_walk_begin(&show->walk, show->registry->process);
}

static struct listed_object *objects_of(const struct show_stream *show)
{
	return (struct listed_object *)(void *)show->objects.data;
}

static size_t count_objects(const struct show_stream *show)
{
	return show->objects.length / sizeof(struct listed_object);
}

/* List a link with its place as the kind. */
static void add_link(struct show_stream *show, struct link *link)
{
	const uint32_t place = show->topic->walk->place(link);
	const size_t count = count_objects(show);

	if (place == 0 || link->id > show->last_id)
		return;
	if (count > 0 && objects_of(show)[count - 1].kind > place)
		show->is_unordered = true;
	show_stream_add_object(show, &link->handle, link, place);
}

/* Returns false when the slice is over. */
static bool continue_walk(struct show_stream *show, unsigned *effort)
{
	struct link *link;

	while (show->is_walking) {
		if (*effort == 0)
			return false;
		(*effort)--;
		link = link_walk_next(&show->walk);
		if (link) {
			add_link(show, link);
		} else {
			link_walk_end(&show->walk);
			show->is_walking = false;
		}
	}
	return true;
}

static int compare_places(size_t a, size_t b, const void *context)
{
	const struct listed_object *objects = context;

	return (objects[a].kind > objects[b].kind) - (objects[a].kind < objects[b].kind);
}

static bool begin_order(struct show_stream *show)
{
	const size_t count = count_objects(show);
	size_t *numbers = (size_t *)(void *)buffer_extend(&show->order, count * sizeof(size_t));

	for (size_t i = 0; numbers && i < count; i++)
		numbers[i] = i;
	show->is_sorting = true;
	return numbers && sorting_begin(&show->sorting, numbers, count);
}

/* Sort the objects by their places. Returns false when the slice is over or memory ran out. */
static bool continue_order(struct show_stream *show, unsigned *effort)
{
	if (!show->is_unordered)
		return true;
	if (!show->is_sorting && !begin_order(show)) {
		show->result.out->failed = true;
		return false;
	}
	if (!sorting_continue(&show->sorting, compare_places, objects_of(show), effort))
		return false;
	show->is_unordered = false;
	sorting_end(&show->sorting);
	return true;
}

/* --- slices ------------------------------------------------------------------------------- */

static void begin(struct show_stream *show, struct buffer *out)
{
	const struct topic *topic = show->topic;
	const struct result_options options = show->result.options;

	show->has_begun = true;
	if (topic->column_count > 0)
		result_begin(&show->result, out, topic->columns, topic->column_count, &options);
	show->result.out = out;
	if (topic->walk && topic->walk->begin)
		topic->walk->begin(show);
	if (topic->walk && topic->walk->place && has_many_links(show->registry->process))
		begin_walk(show);
	else if (topic->walk)
		topic->walk->list(show);
	else
		topic->fill(&show->result,
			&(struct show_request){.registry = show->registry,
				.client = show->client,
				.topic = topic});
}

static void add_rows(struct show_stream *show, size_t number)
{
	const size_t *order = (const size_t *)(const void *)show->order.data;
	const struct listed_object *listed = &objects_of(show)[order ? order[number] : number];
	void *object = handles_find(&show->registry->process->handles, listed->handle);

	if (object)
		show->topic->walk->add_rows(show, object, listed->kind);
}

/*
 * Has the slice enough bytes or taken enough time? The clock is read once in CLOCK_PERIOD
 * calls.
 */
static bool is_over(const struct show_stream *show, usec_t end, unsigned objects)
{
	return show->result.out->length > RESULT_SLICE_SIZE ||
		(objects % CLOCK_PERIOD == 0 && clock_monotonic() > end);
}

/* Returns false when the slice is over. */
static bool add_all_rows(struct show_stream *show, unsigned *effort, usec_t end)
{
	const size_t count = count_objects(show);

	for (unsigned objects = 1; show->next < count && !result_is_full(&show->result);
		objects++) {
		if (*effort < OBJECT_EFFORT)
			return false;
		*effort -= OBJECT_EFFORT;
		add_rows(show, show->next++);
		if (is_over(show, end, objects))
			*effort = 0;
	}
	show->has_all_rows = true;
	buffer_free(&show->objects);
	buffer_free(&show->order);
	return true;
}

static bool build_slice(
	struct show_stream *show, struct buffer *out, unsigned effort, usec_t end)
{
	show->result.out = out;
	if (!show->has_begun)
		begin(show, out);
	if (!continue_walk(show, &effort))
		return out->failed;
	if (show->objects.failed)
		out->failed = true;
	if (out->failed || !continue_order(show, &effort))
		return out->failed;
	if (!show->has_all_rows && !add_all_rows(show, &effort, end))
		return out->failed;
	if (!result_end_partly(&show->result, &effort))
		return false;
	writer_command_complete(out, "SHOW");
	return true;
}

bool show_stream_continue(struct show_stream *show, struct buffer *out)
{
	const unsigned share = SLICE_EFFORT / show->registry->process->show_streams;

	return build_slice(show, out, share > LEAST_EFFORT ? share : LEAST_EFFORT,
		clock_monotonic() + SLICE_TIME);
}

void show_stream_finish(struct show_stream *show, struct buffer *out)
{
	while (!build_slice(show, out, UINT_MAX, INT64_MAX))
		;
}

size_t show_stream_held(const struct show_stream *show)
{
	return show ? show->objects.length + show->order.length + result_held(&show->result)
		    : 0;
}
