/* SPDX-License-Identifier: ISC */
#include "support/messages/statement_messages.h"

#include <string.h>

#include "wire/message.h"
#include "wire/writer.h"

void message_parse(struct buffer *out, const char *name, const char *text)
{
	const size_t mark = writer_begin(out, PQ_PARSE);

	writer_string(out, name);
	writer_string(out, text);
	writer_int16(out, 0);
	writer_end(out, mark);
}

void message_bind(struct buffer *out, const char *name, uint32_t parameter)
{
	const size_t mark = writer_begin(out, PQ_BIND);

	writer_string(out, "");
	writer_string(out, name);
	writer_int16(out, 0);
	writer_int16(out, parameter > 0);
	if (parameter > 0) {
		writer_int32(out, parameter);
		memset(buffer_extend(out, parameter), 'x', parameter);
	}
	writer_int16(out, 0);
	writer_end(out, mark);
}

static void message_named(struct buffer *out, uint8_t type, const char *name)
{
	const size_t mark = writer_begin(out, type);

	writer_byte(out, 'S');
	writer_string(out, name);
	writer_end(out, mark);
}

void message_close(struct buffer *out, const char *name)
{
	message_named(out, PQ_CLOSE, name);
}

void message_describe(struct buffer *out, const char *name)
{
	message_named(out, PQ_DESCRIBE, name);
}

void message_stale_plan_error(struct buffer *out)
{
	const size_t mark = writer_begin(out, PQ_ERROR_RESPONSE);

	writer_string(out, "SERROR");
	writer_string(out, "C0A000");
	writer_string(out, "Mcached plan must not change result type");
	writer_string(out, "RRevalidateCachedQuery");
	writer_byte(out, 0);
	writer_end(out, mark);
}
