/* SPDX-License-Identifier: ISC */
#include "wire/row.h"

#include "wire/reader.h"

/* After a column's name: table, number, type, size of the type, modifier and format. */
enum { COLUMN_FIXED_SIZE = 4 + 2 + 4 + 2 + 4 + 2 };

/* The length of a NULL value. */
#define LENGTH_OF_NULL UINT32_MAX

int row_description_columns(const uint8_t *body, size_t length)
{
	struct reader reader;
	uint16_t columns;

	reader_init(&reader, body, length);
	columns = reader_int16(&reader);
	for (unsigned i = 0; i < columns && !reader.failed; i++) {
		reader_string(&reader);
		reader_bytes(&reader, COLUMN_FIXED_SIZE);
	}
	return reader_done(&reader) ? columns : ROW_MALFORMED;
}

static struct row_value read_value(struct reader *reader)
{
	const uint32_t length = reader_int32(reader);

	if (length == LENGTH_OF_NULL)
		return (struct row_value){NULL, 0};
	return (struct row_value){reader_bytes(reader, length), length};
}

int row_read(const uint8_t *body, size_t length, struct row_value *values, int count)
{
	struct reader reader;
	uint16_t columns;

	reader_init(&reader, body, length);
	columns = reader_int16(&reader);
	for (int i = 0; i < columns && !reader.failed; i++) {
		const struct row_value value = read_value(&reader);

		if (i < count)
			values[i] = value;
	}
	return reader_done(&reader) ? columns : ROW_MALFORMED;
}
