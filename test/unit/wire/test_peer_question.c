/* SPDX-License-Identifier: ISC */
/* How peers ask each other for their peer_id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/peer_question.h"
#include "wire/startup.h"

static const uint8_t nonce[PEER_NONCE_SIZE] = "0123456789abcdef";

static void test_question_is_a_message_without_a_letter(void **state)
{
	struct buffer question;
	size_t total;

	(void)state;
	buffer_init(&question);
	peer_question_write(&question, nonce);
	assert_int_equal(
		startup_peek(question.data, question.length, &total), STARTUP_PEER_QUESTION);
	assert_int_equal(total, question.length);
	assert_int_equal(
		startup_peek(question.data, question.length - 1, &total), STARTUP_INCOMPLETE);
	assert_memory_equal(
		peer_question_nonce(question.data, question.length), nonce, sizeof(nonce));
	assert_null(peer_question_nonce(question.data, question.length - 1));
	assert_null(peer_question_nonce(question.data, question.length + 1));
	buffer_free(&question);
}

static void test_answer_has_an_id_from_1_to_16383(void **state)
{
	static const unsigned ids[] = {0, 1, 16383, 16384, 1u << 31};
	static const unsigned read[] = {0, 1, 16383, 0, 0};
	struct buffer answer;

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		buffer_init(&answer);
		peer_answer_write(&answer, ids[i]);
		assert_int_equal(answer.length, PEER_ANSWER_SIZE);
		assert_int_equal(peer_answer_read(answer.data), read[i]);
		buffer_free(&answer);
	}
}

static void test_answer_with_any_other_byte_is_none(void **state)
{
	struct buffer answer;

	(void)state;
	buffer_init(&answer);
	peer_answer_write(&answer, 7);
	for (size_t i = 0; i < PEER_ANSWER_SIZE - 2; i++) {
		answer.data[i] ^= 0x80;
		assert_int_equal(peer_answer_read(answer.data), 0);
		answer.data[i] ^= 0x80;
	}
	assert_int_equal(peer_answer_read(answer.data), 7);
	buffer_free(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question_is_a_message_without_a_letter),
		cmocka_unit_test(test_answer_has_an_id_from_1_to_16383),
		cmocka_unit_test(test_answer_with_any_other_byte_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
