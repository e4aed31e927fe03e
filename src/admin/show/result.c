/* SPDX-License-Identifier: ISC */
#include "admin/show/result.h"

#include <limits.h>
#include <string.h>

#include "admin/show/binary.h"
#include "admin/show/selection.h"
#include "base/check.h"
#include "wire/frame.h"
#include "wire/row.h"
#include "wire/writer.h"

/* The types as clients know them: catalog pg_type. Times are sent as text. */
static const struct {
	uint32_t oid;
	uint16_t size;
} types[] = {
	[COLUMN_TEXT] = {25, UINT16_MAX},
	[COLUMN_INT4] = {23, 4},
	[COLUMN_INT8] = {20, 8},
	[COLUMN_NUMERIC] = {1700, UINT16_MAX},
	[COLUMN_BYTEA] = {17, UINT16_MAX},
	[COLUMN_TIME] = {25, UINT16_MAX},
	[COLUMN_BOOL] = {16, 1},
	[COLUMN_NAME] = {19, 64},
	[COLUMN_VOID] = {2278, 4},
};

void result_describe(struct buffer *out, const struct column *columns, unsigned column_count,
	uint64_t binary)
{
	const size_t mark = writer_begin(out, PQ_ROW_DESCRIPTION);

	writer_int16(out, (uint16_t)column_count);
	for (unsigned i = 0; i < column_count; i++) {
		writer_string(out, columns[i].name);
		writer_int32(out, 0); /* no table */
		writer_int16(out, 0); /* no column of a table */
		writer_int32(out, types[columns[i].type].oid);
		writer_int16(out, types[columns[i].type].size);
		writer_int32(out, UINT32_MAX); /* no type modifier */
		writer_int16(out, binary >> i & 1);
	}
	writer_end(out, mark);
}

void result_begin(struct result *result, struct buffer *out, const struct column *columns,
	unsigned column_count, const struct result_options *options)
{
	CHECK(column_count <= RESULT_COLUMNS_MAX);
	*result = (struct result){.out = out, .columns = columns, .column_count = column_count};
	if (options)
		result->options = *options;
	if (!result->options.is_described)
		result_describe(out, columns, column_count, result->options.binary);
}

/* --- rows --------------------------------------------------------------------------------- */

static bool has_order(const struct result *result)
{
	return result->options.clauses && result->options.clauses->key_count > 0;
}

void result_begin_row(struct result *result)
{
	result->rows =
		has_order(result) || result->options.binary ? &result->kept : result->out;
	result->filled = 0;
	result->row = writer_begin(result->rows, PQ_DATA_ROW);
	writer_int16(result->rows, (uint16_t)result->column_count);
}

bool result_is_full(const struct result *result)
{
	const struct clauses *clauses = result->options.clauses;

	/* ORDER BY needs all rows before LIMIT applies. */
	return clauses && clauses->is_limited && !has_order(result) &&
		result->accepted >= clauses->limit;
}

static struct row_bytes row_at(const struct buffer *rows, size_t place)
{
	const uint8_t *message = rows->data + place;
	struct frame frame = {0};

	frame_peek(message, rows->length - place, UINT32_MAX, &frame);
	return (struct row_bytes){frame_body(message), frame_body_size(&frame)};
}

/* Write a row that was kept to `out`, with binary columns converted. */
static void put_row(const struct result *result, struct row_bytes row, struct buffer *out)
{
	struct row_value cells[RESULT_COLUMNS_MAX];
	const size_t mark = writer_begin(out, PQ_DATA_ROW);

	CHECK(row_read(row.body, row.length, cells, RESULT_COLUMNS_MAX) ==
		(int)result->column_count);
	writer_int16(out, (uint16_t)result->column_count);
	for (unsigned i = 0; i < result->column_count; i++) {
		const bool is_binary = result->options.binary >> i & 1;

		if (!cells[i].data)
			writer_int32(out, UINT32_MAX);
		else
			binary_write(out, is_binary ? result->columns[i].type : COLUMN_TEXT,
				(const char *)cells[i].data, cells[i].length);
	}
	writer_end(out, mark);
}

static void take_row(struct result *result, size_t place)
{
	result->accepted++;
	if (has_order(result)) {
		if (!buffer_append(&result->places, &place, sizeof(place)))
			result->out->failed = true;
	} else if (result->options.binary) {
		put_row(result, row_at(&result->kept, place), result->out);
		buffer_clear(&result->kept);
	}
}

void result_end_row(struct result *result)
{
	const size_t place = result->row - 1; /* the type precedes the fields */
	const struct clauses *clauses = result->options.clauses;
	struct buffer *rows = result->rows;

	CHECK(result->filled == result->column_count);
	writer_end(rows, result->row);
	if (rows->failed)
		result->out->failed = true;
	if (result->out->failed)
		return;
	if (result_is_full(result) ||
		(clauses && !selection_accepts(clauses, row_at(rows, place))))
		buffer_shorten(rows, place);
	else
		take_row(result, place);
}

