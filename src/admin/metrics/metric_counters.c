/* SPDX-License-Identifier: ISC */
/*
 * Metrics that count events, by closed sets of labels (model/statistics/labels). A counter of a
 * database has a sample once it is not 0, a counter of the process always.
 */
#include <stdlib.h>
#include <string.h>

#include "admin/metrics/metric_sources.h"
#include "admin/metrics/metrics.h"
#include "model/shared/all_names.h"
#include "wire/sqlstate.h"

#define SOURCE(collect, details)                                                               \
	{                                                                                      \
		collect, sizeof(struct metric_number), &(details)                              \
	}

static void add_number(struct metric_samples *samples, uint64_t number)
{
	const struct metric_number figures = {(int64_t)number};

	metric_samples_add(samples, &figures);
}

/* --- arrays of counters ------------------------------------------------------------------- */

/* An array of uint64_t in a struct, and the label with its value for each element. */
struct labelled {
	size_t offset;
	const char *label;
	const char *const *words;
	unsigned count;
};

#define LABELLED(kind, field, label, words)                                                    \
	{                                                                                      \
		offsetof(struct kind, field), label, words, sizeof(words) / sizeof((words)[0]) \
	}

static const uint64_t *array_of(const void *counters, const struct labelled *labelled)
{
	return (const uint64_t *)((const char *)counters + labelled->offset);
}

static void collect_of_process(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct labelled *labelled = detail;
	struct counters counters;
	const uint64_t *numbers = array_of(&counters, labelled);

	counters_sum(context->registry->process, &counters);
	for (unsigned i = 0; i < labelled->count; i++) {
		metric_samples_label(samples, labelled->label, labelled->words[i]);
		add_number(samples, numbers[i]);
	}
}

static void add_of_database(struct metric_samples *samples, const char *database,
	const struct database_counters *counters, const struct labelled *labelled)
{
	const uint64_t *numbers = array_of(counters, labelled);

	for (unsigned i = 0; i < labelled->count; i++) {
		if (numbers[i] == 0)
			continue;
		metric_samples_label(samples, "database", database);
		if (labelled->label)
			metric_samples_label(samples, labelled->label, labelled->words[i]);
		add_number(samples, numbers[i]);
	}
}

static void collect_of_databases(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct database *database, *next;
	struct counters sum;

	counters_sum(context->registry->process, &sum);
	add_of_database(samples, "", &sum.nowhere, detail);
	HASH_ITER (by_name, context->registry->process->directory.databases, database, next) {
		const struct database_counters *counters = counters_of_database(database);

		if (counters)
			add_of_database(samples, database->name, counters, detail);
	}
}

static const struct labelled opened = {
	offsetof(struct database_counters, server_opened), NULL, NULL, 1};
static const struct labelled servers_closed =
	LABELLED(database_counters, server_closed, "reason", server_closing_labels);
static const struct labelled clients_closed =
	LABELLED(database_counters, client_closed, "reason", client_closing_labels);
static const struct labelled resets =
	LABELLED(database_counters, server_reset, "outcome", reset_outcome_labels);
static const struct labelled unclean =
	LABELLED(database_counters, unclean_release, "why", unclean_release_labels);
static const struct labelled rejected =
	LABELLED(counters, client_rejected, "reason", client_rejection_labels);
static const struct labelled auth_failed =
	LABELLED(counters, auth_failed, "reason", auth_failure_labels);
static const struct labelled cancels =
	LABELLED(counters, cancel_requests, "outcome", cancel_outcome_labels);
static const struct labelled reloads =
	LABELLED(counters, reloads, "outcome", reload_outcome_labels);

const struct metric_source metric_server_opened = SOURCE(collect_of_databases, opened);
const struct metric_source metric_server_closed = SOURCE(collect_of_databases, servers_closed);
const struct metric_source metric_client_closed = SOURCE(collect_of_databases, clients_closed);
const struct metric_source metric_server_reset = SOURCE(collect_of_databases, resets);
const struct metric_source metric_unclean_release = SOURCE(collect_of_databases, unclean);
const struct metric_source metric_client_rejected = SOURCE(collect_of_process, rejected);
const struct metric_source metric_auth_failures = SOURCE(collect_of_process, auth_failed);
const struct metric_source metric_cancel_requests = SOURCE(collect_of_process, cancels);
const struct metric_source metric_reloads = SOURCE(collect_of_process, reloads);

static void collect_protocol_errors(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	struct counters counters;

	(void)detail;
	counters_sum(context->registry->process, &counters);
	for (unsigned side = 0; side < PROTOCOL_SIDES; side++) {
		const uint64_t *numbers = counters.protocol_errors[side];

		for (unsigned kind = 0; kind < PROTOCOL_ERRORS; kind++) {
			metric_samples_label(samples, "side", protocol_side_labels[side]);
			metric_samples_label(samples, "kind", protocol_error_labels[kind]);
			add_number(samples, numbers[kind]);
		}
	}
}

const struct metric_source metric_protocol_errors = {
	collect_protocol_errors, sizeof(struct metric_number), NULL};

/* --- errors by their text ----------------------------------------------------------------- */

/* The label value of a reason: its text, with an ellipsis in place of its argument. */
static void text_of(enum reason reason, char out[FAILURE_TEXT_SIZE])
{
	const struct failure failure =
		reason_has_argument(reason) ? failure_of(reason, "...") : failure_of(reason);

	/* The text of a server's error is not a closed set. */
	memcpy(out, strcmp(failure.text, "...") == 0 ? "other" : failure.text,
		strcmp(failure.text, "...") == 0 ? sizeof("other") : FAILURE_TEXT_SIZE);
}

