/* SPDX-License-Identifier: ISC */
/*
 * A whole small file in memory.
 *
 * Configuration files may hold passwords, so the memory is wiped when it is given back.
 */
#ifndef PGUSHER_CONFIG_FILE_H
#define PGUSHER_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file_identity.h"

struct file_text {
	char *text; /* `length` bytes and a NUL behind them */
	size_t length;
	struct file_identity identity;
};

/*
 * Read a file. False with errno set: it cannot be opened or read, is a directory (EISDIR) or is
 * longer than `limit` bytes (EFBIG). What is no file on disk (a FIFO, /dev/null) is never waited
 * for and reads as empty.
 */
bool file_read(const char *path, size_t limit, struct file_text *out);

/* Wipe and free the text. */
void file_text_free(struct file_text *file);

#endif
