/* SPDX-License-Identifier: ISC */
#include "session/state/refusal.h"

#include "model/client_statements.h"
#include "model/registry.h"
#include "session/link/client_lexis.h"
#include "session/relay/query_clocks.h"
#include "wire/message.h"
#include "wire/session_command.h"
#include "wire/sql_scanner.h"
#include "wire/suspicion.h"
#include "wire/writer.h"

/* What the client must not leave in a session. Channels that are shared follow it. */
static session_topics refused_topics(const struct relay_run *run)
{
	const bool all = run->server->link.pool->session_state == SESSION_STATE_ERROR;

	switch (link_registry(run->from)->process->settings->listen) {
	case LISTEN_SHARED:
		return all ? 0xff & ~TOPIC_CHANNELS : 0;
	case LISTEN_PIN:
		return all ? 0xff : 0;
	case LISTEN_ERROR:
		return all ? 0xff : TOPIC_CHANNELS;
	}
	return 0;
}

bool refusal_may_concern(const struct relay_run *run, const char *text, size_t length)
{
	struct sql_scanner scanner;

	if (run->server->link.pool->session_state != SESSION_STATE_ERROR)
		return false;
	sql_scanner_init(&scanner, text, length, false);
	return sql_scanner_match(&scanner, "prepare");
}

/* Is it this command by itself, as a Query? Then it follows its client: statements/sql_statements. */
static bool follows(
	const struct relay_run *run, const char *text, size_t length, enum session_verb verb)
{
	struct session_command command;
	enum session_verb read;

	if (run->frame.type != PQ_QUERY ||
		link_registry(run->from)->process->settings->max_prepared_statements == 0)
		return false;
	session_command_init(&command);
	read = session_command_read(text, length, client_lexis(run->client), &command);
	session_command_free(&command);
	return read == verb;
}

/* Does one of the statements begin with EXECUTE? */
static bool executes(const struct relay_run *run, const char *text, size_t length)
{
	enum sql_token token = SQL_SYMBOL;
	struct buffer symbol = {0};
	struct sql_scanner scanner;
	bool begins = true, found = false;

	sql_scanner_init(&scanner, text, length, client_lexis(run->client).escapes);
	while (!found && token != SQL_END && token != SQL_UNKNOWN) {
		found = begins && sql_scanner_match(&scanner, "execute");
		token = sql_scanner_next(&scanner, &symbol);
		begins = token == SQL_SYMBOL && symbol.data[0] == ';';
	}
	buffer_free(&symbol);
	return found;
}

/*
 * Does a Query with several statements execute one that SQL has prepared? It would become one of the
 * server, under the client's name, and be lost with it.
 */
static bool executes_beside(const struct relay_run *run, const char *text, size_t length)
{
	const struct client_statements *own = run->client->statements;

	return own && own->by_sql && run->frame.type == PQ_QUERY &&
		executes(run, text, length) && !follows(run, text, length, SESSION_EXECUTE);
}

bool refusal_concerns(const struct relay_run *run, const char *text, size_t length)
{
	const session_topics refused = refused_topics(run);
	session_topics staying;

	if (refused == 0)
		return false;
	staying = suspicion_of_staying(text, length) & refused;
	if ((refused & TOPIC_STATEMENTS) && executes_beside(run, text, length))
		return true;
	return staying == TOPIC_STATEMENTS ? !follows(run, text, length, SESSION_PREPARE)
					   : staying != 0;
}

/* A syntax error, in a failed transaction too; the log of the server tells why. */
enum verdict refusal_send(struct relay_run *run)
{
	static const char failing[] = "refused by session_state";
	struct server_link *server = run->server;
	struct buffer message;

	if (!requests_add(
		    &server->requests, run->frame.type, REQUEST_FORWARD | REQUEST_BARRED)) {
		run->client->ring_full = true;
		return RELAY_HOLD;
	}
	buffer_init(&message);
	if (run->frame.type == PQ_QUERY) {
		writer_query(&message, failing);
	} else {
		const size_t mark = writer_begin(&message, PQ_PARSE);

		writer_string(&message, "");
		writer_string(&message, failing);
		writer_int16(&message, 0);
		writer_end(&message, mark);
	}
	if (message.failed) {
		buffer_free(&message);
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	}
	relay_insert(run, message.data, message.length);
	buffer_free(&message);
	server->transaction_status = 0;
	query_clocks_start(run->client);
	return RELAY_DROP;
}

enum verdict refusal_answer(struct relay_run *run)
{
	static const char names[] = "SERROR\0VERROR\0C0A000\0M";
	const bool all = run->server->link.pool->session_state == SESSION_STATE_ERROR;
	const struct failure why =
		failure_of(all ? REASON_SESSION_STATE_REFUSED : REASON_LISTEN_REFUSED);
	struct buffer message;
	size_t mark;

	buffer_init(&message);
	mark = writer_begin(&message, PQ_ERROR_RESPONSE);
	writer_bytes(&message, names, sizeof(names) - 1);
	writer_string(&message, why.text);
	if (all)
		writer_string(&message,
			"HTemporary objects, session-level advisory locks, cursors WITH HOLD, "
			"PREPARE and EXECUTE otherwise than as a simple query by itself, LOAD and "
			"the like need pool_mode = session or session_state = follow.");
	writer_byte(&message, 0);
	writer_end(&message, mark);
	if (!message.failed)
		relay_insert(run, message.data, message.length);
	buffer_free(&message);
	return RELAY_DROP;
}
