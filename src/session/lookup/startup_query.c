/* SPDX-License-Identifier: ISC */
#include "session/lookup/startup_query.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "model/registry.h"
#include "session/lookup/lookup_server.h"
#include "session/parameters/followed.h"
#include "session/parameters/welcome_message.h"
#include "session/relay/own_query.h"
#include "wire/parameter_difference.h"
#include "wire/parameter_values.h"
#include "wire/row.h"
#include "wire/writer.h"

enum {
	/* Values that are checked by one statement. */
	VALUES_MAX = PARAMETERS_MAX + PARAMETERS_FOLLOWED_MAX,
	/* Longest value in an answer; of a longer value the client's own spelling is kept. */
	SPELLING_MAX = 128,
};

/* One value to be checked. */
struct checked_value {
	const char *name, *value;
	int index; /* in the parameter table; -1: a followed parameter */
};

/* --- the values --------------------------------------------------------------------------- */

const void *startup_query_ref(const void *subject)
{
	return parameters_ref((struct parameters *)subject);
}

void startup_query_unref(const void *subject)
{
	parameters_unref((struct parameters *)subject);
}

static unsigned encoding_index(const struct parameter_table *table)
{
	return (unsigned)parameter_index(table, "client_encoding");
}

/*
 * List the values of the set except client_encoding, in the order in which they can be set.
 * Returns their number.
 */
static unsigned list_values(const struct parameters *set, struct checked_value list[VALUES_MAX])
{
	const struct parameter_table *table = parameters_table(set);
	struct parameter_values values;
	unsigned count = 0, i;

	parameter_values_read(set, &values);
	parameter_values_put_identity_last(table, &values);
	for (i = 0; i < parameter_count(table); i++) {
		if (values.tracked[i] && i != encoding_index(table))
			list[count++] = (struct checked_value){
				parameter_name(table, i), values.tracked[i], (int)i};
	}
	for (i = 0; i < values.count; i++)
		list[count++] = (struct checked_value){
			values.followed[i].name, values.followed[i].value, -1};
	return count;
}

/*
 * Returns the client_encoding to set first, so that the server reads the values in the encoding
 * of the client. Returns NULL if the server has this encoding already and it need not be
 * checked.
 */
static const char *encoding_to_set(
	const struct lookup *lookup, const struct server_link *server)
{
	const struct parameters *set = startup_query_values(lookup),
				*welcome = lookup->pool->welcome;
	const unsigned index = encoding_index(parameters_table(set));
	const char *asked = parameters_get(set, index);
	const char *initial = welcome ? parameters_get(welcome, index) : NULL;
	const char *present = parameters_get(server->link.parameters, index);

	if (asked || !initial || (present && strcasecmp(initial, present) == 0))
		return asked;
	return initial;
}

/* --- to the server ------------------------------------------------------------------------ */

/*
 * Returns the parameters that the server must have before the check: no followed parameters of
 * other clients, and the session_authorization and the DateStyle that it began with (unknown here),
 * since a DateStyle without an order of day and month keeps the present order. Counted; NULL when
 * out of memory.
 */
static struct parameters *initial_parameters(const struct server_link *server)
{
	static const char *const names[] = {"DateStyle", "session_authorization"};
	struct parameter_table *table = link_registry(&server->link)->parameters;
	struct parameter_values values;

	parameter_values_read(server->link.parameters, &values);
	values.count = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		values.tracked[parameter_index(table, names[i])] = NULL;
	return parameter_values_intern(table, &values);
}

/* Undo what other clients have set: a role or a statement_timeout, for example. */
unsigned startup_query_write_preludes(struct server_link *server, struct buffer *out)
{
	const struct session_start start = {
		own_query_connect_query(server), server->link.pool->welcome};
	struct parameters *base = initial_parameters(server);
	struct buffer sql = {0};
	int count = -1;

	if (base)
		count = parameters_difference(base, server->link.parameters, &start, &sql);
	parameters_unref(base);
	if (count > 0)
		writer_query_text(out, sql.data, sql.length);
	else if (count < 0)
		out->failed = true;
	buffer_free(&sql);
	return count > 0;
}

bool startup_query_prelude_done(struct server_link *server)
{
	return followed_forget(server);
}

static void write_encoding(struct buffer *out, const char *encoding)
{
	lookup_write_statement(
		out, "SELECT pg_catalog.set_config('client_encoding',$1,true)", &encoding, 1);
}

/* left() limits the answer: a value may be as long as a message. */
static void write_values(struct buffer *out, const struct checked_value *list, unsigned count)
{
	const char *texts[2 * VALUES_MAX];
	struct buffer sql = {0};

	buffer_printf(&sql, "SELECT ");
	for (unsigned i = 0; i < count; i++) {
		texts[2 * i] = list[i].name;
		texts[2 * i + 1] = list[i].value;
		buffer_printf(&sql, "%spg_catalog.left(pg_catalog.set_config($%u,$%u,true),%d)",
			i > 0 ? "," : "", 2 * i + 1, 2 * i + 2, SPELLING_MAX);
	}
	buffer_append(&sql, "", 1);
	if (sql.failed)
		out->failed = true;
	else
		lookup_write_statement(out, (const char *)sql.data, texts, 2 * count);
	buffer_free(&sql);
}

