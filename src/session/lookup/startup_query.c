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
	/* Values that are asked for in one statement. */
	WISHES_MAX = PARAMETERS_MAX + PARAMETERS_FOLLOWED_MAX,
	/* Characters of an answer; a longer one is not taken for the server's spelling. */
	SPELLING_MAX = 128,
};

/* One value that is asked for. */
struct wish {
	const char *name, *value;
	int index; /* in the table; -1: it is followed */
};

/* --- what is asked ------------------------------------------------------------------------ */

const void *startup_query_hold(const void *subject)
{
	return parameters_ref((struct parameters *)subject);
}

void startup_query_release(const void *subject)
{
	parameters_unref((struct parameters *)subject);
}

static unsigned encoding_index(const struct parameter_table *table)
{
	return (unsigned)parameter_index(table, "client_encoding");
}

/* What stands in the set but the encoding, in the order in which it can be set. */
static unsigned list_wishes(const struct parameters *set, struct wish wishes[WISHES_MAX])
{
	const struct parameter_table *table = parameters_table(set);
	struct parameter_values values;
	unsigned count = 0, i;

	parameter_values_read(set, &values);
	for (i = 0; i < parameter_count(table); i++) {
		if (values.tracked[i] && i != encoding_index(table))
			wishes[count++] = (struct wish){
				parameter_name(table, i), values.tracked[i], (int)i};
	}
	parameter_values_put_identity_last(&values);
	for (i = 0; i < values.count; i++)
		wishes[count++] =
			(struct wish){values.followed[i].name, values.followed[i].value, -1};
	return count;
}

/*
 * The encoding in which the values are to be read: the client's. NULL: the server has it already,
 * and nobody asks whether it is one.
 */
static const char *encoding_to_set(
	const struct lookup *lookup, const struct server_link *server)
{
	const struct parameters *set = startup_query_values(lookup),
				*welcome = lookup->pool->welcome;
	const unsigned index = encoding_index(parameters_table(set));
	const char *asked = parameters_get(set, index);
	const char *usual = welcome ? parameters_get(welcome, index) : NULL;
	const char *present = parameters_get(server->link.parameters, index);

	if (asked || !usual || (present && strcasecmp(usual, present) == 0))
		return asked;
	return usual;
}

/* --- to the server ------------------------------------------------------------------------ */

/*
 * What the server should have before it is asked: nothing of what others follow, and the DateStyle
 * that it began with, since one that names no order of day and month leaves that as it is.
 */
static struct parameters *base_of(const struct server_link *server)
{
	struct parameter_table *table = link_registry(&server->link)->parameters;
	const struct parameters *present = server->link.parameters;
	const struct parameters *welcome = server->link.pool->welcome;
	const unsigned index = (unsigned)parameter_index(table, "DateStyle");
	struct parameters *none = parameters_empty(table);
	struct parameters *bare = parameters_follow(table, present, none), *base = bare;

	parameters_unref(none);
	if (bare && welcome && parameters_get(welcome, index)) {
		base = parameters_with(table, bare, index, parameters_get(welcome, index));
		parameters_unref(bare);
	}
	return base;
}

/* What others have set is taken back first: a role, say, or a statement_timeout. */
unsigned startup_query_prepare(struct server_link *server, struct buffer *out)
{
	struct parameters *base = base_of(server);
	struct buffer sql = {0};
	int count = -1;

	if (base)
		count = parameters_difference(
			base, server->link.parameters, own_query_connect_query(server), &sql);
	parameters_unref(base);
	if (count > 0)
		writer_query_text(out, sql.data, sql.length);
	else if (count < 0)
		out->failed = true;
	buffer_free(&sql);
	return count > 0;
}

bool startup_query_fit(struct server_link *server)
{
	return followed_forget(server);
}

static void write_encoding(struct buffer *out, const char *encoding)
{
	lookup_write_statement(
		out, "SELECT pg_catalog.set_config('client_encoding',$1,true)", &encoding, 1);
}

/* The answer is cut, since a server would give a value back that is as long as a message. */
static void write_wishes(struct buffer *out, const struct wish *wishes, unsigned count)
{
	const char *texts[2 * WISHES_MAX];
	struct buffer sql = {0};

	buffer_printf(&sql, "SELECT ");
	for (unsigned i = 0; i < count; i++) {
		texts[2 * i] = wishes[i].name;
		texts[2 * i + 1] = wishes[i].value;
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

/* Two statements in one transaction: the second is read in the encoding that the first has set. */
unsigned startup_query_ask(
	const struct lookup *lookup, const struct server_link *server, struct buffer *out)
{
	const char *encoding = encoding_to_set(lookup, server);
	struct wish wishes[WISHES_MAX];
	const unsigned count = list_wishes(startup_query_values(lookup), wishes);

	if (encoding)
		write_encoding(out, encoding);
	if (count > 0)
		write_wishes(out, wishes, count);
	return (encoding != NULL) + (count > 0);
}

/* --- from the server ---------------------------------------------------------------------- */

/* Is this statement the one about the encoding, rather than that about everything else? */
static bool is_encoding(const struct lookup *lookup, unsigned statement, unsigned wishes)
{
	return statement == 0 && (lookup->statements > 1 || wishes == 0);
}

unsigned startup_query_columns(const struct lookup *lookup, unsigned statement)
{
	struct wish wishes[WISHES_MAX];
	const unsigned count = list_wishes(startup_query_values(lookup), wishes);

	return is_encoding(lookup, statement, count) ? 1 : count;
}

/* Keep the server's spelling of one value. False: no memory, or no text. */
static bool take_spelling(
	struct lookup *lookup, const struct wish *wish, const struct row_value *answer)
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
	if (wish->index >= 0)
		set = parameters_with(table, lookup->canonical, (unsigned)wish->index, text);
	else if (welcome_message_value(lookup->pool, wish->name))
		set = parameters_refollow(table, lookup->canonical, wish->name, text);
	else
		return true; /* nobody will be told, and not all that is shown can be set */
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
	struct wish wishes[WISHES_MAX];
	struct row_value values[WISHES_MAX];
	unsigned count = list_wishes(set, wishes);

	if (!lookup->canonical)
		lookup->canonical = parameters_ref((struct parameters *)set);
	if (is_encoding(lookup, statement, count)) {
		wishes[0] = (struct wish){"client_encoding", NULL, (int)encoding};
		count = 1;
		if (!parameters_get(set, encoding))
			return true;
	}
	if (row_read(body, length, values, (int)count) != (int)count)
		return lookup_reject(server, "malformed row");
	for (unsigned i = 0; i < count; i++) {
		if (!take_spelling(lookup, &wishes[i], &values[i]))
			return lookup_reject(server, "malformed value");
	}
	return true;
}

/* Does the text have this name in it, and not only as a part of a longer one? */
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

/* The name that a server does not know, by what it says; NULL: it says something else. */
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
