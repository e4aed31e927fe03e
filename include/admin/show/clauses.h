/* SPDX-License-Identifier: ISC */
/*
 * The clauses of a SHOW: which rows are wanted, and in which order.
 *
 *	clauses :=  ( 'where' test ( 'and' test )* )?
 *	            ( 'order' 'by' column ( 'asc' | 'desc' )? ( ',' ... )* )?
 *	            ( 'limit' number )?  ( ';' )?
 *	test    :=  column ( '=' | '<>' | '!=' | '<' | '<=' | '>' | '>=' | 'not'? 'like' ) value
 *	         |  column 'is' 'not'? 'null'
 *	value   :=  one or more of [0-9A-Za-z_.+-]  |  "..."  |  '...'
 *
 * Pure; admin/show/selection applies the clauses to rows. Columns of numbers are compared as
 * numbers, other columns byte by byte; a number without quotes is compared as a number with a
 * text column too.
 */
#ifndef PGUSHER_ADMIN_SHOW_CLAUSES_H
#define PGUSHER_ADMIN_SHOW_CLAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/show/result.h"

enum { CLAUSE_TESTS = 16, CLAUSE_KEYS = 8, CLAUSE_NAME_SIZE = 64, CLAUSE_VALUE_SIZE = 256 };

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
	char value[CLAUSE_VALUE_SIZE];
};

struct clause_key {
	unsigned column;
	bool descending;
};

struct clauses {
	struct clause_test tests[CLAUSE_TESTS]; /* a row must pass all of them */
	unsigned test_count;
	struct clause_key keys[CLAUSE_KEYS]; /* the first key decides first */
	unsigned key_count;
	bool is_limited;
	uint64_t limit; /* rows */
};

/* Why a text is not valid: the SQLSTATE and the message of the error. */
struct clause_fault {
	const char *sqlstate;
	char text[256];
};

/*
 * Parse clauses about these columns into `out`. Returns false and sets `fault` if they are
 * wrong.
 */
bool clauses_parse(const char *text, const struct column *columns, unsigned column_count,
	struct clauses *out, struct clause_fault *fault);

#endif
