/* SPDX-License-Identifier: ISC */
/* Letters and codes match the protocol's documentation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/message.h"

static void test_a_letter_has_a_meaning_per_direction(void **state)
{
	(void)state;
	assert_string_equal(message_client_name('S'), "Sync");
	assert_string_equal(message_server_name('S'), "ParameterStatus");
	assert_string_equal(message_client_name('d'), "CopyData");
	assert_string_equal(message_server_name('d'), "CopyData");
}

static void test_an_unknown_letter_has_no_name(void **state)
{
	(void)state;
	assert_null(message_client_name(0));
	assert_null(message_client_name('Z'));
	assert_null(message_client_name(255));
	assert_null(message_server_name('Q'));
	assert_null(message_server_name('f'));
	assert_null(message_server_name(255));
}

static void test_codes_are_those_of_the_protocol(void **state)
{
	(void)state;
	assert_int_equal(PROTOCOL_2_0, 0x20000);
	assert_int_equal(PROTOCOL_3_0, 196608);
	assert_int_equal(PROTOCOL_3_2, 0x30002);
	assert_int_equal(CANCEL_REQUEST_CODE, 1234 << 16 | 5678);
	assert_int_equal(SSL_REQUEST_CODE, 1234 << 16 | 5679);
	assert_int_equal(GSSENC_REQUEST_CODE, 1234 << 16 | 5680);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_letter_has_a_meaning_per_direction),
		cmocka_unit_test(test_an_unknown_letter_has_no_name),
		cmocka_unit_test(test_codes_are_those_of_the_protocol),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
