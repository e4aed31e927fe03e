/* SPDX-License-Identifier: ISC */
/* SHOW WORKERS: the event loops and their threads, with what is at home there. */
#include <stdio.h>

#include "admin/advice/advisor.h"
#include "admin/show/topic.h"
#include "model/shared/all_workers.h"

static const struct column columns[] = {
	{"worker", COLUMN_INT4},
	{"thread", COLUMN_INT4}, /* its id for the kernel: top -H, perf */
	{"cpu", COLUMN_INT4}, /* NULL: it may run on several */
	{"databases", COLUMN_INT4}, {"pools", COLUMN_INT4}, {"clients", COLUMN_INT4},
	{"logins", COLUMN_INT4}, {"servers", COLUMN_INT4},
	{"busy", COLUMN_INT4}, /* percent of a processor, in the last second */
	{"busy_average", COLUMN_INT4}, /* since the start */
	{"turns", COLUMN_INT8}, {"dealt", COLUMN_INT8}, /* connections that began there */
	{"moved_in", COLUMN_INT8}, /* that came from another worker, before their login */
	{"moved_out", COLUMN_INT8}, {"mails", COLUMN_INT8}, /* from other workers */
	{"wake_ups", COLUMN_INT8}, /* of its wait, by other workers */
	{"stops", COLUMN_INT8}, /* for what concerns all workers */
	{"stop_us", COLUMN_INT8}, /* how long it stood still for these */
	{"names", COLUMN_TEXT}, /* of its databases */
};

/* There may be thousands of automatic databases. */
enum { NAMES_MOST = 1000 };

enum { PERCENT = 100 };

static void add_known(struct result *result, int number)
{
	if (number >= 0)
		result_number(result, number);
	else
		result_text(result, NULL);
}

/* The names of its databases, with commas between them; the text ends with `...` if it has not all. */
static void add_names(struct result *result, const struct registry *registry)
{
	char text[NAMES_MOST + DATABASE_NAME_LIMIT + 2 * sizeof(", ...")] = "";
	const struct database *database;
	size_t length = 0;

	TAILQ_FOREACH (database, &registry->databases, in_registry) {
		if (database->console)
			continue;
		if (length >= NAMES_MOST) {
			snprintf(text + length, sizeof(text) - length, ", ...");
			break;
		}
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
			length > 0 ? ", " : "", database->name);
	}
	result_text(result, text);
}

static void add_worker(
	struct result *result, const struct registry *registry, const struct registry *first)
{
	const struct worker_counts counts = worker_counts_of(registry);
	const struct crew_figures *crew = &counts.crew;

	result_begin_row(result);
	result_number(result, registry->number);
	result_number(result, crew->thread);
	add_known(result, crew_processor(registry->loop));
	result_number(result, counts.databases);
	result_number(result, counts.pools);
	result_number(result, (int64_t)counts.clients);
	result_number(result, (int64_t)counts.logins);
	result_number(result, (int64_t)counts.servers);
	add_known(result, advisor_busy(first, registry->number));
	result_number(result, counts.age > 0 ? crew->busy * PERCENT / counts.age : 0);
	result_count(result, crew->turns);
	result_count(result, registry->dealt);
	result_count(result, registry->moved_in);
	result_count(result, registry->moved_out);
	result_count(result, crew->mails);
	result_count(result, crew->wake_ups);
	result_count(result, crew->stops);
	result_number(result, crew->parked);
	add_names(result, registry);
	result_end_row(result);
}

static void fill(struct result *result, const struct show_request *request)
{
	const struct registry *each;

	EACH_REGISTRY (each, request->registry->process)
		add_worker(result, each, request->registry);
}

const struct topic show_workers = TOPIC("WORKERS", columns, fill);
