/* SPDX-License-Identifier: ISC */
/*
 * The first message of a client: every parser of it stays inside the message, and they agree
 * with each other. The input is also tried as a message body, without its length, so that
 * parameters are reached soon.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/parameter_difference.h"
#include "wire/parameter_draft.h"
#include "wire/startup.h"
#include "wire/switches.h"
#include "wire/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Read both texts to their ends. */
static void read_pair(const char *name, const char *value)
{
	require(strlen(name) <= STARTUP_TOTAL_MAX);
	require(strlen(value) <= STARTUP_TOTAL_MAX);
}

/*
 * The SQL that sets these parameters on a session and resets them contains only the expected
 * words.
 */
static void follow_settings(struct parameters *set, struct parameters *none)
{
	struct buffer there = {0}, back = {0};
	const int count = parameters_difference(set, none, &(struct session_start){0}, &there);
	const char *word = "RESET";

	/* Only tracked lists of names can be invalid. */
	require(count >= 0);
	require((count > 0) == (there.length > 0));
	require((parameters_difference(none, set, &(struct session_start){"SELECT 1", NULL},
			 &back) > 0) == parameters_has_followed(set));
	require(back.length == 0 || memcmp(back.data, word, strlen(word)) == 0);
	require(back.length == 0 || memchr(back.data, '\'', back.length) == NULL);
	buffer_free(&there);
	buffer_free(&back);
}

/* Build the parameter set as a login does. */
static void draft_settings(const struct startup_login *login, const uint8_t *data, size_t total)
{
	struct parameter_table *table = parameter_table_new("IntervalStyle");
	struct parameters *none = parameters_empty(table), *set;
	struct parameter_draft draft;
	struct startup_settings walk;
	const char *name, *value;

	parameter_draft_begin(&draft, table);
	startup_settings_begin(&walk, login, data, total);
	while (startup_settings_next(&walk, &name, &value) == STARTUP_PARAMETER) {
		const int index = parameter_index(table, name);

		if (index >= 0)
			parameter_draft_track(&draft, (unsigned)index, value);
		else if (parameter_draft_follow(&draft, name, value) == DRAFTED)
			require(parameter_name_is_legal(name));
	}
	startup_settings_end(&walk);
	set = parameter_draft_end(&draft);
	/* A message is smaller than the limit of a set. */
	require(set != NULL);
	follow_settings(set, none);
	parameters_unref(set);
	parameters_unref(none);
	parameter_table_free(table);
}

static void walk_settings(const struct startup_login *login, const uint8_t *data, size_t total)
{
	struct startup_settings walk;
	const char *name, *value;
	enum startup_step step;

	startup_settings_begin(&walk, login, data, total);
	while ((step = startup_settings_next(&walk, &name, &value)) == STARTUP_PARAMETER)
		read_pair(name, value);
	require(step != STARTUP_BROKEN || walk.in_options);
	startup_settings_end(&walk);
}

/* Parse the options as PostgreSQL does. */
static void walk_switches(const struct startup_login *login)
{
	struct switches_walk walk;
	const char *name, *value;

	if (login->options == NULL)
		return;
	switches_walk_begin(&walk, login->options);
	while (switches_walk_next(&walk, &name, &value) == STARTUP_PARAMETER) {
		read_pair(name, value);
		require(name[0] != '\0' && strchr(name, '-') == NULL);
	}
	switches_walk_end(&walk);
}

static void negotiate(const struct startup_login *login, const uint8_t *data, size_t total)
{
	struct buffer buffer = {0};

	startup_write_negotiation(&buffer, login, data, total);
	require(buffer.length <= total + 32);
	buffer_free(&buffer);
}

static void read_login(const uint8_t *data, size_t total)
{
	struct startup_login login;
	const enum startup_result result = startup_read(data, total, &login);

	if (result == STARTUP_BAD_LAYOUT)
		return;
	require((result == STARTUP_GOOD) == (login.user != NULL));
	if (result == STARTUP_GOOD)
		read_pair(login.user, login.database);
	walk_settings(&login, data, total);
	walk_switches(&login);
	draft_settings(&login, data, total);
	negotiate(&login, data, total);
}

static void read_message(const uint8_t *data, size_t available)
{
	size_t total, length;
	const enum startup_kind kind = startup_peek(data, available, &total);

	if (kind == STARTUP_INCOMPLETE || kind == STARTUP_MALFORMED)
		return;
	require(total >= STARTUP_HEADER_SIZE && total <= available);
	if (kind == STARTUP_LOGIN)
		read_login(data, total);
	if (kind == STARTUP_CANCEL && startup_cancel_key(data, total, &length) != NULL)
		require(length == total - STARTUP_HEADER_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer buffer = {0};
	size_t mark;

	read_message(data, size);
	mark = startup_begin(&buffer, PROTOCOL_3_0);
	writer_bytes(&buffer, data, size);
	startup_end(&buffer, mark);
	if (!buffer.failed)
		read_message(buffer.data, buffer.length);
	buffer_free(&buffer);
	return 0;
}
