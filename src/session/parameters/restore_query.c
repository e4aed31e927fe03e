/* SPDX-License-Identifier: ISC */
#include "session/parameters/restore_query.h"

#include <string.h>

#include "base/text.h"
#include "model/registry.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/writer.h"

enum {
	/* Name, value, and the value after RESET of a parameter that is not in pg_settings. */
	TEXTS_EACH = 3,
	PARAMETERS_TO_RESTORE_MAX = PARAMETERS_MAX + PARAMETERS_FOLLOWED_MAX,
};

/* One startup parameter that may have to be set again. */
struct restored {
	const char *name, *value;
	const char *after_reset; /* its value after RESET, if it is not in pg_settings */
	char lower[PARAMETER_NAME_SIZE];
};

static const char *value_after_reset(const struct server_link *server, const char *name)
{
	if (strcmp(name, "role") == 0)
		return "none";
	if (strcmp(name, "session_authorization") == 0)
		return server->link.pool->user->name;
	return "";
}

static void add_parameter(const struct server_link *server, struct restored *parameter,
	const char *name, const char *value)
{
	parameter_name_lower(name, parameter->lower);
	parameter->name = parameter->lower;
	parameter->value = value;
	parameter->after_reset = value_after_reset(server, parameter->lower);
}

/* List the client's startup parameters in the order in which they can be set. */
static unsigned list_parameters(const struct server_link *server,
	struct parameter_values *asked, struct restored restored[PARAMETERS_TO_RESTORE_MAX])
{
	const struct parameter_table *table = link_registry(&server->link)->parameters;
	unsigned count = 0, i;

	parameter_values_put_identity_last(table, asked);
	for (i = 0; i < parameter_count(table); i++) {
		if (asked->tracked[i])
			add_parameter(server, &restored[count++], parameter_name(table, i),
				asked->tracked[i]);
	}
	for (i = 0; i < asked->count; i++)
		add_parameter(server, &restored[count++], asked->followed[i].name,
			asked->followed[i].value);
	return count;
}

/* Name of our statement and portal: the client's unnamed ones must not change. */
static const char own_name[] = "PGUSHER_RESTORE";

static void write_close(struct buffer *out, char kind)
{
	const size_t mark = writer_begin(out, PQ_CLOSE);

	writer_byte(out, (uint8_t)kind);
	writer_string(out, own_name);
	writer_end(out, mark);
}

static void write_execute(struct buffer *out)
{
	const size_t mark = writer_begin(out, PQ_EXECUTE);

	writer_string(out, own_name);
	writer_int32(out, 0);
	writer_end(out, mark);
}

/*
 * Write the messages for one SELECT. They begin with Close, since an error may have left the
 * statement of an earlier attempt.
 */
static void write_statement(struct buffer *out, const struct buffer *sql,
	const struct restored *restored, unsigned count)
{
	size_t mark;

	write_close(out, 'S');
	mark = writer_begin(out, PQ_PARSE);
	writer_string(out, own_name);
	writer_bytes(out, sql->data, sql->length);
	writer_byte(out, 0);
	writer_int16(out, 0);
	writer_end(out, mark);
	mark = writer_begin(out, PQ_BIND);
	writer_string(out, own_name);
	writer_string(out, own_name);
	writer_int16(out, 0);
	writer_int16(out, (uint16_t)(TEXTS_EACH * count));
	for (unsigned i = 0; i < count; i++) {
		const char *texts[TEXTS_EACH] = {
			restored[i].name, restored[i].value, restored[i].after_reset};

		for (unsigned each = 0; each < TEXTS_EACH; each++) {
			writer_int32(out, (uint32_t)strlen(texts[each]));
			writer_bytes(out, texts[each], strlen(texts[each]));
		}
	}
	writer_int16(out, 0);
	writer_end(out, mark);
	write_execute(out);
	write_close(out, 'P');
	write_close(out, 'S');
	out->failed = out->failed || sql->failed;
}

/*
 * Two lists from pg_settings: parameters that were SET in the session, and all parameters.
 * Custom parameters and roles are not in pg_settings.
 */