/* Find the text or add it: two reasons may have the same text. */
static struct error_text *find_text(
	struct error_text *texts, unsigned *count, const char text[FAILURE_TEXT_SIZE])
{
	for (unsigned i = 0; i < *count; i++) {
		if (strcmp(texts[i].text, text) == 0)
			return &texts[i];
	}
	memcpy(texts[*count].text, text, FAILURE_TEXT_SIZE);
	texts[*count].count = 0;
	return &texts[(*count)++];
}

unsigned metric_error_texts(
	const struct counters *counters, struct error_text out[REASON_COUNT])
{
	unsigned count = 0;

	for (unsigned reason = 0; reason < REASON_COUNT; reason++) {
		char text[FAILURE_TEXT_SIZE];

		/* A reason that is not reported to clients is not counted as an error. */
		if (reason_sqlstate(reason)[0] == '\0')
			continue;
		text_of(reason, text);
		find_text(out, &count, text)->count += counters->errors[reason];
	}
	return count;
}

static void collect_errors(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	struct error_text *texts = malloc(REASON_COUNT * sizeof(*texts));
	struct counters counters;
	unsigned count;

	(void)detail;
	if (!texts) {
		samples->rows.failed = true;
		return;
	}
	counters_sum(context->registry->process, &counters);
	count = metric_error_texts(&counters, texts);
	for (unsigned i = 0; i < count; i++) {
		metric_samples_label(samples, "errmsg", texts[i].text);
		add_number(samples, texts[i].count);
	}
	free(texts);
}

const struct metric_source metric_errors = {collect_errors, sizeof(struct metric_number), NULL};

/* --- errors of servers -------------------------------------------------------------------- */

static void sum_classes(const struct database *database, uint64_t sums[SQLSTATE_CLASSES])
{
	const struct pool *pool;

	memset(sums, 0, SQLSTATE_CLASSES * sizeof(sums[0]));
	TAILQ_FOREACH (pool, &database->pools, in_database) {
		for (unsigned i = 0; pool->errors && i < SQLSTATE_CLASSES; i++)
			sums[i] += pool->errors[i];
	}
}

static void collect_server_errors(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct database *database, *next;
	uint64_t sums[SQLSTATE_CLASSES];

	(void)detail;
	HASH_ITER (by_name, context->registry->process->directory.databases, database, next) {
		sum_classes(database, sums);
		for (unsigned i = 0; i < SQLSTATE_CLASSES; i++) {
			if (sums[i] == 0)
				continue;
			metric_samples_label(samples, "database", database->name);
			metric_samples_label(samples, "class", sqlstate_classes[i]);
			add_number(samples, sums[i]);
		}
	}
}

const struct metric_source metric_server_errors = {
	collect_server_errors, sizeof(struct metric_number), NULL};

/* --- the last reload ---------------------------------------------------------------------- */

static void collect_last_reload(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	/* The first worker loads the configuration. */
	const struct counters *counters = &context->registry->counters;
	const struct reload_figures figures = {
		.successful = !counters->last_reload_failed,
		.succeeded_at =
			counters->last_reload > 0 ? counters->last_reload : METRIC_UNKNOWN,
	};

	(void)detail;
	metric_samples_add(samples, &figures);
}

const struct metric_source metric_last_reload = {
	collect_last_reload, sizeof(struct reload_figures), NULL};

/* --- counters of lower floors ------------------------------------------------------------- */

static void add_labelled(
	struct metric_samples *samples, const char *label, const char *word, uint64_t number)
{
	metric_samples_label(samples, label, word);
	add_number(samples, number);
}

static void collect_accept_paused(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct listeners *listeners = context->metrics->listeners;

	(void)detail;
	add_labelled(samples, "reason", "fd_limit", listeners->rests_for_descriptors);
	add_labelled(samples, "reason", "memory", listeners->rests_for_memory);
}

const struct metric_source metric_accept_paused = {
	collect_accept_paused, sizeof(struct metric_number), NULL};

static void collect_log_messages(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	(void)context;
	(void)detail;
	add_labelled(samples, "level", "fatal", log_count(LEVEL_FATAL));
	add_labelled(samples, "level", "error", log_count(LEVEL_ERROR));
	add_labelled(samples, "level", "warning", log_count(LEVEL_WARNING));
	add_labelled(samples, "level", "log", log_count(LEVEL_LOG));
}

const struct metric_source metric_log_messages = {
	collect_log_messages, sizeof(struct metric_number), NULL};

static void collect_dns_lookups(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	struct resolver_counts counts;

	(void)detail;
	if (!context->registry->resolver)
		return;
	counts = all_names_counts(context->registry->process);
	add_labelled(samples, "outcome", "ok", counts.found);
	add_labelled(samples, "outcome", "nxdomain", counts.unknown);
	add_labelled(samples, "outcome", "timeout", counts.timeouts);
	add_labelled(samples, "outcome", "error", counts.errors);
}

const struct metric_source metric_dns_lookups = {
	collect_dns_lookups, sizeof(struct metric_number), NULL};

static void collect_logins_delayed(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	struct counters counters;

	(void)detail;
	counters_sum(context->registry->process, &counters);
	add_number(samples, counters.logins_delayed);
}

const struct metric_source metric_logins_delayed = {
	collect_logins_delayed, sizeof(struct metric_number), NULL};

static void collect_dns_changes(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	(void)detail;
	if (context->registry->resolver)
		add_number(samples, all_names_counts(context->registry->process).moves);
}

const struct metric_source metric_dns_changes = {
	collect_dns_changes, sizeof(struct metric_number), NULL};
