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

/* Copied, since a pointer to data is none to a function in the language; POSIX has both alike. */
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
	/* The reason names the file, and the symbol if it is one that is missing. */
	snprintf(why, size, "%s", dlerror());
	if (library)
		dlclose(library);
	return false;
}
