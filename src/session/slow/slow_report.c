/* SPDX-License-Identifier: ISC */
#include "session/slow/slow_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "session/slow/secret_words.h"
#include "session/slow/slow_setting.h"
#include "wire/trace_comment.h"

/* What stands in place of the rest of a text with a secret. */
#define LEFT_OUT " <left out>"

/* --- the parts ---------------------------------------------------------------------------- */

static usec_t at_most(usec_t time, usec_t limit)
{
	return time < limit ? time : limit;
}

/* What is neither the wait for a server nor that for the client is the server's. */
static void share_time(struct slow_query *out, const struct watched_query *query)
{
	usec_t *parts = out->parts;

	parts[SLOW_QUEUE] = at_most(query->queue_time, out->total);
	parts[SLOW_CLIENT] = at_most(query->client_time, out->total - parts[SLOW_QUEUE]);
	parts[SLOW_SERVER] = out->total - parts[SLOW_QUEUE] - parts[SLOW_CLIENT];
	out->cause = slow_log_cause(parts);
}

static void name_parties(struct slow_query *out, const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	const int index = parameter_index(registry->parameters, "application_name");
	const char *application = client->link.parameters && index >= 0
		? parameters_get(client->link.parameters, (unsigned)index)
		: NULL;
	const char *database = link_database_name(&client->link);
	const char *user = link_user_name(&client->link);
	char address[ADDRESS_TEXT_SIZE];

	out->client = link_handle(&client->link);
	out->client_number = link_number(&client->link);
	out->pool = client->link.pool->number;
	text_escape(out->database, sizeof(out->database), database, strlen(database));
	text_escape(out->user, sizeof(out->user), user, strlen(user));
	text_copy(out->address, sizeof(out->address),
		address_host(&client->link.remote, address));
	out->port = client->link.remote.port;
	if (application)
		text_escape(out->application, sizeof(out->application), application,
			strlen(application));
}

/* --- the text ----------------------------------------------------------------------------- */

/* The kept part of the text: all of a prepared statement. */
static const char *text_of(const struct watched_query *query, size_t *length)
{
	*length = query->statement ? strlen(statement_text(query->statement))
				   : strnlen(query->head, query->head_length);
	return query->statement ? statement_text(query->statement) : query->head;
}

static void find_trace(struct slow_query *out, const struct watched_query *query)
{
	size_t length;
	const char *text = text_of(query, &length);

	if (query->tail_length > 0 &&
		trace_comment_find(query->tail, query->tail_length,
			query->tail_length < query->text_length, out->traceparent))
		return;
	trace_comment_find(text, length, false, out->traceparent);
}

static void show_text(struct slow_query *out, const struct watched_query *query, size_t limit)
{
	size_t length, safe;
	const char *text = text_of(query, &length);
	bool has_secret;

	out->text_length = query->text_length;
	if (out->text_length == 0 && (query->statement || length < query->head_length))
		out->text_length = length;
	safe = secret_words_safe_length(text, length);
	has_secret = safe < length;
	text_escape(out->text, limit + 1, text, safe);
	length = strlen(out->text);
	if (has_secret && length + sizeof(LEFT_OUT) <= limit + 1)
		memcpy(out->text + length, LEFT_OUT, sizeof(LEFT_OUT));
	/* They may be the secret, and so may be those of a text that is not known. */
	if (!has_secret && length > 0)
		text_copy(out->parameters, sizeof(out->parameters), query->parameters);
}

/* --- the line ----------------------------------------------------------------------------- */

static void add(char *line, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add(char *line, size_t size, const char *format, ...)
{
	const size_t used = strlen(line);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + used, size - used, format, arguments);
	va_end(arguments);
}

/* Add a text, if there is one, in quotes; quotes in it are doubled. */
static void add_text(char *line, size_t size, const char *name, const char *text)
{
	size_t used;

	if (text[0] == '\0')
		return;
	add(line, size, " %s=\"", name);
	for (used = strlen(line); *text && used + 3 < size; text++) {
		if (*text == '"')
			line[used++] = '"';
		line[used++] = *text;
	}
	line[used] = '\0';
	add(line, size, "\"");
}

/* The details behind the times, for formats without facts. */
static void write_details(char *out, size_t size, const struct slow_query *query)
{
	out[0] = '\0';
	add(out, size, " cause=%s", slow_cause_labels[query->cause]);
	if (query->setting)
		add(out, size, " setting=%s", query->setting);
	add(out, size, " rows=%llu bytes=%llu bytes_in=%llu", (unsigned long long)query->rows,
		(unsigned long long)query->sent, (unsigned long long)query->received);
	if (query->sqlstate[0])
		add(out, size, " sqlstate=%s", query->sqlstate);
	if (query->traceparent[0])
		add(out, size, " traceparent=%s", query->traceparent);
	add_text(out, size, "end", query->end);
	add_text(out, size, "application", query->application);
	add_text(out, size, "statement", query->statement);
	if (query->text_length > strlen(query->text))
		add(out, size, " text_bytes=%llu", (unsigned long long)query->text_length);
	add_text(out, size, "parameters", query->parameters);
	add_text(out, size, "text", query->text);
}

