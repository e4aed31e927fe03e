/* SPDX-License-Identifier: ISC */
/* Finds out of which pooler a configuration file is. */
#ifndef PGUSHER_SETUP_CONVERT_RECOGNIZE_H
#define PGUSHER_SETUP_CONVERT_RECOGNIZE_H

#include <stdbool.h>
#include <stddef.h>

enum pooler_kind {
	POOLER_UNKNOWN,
	POOLER_PGBOUNCER,
	POOLER_ODYSSEY,
	POOLER_PGCAT,
	POOLER_PGAGROAL
};

/* The pooler of this name, as --from has it; POOLER_UNKNOWN: none. */
enum pooler_kind recognize_name(const char *name);

/* The names for --from, for messages. */
#define RECOGNIZE_NAMES "pgbouncer, odyssey, pgcat, pgagroal"

/* By the content of a file, or, if that says nothing, by its name. */
enum pooler_kind recognize_file(const char *path, const char *text, size_t length);

#endif
