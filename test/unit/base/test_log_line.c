/* SPDX-License-Identifier: ISC */
/* Each form of a line is complete, valid and within its size, whatever the message. */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/log_line.h"
#include "base/text.h"

#define NOON (1795910400 * USEC_PER_SEC + 678999) /* 2026-11-29 00:00:00.678999 UTC */

static char text[LOG_LINE_SIZE];

static struct log_line line_of(const char *raw, const struct log_subject *subject)
{
	log_line_tidy(text, subject, raw);
	return (struct log_line){
		.level = LEVEL_WARNING,
		.time = NOON,
		.pid = 8052,
		.subject = subject,
		.raw = raw,
		.text = text,
	};
}

static const char *json_of(const char *raw, const struct log_subject *subject)
{
	static char out[LOG_WHOLE_SIZE];
	const struct log_line line = line_of(raw, subject);
	const size_t length = log_line_json(&line, out);

	assert_in_range(length, 1, LOG_WHOLE_SIZE - 1);
	assert_int_equal(out[length - 1], '\n');
	out[length - 1] = '\0';
	assert_null(strchr(out, '\n'));
	return out;
}

static const struct log_fact facts[] = {
	{"side", "client", 0},
	{"user", "o\"neil\\", 0},
	{"port", NULL, 5123},
};

static const struct log_subject client = {"C-0x1: app/x@10.0.0.1:5123", facts, 3};

static void test_text_form(void **state)
{
	char out[LOG_WHOLE_SIZE];
	const struct log_line line = line_of("pooler error: no", &client);
	const size_t length = log_line_text(&line, out);

	(void)state;
	assert_int_equal(length, strlen(out));
	assert_string_equal(out,
		"2026-11-29 00:00:00.678 UTC [8052] WARNING C-0x1: app/x@10.0.0.1:5123 pooler error: no\n");
}

static void test_json_form(void **state)
{
	(void)state;
	assert_string_equal(json_of("closing", NULL),
		"{\"time\":\"2026-11-29T00:00:00.678Z\",\"pid\":8052,\"level\":\"WARNING\","
		"\"message\":\"closing\"}");
	assert_string_equal(json_of("closing", &client),
		"{\"time\":\"2026-11-29T00:00:00.678Z\",\"pid\":8052,\"level\":\"WARNING\","
		"\"side\":\"client\",\"user\":\"o\\\"neil\\\\\",\"port\":5123,"
		"\"message\":\"closing\"}");
}

static void test_json_escapes(void **state)
{
	static const char *const rows[][2] = {
		{"a\"b\\c/d", "a\\\"b\\\\c/d"},
		{"one\n\ttwo\rthree", "one\\n\\ttwo\\rthree"},
		{"\x01\x1f\x7f\x1b[2J", "\\u0001\\u001f\\u007f\\u001b[2J"},
		{"J\xc3\xb6rg \xe2\x82\xac \xf0\x9f\x90\x98",
			"J\xc3\xb6rg \xe2\x82\xac \xf0\x9f\x90\x98"},
		{"\xff", "\xef\xbf\xbd"},
		{"a\xc3(b", "a\xef\xbf\xbd(b"},
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"blanks \t\n ", "blanks"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *message = strstr(json_of(rows[i][0], NULL), "\"message\":\"");
		char expected[128];

		(void)snprintf(expected, sizeof(expected), "\"message\":\"%s\"}", rows[i][1]);
		assert_string_equal(message, expected);
	}
}

/* Quotes and brackets are balanced, and everything is UTF-8. */
static void assert_whole(const char *json)
{
	const size_t length = strlen(json);

	for (size_t at = 0, character; at < length; at += character) {
		character = text_utf8_length(json + at, length - at);
		assert_true(character > 0);
	}
	assert_int_equal(json[0], '{');
	assert_string_equal(json + length - 2, "\"}");
	assert_int_not_equal(json[length - 3], '\\');
}

