/* SPDX-License-Identifier: ISC */
#include "support/fakes/fake_auth_query.h"

#include "wire/message.h"
#include "wire/writer.h"

void write_value(struct buffer *out, const char *value)
{
	writer_int32(out, value ? (uint32_t)strlen(value) : UINT32_MAX);
	if (value)
		writer_bytes(out, value, strlen(value));
}

void write_row(struct buffer *out, const char *name, const char *secret)
{
	const size_t mark = writer_begin(out, PQ_DATA_ROW);

	writer_int16(out, 2);
	write_value(out, name);
	write_value(out, secret);
	writer_end(out, mark);
}

void write_row_description(struct buffer *out)
{
	buffer_init(out);
	letters_write(out, FROM_SERVER, "12");
	letters_write_description(out, 2);
}

void answer_no_row(struct endpoint *server)
{
	struct buffer out;

	write_row_description(&out);
	letters_write(&out, FROM_SERVER, "CZ");
	send_buffer(server, &out);
}

void answer(struct endpoint *server, const char *name, const char *secret)
{
	struct buffer out;

	write_row_description(&out);
	write_row(&out, name, secret);
	letters_write(&out, FROM_SERVER, "CZ");
	send_buffer(server, &out);
}
