/* SPDX-License-Identifier: ISC */
/*
 * Which values of startup parameters servers of a pool have taken, and how they spell them.
 *
 * Sets are told apart by their address: the same content is the same set (wire/parameters). There
 * is room for so many, in number and bytes; then the oldest is forgotten, and will be checked again.
 */
#ifndef PGUSHER_MODEL_CHECKED_PARAMETERS_H
#define PGUSHER_MODEL_CHECKED_PARAMETERS_H

#include "wire/parameters.h"

enum {
	CHECKED_PARAMETERS_MAX = 256,
	/* Of a pool: its clients choose the values, and each of them may fill a startup message. */
	CHECKED_PARAMETERS_BYTES_MAX = 256 * 1024,
};

struct checked_parameters {
	struct {
		struct parameters *asked, *spelt; /* counted */
	} * entries; /* owned; NULL until there is one: a ring */
	unsigned first, count;
	size_t bytes; /* of both sets of all entries */
};

/* How servers spell these values, lent; NULL: nobody has asked one. */
struct parameters *checked_parameters_find(
	const struct checked_parameters *checked, const struct parameters *asked);

/* A server has taken them. Without memory they will have to be asked for again. */
void checked_parameters_add(
	struct checked_parameters *checked, struct parameters *asked, struct parameters *spelt);

/* Forget it all. */
void checked_parameters_clear(struct checked_parameters *checked);

#endif
