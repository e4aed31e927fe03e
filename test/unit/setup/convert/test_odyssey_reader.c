/* SPDX-License-Identifier: ISC */
/* The block language of odyssey.conf. */
#include "setup/convert/odyssey_reader.h"
#include "support/files/source_dump.h"

struct example {
	const char *text, *expected;
};

static void check(const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_reading(odyssey_read, examples[i].text, strlen(examples[i].text),
			examples[i].expected);
}

static void test_statements(void **state)
{
	static const struct example examples[] = {
		{"", "{}"},
		{"# only this", "{}"},
		{"workers 4", "{workers=4}"},
		{"daemonize no # why\npriority -10", "{daemonize=no priority=-10}"},
		{"pool \"session\" pool_size 5", "{pool='session' pool_size=5}"},
		{"pid_file\n\n\"/a b\"", "{pid_file='/a b'}"},
		{"log_format \"%p \\\"x\\\" \\\\ \\n\"", "{log_format='%p \"x\" \\ \\n'}"},
		{"listen { host \"*\" port 1 }", "{listen={host='*' port=1}}"},
		{"database \"a\" { user default { pool \"x\" } }",
			"{database='a'{user='default'{pool='x'}}}"},
		{"user \"a\" \"10.0.0.0/8\" hostssl { }", "{user='a'+10.0.0.0/8+hostssl{}}"},
		{"type \"remote\" host \"b\"", "{type='remote' host='b'}"},
		{"options { \"search_path\" \"a\" \"x\" \"y\" }",
			"{options={search_path='a' x='y'}}"},
		{"a 1; b 2,", "{a=1 b=2}"},
	};

	(void)state;
	check(examples, COUNT(examples));
}

static void test_mistakes(void **state)
{
	static const struct example examples[] = {
		{"workers", "1: a value, or a block in { }, must follow\n    workers\n    ^"},
		{"a 1\n\nb \"x\n", "3: the text that starts here has no closing \""},
		{"listen {\n port 1\n", "1: the block that opens here has no }\n    listen {"},
		{"a 1\n}", "2: no block is open here"},
		{"4 5", "1: a keyword is missing here"},
		{"a 1\n= 2", "2: a keyword is missing here"},
		{"include 5", "1: include needs the name of a file in quotes"},
		{"include \"/nowhere/x.conf\"", "1: cannot read this file"},
		{"include \"/dev\"", "1: cannot read this file: Is a directory"},
	};

	(void)state;
	check(examples, COUNT(examples));
	check_reading(odyssey_read, "a \"\0\"", 6, "1: this is no text: a NUL byte");
	check_reading(odyssey_read, "a \"\xc3\"", 5, "1: this is no text");
}

static void test_included_files(void **state)
{
	(void)state;
	write_file("x.conf", "pool_size 5");
	check_reading(odyssey_read, "a 1 user \"u\" { include \"x.conf\" b 2 }", 37,
		"{a=1 user='u'{pool_size=5 b=2}}");
	write_file("x.conf", "a 1\nb");
	check_reading(odyssey_read, "\n\ninclude \"x.conf\"", 18, "2: a value, or a block");
	write_file("x.conf", "}");
	check_reading(odyssey_read, "a { include \"x.conf\" }", 22, "1: no block is open here");
	write_file("x.conf", "include \"x.conf\"");
	check_reading(
		odyssey_read, "include \"x.conf\"", 16, "1: too many files include others");
	/* An endless file is empty for a reader that never blocks. */
	check_reading(odyssey_read, "a 1 include \"/dev/zero\"", 23, "{a=1}");
}

static void test_many_includes_end(void **state)
{
	char text[20000] = "";

	(void)state;
	write_file("x.conf", "a 1");
	for (unsigned i = 0; i <= ODYSSEY_FILES_MOST; i++)
		strcat(text, "include \"x.conf\"\n");
	check_reading(odyssey_read, text, strlen(text), "257: too many files include others");
}

static void test_nesting_is_limited(void **state)
{
	char text[4000] = "";

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		strcat(text, "a {");
	check_reading(odyssey_read, text, strlen(text), "1: column 100: nested too deeply");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statements),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test_setup_teardown(
			test_included_files, enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(
			test_many_includes_end, enter_folder, leave_folder),
		cmocka_unit_test(test_nesting_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
