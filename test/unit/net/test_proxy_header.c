/* SPDX-License-Identifier: ISC */
/* The header of the PROXY protocol: each form of it, each mistake, and each place to cut it. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/proxy_header.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Version 2: signature, then version and command, family, length. */
#define V2 "\r\n\r\n\0\r\nQUIT\n"
#define V2_TCP4 V2 "\x21\x11\0\x0c\x0a\x01\x02\x03\xc0\0\x02\x01\x12\x34\x15\x38"

static struct proxy_header header;

/* Read bytes that end where their memory ends, so that a sanitizer sees any read behind them. */
static enum proxy_header_result read_bytes(const void *bytes, size_t length)
{
	uint8_t *copy = malloc(length);
	enum proxy_header_result result;

	assert_true(length == 0 || copy);
	memcpy(copy, bytes, length);
	result = proxy_header_read(copy, length, &header);
	free(copy);
	return result;
}

static enum proxy_header_result read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void assert_client(const char *text)
{
	char out[ADDRESS_TEXT_SIZE];

	assert_true(header.relayed);
	assert_string_equal(address_text(&header.client, out), text);
}

static void assert_unknown_client(void)
{
	assert_true(header.relayed);
	assert_int_equal(header.client.family, AF_UNSPEC);
}

/*
 * The header is found whole with its size, whatever follows it, and each beginning of it asks for
 * more.
 */
static void assert_whole(const void *bytes, size_t size)
{
	uint8_t longer[PROXY_HEADER_MAX + 200];

	for (size_t length = 0; length < size; length++) {
		const enum proxy_header_result result = read_bytes(bytes, length);

		assert_true(result == PROXY_HEADER_UNCLEAR ||
			(length >= 6 && result == PROXY_HEADER_INCOMPLETE));
	}
	memcpy(longer, bytes, size);
	memset(longer + size, 'P', 200);
	assert_int_equal(read_bytes(longer, size + 200), PROXY_HEADER_WHOLE);
	assert_int_equal(header.size, size);
	assert_int_equal(read_bytes(bytes, size), PROXY_HEADER_WHOLE);
	assert_int_equal(header.size, size);
}

static void assert_malformed(const void *bytes, size_t length, const char *fault)
{
	assert_int_equal(read_bytes(bytes, length), PROXY_HEADER_MALFORMED);
	assert_non_null(strstr(header.fault, fault));
}

/* --- version 1 ---------------------------------------------------------------------------- */

