/* SPDX-License-Identifier: ISC */
/* The files of a directory that are listed, and their order. */
#include <errno.h>
#include <sys/stat.h>

#include "config/folder.h"
#include "support/files/config_files.h"

static void test_files_are_listed_in_byte_order(void **state)
{
	static const char *const wanted[] = {"./10.ini", "./9.ini", "./A.ini", "./a.ini"};
	struct folder folder;

	(void)state;
	write_file("9.ini", "");
	write_file("a.ini", "");
	write_file("10.ini", "");
	write_file("A.ini", "");
	assert_true(folder_list(".", ".ini", &folder));
	assert_int_equal(folder.count, COUNT(wanted));
	for (size_t i = 0; i < COUNT(wanted); i++)
		assert_string_equal(folder.paths[i], wanted[i]);
	folder_free(&folder);
}

static void test_only_files_with_the_suffix_are_listed(void **state)
{
	struct folder folder;

	(void)state;
	write_file("real", "");
	write_file("a.ini~", "");
	write_file("a.ini.bak", "");
	write_file("ini", "");
	write_file(".ini", "");
	write_file(".a.ini", "");
	assert_int_equal(mkdir("folder.ini", 0700), 0);
	assert_int_equal(mkfifo("fifo.ini", 0600), 0);
	assert_int_equal(symlink("real", "link.ini"), 0);
	assert_int_equal(symlink("folder.ini", "other.ini"), 0);
	assert_int_equal(symlink("nowhere", "lost.ini"), 0);
	assert_true(folder_list(".", ".ini", &folder));
	assert_int_equal(folder.count, 2);
	assert_string_equal(folder.paths[0], "./link.ini");
	assert_string_equal(folder.paths[1], "./lost.ini");
	folder_free(&folder);
	assert_int_equal(rmdir("folder.ini"), 0);
	unlink(".ini");
	unlink(".a.ini");
}

static void test_missing_folder_or_other_file_is_refused(void **state)
{
	struct folder folder;

	(void)state;
	write_file("file", "");
	assert_false(folder_exists("file"));
	assert_false(folder_exists("nowhere"));
	assert_true(folder_exists("."));
	assert_false(folder_list("nowhere", ".ini", &folder));
	assert_int_equal(errno, ENOENT);
	assert_false(folder_list("file", ".ini", &folder));
	assert_int_equal(errno, ENOTDIR);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_files_are_listed_in_byte_order),
		IN_FOLDER(test_only_files_with_the_suffix_are_listed),
		IN_FOLDER(test_missing_folder_or_other_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
