/* SPDX-License-Identifier: ISC */
#include "session/lookup/startup_check.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "session/auth/client_login_state.h"
#include "session/link/close.h"
#include "session/lookup/login_asker.h"
#include "session/lookup/startup_query.h"
#include "session/parameters/application_name.h"
#include "session/parameters/parameter_sync.h"
#include "session/parameters/welcome_message.h"
#include "wire/parameter_values.h"

/* --- the result --------------------------------------------------------------------------- */

/* Returns true if the client has set this name in `options`, not as a parameter of its own. */
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
		parameters_get_followed(startup_query_values(lookup), name));
	return failure_of(in_options ? REASON_UNSUPPORTED_STARTUP_PARAMETER_IN_OPTIONS
				     : REASON_UNSUPPORTED_STARTUP_PARAMETER,
		name);
}

/* Give the client the values as the server spells them. Returns false if it was closed. */
static bool adopt_values(struct client_link *client, const struct parameters *canonical)
{
	struct parameters *set = parameters_merge(
		link_registry(&client->link)->parameters, client->link.parameters, canonical);

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
	struct parameters *set = (struct parameters *)startup_query_values(lookup);
	struct asker *asker;

	if (!lookup->refused && lookup->canonical && lookup->pool->welcome)
		checked_parameters_add(&lookup->pool->checked, set, lookup->canonical);
	while ((asker = lookup_take_asker(lookup)) != NULL) {
		struct client_link *client = login_of(asker)->client;

		if (lookup->refused) {
			const struct failure why = refusal_of(lookup, client);

			client_close(client, &why);
		} else if (adopt_values(client, lookup->canonical ? lookup->canonical : set)) {
			client->login->steps->checked(client);
		}
	}
}

static const struct lookup_kind kind = {
	.name = "startup parameters",
	.ref = startup_query_ref,
	.unref = startup_query_unref,
	.write_preludes = startup_query_write_preludes,
	.prelude_done = startup_query_prelude_done,
	.write = startup_query_write,
	.columns = startup_query_columns,
	.take_row = startup_query_take_row,
	.take_error = startup_query_take_error,
	.finish = finish,
	.broken = REASON_INVALID_SERVER_PARAMETER,
	.failure = REASON_COUNT,
};

/* --- what has to be checked --------------------------------------------------------------- */

static bool is_exempt(const struct client_link *client)
{
	return client->replica || client->login->checked ||
		link_registry(&client->link)->process->settings->startup_parameters !=
		STARTUP_FOLLOW;
}

/* application_name is never checked: clean_name() makes every value valid. */
static bool is_application_name(const struct parameter_table *table, unsigned index)
{
	return strcmp(parameter_name(table, index), "application_name") == 0;
}

/*
 * Returns true if servers begin with this value. In application_name case matters too.
 */
static bool is_initial(const struct parameter_table *table, unsigned index, const char *value,
	const char *initial)
{
	if (!value || !initial)
		return false;
	if (parameter_minds_case(parameter_name(table, index)) ||
		is_application_name(table, index))
		return strcmp(value, initial) == 0;
	return strcasecmp(value, initial) == 0;
}

/* Returns the values that differ from the welcome. Counted; NULL when out of memory. */
static struct parameters *values_to_check(
	const struct parameters *asked, const struct parameters *welcome)
{
	struct parameter_table *table = parameters_table(asked);
	struct parameter_values values, initial;

	parameter_values_read(asked, &values);
	parameter_values_read(welcome, &initial);
	for (unsigned i = 0; i < parameter_count(table); i++) {
		const char **value = &values.tracked[i];

		if (is_application_name(table, i) ||
			is_initial(table, i, *value, initial.tracked[i]))
			*value = NULL;
	}
	return parameter_values_intern(table, &values);
}

/*
 * Parameters that the servers of the pool do not report become followed ones, unless they are to
 * be ignored: the operator has named them when PgBouncer did not track them.
 */
static bool follow_unreported(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	const char *ignored = registry->process->settings->ignore_startup_parameters;
	struct parameter_table *table = registry->parameters;
	const struct parameters *welcome = client->link.pool->welcome;
	struct parameter_values asked, reported;
	bool found = false;

	parameter_values_read(client->link.parameters, &asked);
	parameter_values_read(welcome, &reported);
	for (unsigned i = 0; i < parameter_count(table); i++) {
		if (!asked.tracked[i] || reported.tracked[i])
			continue;
		found = true;
		if (text_list_has(ignored, parameter_name(table, i)))
			asked.tracked[i] = NULL;
	}
	if (!found)
		return true;
	return link_take_parameters(&client->link, parameter_values_intern(table, &asked)) &&
		link_take_parameters(&client->link,
			parameters_follow_unknown(table, client->link.parameters, welcome));
}

/* Values that differ from the welcome only in case get the spelling of the welcome. */
static bool adopt_welcome_spelling(struct client_link *client)
{
	struct parameter_table *table = link_registry(&client->link)->parameters;
	struct parameter_values values, initial;
	struct parameters *set;

	parameter_values_read(client->link.parameters, &values);
	parameter_values_read(client->link.pool->welcome, &initial);
	for (unsigned i = 0; i < parameter_count(table); i++) {
		if (is_initial(table, i, values.tracked[i], initial.tracked[i]))
			values.tracked[i] = initial.tracked[i];
	}
	set = parameter_values_intern(table, &values);
	parameter_sync_log_spelling(client, set);
	return link_take_parameters(&client->link, set);
}

/*
 * Check the values, unless the pool has cached them. Returns false if the client waits for a
 * look-up, or was closed.
 */
static bool check_values(struct client_link *client, const struct parameters *asked)
{
	struct pool *pool = client->link.pool;
	const struct parameters *canonical = checked_parameters_find(&pool->checked, asked);
	const struct lookup_question question = {.kind = &kind, .subject = asked, .user = ""};

	if (canonical)
		return adopt_values(client, canonical);
	if (!client_login_send_sasl_final(client))
		client_close_for(client, REASON_UNEXPECTED_EOF);
	else
		login_asker_begin(client, pool, &question);
	return false;
}

/* Replace bytes in application_name as the server would. */
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

/*
 * Most clients of a pool ask for the same as the last one. Kept are parameters that remained as
 * they were, so they depend on nothing but the welcome, with which they are forgotten.
 */
static void keep_if_same(struct pool *pool, struct parameters *before, struct parameters *after)
{
	if (before != after)
		return;
	parameters_unref(pool->welcome_kept);
	pool->welcome_kept = parameters_ref(after);
}

bool startup_check_begin(struct client_link *client)
{
	struct pool *pool = client->link.pool;
	struct parameters *before = client->link.parameters, *asked = NULL, *none;
	bool good = true;

	if (before == pool->welcome_kept || is_exempt(client))
		return true;
	parameters_ref(before);
	if (follow_unreported(client) && adopt_welcome_spelling(client) && clean_name(client))
		asked = values_to_check(client->link.parameters, pool->welcome);
	if (!asked) {
		parameters_unref(before);
		client_close_for(client, REASON_NO_MEMORY);
		return false;
	}
	none = parameters_empty(parameters_table(asked));
	if (asked != none)
		good = check_values(client, asked);
	else
		keep_if_same(pool, before, client->link.parameters);
	parameters_unref(before);
	parameters_unref(none);
	parameters_unref(asked);
	return good;
}
