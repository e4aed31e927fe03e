/* SPDX-License-Identifier: ISC */
/* Reads a value from a file of its own, as container engines mount secrets. */
#ifndef PGUSHER_SETUP_SECRET_FILE_H
#define PGUSHER_SETUP_SECRET_FILE_H

#include <stddef.h>

enum { SECRET_FILE_LIMIT = 1024 * 1024 };

/*
 * Returns the text of the file without one line end at its end; the caller wipes it and frees it.
 * Returns NULL, with the reason and the path in `why`, if it cannot be read, is empty, is longer
 * than the limit or is no text.
 */
char *secret_file_read(const char *path, char *why, size_t size);

#endif
