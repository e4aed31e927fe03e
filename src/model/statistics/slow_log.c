/* SPDX-License-Identifier: ISC */
#include "model/statistics/slow_log.h"

#include <stdlib.h>

const char *const slow_cause_labels[SLOW_CAUSES] = {
	[SLOW_QUEUE] = "queue",
	[SLOW_SERVER] = "server",
	[SLOW_CLIENT] = "client",
};

struct slow_log *slow_log_new(void)
{
	return calloc(1, sizeof(struct slow_log));
}

void slow_log_free(struct slow_log *log)
{
	free(log);
}

struct slow_query *slow_log_add(struct slow_log *log)
{
	struct slow_query *query = &log->queries[log->count % SLOW_LOG_SIZE];

	*query = (struct slow_query){.number = ++log->count};
	return query;
}

const struct slow_query *slow_log_get(const struct slow_log *log, unsigned age)
{
	if (!log || age >= SLOW_LOG_SIZE || age >= log->count)
		return NULL;
	return &log->queries[(log->count - 1 - age) % SLOW_LOG_SIZE];
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
