/* SPDX-License-Identifier: ISC */
#include "model/statistics/slow_log.h"

#include <stdlib.h>

#include "model/registry.h"

_Static_assert((int)SLOW_RINGS == (int)WORKERS_MOST, "a ring for each worker");

const char *const slow_cause_labels[SLOW_CAUSES] = {
	[SLOW_QUEUE] = "queue",
	[SLOW_SERVER] = "server",
	[SLOW_CLIENT] = "client",
};

struct slow_log *slow_log_new(struct slow_shared *shared)
{
	struct slow_log *log = calloc(1, sizeof(struct slow_log));

	if (log)
		log->shared = shared;
	return log;
}

void slow_log_free(struct slow_log *log)
{
	free(log);
}

struct slow_query *slow_log_add(struct slow_log *log)
{
	struct slow_query *query = &log->queries[log->count++ % SLOW_LOG_SIZE];

	*query = (struct slow_query){.number = SHARED_NEXT(log->shared->last)};
	return query;
}

const struct slow_query *slow_log_get(const struct slow_log *log, unsigned age)
{
	if (!log || age >= SLOW_LOG_SIZE || age >= log->count)
		return NULL;
	return &log->queries[(log->count - 1 - age) % SLOW_LOG_SIZE];
}

const struct slow_query *slow_walk_next(struct slow_walk *walk, const struct process *process)
{
	const struct slow_query *latest = NULL;
	const struct registry *each;
	unsigned ring = 0;

	if (walk->count == SLOW_LOG_SIZE)
		return NULL;
	EACH_REGISTRY (each, process) {
		const struct slow_query *query =
			slow_log_get(each->slow_log, walk->ages[each->number]);

		if (query && (!latest || query->number > latest->number)) {
			latest = query;
			ring = each->number;
		}
	}
	walk->ages[ring]++;
	walk->count++;
	return latest;
}

bool slow_log_samples(struct slow_log *log, unsigned most, usec_t now)
{
	bool is_taken;

	lock_take(&log->shared->lock);
	is_taken = sampling_take(&log->shared->sampling, most, now);
	lock_give(&log->shared->lock);
	return is_taken;
}

unsigned slow_log_left_out(struct slow_log *log, usec_t now)
{
	unsigned left_out;

	lock_take(&log->shared->lock);
	left_out = sampling_left_out(&log->shared->sampling, now);
	lock_give(&log->shared->lock);
	return left_out;
}

enum slow_cause slow_log_cause(const usec_t parts[SLOW_CAUSES])
{
	enum slow_cause cause = SLOW_QUEUE;

	for (enum slow_cause i = SLOW_QUEUE; i < SLOW_CAUSES; i++) {
		if (parts[i] > parts[cause])
			cause = i;
	}
	return cause;
}
