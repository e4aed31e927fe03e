/* SPDX-License-Identifier: ISC */
/*
 * The configuration of another pooler, as its reader has found it: a tree of names and values
 * with their places. What the names mean is not known here.
 *
 * All nodes and texts are owned by the source and valid until source_free(). They may hold
 * passwords: the memory is wiped. The number of nodes and the memory are limited, so that a
 * hostile file takes neither the memory nor the time of the process.
 */
#ifndef PGUSHER_SETUP_CONVERT_SOURCE_H
#define PGUSHER_SETUP_CONVERT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/problems.h"

enum {
	SOURCE_NODES_MOST = 100000,
	/* Names are looked up one by one: this bounds the time of it. */
	SOURCE_CHILDREN_MOST = 10000,
	/* Size limit of one file, and of all files that it includes, in bytes. */
	SOURCE_FILE_LIMIT = 4 * 1024 * 1024,
	/* Of all nodes and texts, in bytes: long names may be parts of many texts. */
	SOURCE_MEMORY_MOST = 256 * 1024 * 1024,
	/* Nesting of values, and of blocks. */
	SOURCE_DEPTH_MOST = 32,
};

enum source_kind {
	SOURCE_WORD, /* a bare word: a number, a switch, a keyword */
	SOURCE_STRING, /* in quotes; the text is without them */
	SOURCE_LIST, /* its items are its children, which have no names */
	SOURCE_TABLE, /* its entries are its children, which have names */
};

struct source_node {
	const char *name; /* NULL: an item of a list */
	/* Of a word or string. Of a table: what follows its name, or NULL. */
	const char *text;
	/* Of a table: what follows the text; a list. NULL: none. */
	struct source_node *arguments;
	struct source_node *first, *last; /* children, in the order of the file */
	struct source_node *next;
	const char *file;
	unsigned line; /* from 1 */
	unsigned children;
	enum source_kind kind;
	unsigned mark; /* for the reader that makes the nodes */
};

struct source_block;

struct source {
	struct source_node root; /* a table */
	struct source_block *blocks;
	size_t nodes;
	size_t memory; /* of the blocks, in bytes */
};

/* Make an empty source. */
void source_init(struct source *source);

/* Wipe and free all memory. */
void source_free(struct source *source);

/* Zeroed memory that lives as long as the source; NULL when out of memory, or at the limit. */
void *source_take(struct source *source, size_t size);

/* Copy bytes into a text of the source; NULL when out of memory. */
char *source_copy(struct source *source, const void *bytes, size_t length);

/*
 * Add a child at the end; `name` and `file` are texts of the source, or static. Returns NULL
 * when out of memory, or when a limit is reached.
 */
struct source_node *source_add(struct source *source, struct source_node *parent,
	enum source_kind kind, const char *name, const char *file, unsigned line);

/* Likewise, for a value behind the text of a node: it is added to its arguments. */
struct source_node *source_add_argument(struct source *source, struct source_node *node,
	enum source_kind kind, const char *text, unsigned line);

/* The first child with this name; NULL: none, also if there is no parent. */
struct source_node *source_find(const struct source_node *parent, const char *name);

/* The text of the first child with this name, if it is a word or a string; else NULL. */
const char *source_text(const struct source_node *parent, const char *name);

/*
 * Add an error at the byte `at` of the text of a file: with its line, and, unless the line may
 * show a password, the line itself with a caret below the place.
 */
void source_refuse(struct problems *problems, const char *file, const char *text, size_t length,
	const char *at, const char *format, ...) __attribute__((format(printf, 6, 7)));

/*
 * Find what no text file has: a NUL, or bytes that are no UTF-8. Adds an error and returns false
 * if there is any.
 */
bool source_is_text(
	struct problems *problems, const char *file, const char *text, size_t length);

#endif