static void test_json_of_any_text_is_complete(void **state)
{
	static const char *const pieces[] = {
		"x", "\xff", "\x01", "\xe2\x82\xac", "\xf0\x9f\x90\x98", "\n"};
	char raw[LOG_LINE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		for (size_t keep = 0; keep < 8; keep++) {
			size_t length = 0;

			while (length + strlen(pieces[i]) < sizeof(raw) - keep) {
				memcpy(raw + length, pieces[i], strlen(pieces[i]));
				length += strlen(pieces[i]);
			}
			raw[length++] = '.';
			raw[length - 1] = i == 5 ? '.' : raw[length - 1];
			raw[length < sizeof(raw) ? length : sizeof(raw) - 1] = '\0';
			assert_whole(json_of(raw, &client));
		}
	}
}

static void test_facts_that_do_not_fit_are_left_out(void **state)
{
	static char long_text[3 * LOG_WHOLE_SIZE];
	const struct log_fact many[] = {
		{"first", "here", 0},
		{"long", long_text, 0},
		{"text", "not here", 0},
		{"number", NULL, 1234567890},
	};
	const struct log_subject subject = {"C-0x1:", many, 4};
	const char *json;

	(void)state;
	memset(long_text, '"', sizeof(long_text) - 1);
	json = json_of("the message", &subject);
	assert_whole(json);
	assert_non_null(strstr(json, "\"first\":\"here\",\"long\":\"\\\"\\\""));
	assert_null(strstr(json, "not here"));
	assert_null(strstr(json, "1234567890"));
	assert_non_null(strstr(json, "\\\"\",\"message\":\"the message\"}"));
}

