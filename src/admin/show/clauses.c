/* SPDX-License-Identifier: ISC */
#include "admin/show/clauses.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/show/cells.h"
#include "admin/show/scan.h"
#include "base/text.h"

/* SQLSTATEs: PostgreSQL's appendix "Error Codes". */
#define FEATURE_NOT_SUPPORTED "0A000"
#define SYNTAX_ERROR "42601"
#define UNDEFINED_COLUMN "42703"
#define INVALID_TEXT_REPRESENTATION "22P02"
#define STATEMENT_TOO_COMPLEX "54001"

/* The state of the parser. */
struct parse {
	struct scan scan;
	const struct column *columns;
	unsigned column_count;
	struct clauses *out;
	struct clause_fault *fault;
};

/* --- faults ------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static bool fail(
	struct parse *parse, const char *sqlstate, const char *format, ...)
{
	va_list arguments;

	parse->fault->sqlstate = sqlstate;
	va_start(arguments, format);
	vsnprintf(parse->fault->text, sizeof(parse->fault->text), format, arguments);
	va_end(arguments);
	return false;
}

static bool fail_here(struct parse *parse, const char *wanted)
{
	enum { QUOTED_MAX = 60 };
	const char *at = parse->scan.at;

	if (*at == '\0')
		return fail(parse, SYNTAX_ERROR, "%s expected at the end", wanted);
	return fail(parse, SYNTAX_ERROR, "%s expected at \"%.*s\"", wanted,
		(int)text_utf8_cut(at, strlen(at), QUOTED_MAX), at);
}

/* --- parts -------------------------------------------------------------------------------- */

static bool take_column(struct parse *parse, unsigned *column)
{
	char name[CLAUSE_NAME_SIZE];

	scan_space(&parse->scan);
	if (!scan_word(&parse->scan, name, sizeof(name)))
		return fail_here(parse, "a column");
	for (unsigned i = 0; i < parse->column_count; i++) {
		if (strcasecmp(parse->columns[i].name, name) == 0) {
			*column = i;
			return true;
		}
	}
	return fail(parse, UNDEFINED_COLUMN, "column \"%s\" does not exist", name);
}

static bool is_number_type(enum column_type type)
{
	return type == COLUMN_INT4 || type == COLUMN_INT8 || type == COLUMN_NUMERIC;
}

static bool take_value(struct parse *parse, struct clause_test *test)
{
	const struct column *column = &parse->columns[test->column];
	const bool by_order =
		test->comparison != COMPARE_LIKE && test->comparison != COMPARE_UNLIKE;
	struct scan *scan = &parse->scan;
	struct decimal number;
	bool is_bare, is_number;

	scan_space(scan);
	if (*scan->at == '$')
		return fail(parse, FEATURE_NOT_SUPPORTED,
			"parameters are not supported, write the value itself");
	is_bare = scan_bare(scan, ".+-", test->value, sizeof(test->value));
	if (!is_bare && !scan_quoted(scan, '\'', test->value, sizeof(test->value)) &&
		!scan_quoted(scan, '"', test->value, sizeof(test->value)))
		return fail_here(parse, "a value");
	is_number = cells_read_decimal(test->value, strlen(test->value), &number);
	test->as_number = by_order &&
		(is_number_type(column->type) ||
			(is_bare && is_number && column->type == COLUMN_TEXT));
	if (test->as_number && !is_number)
		return fail(parse, INVALID_TEXT_REPRESENTATION,
			"column \"%s\" is a number, '%.60s' is not", column->name, test->value);
	return true;
}

/* Signs; a sign that begins with another sign stands before it. */
static const struct {
	const char *sign;
	enum comparison comparison;
} signs[] = {
	{"<=", COMPARE_LESS_OR_EQUAL},
	{"<>", COMPARE_UNEQUAL},
	{"<", COMPARE_LESS},
	{">=", COMPARE_MORE_OR_EQUAL},
	{">", COMPARE_MORE},
	{"!=", COMPARE_UNEQUAL},
	{"=", COMPARE_EQUAL},
};

enum { SIGNS = sizeof(signs) / sizeof(signs[0]) };

