/* SPDX-License-Identifier: ISC */
/* Messages are checked byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/writer.h"

/* Check the whole content of the buffer, then free it. */
#define assert_written(buffer, bytes)                                                          \
	do {                                                                                   \
		assert_false((buffer)->failed);                                                \
		assert_int_equal((buffer)->length, sizeof(bytes) - 1);                         \
		assert_memory_equal((buffer)->data, bytes, sizeof(bytes) - 1);                 \
		buffer_free(buffer);                                                           \
	} while (0)

static void test_the_length_of_a_message_is_filled_in(void **state)
{
	struct buffer buffer = {0};
	size_t mark;

	(void)state;
	mark = writer_begin(&buffer, 'Z');
	writer_byte(&buffer, 'I');
	writer_end(&buffer, mark);
	mark = writer_begin(&buffer, 't');
	writer_int16(&buffer, 0x0102);
	writer_int32(&buffer, 0x03040506);
	writer_int64(&buffer, 0x0708090a0b0c0d0e);
	writer_string(&buffer, "x");
	writer_bytes(&buffer, "yz", 2);
	writer_end(&buffer, mark);
	assert_written(&buffer,
		"Z\0\0\0\5I"
		"t\0\0\0\26\1\2\3\4\5\6\7\10\11\12\13\14\15\16x\0yz");
}

static void test_a_message_without_letter_begins_with_its_length(void **state)
{
	struct buffer buffer = {0};
	size_t mark = writer_begin(&buffer, 0);

	(void)state;
	writer_int32(&buffer, SSL_REQUEST_CODE);
	writer_end(&buffer, mark);
	assert_written(&buffer, "\0\0\0\10\4\322\26\57");
}

static void test_an_error_has_exactly_three_fields(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	writer_error(&buffer, "FATAL", "08P01", "no");
	assert_written(&buffer, "E\0\0\0\27SFATAL\0C08P01\0Mno\0\0");
	writer_notice(&buffer, "NOTICE", "00000", "");
	assert_written(&buffer, "N\0\0\0\26SNOTICE\0C00000\0M\0\0");
}

static void test_messages_to_clients(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	writer_authentication(&buffer, AUTH_OK, NULL, 0);
	assert_written(&buffer, "R\0\0\0\10\0\0\0\0");
	writer_authentication(&buffer, AUTH_SASL, "SCRAM-SHA-256\0", 15);
	assert_written(&buffer, "R\0\0\0\27\0\0\0\12SCRAM-SHA-256\0\0");
	writer_parameter_status(&buffer, "TimeZone", "");
	assert_written(&buffer, "S\0\0\0\16TimeZone\0\0");
	writer_backend_key(&buffer, "12345678", 8);
	assert_written(&buffer, "K\0\0\0\01412345678");
	writer_ready(&buffer, READY_IDLE);
	assert_written(&buffer, "Z\0\0\0\5I");
	writer_command_complete(&buffer, "SHOW");
	assert_written(&buffer, "C\0\0\0\11SHOW\0");
}

static void test_messages_to_servers(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	writer_query(&buffer, "SELECT 1");
	assert_written(&buffer, "Q\0\0\0\15SELECT 1\0");
	writer_query_text(&buffer, "SET a='b';junk", 10);
	assert_written(&buffer, "Q\0\0\0\17SET a='b';\0");
	writer_query_text(&buffer, NULL, 0);
	assert_written(&buffer, "Q\0\0\0\5\0");
	writer_password(&buffer, "secret", 7);
	assert_written(&buffer, "p\0\0\0\13secret\0");
	writer_sasl_initial(&buffer, "SCRAM-SHA-256", "n,,", 3);
	assert_written(&buffer, "p\0\0\0\31SCRAM-SHA-256\0\0\0\0\3n,,");
	writer_terminate(&buffer);
	assert_written(&buffer, "X\0\0\0\4");
}

static void test_a_failed_buffer_stays_failed(void **state)
{
	struct buffer buffer = {0};
	size_t mark = writer_begin(&buffer, 'D');

	(void)state;
	buffer.failed = true;
	writer_string(&buffer, "text");
	writer_end(&buffer, mark);
	writer_ready(&buffer, READY_IDLE);
	assert_true(buffer.failed);
	buffer_free(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_length_of_a_message_is_filled_in),
		cmocka_unit_test(test_a_message_without_letter_begins_with_its_length),
		cmocka_unit_test(test_an_error_has_exactly_three_fields),
		cmocka_unit_test(test_messages_to_clients),
		cmocka_unit_test(test_messages_to_servers),
		cmocka_unit_test(test_a_failed_buffer_stays_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
