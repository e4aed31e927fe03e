/* SPDX-License-Identifier: ISC */
#include "admin/show/binary.h"

#include "wire/writer.h"

/* The text comes from admin/show/result: digits, perhaps after a minus. */
static uint64_t read_number(const char *text, size_t length)
{
	const bool negative = length > 0 && text[0] == '-';
	uint64_t number = 0;

	for (size_t i = negative; i < length; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	return negative ? 0 - number : number;
}

/*
 * As PostgreSQL's numeric_send(): number of groups of four digits, weight of the first group,
 * sign, digits behind the decimal point, groups. Groups of zeros at the end are left out.
 */
static void write_numeric(struct buffer *out, uint64_t number)
{
	enum { BASE = 10000, GROUPS_MAX = 5, POSITIVE = 0 };
	uint16_t groups[GROUPS_MAX];
	unsigned count = 0, zeros = 0;

	for (; number > 0; number /= BASE)
		groups[count++] = (uint16_t)(number % BASE);
	while (zeros < count && groups[zeros] == 0)
		zeros++;
	writer_int32(out, 8 + 2 * (count - zeros));
	writer_int16(out, (uint16_t)(count - zeros));
	writer_int16(out, (uint16_t)(count > 0 ? count - 1 : 0));
	writer_int16(out, POSITIVE);
	writer_int16(out, 0);
	while (count > zeros)
		writer_int16(out, groups[--count]);
}

static uint8_t read_digit(char digit)
{
	return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* The text is `\x` and hex digits. */
static void write_bytea(struct buffer *out, const char *text, size_t length)
{
	writer_int32(out, (uint32_t)(length / 2 - 1));
	for (size_t i = 2; i + 1 < length; i += 2)
		writer_byte(out, (uint8_t)(read_digit(text[i]) << 4 | read_digit(text[i + 1])));
}

void binary_write(struct buffer *out, enum column_type type, const char *text, size_t length)
{
	switch (type) {
	case COLUMN_INT4:
		writer_int32(out, 4);
		writer_int32(out, (uint32_t)read_number(text, length));
		break;
	case COLUMN_INT8:
		writer_int32(out, 8);
		writer_int64(out, read_number(text, length));
		break;
	case COLUMN_NUMERIC:
		write_numeric(out, read_number(text, length));
		break;
	case COLUMN_BYTEA:
		write_bytea(out, text, length);
		break;
	case COLUMN_BOOL:
		writer_int32(out, 1);
		writer_byte(out, text[0] == 't');
		break;
	case COLUMN_NAME:
	case COLUMN_VOID:
	case COLUMN_TEXT:
	case COLUMN_TIME:
		writer_int32(out, (uint32_t)length);
		writer_bytes(out, text, length);
		break;
	}
}
