/* SPDX-License-Identifier: ISC */
/* The grammar of the file: the order of callbacks, and the places of mistakes. */
#include <sys/stat.h>

#include "config/ini.h"
#include "support/files/config_files.h"

struct record {
	char text[4000];
	size_t length;
	char section[UINT8_MAX + 1];
	char last_section; /* of the last pair */
	struct problems problems;
};

/* Tests identify sections by their first letter. */
static const void *on_section(void *context, const struct ini_place *place, const char *name)
{
	struct record *record = context;

	record->length += (size_t)snprintf(record->text + record->length,
		sizeof(record->text) - record->length, "%u[%s]", place->line, name);
	record->section[(uint8_t)name[0]] = name[0];
	return &record->section[(uint8_t)name[0]];
}

static void on_pair(void *context, const void *section, const struct ini_place *place,
	const char *key, const char *value)
{
	struct record *record = context;

	record->last_section = *(const char *)section;
	record->length += (size_t)snprintf(record->text + record->length,
		sizeof(record->text) - record->length, "%u<%s><%s>", place->line, key, value);
}

static const struct ini_events events = {.section = on_section, .pair = on_pair};

static void read_bytes(struct record *record, const char *text, size_t length)
{
	*record = (struct record){0};
	ini_read_text("f.ini", text, length, &events, record, &record->problems);
}

static void read_text(struct record *record, const char *text)
{
	read_bytes(record, text, strlen(text));
}

static bool read_path(struct record *record, const char *path)
{
	*record = (struct record){0};
	return ini_read(path, &events, record, &record->problems);
}

static void test_lines_are_reported_in_order(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{"", ""},
		{"[a]\nk=v\n", "1[a]2<k><v>"},
		{"[a]\n\n  ; note\n\t# note\nk = v", "1[a]5<k><v>"},
		{"[a]\r\nk=v\r\n", "1[a]2<k><v>"},
		{"[a]\nk=\n", "1[a]2<k><>"},
		{"[a]\nk =\t v w \t\n", "1[a]2<k><v w>"},
		{"[a]\nk = v ; x\n", "1[a]2<k><v ; x>"},
		{"[a]\nk = 'v' \"w\"\n", "1[a]2<k><'v' \"w\">"},
		{"[a]\nA_z.0-9* = v\n", "1[a]2<A_z.0-9*><v>"},
		{"[a]\n'my db;=[]' = v\n", "1[a]2<my db;=[]><v>"},
		{"[a]\n'' = v\n", "1[a]2<><v>"},
		{"[a] k = v", "1[a]1<k><v>"},
		{"[a] ; note", "1[a]"},
		{"[a][ b ] k = v", "1[a]1[ b ]1<k><v>"},
		{"[]\nk==v", "1[]2<k><=v>"},
	};
	struct record record;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		read_text(&record, cases[i].text);
		assert_int_equal(record.problems.count, 0);
		assert_string_equal(record.text, cases[i].expected);
	}
}

static void test_other_lines_are_syntax_errors(void **state)
{
	static const char *const cases[] = {"k", "k v", "\"k\" = v", "'k = v", "= v", "k\n= v",
		"[a", "%includex f", "%include", "%include ", "% include f", "\xef\xbb\xbf[a]",
		"k : v", "/ = v", "'k'x = v"};
	struct record record;
	char text[100];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(text, sizeof(text), "[a]\n%s", cases[i]);
		read_text(&record, text);
		assert_true(record.problems.count >= 1);
		assert_int_equal(problem_at(&record.problems, 0)->line, 2);
		assert_string_equal(problem_at(&record.problems, 0)->log[0],
			"syntax error in configuration (f.ini:2), stopping loading");
		problems_free(&record.problems);
	}
}

static void test_parsing_continues_after_an_error(void **state)
{
	struct record record;

	(void)state;
	read_text(&record, "[a]\n?\nk = v\n??\n");
	assert_string_equal(record.text, "1[a]3<k><v>");
	assert_int_equal(record.problems.count, 2);
	assert_int_equal(problem_at(&record.problems, 1)->line, 4);
	problems_free(&record.problems);
}