static void test_facts_take_no_more_than_their_share(void **state)
{
	static char long_text[3 * LOG_WHOLE_SIZE];
	static char out[5 * LOG_WHOLE_SIZE];
	const struct log_fact many[] = {{"long", long_text, 0}, {"longer", long_text, 0}};
	const struct log_subject subject = {"C-0x1:", many, 2};

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	/* Wherever the first fact ends. */
	for (size_t length = 1800; length < 2100; length++) {
		char first[2100] = "";
		const struct log_fact facts_at[] = {{"first", first, 0}, many[0], many[1]};
		const struct log_subject both = {"C-0x1:", facts_at, 3};
		const struct log_line line =
			line_of("the message", length % 2 ? &both : &subject);

		memset(first, 'y', length - 1);
		memset(out, '#', sizeof(out));
		assert_in_range(log_line_json(&line, out), 1, LOG_WHOLE_SIZE - 1);
		for (size_t i = LOG_WHOLE_SIZE; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
	}
}

static void test_time_has_the_zone(void **state)
{
	static const char *const rows[][2] = {
		{"XST-5:45", "2026-11-29T05:45:00.678+05:45"},
		{"XST3:30", "2026-11-28T20:30:00.678-03:30"},
		{"UTC", "2026-11-29T00:00:00.678Z"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct log_line line = line_of("x", NULL);
		char out[LOG_WHOLE_SIZE], expected[64];

		setenv("TZ", rows[i][0], 1);
		tzset();
		/* The local time of a second is cached: use another second. */
		line.time += USEC_PER_SEC;
		(void)log_line_json(&line, out);
		line.time -= USEC_PER_SEC;
		(void)log_line_json(&line, out);
		(void)snprintf(expected, sizeof(expected), "{\"time\":\"%s\"", rows[i][1]);
		assert_int_equal(strncmp(out, expected, strlen(expected)), 0);
	}
}

static void test_text_is_cut_between_characters(void **state)
{
	char raw[LOG_LINE_SIZE];

	(void)state;
	for (size_t first = 0; first < 4; first++) {
		size_t at = 0;

		memset(raw, 'x', first);
		for (size_t i = first; i + 3 < sizeof(raw); i += 3)
			memcpy(raw + i, "\xe2\x82\xac", 4);
		log_line_tidy(text, &client, raw);
		assert_in_range(strlen(text), 1900, LOG_LINE_SIZE - 1);
		for (size_t length = strlen(text); at < length;) {
			const size_t character = text_utf8_length(text + at, length - at);

			assert_true(character > 0);
			at += character;
		}
	}
}

static void test_a_huge_prefix_leaves_room_for_the_text(void **state)
{
	static char prefix[2 * LOG_LINE_SIZE];
	const struct log_subject subject = {prefix, NULL, 0};

	(void)state;
	memset(prefix, 'p', sizeof(prefix) - 1);
	log_line_tidy(text, &subject, "the text");
	assert_string_equal(text + strlen(text) - 8, "the text");
}

/* Value of a field in a datagram for the journal; NULL if there is no such field. */
static const char *field(const char *datagram, size_t length, const char *name, size_t *size)
{
	const char *end = datagram + length, *at = datagram;

	while (at < end) {
		const char *stop = at + strcspn(at, "=\n");
		const bool binary = *stop == '\n';
		const char *value = stop + (binary ? 9 : 1);
		uint64_t count = 0;

		for (unsigned i = 0; binary && i < 8; i++)
			count |= (uint64_t)(uint8_t)stop[1 + i] << (8 * i);
		if (!binary)
			count = (uint64_t)((const char *)memchr(
						   value, '\n', (size_t)(end - value)) -
				value);
		assert_true(value + count < end);
		assert_int_equal(value[count], '\n');
		if ((size_t)(stop - at) == strlen(name) &&
			strncmp(at, name, strlen(name)) == 0) {
			*size = count;
			return value;
		}
		at = value + count + 1;
	}
	return NULL;
}

static void assert_field(
	const char *datagram, size_t length, const char *name, const char *expected)
{
	size_t size = 0;
	const char *value = field(datagram, length, name, &size);

	assert_non_null(value);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(value, expected, size);
}

static void test_journal_form(void **state)
{
	char out[LOG_WHOLE_SIZE];
	struct log_line line = line_of("closing\nbecause", &client);
	size_t length = log_line_journal(&line, "pooler", out);

	(void)state;
	assert_field(out, length, "PRIORITY", "4");
	assert_field(out, length, "SYSLOG_IDENTIFIER", "pooler");
	assert_field(out, length, "MESSAGE", "C-0x1: app/x@10.0.0.1:5123 closing\n\tbecause");
	assert_field(out, length, "PGUSHER_SIDE", "client");
	assert_field(out, length, "PGUSHER_USER", "o\"neil\\");
	assert_field(out, length, "PGUSHER_PORT", "5123");
	line.level = LEVEL_FATAL;
	length = log_line_journal(&line, "pooler", out);
	assert_field(out, length, "PRIORITY", "2");
}

static void test_journal_form_of_a_large_line_is_complete(void **state)
{
	static char long_text[2 * LOG_WHOLE_SIZE], raw[LOG_LINE_SIZE];
	const struct log_fact many[] = {{"long", long_text, 0}, {"last", "here", 0}};
	const struct log_subject subject = {"C-0x1:", many, 2};
	char out[LOG_WHOLE_SIZE];
	struct log_line line;
	size_t length;

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	memset(raw, 'y', sizeof(raw) - 1);
	line = line_of(raw, &subject);
	length = log_line_journal(&line, "pooler", out);
	assert_field(out, length, "PGUSHER_LAST", "here");
	assert_field(out, length, "MESSAGE", text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_form),
		cmocka_unit_test(test_json_form),
		cmocka_unit_test(test_json_escapes),
		cmocka_unit_test(test_json_of_any_text_is_complete),
		cmocka_unit_test(test_facts_that_do_not_fit_are_left_out),
		cmocka_unit_test(test_facts_take_no_more_than_their_share),
		cmocka_unit_test(test_time_has_the_zone),
		cmocka_unit_test(test_text_is_cut_between_characters),
		cmocka_unit_test(test_a_huge_prefix_leaves_room_for_the_text),
		cmocka_unit_test(test_journal_form),
		cmocka_unit_test(test_journal_form_of_a_large_line_is_complete),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
