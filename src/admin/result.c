/* SPDX-License-Identifier: ISC */
#include "admin/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
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

void result_begin(struct result *result, struct buffer *out, const struct column *columns,
	unsigned column_count)
{
	const size_t mark = writer_begin(out, PQ_ROW_DESCRIPTION);

	*result = (struct result){.out = out, .columns = columns, .column_count = column_count};
	writer_int16(out, (uint16_t)column_count);
	for (unsigned i = 0; i < column_count; i++) {
		writer_string(out, columns[i].name);
		writer_int32(out, 0); /* no table, */
		writer_int16(out, 0); /* and no column of it */
		writer_int32(out, types[columns[i].type].oid);
		writer_int16(out, types[columns[i].type].size);
		writer_int32(out, UINT32_MAX); /* no modifier */
		writer_int16(out, 0); /* text */
	}
	writer_end(out, mark);
}

void result_begin_row(struct result *result)
{
	result->filled = 0;
	result->row = writer_begin(result->out, PQ_DATA_ROW);
	writer_int16(result->out, (uint16_t)result->column_count);
}

void result_end_row(struct result *result)
{
	CHECK(result->filled == result->column_count);
	writer_end(result->out, result->row);
}

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

void result_number(struct result *result, int64_t number)
{
	char text[24];

	if (result->columns[result->filled].type == COLUMN_INT4) {
		if (number > INT32_MAX)
			number = INT32_MAX;
		else if (number < INT32_MIN)
			number = INT32_MIN;
	}
	put_cell(result, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, number));
}

void result_count(struct result *result, uint64_t count)
{
	char text[24];

	put_cell(result, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, count));
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
