/* SPDX-License-Identifier: ISC */
/*
 * The slow queries that have ended last: what SHOW SLOW and the page show.
 *
 * A ring of fixed size, which exists while log_min_duration is not -1 (registry.slow_log). Names
 * and texts are cut to the sizes here. They are escaped, so that they are valid UTF-8 without
 * control characters. A statement may contain data of the database: readers show it to
 * administrators only.
 */
#ifndef PGUSHER_MODEL_STATISTICS_SLOW_LOG_H
#define PGUSHER_MODEL_STATISTICS_SLOW_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/sampling.h"

struct process;

enum {
	SLOW_LOG_SIZE = 100, /* queries */
	SLOW_NAME_SIZE = 64, /* with the NUL */
	SLOW_TEXT_MAX = 1024,
	SLOW_PARAMETERS_MAX = 512,
	SLOW_TRACE_SIZE = 56,
};

/* The part of a query that took longest. */
enum slow_cause { SLOW_QUEUE, SLOW_SERVER, SLOW_CLIENT, SLOW_CAUSES };

/* "queue", "server", "client". */
extern const char *const slow_cause_labels[SLOW_CAUSES];

struct slow_query {
	uint64_t number; /* counted from 1 since the log was turned on */
	usec_t at; /* wall clock time of its end */
	uint64_t client; /* as link_handle() */
	uint32_t client_number; /* as link_number() */
	uint64_t pool; /* the number of its pool, which may not exist any more */
	char database[SLOW_NAME_SIZE], user[SLOW_NAME_SIZE];
	char address[SLOW_NAME_SIZE]; /* of the client, without port */
	uint16_t port;
	char application[SLOW_NAME_SIZE]; /* "": none */
	usec_t total; /* microseconds, as the parts that it consists of: */
	usec_t parts[SLOW_CAUSES];
	enum slow_cause cause;
	const char *setting; /* that made it wait: session/slow/slow_setting; NULL: none */
	uint64_t rows; /* as the command tags of the server say */
	uint64_t sent; /* bytes of rows and COPY data to the client */
	uint64_t received; /* bytes of messages from the client */
	char end[SLOW_NAME_SIZE]; /* why it ended without its whole answer; "": it has it */
	char sqlstate[6]; /* of its first error; "": none */
	char statement[SLOW_NAME_SIZE]; /* the client's name for it; "": none */
	char traceparent[SLOW_TRACE_SIZE]; /* of a comment in the text; "": none */
	uint64_t text_length; /* bytes of the whole text, as the client sent it; 0: not known */
	char text[SLOW_TEXT_MAX + 1]; /* its beginning */
	char parameters[SLOW_PARAMETERS_MAX + 1]; /* with log_parameters; "": none */
};

/* What the rings of all workers share. */
struct slow_shared {
	uint64_t last; /* the number of the last query */
	struct lock lock; /* of what follows */
	struct sampling sampling; /* of the lines that are logged */
};

/* The ring of one worker. */
struct slow_log {
	struct slow_query queries[SLOW_LOG_SIZE];
	uint64_t count; /* queries since the log was turned on */
	struct slow_shared *shared;
};

/* Make an empty ring. Returns NULL when out of memory. What is shared must outlive it. */
struct slow_log *slow_log_new(struct slow_shared *shared);

/* Free the ring. NULL is allowed. */
void slow_log_free(struct slow_log *log);

/*
 * Returns the place for one more query, all zero but for its number. It replaces the oldest one, if
 * there are as many as there can be.
 */
struct slow_query *slow_log_add(struct slow_log *log);

/*
 * Returns the query that came `age` queries before the last one, which has age 0; NULL if there is
 * none. Valid until the next slow_log_add(). `log` may be NULL.
 */
const struct slow_query *slow_log_get(const struct slow_log *log, unsigned age);

enum { SLOW_RINGS = 64 };

/* A walk over the rings of all workers; all zero at first. */
struct slow_walk {
	unsigned ages[SLOW_RINGS];
	unsigned count; /* queries that were returned */
};

/*
 * Returns the next query, the latest first; NULL after the last of the SLOW_LOG_SIZE queries that have
 * ended last, in all workers.
 */
const struct slow_query *slow_walk_next(struct slow_walk *walk, const struct process *process);

/* Log this query? At most `most` are logged in a second, of all workers; 0: all. */
bool slow_log_samples(struct slow_log *log, unsigned most, usec_t now);

/* As sampling_left_out(), of all workers. */
unsigned slow_log_left_out(struct slow_log *log, usec_t now);

/* Returns the longest part of a query; of equal ones the first. */
enum slow_cause slow_log_cause(const usec_t parts[SLOW_CAUSES]);

#endif
