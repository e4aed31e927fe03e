/* SPDX-License-Identifier: ISC */
#include "config/ini.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/file.h"
#include "config/folder.h"

struct reading {
	const struct ini_events *events;
	void *context;
	struct problems *problems;
	unsigned depth; /* of %include nesting */
	const void *section; /* returned by the section() callback */
	bool in_section;
	bool missed_section; /* the error about a missing section was reported */
	bool stopped;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static char *skip_blanks(char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

static void cut_trailing_blanks(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && is_blank(text[length - 1]))
		length--;
	text[length] = '\0';
}

static void refuse_line(const struct reading *reading, const struct ini_place *place)
{
	problems_add(reading->problems, PROBLEM_ERROR, place->file, place->line,
		"syntax error: a line is `[section]`, `key = value`, `%%include PATH`, or "
		"starts "
		"with ; or #");
	problems_log_as(reading->problems,
		"syntax error in configuration (%s:%u), stopping loading", place->file,
		place->line);
}

/*
 * Split a line at the `=`: terminate the key with a NUL, find the value. Returns false if it
 * is not a pair.
 */
static bool split_pair(char *at, char **key, char **value)
{
	static const char key_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_.-*";
	char *end, *equals;

	if (*at == '\'') {
		*key = at + 1;
		end = strchr(*key, '\'');
		if (!end)
			return false;
		equals = end + 1;
	} else {
		*key = at;
		end = at + strspn(at, key_bytes);
		if (end == at)
			return false;
		equals = end;
	}
	while (*equals == ' ' || *equals == '\t')
		equals++;
	if (*equals != '=')
		return false;
	*end = '\0';
	*value = skip_blanks(equals + 1);
	cut_trailing_blanks(*value);
	return true;
}

static void read_pair(struct reading *reading, const struct ini_place *place, char *at)
{
	char *key, *value;

	if (!split_pair(at, &key, &value)) {
		refuse_line(reading, place);
		return;
	}
	if (reading->in_section) {
		reading->events->pair(reading->context, reading->section, place, key, value);
		return;
	}
	if (reading->missed_section)
		return;
	reading->missed_section = true;
	problems_add(reading->problems, PROBLEM_ERROR, place->file, place->line,
		"load_init_file: value without section: %s", key);
}

static void read_text(struct reading *reading, const char *name, char *text, size_t length);

/*
 * Nesting too deep. Parsing ends here, since files that include each other would be read a
 * thousand times.
 */
static void refuse_nesting(struct reading *reading, const struct ini_place *place)
{
	problems_add(reading->problems, PROBLEM_ERROR, place->file, place->line,
		"include nesting level too deep: %d levels are allowed", INI_NESTING_LIMIT);
	problems_log_as(reading->problems,
		"include nesting level too deep (%s:%u), stopping loading", place->file,
		place->line);
	reading->stopped = true;
}

static void refuse_include(
	struct reading *reading, const struct ini_place *place, const char *path)
{
	const char *why = strerror(errno);

	problems_add(reading->problems, PROBLEM_ERROR, place->file, place->line,
		"could not load file \"%s\": %s", path, why);
	problems_log_as(reading->problems, "could not load file \"%s\": %s", path, why);
	problems_log_as(reading->problems,
		"error processing include file in configuration (%s:%u), stopping loading",
		place->file, place->line);
}

static void read_included(
	struct reading *reading, const struct ini_place *place, const char *path)
{
	struct file_text file;

	if (!file_read(path, INI_FILE_LIMIT, &file)) {
		refuse_include(reading, place, path);
		return;
	}
	reading->depth++;
	read_text(reading, path, file.text, file.length);
	reading->depth--;
	file_text_free(&file);
}

static void include_file(
	struct reading *reading, const struct ini_place *place, const char *path)
{
	file_list_note(reading->problems->files, path);
	read_included(reading, place, path);
}

/*
 * Each file starts in the section of the including line, whatever section the file before
 * ended in.
 */
static void include_folder(
	struct reading *reading, const struct ini_place *place, const char *path)
{
	static const char suffix[] = ".ini";
	const void *section = reading->section;
	const bool in_section = reading->in_section;
	struct folder folder;

