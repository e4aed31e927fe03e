/* SPDX-License-Identifier: ISC */
#include "support/messages/letters.h"

#include <string.h>

#include "base/check.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/startup.h"
#include "wire/writer.h"

static void write_client(struct buffer *buffer, char letter)
{
	const size_t mark = writer_begin(buffer, (uint8_t)letter);

	switch (letter) {
	case PQ_QUERY:
		writer_string(buffer, "select 1");
		break;
	case PQ_PARSE:
		writer_string(buffer, "");
		writer_string(buffer, "select 1");
		writer_int16(buffer, 0);
		break;
	case PQ_BIND:
		writer_string(buffer, "");
		writer_string(buffer, "");
		writer_int16(buffer, 0);
		writer_int16(buffer, 0);
		writer_int16(buffer, 0);
		break;
	case PQ_DESCRIBE:
	case PQ_CLOSE:
		writer_byte(buffer, 'S');
		writer_string(buffer, "");
		break;
	case PQ_EXECUTE:
		writer_string(buffer, "");
		writer_int32(buffer, 0);
		break;
	case PQ_FUNCTION_CALL:
		writer_int32(buffer, 954); /* loread */
		for (int i = 0; i < 3; i++)
			writer_int16(buffer, 0);
		break;
	case PQ_COPY_DATA:
		writer_bytes(buffer, "1\n", 2);
		break;
	case PQ_COPY_FAIL:
		writer_string(buffer, "no more");
		break;
	case PQ_PASSWORD:
		writer_string(buffer, "secret");
		break;
	case PQ_SYNC:
	case PQ_FLUSH:
	case PQ_COPY_DONE:
	case PQ_TERMINATE:
		break;
	default:
		CHECK(!"a letter of a client");
	}
	writer_end(buffer, mark);
}

static void write_server(struct buffer *buffer, char letter)
{
	size_t mark;

	switch (letter) {
	case 'Z':
		writer_ready(buffer, READY_IDLE);
		return;
	case '>':
		writer_ready(buffer, READY_IN_TRANSACTION);
		return;
	case '!':
		writer_ready(buffer, READY_FAILED_TRANSACTION);
		return;
	case PQ_AUTHENTICATION:
		writer_authentication(buffer, AUTH_OK, NULL, 0);
		return;
	case PQ_BACKEND_KEY_DATA:
		writer_backend_key(buffer, "\0\0\1\2\3\4\5\6", 8);
		return;
	case PQ_ERROR_RESPONSE:
		writer_error(buffer, "ERROR", "22012", "division by zero");
		return;
	case PQ_NOTICE_RESPONSE:
		writer_notice(buffer, "NOTICE", "00000", "by the way");
		return;
	case PQ_COMMAND_COMPLETE:
		writer_command_complete(buffer, "SELECT 1");
		return;
	case PQ_PARAMETER_STATUS:
		writer_parameter_status(buffer, "in_hot_standby", "off");
		return;
	}
	mark = writer_begin(buffer, (uint8_t)letter);
	switch (letter) {
	case PQ_ROW_DESCRIPTION:
	case PQ_PARAMETER_DESCRIPTION:
		writer_int16(buffer, 0);
		break;
	case PQ_DATA_ROW:
		writer_int16(buffer, 1);
		writer_int32(buffer, 1);
		writer_bytes(buffer, "1", 1);
		break;
	case PQ_NOTIFICATION_RESPONSE:
		/* Of no backend that clients know: others are replaced by this. */
		writer_int32(buffer, 0);
		writer_string(buffer, "news");
		writer_string(buffer, "");
		break;
	case PQ_COPY_IN_RESPONSE:
	case PQ_COPY_OUT_RESPONSE:
	case PQ_COPY_BOTH_RESPONSE:
		writer_byte(buffer, 0);
		writer_int16(buffer, 0);
		break;
	case PQ_FUNCTION_CALL_RESPONSE:
		writer_int32(buffer, UINT32_MAX);
		break;
	case PQ_COPY_DATA:
		writer_bytes(buffer, "1\n", 2);
		break;
	case PQ_PARSE_COMPLETE:
	case PQ_BIND_COMPLETE:
	case PQ_CLOSE_COMPLETE:
	case PQ_NO_DATA:
	case PQ_EMPTY_QUERY_RESPONSE:
	case PQ_PORTAL_SUSPENDED:
	case PQ_COPY_DONE:
		break;
	default:
		CHECK(!"a letter of a server");
	}
	writer_end(buffer, mark);
}

void letters_write(struct buffer *buffer, enum sender sender, const char *letters)
{
	for (; *letters; letters++) {
		if (sender == FROM_CLIENT)
			write_client(buffer, *letters);
		else
			write_server(buffer, *letters);
	}
	CHECK(!buffer->failed);
}

void letters_write_description(struct buffer *buffer, unsigned columns)
{
	const size_t mark = writer_begin(buffer, PQ_ROW_DESCRIPTION);

	writer_int16(buffer, (uint16_t)columns);
	for (unsigned i = 0; i < columns; i++) {
		writer_string(buffer, "column");
		writer_bytes(buffer, "tablnutypeszmodifm", 18);
	}
	writer_end(buffer, mark);
}

char letters_read(const uint8_t *data, size_t length, size_t *total)
{
	struct frame frame;
	enum startup_kind kind;

	if (length == 0)
		return 0;
	if (data[0] == 0) {
		kind = startup_peek(data, length, total);
		return kind == STARTUP_INCOMPLETE || kind == STARTUP_MALFORMED ? 0 : '^';
	}
	if (frame_peek(data, length, UINT32_MAX, &frame) != FRAME_WHOLE)
		return 0;
	*total = frame.total;
	if (frame.type != PQ_READY_FOR_QUERY || frame.total != 6)
		return (char)frame.type;
	if (data[5] == READY_IN_TRANSACTION)
		return '>';
	return data[5] == READY_FAILED_TRANSACTION ? '!' : 'Z';
}
