/* SPDX-License-Identifier: ISC */
#include "admin/console/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "model/registry.h"
#include "wire/writer.h"

/* Longest text of an error, as a log line with its prefix can hold it. */
enum { ERROR_TEXT_SIZE = 1024 };

void reply_error_as(struct buffer *out, const struct client_link *client, const char *sqlstate,
	const char *text)
{
	log_write(LEVEL_ERROR, "%s", text);
	if (link_registry(&client->link)->process->settings->log_pooler_errors)
		link_log(&client->link, LEVEL_WARNING, "pooler error: %s", text);
	writer_error(out, "ERROR", sqlstate, text);
}

void reply_error(struct buffer *out, const struct client_link *client, const char *format, ...)
{
	char text[ERROR_TEXT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	reply_error_as(out, client, CONSOLE_SQLSTATE, text);
}

void reply_notice(struct buffer *out, const char *text, const char *detail)
{
	const size_t mark = writer_begin(out, PQ_NOTICE_RESPONSE);

	writer_byte(out, 'S');
	writer_string(out, "NOTICE");
	writer_byte(out, 'C');
	writer_string(out, "00000");
	writer_byte(out, 'M');
	writer_string(out, text);
	if (detail) {
		writer_byte(out, 'D');
		writer_string(out, detail);
	}
	writer_byte(out, '\0');
	writer_end(out, mark);
}