	file_list_note_folder(reading->problems->files, path, suffix);
	if (!folder_list(path, suffix, &folder)) {
		refuse_include(reading, place, path);
		return;
	}
	for (size_t i = 0; i < folder.count && !reading->stopped; i++) {
		file_list_note_in_folder(reading->problems->files, folder.paths[i]);
		read_included(reading, place, folder.paths[i]);
		reading->section = section;
		reading->in_section = in_section;
	}
	folder_free(&folder);
}

/* `FOLDER/` followed by `*.ini` means the same as the directory. */
static void cut_wildcard(char *path)
{
	static const char wildcard[] = "/*.ini";
	const size_t length = strlen(path), cut = strlen(wildcard);

	if (length > cut && strcmp(path + length - cut, wildcard) == 0)
		path[length - cut] = '\0';
}

static void include(struct reading *reading, const struct ini_place *place, char *path)
{
	cut_wildcard(path);
	if (reading->depth == INI_NESTING_LIMIT)
		refuse_nesting(reading, place);
	else if (folder_exists(path))
		include_folder(reading, place, path);
	else
		include_file(reading, place, path);
}

static void read_directive(struct reading *reading, const struct ini_place *place, char *at)
{
	static const char directive[] = "%include";
	char *path = at + strlen(directive);

	if (strncmp(at, directive, strlen(directive)) != 0 || !is_blank(*path)) {
		refuse_line(reading, place);
		return;
	}
	path = skip_blanks(path);
	cut_trailing_blanks(path);
	if (*path == '\0')
		refuse_line(reading, place);
	else
		include(reading, place, path);
}

static void read_line(struct reading *reading, const struct ini_place *place, char *at)
{
	for (;;) {
		char *end;

		at = skip_blanks(at);
		if (*at != '[')
			break;
		end = strchr(at, ']');
		if (!end) {
			refuse_line(reading, place);
			return;
		}
		*end = '\0';
		reading->in_section = true;
		reading->section = reading->events->section(reading->context, place, at + 1);
		at = end + 1;
	}
	if (*at == '\0' || *at == ';' || *at == '#')
		return;
	if (*at == '%')
		read_directive(reading, place, at);
	else
		read_pair(reading, place, at);
}

static unsigned line_of(const char *text, const char *at)
{
	unsigned line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

/* The text has a NUL after its length and is modified. */
static void read_text(struct reading *reading, const char *name, char *text, size_t length)
{
	struct ini_place place = {.file = name};
	const char *nul = memchr(text, '\0', length);
	char *next = text;

	if (nul) {
		const unsigned line = line_of(text, nul);

		problems_add(reading->problems, PROBLEM_ERROR, name, line,
			"syntax error: this is no text, it holds a NUL byte");
		problems_log_as(reading->problems,
			"syntax error in configuration (%s:%u), stopping loading", name, line);
		return;
	}
	while (next && !reading->stopped) {
		char *line = next;

		place.line++;
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		read_line(reading, &place, line);
	}
}

void ini_read_text(const char *name, const char *text, size_t length,
	const struct ini_events *events, void *context, struct problems *problems)
{
	struct reading reading = {.events = events, .context = context, .problems = problems};
	char *copy = malloc(length + 1);

	if (!copy) {
		problems_add(problems, PROBLEM_ERROR, name, 0, "out of memory");
		return;
	}
	memcpy(copy, text, length);
	copy[length] = '\0';
	read_text(&reading, name, copy, length);
	explicit_bzero(copy, length);
	free(copy);
}

bool ini_read(const char *path, const struct ini_events *events, void *context,
	struct problems *problems)
{
	struct reading reading = {.events = events, .context = context, .problems = problems};
	struct file_text file;

	file_list_note(problems->files, path);
	if (!file_read(path, INI_FILE_LIMIT, &file)) {
		problems_add(problems, PROBLEM_ERROR, path, 0, "could not load file \"%s\": %s",
			path, strerror(errno));
		return false;
	}
	read_text(&reading, path, file.text, file.length);
	file_text_free(&file);
	return true;
}
