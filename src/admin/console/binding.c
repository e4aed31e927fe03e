/* SPDX-License-Identifier: ISC */
#include "admin/console/binding.h"

bool binding_read(struct reader *reader, struct binding *out)
{
	out->portal = reader_string(reader);
	out->statement = reader_string(reader);
	reader_bytes(reader, 2 * (size_t)reader_int16(reader)); /* formats of values */
	out->values = reader_int16(reader);
	for (unsigned i = 0; i < out->values && !reader->failed; i++) {
		const uint32_t length = reader_int32(reader);

		if (length != UINT32_MAX) /* NULL */
			reader_bytes(reader, length);
	}
	out->formats = reader_int16(reader);
	out->format = reader_bytes(reader, 2 * (size_t)out->formats);
	return reader_done(reader);
}

uint64_t binding_binary_columns(const struct binding *binding, unsigned columns)
{
	uint64_t binary = 0;

	for (unsigned i = 0; i < columns && binding->formats > 0; i++) {
		const size_t at = binding->formats == 1 ? 0 : i;

		binary |= (uint64_t)binding->format[2 * at + 1] << i;
	}
	return binary;
}

unsigned binding_unknown_format(const struct binding *binding)
{
	for (size_t i = 0; i < binding->formats; i++) {
		const unsigned format = (unsigned)binding->format[2 * i] << 8 |
			(unsigned)binding->format[2 * i + 1];

		if (format > 1)
			return format;
	}
	return 0;
}