static void test_line_has_the_address_of_the_client(void **state)
{
	static const struct {
		const char *line, *client;
	} cases[] = {
		{"PROXY TCP4 10.1.2.3 192.0.2.1 4660 5432\r\n", "10.1.2.3:4660"},
		{"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
			"255.255.255.255:65535"},
		{"PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0"},
		{"PROXY TCP6 2001:db8::7 ::1 1 2\r\n", "[2001:db8::7]:1"},
		{"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
			"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
		{"PROXY TCP6 ::ffff:10.1.2.3 ::1 7 8\r\n", "10.1.2.3:7"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_whole(cases[i].line, strlen(cases[i].line));
		assert_client(cases[i].client);
	}
}

static void test_line_may_have_no_address(void **state)
{
	static const char *const lines[] = {
		"PROXY UNKNOWN\r\n",
		"PROXY UNKNOWN 10.1.2.3 192.0.2.1 4660 5432\r\n",
		"PROXY UNKNOWN any text  at all \r\n",
		/* The longest one: 107 bytes. */
		"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
	};

	(void)state;
	assert_int_equal(strlen(lines[3]), PROXY_HEADER_LINE_MAX);
	for (size_t i = 0; i < COUNT(lines); i++) {
		assert_whole(lines[i], strlen(lines[i]));
		assert_unknown_client();
	}
}

static void test_wrong_lines_are_malformed(void **state)
{
	static const struct {
		const char *line, *fault;
	} cases[] = {
		{"PROXY \r\n", "protocol"},
		{"PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n", "protocol"},
		{"PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n", "protocol"},
		{"PROXY UNKNOWN\t\r\n", "printable"},
		{"PROXY UNKNOWNX\r\n", "protocol"},
		{"PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "protocol"},
		{"PROXY TCP4\r\n", "address"},
		{"PROXY TCP4 1.2.3.4\r\n", "address"},
		{"PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n", "address"},
		{"PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n", "address"},
		{"PROXY TCP4 01.2.3.4 1.2.3.4 1 2\r\n", "address"},
		{"PROXY TCP4 1.2.3.4 localhost 1 2\r\n", "address"},
		{"PROXY TCP4 ::1 ::1 1 2\r\n", "address"},
		{"PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n", "address"},
		{"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "address"},
		{"PROXY TCP6 ::1 ::ffff:1.2.3.4.5 1 2\r\n", "address"},
		{"PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n", "address"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 100000 2\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 0x1 2\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n", "port"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", "printable"},
		{"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r\n", "carriage return"},
		{"PROXY TCP4 1.2.3.4\x1b[2J", "printable"},
		{"PROXY UNKNOWN \xc3\xa4\r\n", "printable"},
		{"PROXY UNKNOWN \x7f\r\n", "printable"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_malformed(cases[i].line, strlen(cases[i].line), cases[i].fault);
	assert_malformed("PROXY TCP4 \0\r\n", 14, "printable");
}

static void test_line_is_bounded(void **state)
{
	char line[2 * PROXY_HEADER_LINE_MAX];

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "PROXY UNKNOWN ", 14);
	/* With 106 bytes there is no room for CR LF any more. */
	assert_int_equal(read_bytes(line, 105), PROXY_HEADER_INCOMPLETE);
	assert_malformed(line, 106, "longer than 107");
	assert_malformed(line, 107, "longer than 107");
	assert_malformed(line, sizeof(line), "longer than 107");
	line[106] = '\r';
	line[107] = '\n';
	assert_malformed(line, 108, "longer than 107");
	line[105] = '\r';
	assert_malformed(line, 108, "carriage return");
	line[106] = '\n';
	assert_int_equal(read_bytes(line, 108), PROXY_HEADER_WHOLE);
	assert_int_equal(header.size, 107);
}

/* --- version 2 ---------------------------------------------------------------------------- */

static void test_binary_header_has_the_address_of_the_client(void **state)
{
	static const char tcp6[] = V2 "\x21\x21\0\x24"
				      "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"
				      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x05\0\x06";
	static const char mapped[] = V2 "\x21\x21\0\x24"
					"\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x01\x02\x03"
					"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x05\0\x06";

	(void)state;
	assert_whole(V2_TCP4, sizeof(V2_TCP4) - 1);
	assert_client("10.1.2.3:4660");
	assert_whole(tcp6, sizeof(tcp6) - 1);
	assert_client("[2001:db8::7]:5");
	assert_whole(mapped, sizeof(mapped) - 1);
	assert_client("10.1.2.3:5");
}

/* Make a header of these parts, with a length that is right. Returns its size. */
static size_t make(uint8_t *out, uint8_t command, uint8_t family, const void *rest, size_t size)
{
	memcpy(out, V2, 12);
	out[12] = command;
	out[13] = family;
	out[14] = (uint8_t)(size >> 8);
	out[15] = (uint8_t)size;
	memcpy(out + 16, rest, size);
	return 16 + size;
}

static void test_binary_header_may_have_no_address(void **state)
{
	static const uint8_t zeros[216];
	static const struct {
		uint8_t family;
		size_t size;
	} cases[] = {
		{0x00, 0}, /* unspecified */
		{0x00, 1}, /* whatever follows is ignored */
		{0x00, 200},
		{0x12, 12}, /* datagrams */
		{0x22, 36},
		{0x31, 216}, /* Unix sockets */
		{0x32, 216},
	};
	uint8_t bytes[300];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_whole(bytes, make(bytes, 0x21, cases[i].family, zeros, cases[i].size));
		assert_unknown_client();
	}
}

static void test_proxy_may_connect_for_itself(void **state)
{
	static const uint8_t rest[50] = {0xff};
	static const uint8_t families[] = {0x00, 0x11, 0x21, 0x31, 0x44, 0xff};
	uint8_t bytes[100];

	(void)state;
	for (size_t i = 0; i < COUNT(families); i++) {
		for (size_t size = 0; size <= sizeof(rest); size += 25) {
			assert_whole(bytes, make(bytes, 0x20, families[i], rest, size));
			assert_false(header.relayed);
			assert_int_equal(header.client.family, AF_UNSPEC);
		}
	}
}

static void test_wrong_binary_headers_are_malformed(void **state)
{
	static const uint8_t zeros[300];
	static const uint8_t families[] = {
		0x01, 0x02, 0x03, 0x10, 0x13, 0x1f, 0x20, 0x23, 0x30, 0x33, 0x40, 0x41, 0xff};
	static const struct {
		uint8_t family;
		size_t size;
	} short_ones[] = {{0x11, 0}, {0x11, 11}, {0x12, 11}, {0x21, 12}, {0x21, 35}, {0x31, 36},
		{0x31, 215}, {0x32, 0}};
	uint8_t bytes[400];

	(void)state;
	for (unsigned command = 0; command < 256; command++) {
		make(bytes, (uint8_t)command, 0x11, zeros, 12);
		if (command >> 4 != 2)
			assert_malformed(bytes, 13, "version");
		else if (command > 0x21)
			assert_malformed(bytes, 13, "command");
	}
	for (size_t i = 0; i < COUNT(families); i++) {
		make(bytes, 0x21, families[i], zeros, 216);
		assert_malformed(bytes, 14, "family");
	}
	for (size_t i = 0; i < COUNT(short_ones); i++)
		assert_malformed(bytes,
			make(bytes, 0x21, short_ones[i].family, zeros, short_ones[i].size),
			"too short");
}

static void test_binary_header_is_bounded(void **state)
{
	static uint8_t bytes[PROXY_HEADER_MAX + 1];
	static const uint8_t rest[PROXY_HEADER_MAX];

	(void)state;
	assert_whole(bytes, make(bytes, 0x20, 0, rest, PROXY_HEADER_MAX - 16));
	make(bytes, 0x20, 0, rest, PROXY_HEADER_MAX - 15);
	assert_malformed(bytes, 16, "longer than 4096"); /* as soon as its length is known */
	memset(bytes + 14, 0xff, 2);
	assert_malformed(bytes, 16, "longer than 4096");
	assert_malformed(bytes, sizeof(bytes), "longer than 4096");
}

static void test_information_behind_the_addresses_is_skipped(void **state)
{
	/* Addresses; the type of an unknown TLV, its length, its value; an empty one. */
	static const char good[] = "\x0a\x01\x02\x03\x0a\x01\x02\x04\0\x01\0\x02"
				   "\xe0\0\x03"
				   "abc"
				   "\x04\0\0";
	uint8_t bytes[100];

	(void)state;
	assert_whole(bytes, make(bytes, 0x21, 0x11, good, sizeof(good) - 1));
	assert_client("10.1.2.3:1");
	/* One that is cut off: in its header, in its value. */
	for (size_t cut = 13; cut < sizeof(good) - 1; cut++) {
		if (cut != 18)
			assert_malformed(bytes, make(bytes, 0x21, 0x11, good, cut), "cut off");
	}
}

static void test_checksum_is_verified_if_there_is_one(void **state)
{
	/* Computed by another program: CRC-32C of the 35 bytes with zeros in its place. */
	static const char good[] =
		V2 "\x21\x11\0\x13\x0a\x01\x02\x03\xc0\0\x02\x01\x12\x34\x15\x38"
		   "\x03\0\x04"
		   "CRCC";
	uint8_t bytes[sizeof(good) - 1], doubled[100];

	(void)state;
	memcpy(bytes, good, sizeof(bytes));
	memcpy(bytes + sizeof(bytes) - 4, "\x10\xa1\x2a\xaa", 4);
	assert_whole(bytes, sizeof(bytes));
	assert_client("10.1.2.3:4660");
	for (size_t i = 16; i < sizeof(bytes); i++) {
		if (i >= 28 && i <= 30)
			continue; /* type and length of the checksum itself */
		bytes[i] ^= 0x10;
		assert_malformed(bytes, sizeof(bytes), "checksum");
		bytes[i] ^= 0x10;
	}
	/* Of another length, and twice. */
	assert_malformed(doubled, make(doubled, 0x21, 0x11, good + 16, 12 + 3), "cut off");
	memcpy(doubled,
		V2_TCP4 "\x03\0\x03"
			"abc",
		34);
	doubled[15] = 18;
	assert_malformed(doubled, 34, "checksum");
	memcpy(doubled, bytes, sizeof(bytes));
	memcpy(doubled + sizeof(bytes), bytes + 28, 7);
	doubled[15] = 26;
	assert_malformed(doubled, sizeof(bytes) + 7, "checksum");
}

/* --- others ------------------------------------------------------------------------------- */

static void test_other_bytes_are_no_header(void **state)
{
	(void)state;
	assert_int_equal(read_text(""), PROXY_HEADER_UNCLEAR);
	assert_int_equal(read_text("P"), PROXY_HEADER_UNCLEAR);
	assert_int_equal(read_text("\r"), PROXY_HEADER_UNCLEAR);
	assert_int_equal(read_text("PROXY"), PROXY_HEADER_UNCLEAR);
	assert_int_equal(read_text("PROXY "), PROXY_HEADER_INCOMPLETE);
	assert_int_equal(read_text("PROXI"), PROXY_HEADER_NONE);
	assert_int_equal(read_text("proxy TCP4"), PROXY_HEADER_NONE);
	assert_int_equal(read_text("PROXY\t"), PROXY_HEADER_NONE);
	assert_int_equal(read_text("\r\n\n"), PROXY_HEADER_NONE);
	assert_int_equal(read_bytes("\r\n\r\n\0\r\nQUIT\r", 12), PROXY_HEADER_NONE);
	assert_int_equal(read_bytes("\0\0\0\x08\x04\xd2\x16\x2f", 8), PROXY_HEADER_NONE);
	assert_int_equal(read_text("\x16\x03\x01"), PROXY_HEADER_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_has_the_address_of_the_client),
		cmocka_unit_test(test_line_may_have_no_address),
		cmocka_unit_test(test_wrong_lines_are_malformed),
		cmocka_unit_test(test_line_is_bounded),
		cmocka_unit_test(test_binary_header_has_the_address_of_the_client),
		cmocka_unit_test(test_binary_header_may_have_no_address),
		cmocka_unit_test(test_proxy_may_connect_for_itself),
		cmocka_unit_test(test_wrong_binary_headers_are_malformed),
		cmocka_unit_test(test_binary_header_is_bounded),
		cmocka_unit_test(test_information_behind_the_addresses_is_skipped),
		cmocka_unit_test(test_checksum_is_verified_if_there_is_one),
		cmocka_unit_test(test_other_bytes_are_no_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
