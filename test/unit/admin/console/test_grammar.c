/* SPDX-License-Identifier: ISC */
/* The grammar of console commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "admin/console/grammar.h"

static struct command_words words;

static void assert_command(const char *text, const char *word, const char *argument)
{
	assert_int_equal(grammar_parse(text, &words), GRAMMAR_COMMAND);
	assert_string_equal(words.word, word);
	assert_int_equal(words.has_argument, argument != NULL);
	if (argument)
		assert_string_equal(words.argument, argument);
}

static void assert_set(const char *text, const char *key, const char *value)
{
	assert_int_equal(grammar_parse(text, &words), GRAMMAR_SET);
	assert_string_equal(words.argument, key);
	assert_string_equal(words.value, value);
}

static void assert_invalid(const char *text)
{
	assert_int_equal(grammar_parse(text, &words), GRAMMAR_INVALID);
}

static void assert_show(const char *text, const char *topic, const char *clauses)
{
	assert_int_equal(grammar_parse(text, &words), GRAMMAR_SHOW);
	assert_string_equal(words.argument, topic);
	assert_string_equal(words.clauses, clauses);
}

static void test_show_may_have_clauses(void **state)
{
	(void)state;
	assert_show("SHOW pools WHERE a = 1;", "pools", "WHERE a = 1;");
	assert_show("select \"pools\"  order by", "pools", "order by");
	assert_show(" Show clients\nLimit 3", "clients", "Limit 3");
	assert_show("SHOW pools WHERE", "pools", "WHERE");
	assert_invalid("SHOW pools wherever");
	assert_invalid("SHOW pools FROM x WHERE a = 1");
	assert_invalid("SHOW pools; WHERE a = 1");
	assert_invalid("SELECT a, b WHERE a = 1");
	assert_invalid("SELECT 1.5 LIMIT 1");
	assert_invalid("PAUSE pools WHERE a = 1");
	assert_command("SHOW WHERE", "SHOW", "WHERE");
	assert_command("SHOW LIMIT ;", "SHOW", "LIMIT");
}

static void test_word_alone_is_a_command(void **state)
{
	(void)state;
	assert_command("RELOAD", "RELOAD", NULL);
	assert_command("reload;", "reload", NULL);
	assert_command(" \t\r\nReLoad \n; \t", "ReLoad", NULL);
}

static void test_words_keep_their_case(void **state)
{
	(void)state;
	assert_command("PAUSE MyDb", "PAUSE", "MyDb");
	assert_command("SHOW\tpools ;", "SHOW", "pools");
	assert_command("kill_client 17", "kill_client", "17");
}

static void test_quoted_words_lose_their_quotes(void **state)
{
	(void)state;
	assert_command("PAUSE \"my-db.1\";", "PAUSE", "my-db.1");
	assert_command("PAUSE \"a \"\"b\"\"\"", "PAUSE", "a \"b\"");
	assert_command("PAUSE \"; \"", "PAUSE", "; ");
	assert_command("PAUSE \"\"", "PAUSE", "");
	assert_command("\"SHOW\" POOLS", "SHOW", "POOLS");
}

static void test_set_takes_equals_and_to(void **state)
{
	(void)state;
	assert_set("SET verbose=2", "verbose", "2");
	assert_set("set verbose = 2;", "verbose", "2");
	assert_set("Set verbose TO 2", "verbose", "2");
	assert_set("SET a to 'b c'", "a", "b c");
	assert_set("SET a='it''s'", "a", "it's");
	assert_set("SET a=''", "a", "");
	assert_set("SET a = \"b\"", "a", "b");
	assert_set("  SET \"a b\"=1 ; ", "a b", "1");
}

static void test_other_texts_are_invalid(void **state)
{
	(void)state;
	assert_invalid("");
	assert_invalid(";");
	assert_invalid("   ");
	assert_invalid("RELOAD;;");
	assert_invalid("SHOW POOLS; SHOW POOLS");
	assert_invalid("SHOW POOLS x");
	assert_invalid("PAUSE my-db");
	assert_invalid("PAUSE 'db'");
	assert_invalid("PAUSE \"db");
	assert_invalid("SHOW\"POOLS\"");
	assert_invalid("SHOW -- x");
	assert_invalid("SELECT 1, 2");
	assert_invalid("SET a = -1");
	assert_invalid("SET a = 1.5");
	assert_invalid("SET a = 1, b");
	assert_invalid("SET a = 'b");
	assert_invalid("SET a =");
	assert_invalid("SET a = 1; SET b = 2");
	assert_invalid("SETa = 1");
	assert_invalid("SHOW \xc3\xa4");
}

static void test_too_long_words_are_reported(void **state)
{
	char text[512], name[256];

	(void)state;
	assert_command("abcdefghijklmno", "abcdefghijklmno", NULL);
	assert_int_equal(grammar_parse("abcdefghijklmnop", &words), GRAMMAR_TOO_LONG);

	memset(name, 'x', sizeof(name));
	name[64] = '\0';
	snprintf(text, sizeof(text), "PAUSE \"%s\"", name);
	assert_int_equal(grammar_parse(text, &words), GRAMMAR_TOO_LONG);
	name[63] = '\0';
	snprintf(text, sizeof(text), "PAUSE \"%s\"", name);
	assert_command(text, "PAUSE", name);

	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	snprintf(text, sizeof(text), "SET a = '%s'", name);
	assert_set(text, "a", name);
	snprintf(text, sizeof(text), "SET a = '%s'';", name);
	assert_invalid(text);
	snprintf(text, sizeof(text), "SET a = '%s'''", name);
	assert_int_equal(grammar_parse(text, &words), GRAMMAR_TOO_LONG);
}

static void test_quotes_count_once_for_the_length(void **state)
{
	char text[256] = "PAUSE \"";

	(void)state;
	for (int i = 0; i < 63; i++)
		strcat(text, "\"\"");
	strcat(text, "\"");
	assert_int_equal(grammar_parse(text, &words), GRAMMAR_COMMAND);
	assert_int_equal(strlen(words.argument), 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_show_may_have_clauses),
		cmocka_unit_test(test_word_alone_is_a_command),
		cmocka_unit_test(test_words_keep_their_case),
		cmocka_unit_test(test_quoted_words_lose_their_quotes),
		cmocka_unit_test(test_set_takes_equals_and_to),
		cmocka_unit_test(test_other_texts_are_invalid),
		cmocka_unit_test(test_too_long_words_are_reported),
		cmocka_unit_test(test_quotes_count_once_for_the_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
