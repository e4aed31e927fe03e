/* SPDX-License-Identifier: ISC */
#include "base/log_line.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "base/text.h"

struct level_words {
	const char *name;
	int priority; /* for syslog and the journal */
};

static const struct level_words levels[LEVELS] = {
	[LEVEL_FATAL] = {"FATAL", LOG_CRIT},
	[LEVEL_ERROR] = {"ERROR", LOG_ERR},
	[LEVEL_WARNING] = {"WARNING", LOG_WARNING},
	[LEVEL_LOG] = {"LOG", LOG_INFO},
	[LEVEL_DEBUG] = {"DEBUG", LOG_DEBUG},
	[LEVEL_NOISE] = {"NOISE", LOG_DEBUG},
};

int log_line_priority(enum log_level level)
{
	return levels[level].priority;
}

const char *log_line_level(enum log_level level)
{
	return levels[level].name;
}

const struct tm *log_line_local_time(usec_t time)
{
	static time_t known = -1;
	static struct tm local;
	const time_t second = (time_t)(time / USEC_PER_SEC);

	if (second != known && localtime_r(&second, &local) != NULL)
		known = second;
	return &local;
}

int log_line_milliseconds(usec_t time)
{
	return (int)(time % USEC_PER_SEC / USEC_PER_MSEC);
}

/* --- escaping ----------------------------------------------------------------------------- */

static bool is_blank(char byte)
{
	return byte != '\0' && strchr(" \t\r\n\f\v", byte) != NULL;
}

size_t log_line_trimmed_length(const char *text)
{
	size_t length = strlen(text);

	if (length == LOG_LINE_SIZE - 1)
		length = text_utf8_cut(text, length, length - 1);
	while (length > 0 && is_blank(text[length - 1]))
		length--;
	return length;
}

/*
 * Write the first character in escaped form, 1 to 4 bytes, to `out`. Returns how many; sets
 * `*taken` to the number of bytes that were read.
 */
static size_t tidy_character(const char *text, size_t length, char out[4], size_t *taken)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t byte = (uint8_t)*text;

	*taken = 1;
	if (byte == '\n') {
		memcpy(out, "\n\t", 2);
		return 2;
	}
	if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
		memcpy(out, "\\x", 2);
		out[2] = digits[byte >> 4];
		out[3] = digits[byte & 15];
		return 4;
	}
	if (byte > 0x7f && text_utf8_length(text, length) > 0)
		*taken = text_utf8_length(text, length);
	memcpy(out, text, *taken);
	return *taken;
}

/* Append a text to the `used` bytes, escaped. Returns how many there are then. */
static size_t append_tidy(char out[LOG_LINE_SIZE], size_t used, const char *raw)
{
	const char *end = raw + log_line_trimmed_length(raw);
	size_t taken;

	for (; raw < end; raw += taken) {
		char tidied[4];
		const size_t length = tidy_character(raw, (size_t)(end - raw), tidied, &taken);

		if (length > LOG_LINE_SIZE - 1 - used)
			break;
		memcpy(out + used, tidied, length);
		used += length;
	}
	return used;
}

void log_line_tidy(char out[LOG_LINE_SIZE], const struct log_subject *subject, const char *raw)
{
	size_t used = 0;

	if (subject)
		used = (size_t)snprintf(out, LOG_LINE_SIZE / 2, "%s ", subject->prefix);
	if (used >= LOG_LINE_SIZE / 2)
		used = LOG_LINE_SIZE / 2 - 1;
	used = append_tidy(out, used, raw);
	if (subject && subject->details)
		used = append_tidy(out, used, subject->details);
	out[used] = '\0';
}

/* --- text --------------------------------------------------------------------------------- */

size_t log_line_text(const struct log_line *line, char out[LOG_WHOLE_SIZE])
{
	const struct tm *local = log_line_local_time(line->time);

	return (size_t)snprintf(out, LOG_WHOLE_SIZE,
		"%04d-%02d-%02d %02d:%02d:%02d.%03d %s [%d] %s %s\n", local->tm_year + 1900,
		local->tm_mon + 1, local->tm_mday, local->tm_hour, local->tm_min, local->tm_sec,
		log_line_milliseconds(line->time), local->tm_zone, (int)line->pid,
		levels[line->level].name, line->text);
}

/* --- syslog ------------------------------------------------------------------------------- */

size_t log_line_syslog(const struct log_line *line, int facility, const char *ident,
	const char *text, size_t length, char out[LOG_WHOLE_SIZE])
{
	static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
		"Aug", "Sep", "Oct", "Nov", "Dec"};
	const struct tm *local = log_line_local_time(line->time);
	int head = snprintf(out, LOG_WHOLE_SIZE,
		"<%d>%s %2d %02d:%02d:%02d %s[%d]: ", facility | levels[line->level].priority,
		months[local->tm_mon % 12], local->tm_mday, local->tm_hour, local->tm_min,
		local->tm_sec, ident, (int)line->pid);

	length = text_utf8_cut(text, length, LOG_WHOLE_SIZE - (size_t)head);
	memcpy(out + head, text, length);
	return (size_t)head + length;
}