#define SETTINGS                                                                               \
	" FROM (SELECT"                                                                        \
	" pg_catalog.array_agg(pg_catalog.lower(name))"                                        \
	" FILTER (WHERE source OPERATOR(pg_catalog.=) 'session'),"                             \
	" pg_catalog.array_agg(pg_catalog.lower(name))"                                        \
	" FROM pg_catalog.pg_settings) AS known (changed, listed)"

#define IS_CHANGED(name) "COALESCE(" name " OPERATOR(pg_catalog.=) ANY (known.changed), false)"

/*
 * client_encoding must be in force for the values that follow, but stays only if it was reset.
 */
static void write_encoding(struct buffer *out, const char *encoding, bool asked)
{
	struct restored parameter = {"client_encoding", encoding, asked ? "" : "other", ""};
	struct buffer sql = {0};

	buffer_printf(&sql,
		"SELECT pg_catalog.set_config($1,$2," IS_CHANGED(
			"$1") " OR $3 OPERATOR(pg_catalog.<>) '')" SETTINGS);
	write_statement(out, &sql, &parameter, 1);
	buffer_free(&sql);
}

static void write_parameters(
	struct buffer *out, const struct restored *restored, unsigned count)
{
	struct buffer sql = {0};

	buffer_printf(&sql, "SELECT ");
	for (unsigned i = 0; i < count; i++) {
		const unsigned first = TEXTS_EACH * i + 1;

		buffer_printf(&sql,
			"%sCASE WHEN NOT COALESCE($%u OPERATOR(pg_catalog.=)"
			" ANY (known.changed), false) AND ($%u OPERATOR(pg_catalog.=)"
			" ANY (known.listed) OR COALESCE(pg_catalog.current_setting($%u,true),"
			"'') OPERATOR(pg_catalog.=) $%u)"
			" THEN pg_catalog.set_config($%u,$%u,false) IS NULL END",
			i > 0 ? "," : "", first, first, first, first + 2, first, first + 1);
	}
	buffer_printf(&sql, SETTINGS);
	write_statement(out, &sql, restored, count);
	buffer_free(&sql);
}

/*
 * The client has set time limits in its session: lift them up to the Sync. Not those that may
 * have to be restored, since a limit that is set here counts as SET in the session; and not
 * transaction_timeout, which old servers do not know.
 */
static void write_lift(struct buffer *out, const struct restored *restored, unsigned count)
{
	static const char *const limits[] = {"statement_timeout", "lock_timeout"};
	struct buffer sql = {0};

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		bool is_asked = false;

		for (unsigned each = 0; each < count; each++)
			is_asked = is_asked || strcmp(restored[each].name, limits[i]) == 0;
		if (!is_asked)
			buffer_printf(&sql, "%spg_catalog.set_config('%s','0',true)",
				sql.length > 0 ? "," : "SELECT ", limits[i]);
	}
	if (sql.length > 0)
		write_statement(out, &sql, NULL, 0);
	buffer_free(&sql);
}

static bool is_ascii(const struct restored *restored, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!text_is_ascii(restored[i].value, strlen(restored[i].value)))
			return false;
	}
	return true;
}

/* The values are encoded in the client_encoding of the startup message: set that first. */
static void set_encoding_first(
	const struct pool *pool, struct parameter_values *asked, struct buffer *out)
{
	const int index = parameter_index(pool->registry->parameters, "client_encoding");
	const char **wanted = &asked->tracked[index];
	const char *usual = parameters_get(pool->welcome, (unsigned)index);

	if (*wanted || usual)
		write_encoding(out, *wanted ? *wanted : usual, *wanted != NULL);
	*wanted = NULL;
}

void restore_write_query(const struct server_link *server, struct buffer *out)
{
	const struct client_link *client = (const struct client_link *)server->link.peer;
	const struct pool *pool = server->link.pool;
	struct parameter_values asked;
	struct restored restored[PARAMETERS_TO_RESTORE_MAX];
	unsigned count;

	parameter_values_read(client->asked, &asked);
	count = list_parameters(server, &asked, restored);
	write_lift(out, restored, count);
	if (!is_ascii(restored, count) && pool->welcome) {
		parameter_values_read(client->asked, &asked);
		set_encoding_first(pool, &asked, out);
		count = list_parameters(server, &asked, restored);
	}
	if (count > 0)
		write_parameters(out, restored, count);
	writer_message(out, PQ_SYNC, NULL, 0);
}
