/* SPDX-License-Identifier: ISC */
/*
 * Random bytes for keys, salts and nonces, read from the kernel in blocks, so that a login
 * needs no system call of its own.
 *
 * A block belongs to one loop and has no lock. Bytes handed out are wiped from it. After a
 * fork, the child must not use a block that was filled before.
 */
#ifndef PGUSHER_BASE_RANDOM_H
#define PGUSHER_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANDOM_BLOCK_SIZE = 4096 };

struct random {
	uint8_t block[RANDOM_BLOCK_SIZE];
	size_t left; /* bytes at the end of the block that are not handed out yet */
	uint64_t seeded_state;
	bool seeded; /* a test's reproducible stream, not the kernel's */
};

/* Make an empty block; the first request fills it. */
void random_init(struct random *random);

/*
 * From now on produce the same bytes for the same seed. For tests only: the bytes are
 * predictable.
 */
void random_seed(struct random *random, uint64_t seed);

/* Fill `out` with random bytes, any number. Aborts the process if the kernel returns none. */
void random_fill(struct random *random, void *out, size_t length);

/* Returns an unbiased number from 0 to bound - 1; bound is at least 1. */
uint64_t random_below(struct random *random, uint64_t bound);

/* Wipe the bytes not handed out yet. */
void random_wipe(struct random *random);

#endif
