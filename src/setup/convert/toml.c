/* SPDX-License-Identifier: ISC */
#include "setup/convert/toml.h"

#include <string.h>

#include "setup/convert/toml_parts.h"

/* --- keys --------------------------------------------------------------------------------- */

static const char *read_bare_key(struct toml *toml)
{
	static const char bytes[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const char *start = toml->at;

	while (toml_peek(toml) != '\0' && strchr(bytes, *toml->at))
		toml->at++;
	if (toml->at == start) {
		toml_refuse(toml, start,
			"a key is missing here: letters, digits, _ and -, or a text in quotes");
		return NULL;
	}
	return source_copy(toml->source, start, (size_t)(toml->at - start));
}

/*
 * Read one part of a dotted key, and what follows it up to the next part. `*more` tells whether
 * a part follows. NULL, with an error, at a mistake.
 */
static const char *read_key(struct toml *toml, bool *more)
{
	const char *start = toml->at;
	const char quote = toml_peek(toml);
	const char *key;

	if (quote != '"' && quote != '\'') {
		key = read_bare_key(toml);
	} else if (toml->end - start > 2 && start[1] == quote && start[2] == quote) {
		toml_refuse(toml, start, "a key is in one pair of quotes");
		return NULL;
	} else {
		key = toml_read_string(toml);
	}
	if (!key)
		return NULL;
	toml_skip_blanks(toml);
	*more = toml_peek(toml) == '.';
	if (*more) {
		toml->at++;
		toml_skip_blanks(toml);
	}
	return key;
}

static struct source_node *add_node(struct toml *toml, struct source_node *parent,
	enum source_kind kind, const char *name, const char *at)
{
	struct source_node *node =
		source_add(toml->source, parent, kind, name, toml->file, toml->line);

	if (!node)
		toml_refuse(toml, at, "too much: %d values, and %d in one table, are allowed",
			SOURCE_NODES_MOST, SOURCE_CHILDREN_MOST);
	return node;
}

/* --- values ------------------------------------------------------------------------------- */

static bool read_value(struct toml *toml, struct source_node *node, unsigned depth);
static bool read_pair(struct toml *toml, struct source_node *table, unsigned depth);

/* Blanks, line ends and comments, between the items of an array. */
static bool skip_space(struct toml *toml)
{
	do {
		toml_skip_blanks(toml);
		if (!toml_skip_comment(toml))
			return false;
	} while (toml_skip_line_end(toml));
	return true;
}

static bool read_array(struct toml *toml, struct source_node *list, unsigned depth)
{
	const char *start = toml->at++;

	list->kind = SOURCE_LIST;
	list->mark = TOML_CLOSED;
	for (;;) {
		struct source_node *item;

		if (!skip_space(toml))
			return false;
		if (toml_peek(toml) == ']')
			break;
		item = add_node(toml, list, SOURCE_WORD, NULL, toml->at);
		if (!item || !read_value(toml, item, depth + 1) || !skip_space(toml))
			return false;
		if (toml_peek(toml) == ',')
			toml->at++;
		else if (toml_peek(toml) != ']')
			return toml_refuse(toml, toml->at < toml->end ? toml->at : start,
				"an array needs , between its items, and ] at its end");
	}
	toml->at++;
	return true;
}

static bool read_inline_table(struct toml *toml, struct source_node *table, unsigned depth)
{
	toml->at++;
	table->kind = SOURCE_TABLE;
	toml_skip_blanks(toml);
	for (bool first = true; first || toml_peek(toml) != '}'; first = false) {
		if (first && toml_peek(toml) == '}')
			break;
		if (!first) {
			if (toml_peek(toml) != ',')
				return toml_refuse(toml, toml->at,
					"an inline table needs , between its pairs, and } at its "
					"end, in one line");
			toml->at++;
			toml_skip_blanks(toml);
		}
		if (!read_pair(toml, table, depth + 1))
			return false;
		toml_skip_blanks(toml);
	}
	toml->at++;
	table->mark = TOML_CLOSED;
	return true;
}

/* The node is new; it gets its kind here. */
static bool read_value(struct toml *toml, struct source_node *node, unsigned depth)
{
	if (depth > SOURCE_DEPTH_MOST)
		return toml_refuse(toml, toml->at, "nested too deeply: %d levels are allowed",
			SOURCE_DEPTH_MOST);
	node->line = toml->line;
	switch (toml_peek(toml)) {
	case '[':
		return read_array(toml, node, depth);
	case '{':
		return read_inline_table(toml, node, depth);
	case '"':
	case '\'':
		node->kind = SOURCE_STRING;
		node->text = toml_read_string(toml);
		return node->text != NULL;
	default:
		node->kind = SOURCE_WORD;
		node->text = toml_read_word(toml);
		return node->text != NULL;
	}
}

/* The table that a part of a dotted key names. */
static struct source_node *enter_dotted(
	struct toml *toml, struct source_node *table, const char *key, const char *at)
{
	struct source_node *node = source_find(table, key);

	if (!node) {
		node = add_node(toml, table, SOURCE_TABLE, key, at);
		if (node)
			node->mark = TOML_DOTTED;
		return node;
	}
	if (node->kind == SOURCE_TABLE && node->mark == TOML_DOTTED)
		return node;
	toml_refuse(toml, at, "%s has a value already, in line %u", key, node->line);
	return NULL;
}

static bool read_pair(struct toml *toml, struct source_node *table, unsigned depth)
{
	const char *at = toml->at;
	struct source_node *node;
	bool more;
	const char *key = read_key(toml, &more);

	while (key && more) {
		table = enter_dotted(toml, table, key, at);
		if (!table)
			return false;
		if (++depth > SOURCE_DEPTH_MOST)
			return toml_refuse(toml, at, "nested too deeply: %d levels are allowed",
				SOURCE_DEPTH_MOST);
		key = read_key(toml, &more);
	}
	if (!key)
		return false;
	if (toml_peek(toml) != '=')
		return toml_refuse(toml, toml->at, "a pair is `key = value`");
	toml->at++;
	toml_skip_blanks(toml);
	node = source_find(table, key);
	if (node)
		return toml_refuse(
			toml, at, "%s has a value already, in line %u", key, node->line);
	node = add_node(toml, table, SOURCE_WORD, key, at);
	return node && read_value(toml, node, depth);
}

/* --- headers ------------------------------------------------------------------------------ */

/* The table that a part of a header names, before the last part. */
static struct source_node *enter_header(
	struct toml *toml, struct source_node *table, const char *key, const char *at)
{
	struct source_node *node = source_find(table, key);

	if (!node)
		return add_node(toml, table, SOURCE_TABLE, key, at);
	if (node->kind == SOURCE_LIST && node->mark == TOML_TABLES)
		return node->last;
	if (node->kind == SOURCE_TABLE && node->mark != TOML_CLOSED)
		return node;
	toml_refuse(toml, at, "%s is no table: it has a value in line %u", key, node->line);
	return NULL;
}

/* The table of the last part of [a.b]. */
static struct source_node *define_table(
	struct toml *toml, struct source_node *parent, const char *key, const char *at)
{
	struct source_node *node = source_find(parent, key);

	if (!node)
		node = add_node(toml, parent, SOURCE_TABLE, key, at);
	else if (node->kind != SOURCE_TABLE || node->mark != TOML_OPEN) {
		toml_refuse(toml, at, "%s is there already, in line %u", key, node->line);
		return NULL;
	}
	if (!node)
		return NULL;
	node->mark = TOML_DEFINED;
	node->line = toml->line;
	return node;
}

/* The new table of [[a.b]]. */
static struct source_node *append_table(
	struct toml *toml, struct source_node *parent, const char *key, const char *at)
{
	struct source_node *list = source_find(parent, key);
	struct source_node *table;

	if (!list) {
		list = add_node(toml, parent, SOURCE_LIST, key, at);
		if (!list)
			return NULL;
		list->mark = TOML_TABLES;
	}
	if (list->kind != SOURCE_LIST || list->mark != TOML_TABLES) {
		toml_refuse(toml, at, "%s is there already, in line %u", key, list->line);
		return NULL;
	}
	table = add_node(toml, list, SOURCE_TABLE, NULL, at);
	if (table)
		table->mark = TOML_DEFINED;
	return table;
}

/* Returns the table; NULL, with an error, at a mistake. */
static struct source_node *read_header(struct toml *toml)
{
	struct source_node *table = &toml->source->root;
	const char *start = toml->at;
	bool appends, more = true;

	toml->at++;
	appends = toml_peek(toml) == '[';
	toml->at += appends;
	toml_skip_blanks(toml);
	for (unsigned depth = 1; table && more; depth++) {
		const char *at = toml->at;
		const char *key = read_key(toml, &more);

		if (!key)
			return NULL;
		if (depth > SOURCE_DEPTH_MOST) {
			toml_refuse(toml, at, "nested too deeply: %d levels are allowed",
				SOURCE_DEPTH_MOST);
			return NULL;
		}
		if (more)
			table = enter_header(toml, table, key, at);
		else
			table = appends ? append_table(toml, table, key, at)
					: define_table(toml, table, key, at);
	}
	if (!table)
		return NULL;
	for (unsigned i = 0; i < 1u + appends; i++) {
		if (toml_peek(toml) != ']') {
			toml_refuse(toml, toml->at < toml->end ? toml->at : start,
				"a header ends in %s", appends ? "]]" : "]");
			return NULL;
		}
		toml->at++;
	}
	return table;
}

/* --- the file ----------------------------------------------------------------------------- */

static bool end_line(struct toml *toml)
{
	toml_skip_blanks(toml);
	if (!toml_skip_comment(toml))
		return false;
	return toml->at == toml->end || toml_skip_line_end(toml) ||
		toml_refuse(toml, toml->at, "only a comment may follow here");
}

static bool read_line(struct toml *toml, struct source_node **table)
{
	const char c = toml_peek(toml);

	if (c == '[') {
		*table = read_header(toml);
		if (!*table)
			return false;
	} else if (c != '#' && c != '\n' && c != '\r' && toml->at < toml->end) {
		if (!read_pair(toml, *table, 1))
			return false;
	}
	return end_line(toml);
}

bool toml_read(struct source *source, const char *file, const char *text, size_t length,
	struct problems *problems)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as editors may write it */
	struct toml toml = {source, file, text, text, text + length, 1, problems};
	struct source_node *table = &source->root;

	if (!source_is_text(problems, file, text, length))
		return false;
	if (length >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0)
		toml.at += strlen(mark);
	while (toml.at < toml.end) {
		toml_skip_blanks(&toml);
		if (!read_line(&toml, &table))
			return false;
	}
	return true;
}
