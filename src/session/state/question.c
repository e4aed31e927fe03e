/* SPDX-License-Identifier: ISC */
#include "session/state/question.h"

#include <string.h>

#include "model/registry.h"
#include "model/state/custom_names.h"
#include "session/link/close.h"
#include "session/notify/handoff.h"
#include "session/relay/pair.h"
#include "session/state/pins.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/sql.h"
#include "wire/writer.h"

/* How often a question may be ended by time limits and asked again. */
enum { QUESTIONS_MAX = 20 };

/* --- the query ---------------------------------------------------------------------------- */

/*
 * A row that is too long is not read whole. So a long value is returned in pieces: rows with the
 * letter `s` go on with the value of the row before. A character has at most 4 bytes.
 */
#define PIECES_BEGIN                                                                           \
	"SELECT pg_catalog.substr('Ss', LEAST(piece, 1) OPERATOR(pg_catalog.+) 1, 1), name,"   \
	" pg_catalog.substr(value,"                                                            \
	" piece OPERATOR(pg_catalog.*) 15000 OPERATOR(pg_catalog.+) 1, 15000) FROM ("
#define PIECES_END                                                                             \
	") AS given (name, value), pg_catalog.generate_series(0,"                              \
	" pg_catalog.length(value) OPERATOR(pg_catalog./) 15000) AS piece"

/*
 * Each part returns a letter, a name and a value. All names are qualified, so that neither the
 * search_path nor objects of the client can stand in for those of the system.
 */
