/* SPDX-License-Identifier: ISC */
/* Random bytes differ, leave no trace in the block, and follow a seed in tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void test_two_blocks_differ(void **state)
{
	struct random first, second;
	uint8_t a[32], b[32];

	(void)state;
	random_init(&first);
	random_init(&second);
	random_fill(&first, a, sizeof(a));
	random_fill(&second, b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	random_fill(&first, b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
}

static void test_bytes_handed_out_are_wiped_from_the_block(void **state)
{
	static const uint8_t zeros[64];
	struct random random;
	uint8_t out[64];

	(void)state;
	random_init(&random);
	random_fill(&random, out, sizeof(out));
	assert_int_equal(random.left, RANDOM_BLOCK_SIZE - sizeof(out));
	assert_memory_equal(random.block, zeros, sizeof(zeros));
	assert_memory_not_equal(out, zeros, sizeof(zeros));
}

static void test_more_than_a_block_can_be_drawn(void **state)
{
	size_t length = 3 * RANDOM_BLOCK_SIZE + 5;
	uint8_t *out = calloc(1, length);
	struct random random;
	size_t zeros = 0;

	(void)state;
	random_init(&random);
	random_fill(&random, out, 7);
	random_fill(&random, out, length);
	for (size_t i = 0; i < length; i++)
		zeros += out[i] == 0;
	/* About one byte in 256 is zero. */
	assert_in_range(zeros, 1, length / 64);
	free(out);
}

static void test_same_seed_gives_same_bytes(void **state)
{
	struct random first, second, other;
	uint8_t a[5000], b[5000], c[5000];

	(void)state;
	random_init(&first);
	random_init(&second);
	random_init(&other);
	random_seed(&first, 1);
	random_seed(&second, 1);
	random_seed(&other, 2);
	random_fill(&first, a, sizeof(a));
	/* In whatever portions the bytes are drawn. */
	for (size_t i = 0; i < sizeof(b); i += 10)
		random_fill(&second, b + i, 10);
	random_fill(&other, c, sizeof(c));
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
}

static void test_number_stays_below_its_bound_and_reaches_all_values(void **state)
{
	struct random random;
	int seen[10] = {0};

	(void)state;
	random_init(&random);
	random_seed(&random, 7);
	for (int i = 0; i < 10000; i++) {
		uint64_t drawn = random_below(&random, 10);

		assert_in_range(drawn, 0, 9);
		seen[drawn]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(seen[i], 800, 1200);
	assert_int_equal(random_below(&random, 1), 0);
	/* Half of all numbers are rejected here; the loop must still end. */
	for (int i = 0; i < 100; i++)
		assert_true(random_below(&random, (1ULL << 63) + 1) <= 1ULL << 63);
}

static void test_wiped_block_is_filled_again(void **state)
{
	static const uint8_t zeros[RANDOM_BLOCK_SIZE];
	struct random random;
	uint8_t out[16];

	(void)state;
	random_init(&random);
	random_fill(&random, out, 1);
	random_wipe(&random);
	assert_int_equal(random.left, 0);
	assert_memory_equal(random.block, zeros, sizeof(zeros));
	random_fill(&random, out, sizeof(out));
	assert_memory_not_equal(out, zeros, sizeof(out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_blocks_differ),
		cmocka_unit_test(test_bytes_handed_out_are_wiped_from_the_block),
		cmocka_unit_test(test_more_than_a_block_can_be_drawn),
		cmocka_unit_test(test_same_seed_gives_same_bytes),
		cmocka_unit_test(test_number_stays_below_its_bound_and_reaches_all_values),
		cmocka_unit_test(test_wiped_block_is_filled_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
