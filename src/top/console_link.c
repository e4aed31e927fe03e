/* SPDX-License-Identifier: ISC */
#include "top/console_link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const usec_t connect_limit = 10 * USEC_PER_SEC;
static const usec_t answer_limit = 30 * USEC_PER_SEC;
static const usec_t first_pause = USEC_PER_SEC / 2;
static const usec_t longest_pause = 15 * USEC_PER_SEC;

/* A SHOW has one result; more than some are a console that never ends its answer. */
enum { RESULTS_MOST = 10 };

static void enter(struct console_link *link, enum console_link_state state, usec_t now)
{
	link->state = state;
	link->since = now;
}

void console_link_begin(struct console_link *link, const char *const *keywords,
	const char *const *values, usec_t now)
{
	*link = (struct console_link){
		.keywords = keywords,
		.values = values,
		.since = now,
		.down_since = now,
		.next_attempt = now,
	};
}

void console_link_end(struct console_link *link)
{
	PQfinish(link->connection);
	link->connection = NULL;
	table_free(&link->answer);
}

void console_link_retry(struct console_link *link, usec_t now)
{
	if (link->state == CONSOLE_LINK_DOWN)
		link->next_attempt = now;
}

/* --- the end of a connection -------------------------------------------------------------- */

/* Keep a message of libpq in one line. */
static void note(struct console_link *link, const char *message)
{
	size_t length;

	text_copy(link->why, sizeof(link->why), message);
	for (char *newline = link->why; (newline = strpbrk(newline, "\r\n\t")) != NULL;)
		*newline = ' ';
	for (length = strlen(link->why); length > 0 && link->why[length - 1] == ' ';)
		link->why[--length] = '\0';
}

static enum console_link_event lose(struct console_link *link, const char *why, usec_t now)
{
	usec_t pause = first_pause;

	note(link, why && why[0] ? why : "the console has closed the connection");
	for (unsigned i = 0; i < link->attempts && pause < longest_pause; i++)
		pause *= 2;
	link->attempts++;
	link->next_attempt = now + (pause < longest_pause ? pause : longest_pause);
	if (link->down_since == 0)
		link->down_since = now;
	PQfinish(link->connection);
	link->connection = NULL;
	table_free(&link->answer);
	enter(link, CONSOLE_LINK_DOWN, now);
	return CONSOLE_LINK_LOST;
}

/* --- connecting --------------------------------------------------------------------------- */

/* libpq writes notices to stderr, which would spoil the screen. */
static void drop_notice(void *argument, const PGresult *result)
{
	(void)argument;
	(void)result;
}

static enum console_link_event start(struct console_link *link, usec_t now)
{
	link->connection = PQconnectStartParams(link->keywords, link->values, 1);
	if (!link->connection)
		return lose(link, "out of memory", now);
	if (PQstatus(link->connection) == CONNECTION_BAD)
		return lose(link, PQerrorMessage(link->connection), now);
	PQsetNoticeReceiver(link->connection, drop_notice, NULL);
	link->polling = PGRES_POLLING_WRITING;
	enter(link, CONSOLE_LINK_CONNECTING, now);
	return CONSOLE_LINK_NOTHING;
}

static enum console_link_event connected(struct console_link *link, usec_t now)
{
	PQsetnonblocking(link->connection, 1);
	link->attempts = 0;
	link->down_since = 0;
	link->why[0] = '\0';
	enter(link, CONSOLE_LINK_READY, now);
	return CONSOLE_LINK_CONNECTED;
}

static enum console_link_event proceed(struct console_link *link, usec_t now)
{
	bool needs_password;

	link->polling = PQconnectPoll(link->connection);
	if (link->polling == PGRES_POLLING_OK)
		return connected(link, now);
	if (link->polling != PGRES_POLLING_FAILED)
		return CONSOLE_LINK_NOTHING;
	needs_password = PQconnectionNeedsPassword(link->connection);
	lose(link, PQerrorMessage(link->connection), now);
	return needs_password ? CONSOLE_LINK_NEEDS_PASSWORD : CONSOLE_LINK_LOST;
}

/* --- asking ------------------------------------------------------------------------------- */

void console_link_ask(struct console_link *link, const char *sql, usec_t now)
{
	link->refused = false;
	link->asked = now;
	link->results = 0;
	table_free(&link->answer);
	/* Row by row, so that the table's limits hold for what is kept. A failure shows in the turn. */
	if (PQsendQuery(link->connection, sql))
		PQsetSingleRowMode(link->connection);
	enter(link, CONSOLE_LINK_ASKING, now);
}

static void take_row(struct table *table, const PGresult *result, int row)
{
	const char *cells[TABLE_COLUMNS_MOST];

	for (size_t i = 0; i < table->column_count; i++)
		cells[i] = PQgetisnull(result, row, (int)i) ? NULL
							    : PQgetvalue(result, row, (int)i);
	table_add(table, cells);
}

