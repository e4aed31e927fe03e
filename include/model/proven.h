/* SPDX-License-Identifier: ISC */
/*
 * Which values of startup parameters servers of a pool have taken, and how they spell them.
 *
 * Sets are told apart by their address: the same content is the same set (wire/parameters). There
 * is room for so many, in number and bytes; then the oldest is forgotten, and will be proven again.
 */
#ifndef PGUSHER_MODEL_PROVEN_H
#define PGUSHER_MODEL_PROVEN_H

#include "wire/parameters.h"

enum {
	PROVEN_MAX = 256,
	/* Of a pool: its clients choose the values, and each of them may fill a startup message. */
	PROVEN_BYTES_MAX = 256 * 1024,
};

struct proven {
	struct {
		struct parameters *asked, *spelt; /* counted */
	} * entries; /* owned; NULL until there is one: a ring */
	unsigned first, count;
	size_t bytes; /* of both sets of all entries */
};

/* How servers spell these values, lent; NULL: nobody has asked one. */
struct parameters *proven_find(const struct proven *proven, const struct parameters *asked);

/* A server has taken them. Without memory they will have to be asked for again. */
void proven_add(struct proven *proven, struct parameters *asked, struct parameters *spelt);

/* Forget it all. */
void proven_clear(struct proven *proven);

#endif
