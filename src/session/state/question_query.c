/* SPDX-License-Identifier: ISC */
#include "session/state/question_query.h"

#include <string.h>

#include "model/registry.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/sql.h"
#include "wire/writer.h"

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

bool question_query_write(
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

session_topics question_query_topic(char letter)
{
	for (size_t i = 0; i < PARTS; i++) {
		if (parts[i].letter == letter)
			return (session_topics)parts[i].topic;
	}
	return 0;
}
