/* SPDX-License-Identifier: ISC */
/*
 * Which rows of a SHOW are wanted, and in which order:
 *
 *	clauses :=  ( 'where' test ( 'and' test )* )?
 *	            ( 'order' 'by' column ( 'asc' | 'desc' )? ( ',' ... )* )?
 *	            ( 'limit' number )?  ( ';' )?
 *	test    :=  column ( '=' | '<>' | '!=' | '<' | '<=' | '>' | '>=' | 'not'? 'like' ) value
 *	         |  column 'is' 'not'? 'null'
 *	value   :=  one or more of [0-9A-Za-z_.+-]  |  "..."  |  '...'
 *
 * Pure; admin/show/selection applies them. Columns of numbers are compared as numbers, others byte by byte; but a number without
 * quotes is one to every column of text as well.
 */
#ifndef PGUSHER_ADMIN_SHOW_CLAUSES_H
#define PGUSHER_ADMIN_SHOW_CLAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/console/grammar.h"
#include "admin/show/result.h"

enum { CLAUSE_TESTS = 16, CLAUSE_KEYS = 8 };

enum comparison {
	COMPARE_EQUAL,
	COMPARE_UNEQUAL,
	COMPARE_LESS,
	COMPARE_LESS_OR_EQUAL,
	COMPARE_MORE,
	COMPARE_MORE_OR_EQUAL,
	COMPARE_LIKE,
	COMPARE_UNLIKE,
	COMPARE_NULL,
	COMPARE_NOT_NULL,
};

struct clause_test {
	unsigned column;
	enum comparison comparison;
	bool as_number;
	char value[COMMAND_VALUE_SIZE];
};

struct clause_key {
	unsigned column;
	bool descending;
};

struct clauses {
	struct clause_test tests[CLAUSE_TESTS]; /* all of them have to hold */
	unsigned test_count;
	struct clause_key keys[CLAUSE_KEYS]; /* the first is the most important */
	unsigned key_count;
	bool is_limited;
	uint64_t limit; /* rows */
};

/* Why a text is none; `text` is for people. */
struct clause_fault {
	const char *sqlstate;
	char text[256];
};

/* Read clauses about these columns. False: `fault` says why not. */
bool clauses_parse(const char *text, const struct column *columns, unsigned column_count,
	struct clauses *out, struct clause_fault *fault);

#endif
