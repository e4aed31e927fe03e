/* SPDX-License-Identifier: ISC */
#include "session/lookup/lookup_server.h"

#include <string.h>

#include "model/statistics/reason_facts.h"
#include "session/link/close.h"
#include "session/pool/pairing.h"
#include "session/pool/return_to_pool.h"
#include "session/relay/relay_rules.h"
#include "wire/message.h"
#include "wire/row.h"
#include "wire/writer.h"

/* The messages that answer one statement, in order. Before the last come the rows. */
static const uint8_t steps[] = {
	PQ_PARSE_COMPLETE,
	PQ_BIND_COMPLETE,
	PQ_ROW_DESCRIPTION,
	PQ_COMMAND_COMPLETE,
};

enum { STEPS = sizeof(steps), STEP_OF_ROWS = STEPS - 1 };

/* --- into the queue ----------------------------------------------------------------------- */

bool lookup_ask(struct asker *asker, struct pool *pool, const struct lookup_question *question,
	bool replica, struct failure *why)
{
	if (pairing_is_hopeless(pool, replica, why))
		return false;
	if (pool->registry->process->shutdown == SHUTDOWN_WAIT_FOR_SERVERS) {
		*why = failure_of(REASON_SERVER_SHUTTING_DOWN);
		return false;
	}
	if (!lookup_join(asker, pool, question)) {
		*why = failure_of(REASON_NO_MEMORY);
		return false;
	}
	/* Start at the end of the turn, so that all askers of this turn can share look-ups. */
	pool_needs_work(pool);
	return true;
}

/* --- to the server ------------------------------------------------------------------------ */

static void write_portal_message(
	struct buffer *out, uint8_t type, const char *kind, const char *end, size_t end_length)
{
	const size_t mark = writer_begin(out, type);

	buffer_append(out, kind, strlen(kind));
	writer_string(out, "");
	writer_bytes(out, end, end_length);
	writer_end(out, mark);
}

void lookup_write_statement(
	struct buffer *out, const char *sql, const char *const *values, unsigned count)
{
	static const char every_row[4] = {0};
	size_t mark = writer_begin(out, PQ_PARSE);

	writer_string(out, "");
	writer_string(out, sql);
	writer_int16(out, 0);
	writer_end(out, mark);
	mark = writer_begin(out, PQ_BIND);
	writer_string(out, "");
	writer_string(out, "");
	writer_int16(out, 0);
	writer_int16(out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		writer_int32(out, (uint32_t)strlen(values[i]));
		writer_bytes(out, values[i], strlen(values[i]));
	}
	writer_int16(out, 0);
	writer_end(out, mark);
	write_portal_message(out, PQ_DESCRIBE, "P", NULL, 0);
	write_portal_message(out, PQ_EXECUTE, "", every_row, sizeof(every_row));
}

/* The askers wait for a server again, or no longer: other time limits count. */
static void tell_moved(const struct lookup *lookup)
{
	struct asker *asker;

	TAILQ_FOREACH (asker, &lookup->askers, in_lookup)
		asker->events->moved(asker);
}

void lookup_run(struct lookup *lookup, struct server_link *server)
{
	struct buffer message;

	lookup->step = 0;
	buffer_init(&message);
	lookup->preludes = lookup->kind->write_preludes(server, &message);
	lookup->statements = lookup->kind->write(lookup, server, &message);
	writer_message(&message, PQ_SYNC, NULL, 0);
	server_enter(server, SERVER_LOOKING_UP);
	server->transaction_status = 0;
	lookup_start(lookup, server);
	server->unnamed = 0;
	if (requests_add(&server->requests, PQ_SYNC, REQUEST_SWALLOW) &&
		link_send(&server->link, &message)) {
		tell_moved(lookup);
		return;
	}
	buffer_free(&message);
	server_close_for(server, REASON_SERVER_CONNECTION_CLOSED);
}

/* --- from the server ---------------------------------------------------------------------- */

bool lookup_reject(const struct server_link *server, const char *what)
{
	link_log_repeated(
		&server->link, LEVEL_ERROR, "%s: %s", server->lookup->kind->name, what);
	return false;
}

static unsigned all_steps(const struct lookup *lookup)
{
	return STEPS * lookup->statements;
}

static bool take_step(
	struct server_link *server, uint8_t type, const uint8_t *body, size_t length)
{
	struct lookup *lookup = server->lookup;
	const unsigned statement = lookup->step / STEPS, step = lookup->step % STEPS;
	int columns;

	if (lookup->step < all_steps(lookup) && type == PQ_DATA_ROW && step == STEP_OF_ROWS)
		return lookup->kind->take_row(server, statement, body, length);
	if (lookup->step >= all_steps(lookup) || type != steps[step])
		return lookup_reject(server, "unexpected answer");
	if (type == PQ_ROW_DESCRIPTION) {
		columns = (int)lookup->kind->columns(lookup, statement);
		if (row_description_columns(body, length) != columns)
			return lookup_reject(server,
				columns == 2 ? "result has not two columns"
					     : "result has other columns than expected");
	}
	lookup->step++;
	return true;
}

