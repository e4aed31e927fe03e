/* SPDX-License-Identifier: ISC */
/*
 * Shared libraries that are loaded only when the configuration needs them: an unused library,
 * with its own dependencies, would cost every process memory.
 */
#ifndef PGUSHER_BASE_LIBRARY_H
#define PGUSHER_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
	const char *name;
	size_t offset; /* of its pointer in the table, in bytes */
};

/*
 * Load a library, for the lifetime of the process, and fill a table of pointers to its
 * functions. Returns false if the library or one of the symbols is missing; then `why` (`size`
 * bytes, owned by the caller) has the reason and the table is unchanged.
 */
bool library_load(const char *file, const struct library_symbol *symbols, size_t count,
	void *table, char *why, size_t size);

#endif
