/* SPDX-License-Identifier: ISC */
/*
 * Reads a small file into memory as a whole.
 *
 * Configuration files may contain passwords, so the memory is wiped before it is freed.
 */
#ifndef PGUSHER_CONFIG_FILE_H
#define PGUSHER_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file_identity.h"

struct file_text {
	char *text; /* `length` bytes, followed by a NUL */
	size_t length;
	struct file_identity identity;
};

/*
 * Read a file; the caller frees the text with file_text_free(). Returns false with errno set
 * if it cannot be opened or read, is a directory (EISDIR) or is longer than `limit` bytes
 * (EFBIG). Never blocks: other kinds of files (a FIFO, /dev/null) are read as empty.
 */
bool file_read(const char *path, size_t limit, struct file_text *out);

/* Wipe and free the text. */
void file_text_free(struct file_text *file);

#endif
