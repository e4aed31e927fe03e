/* SPDX-License-Identifier: ISC */
/* Slabs count their objects, and empty pages are returned to the system. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/slab.h"

enum { OBJECT_SIZE = 200, MANY = 5000 };

static struct slab slab;
static void *objects[MANY];

static int make_slab(void **state)
{
	(void)state;
	slab_init(&slab, "test_cache", OBJECT_SIZE);
	return 0;
}

static int destroy_slab(void **state)
{
	(void)state;
	slab_destroy(&slab);
	return slab.pages == 0 ? 0 : -1;
}

static void take_many(void)
{
	for (size_t i = 0; i < MANY; i++) {
		objects[i] = slab_take(&slab);
		assert_non_null(objects[i]);
	}
}

static void give_many(size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		slab_give(&slab, objects[i]);
}

/* Under AddressSanitizer there are no pages. */
static void need_pages(void)
{
	void *object = slab_take(&slab);
	bool plain = slab.pages == 0;

	slab_give(&slab, object);
	if (plain)
		skip();
}

/* Whether memory is mapped at this address. */
static bool is_mapped(void *object)
{
	uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char resident;

	return mincore((void *)((uintptr_t)object & ~(size - 1)), 1, &resident) == 0 ||
		errno != ENOMEM;
}

static void test_objects_are_zeroed_apart_and_aligned(void **state)
{
	static const uint8_t zeros[OBJECT_SIZE];

	(void)state;
	take_many();
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal((uintptr_t)objects[i] % 8, 0);
		assert_memory_equal(objects[i], zeros, OBJECT_SIZE);
		memset(objects[i], (int)i, OBJECT_SIZE);
	}
	for (size_t i = 0; i < MANY; i++) {
		const uint8_t *bytes = objects[i];

		assert_int_equal(bytes[0], (uint8_t)i);
		assert_int_equal(bytes[OBJECT_SIZE - 1], (uint8_t)i);
	}
	give_many(0, MANY);
}

static void test_reused_object_is_zeroed(void **state)
{
	static const uint8_t zeros[OBJECT_SIZE];
	void *object = slab_take(&slab);
	void *stays = slab_take(&slab);

	(void)state;
	memset(object, 0xff, OBJECT_SIZE);
	slab_give(&slab, object);
	object = slab_take(&slab);
	assert_memory_equal(object, zeros, OBJECT_SIZE);
	slab_give(&slab, object);
	slab_give(&slab, stays);
}

static void test_used_and_free_are_counted(void **state)
{
	(void)state;
	assert_int_equal(slab.used, 0);
	assert_int_equal(slab.free, 0);
	take_many();
	assert_int_equal(slab.used, MANY);
	assert_int_equal(slab.used + slab.free,
		slab.pages * slab.page_capacity > 0 ? slab.pages * slab.page_capacity : MANY);
	give_many(0, 1000);
	assert_int_equal(slab.used, MANY - 1000);
	give_many(1000, MANY);
	assert_int_equal(slab.used, 0);
}

static void test_empty_pages_are_returned_to_the_system(void **state)
{
	void *of_first_page, *of_last_page;

	(void)state;
	need_pages();
	take_many();
	assert_int_equal(slab.pages, (MANY + slab.page_capacity - 1) / slab.page_capacity);
	of_first_page = objects[0];
	of_last_page = objects[MANY - 1];
	give_many(0, MANY);

	/* One spare page is kept. */
	assert_int_equal(slab.pages, 1);
	assert_int_equal(slab.free, slab.page_capacity);
	assert_false(is_mapped(of_first_page) && is_mapped(of_last_page));
	slab_trim(&slab);
	assert_int_equal(slab.pages, 0);
	assert_int_equal(slab.free, 0);
	assert_false(is_mapped(of_first_page) || is_mapped(of_last_page));
}

static void test_spare_page_is_used_before_a_new_one(void **state)
{
	void *object;

	(void)state;
	need_pages();
	object = slab_take(&slab);
	assert_int_equal(slab.pages, 1);
	slab_give(&slab, object);
	assert_ptr_equal(slab_take(&slab), object);
	assert_int_equal(slab.pages, 1);
	slab_give(&slab, object);
}