/* --- the end ------------------------------------------------------------------------------ */

/* The cost of writing a row that was kept, in comparisons. */
enum { MOVE_EFFORT = 4 };

static int compare_places(size_t a, size_t b, const void *context)
{
	const struct result *result = context;

	return selection_compare(result->options.clauses, result->columns,
		row_at(&result->kept, a), row_at(&result->kept, b));
}

static size_t count_places(const struct result *result)
{
	return result->places.length / sizeof(size_t);
}

static bool sort_partly(struct result *result, unsigned *effort)
{
	if (!result->is_sorting &&
		!sorting_begin(&result->sorting, (size_t *)(void *)result->places.data,
			count_places(result))) {
		result->out->failed = true;
		return false;
	}
	result->is_sorting = true;
	result->is_sorted = sorting_continue(&result->sorting, compare_places, result, effort);
	return result->is_sorted;
}

static void spend(unsigned *effort, unsigned cost)
{
	*effort -= cost < *effort ? cost : *effort;
}

static bool move_partly(struct result *result, unsigned *effort, size_t most)
{
	const size_t *places = (const size_t *)(const void *)result->places.data;
	const struct clauses *clauses = result->options.clauses;
	size_t count = count_places(result);

	if (clauses->is_limited && count > clauses->limit)
		count = clauses->limit;
	for (; result->moved < count; result->moved++) {
		if (*effort == 0 || result->out->length > most)
			return false;
		spend(effort, MOVE_EFFORT);
		put_row(result, row_at(&result->kept, places[result->moved]), result->out);
	}
	return true;
}

static bool end_partly(struct result *result, unsigned *effort, size_t most)
{
	if (result->out->failed || count_places(result) == 0)
		return true;
	if (!result->is_sorted && !sort_partly(result, effort))
		return result->out->failed;
	return move_partly(result, effort, most);
}

bool result_end_partly(struct result *result, unsigned *effort)
{
	return end_partly(result, effort, RESULT_SLICE_SIZE);
}

void result_end(struct result *result)
{
	unsigned effort = UINT_MAX;

	while (!end_partly(result, &effort, SIZE_MAX))
		effort = UINT_MAX;
	result_free(result);
}

void result_free(struct result *result)
{
	sorting_end(&result->sorting);
	buffer_free(&result->kept);
	buffer_free(&result->places);
}

size_t result_held(const struct result *result)
{
	return result->kept.length + result->places.length;
}

/* --- cells -------------------------------------------------------------------------------- */

static void put_cell(struct result *result, const char *text, size_t length)
{
	result->filled++;
	writer_int32(result->rows, (uint32_t)length);
	writer_bytes(result->rows, text, length);
}

static void put_null(struct result *result)
{
	result->filled++;
	writer_int32(result->rows, UINT32_MAX);
}

void result_text(struct result *result, const char *text)
{
	if (text)
		put_cell(result, text, strlen(text));
	else
		put_null(result);
}

/* Faster than printf, which would take most of the time of a row with many numbers. */
static void put_digits(struct result *result, bool is_negative, uint64_t number)
{
	char text[24], *at = text + sizeof(text);

	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	if (is_negative)
		*--at = '-';
	put_cell(result, at, (size_t)(text + sizeof(text) - at));
}

void result_number(struct result *result, int64_t number)
{
	if (result->columns[result->filled].type == COLUMN_INT4) {
		if (number > INT32_MAX)
			number = INT32_MAX;
		else if (number < INT32_MIN)
			number = INT32_MIN;
	}
	put_digits(result, number < 0, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void result_count(struct result *result, uint64_t count)
{
	put_digits(result, false, count);
}

void result_bytes(struct result *result, const void *bytes, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *from = bytes;
	uint8_t *out;

	if (!bytes) {
		put_null(result);
		return;
	}
	result->filled++;
	writer_int32(result->rows, (uint32_t)(2 + 2 * length));
	out = buffer_extend(result->rows, 2 + 2 * length);
	if (!out)
		return;
	*out++ = '\\';
	*out++ = 'x';
	for (size_t i = 0; i < length; i++) {
		*out++ = (uint8_t)digits[from[i] >> 4];
		*out++ = (uint8_t)digits[from[i] & 15];
	}
}

void result_time(struct result *result, usec_t wall)
{
	const time_t second = (time_t)(wall / USEC_PER_SEC);
	struct tm parts;

	if (result->moment[0] == '\0' || second != result->second) {
		localtime_r(&second, &parts);
		strftime(
			result->moment, sizeof(result->moment), "%Y-%m-%d %H:%M:%S %Z", &parts);
		result->second = second;
	}
	result_text(result, result->moment);
}
