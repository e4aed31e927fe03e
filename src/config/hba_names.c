/* SPDX-License-Identifier: ISC */
#include "config/hba_names.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/file.h"

static bool read_list(
	struct hba_names_reader *reader, struct tokens *tokens, struct hba_names *out);

static bool refuse(struct hba_names_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static bool refuse(struct hba_names_reader *reader, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->why, sizeof(reader->why), format, arguments);
	va_end(arguments);
	return false;
}

static bool refuse_no_memory(struct hba_names_reader *reader)
{
	reader->no_memory = true;
	return refuse(reader, "out of memory");
}

static bool add_name(struct hba_names_reader *reader, struct hba_names *out, const char *name)
{
	if (out->count == out->capacity) {
		const size_t capacity = out->capacity ? out->capacity * 2 : 4;
		char **names = realloc(out->names, capacity * sizeof(*names));

		if (!names)
			return refuse_no_memory(reader);
		out->names = names;
		out->capacity = capacity;
	}
	out->names[out->count] = strdup(name);
	if (!out->names[out->count])
		return refuse_no_memory(reader);
	out->count++;
	return true;
}

/* --- @file -------------------------------------------------------------------------------- */

/*
 * The path of `@name` in `file`: relative to the directory of that file. NULL when out of
 * memory.
 */
static char *path_beside(const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	const int folder = slash && name[0] != '/' ? (int)(slash + 1 - file) : 0;
	char *path;

	return asprintf(&path, "%.*s%s", folder, file, name) < 0 ? NULL : path;
}

static bool read_text(
	struct hba_names_reader *reader, const struct file_text *file, struct hba_names *out)
{
	struct tokens tokens;
	bool good = true;

	if (!tokens_begin(&tokens, file->text, file->length))
		return refuse_no_memory(reader);
	while (good && tokens_next_line(&tokens)) {
		good = read_list(reader, &tokens, out);
		if (good && tokens.kind != TOKEN_END)
			good = refuse(reader, "%s:%u: names are separated by commas",
				reader->file, tokens.line);
	}
	tokens_end(&tokens);
	return good;
}

static bool read_file(struct hba_names_reader *reader, const char *path, struct hba_names *out)
{
	const char *outer = reader->file;
	struct file_text file;
	bool good;

	if (reader->depth == HBA_NESTING_LIMIT || reader->includes == HBA_INCLUDES_LIMIT)
		return refuse(reader, "@%s: files are nested too deep, or too many", path);
	file_list_note(reader->files, path);
	if (!file_read(path, HBA_FILE_LIMIT, &file))
		return refuse(reader, "could not open @%s: %s", path, strerror(errno));
	reader->includes++;
	reader->depth++;
	reader->file = path;
	good = read_text(reader, &file, out);
	reader->file = outer;
	reader->depth--;
	file_text_free(&file);
	return good;
}

static bool include(struct hba_names_reader *reader, const char *name, struct hba_names *out)
{
	char *path;
	bool good;

	if (name[0] == '\0')
		return refuse(reader, "@ without the name of a file");
	path = path_beside(reader->file, name);
	if (!path)
		return refuse_no_memory(reader);
	good = read_file(reader, path, out);
	free(path);
	return good;
}

/* --- lists -------------------------------------------------------------------------------- */

static bool read_word(struct hba_names_reader *reader, const char *word, struct hba_names *out)
{
	static const struct {
		const char *word;
		unsigned keyword; /* 0: a keyword of PostgreSQL that is not supported here */
	} words[] = {
		{"all", HBA_ALL},
		{"replication", HBA_REPLICATION},
		{"samegroup", 0},
		{"samerole", 0},
		{"sameuser", HBA_SAMEUSER},
	};

	if (word[0] == '@')
		return include(reader, word + 1, out);
	if (word[0] == '+')
		return refuse(reader, "%.64s: groups are not supported", word);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].word, word) != 0)
			continue;
		if (words[i].keyword == 0)
			return refuse(reader, "%s is not supported", word);
		out->keywords |= words[i].keyword;
		return true;
	}
	return add_name(reader, out, word);
}

static bool read_item(
	struct hba_names_reader *reader, const struct tokens *tokens, struct hba_names *out)
{
	switch (tokens->kind) {
	case TOKEN_BARE:
		return read_word(reader, tokens->text, out);
	case TOKEN_QUOTED:
		return add_name(reader, out, tokens->text);
	case TOKEN_BROKEN:
		return refuse(reader, "a quote is not closed");
	case TOKEN_COMMA:
	case TOKEN_END:
		break;
	}
	return refuse(reader, "a name is missing");
}

static bool read_list(
	struct hba_names_reader *reader, struct tokens *tokens, struct hba_names *out)
{
	for (;;) {
		if (!read_item(reader, tokens, out))
			return false;
		tokens_next(tokens);
		if (tokens->kind != TOKEN_COMMA)
			return true;
		tokens_next(tokens);
	}
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool hba_names_read(
	struct hba_names_reader *reader, struct tokens *tokens, struct hba_names *out)
{
	const bool good = read_list(reader, tokens, out);

	if (out->count > 0)
		qsort(out->names, out->count, sizeof(out->names[0]), compare_names);
	return good;
}

bool hba_names_has(const struct hba_names *names, const char *name)
{
	return names->count > 0 &&
		bsearch(&name, names->names, names->count, sizeof(names->names[0]),
			compare_names) != NULL;
}

void hba_names_free(struct hba_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct hba_names){0};
}
