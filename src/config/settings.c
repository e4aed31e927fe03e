/* SPDX-License-Identifier: ISC */
#include "config/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "config/settings_parts.h"

/* --- rows --------------------------------------------------------------------------------- */

#define ANY .least = LLONG_MIN, .most = LLONG_MAX
#define AT_LEAST(n) .least = (n), .most = LLONG_MAX
#define BETWEEN(n, m) .least = (n), .most = (m)
#define LIVE SETTING_LIVE
#define NEW_LINKS SETTING_NEW_LINKS
#define RESTART SETTING_RESTART
#define SETTING(NAME, KIND, DEFAULT, RANGE, WHEN, GROUP, DOC)                                  \
	{                                                                                      \
		.name = #NAME,                                                                 \
		.kind = &setting_kind_##KIND,                                                  \
		.offset = offsetof(struct settings, NAME),                                     \
		.default_text = DEFAULT,                                                       \
		RANGE,                                                                         \
		.when = WHEN,                                                                  \
		.group = SETTING_GROUP_##GROUP,                                                \
		.doc = DOC,                                                                    \
	},

static const struct setting_row rows[] = {
#include "config/settings.def"
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static void *field_of(struct settings *settings, const struct setting_row *row)
{
	return (char *)settings + row->offset;
}

static const void *const_field_of(
	const struct settings *settings, const struct setting_row *row)
{
	return (const char *)settings + row->offset;
}

const struct setting_row *settings_rows(size_t *count)
{
	*count = ROW_COUNT;
	return rows;
}

static int compare_name(const void *name, const void *row)
{
	return strcmp(name, ((const struct setting_row *)row)->name);
}

const struct setting_row *settings_find(const char *name)
{
	return bsearch(name, rows, ROW_COUNT, sizeof(rows[0]), compare_name);
}

const char *settings_nearest(const char *name)
{
	struct nearest nearest = {.asked = name};

	for (size_t i = 0; i < ROW_COUNT; i++)
		nearest_consider(&nearest, rows[i].name);
	return nearest.found;
}

/* --- the set ------------------------------------------------------------------------------ */

/*
 * A default may be a keyword that this build does not accept in a file, so it is not checked.
 */
static bool set_default(struct settings *settings, const struct setting_row *row)
{
	char why[1];
	const struct setting_request request = {row, row->default_text, why, sizeof(why)};

	if (!row->default_text)
		return true;
	if (row->kind->words) {
		const struct setting_word *word =
			setting_find_word(row->kind->words, row->default_text);

		*(unsigned *)field_of(settings, row) = word->value;
		return true;
	}
	return row->kind->read(&request, field_of(settings, row));
}

bool settings_defaults(struct settings *settings)
{
	bool done = true;

	memset(settings, 0, sizeof(*settings));
	for (size_t i = 0; i < ROW_COUNT; i++)
		done = set_default(settings, &rows[i]) && done;
	return done;
}

size_t settings_find_comment(
	const struct setting_row *row, const char *value, enum setting_comment *kind)
{
	size_t at = strcspn(value, ";#");

	*kind = row->kind->comment;
	if (*kind == SETTING_COMMENT_NONE)
		return strlen(value);
	while (*kind == SETTING_COMMENT_DOUBTED && value[at] != '\0' && at > 0 &&
		value[at - 1] != ' ' && value[at - 1] != '\t')
		at += 1 + strcspn(value + at + 1, ";#");
	return at;
}

bool settings_set(
	struct settings *settings, const char *name, const char *value, char *why, size_t size)
{
	const struct setting_row *row = settings_find(name);
	const struct setting_request request = {row, value, why, size};

	if (!row) {
		snprintf(why, size, "there is no such setting");
		return false;
	}
	return row->kind->read(&request, field_of(settings, row));
}

static const char *render_field(
	const struct setting_kind *kind, const void *field, char *out, size_t size)
{
	if (kind->words)
		return setting_word_of(kind->words, *(const unsigned *)field);
	return kind->render(field, out, size);
}

const char *settings_render(
	const struct setting_row *row, const struct settings *settings, char *out, size_t size)
{
	return render_field(row->kind, const_field_of(settings, row), out, size);
}

static bool copy_text(char **to, char *const *from)
{
	char *copy = NULL;

	if (*from) {
		copy = strdup(*from);
		if (!copy)
			return false;
	}
	if (*to)
		explicit_bzero(*to, strlen(*to)); /* it may be a password */
	free(*to);
	*to = copy;
	return true;
}

bool settings_copy_one(
	struct settings *to, const struct settings *from, const struct setting_row *row)
{
	if (row->kind->is_text)
		return copy_text(field_of(to, row), const_field_of(from, row));
	memcpy(field_of(to, row), const_field_of(from, row), row->kind->size);
	return true;
}

bool settings_copy(struct settings *to, const struct settings *from)
{
	bool done = true;

	memset(to, 0, sizeof(*to));
	for (size_t i = 0; i < ROW_COUNT; i++)
		done = settings_copy_one(to, from, &rows[i]) && done;
	return done;
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_value(
	const struct settings *a, const struct settings *b, const struct setting_row *row)
{
	const void *left = const_field_of(a, row), *right = const_field_of(b, row);

	if (row->kind->is_text)
		return is_same_text(*(char *const *)left, *(char *const *)right);
	return memcmp(left, right, row->kind->size) == 0;
}

const char *settings_next_difference(
	const struct settings *a, const struct settings *b, size_t *at)
{
	while (*at < ROW_COUNT) {
		const struct setting_row *row = &rows[(*at)++];

		if (!is_same_value(a, b, row))
			return row->name;
	}
	return NULL;
}

bool settings_group_differs(
	const struct settings *a, const struct settings *b, enum setting_group group)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (rows[i].group == group && !is_same_value(a, b, &rows[i]))
			return true;
	}
	return false;
}

void settings_free(struct settings *settings)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		char **text = field_of(settings, &rows[i]);

		if (!rows[i].kind->is_text || !*text)
			continue;
		/* It may be a password, or contain one. */
		explicit_bzero(*text, strlen(*text));
		free(*text);
		*text = NULL;
	}
}

bool settings_is_changeable(const struct setting_row *row)
{
	return row->when != SETTING_RESTART;
}
