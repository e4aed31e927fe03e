/* SPDX-License-Identifier: ISC */
#include "setup/convert/odyssey_reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/file.h"

/* What the files of one configuration share. */
struct reading {
	struct source *source;
	struct problems *problems;
	unsigned files, nesting;
	size_t bytes; /* of all files */
};

/* One file. */
struct scanner {
	struct reading *reading;
	const char *file; /* a text of the source */
	const char *text, *at, *end;
	unsigned line; /* of `at` */
};

static bool refuse(const struct scanner *scanner, const char *at, const char *why)
{
	source_refuse(scanner->reading->problems, scanner->file, scanner->text,
		(size_t)(scanner->end - scanner->text), at, "%s", why);
	return false;
}

static void skip_space(struct scanner *scanner)
{
	while (scanner->at < scanner->end) {
		if (*scanner->at == '#') {
			const char *end =
				memchr(scanner->at, '\n', (size_t)(scanner->end - scanner->at));

			scanner->at = end ? end : scanner->end;
		} else if (!isspace((unsigned char)*scanner->at)) {
			return;
		} else {
			scanner->line += *scanner->at == '\n';
			scanner->at++;
		}
	}
}

static bool is_word_byte(char c)
{
	return isalnum((unsigned char)c) || (c != '\0' && strchr("_-./:*", c) != NULL);
}

/* The length of the word at the front. */
static size_t word_length(const struct scanner *scanner)
{
	const char *at = scanner->at;

	while (at < scanner->end && is_word_byte(*at))
		at++;
	return (size_t)(at - scanner->at);
}

static bool is_word(const char *at, size_t length, const char *word)
{
	return length == strlen(word) && memcmp(at, word, length) == 0;
}

/* Whether the word at the front is a value; others begin a statement. */
static bool is_value(const char *word, size_t length)
{
	static const char *const words[] = {
		"yes", "no", "on", "off", "true", "false", "default"};

	if (length > 0 && (isdigit((unsigned char)word[0]) || word[0] == '-'))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (is_word(word, length, words[i]))
			return true;
	}
	return false;
}

/* --- values ------------------------------------------------------------------------------- */

/* The text in quotes at the front; NULL, with an error, if it has no end. */
static const char *read_string(struct scanner *scanner)
{
	const char *start = scanner->at++;
	char *out = malloc((size_t)(scanner->end - start) + 1);
	const char *copy = NULL;
	size_t length = 0;

	if (!out) {
		refuse(scanner, start, "out of memory");
		return NULL;
	}
	while (scanner->at < scanner->end && *scanner->at != '"') {
		const char *next = scanner->at + 1;

		if (*scanner->at == '\\' && next < scanner->end &&
			(*next == '"' || *next == '\\'))
			scanner->at++;
		scanner->line += *scanner->at == '\n';
		out[length++] = *scanner->at++;
	}
	if (scanner->at == scanner->end) {
		refuse(scanner, start, "the text that starts here has no closing \"");
	} else {
		scanner->at++;
		copy = source_copy(scanner->reading->source, out, length);
	}
	explicit_bzero(out, length);
	free(out);
	return copy;
}

/* Whether a value of this statement is at the front. */
static bool value_follows(const struct scanner *scanner, const struct source_node *node)
{
	static const char *const kinds[] = {"local", "host", "hostssl", "hostnossl"};
	const size_t length = word_length(scanner);

	if (scanner->at < scanner->end && *scanner->at == '"')
		return true;
	/* Kinds of connections stand behind the name of a user; elsewhere `host` is a statement. */
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (is_word(scanner->at, length, kinds[i]))
			return node->text && strcmp(node->name, "user") == 0;
	}
	return is_value(scanner->at, length);
}

/* Read the value at the front: the first becomes the text of the node, others its arguments. */
static bool read_value(struct scanner *scanner, struct source_node *node)
{
	struct source *source = scanner->reading->source;
	const char *start = scanner->at;
	const enum source_kind kind = *start == '"' ? SOURCE_STRING : SOURCE_WORD;
	const unsigned line = scanner->line;
	const char *text;

	if (kind == SOURCE_STRING) {
		text = read_string(scanner);
		if (!text)
			return false;
	} else {
		const size_t length = word_length(scanner);

		text = source_copy(source, start, length);
		scanner->at += length;
	}
	if (text && !node->text) {
		node->kind = kind;
		node->text = text;
	} else if (!text || !source_add_argument(source, node, kind, text, line)) {
		return refuse(scanner, start, "too many values");
	}
	return true;
}

/* --- include ------------------------------------------------------------------------------ */

static bool read_file(struct reading *reading, struct source_node *parent, const char *file,
	const char *text, size_t length, unsigned depth);

/* `NAME` in the folder of the file that includes it; NULL when out of memory. */
static char *beside(const struct scanner *scanner, const char *name)
{
	const char *slash = strrchr(scanner->file, '/');
	char *path;

	if (asprintf(&path, "%.*s%s", slash ? (int)(slash - scanner->file) + 1 : 0,
		    scanner->file, name) < 0)
		return NULL;
	return path;
}

