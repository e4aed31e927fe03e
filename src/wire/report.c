/* SPDX-License-Identifier: ISC */
/* A report is a sequence of fields, each a letter and a text, ended by a zero byte. */
#include "wire/report.h"

#include "wire/message.h"
#include "wire/reader.h"

/* Where to store a field's text; NULL: the field is not used. */
static const char **place_of(struct report *report, uint8_t field)
{
	switch (field) {
	case REPORT_SEVERITY:
		return &report->severity;
	case REPORT_SQLSTATE:
		return &report->sqlstate;
	case REPORT_TEXT:
		return &report->text;
	case REPORT_ROUTINE:
		return &report->routine;
	default:
		return NULL;
	}
}

bool report_parse(const uint8_t *body, size_t length, struct report *out)
{
	struct reader reader;
	uint8_t field;

	*out = (struct report){0};
	reader_init(&reader, body, length);
	while ((field = reader_byte(&reader)) != 0) {
		const char *text = reader_string(&reader);
		const char **place = place_of(out, field);

		if (text == NULL)
			return false;
		if (place != NULL)
			*place = text;
	}
	return reader_done(&reader);
}

bool report_parse_parameter(
	const uint8_t *body, size_t length, const char **name, const char **value)
{
	struct reader reader;
	const char *first, *second;

	reader_init(&reader, body, length);
	first = reader_string(&reader);
	second = reader_string(&reader);
	if (!reader_done(&reader))
		return false;
	*name = first;
	*value = second;
	return true;
}
