/* SPDX-License-Identifier: ISC */
/*
 * Random bytes for keys, salts and nonces, drawn from the kernel in blocks so that a login
 * costs no system call of its own.
 *
 * A block belongs to one loop and is not locked. Bytes that were handed out are wiped from it.
 * A process that forks must not go on with a block that was filled before.
 */
#ifndef PGUSHER_BASE_RANDOM_H
#define PGUSHER_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANDOM_BLOCK_SIZE = 4096 };

struct random {
	uint8_t block[RANDOM_BLOCK_SIZE];
	size_t left; /* bytes at the end of the block that were not handed out yet */
	uint64_t seeded_state;
	bool seeded; /* a test's own stream, not the kernel's */
};

/* An empty block: the first bytes asked for fill it. */
void random_init(struct random *random);

/* From now on the same bytes for the same seed; for tests only, they are easily guessed. */
void random_seed(struct random *random, uint64_t seed);

/* Any number of bytes. Ends the process when the kernel has none to give. */
void random_fill(struct random *random, void *out, size_t length);

/* An unbiased number from 0 to bound - 1; bound is at least 1. */
uint64_t random_below(struct random *random, uint64_t bound);

/* Forget the bytes not handed out yet. */
void random_wipe(struct random *random);

#endif
