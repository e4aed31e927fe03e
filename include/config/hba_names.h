/* SPDX-License-Identifier: ISC */
/*
 * A list of databases or users in a rule of the HBA file: names, keywords, and names from other
 * files by `@file`.
 */
#ifndef PGUSHER_CONFIG_HBA_NAMES_H
#define PGUSHER_CONFIG_HBA_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "config/file_list.h"
#include "config/tokens.h"

enum {
	HBA_FILE_LIMIT = 16 * 1024 * 1024, /* bytes of the HBA file, and of each @file */
	HBA_NESTING_LIMIT = 10, /* depth of @file inside @file */
	HBA_INCLUDES_LIMIT = 1000, /* of @file read for one HBA file, repetitions included */
};

/* What a bare word may mean besides a name. */
enum hba_keyword {
	HBA_ALL = 1,
	HBA_SAMEUSER = 2, /* the database is named like the user */
	HBA_REPLICATION = 4, /* the connection is for physical replication */
};

struct hba_names {
	unsigned keywords; /* bits of enum hba_keyword */
	char **names; /* owned, sorted after parsing */
	size_t count, capacity;
};

/* Parser state for lists; one for a whole HBA file. */
struct hba_names_reader {
	const char *file; /* the file being read */
	unsigned depth; /* of that file */
	unsigned includes; /* read so far */
	struct file_list *files; /* borrowed: gets each @file; NULL: not wanted */
	bool no_memory;
	char why[256]; /* why the last list is bad */
};

/*
 * Parse a list starting at the present token, up to the first token that is not part of it.
 * Returns false if it is bad; the reader's `why` then has the reason. In either case the
 * caller frees `out`, which must be zeroed before.
 */
bool hba_names_read(
	struct hba_names_reader *reader, struct tokens *tokens, struct hba_names *out);

/* Whether exactly this name is in the list; keywords are not considered. */
bool hba_names_has(const struct hba_names *names, const char *name);

void hba_names_free(struct hba_names *names);

#endif
