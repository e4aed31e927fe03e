/* SPDX-License-Identifier: ISC */
#include "wire/parameter_difference.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "wire/parameter_values.h"
#include "wire/sql.h"

/* The two sets, and the SQL written so far. */
struct batch {
	struct parameter_table *table;
	struct parameter_values wanted, present;
	struct buffer *sql;
	bool reset_done; /* after RESETs: all of the client's values are set */
	int count;
};

static bool is_identity(const char *name)
{
	unsigned i;

	for (i = 0; i < PARAMETER_IDENTITIES; i++) {
		if (strcmp(name, parameter_identity[i]) == 0)
			return true;
	}
	return false;
}

/* ---- Differences ------------------------------------------------------------------------ */

static bool tracked_differs(const struct batch *batch, unsigned index)
{
	const char *wanted = batch->wanted.tracked[index];
	const char *present = batch->present.tracked[index];

	if (wanted == NULL || present == NULL)
		return false;
	if (batch->reset_done)
		return true;
	return strcmp(wanted, present) != 0 &&
		(strcasecmp(wanted, present) != 0 ||
			parameter_minds_case(parameter_name(batch->table, index)));
}

static bool is_followed(const struct parameter_values *values, const char *name)
{
	bool present;

	parameter_values_place(values, name, &present);
	return present;
}

static bool has_as_followed(const struct batch *batch, const struct followed *wanted)
{
	bool present;
	const unsigned place = parameter_values_place(&batch->present, wanted->name, &present);
	const char *value = present ? batch->present.followed[place].value : NULL;

	return !batch->reset_done && value != NULL && strcmp(value, wanted->value) == 0;
}

static bool differ(const struct batch *batch)
{
	unsigned i;

	for (i = 0; i < parameter_count(batch->table); i++) {
		if (tracked_differs(batch, i))
			return true;
	}
	for (i = 0; i < batch->present.count; i++) {
		if (!is_followed(&batch->wanted, batch->present.followed[i].name))
			return true;
	}
	for (i = 0; i < batch->wanted.count; i++) {
		if (!has_as_followed(batch, &batch->wanted.followed[i]))
			return true;
	}
	return false;
}

/* ---- SQL -------------------------------------------------------------------------------- */

static void append_text(struct buffer *sql, const char *text)
{
	buffer_append(sql, text, strlen(text));
}

/* Set a list of names, exactly as the client wrote it. */
static bool set_written(struct batch *batch, const char *name, const char *value)
{
	append_text(batch->sql, "SELECT pg_catalog.set_config(");
	sql_append_literal(batch->sql, name);
	append_text(batch->sql, ",");
	sql_append_literal(batch->sql, value);
	append_text(batch->sql, ",false);");
	batch->count++;
	return !batch->sql->failed;
}

static void begin_set(struct batch *batch, const char *name)
{
	append_text(batch->sql, "SET ");
	sql_append_setting_name(batch->sql, name);
	append_text(batch->sql, "=");
	batch->count++;
}

/* SQL cuts a name that is too long. */
static bool has_long_name(const char *list)
{
	while (*list != '\0') {
		const size_t length = strcspn(list, ",");

		if (length >= PARAMETER_NAME_SIZE)
			return true;
		list += length + (list[length] == ',');
	}
	return false;
}

/* The value is text that SQL reads as this list, or the list of one empty name. */
static bool is_read_unchanged(const char *value, const struct buffer *list)
{
	return strcmp(value, "\"\"") == 0 ||
		(!has_long_name(value) && list->length == strlen(value) &&
			memcmp(list->data, value, list->length) == 0);
}

/* A list as a server reports it is SET; SET would change what a client has written otherwise. */
static bool set_list(struct batch *batch, const char *name, const char *value)
{
	struct buffer list = {0};
	bool good = sql_append_name_list(&list, value) && !list.failed;

	if (good && is_read_unchanged(value, &list)) {
		begin_set(batch, name);
		buffer_append(batch->sql, list.data, list.length);
		append_text(batch->sql, ";");
		good = !batch->sql->failed;
	} else if (good) {
		good = set_written(batch, name, value);
	}
	buffer_free(&list);
	return good;
}

static bool set(struct batch *batch, const char *name, const char *value)
{
	if (parameter_is_name_list(name))
		return set_list(batch, name, value);
	begin_set(batch, name);
	sql_append_literal(batch->sql, value);
	append_text(batch->sql, ";");
	return !batch->sql->failed;
}

static bool set_value(struct batch *batch, const char *name, const char *value)
{
	return parameter_is_name_list(name) ? set_written(batch, name, value)
					    : set(batch, name, value);
}

static void reset(struct batch *batch, const char *name)
{
	append_text(batch->sql, "RESET ");
	sql_append_setting_name(batch->sql, name);
	append_text(batch->sql, ";");
	batch->count++;
}

