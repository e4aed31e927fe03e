/* SPDX-License-Identifier: ISC */
/* Blocks of random bytes: getrandom(2), or SplitMix64 for tests. */
#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/check.h"

void random_init(struct random *random)
{
	memset(random, 0, sizeof(*random));
}

void random_seed(struct random *random, uint64_t seed)
{
	random->seeded_state = seed;
	random->seeded = true;
	random->left = 0;
}

static void draw_from_kernel(uint8_t *out, size_t length)
{
	while (length > 0) {
		ssize_t drawn = getrandom(out, length, 0);

		/* A signal may interrupt a read of more than 256 bytes. */
		if (drawn < 0 && errno == EINTR)
			continue;
		CHECK(drawn > 0);
		out += drawn;
		length -= (size_t)drawn;
	}
}

static uint64_t next_seeded(uint64_t *state)
{
	uint64_t mixed = *state += 0x9e3779b97f4a7c15u;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
	return mixed ^ (mixed >> 31);
}

static void refill(struct random *random)
{
	if (!random->seeded) {
		draw_from_kernel(random->block, sizeof(random->block));
	} else {
		for (size_t at = 0; at < sizeof(random->block); at += sizeof(uint64_t)) {
			uint64_t word = next_seeded(&random->seeded_state);

			memcpy(random->block + at, &word, sizeof(word));
		}
	}
	random->left = sizeof(random->block);
}

void random_fill(struct random *random, void *out, size_t length)
{
	uint8_t *to = out;

	while (length > 0) {
		if (random->left == 0)
			refill(random);

		size_t some = length < random->left ? length : random->left;
		uint8_t *from = random->block + sizeof(random->block) - random->left;

		memcpy(to, from, some);
		explicit_bzero(from, some);
		random->left -= some;
		to += some;
		length -= some;
	}
}

uint64_t random_below(struct random *random, uint64_t bound)
{
	uint64_t drawn;
	uint64_t uneven;

	CHECK(bound > 0);
	/*
	 * Reject the lowest 2^64 mod bound numbers: they would make some results more likely.
	 */
	uneven = -bound % bound;
	do
		random_fill(random, &drawn, sizeof(drawn));
	while (drawn < uneven);
	return drawn % bound;
}

void random_wipe(struct random *random)
{
	explicit_bzero(random->block, sizeof(random->block));
	random->left = 0;
}
