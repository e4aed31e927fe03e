/* SPDX-License-Identifier: ISC */
/* Files are written whole or not at all; texts in memory can be read as files. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/file.h"
#include "setup/saving.h"
#include "setup/secret_file.h"
#include "support/files/config_files.h"

static char why[300], folder[] = "/tmp/pgusher-saving-XXXXXX", path[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/file", folder);
	return 0;
}

static struct buffer text_of(const char *text)
{
	struct buffer buffer = {0};

	assert_true(buffer_append(&buffer, text, strlen(text)));
	return buffer;
}

static enum saving_result save(const char *where, const char *text)
{
	struct buffer buffer = text_of(text);
	const enum saving_result result = saving_write(where, &buffer, 0640, why, sizeof(why));

	buffer_free(&buffer);
	return result;
}

static unsigned count_files(void)
{
	DIR *open = opendir(folder);
	unsigned count = 0;

	while (readdir(open))
		count++;
	closedir(open);
	return count - 2;
}

static void expect_content(const char *where, const char *text)
{
	struct file_text file;

	assert_true(file_read(where, 1000, &file));
	assert_string_equal(file.text, text);
	file_text_free(&file);
}

static void test_a_file_is_written_and_replaced_with_its_mode(void **state)
{
	struct stat status;

	(void)state;
	assert_int_equal(save(path, "one\n"), SAVING_DONE);
	assert_int_equal(save(path, "two\n"), SAVING_DONE);
	expect_content(path, "two\n");
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
	assert_int_equal(count_files(), 1);
	unlink(path);
}

static void test_a_folder_that_does_not_exist_is_no_place(void **state)
{
	(void)state;
	assert_int_equal(save("/nonexistent/file", "x"), SAVING_NO_PLACE);
	assert_string_equal(why, "cannot write /nonexistent/file: No such file or directory");
	assert_int_equal(save("/proc/file", "x"), SAVING_NO_PLACE);
}

/* A limit of the size of files stands for a full disk. */
static void test_nothing_is_left_behind_when_the_disk_is_full(void **state)
{
	const struct rlimit small = {4, RLIM_INFINITY};
	struct rlimit before;

	(void)state;
	assert_int_equal(save(path, "one\n"), SAVING_DONE);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(save(path, "longer than that\n"), SAVING_FAILED);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_non_null(strstr(why, "File too large"));
	expect_content(path, "one\n");
	assert_int_equal(count_files(), 1);
	unlink(path);
}

static void test_a_text_in_memory_is_read_like_a_file_again_and_again(void **state)
{
	struct buffer buffer = text_of("[pgbouncer]\n");
	char kept[SAVING_PATH_SIZE];

	(void)state;
	assert_true(saving_keep("test", &buffer, kept, why, sizeof(why)));
	expect_content(kept, "[pgbouncer]\n");
	expect_content(kept, "[pgbouncer]\n");
	close(atoi(kept + strlen("/dev/fd/")));
	buffer_free(&buffer);
}

static void expect_secret(const char *content, size_t length, const char *secret)
{
	FILE *file = fopen(path, "w");
	char *found;

	assert_int_equal(fwrite(content, 1, length, file), length);
	fclose(file);
	found = secret_file_read(path, why, sizeof(why));
	if (secret) {
		assert_non_null(found);
		assert_string_equal(found, secret);
	} else {
		assert_null(found);
	}
	free(found);
	unlink(path);
}

static void test_one_line_end_is_cut_from_a_secret(void **state)
{
	(void)state;
	expect_secret("pw", 2, "pw");
	expect_secret("pw\n", 3, "pw");
	expect_secret("pw\r\n", 4, "pw");
	expect_secret("pw\n\n", 4, "pw\n");
	expect_secret(" p w ", 5, " p w ");
}

static void test_a_secret_file_that_says_nothing_is_refused(void **state)
{
	(void)state;
	expect_secret("", 0, NULL);
	assert_non_null(strstr(why, "the file is empty"));
	expect_secret("\n", 1, NULL);
	expect_secret("a\0b", 3, NULL);
	assert_non_null(strstr(why, "NUL"));
	assert_null(secret_file_read("/nonexistent", why, sizeof(why)));
	assert_string_equal(why, "/nonexistent: No such file or directory");
	assert_null(secret_file_read("/tmp", why, sizeof(why)));
	assert_string_equal(why, "/tmp: Is a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			test_a_file_is_written_and_replaced_with_its_mode, set_up),
		cmocka_unit_test_setup(test_a_folder_that_does_not_exist_is_no_place, set_up),
		cmocka_unit_test_setup(
			test_nothing_is_left_behind_when_the_disk_is_full, set_up),
		cmocka_unit_test_setup(
			test_a_text_in_memory_is_read_like_a_file_again_and_again, set_up),
		cmocka_unit_test_setup(test_one_line_end_is_cut_from_a_secret, set_up),
		cmocka_unit_test_setup(test_a_secret_file_that_says_nothing_is_refused, set_up),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
