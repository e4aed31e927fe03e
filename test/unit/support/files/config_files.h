/* SPDX-License-Identifier: ISC */
/*
 * Shared by tests of the config floor: files in a temporary folder, which is the working
 * directory during the test, and access to problems.
 */
#ifndef PGUSHER_TEST_CONFIG_FILES_H
#define PGUSHER_TEST_CONFIG_FILES_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/problems.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char support_folder[] = "/tmp/pgusher-test.XXXXXX";

static inline int enter_folder(void **state)
{
	(void)state;
	memcpy(strrchr(support_folder, '.'), ".XXXXXX", 7);
	return mkdtemp(support_folder) && chdir(support_folder) == 0 ? 0 : -1;
}

static inline int leave_folder(void **state)
{
	DIR *folder = opendir(support_folder);
	struct dirent *file;

	(void)state;
	while (folder && (file = readdir(folder)) != NULL) {
		if (file->d_name[0] != '.')
			unlinkat(dirfd(folder), file->d_name, 0);
	}
	if (folder)
		closedir(folder);
	return chdir("/") == 0 && rmdir(support_folder) == 0 ? 0 : -1;
}

static inline void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* The problem with this index. */
static inline const struct problem *problem_at(const struct problems *problems, size_t index)
{
	assert_true(index < problems->count);
	return &problems->list[index];
}

static inline void assert_contains(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text ? text : "(null)");
}

/* The only problem is an error in this line, with this text in its log line. */
static inline void assert_only_error(
	const struct problems *problems, unsigned line, const char *log)
{
	const struct problem *problem = problem_at(problems, 0);

	assert_int_equal(problems->count, 1);
	assert_int_equal(problem->severity, PROBLEM_ERROR);
	assert_int_equal(problem->line, line);
	assert_contains(problem->log[0], log);
}

#endif
