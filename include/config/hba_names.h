/* SPDX-License-Identifier: ISC */
/*
 * A list of databases or users in a rule of the HBA file: names, keywords, and names from other
 * files by `@file`.
 */
#ifndef PGUSHER_CONFIG_HBA_NAMES_H
#define PGUSHER_CONFIG_HBA_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "config/tokens.h"

enum {
	HBA_FILE_LIMIT = 16 * 1024 * 1024, /* bytes of the HBA file, and of each @file */
	HBA_NESTING_LIMIT = 10, /* of @file in @file */
	HBA_INCLUDES_LIMIT = 1000, /* of @file that one HBA file leads to, each time counted */
};

/* What a bare word may mean instead of a name. */
enum hba_keyword {
	HBA_ALL = 1,
	HBA_SAMEUSER = 2, /* the database has the user's name */
	HBA_REPLICATION = 4, /* the connection is for physical replication */
};

struct hba_names {
	unsigned keywords; /* of enum hba_keyword */
	char **names; /* owned, sorted once reading is done */
	size_t count, capacity;
};

/* Reads lists; one for a whole HBA file. */
struct hba_names_reader {
	const char *file; /* that names are read from */
	unsigned depth; /* of that file */
	unsigned includes; /* read so far */
	bool no_memory;
	char why[256]; /* the list that was read last is bad */
};

/*
 * Read a list from the present token on, up to the first one that belongs to it no more. False:
 * it is bad, and the reader says why. In either case `out`, zero before, is to be freed.
 */
bool hba_names_read(
	struct hba_names_reader *reader, struct tokens *tokens, struct hba_names *out);

/* Is this very name in the list, keywords left out? */
bool hba_names_has(const struct hba_names *names, const char *name);

void hba_names_free(struct hba_names *names);

#endif
