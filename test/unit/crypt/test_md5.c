/* SPDX-License-Identifier: ISC */
/* MD5 secrets and responses are those of PostgreSQL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypt/md5.h"

static void test_secret_is_digest_of_password_and_name(void **state)
{
	char secret[MD5_SECRET_SIZE];

	(void)state;
	assert_true(md5_secret("a", "bc", secret));
	/* RFC 1321: MD5("abc") */
	assert_string_equal(secret, "md5900150983cd24fb0d6963f7d28e17f72");
	assert_true(md5_secret("", "", secret));
	assert_string_equal(secret, "md5d41d8cd98f00b204e9800998ecf8427e");
	assert_true(md5_is_secret(secret));
}

static void test_response_is_digest_of_digits_and_salt(void **state)
{
	static const uint8_t salt[MD5_SALT_SIZE] = {0x01, 0x00, 0xfe, 0x7f};
	char secret[MD5_SECRET_SIZE], response[MD5_SECRET_SIZE];

	(void)state;
	assert_true(md5_secret("secret", "alice", secret));
	assert_string_equal(secret, "md54a0a68b43b6cd5cf266fa02f196e2371");
	assert_true(md5_response(secret, salt, response));
	assert_string_equal(response, "md5a6c5c0a1520a8909a25569182327ae45");
}

static void test_only_lower_case_hex_of_the_right_length_is_a_secret(void **state)
{
	static const char *const clear[] = {"", "md5", "md5900150983cd24fb0d6963f7d28e17f7",
		"md5900150983cd24fb0d6963f7d28e17f722", "md5900150983CD24FB0D6963F7D28E17F72",
		"md5900150983cd24fb0d6963f7d28e17f7g", "MD5900150983cd24fb0d6963f7d28e17f72",
		" md5900150983cd24fb0d6963f7d28e17f7"};

	(void)state;
	assert_true(md5_is_secret("md5900150983cd24fb0d6963f7d28e17f72"));
	for (size_t i = 0; i < sizeof(clear) / sizeof(clear[0]); i++)
		assert_false(md5_is_secret(clear[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secret_is_digest_of_password_and_name),
		cmocka_unit_test(test_response_is_digest_of_digits_and_salt),
		cmocka_unit_test(test_only_lower_case_hex_of_the_right_length_is_a_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
