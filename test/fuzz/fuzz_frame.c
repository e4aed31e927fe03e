/* SPDX-License-Identifier: ISC */
/*
 * A stream of messages in either direction: the walk from message to message advances and
 * ends, and reading a body stays inside it.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"
#include "wire/message.h"
#include "wire/parameter_difference.h"
#include "wire/reader.h"
#include "wire/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGEST_MESSAGE = 1 << 20 };

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Read all of the text, so that sanitizers check it. */
static void read_text(const char *text)
{
	if (text != NULL)
		require(strlen(text) < LARGEST_MESSAGE);
}

static void read_report(const uint8_t *body, size_t length)
{
	struct report report;

	report_parse(body, length, &report);
	read_text(report.severity);
	read_text(report.sqlstate);
	read_text(report.text);
	read_text(report.routine);
}

/* A server reports a changed parameter: the set changes, and other sessions are set to it. */
static void read_parameter(struct parameter_table *table, struct parameters **set,
	const uint8_t *body, size_t length)
{
	const char *name, *value;
	struct parameters *next;
	struct buffer sql = {0};
	int index;

	if (!report_parse_parameter(body, length, &name, &value))
		return;
	index = parameter_index(table, name);
	if (index < 0)
		return;
	next = parameters_with(table, *set, (unsigned)index, value);
	if (next == NULL)
		return;
	require(strcmp(parameters_get(next, (unsigned)index), value) == 0);
	require(parameters_difference(next, *set, &(struct session_start){0}, &sql) <= 1);
	parameters_unref(*set);
	*set = next;
	buffer_free(&sql);
}

/* Fields of every kind, with the lengths found inside the body. */
static void read_fields(const uint8_t *body, size_t length)
{
	struct reader reader;

	reader_init(&reader, body, length);
	while (!reader.failed) {
		const size_t left = reader_left(&reader);

		reader_byte(&reader);
		read_text(reader_string(&reader));
		reader_bytes(&reader, reader_int16(&reader));
		reader_bytes(&reader, reader_int32(&reader));
		require(reader_left(&reader) < left || reader.failed);
	}
	require(!reader_done(&reader));
}

static void read_message(struct parameter_table *table, struct parameters **set,
	const struct frame *frame, const uint8_t *body)
{
	const size_t length = frame_body_size(frame);

	if (frame->type == PQ_ERROR_RESPONSE || frame->type == PQ_NOTICE_RESPONSE)
		read_report(body, length);
	else if (frame->type == PQ_PARAMETER_STATUS)
		read_parameter(table, set, body, length);
	else
		read_fields(body, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parameter_table *table = parameter_table_new("search_path");
	struct parameters *set;
	struct frame frame;

	if (table == NULL)
		return 0;
	set = parameters_empty(table);
	while (frame_peek(data, size, LARGEST_MESSAGE, &frame) == FRAME_WHOLE) {
		require(frame.total >= FRAME_HEADER_SIZE && frame.total <= size);
		read_message(table, &set, &frame, frame_body(data));
		data += frame.total;
		size -= frame.total;
	}
	parameters_unref(set);
	parameter_table_free(table);
	return 0;
}
