/* SPDX-License-Identifier: ISC */
/* The ring of requests: order, growth, wrap-around, and the ends of batches and COPYs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/requests.h"
#include "wire/message.h"

static struct requests requests;

static int set_up(void **state)
{
	(void)state;
	requests = (struct requests){0};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	requests_clear(&requests);
	return 0;
}

static void add(const char *types)
{
	for (; *types; types++)
		assert_true(requests_add(&requests, (uint8_t)*types, REQUEST_FORWARD));
}

/* Remove all entries and return their types in order. */
static const char *rest(void)
{
	static char types[64];
	size_t count = 0;

	while (!requests_is_empty(&requests)) {
		assert_true(count < sizeof(types) - 1);
		types[count++] = (char)requests_first(&requests)->type;
		requests_drop(&requests);
	}
	types[count] = '\0';
	return types;
}

/* Move the front of the ring to this place, so that later entries wrap around. */
static void begin_at(uint32_t front)
{
	for (uint32_t i = 0; i < front; i++) {
		add("x");
		requests_drop(&requests);
	}
	assert_true(requests_is_empty(&requests));
}

static void test_empty_ring_has_no_first_entry(void **state)
{
	(void)state;
	assert_true(requests_is_empty(&requests));
	assert_null(requests_first(&requests));
}

static void test_requests_are_removed_in_order_with_their_action(void **state)
{
	(void)state;
	assert_true(requests_add(&requests, PQ_PARSE, REQUEST_SWALLOW));
	assert_true(requests_add(&requests, PQ_BIND, REQUEST_FORWARD));
	assert_int_equal(requests_first(&requests)->type, PQ_PARSE);
	assert_int_equal(requests_first(&requests)->action, REQUEST_SWALLOW);
	requests_drop(&requests);
	assert_int_equal(requests_first(&requests)->type, PQ_BIND);
	assert_int_equal(requests_first(&requests)->action, REQUEST_FORWARD);
	requests_drop(&requests);
	assert_true(requests_is_empty(&requests));
}

static void test_sixteen_requests_need_no_heap_memory(void **state)
{
	(void)state;
	for (uint32_t front = 0; front <= REQUESTS_INLINE; front++) {
		requests = (struct requests){0};
		begin_at(front);
		add("0123456789abcdef");
		assert_ptr_equal(requests.entries, requests.few);
		assert_string_equal(rest(), "0123456789abcdef");
	}
}

static void test_growing_keeps_the_order_at_any_front(void **state)
{
	(void)state;
	for (uint32_t front = 0; front < REQUESTS_INLINE; front++) {
		requests = (struct requests){0};
		begin_at(front);
		add("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ");
		assert_ptr_not_equal(requests.entries, requests.few);
		assert_string_equal(rest(), "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ");
	}
}

static void test_emptied_ring_keeps_no_heap_memory(void **state)
{
	(void)state;
	add("0123456789abcdefg");
	rest();
	assert_ptr_equal(requests.entries, requests.few);
	add("again");
	assert_ptr_equal(requests.entries, requests.few);
	assert_string_equal(rest(), "again");
}

static void test_a_ring_on_the_heap_wraps_round(void **state)
{
	(void)state;
	add("0123456789abcdefg");
	for (int i = 0; i < 1000; i++) {
		const uint8_t type = (uint8_t)(i % 200 + 20);

		assert_true(requests_add(&requests, type, REQUEST_FORWARD));
		requests_drop(&requests);
		if (i >= 17)
			assert_int_equal(requests_first(&requests)->type,
				(uint8_t)((i - 16) % 200 + 20));
	}
	assert_int_equal(requests.count, 17);
	assert_int_equal(requests.capacity, 2 * REQUESTS_INLINE);
}

static void test_full_ring_refuses_more_until_one_is_answered(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < REQUESTS_MAX; i++)
		assert_true(requests_add(&requests, (uint8_t)(i & 0x7f), REQUEST_FORWARD));
	assert_false(requests_add(&requests, 'Q', REQUEST_FORWARD));
	assert_int_equal(requests.count, REQUESTS_MAX);
	requests_drop(&requests);
	assert_true(requests_add(&requests, 'Q', REQUEST_FORWARD));
	assert_false(requests_add(&requests, 'Q', REQUEST_FORWARD));
	for (uint32_t i = 1; i < REQUESTS_MAX; i++) {
		assert_int_equal(requests_first(&requests)->type, i & 0x7f);
		requests_drop(&requests);
	}
	assert_string_equal(rest(), "Q");
}

static void test_dropping_through_ends_after_the_first_of_the_type(void **state)
{
	(void)state;
	add("PBESPBES");
	requests_drop_through(&requests, PQ_SYNC, PQ_SYNC);
	assert_string_equal(rest(), "PBES");
	add("PBcESQ");
	requests_drop_through(&requests, PQ_SYNC, PQ_COPY_DONE);
	assert_string_equal(rest(), "ESQ");
}

