/* SPDX-License-Identifier: ISC */
/*
 * Writes files that do not exist yet: all of them, or none. Each is written under another name,
 * readable by its owner alone, and gets its own name when all are on the disk.
 */
#ifndef PGUSHER_SETUP_CONVERT_NEW_FILES_H
#define PGUSHER_SETUP_CONVERT_NEW_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

struct new_file {
	const char *path;
	const struct buffer *content;
};

/*
 * Returns false, with the reason in `why`, if a file of one of these names exists or cannot be
 * made; then none of them was made. A name is at most 4000 bytes long.
 */
bool new_files_write(const struct new_file *files, size_t count, char *why, size_t size);

#endif
