/* SPDX-License-Identifier: ISC */
/* Names of causes, and lists of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/pin_causes.h"

static void test_each_topic_that_pins_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TOPIC_BITS; i++) {
		const session_topics topic = (session_topics)(1u << i);
		const char *name = pin_causes_name(topic);
		session_topics read = 0;

		assert_int_equal(strcmp(name, "none") == 0, (topic & TOPICS_PINNING) == 0);
		if (!(topic & TOPICS_PINNING))
			continue;
		assert_true(pin_causes_read(name, &read));
		assert_int_equal(read, topic);
		assert_non_null(strstr(PIN_CAUSES_ALLOWED, name));
	}
	assert_string_equal(pin_causes_name(0), "none");
}

static void test_of_several_causes_the_first_is_told(void **state)
{
	const session_topics both = TOPIC_SETTINGS | TOPIC_SEQUENCES | TOPIC_LOCKS;

	(void)state;
	assert_int_equal(pin_causes_first(both), TOPIC_LOCKS);
	assert_string_equal(pin_causes_name(both), "advisory lock");
	assert_int_equal(pin_causes_first(TOPIC_SETTINGS | TOPIC_UNREAD), 0);
	assert_int_equal(pin_causes_first(TOPIC_SEQUENCES), TOPIC_SEQUENCES);
}

static void test_a_list_is_read_in_any_letter_case_with_blanks_around_names(void **state)
{
	session_topics topics = 0;

	(void)state;
	assert_true(pin_causes_read("\tListen , SEQUENCE VALUE,load\n", &topics));
	assert_int_equal(topics, TOPIC_CHANNELS | TOPIC_SEQUENCES | TOPIC_LIBRARY);
	assert_true(pin_causes_read("", &topics));
	assert_int_equal(topics, 0);
	topics = 1;
	assert_true(pin_causes_read("  ", &topics));
	assert_int_equal(topics, 0);
}

static void test_a_list_with_another_name_is_refused_whole(void **state)
{
	static const char *const bad[] = {"none", "listen,", ",listen", ",", "listen,,load",
		"listen load", "listen; load", "temporary  object", "temporary", "listen, x"};
	session_topics topics = TOPIC_LOCKS;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (pin_causes_read(bad[i], &topics))
			fail_msg("%s", bad[i]);
	}
	assert_int_equal(topics, TOPIC_LOCKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_topic_that_pins_has_a_name_of_its_own),
		cmocka_unit_test(test_of_several_causes_the_first_is_told),
		cmocka_unit_test(
			test_a_list_is_read_in_any_letter_case_with_blanks_around_names),
		cmocka_unit_test(test_a_list_with_another_name_is_refused_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
