/* SPDX-License-Identifier: ISC */
#include "config/ident.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/references.h"
#include "config/file.h"
#include "config/pattern.h"
#include "config/tokens.h"

struct ident_line {
	char *map, *system_user;
	char *database_user; /* NULL: any user */
	struct pattern *pattern; /* for the system user; NULL: it is a plain name */
};

struct ident {
	reference_count references;
	struct ident_line *lines; /* sorted by map */
	size_t count, capacity;
};

static const char group_mark[] = "\\1";

static void free_line(struct ident_line *line)
{
	free(line->map);
	free(line->system_user);
	free(line->database_user);
	pattern_free(line->pattern);
}

/* --- reading ------------------------------------------------------------------------------ */

struct reading {
	const char *name; /* the name of the file */
	struct ident *ident;
	struct tokens tokens;
	struct problems *problems;
	bool no_memory;
};

/* Skip the present line with this reason. */
static bool refuse(struct reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static bool refuse(struct reading *reading, const char *format, ...)
{
	const unsigned line = reading->tokens.line;
	va_list arguments;
	char why[256];

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	problems_add(reading->problems, PROBLEM_SKIPPED, reading->name, line, "%s", why);
	problems_log_as(reading->problems, "ident line %u: %s", line, why);
	problems_log_as(reading->problems, "could not parse ident config line %u", line);
	return false;
}

/* Copy the present token and go to the next one. */
static char *copy_token(struct reading *reading)
{
	char *text = strdup(reading->tokens.text);

	if (!text)
		reading->no_memory = true;
	tokens_next(&reading->tokens);
	return text;
}

static bool is_name(const struct tokens *tokens)
{
	return tokens->kind == TOKEN_BARE || tokens->kind == TOKEN_QUOTED;
}

static bool read_system_user(struct reading *reading, struct ident_line *line)
{
	char why[160];

	if (!is_name(&reading->tokens))
		return refuse(reading, "a line is MAP SYSTEM-USER DATABASE-USER");
	line->system_user = copy_token(reading);
	if (!line->system_user || line->system_user[0] != '/')
		return line->system_user != NULL;
	line->pattern = pattern_new(line->system_user + 1, why, sizeof(why));
	if (!line->pattern)
		return refuse(reading, "bad regular expression: %s", why);
	return true;
}

static bool read_database_user(struct reading *reading, struct ident_line *line)
{
	if (!is_name(&reading->tokens))
		return refuse(reading, "a line is MAP SYSTEM-USER DATABASE-USER");
	if (tokens_is_word(&reading->tokens, "all")) {
		tokens_next(&reading->tokens);
		return true;
	}
	line->database_user = copy_token(reading);
	if (!line->database_user)
		return false;
	if (line->pattern && strstr(line->database_user, group_mark) &&
		pattern_groups(line->pattern) == 0)
		return refuse(reading, "\\1 needs a group in the regular expression");
	return true;
}

static bool read_line(struct reading *reading, struct ident_line *line)
{
	if (reading->tokens.kind != TOKEN_BARE)
		return refuse(reading, "a line is MAP SYSTEM-USER DATABASE-USER");
	line->map = copy_token(reading);
	if (!line->map || !read_system_user(reading, line) ||
		!read_database_user(reading, line))
		return false;
	if (reading->tokens.kind != TOKEN_END)
		return refuse(reading, "unsupported parameters");
	return true;
}

/* Takes ownership of the line's content, unless it returns false: out of memory. */
static bool add_line(struct ident *ident, struct ident_line *line)
{
	if (ident->count == ident->capacity) {
		const size_t capacity = ident->capacity ? ident->capacity * 2 : 16;
		struct ident_line *lines = realloc(ident->lines, capacity * sizeof(*lines));

		if (!lines)
			return false;
		ident->lines = lines;
		ident->capacity = capacity;
	}
	ident->lines[ident->count++] = *line;
	return true;
}

static void read_lines(struct reading *reading)
{
	while (!reading->no_memory && tokens_next_line(&reading->tokens)) {
		struct ident_line line = {0};

		if (read_line(reading, &line)) {
			if (add_line(reading->ident, &line))
				continue;
			reading->no_memory = true;
		}
		free_line(&line);
	}
}

static int compare_lines(const void *a, const void *b)
{
	const struct ident_line *left = a, *right = b;

	return strcmp(left->map, right->map);
}

struct ident *ident_parse(
	const char *name, const char *text, size_t length, struct problems *problems)
{
	struct reading reading = {.name = name, .problems = problems};
	struct ident *ident = reading.ident = calloc(1, sizeof(*ident));

	if (ident && tokens_begin(&reading.tokens, text, length)) {
		ident->references = 1;
		read_lines(&reading);
		tokens_end(&reading.tokens);
		if (!reading.no_memory) {
			if (ident->count > 0)
				qsort(ident->lines, ident->count, sizeof(ident->lines[0]),
					compare_lines);
			return ident;
		}
		ident_unref(ident);
	} else {
		free(ident);
	}
	problems_add(problems, PROBLEM_ERROR, name, 0, "out of memory");
	return NULL;
}

struct ident *ident_load(const char *path, struct problems *problems)
{
	struct file_text file;
	struct ident *ident;

	file_list_note(problems->files, path);
	if (!file_read(path, IDENT_FILE_LIMIT, &file)) {
		problems_add(problems, PROBLEM_SKIPPED, path, 0,
			"could not open ident config file %s: %s", path, strerror(errno));
		return ident_parse(path, "", 0, problems);
	}
	ident = ident_parse(path, file.text, file.length, problems);
	file_text_free(&file);
	return ident;
}

struct ident *ident_ref(struct ident *ident)
{
	if (ident)
		reference_take(&ident->references);
	return ident;
}

void ident_unref(struct ident *ident)
{
	if (!ident || !reference_drop(&ident->references))
		return;
	for (size_t i = 0; i < ident->count; i++)
		free_line(&ident->lines[i]);
	free(ident->lines);
	free(ident);
}

/* --- lookup ------------------------------------------------------------------------------- */

/* Index of the first line of this map or, with `behind`, of the first line after it. */
static size_t bound(const struct ident *ident, const char *name, bool behind)
{
	size_t low = 0, high = ident ? ident->count : 0;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (strcmp(ident->lines[middle].map, name) < (behind ? 1 : 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct ident_map ident_find_map(const struct ident *ident, const char *name)
{
	const size_t first = bound(ident, name, false), end = bound(ident, name, true);

	if (first == end)
		return (struct ident_map){0};
	return (struct ident_map){&ident->lines[first], end - first};
}

const char *ident_map_name(const struct ident_map *map)
{
	return map->lines[0].map;
}

/* Whether `user` equals the wanted text after the first \1 is replaced by the group's match. */
static bool equals_with_group(
	const char *wanted, const char *group, size_t group_length, const char *user)
{
	const char *mark = strstr(wanted, group_mark);
	const size_t before = mark ? (size_t)(mark - wanted) : 0;

	if (!mark)
		return strcmp(wanted, user) == 0;
	if (!group || strncmp(user, wanted, before) != 0 ||
		strncmp(user + before, group, group_length) != 0)
		return false;
	return strcmp(user + before + group_length, mark + strlen(group_mark)) == 0;
}

static bool line_allows(
	const struct ident_line *line, const char *system_user, const char *database_user)
{
	const char *group;
	size_t length;

	if (!line->pattern)
		return strcmp(line->system_user, system_user) == 0 &&
			(!line->database_user ||
				strcmp(line->database_user, database_user) == 0);
	if (!pattern_matches(line->pattern, system_user, &group, &length))
		return false;
	return !line->database_user ||
		equals_with_group(line->database_user, group, length, database_user);
}

bool ident_map_allows(
	const struct ident_map *map, const char *system_user, const char *database_user)
{
	for (size_t i = 0; i < map->count; i++) {
		if (line_allows(&map->lines[i], system_user, database_user))
			return true;
	}
	return false;
}