/*
 * Two statements in one transaction: the first sets the encoding in which the second is read.
 */
unsigned startup_query_write(
	const struct lookup *lookup, const struct server_link *server, struct buffer *out)
{
	const char *encoding = encoding_to_set(lookup, server);
	struct checked_value list[VALUES_MAX];
	const unsigned count = list_values(startup_query_values(lookup), list);

	if (encoding)
		write_encoding(out, encoding);
	if (count > 0)
		write_values(out, list, count);
	return (encoding != NULL) + (count > 0);
}

/* --- from the server ---------------------------------------------------------------------- */

/*
 * Returns true for the statement that sets the encoding, false for the one with all other
 * values.
 */
static bool is_encoding(const struct lookup *lookup, unsigned statement, unsigned count)
{
	return statement == 0 && (lookup->statements > 1 || count == 0);
}

unsigned startup_query_columns(const struct lookup *lookup, unsigned statement)
{
	struct checked_value list[VALUES_MAX];
	const unsigned count = list_values(startup_query_values(lookup), list);

	return is_encoding(lookup, statement, count) ? 1 : count;
}

/*
 * Keep one value as the server spells it. Returns false when out of memory, or if it is no
 * text.
 */
static bool keep_spelling(struct lookup *lookup, const struct checked_value *checked,
	const struct row_value *answer)
{
	struct parameter_table *table = lookup->pool->registry->parameters;
	char text[SPELLING_MAX];
	struct parameters *set;

	if (!answer->data || memchr(answer->data, '\0', answer->length))
		return false;
	if (answer->length >= SPELLING_MAX)
		return true;
	memcpy(text, answer->data, answer->length);
	text[answer->length] = '\0';
	if (checked->index >= 0)
		set = parameters_with(table, lookup->canonical, (unsigned)checked->index, text);
	else if (welcome_message_value(lookup->pool, checked->name))
		set = parameters_refollow(table, lookup->canonical, checked->name, text);
	else
		return true; /* not reported to clients, and some spellings cannot be set */
	if (!set)
		return false;
	parameters_unref(lookup->canonical);
	lookup->canonical = set;
	return true;
}

bool startup_query_take_row(
	struct server_link *server, unsigned statement, const uint8_t *body, size_t length)
{
	struct lookup *lookup = server->lookup;
	const struct parameters *set = startup_query_values(lookup);
	const unsigned encoding = encoding_index(parameters_table(set));
	struct checked_value list[VALUES_MAX];
	struct row_value values[VALUES_MAX];
	unsigned count = list_values(set, list);

	if (!lookup->canonical)
		lookup->canonical = parameters_ref((struct parameters *)set);
	if (is_encoding(lookup, statement, count)) {
		list[0] = (struct checked_value){"client_encoding", NULL, (int)encoding};
		count = 1;
		if (!parameters_get(set, encoding))
			return true;
	}
	if (row_read(body, length, values, (int)count) != (int)count)
		return lookup_reject(server, "malformed row");
	for (unsigned i = 0; i < count; i++) {
		if (!keep_spelling(lookup, &list[i], &values[i]))
			return lookup_reject(server, "malformed value");
	}
	return true;
}

/* Returns true if the text contains this name, not only as a part of a longer one. */
static bool mentions(const char *text, const char *name)
{
	static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_$.";
	const size_t length = strlen(name);
	const char *at = text;

	for (; (at = strcasestr(at, name)) != NULL; at++) {
		if ((at == text || !strchr(more, at[-1])) &&
			(at[length] == '\0' || !strchr(more, at[length])))
			return true;
	}
	return false;
}

/* Returns the parameter that the server does not know, according to this error, or NULL. */
static const char *unknown_name(const struct lookup *lookup, const struct report *report)
{
	static const char undefined_object[] = "42704";
	struct parameter_values values;

	if (!report->sqlstate || !report->text ||
		strcmp(report->sqlstate, undefined_object) != 0)
		return NULL;
	parameter_values_read(startup_query_values(lookup), &values);
	for (unsigned i = 0; i < values.count; i++) {
		if (mentions(report->text, values.followed[i].name))
			return values.followed[i].name;
	}
	return NULL;
}

enum lookup_error startup_query_take_error(
	struct server_link *server, const struct report *report)
{
	struct lookup *lookup = server->lookup;
	const char *unknown = unknown_name(lookup, report);

	lookup->refused = true;
	lookup->refusal = failure_from_server(report->text, report->sqlstate);
	if (unknown)
		text_copy(lookup->name, sizeof(lookup->name), unknown);
	return LOOKUP_ERROR_IS_ANSWER;
}
