/* SPDX-License-Identifier: ISC */
/*
 * SHOW SLOW: the slow queries that have ended last, the latest first.
 *
 * Statements may contain literals, which are data of the databases: only administrators see them and
 * their parameters, and for other users these columns are NULL, also where WHERE and ORDER BY look
 * at them.
 */
#include <stdio.h>

#include "admin/show/show_stream.h"
#include "model/statistics/slow_log.h"

static const struct column columns[] = {
	{"id", COLUMN_INT8}, /* counted since the log was turned on */
	{"at", COLUMN_TIME}, /* its end */
	{"database", COLUMN_TEXT}, {"user", COLUMN_TEXT}, {"client_addr", COLUMN_TEXT},
	{"client_port", COLUMN_INT4}, {"application_name", COLUMN_TEXT},
	{"client", COLUMN_TEXT}, /* the ptr of SHOW CLIENTS */
	{"cause", COLUMN_TEXT}, /* the longest of the three parts */
	{"setting", COLUMN_TEXT}, /* that made it wait */
	{"total_us", COLUMN_INT8}, {"queue_us", COLUMN_INT8}, {"server_us", COLUMN_INT8},
	{"client_us", COLUMN_INT8}, {"rows", COLUMN_INT8},
	{"bytes", COLUMN_INT8}, /* of rows and COPY data to the client */
	{"bytes_in", COLUMN_INT8}, /* of messages from the client */
	{"error", COLUMN_TEXT}, /* SQLSTATE */
	{"ended", COLUMN_TEXT}, /* why, without its whole answer */
	{"traceparent", COLUMN_TEXT}, {"statement", COLUMN_TEXT}, /* the client's name for it */
	{"text_bytes", COLUMN_INT8}, /* of the whole text */
	{"parameters", COLUMN_TEXT}, {"text", COLUMN_TEXT}, /* its beginning */
};

/* NULL for an empty text. */
static void add_text(struct result *result, const char *text)
{
	result_text(result, text[0] ? text : NULL);
}

static void add_row(struct result *result, const struct slow_query *query, bool admin)
{
	char handle[24];

	snprintf(handle, sizeof(handle), "0x%llx", (unsigned long long)query->client);
	result_begin_row(result);
	result_count(result, query->number);
	result_time(result, query->at);
	result_text(result, query->database);
	result_text(result, query->user);
	result_text(result, query->address);
	result_number(result, query->port);
	add_text(result, query->application);
	result_text(result, handle);
	result_text(result, slow_cause_labels[query->cause]);
	result_text(result, query->setting);
	result_number(result, query->total);
	for (unsigned i = 0; i < SLOW_CAUSES; i++)
		result_number(result, query->parts[i]);
	result_count(result, query->rows);
	result_count(result, query->sent);
	result_count(result, query->received);
	add_text(result, query->sqlstate);
	add_text(result, query->end);
	add_text(result, query->traceparent);
	add_text(result, query->statement);
	result_count(result, query->text_length);
	result_text(result, admin && query->parameters[0] ? query->parameters : NULL);
	result_text(result, admin && query->text[0] ? query->text : NULL);
	result_end_row(result);
}

static void fill(struct result *result, const struct show_request *request)
{
	const struct slow_query *query;
	struct slow_walk walk = {0};

	while ((query = slow_walk_next(&walk, request->registry->process)) != NULL)
		add_row(result, query, request->client->admin);
}

const struct topic show_slow = TOPIC("SLOW", columns, fill);
