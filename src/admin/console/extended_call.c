/* SPDX-License-Identifier: ISC */
#include "admin/console/extended_call.h"

#include <stdarg.h>
#include <stdio.h>

#include "admin/console/reply.h"
#include "wire/writer.h"

enum command_end extended_call_fail(
	struct extended_call *call, const char *sqlstate, const char *format, ...)
{
	char text[PREPARED_NAME_SIZE + 128];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	reply_error_as(call->out, call->client, sqlstate, text, NULL);
	call->extended->is_skipping = true;
	return COMMAND_DONE;
}

enum command_end extended_call_fail_as_malformed(struct extended_call *call)
{
	return extended_call_fail(call, "08P01", "invalid message format");
}

enum command_end extended_call_fail_without_portal(struct extended_call *call, const char *name)
{
	return extended_call_fail(
		call, "34000", "portal \"%.*s\" does not exist", PREPARED_NAME_SIZE, name);
}

void extended_call_write(struct extended_call *call, enum server_message type)
{
	writer_message(call->out, type, NULL, 0);
}
