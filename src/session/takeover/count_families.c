/* SPDX-License-Identifier: ISC */
#include "session/takeover/count_families.h"

#include <stddef.h>

#include "model/statistics/labels.h"
#include "model/statistics/pool_figures.h"
#include "wire/sqlstate.h"

/* --- families ----------------------------------------------------------------------------- */

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ONE(name, type, field)                                                                 \
	{                                                                                      \
		name, NULL, NULL, 1, 1, COUNT_NUMBER, offsetof(type, field), 0                 \
	}
#define SET(name, type, field, columns)                                                        \
	{                                                                                      \
		name, NULL, columns, 1, LENGTH(columns), COUNT_NUMBER, offsetof(type, field),  \
			sizeof(uint64_t)                                                       \
	}
#define GRID(name, type, field, rows, columns, shape, size)                                    \
	{                                                                                      \
		name, rows, columns, LENGTH(rows), LENGTH(columns), shape,                     \
			offsetof(type, field), size                                            \
	}

static const char *const reason_names[] = {
#define REASON(name, text, sqlstate, level, ...) #name,
#include "base/reasons.def"
#undef REASON
};

static const struct count_family process_families[] = {
	SET("errors", struct counters, errors, reason_names),
	SET("client_rejected", struct counters, client_rejected, client_rejection_labels),
	SET("auth_failed", struct counters, auth_failed, auth_failure_labels),
	GRID("protocol_errors", struct counters, protocol_errors, protocol_side_labels,
		protocol_error_labels, COUNT_NUMBER, sizeof(uint64_t)),
	SET("cancel_requests", struct counters, cancel_requests, cancel_outcome_labels),
	ONE("logins_delayed", struct counters, logins_delayed),
	ONE("client_logins", struct counters, client_logins),
	GRID("login_times", struct counters, logins, login_method_labels, login_outcome_labels,
		COUNT_HISTOGRAM, sizeof(struct histogram)),
	SET("client_closed_nowhere", struct counters, nowhere.client_closed,
		client_closing_labels),
	SET("reloads", struct counters, reloads, reload_outcome_labels),
};

static const char *const tls_sides[] = {"client", "server"};
static const char *const tls_outcomes[] = {"failed", "ok"};

static const struct count_family loop_families[] = {
	{"loop_lag", NULL, NULL, 1, 1, COUNT_HISTOGRAM, offsetof(struct loop, lag), 0},
	GRID("handshakes", struct loop, handshakes, tls_sides, tls_outcomes, COUNT_HISTOGRAM,
		sizeof(struct histogram)),
};

static const struct count_family database_families[] = {
	ONE("server_opened", struct database_counters, server_opened),
	SET("server_closed", struct database_counters, server_closed, server_closing_labels),
	SET("client_closed", struct database_counters, client_closed, client_closing_labels),
	SET("server_reset", struct database_counters, server_reset, reset_outcome_labels),
	SET("unclean_release", struct database_counters, unclean_release,
		unclean_release_labels),
	{"connects", NULL, connect_outcome_labels, 1, CONNECT_OUTCOMES, COUNT_HISTOGRAM_AT,
		offsetof(struct database_counters, connects), sizeof(struct histogram *)},
};

static const struct count_family prepared_families[] = {
	ONE("prepared_hits", struct database, prepared.hits),
	ONE("prepared_misses", struct database, prepared.misses),
	ONE("prepared_evictions", struct database, prepared.evictions),
};

static const struct count_family pool_families[] = {
	ONE("notified", struct pool, notified),
	SET("unsent", struct pool, unsent, unsent_ending_labels),
	SET("slow", struct pool, slow, slow_cause_labels),
};

static const struct count_family error_families[] = {
	{"server_errors", NULL, sqlstate_classes, 1, SQLSTATE_CLASSES, COUNT_NUMBER, 0,
		sizeof(uint64_t)},
};

#define TIMES(name, field, shape)                                                              \
	{                                                                                      \
		name, NULL, latency_kind_names, 1, LATENCY_KINDS, shape,                       \
			offsetof(struct latency, of[0].field), sizeof(struct latency_times)    \
	}

static const struct count_family latency_families[] = {
	TIMES("times_recent", recent, COUNT_LATENCY),
	TIMES("times_previous", previous, COUNT_LATENCY),
	TIMES("times_past", past, COUNT_HISTOGRAM),
};

/* --- the structs that hold them ----------------------------------------------------------- */

static void *counters_place(void *owner, bool make)
{
	struct registry *registry = owner;

	(void)make;
	return &registry->counters;
}

static void *loop_place(void *owner, bool make)
{
	struct registry *registry = owner;

	(void)make;
	return registry->loop;
}

static void *database_place(void *owner, bool make)
{
	struct database *database = owner;

	return make ? counters_open(database) : database->counters;
}

static void *own_place(void *owner, bool make)
{
	(void)make;
	return owner;
}

static void *errors_place(void *owner, bool make)
{
	struct pool *pool = owner;

	if (make)
		pool_open_errors(pool);
	return pool->errors;
}

static void *latency_place(void *owner, bool make)
{
	struct pool *pool = owner;

	if (make)
		pool_open_latency(pool);
	return pool->latency;
}

#define TABLE(families, place)                                                                 \
	{                                                                                      \
		families, LENGTH(families), place                                              \
	}

const struct count_table count_tables_of_process[] = {
	TABLE(process_families, counters_place), TABLE(loop_families, loop_place), {0}};
const struct count_table count_tables_of_database[] = {
	TABLE(database_families, database_place), TABLE(prepared_families, own_place), {0}};
const struct count_table count_tables_of_pool[] = {TABLE(pool_families, own_place),
	TABLE(error_families, errors_place), TABLE(latency_families, latency_place), {0}};
