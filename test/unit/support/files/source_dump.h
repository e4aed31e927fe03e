/* SPDX-License-Identifier: ISC */
/*
 * Shared by tests of readers of other poolers' files: the tree of a source as a text, and what a
 * reader says of a mistake.
 */
#ifndef PGUSHER_TEST_SOURCE_DUMP_H
#define PGUSHER_TEST_SOURCE_DUMP_H

#include "setup/convert/source.h"
#include "support/files/config_files.h"

typedef bool source_reader(struct source *source, const char *file, const char *text,
	size_t length, struct problems *problems);

static inline void dump_node(FILE *out, const struct source_node *node)
{
	const struct source_node *child;

	if (node->name)
		fprintf(out, "%s=", node->name);
	if (node->text)
		fprintf(out, node->kind == SOURCE_WORD ? "%s" : "'%s'", node->text);
	for (child = node->arguments ? node->arguments->first : NULL; child;
		child = child->next)
		fprintf(out, "+%s", child->text);
	if (node->kind < SOURCE_LIST)
		return;
	fputc(node->kind == SOURCE_LIST ? '[' : '{', out);
	for (child = node->first; child; child = child->next) {
		dump_node(out, child);
		if (child->next)
			fputc(' ', out);
	}
	fputc(node->kind == SOURCE_LIST ? ']' : '}', out);
}

/* What a reader makes of a text: the tree, or the line and text of its error. */
static inline void check_reading(
	source_reader *read, const char *text, size_t length, const char *expected)
{
	struct problems problems = {0};
	struct source source;
	char got[8192] = "";
	FILE *out = fmemopen(got, sizeof(got), "w");

	source_init(&source);
	if (read(&source, "f", text, length, &problems)) {
		assert_int_equal(problems.count, 0);
		dump_node(out, &source.root);
	} else {
		assert_int_equal(problems.errors, 1);
		fprintf(out, "%u: %s", problems.list[0].line, problems.list[0].text);
	}
	fclose(out);
	if (strncmp(got, expected, strlen(expected)) != 0 ||
		(expected[0] == '{' && strcmp(got, expected) != 0))
		fail_msg("%s\nbecame %s\nnot %s", text, got, expected);
	source_free(&source);
	problems_free(&problems);
}

#endif