/* Remove a followed name from the server's values. */
static void remove_followed(struct parameter_values *values, unsigned place)
{
	struct followed *at = &values->followed[place];

	values->count--;
	memmove(at, at + 1, (values->count - place) * sizeof(*at));
}

/* Reset the time limits that are not wanted, and forget the others: they are set again. */
static void reset_time_limits(struct batch *batch)
{
	unsigned i = 0;

	while (i < batch->present.count) {
		const char *name = batch->present.followed[i].name;

		if (!parameter_is_time_limit(name)) {
			i++;
			continue;
		}
		if (!is_followed(&batch->wanted, name))
			reset(batch, name);
		remove_followed(&batch->present, i);
	}
}

static void reset_identity(struct batch *batch)
{
	unsigned i;

	for (i = 0; i < PARAMETER_IDENTITIES; i++) {
		bool present;
		const unsigned place = parameter_values_place(
			&batch->present, parameter_identity[i], &present);

		if (!present)
			continue;
		reset(batch, parameter_identity[i]);
		remove_followed(&batch->present, place);
	}
}

static void reset_others(struct batch *batch)
{
	unsigned i;

	for (i = 0; i < batch->present.count; i++) {
		const char *name = batch->present.followed[i].name;

		if (!is_followed(&batch->wanted, name))
			reset(batch, name);
	}
}

/*
 * The prelude is the operator's: one or several statements, with or without a final semicolon.
 */
static void append_prelude(struct batch *batch, const char *prelude)
{
	if (prelude == NULL || batch->count == 0)
		return;
	append_text(batch->sql, prelude);
	append_text(batch->sql, "\n;");
	batch->reset_done = true;
}

static bool set_tracked(struct batch *batch)
{
	unsigned i;

	for (i = 0; i < parameter_count(batch->table); i++) {
		if (tracked_differs(batch, i) &&
			!set(batch, parameter_name(batch->table, i), batch->wanted.tracked[i]))
			return false;
	}
	return true;
}

/* Set the followed parameters that are time limits, or those that are not. */
static bool set_followed(struct batch *batch, bool limits)
{
	unsigned i;

	for (i = 0; i < batch->wanted.count; i++) {
		const struct followed *wanted = &batch->wanted.followed[i];

		if (parameter_is_time_limit(wanted->name) == limits &&
			!is_identity(wanted->name) && !has_as_followed(batch, wanted) &&
			!set_value(batch, wanted->name, wanted->value))
			return false;
	}
	return true;
}

static bool set_identity(struct batch *batch)
{
	unsigned i = PARAMETER_IDENTITIES;

	while (i-- > 0) {
		bool present;
		const unsigned place =
			parameter_values_place(&batch->wanted, parameter_identity[i], &present);

		if (present &&
			!set(batch, parameter_identity[i], batch->wanted.followed[place].value))
			return false;
	}
	return true;
}

/* Unpack the two sets, and replace in them what depends on the start of the session. */
static void read_sets(struct batch *batch, const struct parameters *client,
	const struct parameters *server, const struct parameters *usual)
{
	struct parameter_values start;
	const int user = parameter_index(batch->table, "session_authorization");
	unsigned i;

	parameter_values_read(client, &batch->wanted);
	parameter_values_read(server, &batch->present);
	if (usual == NULL)
		return;
	parameter_values_read(usual, &start);
	for (i = 0; i < parameter_count(batch->table); i++) {
		if (batch->wanted.tracked[i] == NULL)
			batch->wanted.tracked[i] = start.tracked[i];
	}
	if (user < 0 || start.tracked[user] == NULL || batch->present.tracked[user] == NULL)
		return;
	parameter_values_follow_user(batch->table, &batch->wanted, start.tracked[user]);
	parameter_values_follow_user(batch->table, &batch->present, start.tracked[user]);
}

int parameters_difference(const struct parameters *client, const struct parameters *server,
	const struct session_start *start, struct buffer *sql)
{
	const size_t before = sql->length;
	struct batch batch; /* the values are not cleared: there is room for many */

	if (client == server)
		return 0;
	batch.table = parameters_table(client);
	batch.sql = sql;
	batch.reset_done = false;
	batch.count = 0;
	CHECK(parameter_count(batch.table) == parameter_count(parameters_table(server)));
	read_sets(&batch, client, server, start->usual);
	if (!differ(&batch))
		return 0;
	reset_time_limits(&batch);
	reset_identity(&batch);
	reset_others(&batch);
	append_prelude(&batch, start->prelude);
	if (set_tracked(&batch) && set_followed(&batch, false) && set_identity(&batch) &&
		set_followed(&batch, true))
		return batch.count;
	sql->length = before;
	return -1;
}
