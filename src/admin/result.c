/* SPDX-License-Identifier: ISC */
#include "admin/result.h"

#include <stdlib.h>
#include <string.h>

#include "admin/binary.h"
#include "admin/selection.h"
#include "base/check.h"
#include "wire/frame.h"
#include "wire/row.h"
#include "wire/writer.h"

/* What each type is to a client: catalog pg_type. Times travel as text. */
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
};

void result_describe(struct buffer *out, const struct column *columns, unsigned column_count,
	uint64_t binary)
{
	const size_t mark = writer_begin(out, PQ_ROW_DESCRIPTION);

	writer_int16(out, (uint16_t)column_count);
	for (unsigned i = 0; i < column_count; i++) {
		writer_string(out, columns[i].name);
		writer_int32(out, 0); /* no table, */
		writer_int16(out, 0); /* and no column of it */
		writer_int32(out, types[columns[i].type].oid);
		writer_int16(out, types[columns[i].type].size);
		writer_int32(out, UINT32_MAX); /* no modifier */
		writer_int16(out, binary >> i & 1);
	}
	writer_end(out, mark);
}

void result_begin(struct result *result, struct buffer *out, const struct column *columns,
	unsigned column_count, const struct result_wish *wish)
{
	CHECK(column_count <= RESULT_COLUMNS_MAX);
	*result = (struct result){.out = out, .columns = columns, .column_count = column_count};
	if (wish)
		result->wish = *wish;
	if (!result->wish.is_described)
		result_describe(out, columns, column_count, result->wish.binary);
	result->first = out->length;
}

/* --- rows --------------------------------------------------------------------------------- */

void result_begin_row(struct result *result)
{
	result->filled = 0;
	result->row = writer_begin(result->out, PQ_DATA_ROW);
	writer_int16(result->out, (uint16_t)result->column_count);
}

static bool is_sorted(const struct result *result)
{
	return result->wish.clauses && result->wish.clauses->key_count > 0;
}

/* May more rows be kept? If they are to be sorted all are needed first. */
static bool has_room(const struct result *result)
{
	const struct clauses *clauses = result->wish.clauses;

	return !clauses || !clauses->is_limited || is_sorted(result) ||
		result->kept < clauses->limit;
}

static struct row_bytes row_at(const struct result *result, size_t place)
{
	const uint8_t *message = result->out->data + place;
	struct frame frame = {0};

	frame_peek(message, result->out->length - place, UINT32_MAX, &frame);
	return (struct row_bytes){frame_body(message), frame_body_size(&frame)};
}

void result_end_row(struct result *result)
{
	const size_t place = result->row - 1; /* the letter */
	struct buffer *out = result->out;

	CHECK(result->filled == result->column_count);
	writer_end(out, result->row);
	if (out->failed)
		return;
	if (!has_room(result) ||
		(result->wish.clauses &&
			!selection_accepts(result->wish.clauses, row_at(result, place)))) {
		buffer_shorten(out, place);
		return;
	}
	result->kept++;
	if ((is_sorted(result) || result->wish.binary) &&
		!buffer_append(&result->places, &place, sizeof(place)))
		out->failed = true;
}

/* --- the end ------------------------------------------------------------------------------ */

static int compare_places(const void *a, const void *b, void *context)
{
	const struct result *result = context;
	const size_t first = *(const size_t *)a, second = *(const size_t *)b;
	const int order = selection_compare(result->wish.clauses, result->columns,
		row_at(result, first), row_at(result, second));

	/* Rows that are equal stay as they came. */
	return order != 0 ? order : (first > second) - (first < second);
}

static void copy_row(const struct result *result, struct row_bytes row, struct buffer *out)
{
	struct row_value cells[RESULT_COLUMNS_MAX];
	const size_t mark = writer_begin(out, PQ_DATA_ROW);

	CHECK(row_read(row.body, row.length, cells, RESULT_COLUMNS_MAX) ==
		(int)result->column_count);
	writer_int16(out, (uint16_t)result->column_count);
	for (unsigned i = 0; i < result->column_count; i++) {
		const bool is_binary = result->wish.binary >> i & 1;

		if (!cells[i].data)
			writer_int32(out, UINT32_MAX);
		else
			binary_write(out, is_binary ? result->columns[i].type : COLUMN_TEXT,
				(const char *)cells[i].data, cells[i].length);
	}
	writer_end(out, mark);
}

/* Put the rows in their order, in the formats that were asked for, where the first one began. */
static void move_rows(struct result *result, const size_t *places, uint64_t count)
{
	const struct clauses *clauses = result->wish.clauses;
	struct buffer rows;

	buffer_init_secret(&rows);
	if (clauses && clauses->is_limited && count > clauses->limit)
		count = clauses->limit;
	for (uint64_t i = 0; i < count; i++)
		copy_row(result, row_at(result, places[i]), &rows);
	buffer_shorten(result->out, result->first);
	if (rows.failed || !buffer_append(result->out, rows.data, rows.length))
		result->out->failed = true;
	buffer_free(&rows);
}

void result_end(struct result *result)
{
	size_t *places = (size_t *)(void *)result->places.data;
	const size_t count = result->places.length / sizeof(*places);

	if (count > 0 && !result->out->failed) {
		if (is_sorted(result))
			qsort_r(places, count, sizeof(*places), compare_places, result);
		move_rows(result, places, count);
	}
	buffer_free(&result->places);
}

/* --- cells -------------------------------------------------------------------------------- */

static void put_cell(struct result *result, const char *text, size_t length)
{
	result->filled++;
	writer_int32(result->out, (uint32_t)length);
	writer_bytes(result->out, text, length);
}

static void put_null(struct result *result)
{
	result->filled++;
	writer_int32(result->out, UINT32_MAX);
}

void result_text(struct result *result, const char *text)
{
	if (text)
		put_cell(result, text, strlen(text));
	else
		put_null(result);
}

/* Rows are full of numbers, and printf takes most of the time that a row takes. */
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
	writer_int32(result->out, (uint32_t)(2 + 2 * length));
	out = buffer_extend(result->out, 2 + 2 * length);
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
