/* SPDX-License-Identifier: ISC */
/* Base64 decodes exactly what it encodes. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypt/base64.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* RFC 4648 section 10 */
static const struct {
	const char *bytes, *text;
} vectors[] = {
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
};

static void test_vectors_are_encoded_and_decoded(void **state)
{
	char text[16];
	uint8_t bytes[16];

	(void)state;
	for (size_t i = 0; i < COUNT(vectors); i++) {
		size_t length = strlen(vectors[i].bytes);

		assert_int_equal(base64_encode(vectors[i].bytes, length, text, sizeof(text)),
			strlen(vectors[i].text));
		assert_string_equal(text, vectors[i].text);
		assert_int_equal(
			base64_decode(text, strlen(text), bytes, sizeof(bytes)), length);
		assert_memory_equal(bytes, vectors[i].bytes, length);
	}
	assert_int_equal(base64_decode("", 0, bytes, sizeof(bytes)), 0);
}

static void test_every_byte_round_trips(void **state)
{
	uint8_t bytes[256], back[256];
	char text[BASE64_SIZE(sizeof(bytes))];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t length = 1; length <= sizeof(bytes); length++) {
		size_t written = base64_encode(bytes, length, text, sizeof(text));

		assert_int_equal(written + 1, BASE64_SIZE(length));
		assert_int_equal(base64_decode(text, written, back, length), length);
		assert_memory_equal(bytes, back, length);
	}
}

static void test_malformed_text_is_refused(void **state)
{
	static const char *const bad[] = {
		"Z",
		"Zg",
		"Zg=",
		"Zg===",
		"Zg==Zg==", /* padding in the middle */
		"Zg=v",
		"=Zg=",
		"====",
		"==",
		"Z===",
		" Zm9v",
		"Zm9v ",
		"Zm9v\n",
		"Zm\n9v",
		"\nZm9vYg",
		"Zm9-",
		"Zm9_",
		"Zh==", /* an unused bit is set */
		"Zm9=", /* the same */
		"Zm9\x80",
	};
	uint8_t bytes[16];

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(
			base64_decode(bad[i], strlen(bad[i]), bytes, sizeof(bytes)), -1);
	assert_int_equal(base64_decode("Zm\0v", 4, bytes, sizeof(bytes)), -1);
}

static void test_output_buffer_is_never_overrun(void **state)
{
	uint8_t bytes[8];
	char text[16];

	(void)state;
	memset(bytes, '#', sizeof(bytes));
	assert_int_equal(base64_decode("Zm9vYg==", 8, bytes, 4), 4);
	assert_memory_equal(bytes, "foob####", 8);
	assert_int_equal(base64_decode("Zm9vYg==", 8, bytes, 3), -1);
	assert_int_equal(base64_decode("Zm9v", 4, bytes, 2), -1);

	memset(text, '#', sizeof(text));
	assert_int_equal(base64_encode("foob", 4, text, 8), 0);
	assert_int_equal(text[8], '#');
	assert_string_equal(text, "");
	assert_int_equal(base64_encode("foob", 4, text, 9), 8);
	assert_int_equal(base64_encode("foob", 4, text, 0), 0);
	assert_int_equal(base64_encode("foob", SIZE_MAX, text, sizeof(text)), 0);
	assert_int_equal(base64_encode("", 0, text, sizeof(text)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors_are_encoded_and_decoded),
		cmocka_unit_test(test_every_byte_round_trips),
		cmocka_unit_test(test_malformed_text_is_refused),
		cmocka_unit_test(test_output_buffer_is_never_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