static void test_value_before_any_section_is_an_error_reported_once(void **state)
{
	struct record record;

	(void)state;
	read_text(&record, "k = v\nl = w\n[a]\n");
	assert_only_error(&record.problems, 1, "load_init_file: value without section: k");
	assert_string_equal(record.text, "3[a]");
	problems_free(&record.problems);
}

static void test_nul_byte_is_refused(void **state)
{
	static const char text[] = "[a]\nk = v\0w\n";
	struct record record;

	(void)state;
	read_bytes(&record, text, sizeof(text) - 1);
	assert_only_error(&record.problems, 2, "syntax error in configuration (f.ini:2)");
	assert_string_equal(record.text, "");
	problems_free(&record.problems);
}

static void test_sections_carry_over_into_and_out_of_included_files(void **state)
{
	struct record record;

	(void)state;
	write_file("main.ini", "[a]\nk = v\n  %include  sub file.ini \t\nm = x\n");
	write_file("sub file.ini", "l = w\n[b]\n");
	assert_true(read_path(&record, "main.ini"));
	assert_int_equal(record.problems.count, 0);
	assert_string_equal(record.text, "1[a]2<k><v>1<l><w>2[b]4<m><x>");
}

static void make_folder(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

static void drop_folder(const char *path)
{
	assert_int_equal(rmdir(path), 0);
}

static void test_files_of_an_included_folder_are_read_in_order(void **state)
{
	static const char *const spellings[] = {"conf.d", "conf.d/", "conf.d/*.ini"};
	struct record record;
	char text[100];

	(void)state;
	make_folder("conf.d");
	write_file("conf.d/20.ini", "k = 2\n");
	write_file("conf.d/10.ini", "k = 1\n[b]\nl = w\n");
	write_file("conf.d/9.ini.off", "k = 3\n");
	for (size_t i = 0; i < COUNT(spellings); i++) {
		snprintf(text, sizeof(text), "[a]\n%%include %s\nm = x\n", spellings[i]);
		write_file("main.ini", text);
		assert_true(read_path(&record, "main.ini"));
		assert_int_equal(record.problems.count, 0);
		assert_string_equal(record.text, "1[a]1<k><1>2[b]3<l><w>1<k><2>3<m><x>");
		/* A section that starts in an included file ends with that file. */
		assert_int_equal(record.last_section, 'a');
	}
	unlink("conf.d/20.ini");
	unlink("conf.d/10.ini");
	unlink("conf.d/9.ini.off");
	drop_folder("conf.d");
}

static void test_empty_folder_adds_nothing(void **state)
{
	struct record record;

	(void)state;
	make_folder("conf.d");
	write_file("main.ini", "[a]\n%include conf.d\nm = x\n");
	assert_true(read_path(&record, "main.ini"));
	assert_int_equal(record.problems.count, 0);
	assert_string_equal(record.text, "1[a]3<m><x>");
	drop_folder("conf.d");
}

static void test_errors_in_a_folder_name_the_file(void **state)
{
	struct record record;

	(void)state;
	make_folder("conf.d");
	write_file("conf.d/a.ini", "\n?\n");
	assert_int_equal(symlink("nowhere", "conf.d/b.ini"), 0);
	write_file("main.ini", "[a]\n%include conf.d\n");
	assert_true(read_path(&record, "main.ini"));
	assert_int_equal(record.problems.errors, 2);
	assert_string_equal(problem_at(&record.problems, 0)->file, "conf.d/a.ini");
	assert_int_equal(problem_at(&record.problems, 0)->line, 2);
	assert_string_equal(problem_at(&record.problems, 1)->log[0],
		"could not load file \"conf.d/b.ini\": No such file or directory");
	problems_free(&record.problems);
	unlink("conf.d/a.ini");
	unlink("conf.d/b.ini");
	drop_folder("conf.d");
}

static void test_folder_that_includes_itself_is_stopped(void **state)
{
	struct record record;

	(void)state;
	make_folder("conf.d");
	write_file("conf.d/a.ini", "%include conf.d\n");
	write_file("conf.d/b.ini", "%include conf.d\n");
	assert_true(read_path(&record, "conf.d/a.ini"));
	assert_int_equal(record.problems.count, 1);
	problems_free(&record.problems);
	unlink("conf.d/a.ini");
	unlink("conf.d/b.ini");
	drop_folder("conf.d");
}

static void test_missing_include_is_an_error_at_its_line(void **state)
{
	struct record record;

	(void)state;
	write_file("main.ini", "[a]\n%include none.ini\nk = v\n");
	assert_true(read_path(&record, "main.ini"));
	assert_only_error(
		&record.problems, 2, "could not load file \"none.ini\": No such file");
	assert_string_equal(problem_at(&record.problems, 0)->log[1],
		"error processing include file in configuration (main.ini:2), stopping loading");
	assert_string_equal(record.text, "1[a]3<k><v>");
	problems_free(&record.problems);
}

static void test_errors_of_included_files_name_the_included_file(void **state)
{
	struct record record;

	(void)state;
	write_file("main.ini", "[a]\n%include sub.ini\n");
	write_file("sub.ini", "\n?\n");
	assert_true(read_path(&record, "main.ini"));
	assert_only_error(&record.problems, 2, "(sub.ini:2)");
	assert_string_equal(problem_at(&record.problems, 0)->file, "sub.ini");
	problems_free(&record.problems);
}

/* Files 1.ini to N.ini, each including the next. */
static void write_chain(unsigned length)
{
	char path[20], text[40];

	for (unsigned i = 1; i <= length; i++) {
		snprintf(path, sizeof(path), "%u.ini", i);
		snprintf(text, sizeof(text), "%%include %u.ini\n", i + 1);
		write_file(path, i < length ? text : "k = v\n");
	}
}

static void test_includes_are_nested_ten_deep(void **state)
{
	struct record record;

	(void)state;
	write_chain(10);
	write_file("main.ini", "[a]\n%include 1.ini\n");
	assert_true(read_path(&record, "main.ini"));
	assert_int_equal(record.problems.count, 0);
	assert_string_equal(record.text, "1[a]1<k><v>");

	write_chain(11);
	assert_true(read_path(&record, "main.ini"));
	assert_only_error(&record.problems, 1,
		"include nesting level too deep (10.ini:1), stopping loading");
	problems_free(&record.problems);
}

static void test_files_that_include_each_other_are_stopped(void **state)
{
	struct record record;

	(void)state;
	write_file("main.ini", "%include main.ini\n%include main.ini\n%include main.ini\n");
	assert_true(read_path(&record, "main.ini"));
	assert_int_equal(record.problems.count, 1);
	problems_free(&record.problems);
}

static void test_missing_file_is_an_error(void **state)
{
	struct record record;

	(void)state;
	assert_false(read_path(&record, "none.ini"));
	assert_only_error(&record.problems, 0,
		"could not load file \"none.ini\": No such file or directory");
	problems_free(&record.problems);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_reported_in_order),
		cmocka_unit_test(test_other_lines_are_syntax_errors),
		cmocka_unit_test(test_parsing_continues_after_an_error),
		cmocka_unit_test(test_value_before_any_section_is_an_error_reported_once),
		cmocka_unit_test(test_nul_byte_is_refused),
		IN_FOLDER(test_sections_carry_over_into_and_out_of_included_files),
		IN_FOLDER(test_files_of_an_included_folder_are_read_in_order),
		IN_FOLDER(test_empty_folder_adds_nothing),
		IN_FOLDER(test_errors_in_a_folder_name_the_file),
		IN_FOLDER(test_folder_that_includes_itself_is_stopped),
		IN_FOLDER(test_missing_include_is_an_error_at_its_line),
		IN_FOLDER(test_errors_of_included_files_name_the_included_file),
		IN_FOLDER(test_includes_are_nested_ten_deep),
		IN_FOLDER(test_files_that_include_each_other_are_stopped),
		IN_FOLDER(test_missing_file_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
