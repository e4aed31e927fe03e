/* SPDX-License-Identifier: ISC */
#include "session/lookup/startup_check.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "session/auth/client_login_state.h"
#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/parameters/application_name.h"
#include "session/parameters/followed.h"
#include "session/parameters/parameter_sync.h"
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

static const struct parameters *set_of(const struct lookup *lookup)
{
	return lookup->subject;
}

static const void *hold(const void *subject)
{
	return parameters_ref((struct parameters *)subject);
}

static void let_go(const void *subject)
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
	const struct parameters *set = set_of(lookup), *welcome = lookup->pool->welcome;
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
static unsigned prepare(struct server_link *server, struct buffer *out)
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

static bool fit(struct server_link *server)
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
static unsigned ask(
	const struct lookup *lookup, const struct server_link *server, struct buffer *out)
{
	const char *encoding = encoding_to_set(lookup, server);
	struct wish wishes[WISHES_MAX];
	const unsigned count = list_wishes(set_of(lookup), wishes);

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

static unsigned columns(const struct lookup *lookup, unsigned statement)
{
	struct wish wishes[WISHES_MAX];
	const unsigned count = list_wishes(set_of(lookup), wishes);

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
		set = parameters_with(table, lookup->spelt, (unsigned)wish->index, text);
	else if (welcome_message_value(lookup->pool, wish->name))
		set = parameters_refollow(table, lookup->spelt, wish->name, text);
	else
		return true; /* nobody will be told, and not all that is shown can be set */
	if (!set)
		return false;
	parameters_unref(lookup->spelt);
	lookup->spelt = set;
	return true;
}

static bool take_row(
	struct server_link *server, unsigned statement, const uint8_t *body, size_t length)
{
	struct lookup *lookup = server->lookup;
	const struct parameters *set = set_of(lookup);
	const unsigned encoding = encoding_index(parameters_table(set));
	struct wish wishes[WISHES_MAX];
	struct row_value values[WISHES_MAX];
	unsigned count = list_wishes(set, wishes);

	if (!lookup->spelt)
		lookup->spelt = parameters_ref((struct parameters *)set);
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
	parameter_values_read(set_of(lookup), &values);
	for (unsigned i = 0; i < values.count; i++) {
		if (mentions(report->text, values.followed[i].name))
			return values.followed[i].name;
	}
	return NULL;
}

static enum lookup_error take_error(struct server_link *server, const struct report *report)
{
	struct lookup *lookup = server->lookup;
	const char *unknown = unknown_name(lookup, report);

	lookup->refused = true;
	lookup->refusal = failure_from_server(report->text, report->sqlstate);
	if (unknown)
		text_copy(lookup->name, sizeof(lookup->name), unknown);
	return LOOKUP_ERROR_ENDS;
}

/* --- what comes of it --------------------------------------------------------------------- */

/* Did this name stand in the client's options, rather than beside them? */
static bool was_in_options(const struct login *login, const char *name)
{
	const struct buffer *names = &login->option_names;
	size_t at = 0;

	while (at < names->length) {
		const char *each = (const char *)names->data + at;

		if (strcasecmp(each, name) == 0)
			return true;
		at += strlen(each) + 1;
	}
	return false;
}

static struct failure refusal_of(const struct lookup *lookup, struct client_link *client)
{
	const char *name = lookup->name;
	const bool in_options = was_in_options(client->login, name);

	if (name[0] == '\0')
		return lookup->refusal;
	link_log_repeated(&client->link, LEVEL_WARNING,
		"unsupported startup parameter%s: %s=%s", in_options ? " in options" : "", name,
		parameters_get_followed(set_of(lookup), name));
	return failure_of(in_options ? REASON_UNSUPPORTED_STARTUP_PARAMETER_IN_OPTIONS
				     : REASON_UNSUPPORTED_STARTUP_PARAMETER,
		name);
}

/* The client has the server's spelling from now on. False: it was closed. */
static bool take_over(struct client_link *client, const struct parameters *spelt)
{
	struct parameters *set = parameters_merge(
		link_registry(&client->link)->parameters, client->link.parameters, spelt);

	parameter_sync_log_spelling(client, set);
	if (!link_take_parameters(&client->link, set)) {
		client_close_for(client, REASON_NO_MEMORY);
		return false;
	}
	client->login->checked = true;
	return true;
}

static void finish(struct lookup *lookup)
{
	struct parameters *set = (struct parameters *)set_of(lookup);
	struct login *login;

	if (!lookup->refused && lookup->spelt && lookup->pool->welcome)
		checked_parameters_add(&lookup->pool->checked, set, lookup->spelt);
	while ((login = lookup_take_login(lookup)) != NULL) {
		struct client_link *client = login->client;

		if (lookup->refused) {
			const struct failure why = refusal_of(lookup, client);

			client_close(client, &why);
		} else if (take_over(client, lookup->spelt ? lookup->spelt : set)) {
			client->login->steps->checked(client);
		}
	}
}

static const struct lookup_kind kind = {
	.name = "startup parameters",
	.hold = hold,
	.let_go = let_go,
	.prepare = prepare,
	.fit = fit,
	.ask = ask,
	.columns = columns,
	.take_row = take_row,
	.take_error = take_error,
	.finish = finish,
	.broken = REASON_INVALID_SERVER_PARAMETER,
	.failure = REASON_COUNT,
};

/* --- who has to ask ----------------------------------------------------------------------- */

static bool is_exempt(const struct client_link *client)
{
	return client->replica || client->login->checked ||
		link_registry(&client->link)->process->settings->startup_parameters !=
		STARTUP_FOLLOW;
}

/* Any server takes it: it has been cleaned. */
static bool is_name(const struct parameter_table *table, unsigned index)
{
	return strcmp(parameter_name(table, index), "application_name") == 0;
}

/* Do servers begin with this value? Names, of applications or in lists, have letters of their own. */
static bool is_usual(const struct parameter_table *table, unsigned index, const char *value,
	const char *usual)
{
	if (!value || !usual)
		return false;
	if (parameter_is_name_list(parameter_name(table, index)) || is_name(table, index))
		return strcmp(value, usual) == 0;
	return strcasecmp(value, usual) == 0;
}

/* The values in question: none that the welcome has anyway. NULL: no memory. Counted. */
static struct parameters *doubtful(
	const struct parameters *asked, const struct parameters *welcome)
{
	struct parameter_table *table = parameters_table(asked);
	struct parameter_values values, usual;

	parameter_values_read(asked, &values);
	parameter_values_read(welcome, &usual);
	for (unsigned i = 0; i < parameter_count(table); i++) {
		const char **value = &values.tracked[i];

		if (is_name(table, i) || is_usual(table, i, *value, usual.tracked[i]))
			*value = NULL;
	}
	return parameter_values_intern(table, &values);
}

/* What the pool's servers do not report is followed like anything else. */
static bool follow_unreported(struct client_link *client)
{
	return link_take_parameters(&client->link,
		parameters_follow_unknown(link_registry(&client->link)->parameters,
			client->link.parameters, client->link.pool->welcome));
}

/* Who asks for what the welcome has anyway, be it in other letters, has it as servers spell it. */
static bool spell_as_welcome(struct client_link *client)
{
	struct parameter_table *table = link_registry(&client->link)->parameters;
	struct parameter_values values, usual;
	struct parameters *set;

	parameter_values_read(client->link.parameters, &values);
	parameter_values_read(client->link.pool->welcome, &usual);
	for (unsigned i = 0; i < parameter_count(table); i++) {
		if (is_usual(table, i, values.tracked[i], usual.tracked[i]))
			values.tracked[i] = usual.tracked[i];
	}
	set = parameter_values_intern(table, &values);
	parameter_sync_log_spelling(client, set);
	return link_take_parameters(&client->link, set);
}

/* They have to be asked for, unless the pool knows them. False: it waits, or was closed. */
static bool prove(struct client_link *client, const struct parameters *asked)
{
	struct pool *pool = client->link.pool;
	const struct parameters *spelt = checked_parameters_find(&pool->checked, asked);

	if (spelt)
		return take_over(client, spelt);
	if (!client_login_send_sasl_final(client))
		client_close_for(client, REASON_UNEXPECTED_EOF);
	else
		lookup_begin(client, pool, &kind, asked, "");
	return false;
}

/* It may be any bytes, and nobody need be asked what becomes of them. */
static bool clean_name(struct client_link *client)
{
	struct parameter_table *table = link_registry(&client->link)->parameters;
	const struct pool *pool = client->link.pool;
	const unsigned index = (unsigned)parameter_index(table, "application_name");
	const char *name = parameters_get(client->link.parameters, index);
	char clean[APPLICATION_NAME_CLEAN_SIZE];

	if (!name || application_name_is_clean(name))
		return true;
	application_name_clean(name, welcome_message_value(pool, "server_version"),
		welcome_message_value(pool, "server_encoding"), clean);
	return link_take_parameters(
		&client->link, parameters_with(table, client->link.parameters, index, clean));
}

bool startup_check_begin(struct client_link *client)
{
	struct parameters *asked = NULL, *none;
	bool good = true;

	if (is_exempt(client))
		return true;
	if (follow_unreported(client) && spell_as_welcome(client) && clean_name(client))
		asked = doubtful(client->link.parameters, client->link.pool->welcome);
	if (!asked) {
		client_close_for(client, REASON_NO_MEMORY);
		return false;
	}
	none = parameters_empty(parameters_table(asked));
	if (asked != none)
		good = prove(client, asked);
	parameters_unref(none);
	parameters_unref(asked);
	return good;
}