/*
 * With an error of class 57P (operator intervention), or with a time limit that a client may
 * have left in this session, another server may succeed.
 */
static enum lookup_progress take_error(
	struct server_link *server, const uint8_t *body, size_t length, enum reason *why)
{
	struct lookup *lookup = server->lookup;
	struct report report;

	report_parse(body, length, &report);
	if (!lookup->answered && report_is_of(&report, "57P")) {
		*why = REASON_SERVER_CONN_CRASHED;
		return LOOKUP_FAILED;
	}
	if (server->touched && report_is_time_limit(&report)) {
		*why = REASON_SETTING_TIMED_OUT;
		return LOOKUP_FAILED;
	}
	if (lookup->preludes > 0 || lookup->step >= all_steps(lookup)) {
		link_log_repeated(&server->link, LEVEL_ERROR, "S: error in %s: %s: %s",
			lookup->kind->name, report.severity ? report.severity : "ERROR",
			report.text ? report.text : "no message");
		return LOOKUP_FAILED;
	}
	if (lookup->kind->take_error(server, &report) == LOOKUP_ERROR_CLOSES)
		return LOOKUP_FAILED;
	/* Protocol: "Message Flow", Extended Query: it ignores messages up to the Sync. */
	lookup->answered = true;
	lookup->step = all_steps(lookup);
	return LOOKUP_CONTINUES;
}

static enum lookup_progress take_ready(
	struct server_link *server, const uint8_t *body, size_t length)
{
	struct lookup *lookup = server->lookup;

	if (length != 1 || body[0] != READY_IDLE)
		return LOOKUP_FAILED;
	if (lookup->preludes > 0) {
		lookup->preludes--;
		return lookup->kind->prelude_done(server) ? LOOKUP_CONTINUES : LOOKUP_FAILED;
	}
	return lookup->step == all_steps(lookup) ? LOOKUP_IS_DONE : LOOKUP_FAILED;
}

enum lookup_progress lookup_answer(struct server_link *server, uint8_t type,
	const uint8_t *body, size_t length, enum reason *why)
{
	struct lookup *lookup = server->lookup;

	*why = lookup->kind->broken;
	if (type == PQ_ERROR_RESPONSE)
		return take_error(server, body, length, why);
	if (type == PQ_READY_FOR_QUERY)
		return take_ready(server, body, length);
	/* Answers of the queries before the look-up are not needed. */
	if (lookup->preludes > 0)
		return LOOKUP_CONTINUES;
	lookup->answered = true;
	return take_step(server, type, body, length) ? LOOKUP_CONTINUES : LOOKUP_FAILED;
}

/* --- the result --------------------------------------------------------------------------- */

static void fail(struct lookup *lookup, const struct failure *why)
{
	struct asker *asker;

	while ((asker = lookup_take_asker(lookup)) != NULL)
		asker->events->failed(asker, why);
}

void lookup_done(struct server_link *server)
{
	struct lookup *lookup = server->lookup;

	lookup_end(lookup);
	if (server_is_clean(server))
		return_to_pool(server);
	else
		server_close_for(server, REASON_IDLE_SERVER_GOT_DIRTY);
	lookup->kind->finish(lookup);
}

/*
 * Returns true if the look-up may succeed on another server: a time limit of a client has ended
 * it; or this one sent no answer to it, and either is an older connection that has broken, or
 * has failed in a query before the look-up.
 */
static bool may_retry(const struct lookup *lookup, const struct server_link *server,
	const struct failure *why)
{
	if (why->reason == REASON_SETTING_TIMED_OUT)
		return true;
	if (lookup->answered)
		return false;
	if (reason_breaks_connection(why->reason))
		return server->touched || server->link.connect_time < lookup->since;
	return why->reason == lookup->kind->broken && lookup->preludes > 0;
}

void lookup_server_closed(struct server_link *server, const struct failure *why)
{
	struct lookup *lookup = server->lookup;
	struct failure hidden;

	if (!lookup)
		return;
	if (may_retry(lookup, server, why)) {
		lookup_requeue(lookup);
		tell_moved(lookup);
		return;
	}
	lookup_end(lookup);
	if (lookup->kind->failure == REASON_COUNT) {
		fail(lookup, why);
		return;
	}
	hidden = failure_of(lookup->kind->failure);
	fail(lookup, &hidden);
}

void lookup_leave(struct asker *asker)
{
	struct server_link *server = lookup_remove_asker(asker);

	if (server)
		server_close_for(server, REASON_CLIENT_DISCONNECT_NOT_READY);
}

void lookup_refuse(struct pool *pool, const struct failure *why)
{
	struct lookup *lookup;

	while ((lookup = TAILQ_FIRST(&pool->lookups)) != NULL) {
		lookup_end(lookup);
		fail(lookup, why);
	}
}
