/* SPDX-License-Identifier: ISC */
#include "admin/console/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "model/registry.h"
#include "wire/writer.h"

/* Longest text of an error, as a log line with its prefix can hold it. */
enum { ERROR_TEXT_SIZE = 1024 };

static void add_field(struct buffer *out, enum report_field field, const char *text)
{
	writer_byte(out, (uint8_t)field);
	writer_string(out, text);
}

/* Append a report whose last field, if it has a text, is a detail or a hint. */
static void write_report(struct buffer *out, enum server_message type, const char *severity,
	const char *sqlstate, const char *text, enum report_field last, const char *more)
{
	const size_t mark = writer_begin(out, type);

	add_field(out, REPORT_SEVERITY, severity);
	add_field(out, REPORT_SQLSTATE, sqlstate);
	add_field(out, REPORT_TEXT, text);
	if (more)
		add_field(out, last, more);
	writer_byte(out, '\0');
	writer_end(out, mark);
}

void reply_error_as(struct buffer *out, const struct client_link *client, const char *sqlstate,
	const char *text, const char *hint)
{
	log_write(LEVEL_ERROR, "%s", text);
	if (link_registry(&client->link)->process->settings->log_pooler_errors)
		link_log(&client->link, LEVEL_WARNING, "pooler error: %s", text);
	write_report(out, PQ_ERROR_RESPONSE, "ERROR", sqlstate, text, REPORT_HINT, hint);
}

void reply_error(struct buffer *out, const struct client_link *client, const char *format, ...)
{
	char text[ERROR_TEXT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	reply_error_as(out, client, CONSOLE_SQLSTATE, text, NULL);
}

void reply_notice(struct buffer *out, const char *text, const char *detail)
{
	write_report(out, PQ_NOTICE_RESPONSE, "NOTICE", "00000", text, REPORT_DETAIL, detail);
}