static void test_fullest_page_is_filled_first(void **state)
{
	size_t page;

	(void)state;
	need_pages();
	page = slab.page_capacity;
	for (size_t i = 0; i < 3 * page; i++)
		objects[i] = slab_take(&slab);
	assert_int_equal(slab.pages, 3);
	/* Leave the first page nearly empty, the second nearly full, the third half full. */
	give_many(1, page);
	give_many(page, page + page / 10);
	give_many(2 * page, 2 * page + page / 2);

	for (size_t i = page; i < page + page / 10; i++) {
		objects[i] = slab_take(&slab);
		assert_in_range((uintptr_t)objects[i],
			(uintptr_t)objects[page + page / 10] & ~(uintptr_t)(SLAB_PAGE_SIZE - 1),
			(uintptr_t)objects[page + page / 10] | (SLAB_PAGE_SIZE - 1));
	}
	for (size_t i = 2 * page; i < 2 * page + page / 2; i++)
		objects[i] = slab_take(&slab);
	assert_int_equal(slab.pages, 3);
	/* No object was placed next to the only one of the first page. */
	slab_give(&slab, objects[0]);
	assert_ptr_equal((void *)slab.spare,
		(void *)((uintptr_t)objects[0] & ~(uintptr_t)(SLAB_PAGE_SIZE - 1)));
	give_many(page, 3 * page);
}

static void test_page_touches_memory_only_as_needed(void **state)
{
	unsigned char resident[SLAB_PAGE_SIZE / 4096] = {0};
	size_t touched = 0;
	void *object;

	(void)state;
	need_pages();
	slab_trim(&slab);
	object = slab_take(&slab);
	if (sysconf(_SC_PAGESIZE) != 4096)
		skip();
	assert_int_equal(mincore((void *)((uintptr_t)object & ~(uintptr_t)(SLAB_PAGE_SIZE - 1)),
				 SLAB_PAGE_SIZE, resident),
		0);
	for (size_t i = 0; i < sizeof(resident); i++)
		touched += resident[i] & 1;
	assert_in_range(touched, 1, 2);
	slab_give(&slab, object);
}

static void test_random_taking_and_giving_keeps_counts_and_content(void **state)
{
	uint32_t random = 12345;
	size_t used = 0;

	(void)state;
	memset(objects, 0, sizeof(objects));
	for (int i = 0; i < 200000; i++) {
		size_t at;

		random = random * 1664525 + 1013904223;
		at = (random >> 8) % MANY;
		if (objects[at] == NULL) {
			objects[at] = slab_take(&slab);
			memcpy(objects[at], &at, sizeof(at));
			used++;
		} else {
			assert_memory_equal(objects[at], &at, sizeof(at));
			slab_give(&slab, objects[at]);
			objects[at] = NULL;
			used--;
		}
		assert_int_equal(slab.used, used);
	}
	give_many(0, MANY);
	assert_int_equal(slab.used, 0);
	assert_in_range(slab.pages, 0, 1);
}

static void test_giving_back_null_does_nothing(void **state)
{
	(void)state;
	slab_give(&slab, NULL);
	assert_int_equal(slab.used, 0);
}

int main(void)
{
#define SLAB_TEST(test) cmocka_unit_test_setup_teardown(test, make_slab, destroy_slab)
	const struct CMUnitTest tests[] = {
		SLAB_TEST(test_objects_are_zeroed_apart_and_aligned),
		SLAB_TEST(test_reused_object_is_zeroed),
		SLAB_TEST(test_used_and_free_are_counted),
		SLAB_TEST(test_empty_pages_are_returned_to_the_system),
		SLAB_TEST(test_spare_page_is_used_before_a_new_one),
		SLAB_TEST(test_fullest_page_is_filled_first),
		SLAB_TEST(test_page_touches_memory_only_as_needed),
		SLAB_TEST(test_random_taking_and_giving_keeps_counts_and_content),
		SLAB_TEST(test_giving_back_null_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
