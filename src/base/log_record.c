/* SPDX-License-Identifier: ISC */
/* Formats with fields besides the text: JSON, and the journal's native form. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/log_line.h"

/* The output; nothing is written at or after `end`. */
struct record {
	char *at, *end;
	bool full; /* something did not fit */
};

/* Write all of it or nothing. */
static bool put(struct record *record, const char *bytes, size_t length)
{
	if ((size_t)(record->end - record->at) < length) {
		record->full = true;
		return false;
	}
	memcpy(record->at, bytes, length);
	record->at += length;
	return true;
}

static void put_text(struct record *record, const char *text)
{
	put(record, text, strlen(text));
}

/* Write as much of the text as fits, as a complete string. */
static void put_string(struct record *record, const char *text, size_t length)
{
	bool full;

	/* Both quotes must fit. */
	if (record->end - record->at < 2) {
		record->full = true;
		return;
	}
	put_text(record, "\"");
	full = record->full;
	record->end--;
	while (length > 0) {
		char character[JSON_CHARACTER_SIZE];
		size_t taken;

		if (!put(record, character, json_character(text, length, character, &taken)))
			break;
		text += taken;
		length -= taken;
	}
	record->end++;
	record->full = full; /* a cut text is no failure: its string is complete */
	put_text(record, "\"");
}

static void put_fact(struct record *record, const struct log_fact *fact)
{
	char number[32];

	put_text(record, ",\"");
	put_text(record, fact->name);
	put_text(record, "\":");
	if (fact->text) {
		put_string(record, fact->text, strlen(fact->text));
	} else {
		(void)snprintf(number, sizeof(number), "%lld", fact->number);
		put_text(record, number);
	}
}

/* Write the time in the form of RFC 3339. */
static void put_time(struct record *record, usec_t time)
{
	const struct tm *local = log_line_local_time(time);
	const long east = local->tm_gmtoff / 60, minutes = east < 0 ? -east : east;
	char text[64];

	(void)snprintf(text, sizeof(text), "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%03d",
		local->tm_year + 1900, local->tm_mon + 1, local->tm_mday, local->tm_hour,
		local->tm_min, local->tm_sec, log_line_milliseconds(time));
	put_text(record, text);
	if (east == 0)
		put_text(record, "Z\"");
	else {
		(void)snprintf(text, sizeof(text), "%c%02ld:%02ld\"", east < 0 ? '-' : '+',
			minutes / 60, minutes % 60);
		put_text(record, text);
	}
}

size_t log_line_json(const struct log_line *line, char out[LOG_WHOLE_SIZE])
{
	static const char message[] = ",\"message\":", end[] = "}\n";
	/* Facts may take half of the space; the rest is for the message. */
	struct record record = {.at = out, .end = out + LOG_WHOLE_SIZE / 2};
	char text[64];

	put_time(&record, line->time);
	(void)snprintf(text, sizeof(text), ",\"pid\":%d,\"level\":\"%s\"", (int)line->pid,
		log_line_level(line->level));
	put_text(&record, text);
	for (size_t i = 0; line->subject && i < line->subject->count; i++) {
		const struct record before = record;

		put_fact(&record, &line->subject->facts[i]);
		if (record.full)
			record = before;
	}
	record.end = out + LOG_WHOLE_SIZE - sizeof(end);
	put_text(&record, message);
	put_string(&record, line->raw, log_line_trimmed_length(line->raw));
	record.end += sizeof(end);
	put_text(&record, end);
	return (size_t)(record.at - out);
}

/* --- journal ------------------------------------------------------------------------------ */

/* A value with a newline is written with its length before it: systemd.journal-fields(7). */
static void put_field(struct record *out, const char *name, const char *value)
{
	const uint64_t length = strlen(value);
	uint8_t size[8];

	put_text(out, name);
	if (!strchr(value, '\n')) {
		put_text(out, "=");
	} else {
		for (unsigned i = 0; i < sizeof(size); i++)
			size[i] = (uint8_t)(length >> (8 * i));
		put_text(out, "\n");
		put(out, (const char *)size, sizeof(size));
	}
	put_text(out, value);
	put_text(out, "\n");
}

static void put_fact_field(struct record *out, const struct log_fact *fact)
{
	char name[64] = "PGUSHER_", number[32];
	size_t length = strlen(name);

	for (const char *letter = fact->name; *letter && length < sizeof(name) - 1; letter++)
		name[length++] = (char)toupper((unsigned char)*letter);
	name[length] = '\0';
	(void)snprintf(number, sizeof(number), "%lld", fact->number);
	put_field(out, name, fact->text ? fact->text : number);
}

size_t log_line_journal(
	const struct log_line *line, const char *ident, char out[LOG_WHOLE_SIZE])
{
	struct record fields = {.at = out, .end = out + LOG_WHOLE_SIZE};
	char priority[2] = {(char)('0' + log_line_priority(line->level)), '\0'};

	put_field(&fields, "PRIORITY", priority);
	put_field(&fields, "SYSLOG_IDENTIFIER", ident);
	put_field(&fields, "MESSAGE", line->text);
	for (size_t i = 0; line->subject && i < line->subject->count; i++) {
		const struct log_fact *fact = &line->subject->facts[i];

		/*
		 * Write the field completely or not at all: half a field would make the
		 * datagram invalid.
		 */
		if (fields.end - fields.at >
			(ptrdiff_t)(fact->text ? strlen(fact->text) : 0) + 128)
			put_fact_field(&fields, fact);
	}
	return (size_t)(fields.at - out);
}
