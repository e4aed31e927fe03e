/* SPDX-License-Identifier: ISC */
/* Names in texts: as words and as parts of them; compared with a slow search of random texts. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "base/random.h"
#include "wire/watched_names.h"

static struct watched_names names;

static int clear(void **state)
{
	(void)state;
	watched_names_free(&names);
	return 0;
}

static void add(const char *name, session_topics topics)
{
	assert_true(watched_names_add(&names, name, strlen(name), topics, false));
}

static session_topics find(const char *text)
{
	return watched_names_find(&names, text, strlen(text));
}

static void test_name_is_found_as_a_word(void **state)
{
	(void)state;
	add("enter", TOPIC_SETTINGS);
	add("bolt", TOPIC_LOCKS);
	assert_int_equal(find("SELECT enter('red')"), TOPIC_SETTINGS);
	assert_int_equal(find("SELECT made.Enter()"), TOPIC_SETTINGS);
	assert_int_equal(find("SELECT \"enter\"()"), TOPIC_SETTINGS);
	assert_int_equal(find("enter"), TOPIC_SETTINGS);
	assert_int_equal(find("SELECT bolt(), ENTER()"), TOPIC_SETTINGS | TOPIC_LOCKS);
	assert_int_equal(find("SELECT enters(), reenter(), enter2(), enter$(), _enter()"), 0);
	assert_int_equal(find("SELECT enter\xc3\xa4()"), 0);
	assert_int_equal(find(""), 0);
}

static void test_names_of_the_same_kind_add_their_topics(void **state)
{
	(void)state;
	add("Enter", TOPIC_SETTINGS);
	add("enter", TOPIC_TEMPORARY);
	assert_int_equal(find("SELECT enter()"), TOPIC_SETTINGS | TOPIC_TEMPORARY);
}

static void test_text_ends_at_its_first_nul_or_at_its_length(void **state)
{
	(void)state;
	add("enter", TOPIC_SETTINGS);
	assert_int_equal(watched_names_find(&names, "one\0enter", 9), 0);
	assert_int_equal(watched_names_find(&names, "one enter", 8), 0);
	assert_int_equal(watched_names_find(&names, "one enter", 9), TOPIC_SETTINGS);
}

static void test_other_names_are_found_anywhere(void **state)
{
	(void)state;
	add("@@@", TOPIC_SETTINGS);
	add("my door", TOPIC_LOCKS);
	assert_true(watched_names_add(&names, "ber", 3, TOPIC_TEMPORARY, true));
	assert_int_equal(find("SELECT 1@@@2"), TOPIC_SETTINGS);
	assert_int_equal(find("SELECT \"My Door\"()"), TOPIC_LOCKS);
	assert_int_equal(find("SELECT \"\xc3\x9c"
			      "BER\"()"),
		TOPIC_TEMPORARY);
	assert_int_equal(find("SELECT 1@@2, my, door"), 0);
}

static void test_word_counts_as_far_as_postgresql_reads_it(void **state)
{
	char name[WATCHED_NAME_MAX + 1], text[200];

	(void)state;
	memset(name, 'a', sizeof(name));
	add("other", TOPIC_LOCKS);
	assert_true(watched_names_add(&names, name, WATCHED_NAME_MAX, TOPIC_SETTINGS, false));
	snprintf(text, sizeof(text), "SELECT %.*s()", WATCHED_NAME_MAX, name);
	assert_int_equal(find(text), TOPIC_SETTINGS);
	snprintf(text, sizeof(text), "SELECT %.*sAnd_more()", WATCHED_NAME_MAX, name);
	assert_int_equal(find(text), TOPIC_SETTINGS);
	snprintf(text, sizeof(text), "SELECT %.*s()", WATCHED_NAME_MAX - 1, name);
	assert_int_equal(find(text), 0);
}

static void test_names_are_bounded(void **state)
{
	char name[WATCHED_NAME_MAX + 1];

	(void)state;
	memset(name, 'a', sizeof(name));
	assert_false(watched_names_add(&names, "", 0, TOPIC_SETTINGS, false));
	assert_false(watched_names_add(&names, name, sizeof(name), TOPIC_SETTINGS, false));
	for (unsigned i = 0; i < WATCHED_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "name_%u", i);
		add(name, TOPIC_SETTINGS);
	}
	assert_int_equal(watched_names_count(&names), WATCHED_NAMES_MAX);
	assert_false(watched_names_add(&names, "one", 3, TOPIC_SETTINGS, false));
	assert_int_equal(find("SELECT name_0, name_4095"), TOPIC_SETTINGS);
	assert_int_equal(find("SELECT name_4096"), 0);
}

/* --- against a slow search ---------------------------------------------------------------- */

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool has_slowly(const char *text, const char *name)
{
	const size_t length = strlen(name);
	const bool word = in_word(name[0]);

	for (const char *at = text; *at; at++) {
		if (strncasecmp(at, name, length) == 0 &&
			(!word || ((at == text || !in_word(at[-1])) && !in_word(at[length]))))
			return true;
	}
	return false;
}

static void draw(struct random *random, char *text, const char *letters, size_t length)
{
	const size_t count = strlen(letters);

	for (size_t i = 0; i < length; i++)
		text[i] = letters[random_below(random, count)];
	text[length] = '\0';
}

static void test_it_finds_what_a_slow_search_finds(void **state)
{
	static const char letters[] = "aAbB_$1 .(\"';\n\xc3", symbols[] = "+@";
	struct random random;
	char name[8][4], text[64];

	(void)state;
	random_seed(&random, 1);
	for (unsigned round = 0; round < 3000; round++) {
		watched_names_free(&names);
		for (unsigned i = 0; i < 8; i++) {
			draw(&random, name[i], i < 6 ? "aAb_" : symbols,
				1 + random_below(&random, 3));
			add(name[i], (session_topics)(1 << i));
		}
		for (unsigned i = 0; i < 10; i++) {
			session_topics expected = 0;

			draw(&random, text, random_below(&random, 2) ? letters : "aAb_+@ ",
				random_below(&random, sizeof(text)));
			for (unsigned k = 0; k < 8; k++)
				expected |= has_slowly(text, name[k]) ? (session_topics)(1 << k)
								      : 0;
			assert_int_equal(find(text), expected);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_name_is_found_as_a_word, clear),
		cmocka_unit_test_teardown(test_names_of_the_same_kind_add_their_topics, clear),
		cmocka_unit_test_teardown(
			test_text_ends_at_its_first_nul_or_at_its_length, clear),
		cmocka_unit_test_teardown(test_other_names_are_found_anywhere, clear),
		cmocka_unit_test_teardown(
			test_word_counts_as_far_as_postgresql_reads_it, clear),
		cmocka_unit_test_teardown(test_names_are_bounded, clear),
		cmocka_unit_test_teardown(test_it_finds_what_a_slow_search_finds, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