static void take_rows(struct table *table, const PGresult *result)
{
	const char *names[TABLE_COLUMNS_MOST];
	const int count = PQnfields(result);

	for (int i = 0; i < count && i < TABLE_COLUMNS_MOST; i++)
		names[i] = PQfname(result, i);
	table_begin(table, names, (size_t)count);
	/* Every row has the columns of the first description. */
	if (table->column_count > (size_t)count)
		return;
	for (int row = 0; row < PQntuples(result); row++)
		take_row(table, result, row);
}

static void take_result(struct console_link *link, PGresult *result)
{
	const ExecStatusType status = PQresultStatus(result);
	const char *why;

	if (status == PGRES_SINGLE_TUPLE || status == PGRES_TUPLES_OK) {
		take_rows(&link->answer, result);
	} else if (status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY) {
		why = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
		note(link, why ? why : PQresultErrorMessage(result));
		link->refused = true;
	}
	PQclear(result);
}

/* PQgetResult() would return it again and again. */
static bool is_copy(const PGresult *result)
{
	const ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/* Whether more has to come. Notifications, which libpq would keep, are dropped. */
static bool is_busy(PGconn *connection)
{
	const bool busy = PQisBusy(connection);
	PGnotify *notification;

	while ((notification = PQnotifies(connection)) != NULL)
		PQfreemem(notification);
	return busy;
}

/* Whether the answer has too many results, each of which libpq may append to the message of the last. */
static bool has_too_many(struct console_link *link, const PGresult *result)
{
	if (PQresultStatus(result) != PGRES_SINGLE_TUPLE)
		link->results++;
	return link->results > RESULTS_MOST;
}

static enum console_link_event receive(struct console_link *link, usec_t now)
{
	PGresult *result;

	if (!PQconsumeInput(link->connection) || PQflush(link->connection) < 0)
		return lose(link, PQerrorMessage(link->connection), now);
	while (!is_busy(link->connection)) {
		result = PQgetResult(link->connection);
		if (result && is_copy(result)) {
			PQclear(result);
			return lose(link, "the console answers with a COPY", now);
		}
		if (result && has_too_many(link, result)) {
			PQclear(result);
			return lose(link, "the console does not end its answer", now);
		}
		if (result) {
			take_result(link, result);
			continue;
		}
		if (PQstatus(link->connection) == CONNECTION_BAD)
			return lose(link, PQerrorMessage(link->connection), now);
		enter(link, CONSOLE_LINK_READY, now);
		return link->refused ? CONSOLE_LINK_REFUSED : CONSOLE_LINK_ANSWERED;
	}
	link->since = now;
	return CONSOLE_LINK_NOTHING;
}

/* Outside of an answer there is nothing to read but the end of the connection. */
static enum console_link_event listen_for_end(struct console_link *link, usec_t now)
{
	if (PQconsumeInput(link->connection) && PQstatus(link->connection) != CONNECTION_BAD) {
		is_busy(link->connection); /* a FATAL of the console is noted as its reason */
		if (PQstatus(link->connection) != CONNECTION_BAD)
			return CONSOLE_LINK_NOTHING;
	}
	return lose(link, PQerrorMessage(link->connection), now);
}

/* --- turns -------------------------------------------------------------------------------- */

int console_link_socket(const struct console_link *link, short *events)
{
	*events = POLLIN;
	if (!link->connection)
		return -1;
	if (link->state == CONSOLE_LINK_CONNECTING)
		*events = link->polling == PGRES_POLLING_READING ? POLLIN : POLLOUT;
	else if (link->state == CONSOLE_LINK_ASKING && PQflush(link->connection) > 0)
		*events = POLLIN | POLLOUT;
	return PQsocket(link->connection);
}

usec_t console_link_deadline(const struct console_link *link)
{
	switch (link->state) {
	case CONSOLE_LINK_DOWN:
		return link->next_attempt;
	case CONSOLE_LINK_CONNECTING:
		return link->since + connect_limit;
	case CONSOLE_LINK_ASKING:
		return link->since + answer_limit;
	case CONSOLE_LINK_READY:
		break;
	}
	return INT64_MAX;
}

enum console_link_event console_link_turn(struct console_link *link, bool ready, usec_t now)
{
	const bool late = now >= console_link_deadline(link);

	switch (link->state) {
	case CONSOLE_LINK_DOWN:
		return late ? start(link, now) : CONSOLE_LINK_NOTHING;
	case CONSOLE_LINK_CONNECTING:
		if (ready)
			return proceed(link, now);
		return late ? lose(link, "no answer within 10 seconds", now)
			    : CONSOLE_LINK_NOTHING;
	case CONSOLE_LINK_READY:
		return ready ? listen_for_end(link, now) : CONSOLE_LINK_NOTHING;
	case CONSOLE_LINK_ASKING:
		if (ready)
			return receive(link, now);
		return late ? lose(link, "no answer for 30 seconds", now)
			    : CONSOLE_LINK_NOTHING;
	}
	return CONSOLE_LINK_NOTHING;
}
