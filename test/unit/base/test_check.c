/* SPDX-License-Identifier: ISC */
/* A failed check aborts the process and logs its place. */
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"

static void test_true_condition_passes(void **state)
{
	int evaluated = 0;

	(void)state;
	CHECK(++evaluated == 1);
	assert_int_equal(evaluated, 1);
}

static void test_false_condition_aborts_with_file_and_line(void **state)
{
	const struct rlimit no_core = {0};
	char line[512];
	ssize_t length;
	int ends[2], status;
	regex_t shape;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)signal(SIGABRT, SIG_DFL);
		(void)dup2(ends[1], STDERR_FILENO);
		CHECK(child > 0);
		_exit(0);
	}
	(void)close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	length = read(ends[0], line, sizeof(line) - 1);
	assert_true(length > 0);
	line[length] = '\0';
	assert_int_equal(regcomp(&shape,
				 "FATAL @[^ ]*test_check[.]c:[0-9]+ in function [a-z_]+\\(\\): "
				 "check failed: [^\n]+\n$",
				 REG_EXTENDED | REG_NOSUB),
		0);
	assert_int_equal(regexec(&shape, line, 0, NULL, 0), 0);
	regfree(&shape);
	(void)close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_true_condition_passes),
		cmocka_unit_test(test_false_condition_aborts_with_file_and_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