static const struct part {
	enum session_topic topic;
	char letter;
	const char *sql;
} parts[] = {
	/* The role and custom settings are not in pg_settings. */
	{TOPIC_SETTINGS, 'S',
		PIECES_BEGIN
		"SELECT pg_catalog.lower(name), setting FROM pg_catalog.pg_settings"
		" WHERE source OPERATOR(pg_catalog.=) 'session'" PIECES_END
		" UNION ALL SELECT 'S', 'role', CASE WHEN pg_catalog.current_setting('role')"
		" OPERATOR(pg_catalog.<>) 'none' THEN pg_catalog.current_setting('role') END"},
	/* 2615 is pg_namespace: every object in a schema depends on that. */
	{TOPIC_TEMPORARY, 'T',
		"(SELECT 'T', pg_catalog.pg_describe_object(classid, objid, objsubid), ''"
		" FROM pg_catalog.pg_depend"
		" WHERE refclassid OPERATOR(pg_catalog.=) '2615'::pg_catalog.oid"
		" AND refobjid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema() LIMIT 1)"},
	{TOPIC_LOCKS, 'L',
		"(SELECT 'L', pg_catalog.concat('advisory lock ',"
		" CASE WHEN objsubid OPERATOR(pg_catalog.=) 2::pg_catalog.int2"
		" OR classid OPERATOR(pg_catalog.<>) '0'::pg_catalog.oid"
		" THEN pg_catalog.concat(classid, ', ') END, objid), ''"
		" FROM pg_catalog.pg_locks"
		" WHERE locktype OPERATOR(pg_catalog.=) 'advisory'"
		" AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() LIMIT 1)"},
	{TOPIC_CURSORS, 'C',
		"(SELECT 'C', pg_catalog.concat('cursor ', name), ''"
		" FROM pg_catalog.pg_cursors WHERE is_holdable LIMIT 1)"},
	/* Not those that we have prepared by SQL: they follow their clients. */
	{TOPIC_STATEMENTS, 'P',
		"(SELECT 'P', pg_catalog.concat('prepared statement ', name), ''"
		" FROM pg_catalog.pg_prepared_statements WHERE from_sql AND name"
		" OPERATOR(pg_catalog.!~) '^(PGBOUNCER_[0-9]+|PGUSHER_[0-9a-f]+_)$' LIMIT 1)"},
	{TOPIC_CHANNELS, 'N',
		"SELECT 'N', channel, '' FROM pg_catalog.pg_listening_channels() AS channel"},
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static void write_custom_name(struct buffer *sql, const char **join, const char *name)
{
	buffer_printf(sql, "%s", *join);
	sql_append_literal(sql, name);
	buffer_printf(sql, ", pg_catalog.current_setting(");
	sql_append_literal(sql, name);
	buffer_printf(sql, ",true))");
	*join = ", (";
}

/* Those that the client may have named, and those that functions of the database set. */
static void write_custom_names(const struct client_link *client, struct buffer *sql)
{
	const struct buffer *others = &client->link.pool->database->functions.settings;
	const char *join = " UNION ALL " PIECES_BEGIN "VALUES (", *name;

	for (name = client->custom_names; name && *name; name += strlen(name) + 1)
		write_custom_name(sql, &join, name);
	for (size_t at = 0; at < others->length; at += strlen(name) + 1) {
		name = (const char *)others->data + at;
		write_custom_name(sql, &join, name);
	}
	if (join[0] == ',')
		buffer_printf(sql, PIECES_END);
}

static void write_parts(
	const struct client_link *client, session_topics topics, struct buffer *sql)
{
	const char *join = "";

	for (size_t i = 0; i < PARTS; i++) {
		if (!(topics & parts[i].topic))
			continue;
		buffer_printf(sql, "%s%s", join, parts[i].sql);
		join = " UNION ALL ";
		if (parts[i].topic == TOPIC_SETTINGS)
			write_custom_names(client, sql);
	}
	if (join[0] == '\0')
		buffer_printf(sql, "SELECT 'S', 'role', NULL LIMIT 0");
}

/* --- time limits -------------------------------------------------------------------------- */

static const char *const limits[] = {"statement_timeout", "lock_timeout",
	"idle_in_transaction_session_timeout", "transaction_timeout"};

enum {
	LIMITS = sizeof(limits) / sizeof(limits[0]),
	BETWEEN_QUERIES = 2, /* it matters if there is a transaction around the question */
	/* Old servers do not know transaction_timeout, and a session does not survive it. */
	LIMITS_TO_TRY = LIMITS - 1,
};

static bool has_followed(const struct link *link, const char *name)
{
	struct parameter_values values;
	bool found;

	parameter_values_read(link->parameters, &values);
	parameter_values_place(&values, name, &found);
	return found;
}

/* May the session have this limit of its client? */
static bool is_to_be_lifted(
	const struct server_link *server, const struct client_link *client, unsigned limit)
{
	const struct buffer *changes = &server->changes;

	if (server->timed_out > 0 && limit < LIMITS_TO_TRY)
		return true;
	return has_followed(&server->link, limits[limit]) ||
		has_followed(&client->link, limits[limit]) ||
		(changes->length > 0 &&
			memmem(changes->data, changes->length, limits[limit],
				strlen(limits[limit])) != NULL);
}

static bool is_limited(const struct server_link *server, const struct client_link *client)
{
	for (unsigned i = 0; i < LIMITS; i++) {
		if (i != BETWEEN_QUERIES && is_to_be_lifted(server, client, i))
			return true;
	}
	return false;
}

/* Begin a transaction in which the limits are lifted. */
static void write_lift(
	const struct server_link *server, const struct client_link *client, struct buffer *sql)
{
	const char *join = "BEGIN ISOLATION LEVEL READ COMMITTED;SELECT 'V', ";

	for (unsigned i = 0; i < LIMITS; i++) {
		if (!is_to_be_lifted(server, client, i))
			continue;
		buffer_printf(sql,
			"%s'%s', pg_catalog.current_setting('%s'),"
			" pg_catalog.set_config('%s', '0', true)",
			join, limits[i], limits[i], limits[i]);
		join = " UNION ALL SELECT 'V', ";
	}
}

/* --- sending it --------------------------------------------------------------------------- */

static bool add_query(struct server_link *server, struct buffer *sql, struct buffer *out)
{
	const bool good =
		!sql->failed && requests_add(&server->requests, PQ_QUERY, REQUEST_SWALLOW);

	writer_query_text(out, sql->data, sql->length);
	buffer_clear(sql);
	return good && !out->failed;
}

/* Write all of it. Returns false when out of memory. */
static bool write_question(
	struct server_link *server, const struct client_link *client, struct buffer *out)
{
	const session_topics topics = (session_topics)server->suspected;
	struct buffer sql = {0};
	const bool lifts = is_limited(server, client);
	bool good = true;

	if (server->timed_out > 0) {
		buffer_printf(&sql, "ROLLBACK");
		good = add_query(server, &sql, out);
	}
	if (lifts) {
		write_lift(server, client, &sql);
		good = add_query(server, &sql, out) && good;
	}
	write_parts(client, topics, &sql);
	buffer_printf(&sql, "%s%s", lifts ? "; COMMIT" : "",
		topics & TOPIC_UNREAD ? "; RESET ALL" : "");
	good = add_query(server, &sql, out) && good;
	buffer_free(&sql);
	return good;
}

/* Returns false if the server was closed, because nothing could be sent to it. */
static bool ask(struct server_link *server, const struct client_link *client)
{
	struct buffer message = {0};
	const bool good = write_question(server, client, &message);

	buffer_clear(&server->kept);
	server->times_out = server->too_large = false;
	server->transaction_status = 0;
	server->unnamed = 0;
	if (!good || !link_send(&server->link, &message)) {
		buffer_free(&message);
		server_close_for(
			server, good ? REASON_SERVER_CONNECTION_CLOSED : REASON_NO_MEMORY);
		return false;
	}
	server_set_task(server, SERVER_TASK_QUESTION);
	return true;
}

void question_begin(struct server_link *server, struct client_link *client)
{
	if (server->suspected & TOPIC_UNREAD)
		server->suspected |= TOPIC_SETTINGS;
	/* When nothing else pins it any more, its channels are handed over. */
	server->suspected |= server->pins & TOPIC_CHANNELS;
	server_enter(server, SERVER_ASKING);
	server->link.request_time = loop_now(server->link.stream.loop);
	server->asked_for = client;
	server->timed_out = 0;
	client->asking = server;
	client_set_step(client, CLIENT_STEP_ASKED);
	if (!ask(server, client))
		return;
	if (server->suspected & TOPIC_SETTINGS) {
		server->changes_known = false;
		buffer_free(&server->changes);
	}
}

/* --- settings ----------------------------------------------------------------------------- */

/* The rows of the answer: a letter, a name, a value, each with a NUL. */
struct row {
	char letter;
	const char *name, *value;
};

static bool next_row(const struct buffer *answer, size_t *at, struct row *row)
{
	if (*at >= answer->length)
		return false;
	row->letter = (char)answer->data[*at];
	row->name = (const char *)answer->data + *at + 2;
	row->value = row->name + strlen(row->name) + 1;
	*at = (size_t)((const uint8_t *)row->value - answer->data) + strlen(row->value) + 1;
	return true;
}

/* The limits that were lifted have no limit among the settings: these are their values. */
static void read_limits(const struct server_link *server, struct parameter_values *values)
{
	struct row row;
	size_t at = 0;

	while (next_row(&server->kept, &at, &row)) {
		bool present;
		unsigned place;

		if (row.letter != 'V')
			continue;
		place = parameter_values_place(values, row.name, &present);
		if (present)
			values->followed[place].value = row.value;
	}
}

/* Replace the followed values by those of the answer: all that servers do not report. */
static bool read_settings(const struct server_link *server, struct parameter_values *values)
{
	const struct parameter_table *table = link_registry(&server->link)->parameters;
	struct row row;
	size_t at = 0;

	values->count = 0;
	while (next_row(&server->kept, &at, &row)) {
		const int index = row.letter == 'S' ? parameter_index(table, row.name) : -1;

		/* PostgreSQL 18 lists parameters of a transaction as those of the session. */
		if (row.letter != 'S' || (index >= 0 && values->tracked[index]) ||
			!parameter_may_follow(row.name))
			continue;
		if (!parameter_values_follow(values, row.name, row.value))
			return false;
	}
	read_limits(server, values);
	return true;
}

/* What the client asked for at its start and has RESET since has that value again. */
static bool add_asked(const struct client_link *client, struct parameter_values *values)
{
	struct parameter_values asked;

	if (!client->asked)
		return true;
	parameter_values_read(client->asked, &asked);
	for (unsigned i = 0; i < asked.count; i++) {
		bool present;

		parameter_values_place(values, asked.followed[i].name, &present);
		if (!present &&
			!parameter_values_follow(
				values, asked.followed[i].name, asked.followed[i].value))
			return false;
	}
	return true;
}

/*
 * A custom setting is not in pg_settings, so that RESET leaves an empty value, which does not tell
 * whether the client has SET it.
 */
static void drop_empty_asked(const struct client_link *client, struct parameter_values *values)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < values->count; i++) {
		const struct followed each = values->followed[i];

		if (each.value[0] != '\0' || !strchr(each.name, '.') || !client->asked ||
			!parameters_get_followed(client->asked, each.name))
			values->followed[kept++] = each;
	}
	values->count = kept;
}

