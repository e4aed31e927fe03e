/* SPDX-License-Identifier: ISC */
/*
 * The ident file, with any content: bad lines are problems, and a lookup takes bounded time
 * and never allows a name that the map does not list. The map looked up is called m.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/ident.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_problems(const struct problems *problems)
{
	const struct problem *problem = NULL;
	unsigned line = 0;

	require(problems->errors == 0);
	while ((problem = problems_next(problems, problem)) != NULL) {
		require(problem->severity == PROBLEM_SKIPPED && problem->log[1] != NULL);
		require(problem->line > line);
		line = problem->line;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problems problems = {0};
	struct ident *ident = ident_parse("ident", (const char *)data, size, &problems);
	struct ident_map map;

	require(ident != NULL);
	check_problems(&problems);
	map = ident_find_map(ident, "m");
	if (map.count > 0)
		require(strcmp(ident_map_name(&map), "m") == 0);
	/* If a name is allowed that is not in the file, all names are. */
	if (ident_map_allows(&map, "root", "no such name"))
		require(ident_map_allows(&map, "root", "other") ||
			memmem(data, size, "no such name", 12) || memchr(data, '\\', size));
	ident_map_allows(&map, "alice@example.com", "alice");
	ident_map_allows(&map, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "a");
	ident_map_allows(&map, "\xff\xfe", "\xff");
	ident_unref(ident);
	problems_free(&problems);
	return 0;
}
