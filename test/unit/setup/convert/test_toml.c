/* SPDX-License-Identifier: ISC */
/* TOML: what is valid becomes the tree of the specification, and what is not is an error. */
#include "base/buffer.h"
#include "setup/convert/toml.h"
#include "support/files/source_dump.h"

struct example {
	const char *text, *expected;
};

static void check(const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_reading(toml_read, examples[i].text, strlen(examples[i].text),
			examples[i].expected);
}

static void test_keys(void **state)
{
	static const struct example examples[] = {
		{"", "{}"},
		{"# only this", "{}"},
		{"a = 1", "{a=1}"},
		{"\xef\xbb\xbf"
		 "a = 1\r\nb = 2\r\n",
			"{a=1 b=2}"},
		{"a-b_C9 = 1 # why\n", "{a-b_C9=1}"},
		{"1234 = 1", "{1234=1}"},
		{"\"a b\" = 1\n'c\"' = 2", "{a b=1 c\"=2}"},
		{"\"\" = 1", "{=1}"},
		{"a.b . \"c d\" = 1\na.e = 2", "{a={b={c d=1} e=2}}"},
		{"3.14 = 1", "{3={14=1}}"},
		{"a", "1: a pair is `key = value`\n    a\n     ^"},
		{"a = 1\na = 2", "2: a has a value already, in line 1"},
		{"a = 1\na.b = 2", "2: a has a value already, in line 1"},
		{"a.b = 1\na = 2", "2: a has a value already"},
		{"= 1", "1: a key is missing"},
		{"a. = 1", "1: a key is missing"},
		{"a = 1 b = 2", "1: only a comment may follow here"},
		{"\"\"\"a\"\"\" = 1", "1: a key is in one pair of quotes"},
	};

	(void)state;
	check(examples, COUNT(examples));
}

static void test_strings(void **state)
{
	static const struct example examples[] = {
		{"a = \"x \\\"y\\\" \\\\ \\b\\t\\n\\f\\r\"", "{a='x \"y\" \\ \b\t\n\f\r'}"},
		{"a = \"\\u00e9\\U0001F600\"", "{a='\xc3\xa9\xf0\x9f\x98\x80'}"},
		{"a = 'C:\\x \"y\"'", "{a='C:\\x \"y\"'}"},
		{"a = \"\"\nb = ''", "{a='' b=''}"},
		{"a = \"\"\"\nx\ny\"\"\"", "{a='x\ny'}"},
		{"a = \"\"\"x \\\n\n   y\"\"\"\nb = 1", "{a='x y' b=1}"},
		{"a = \"\"\"x\"\"y\"\"\"\"\"", "{a='x\"\"y\"\"'}"},
		{"a = '''\r\nx\\n\n'y' '''\nb = 2", "{a='x\\n\n'y' ' b=2}"},
		{"a = ''''x'''''", "{a=''x'''}"},
		{"a = \"x",
			"1: the string that starts here has no end\n    a = \"x\n         ^"},
		{"\n\na = '''x\n\ny", "3: the string that starts here has no end"},
		{"a = \"x\ny\"", "1: the string has no end in its line"},
		{"a = \"\\x\"", "1: no such escape"},
		{"a = \"\\u12\"", "1: \\u needs 4 hexadecimal digits"},
		{"a = \"\\ud800\"", "1: this is no character"},
		{"a = \"\\u0000\"", "1: this is no character"},
		{"a = \"\\U00110000\"", "1: this is no character"},
		{"a = \"\\", "1: the string has no end"},
		{"a = \"\x01\"", "1: a control character must be escaped"},
		{"a = \"\"\"\"\"\"", "{a=''}"},
	};

	(void)state;
	check(examples, COUNT(examples));
}

static void test_words(void **state)
{
	static const struct example examples[] = {
		{"a = 1_000", "{a=1000}"},
		{"a = +99", "{a=99}"},
		{"a = -17", "{a=-17}"},
		{"a = 0xDEAD_BEEF", "{a=3735928559}"},
		{"a = 0o755\nb = 0b1101", "{a=493 b=13}"},
		{"a = true\nb = false", "{a=true b=false}"},
		{"a = 1.5\nb = -0.01e+2\nc = 5e22\nd = inf\ne = -nan",
			"{a=1.5 b=-0.01e+2 c=5e22 d=inf e=-nan}"},
		{"a = 1979-05-27T07:32:00Z\nb = 1979-05-27 07:32:00.5\nc = 07:32:00",
			"{a=1979-05-27T07:32:00Z b=1979-05-27 07:32:00.5 c=07:32:00}"},
		{"a = 0", "{a=0}"},
		{"a = 01", "1: this is no value"},
		{"a = 1__0", "1: this is no value"},
		{"a = _1", "1: this is no value"},
		{"a = 0b_1", "1: this is no value"},
		{"a = 0x_1", "1: this is no value"},
		{"a = 1e_5", "1: this is no value"},
		{"a = 1_", "1: this is no value"},
		{"a = tr_ue", "1: this is no value"},
		{"a = True", "1: this is no value"},
		{"a = 0xg", "1: this is no value"},
		{"a = 9223372036854775808", "1: this is no value"},
		{"a = 1.", "1: this is no value"},
		{"a = .5", "1: this is no value"},
		{"a = transaction", "1: this is no value"},
		{"a = ", "1: a value is missing here"},
		{"a = # no\n", "1: a value is missing here"},
	};

	(void)state;
	check(examples, COUNT(examples));
}

