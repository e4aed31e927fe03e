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

static void test_list_of_cores_keeps_its_order(void **state)
{
	struct core_list list;

	(void)state;
	assert_true(core_list_read(" 2, 0-1\t0,1023 ", &list));
	assert_int_equal(list.count, 5);
	assert_int_equal(list.cores[0], 2);
	assert_int_equal(list.cores[1], 0);
	assert_int_equal(list.cores[2], 1);
	assert_int_equal(list.cores[3], 0);
	assert_int_equal(list.cores[4], 1023);
	assert_true(core_list_read("", &list));
	assert_int_equal(list.count, 0);
	assert_true(core_list_read(" ", &list));
	assert_int_equal(list.count, 0);
	assert_true(core_list_read("0-1023", &list));
	assert_int_equal(list.count, CORE_NUMBERS);
}

static void test_malformed_lists_of_cores(void **state)
{
	static const char *const texts[] = {"all", "1-", "-1", "1-0", "1024", "0-1024", "0x1",
		"1.5", "1;2", "1 - 2", "0-1023,0", "99999999999999999999"};
	struct core_list list;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(core_list_read(texts[i], &list));
}

static void test_cores_that_this_process_may_not_use(void **state)
{
	struct core_list list = {.count = 0};
	cpu_set_t set;

	(void)state;
	assert_int_equal(core_list_missing(&list), -1);
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (uint16_t i = 0; i < CORE_NUMBERS; i++) {
		if (CPU_ISSET(i, &set))
			list.cores[list.count++] = i;
	}
	assert_int_equal(core_list_missing(&list), -1);
	for (uint16_t i = 0; i < CORE_NUMBERS && list.count < CORE_NUMBERS; i++) {
		if (!CPU_ISSET(i, &set)) {
			list.cores[list.count++] = i;
			assert_int_equal(core_list_missing(&list), i);
			break;
		}
	}
}

static void test_cores_of_the_process_are_known_to_a_bound_thread(void **state)
{
	const unsigned before = cores_available();
	cpu_set_t all, one, now;
	unsigned first = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	cores_unbind(); /* does nothing yet */
	cores_keep();
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(cores_available(), before);
	cores_unbind();
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&all, &now));
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
		cmocka_unit_test(test_list_of_cores_keeps_its_order),
		cmocka_unit_test(test_malformed_lists_of_cores),
		cmocka_unit_test(test_cores_that_this_process_may_not_use),
		cmocka_unit_test(test_quota_is_rounded_up),
		cmocka_unit_test(test_process_may_use_the_cores_of_its_affinity_at_most),
		/* The last one: the cores stay kept. */
		cmocka_unit_test(test_cores_of_the_process_are_known_to_a_bound_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
