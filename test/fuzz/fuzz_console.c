/* SPDX-License-Identifier: ISC */
/*
 * Console commands: parsed values fit their buffers, and accepted clauses can be applied: the
 * output rows are input rows, in order, and no more than LIMIT allows.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "admin/console/grammar.h"
#include "admin/show/clauses.h"
#include "admin/show/selection.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct column columns[] = {
	{"a", COLUMN_TEXT},
	{"b", COLUMN_INT4},
	{"c", COLUMN_NUMERIC},
	{"d", COLUMN_BYTEA},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), ROWS = 8 };

static void require(int condition)
{
	if (!condition)
		abort();
}

static void add_row(struct result *result, int number)
{
	static const char *const texts[] = {"x", NULL, "", "       10", "2.5", "ab%"};
	const unsigned count = sizeof(texts) / sizeof(texts[0]);

	result_begin_row(result);
	result_text(result, texts[(unsigned)number % count]);
	result_number(result, number * 7 % 5 - 2);
	result_count(result, UINT64_MAX / (unsigned)(number + 1));
	result_bytes(result, number % 3 ? "\x01\xff" : NULL, 2);
	result_end_row(result);
}

static void check_rows(const struct clauses *clauses, const struct buffer *out)
{
	struct row_bytes before = {0}, row;
	struct frame frame = {0};
	uint64_t rows = 0;

	for (size_t at = 0; at < out->length; at += frame.total, rows++) {
		require(frame_peek(out->data + at, out->length - at, 1 << 20, &frame) ==
			FRAME_WHOLE);
		row = (struct row_bytes){frame_body(out->data + at), frame_body_size(&frame)};
		require(selection_accepts(clauses, row));
		if (rows > 0)
			require(selection_compare(clauses, columns, before, row) <= 0);
		before = row;
	}
	require(rows <= ROWS && (!clauses->is_limited || rows <= clauses->limit));
}

static void apply(const struct clauses *clauses, uint64_t binary)
{
	const struct result_options options = {clauses, binary, true};
	struct buffer out = {0};
	struct result result;

	result_begin(&result, &out, columns, COLUMNS, &options);
	for (int i = 0; i < ROWS; i++)
		add_row(&result, i);
	result_end(&result);
	require(!out.failed);
	if (!binary)
		check_rows(clauses, &out);
	buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct command_words words;
	struct clause_fault fault;
	struct clauses clauses;
	enum grammar grammar;

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	grammar = grammar_parse(text, &words);
	require(strlen(words.word) < sizeof(words.word));
	require(strlen(words.argument) < sizeof(words.argument));
	require(strlen(words.value) < sizeof(words.value));
	require(grammar != GRAMMAR_SHOW ||
		(words.clauses > text && words.clauses <= text + size));
	if (grammar == GRAMMAR_SHOW) {
		if (clauses_parse(words.clauses, columns, COLUMNS, &clauses, &fault)) {
			apply(&clauses, 0);
			apply(&clauses, 0xf);
		} else {
			require(fault.text[0] != '\0' && strlen(fault.sqlstate) == 5);
		}
	}
	free(text);
	return 0;
}