static void test_arrays_and_inline_tables(void **state)
{
	static const struct example examples[] = {
		{"a = []", "{a=[]}"},
		{"a = [1, 'x', [true, 2.5],]", "{a=[1 'x' [true 2.5]]}"},
		{"a = [ # one\n  1\n  , # two\n\n 2\n]\nb = 1", "{a=[1 2] b=1}"},
		{"a = { x = 1, y.z = 'q', v = [] }", "{a={x=1 y={z='q'} v=[]}}"},
		{"a = {}", "{a={}}"},
		{"a = [{x = 1}, {}]", "{a=[{x=1} {}]}"},
		{"a = [1 2]", "1: an array needs ,"},
		{"a = [1", "1: an array needs ,"},
		{"a = [,]", "1: a value is missing"},
		{"a = {x = 1,}", "1: a key is missing"},
		{"a = {x = 1\n}", "1: an inline table needs ,"},
		{"a = {x = 1, x = 2}", "1: x has a value already"},
		{"a = {x = 1}\na.y = 2", "2: a has a value already"},
		{"a = {x = 1}\n[a.y]", "2: a is no table"},
		{"a = {x = 1", "1: an inline table needs ,"},
	};

	(void)state;
	check(examples, COUNT(examples));
}

static void test_headers(void **state)
{
	static const struct example examples[] = {
		{"[a]\nx = 1\n[b]", "{a={x=1} b={}}"},
		{"[ a . 'b c'.d ] # why\nx = 1", "{a={b c={d={x=1}}}}"},
		{"[a.b]\nx = 1\n[a]\ny = 2", "{a={b={x=1} y=2}}"},
		{"[[a]]\nx = 1\n[[a]]\nx = 2\n[a.b]\ny = 3", "{a=[{x=1} {x=2 b={y=3}}]}"},
		{"[a]\nb.c = 1\n[a.b.d]\nx = 2", "{a={b={c=1 d={x=2}}}}"},
		{"[a]\n[a]", "2: a is there already, in line 1"},
		{"[a]\nb = 1\n[a.b]", "3: b is there already"},
		{"[a]\nb.c = 1\n[a.b]", "3: b is there already"},
		{"a = []\n[[a]]", "2: a is there already"},
		{"[[a]]\n[a]", "2: a is there already"},
		{"[a]\n[[a]]", "2: a is there already"},
		{"[a.b]\n[a]\nb.c = 1", "3: b has a value already"},
		{"[a", "1: a header ends in ]"},
		{"[[a]", "1: a header ends in ]]"},
		{"[]", "1: a key is missing"},
		{"[a] x = 1", "1: only a comment may follow"},
	};

	(void)state;
	check(examples, COUNT(examples));
}

static void test_bytes_that_are_no_text(void **state)
{
	static const char nul[] = "a = 1\nb\0 = 2";

	(void)state;
	check_reading(toml_read, nul, sizeof(nul) - 1, "2: this is no text: a NUL byte");
	check_reading(
		toml_read, "a = '\xff'", 7, "1: this is no text: a byte that is not UTF-8");
	check_reading(toml_read, "# \x01", 3, "1: a comment has no control characters");
}

/* The terminal, and the log that it is written to, get no password. */
static void test_lines_with_passwords_are_not_shown(void **state)
{
	(void)state;
	check_reading(toml_read, "password = 'abc", 15,
		"1: column 13: the string that starts here has no end");
	check_reading(toml_read, "x = 'abc", 8,
		"1: the string that starts here has no end\n    x = 'abc\n         ^");
}

static void test_nesting_is_limited(void **state)
{
	char text[4000] = "a = ";

	(void)state;
	memset(text + 4, '[', 3000);
	check_reading(toml_read, text, strlen(text), "1: column 37: nested too deeply");
	memset(text, 0, sizeof(text));
	for (unsigned i = 0; i < 1000; i++)
		memcpy(text + 2 * i, "a.", 2);
	strcpy(text + 2000, "a = 1");
	check_reading(toml_read, text, strlen(text), "1: column 1: nested too deeply");
	memmove(text + 1, text, 2001);
	text[0] = '[';
	strcpy(text + 2001, "a]");
	check_reading(toml_read, text, strlen(text), "1: column 66: nested too deeply");
}

static void test_one_table_has_a_limit(void **state)
{
	struct problems problems = {0};
	struct source source;
	struct buffer text = {0};

	(void)state;
	for (unsigned i = 0; i <= SOURCE_CHILDREN_MOST; i++)
		buffer_printf(&text, "a%u = 1\n", i);
	source_init(&source);
	assert_false(toml_read(&source, "f", (char *)text.data, text.length, &problems));
	assert_int_equal(problems.list[0].line, SOURCE_CHILDREN_MOST + 1);
	source_free(&source);
	problems_free(&problems);
	buffer_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_arrays_and_inline_tables),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_lines_with_passwords_are_not_shown),
		cmocka_unit_test(test_nesting_is_limited),
		cmocka_unit_test(test_one_table_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
