/* SPDX-License-Identifier: ISC */
/* The tokenizer of HBA and ident files. */
#include "config/tokens.h"
#include "support/files/config_files.h"

static size_t add_token(const struct tokens *walk, char *out, size_t size)
{
	switch (walk->kind) {
	case TOKEN_BARE:
		return (size_t)snprintf(out, size, "[%s]", walk->text);
	case TOKEN_QUOTED:
		return (size_t)snprintf(out, size, "\"%s\"", walk->text);
	case TOKEN_COMMA:
		return (size_t)snprintf(out, size, ",");
	case TOKEN_BROKEN:
		return (size_t)snprintf(out, size, "!");
	case TOKEN_END:
		break;
	}
	return 0;
}

/* All tokens: `LINE:` where a line starts, then [bare], "quoted", comma, ! for broken. */
static const char *tokens_of(const char *text, size_t length)
{
	static char out[1000];
	/* Exactly its size, so that a read past its end is detected. */
	char *copy = malloc(length ? length : 1);
	struct tokens walk;
	size_t used = 0;

	memcpy(copy, text, length);
	out[0] = '\0';
	assert_true(tokens_begin(&walk, copy, length));
	while (tokens_next_line(&walk)) {
		used += (size_t)snprintf(out + used, sizeof(out) - used, "%u:", walk.line);
		for (; walk.kind != TOKEN_END; tokens_next(&walk)) {
			used += add_token(&walk, out + used, sizeof(out) - used);
			if (walk.kind == TOKEN_BROKEN)
				break;
		}
	}
	tokens_end(&walk);
	free(copy);
	return out;
}

#define assert_tokens(text, expected)                                                          \
	assert_string_equal(tokens_of(text, sizeof(text) - 1), expected)

static void test_blanks_separate_tokens(void **state)
{
	(void)state;
	assert_tokens("", "");
	assert_tokens("a", "1:[a]");
	assert_tokens(" \ta\t b \r\n", "1:[a][b]");
	assert_tokens("a\nb", "1:[a]2:[b]");
	assert_tokens("a\n \t \n\t\n\nb\n", "1:[a]5:[b]");
	assert_tokens("a\\\nb", "1:[a\\]2:[b]"); /* no continuation lines */
}

static void test_comments_start_anywhere_outside_of_quotes(void **state)
{
	(void)state;
	assert_tokens("# a\nb # c\n#\nd#e \"", "2:[b]4:[d]");
	assert_tokens("\"#\" a", "1:\"#\"[a]");
}

static void test_commas_are_tokens(void **state)
{
	(void)state;
	assert_tokens("a,b , c,\"d\",", "1:[a],[b],[c],\"d\",");
	assert_tokens(",", "1:,");
}

static void test_quotes_may_contain_anything(void **state)
{
	(void)state;
	assert_tokens("\"a b,c#d\"", "1:\"a b,c#d\"");
	assert_tokens("\"a\"\"b\"", "1:\"a\"b\"");
	assert_tokens("\"\"", "1:\"\"");
	assert_tokens("\"\"\"\"", "1:\"\"\"");
	assert_tokens("a\"b\"c", "1:[a]\"b\"[c]");
	assert_tokens("\"a\\\"", "1:\"a\\\""); /* a backslash does not escape */
}

static void test_a_quote_must_be_closed_on_its_line(void **state)
{
	(void)state;
	assert_tokens("a \"b\nc", "1:[a]!2:[c]");
	assert_tokens("\"", "1:!");
	assert_tokens("\"\"\"", "1:!");
}

static void test_a_nul_breaks_its_line(void **state)
{
	(void)state;
	assert_tokens("a\0b\nc", "1:[a]!2:[c]");
	assert_tokens("\"a\0\"\nc", "1:!2:[c]");
}

static void test_a_byte_order_mark_is_skipped(void **state)
{
	(void)state;
	assert_tokens("\xef\xbb\xbfhost a", "1:[host][a]");
	assert_tokens("\xef\xbb\xbf", "");
	assert_tokens("\xef\xbb", "1:[\xef\xbb]");
}

static void test_the_rest_of_a_line_is_returned_verbatim(void **state)
{
	static const char text[] = "a  x=\"1\"\"2\" # y, \t\r\nb\nc  ";
	struct tokens walk;
	size_t length;
	const char *rest;

	(void)state;
	assert_true(tokens_begin(&walk, text, sizeof(text) - 1));
	assert_true(tokens_next_line(&walk));
	assert_true(tokens_is_word(&walk, "a"));
	rest = tokens_rest(&walk, &length);
	assert_int_equal(length, strlen("x=\"1\"\"2\" # y,"));
	assert_memory_equal(rest, "x=\"1\"\"2\" # y,", length);
	assert_true(tokens_next_line(&walk));
	tokens_rest(&walk, &length);
	assert_int_equal(length, 0);
	assert_true(tokens_next_line(&walk));
	tokens_rest(&walk, &length);
	assert_int_equal(length, 0);
	assert_false(tokens_next_line(&walk));
	tokens_end(&walk);
}

static void test_a_quoted_word_is_not_a_keyword(void **state)
{
	struct tokens walk;

	(void)state;
	assert_true(tokens_begin(&walk, "\"all\" ALL", 9));
	assert_true(tokens_next_line(&walk));
	assert_false(tokens_is_word(&walk, "all"));
	tokens_next(&walk);
	assert_false(tokens_is_word(&walk, "all"));
	tokens_end(&walk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blanks_separate_tokens),
		cmocka_unit_test(test_comments_start_anywhere_outside_of_quotes),
		cmocka_unit_test(test_commas_are_tokens),
		cmocka_unit_test(test_quotes_may_contain_anything),
		cmocka_unit_test(test_a_quote_must_be_closed_on_its_line),
		cmocka_unit_test(test_a_nul_breaks_its_line),
		cmocka_unit_test(test_a_byte_order_mark_is_skipped),
		cmocka_unit_test(test_the_rest_of_a_line_is_returned_verbatim),
		cmocka_unit_test(test_a_quoted_word_is_not_a_keyword),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
