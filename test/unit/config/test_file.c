/* SPDX-License-Identifier: ISC */
/*
 * Files are read completely, without blocking, and their identity changes when they are
 * written.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "config/file.h"
#include "support/files/config_files.h"

static void test_file_is_read_completely(void **state)
{
	struct file_text file;

	(void)state;
	write_file("a", "two\nlines");
	assert_true(file_read("a", 9, &file));
	assert_int_equal(file.length, 9);
	assert_string_equal(file.text, "two\nlines");
	file_text_free(&file);
	assert_null(file.text);
}

static void test_too_long_files_and_folders_are_refused(void **state)
{
	struct file_text file;

	(void)state;
	write_file("a", "two\nlines");
	assert_false(file_read("a", 8, &file));
	assert_int_equal(errno, EFBIG);
	assert_false(file_read(".", 100, &file));
	assert_int_equal(errno, EISDIR);
	assert_false(file_read("missing", 100, &file));
	assert_int_equal(errno, ENOENT);
}

static void test_other_kinds_of_files_read_as_empty_without_blocking(void **state)
{
	struct file_text file;

	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_true(file_read("fifo", 100, &file));
	assert_int_equal(file.length, 0);
	file_text_free(&file);
	assert_true(file_read("/dev/zero", 100, &file));
	assert_int_equal(file.length, 0);
	file_text_free(&file);
}

static void test_identity_changes_when_a_file_is_written(void **state)
{
	struct file_identity before, after;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {0, 0}};
	struct stat status;

	(void)state;
	write_file("a", "text");
	assert_true(file_identify("a", &before));
	assert_true(file_identify("a", &after));
	assert_true(file_identity_same(&before, &after));

	/* Written again within the same second, with the same size. */
	assert_int_equal(stat("a", &status), 0);
	times[1] = status.st_mtim;
	times[1].tv_nsec = (times[1].tv_nsec + 1) % 1000000000;
	assert_int_equal(utimensat(AT_FDCWD, "a", times, 0), 0);
	assert_true(file_identify("a", &after));
	assert_false(file_identity_same(&before, &after));

	assert_int_equal(chmod("a", 0600), 0);
	assert_true(file_identify("a", &before));
	assert_false(file_identity_same(&before, &after));
	assert_false(file_identify("missing", &before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_file_is_read_completely, enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(test_too_long_files_and_folders_are_refused,
			enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(
			test_other_kinds_of_files_read_as_empty_without_blocking, enter_folder,
			leave_folder),
		cmocka_unit_test_setup_teardown(test_identity_changes_when_a_file_is_written,
			enter_folder, leave_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
