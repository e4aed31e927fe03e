/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file_identity.h"

static char path[] = "/tmp/pgusher-test-identity.XXXXXX";
static char other[sizeof(path) + 4];

/* Write a file with an old modification time, so that any later change is visible. */
static void write_file(const char *name, const char *content)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	assert_int_equal(futimens(fd, old), 0);
	close(fd);
}

static int set_up(void **state)
{
	int fd;

	(void)state;
	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || close(fd) != 0)
		return -1;
	snprintf(other, sizeof(other), "%s.new", path);
	write_file(path, "one");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(other);
	unlink(path);
	return 0;
}

static struct file_identity identify(void)
{
	struct file_identity identity;

	assert_true(file_identify(path, &identity));
	return identity;
}

static bool is_still(const struct file_identity *before)
{
	const struct file_identity now = identify();

	return file_identity_same(before, &now);
}

static void test_an_unchanged_file_has_the_same_identity(void **state)
{
	const struct file_identity before = identify();

	(void)state;
	assert_true(is_still(&before));
}

static void test_a_written_file_has_another_identity(void **state)
{
	const struct file_identity before = identify();

	(void)state;
	write_file(path, "one, two");
	assert_false(is_still(&before));
}

static void test_a_replaced_file_has_another_identity(void **state)
{
	const struct file_identity before = identify();

	(void)state;
	write_file(other, "one");
	assert_int_equal(rename(other, path), 0);
	assert_false(is_still(&before));
}

static void test_a_changed_symlink_gives_another_identity(void **state)
{
	struct file_identity before;

	(void)state;
	write_file(other, "one");
	before = identify();
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_false(is_still(&before));
	before = identify();
	assert_true(is_still(&before));
}

static void test_a_missing_file_has_no_identity(void **state)
{
	struct file_identity identity;

	(void)state;
	assert_int_equal(unlink(path), 0);
	assert_false(file_identify(path, &identity));
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_unchanged_file_has_the_same_identity),
		TEST(a_written_file_has_another_identity),
		TEST(a_replaced_file_has_another_identity),
		TEST(a_changed_symlink_gives_another_identity),
		TEST(a_missing_file_has_no_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
