/* SPDX-License-Identifier: ISC */
/* What the bodies of config/snapshot share: what one is, and how it is loaded. For nobody else. */
#ifndef PGUSHER_CONFIG_SNAPSHOT_PARTS_H
#define PGUSHER_CONFIG_SNAPSHOT_PARTS_H

#include <stdatomic.h>

#include "config/catalog.h"
#include "config/snapshot.h"

struct snapshot {
	atomic_uint references;
	struct settings settings;
	struct catalog *catalog; /* counted */
	struct userlist *users; /* counted; NULL: none */
	struct ident *ident; /* counted; NULL: none */
	struct hba *hba; /* counted; NULL: none */
	const char *const *presets; /* of the command line, lent for good; NULL: none */
};

/* With nothing in it, and one reference; NULL: no memory. */
struct snapshot *snapshot_new(void);

#endif
