/* SPDX-License-Identifier: ISC */
#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool has_all(void *library, const struct library_symbol *symbols, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!dlsym(library, symbols[i].name))
			return false;
	return true;
}

/*
 * Copied as bytes: C does not convert an object pointer to a function pointer. POSIX
 * guarantees that both have the same representation.
 */
static void fill(void *library, const struct library_symbol *symbols, size_t count, char *table)
{
	for (size_t i = 0; i < count; i++) {
		void *const function = dlsym(library, symbols[i].name);

		memcpy(table + symbols[i].offset, &function, sizeof(function));
	}
}

bool library_load(const char *file, const struct library_symbol *symbols, size_t count,
	void *table, char *why, size_t size)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (library && has_all(library, symbols, count)) {
		fill(library, symbols, count, table);
		return true;
	}
	/* dlerror() names the file, or the missing symbol. */
	snprintf(why, size, "%s", dlerror());
	if (library)
		dlclose(library);
	return false;
}
