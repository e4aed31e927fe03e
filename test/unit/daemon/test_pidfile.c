/* SPDX-License-Identifier: ISC */
/* Whether a process may start with an existing pidfile, its content, and its removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/pidfile.h"

static char folder[64], path[128], why[512];

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/pgusher-pidfile-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/pid", folder);
	why[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void put(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static bool check(void)
{
	return pidfile_check(path, why, sizeof(why));
}

static bool exists(void)
{
	return access(path, F_OK) == 0;
}

static const char *in_use(void)
{
	static char text[256];

	snprintf(text, sizeof(text), "pidfile '%s' exists, another instance running?", path);
	return text;
}

static void test_without_a_file_a_process_may_start(void **state)
{
	(void)state;
	assert_true(check());
	assert_true(pidfile_check(NULL, why, sizeof(why)));
	assert_true(pidfile_check("", why, sizeof(why)));
}

static void test_file_of_a_running_process_is_in_use(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d\n", (int)getppid());
	put(text);
	assert_false(check());
	assert_string_equal(why, in_use());
	/* A process of another user runs too, although kill() fails with EPERM. */
	put("1\n");
	assert_false(check());
	assert_true(exists());
}

static void test_stale_file_is_removed(void **state)
{
	const pid_t child = fork();
	char text[32];

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	snprintf(text, sizeof(text), "%d\n", (int)child);
	put(text);
	assert_true(check());
	assert_false(exists());
}

static void test_file_with_our_own_process_id_is_stale(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	put(text);
	assert_true(check());
	assert_false(exists());
}

static void test_file_without_a_process_id_is_in_use(void **state)
{
	static const char *const texts[] = {"", "\n", "x\n", "0\n", "-1\n", "1x\n", "0x10\n",
		"99999999999999999999\n", "4294967297\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put(texts[i]);
		assert_false(check());
		assert_string_equal(why, in_use());
		assert_true(exists());
	}
}

static void test_unreadable_file_is_an_error(void **state)
{
	(void)state;
	assert_false(pidfile_check(folder, why, sizeof(why)));
	assert_non_null(strstr(why, "could not open pidfile"));
}

static void test_file_holds_our_process_id_until_removed(void **state)
{
	struct pidfile pidfile = {0};
	struct stat status;
	char text[32] = "", expected[32];
	FILE *file;

	(void)state;
	umask(022);
	assert_true(pidfile_write(&pidfile, path, why, sizeof(why)));
	snprintf(expected, sizeof(expected), "%d\n", (int)getpid());
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_string_equal(text, expected);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0644);
	pidfile_remove(&pidfile);
	assert_false(exists());
	pidfile_remove(&pidfile);
}

static void test_existing_file_is_not_overwritten(void **state)
{
	struct pidfile pidfile = {0};

	(void)state;
	put("1\n");
	assert_false(pidfile_write(&pidfile, path, why, sizeof(why)));
	assert_non_null(strstr(why, "could not open pidfile"));
	pidfile_remove(&pidfile);
	assert_true(exists());
}

static void test_file_of_another_process_is_not_removed(void **state)
{
	struct pidfile pidfile = {0};
	char other[160];

	(void)state;
	assert_true(pidfile_write(&pidfile, path, why, sizeof(why)));
	/* A second name keeps the old inode, so that the new file cannot get the same number. */
	snprintf(other, sizeof(other), "%s.new", path);
	assert_int_equal(link(path, other), 0);
	assert_int_equal(unlink(path), 0);
	put("1\n");
	pidfile_remove(&pidfile);
	assert_true(exists());
	unlink(other);
}

static void test_without_a_path_nothing_is_written(void **state)
{
	struct pidfile pidfile = {0};

	(void)state;
	assert_true(pidfile_write(&pidfile, "", why, sizeof(why)));
	assert_true(pidfile_write(&pidfile, NULL, why, sizeof(why)));
	pidfile_remove(&pidfile);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_without_a_file_a_process_may_start),
		TEST(test_file_of_a_running_process_is_in_use),
		TEST(test_stale_file_is_removed),
		TEST(test_file_with_our_own_process_id_is_stale),
		TEST(test_file_without_a_process_id_is_in_use),
		TEST(test_unreadable_file_is_an_error),
		TEST(test_file_holds_our_process_id_until_removed),
		TEST(test_existing_file_is_not_overwritten),
		TEST(test_file_of_another_process_is_not_removed),
		TEST(test_without_a_path_nothing_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