/* Read the file as it is named, or from the folder of the including file. */
static bool load(const struct scanner *scanner, const char *name, struct file_text *file,
	const char **path)
{
	struct source *source = scanner->reading->source;
	char *other;
	bool done;

	*path = name;
	if (file_read(name, SOURCE_FILE_LIMIT, file))
		return true;
	if (errno != ENOENT || name[0] == '/')
		return false;
	other = beside(scanner, name);
	if (!other)
		return false;
	done = file_read(other, SOURCE_FILE_LIMIT, file);
	if (done) {
		*path = source_copy(source, other, strlen(other));
		if (!*path) {
			file_text_free(file);
			errno = ENOMEM;
			done = false;
		}
	}
	free(other);
	return done;
}

/* `at` is the keyword. */
static bool include(
	struct scanner *scanner, struct source_node *parent, const char *at, unsigned depth)
{
	struct reading *reading = scanner->reading;
	struct file_text file;
	const char *path, *name;
	char why[200];
	bool done;

	skip_space(scanner);
	if (scanner->at == scanner->end || *scanner->at != '"')
		return refuse(scanner, at, "include needs the name of a file in quotes");
	name = read_string(scanner);
	if (!name)
		return false;
	if (reading->nesting == ODYSSEY_NESTING_LIMIT || reading->files == ODYSSEY_FILES_MOST)
		return refuse(scanner, at, "too many files include others");
	if (!load(scanner, name, &file, &path)) {
		snprintf(why, sizeof(why), "cannot read this file: %s", strerror(errno));
		return refuse(scanner, at, why);
	}
	if (file.length > SOURCE_FILE_LIMIT - reading->bytes) {
		file_text_free(&file);
		return refuse(scanner, at, "the included files are too large");
	}
	reading->bytes += file.length;
	reading->files++;
	reading->nesting++;
	done = read_file(reading, parent, path, file.text, file.length, depth);
	reading->nesting--;
	file_text_free(&file);
	return done;
}

/* --- statements --------------------------------------------------------------------------- */

static bool read_block(struct scanner *scanner, struct source_node *parent, unsigned depth,
	const char *opened);

/* The name of a statement; keys of options are in quotes. NULL, with an error, at a mistake. */
static const char *read_name(struct scanner *scanner)
{
	const char *start = scanner->at;
	const size_t length = word_length(scanner);
	const char *name;

	if (*start == '"')
		return read_string(scanner);
	if (length == 0 || is_value(start, length)) {
		refuse(scanner, start, "a keyword is missing here");
		return NULL;
	}
	name = source_copy(scanner->reading->source, start, length);
	scanner->at += length;
	return name;
}

static bool read_values(struct scanner *scanner, struct source_node *node, bool one)
{
	skip_space(scanner);
	while (value_follows(scanner, node)) {
		if (!read_value(scanner, node))
			return false;
		skip_space(scanner);
		if (one)
			break;
	}
	return true;
}

static bool read_statement(struct scanner *scanner, struct source_node *parent, unsigned depth)
{
	const char *start = scanner->at;
	const unsigned line = scanner->line;
	const char *name = read_name(scanner);
	struct source_node *node;

	if (!name)
		return false;
	if (strcmp(name, "include") == 0)
		return include(scanner, parent, start, depth);
	node = source_add(
		scanner->reading->source, parent, SOURCE_WORD, name, scanner->file, line);
	if (!node)
		return refuse(scanner, start, "too many statements");
	if (!read_values(scanner, node, *start == '"'))
		return false;
	if (scanner->at < scanner->end && *scanner->at == '{') {
		const char *opened = scanner->at++;

		node->kind = SOURCE_TABLE;
		return read_block(scanner, node, depth + 1, opened);
	}
	return node->text || refuse(scanner, start, "a value, or a block in { }, must follow");
}

/* Statements up to the `}` that ends the block, or to the end of the file if nothing opened it. */
static bool read_block(
	struct scanner *scanner, struct source_node *parent, unsigned depth, const char *opened)
{
	if (depth > SOURCE_DEPTH_MOST)
		return refuse(scanner, scanner->at, "nested too deeply");
	for (;;) {
		skip_space(scanner);
		if (scanner->at == scanner->end)
			return !opened ||
				refuse(scanner, opened, "the block that opens here has no }");
		if (*scanner->at == '}') {
			if (!opened)
				return refuse(scanner, scanner->at, "no block is open here");
			scanner->at++;
			return true;
		}
		if (*scanner->at == ';' || *scanner->at == ',')
			scanner->at++;
		else if (!read_statement(scanner, parent, depth))
			return false;
	}
}

static bool read_file(struct reading *reading, struct source_node *parent, const char *file,
	const char *text, size_t length, unsigned depth)
{
	struct scanner scanner = {reading, file, text, text, text + length, 1};

	return source_is_text(reading->problems, file, text, length) &&
		read_block(&scanner, parent, depth, NULL);
}

bool odyssey_read(struct source *source, const char *file, const char *text, size_t length,
	struct problems *problems)
{
	struct reading reading = {.source = source, .problems = problems, .bytes = length};

	return length <= SOURCE_FILE_LIMIT
		? read_file(&reading, &source->root, file, text, length, 0)
		: (problems_add(problems, PROBLEM_ERROR, file, 0, "the file is too large"),
			  false);
}
