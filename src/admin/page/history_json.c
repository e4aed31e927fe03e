/* SPDX-License-Identifier: ISC */
#include "admin/page/history_json.h"

/* A pool has 2520 figures, which take about 50 microseconds. */
enum { POOLS_PER_TURN = 2 };

void history_json_init(struct history_json *history, struct registry *registry)
{
	*history = (struct history_json){.registry = registry};
}

/* --- series ------------------------------------------------------------------------------- */

/* A figure of a point, and by how many decimals it is too large. */
struct figure {
	const char *name;
	int64_t (*of)(const struct history_point *point);
	unsigned decimals;
};

/* Counts of a step become counts per second. */
enum { SECONDS_OF_STEP = HISTORY_STEP / USEC_PER_SEC };

static int64_t transactions_of(const struct history_point *point)
{
	return (int64_t)point->transactions * 10 / SECONDS_OF_STEP;
}

static int64_t waiting_of(const struct history_point *point)
{
	return point->waiting;
}

static int64_t longest_wait_of(const struct history_point *point)
{
	return point->longest_wait;
}

static int64_t active_of(const struct history_point *point)
{
	return point->active;
}

static int64_t query_of(const struct history_point *point)
{
	return point->query_p99;
}

static int64_t wait_of(const struct history_point *point)
{
	return point->wait_p99;
}

static int64_t errors_of(const struct history_point *point)
{
	return (int64_t)point->errors * 10 / SECONDS_OF_STEP;
}

static const struct figure figures[] = {
	{"transactions", transactions_of, 1},
	{"waiting", waiting_of, 0},
	{"longest_wait_ms", longest_wait_of, 0},
	{"active", active_of, 0},
	{"query_p99_ms", query_of, 3},
	{"wait_p99_ms", wait_of, 3},
	{"errors", errors_of, 1},
};

static void write_series(
	struct history_json *history, int64_t id, const struct history_series *series)
{
	const struct history *past = history->registry->process->history;
	struct json *json = &history->json;

	json_open_object(json, NULL);
	json_integer(json, "id", id);
	json_open_object(json, "series");
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		json_open_array(json, figures[i].name);
		for (unsigned number = 0; number < HISTORY_POINTS; number++) {
			const struct history_point *point = history_at(past, series, number);

			if (point)
				json_fraction(
					json, NULL, figures[i].of(point), figures[i].decimals);
			else
				json_null(json, NULL);
		}
		json_close_array(json);
	}
	json_close_object(json);
	json_close_object(json);
}

/* --- the document ------------------------------------------------------------------------- */

static bool choose(struct history_json *history)
{
	struct handles *handles = &history->registry->process->handles;
	struct pool *pool;

	history->chosen_count = history->next = 0;
	TAILQ_FOREACH (pool, &history->registry->process->directory.pools, in_directory) {
		uint64_t handle;

		if (!pool->history || history->chosen_count == HISTORY_POOLS)
			continue;
		handle = handles_give(handles, &pool->handle, pool);
		if (handle == 0)
			return false;
		history->chosen[history->chosen_count++] = handle;
	}
	return true;
}

/* The loop's time of the last step, by the wall clock. */
static int64_t wall_time(const struct history_json *history, usec_t time)
{
	return (clock_wall() - (loop_now(history->registry->loop) - time)) / USEC_PER_SEC;
}

static void write_head(struct history_json *history)
{
	const struct history *past = history->registry->process->history;
	struct json *json = &history->json;

	history->end = past ? history_last_end(past) : loop_now(history->registry->loop);
	json_open_object(json, NULL);
	json_integer(json, "step", SECONDS_OF_STEP);
	json_integer(json, "end", wall_time(history, history->end));
	json_integer(json, "points", HISTORY_POINTS);
	json_open_array(json, "pools");
	if (past)
		write_series(history, 0, history_total(past));
}

static bool begin(void *context, struct buffer *out)
{
	struct history_json *history = context;

	history->json = (struct json){.out = out};
	process_use_handles(history->registry->process);
	if (!choose(history)) {
		process_give_handles_back(history->registry->process);
		return false;
	}
	write_head(history);
	return true;
}

/* A step has ended since: the points of pools would be others than those of the total. */
static bool is_outdated(const struct history_json *history)
{
	const struct history *past = history->registry->process->history;

	return past && history_last_end(past) != history->end;
}

static void begin_anew(struct history_json *history)
{
	buffer_clear(history->json.out);
	history->json.follows = false;
	history->next = 0;
	write_head(history);
}

static bool write_more(void *context)
{
	struct history_json *history = context;
	struct handles *handles = &history->registry->process->handles;

	if (is_outdated(history))
		begin_anew(history);
	for (unsigned i = 0; i < POOLS_PER_TURN && history->next < history->chosen_count; i++) {
		const struct pool *pool =
			handles_find(handles, history->chosen[history->next++]);

		if (pool && pool->history)
			write_series(history, (int64_t)pool->number, pool->history);
	}
	if (history->next < history->chosen_count)
		return true;
	json_close_array(&history->json);
	json_close_object(&history->json);
	return false;
}

static void end(void *context)
{
	process_give_handles_back(((struct history_json *)context)->registry->process);
}

struct document_writer history_json_writer(struct history_json *history)
{
	return (struct document_writer){begin, write_more, end, history};
}
