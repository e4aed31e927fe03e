/* SPDX-License-Identifier: ISC */
/* Texts in which Linux tells of cores, and those of this process. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cores.h"

struct example {
	const char *text;
	unsigned cores;
};

static void test_list_of_cores(void **state)
{
	static const struct example examples[] = {
		{"0", 1},
		{"0-1\n", 2},
		{"0-3,8,10-11", 7},
		{"2-2", 1},
		{"0-65535", 65536},
		{"", 0},
		{"\n", 0},
		{"3-0", 0},
		{"0-", 0},
		{"0,", 0},
		{"-1", 0},
		{"0-1 ", 0},
		{"0-65536", 0},
		{"0-65535,0-65535", 0},
		{"0-99999999999999999999", 0},
		{"all", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		assert_int_equal(cores_in_list(examples[i].text), examples[i].cores);
}

static void test_quota_is_rounded_up(void **state)
{
	static const struct example examples[] = {
		{"200000 100000\n", 2},
		{"200001 100000", 3},
		{"1000 100000", 1},
		{"max 100000", 0},
		{"0 100000", 0},
		{"100000 0", 0},
		{"100000", 0},
		{"100000  100000", 0},
		{"100000 100000 1", 0},
		{"99999999999999 1", 0},
		{"", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		assert_int_equal(cores_in_quota(examples[i].text), examples[i].cores);
}

static void test_process_may_use_the_cores_of_its_affinity_at_most(void **state)
{
	cpu_set_t all, one;
	unsigned before;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	before = cores_available();
	assert_in_range(before, 1, (unsigned)CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(cores_available(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list_of_cores),
		cmocka_unit_test(test_quota_is_rounded_up),
		cmocka_unit_test(test_process_may_use_the_cores_of_its_affinity_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