/* All were reset behind the answer, but for the identity, which RESET ALL does not change. */
static void drop_settings(struct parameter_values *values)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < values->count; i++) {
		for (unsigned k = 0; k < PARAMETER_IDENTITIES; k++) {
			if (strcmp(values->followed[i].name, parameter_identity[k]) == 0)
				values->followed[kept++] = values->followed[i];
		}
	}
	values->count = kept;
}

/* Custom settings that functions have set are the client's now: each later answer must have them. */
static void note_custom_names(const struct server_link *server, struct client_link *client)
{
	struct row row;
	size_t at = 0;

	while (next_row(&server->kept, &at, &row)) {
		if (row.letter == 'S' && row.value[0] != '\0' && strchr(row.name, '.'))
			custom_names_note(client, row.name, strlen(row.name));
	}
}

static bool take_settings(struct server_link *server, struct client_link *client)
{
	struct parameter_table *table = link_registry(&server->link)->parameters;
	struct parameter_values values, wanted;

	parameter_values_read(server->link.parameters, &values);
	if (!read_settings(server, &values))
		return false;
	if (client) {
		note_custom_names(server, client);
		parameter_values_read(client->link.parameters, &wanted);
		memcpy(wanted.followed, values.followed,
			values.count * sizeof(values.followed[0]));
		wanted.count = values.count;
		if (server->has_reset)
			drop_empty_asked(client, &wanted);
		if (!add_asked(client, &wanted) ||
			!link_take_parameters(
				&client->link, parameter_values_intern(table, &wanted)))
			return false;
	}
	if (server->suspected & TOPIC_UNREAD)
		drop_settings(&values);
	server->altered = false;
	return link_take_parameters(&server->link, parameter_values_intern(table, &values));
}

