/* SPDX-License-Identifier: ISC */
/*
 * A shared library that is taken in only when a configuration asks for what it does: one that
 * nobody uses would cost each process its memory, and those that it needs in turn theirs.
 */
#ifndef PGUSHER_BASE_LIBRARY_H
#define PGUSHER_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
	const char *name;
	size_t offset; /* of its pointer in the table */
};

/*
 * Load a library, for good, and fill a table of pointers to its functions. False: it is not there,
 * or lacks one of them; `why` says which, and the table is as it was.
 */
bool library_load(const char *file, const struct library_symbol *symbols, size_t count,
	void *table, char *why, size_t size);

#endif
