/* SPDX-License-Identifier: ISC */
/* Which files a configuration is read from, and how their states tell a change. */
#include <fcntl.h>
#include <sys/stat.h>

#include "config/file_list.h"
#include "config/snapshot.h"
#include "support/files/config_files.h"

static struct file_list files;
static struct problems problems = {.files = &files};

static int end(void **state)
{
	problems_free(&problems);
	file_list_free(&files);
	problems.files = &files;
	return leave_folder(state);
}

static const struct listed_file *find(const char *path)
{
	for (size_t i = 0; i < files.count; i++) {
		if (strcmp(files.files[i].path, path) == 0)
			return &files.files[i];
	}
	fail_msg("%s is not in the list", path);
	return NULL;
}

/* Is this file as it was when it was noted? */
static bool is_same(const char *path)
{
	const struct listed_file *file = find(path);
	const struct file_state now = file_list_look(file, &file->when_read);

	return file_state_same(file, &now, &file->when_read);
}

static void load(const char *path)
{
	snapshot_unref(snapshot_start(path, &(struct presets){0}, &problems));
	file_list_tidy(&files);
}

static void test_every_file_that_is_read_is_listed_once(void **state)
{
	static const char *const wanted[] = {
		"a.ini", "hba", "ident", "main.ini", "names", "users"};

	(void)state;
	write_file("main.ini",
		"%include a.ini\n[databases]\n[pgbouncer]\n%include a.ini\nauth_type = hba\n"
		"auth_file = users\nauth_hba_file = hba\nauth_ident_file = ident\n");
	write_file("a.ini", "");
	write_file("users", "\"a\" \"b\"\n");
	write_file("hba",
		"host @names all 127.0.0.1/32 trust\nhost all @names 127.0.0.1/32 trust\n");
	write_file("names", "one\n");
	write_file("ident", "");
	load("main.ini");
	assert_int_equal(problems.count, 0);
	assert_int_equal(files.count, COUNT(wanted));
	for (size_t i = 0; i < COUNT(wanted); i++) {
		assert_string_equal(files.files[i].path, wanted[i]);
		assert_true(files.files[i].when_read.exists);
	}
}

static void test_files_of_a_wrong_configuration_are_listed_too(void **state)
{
	(void)state;
	write_file("main.ini",
		"%include lost.ini\n[pgbouncer]\nauth_file = users\nnonsense = 1\n");
	load("main.ini");
	assert_true(problems_errors(&problems) > 0);
	assert_true(find("main.ini")->when_read.exists);
	assert_false(find("lost.ini")->when_read.exists);
	assert_false(find("users")->when_read.exists);
	write_file("lost.ini", "");
	assert_false(is_same("lost.ini"));
	assert_true(is_same("users"));
}

static void test_files_that_are_not_read_are_not_listed(void **state)
{
	(void)state;
	write_file("main.ini",
		"[pgbouncer]\nauth_type = any\nauth_file = users\nauth_hba_file = hba\n");
	load("main.ini");
	assert_int_equal(files.count, 1);
}

static void test_each_way_to_change_a_file_shows(void **state)
{
	(void)state;
	write_file("f", "1");
	file_list_note(&files, "f");
	assert_true(is_same("f"));
	write_file("f", "12");
	assert_false(is_same("f"));

	file_list_free(&files);
	file_list_note(&files, "f");
	write_file("g", "12");
	assert_int_equal(rename("g", "f"), 0);
	assert_false(is_same("f"));

	file_list_free(&files);
	file_list_note(&files, "f");
	assert_int_equal(unlink("f"), 0);
	assert_false(is_same("f"));
	write_file("f", "12");
	assert_false(is_same("f"));

	file_list_free(&files);
	file_list_note(&files, "f");
	assert_int_equal(chmod("f", 0400), 0);
	assert_false(is_same("f"));
}

static void test_a_symbolic_link_in_the_path_that_moves_shows(void **state)
{
	(void)state;
	assert_int_equal(mkdir("1", 0700), 0);
	assert_int_equal(mkdir("2", 0700), 0);
	write_file("1/f", "same");
	write_file("2/f", "same");
	assert_int_equal(symlink("1", "data"), 0);
	assert_int_equal(symlink("data/f", "f"), 0);
	file_list_note(&files, "f");
	assert_int_equal(symlink("2", "new"), 0);
	assert_int_equal(rename("new", "data"), 0);
	assert_false(is_same("f"));
	unlink("1/f");
	unlink("2/f");
	assert_int_equal(rmdir("1") + rmdir("2"), 0);
}

static void test_a_folder_changes_with_the_names_of_its_files(void **state)
{
	(void)state;
	assert_int_equal(mkdir("conf.d", 0700), 0);
	write_file("conf.d/a.ini", "");
	write_file("main.ini", "[pgbouncer]\n%include conf.d\n");
	load("main.ini");
	assert_true(find("conf.d/a.ini")->when_read.exists);
	assert_true(find("conf.d/a.ini")->in_folder);
	assert_false(find("main.ini")->in_folder);
	assert_true(is_same("conf.d"));
	/* What an editor leaves is none. */
	write_file("conf.d/.a.ini.swp", "");
	write_file("conf.d/a.ini~", "");
	assert_true(is_same("conf.d"));
	write_file("conf.d/b.ini", "");
	assert_false(is_same("conf.d"));
	unlink("conf.d/b.ini");
	assert_true(is_same("conf.d"));
	unlink("conf.d/a.ini");
	assert_false(is_same("conf.d"));
	unlink("conf.d/.a.ini.swp");
	unlink("conf.d/a.ini~");
	assert_int_equal(rmdir("conf.d"), 0);
	assert_false(is_same("conf.d"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, end)
		TEST(test_every_file_that_is_read_is_listed_once),
		TEST(test_files_of_a_wrong_configuration_are_listed_too),
		TEST(test_files_that_are_not_read_are_not_listed),
		TEST(test_each_way_to_change_a_file_shows),
		TEST(test_a_symbolic_link_in_the_path_that_moves_shows),
		TEST(test_a_folder_changes_with_the_names_of_its_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