/* --- what pins ---------------------------------------------------------------------------- */

/* Returns the topics that the answer has, and the first name. */
static session_topics found_topics(const struct server_link *server, const char **name)
{
	session_topics found = 0;
	struct row row;
	size_t at = 0;

	*name = NULL;
	while (next_row(&server->kept, &at, &row)) {
		for (size_t i = 0; i < PARTS; i++) {
			if (parts[i].letter != row.letter || row.letter == 'S')
				continue;
			found |= (session_topics)parts[i].topic;
			*name = *name ? *name : row.name;
		}
	}
	return found;
}

/* --- channels ----------------------------------------------------------------------------- */

/* If it only listens, the listening server of the pool does that in its place. */
static bool hand_over(
	struct server_link *server, struct client_link *client, session_topics found)
{
	const struct settings *settings = link_registry(&server->link)->process->settings;
	struct buffer names = {0};
	struct row row;
	size_t at = 0;
	bool handed;

	if (found != TOPIC_CHANNELS || settings->listen != LISTEN_SHARED)
		return false;
	while (next_row(&server->kept, &at, &row)) {
		if (row.letter == 'N')
			buffer_append(&names, row.name, strlen(row.name) + 1);
	}
	handed = names.length > 0 && !names.failed &&
		handoff_begin(server, client, (const char *)names.data, names.length);
	buffer_free(&names);
	if (handed)
		pins_clear(server);
	return handed;
}

/* What could not be refused when it was sent: inside a transaction, by the extended protocol. */
static bool is_refused(
	const struct server_link *server, struct client_link *client, session_topics found)
{
	const struct settings *settings = link_registry(&server->link)->process->settings;

	if (!(found & TOPIC_CHANNELS) || settings->listen != LISTEN_ERROR)
		return false;
	pins_warn_of_channels(client);
	return true;
}

/* --- the answer --------------------------------------------------------------------------- */

static struct client_link *release(struct server_link *server)
{
	struct client_link *client = server->asked_for;

	server->asked_for = NULL;
	if (!client)
		return NULL;
	client->asking = NULL;
	client_set_step(client, CLIENT_STEP_NONE);
	return client;
}

static enum question_result take_answer(struct server_link *server, struct client_link *client)
{
	const session_topics asked = (session_topics)server->suspected;
	session_topics found;
	const char *name;

	if (server->transaction_status == READY_IDLE && server->too_large)
		return QUESTION_TOO_LARGE;
	if (server->transaction_status != READY_IDLE || server->kept.failed)
		return QUESTION_FAILED;
	if ((asked & TOPIC_SETTINGS) && !take_settings(server, client))
		return QUESTION_TOO_LARGE;
	found = found_topics(server, &name) | (asked & ~TOPICS_ALL) |
		((session_topics)server->pins & ~asked);
	server->suspected = 0;
	server->has_reset = false;
	if (client && !is_refused(server, client, found)) {
		if (hand_over(server, client, found))
			return QUESTION_HANDED;
		if (pins_set(server, client, found, name))
			return found ? QUESTION_PINS : QUESTION_FREE;
		if (server->link.pool->session_state == SESSION_STATE_WARN)
			return QUESTION_FREE;
	}
	if (!found)
		return QUESTION_FREE;
	/* A reset does not end it. */
	server->suspected = found & TOPIC_LIBRARY;
	return QUESTION_RESET;
}

/* A time limit may be over before the first query has lifted it. */
static bool may_ask_again(const struct server_link *server)
{
	return server->asked_for && server->kept.failed && server->times_out &&
		server->timed_out < QUESTIONS_MAX;
}

enum question_result question_done(struct server_link *server)
{
	struct client_link *client = server->asked_for;
	enum question_result result;

	if (may_ask_again(server)) {
		server->timed_out++;
		buffer_free(&server->kept);
		ask(server, client);
		return QUESTION_AGAIN;
	}
	result = take_answer(server, client);
	buffer_free(&server->kept);
	if (result != QUESTION_FAILED)
		release(server);
	if (result == QUESTION_PINS)
		pair_again(client, server);
	return result;
}

struct client_link *question_server_closed(struct server_link *server)
{
	return release(server);
}