static void add_fact(struct link_facts *facts, const char *name, const char *text)
{
	if (text[0])
		facts->facts[facts->count++] = (struct log_fact){name, text, 0};
}

static void add_number(struct link_facts *facts, const char *name, uint64_t number)
{
	facts->facts[facts->count++] = (struct log_fact){name, NULL, (long long)number};
}

static void collect_facts(struct link_facts *facts, const struct slow_query *query)
{
	add_number(facts, "total_us", (uint64_t)query->total);
	add_number(facts, "queue_us", (uint64_t)query->parts[SLOW_QUEUE]);
	add_number(facts, "server_us", (uint64_t)query->parts[SLOW_SERVER]);
	add_number(facts, "client_us", (uint64_t)query->parts[SLOW_CLIENT]);
	add_fact(facts, "cause", slow_cause_labels[query->cause]);
	add_fact(facts, "setting", query->setting ? query->setting : "");
	add_number(facts, "rows", query->rows);
	add_number(facts, "bytes", query->sent);
	add_number(facts, "bytes_in", query->received);
	add_fact(facts, "sqlstate", query->sqlstate);
	add_fact(facts, "traceparent", query->traceparent);
	add_fact(facts, "end", query->end);
	add_fact(facts, "application", query->application);
	add_fact(facts, "statement", query->statement);
	if (query->text_length > strlen(query->text))
		add_number(facts, "text_bytes", query->text_length);
	add_fact(facts, "parameters", query->parameters);
	add_fact(facts, "text", query->text);
}

static double milliseconds(usec_t time)
{
	return (double)time / USEC_PER_MSEC;
}

static void write_line(const struct client_link *client, const struct slow_query *query)
{
	char details[LOG_LINE_SIZE];
	struct link_facts facts = {.details = details};

	write_details(details, sizeof(details), query);
	collect_facts(&facts, query);
	link_log_facts(&client->link, LEVEL_LOG, &facts,
		"slow query: total=%.3fms queue=%.3fms server=%.3fms client=%.3fms",
		milliseconds(query->total), milliseconds(query->parts[SLOW_QUEUE]),
		milliseconds(query->parts[SLOW_SERVER]),
		milliseconds(query->parts[SLOW_CLIENT]));
}

/* --- the report --------------------------------------------------------------------------- */

void slow_report_left_out(const struct registry *registry)
{
	unsigned left_out;

	if (!registry->slow_log)
		return;
	left_out = slow_log_left_out(registry->slow_log, loop_now(registry->loop));
	if (left_out > 0)
		log_write(LEVEL_LOG,
			"slow query: %u more in the last second, not logged because of log_slow_rate = %d",
			left_out, registry->process->settings->log_slow_rate);
}

void slow_report(const struct client_link *client, const struct watched_query *query,
	usec_t end, const struct failure *why)
{
	const struct registry *registry = link_registry(&client->link);
	const struct settings *settings = registry->process->settings;
	struct slow_query *slow;

	if (end - query->started < settings->log_min_duration || !registry->slow_log)
		return;
	slow = slow_log_add(registry->slow_log);
	slow->at = clock_wall();
	slow->total = end - query->started;
	share_time(slow, query);
	slow->setting = slow->cause == SLOW_QUEUE
		? slow_setting(client->link.pool, slow->parts[SLOW_QUEUE])
		: NULL;
	name_parties(slow, client);
	slow->rows = query->rows;
	slow->sent = query->sent;
	slow->received = query->received;
	if (why)
		text_escape(slow->end, sizeof(slow->end), why->text, strlen(why->text));
	text_copy(slow->sqlstate, sizeof(slow->sqlstate),
		why && !query->sqlstate[0] ? why->sqlstate : query->sqlstate);
	text_escape(slow->statement, sizeof(slow->statement), query->name, strlen(query->name));
	find_trace(slow, query);
	show_text(slow, query, (size_t)settings->log_statement_length);
	client->link.pool->slow[slow->cause]++;
	slow_report_left_out(registry);
	if (slow_log_samples(registry->slow_log, (unsigned)settings->log_slow_rate,
		    loop_now(registry->loop)))
		write_line(client, slow);
}
