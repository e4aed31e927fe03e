/* SPDX-License-Identifier: ISC */
/* The auth_file, with any content: names are in order, each is found, and limits hold. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/userlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problems problems = {0};
	const char *name, *secret, *before = NULL;
	bool broken = false;
	struct userlist *list =
		userlist_parse("users", (const char *)data, size, &broken, &problems);

	require(list != NULL);
	require(broken == (problems.warnings == 1));
	for (size_t i = 0; userlist_entry(list, i, &name, &secret); i++) {
		require(strlen(name) <= USERLIST_NAME_LIMIT);
		require(strlen(secret) <= USERLIST_SECRET_LIMIT);
		require(!before || strcmp(before, name) < 0);
		require(userlist_find(list, name) == secret);
		before = name;
	}
	userlist_unref(list);
	problems_free(&problems);
	return 0;
}