static void test_dropping_through_a_missing_type_drops_all(void **state)
{
	(void)state;
	add("PBE");
	requests_drop_through(&requests, PQ_SYNC, PQ_SYNC);
	assert_true(requests_is_empty(&requests));
	requests_drop_through(&requests, PQ_SYNC, PQ_SYNC);
	assert_true(requests_is_empty(&requests));
	add("0123456789abcdefgh");
	requests_drop_through(&requests, PQ_SYNC, PQ_SYNC);
	assert_true(requests_is_empty(&requests));
	assert_ptr_equal(requests.entries, requests.few);
}

static void test_copy_of_an_execute_ends_with_copy_done(void **state)
{
	(void)state;
	/* A Sync during a COPY has no answer. */
	add("EScSQ");
	requests_end_copy(&requests, PQ_COPY_DONE, PQ_COPY_DONE);
	assert_string_equal(rest(), "SQ");
}

static void test_query_that_began_a_copy_stays_the_oldest(void **state)
{
	(void)state;
	for (uint32_t front = 0; front < REQUESTS_INLINE; front++) {
		requests = (struct requests){0};
		begin_at(front);
		add("QSScQ");
		requests_end_copy(&requests, PQ_COPY_DONE, PQ_COPY_DONE);
		assert_int_equal(requests.count, 2);
		assert_string_equal(rest(), "QQ");
	}
}

static void test_query_of_a_copy_stays_before_its_copy_done(void **state)
{
	(void)state;
	add("Q");
	requests_end_copy(&requests, PQ_COPY_DONE, PQ_COPY_FAIL);
	assert_string_equal(rest(), "Q");
	add("E");
	requests_end_copy(&requests, PQ_COPY_DONE, PQ_COPY_FAIL);
	assert_true(requests_is_empty(&requests));
	requests_end_copy(&requests, PQ_COPY_DONE, PQ_COPY_FAIL);
	assert_true(requests_is_empty(&requests));
}

static void test_query_of_a_copy_stays_in_a_ring_on_the_heap(void **state)
{
	(void)state;
	add("QSSSSSSSSSSSSSSSSScQ");
	requests_end_copy(&requests, PQ_COPY_DONE, PQ_COPY_DONE);
	assert_string_equal(rest(), "QQ");
	/*
	 * All entries are removed, the memory on the heap is freed, and the query is added
	 * again.
	 */
	add("QSSSSSSSSSSSSSSSSSS");
	requests_end_copy(&requests, PQ_COPY_DONE, PQ_COPY_DONE);
	assert_int_equal(requests.count, 1);
	assert_string_equal(rest(), "Q");
}

static void test_clearing_removes_everything(void **state)
{
	(void)state;
	add("0123456789abcdefghi");
	requests_clear(&requests);
	assert_true(requests_is_empty(&requests));
	assert_ptr_equal(requests.entries, requests.few);
	add("on");
	requests_clear(&requests);
	assert_string_equal(rest(), "");
}

/* Compare the ring with a plain array. */
static void test_random_operations_agree_with_an_array(void **state)
{
	enum { MOST = 200, STEPS = 200000 };
	static uint8_t model[MOST];
	static struct random random;
	size_t count = 0;

	(void)state;
	random_init(&random);
	random_seed(&random, 7);
	for (int i = 0; i < STEPS; i++) {
		const uint8_t type = "QSPBEc"[random_below(&random, 6)];
		const uint64_t what = random_below(&random, 64);
		size_t gone = 0;

		if (what == 0) {
			requests_drop_through(&requests, PQ_SYNC, PQ_COPY_DONE);
			while (gone < count && model[gone] != PQ_SYNC &&
				model[gone] != PQ_COPY_DONE)
				gone++;
			gone += gone < count;
		} else if (what == 1 && count > 0) {
			requests_end_copy(&requests, PQ_COPY_DONE, PQ_COPY_DONE);
			while (gone < count && model[gone] != PQ_COPY_DONE)
				gone++;
			gone += gone < count;
			if (model[0] == PQ_QUERY)
				model[--gone] = PQ_QUERY;
		} else if (what < 30 && count > 0) {
			requests_drop(&requests);
			gone = 1;
		} else if (count < MOST) {
			assert_true(requests_add(&requests, type, REQUEST_FORWARD));
			model[count++] = type;
		}
		count -= gone;
		memmove(model, model + gone, count);
		assert_int_equal(requests.count, count);
		if (count > 0)
			assert_int_equal(requests_first(&requests)->type, model[0]);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(empty_ring_has_no_first_entry),
		TEST(requests_are_removed_in_order_with_their_action),
		TEST(sixteen_requests_need_no_heap_memory),
		TEST(growing_keeps_the_order_at_any_front),
		TEST(emptied_ring_keeps_no_heap_memory),
		TEST(a_ring_on_the_heap_wraps_round),
		TEST(full_ring_refuses_more_until_one_is_answered),
		TEST(dropping_through_ends_after_the_first_of_the_type),
		TEST(dropping_through_a_missing_type_drops_all),
		TEST(copy_of_an_execute_ends_with_copy_done),
		TEST(query_that_began_a_copy_stays_the_oldest),
		TEST(query_of_a_copy_stays_before_its_copy_done),
		TEST(query_of_a_copy_stays_in_a_ring_on_the_heap),
		TEST(clearing_removes_everything),
		TEST(random_operations_agree_with_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
