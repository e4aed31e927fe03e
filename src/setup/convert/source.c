/* SPDX-License-Identifier: ISC */
#include "setup/convert/source.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* --- memory ------------------------------------------------------------------------------- */

enum { BLOCK_SIZE = 64 * 1024 };

struct source_block {
	struct source_block *next;
	size_t size, used; /* of `bytes` */
	_Alignas(max_align_t) unsigned char bytes[];
};

static struct source_block *add_block(struct source *source, size_t size)
{
	struct source_block *block;

	if (size > SOURCE_MEMORY_MOST - source->memory)
		return NULL;
	block = calloc(1, sizeof(*block) + size);
	if (!block)
		return NULL;
	source->memory += size;
	block->size = size;
	block->next = source->blocks;
	source->blocks = block;
	return block;
}

void *source_take(struct source *source, size_t size)
{
	const size_t unit = _Alignof(max_align_t);
	const size_t rounded = (size + unit - 1) / unit * unit;
	struct source_block *block = source->blocks;
	void *taken;

	if (!block || block->size - block->used < rounded)
		block = add_block(source, rounded > BLOCK_SIZE ? rounded : BLOCK_SIZE);
	if (!block)
		return NULL;
	taken = block->bytes + block->used;
	block->used += rounded;
	return taken;
}

void source_init(struct source *source)
{
	*source = (struct source){.root = {.kind = SOURCE_TABLE, .file = ""}};
}

void source_free(struct source *source)
{
	struct source_block *block = source->blocks;

	while (block) {
		struct source_block *next = block->next;

		explicit_bzero(block->bytes, block->used);
		free(block);
		block = next;
	}
	source_init(source);
}

char *source_copy(struct source *source, const void *bytes, size_t length)
{
	char *copy = source_take(source, length + 1);

	if (copy && length > 0)
		memcpy(copy, bytes, length);
	return copy;
}

/* --- the tree ----------------------------------------------------------------------------- */

struct source_node *source_add(struct source *source, struct source_node *parent,
	enum source_kind kind, const char *name, const char *file, unsigned line)
{
	struct source_node *node;

	if (source->nodes >= SOURCE_NODES_MOST || parent->children >= SOURCE_CHILDREN_MOST)
		return NULL;
	node = source_take(source, sizeof(*node));
	if (!node)
		return NULL;
	node->kind = kind;
	node->name = name;
	node->file = file;
	node->line = line;
	if (parent->last)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
	parent->children++;
	source->nodes++;
	return node;
}

struct source_node *source_add_argument(struct source *source, struct source_node *node,
	enum source_kind kind, const char *text, unsigned line)
{
	struct source_node *added;

	if (!node->arguments) {
		node->arguments = source_take(source, sizeof(*node->arguments));
		if (!node->arguments)
			return NULL;
		node->arguments->kind = SOURCE_LIST;
	}
	added = source_add(source, node->arguments, kind, NULL, node->file, line);
	if (added)
		added->text = text;
	return added;
}

struct source_node *source_find(const struct source_node *parent, const char *name)
{
	struct source_node *node = parent ? parent->first : NULL;

	while (node && (!node->name || strcmp(node->name, name) != 0))
		node = node->next;
	return node;
}

const char *source_text(const struct source_node *parent, const char *name)
{
	const struct source_node *node = source_find(parent, name);

	return node && node->kind <= SOURCE_STRING ? node->text : NULL;
}

/* --- mistakes ----------------------------------------------------------------------------- */

enum { SHOWN_MOST = 90 };

/* The line of `at`: its number, and its first and last byte. */
static unsigned find_line(
	const char *text, size_t length, const char *at, const char **start, const char **end)
{
	unsigned line = 1;

	*start = text;
	for (const char *c = text; c < at; c++) {
		if (*c == '\n') {
			line++;
			*start = c + 1;
		}
	}
	*end = memchr(at, '\n', (size_t)(text + length - at));
	if (!*end)
		*end = text + length;
	return line;
}

static bool has_word(const char *start, const char *end, const char *word)
{
	const size_t length = strlen(word);

	for (; (size_t)(end - start) >= length; start++) {
		if (strncasecmp(start, word, length) == 0)
			return true;
	}
	return false;
}

/* How many characters a text has. */
static int count_characters(const char *text)
{
	int count = 0;

	for (; *text != '\0'; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

/* Whether the line can be shown: it is short, and has no password. */
static bool may_show(const char *start, const char *end)
{
	return end - start <= SHOWN_MOST && !has_word(start, end, "pass") &&
		!has_word(start, end, "secret") && !has_word(start, end, "bindpw");
}

void source_refuse(struct problems *problems, const char *file, const char *text, size_t length,
	const char *at, const char *format, ...)
{
	char why[256], shown[SHOWN_MOST * 4 + 1], before[SHOWN_MOST * 4 + 1];
	const char *start, *end;
	unsigned line;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	line = find_line(text, length, at, &start, &end);
	if (!may_show(start, end)) {
		problems_add(problems, PROBLEM_ERROR, file, line, "column %zu: %s",
			(size_t)(at - start) + 1, why);
		return;
	}
	while (start < at && (*start == ' ' || *start == '\t'))
		start++;
	text_escape(shown, sizeof(shown), start, (size_t)(end - start));
	text_escape(before, sizeof(before), start, (size_t)(at - start));
	problems_add(problems, PROBLEM_ERROR, file, line, "%s\n    %s\n    %*s^", why, shown,
		count_characters(before), "");
}

bool source_is_text(
	struct problems *problems, const char *file, const char *text, size_t length)
{
	const char *at = text, *end = text + length;

	while (at < end) {
		const size_t size = text_utf8_length(at, (size_t)(end - at));

		if (size == 0 || *at == '\0') {
			source_refuse(problems, file, text, length, at, "this is no text: %s",
				size == 0 ? "a byte that is not UTF-8" : "a NUL byte");
			return false;
		}
		at += size;
	}
	return true;
}