static bool take_null(struct parse *parse, struct clause_test *test)
{
	scan_space(&parse->scan);
	test->comparison = COMPARE_NULL;
	if (scan_keyword(&parse->scan, "not")) {
		test->comparison = COMPARE_NOT_NULL;
		scan_space(&parse->scan);
	}
	return scan_keyword(&parse->scan, "null") || fail_here(parse, "NULL");
}

static bool take_like(struct parse *parse, struct clause_test *test)
{
	test->comparison = COMPARE_LIKE;
	if (scan_keyword(&parse->scan, "not")) {
		test->comparison = COMPARE_UNLIKE;
		scan_space(&parse->scan);
	}
	return scan_keyword(&parse->scan, "like") || fail_here(parse, "a comparison");
}

static bool take_test(struct parse *parse, struct clause_test *test)
{
	scan_space(&parse->scan);
	if (!take_column(parse, &test->column))
		return false;
	scan_space(&parse->scan);
	if (scan_keyword(&parse->scan, "is"))
		return take_null(parse, test);
	for (unsigned i = 0; i < SIGNS; i++) {
		if (scan_symbol(&parse->scan, signs[i].sign)) {
			test->comparison = signs[i].comparison;
			return take_value(parse, test);
		}
	}
	return take_like(parse, test) && take_value(parse, test);
}

/* --- clauses ------------------------------------------------------------------------------ */

static bool take_where(struct parse *parse)
{
	do {
		if (parse->out->test_count == CLAUSE_TESTS)
			return fail(parse, STATEMENT_TOO_COMPLEX, "more than %d conditions",
				CLAUSE_TESTS);
		if (!take_test(parse, &parse->out->tests[parse->out->test_count++]))
			return false;
		scan_space(&parse->scan);
	} while (scan_keyword(&parse->scan, "and"));
	return true;
}

static bool take_key(struct parse *parse, struct clause_key *key)
{
	if (!take_column(parse, &key->column))
		return false;
	scan_space(&parse->scan);
	key->descending = scan_keyword(&parse->scan, "desc");
	if (!key->descending)
		scan_keyword(&parse->scan, "asc");
	scan_space(&parse->scan);
	return true;
}

static bool take_order(struct parse *parse)
{
	scan_space(&parse->scan);
	if (!scan_keyword(&parse->scan, "by"))
		return fail_here(parse, "BY");
	do {
		if (parse->out->key_count == CLAUSE_KEYS)
			return fail(parse, STATEMENT_TOO_COMPLEX,
				"more than %d columns to order by", CLAUSE_KEYS);
		if (!take_key(parse, &parse->out->keys[parse->out->key_count++]))
			return false;
	} while (scan_symbol(&parse->scan, ","));
	return true;
}

static bool take_limit(struct parse *parse)
{
	char digits[20]; /* up to 19 digits, which fit in 64 bits */

	scan_space(&parse->scan);
	if (!scan_bare(&parse->scan, "", digits, sizeof(digits)) || parse->scan.too_long ||
		strspn(digits, "0123456789") != strlen(digits))
		return fail(parse, SYNTAX_ERROR, "LIMIT takes a number of rows");
	parse->out->is_limited = true;
	parse->out->limit = strtoull(digits, NULL, 10);
	return true;
}

static bool take_all(struct parse *parse)
{
	struct scan *scan = &parse->scan, rest;

	scan_space(scan);
	if (scan_keyword(scan, "where") && !take_where(parse))
		return false;
	scan_space(scan);
	if (scan_keyword(scan, "order") && !take_order(parse))
		return false;
	scan_space(scan);
	if (scan_keyword(scan, "limit") && !take_limit(parse))
		return false;
	scan_space(scan);
	rest = *scan;
	return scan_is_over(&rest) || fail_here(parse, "another clause or the end");
}

bool clauses_parse(const char *text, const struct column *columns, unsigned column_count,
	struct clauses *out, struct clause_fault *fault)
{
	struct parse parse = {
		.scan = {.at = text},
		.columns = columns,
		.column_count = column_count,
		.out = out,
		.fault = fault,
	};

	*out = (struct clauses){0};
	if (column_count == 0)
		return fail(&parse, SYNTAX_ERROR, "there are no rows to choose from");
	if (!take_all(&parse))
		return false;
	return !parse.scan.too_long || fail(&parse, SYNTAX_ERROR, "a value is too long");
}
