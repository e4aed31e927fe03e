/* SPDX-License-Identifier: ISC */
/* Shared by the source files of config/snapshot only: the struct, and how it is loaded. */
#ifndef PGUSHER_CONFIG_SNAPSHOT_PARTS_H
#define PGUSHER_CONFIG_SNAPSHOT_PARTS_H

#include "base/references.h"
#include "config/catalog.h"
#include "config/snapshot.h"

struct snapshot {
	reference_count references;
	struct settings settings;
	struct catalog *catalog; /* one reference */
	struct userlist *users; /* one reference; NULL: none */
	struct ident *ident; /* one reference; NULL: none */
	struct hba *hba; /* one reference; NULL: none */
	const char *const *presets; /* of the command line, borrowed for good; NULL: none */
};

/* Returns an empty snapshot with one reference; NULL when out of memory. */
struct snapshot *snapshot_new(void);

#endif
