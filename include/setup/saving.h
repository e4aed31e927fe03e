/* SPDX-License-Identifier: ISC */
/*
 * Stores a finished text as a file: whole, or not at all. Where nothing can be written, the text
 * is kept in memory under a path that can be opened like a file.
 */
#ifndef PGUSHER_SETUP_SAVING_H
#define PGUSHER_SETUP_SAVING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"

enum saving_result {
	SAVING_DONE,
	SAVING_NO_PLACE, /* the folder does not exist, or is read-only, or not ours to write to */
	SAVING_FAILED, /* the disk is full, for example */
};

enum { SAVING_PATH_SIZE = 32 };

/*
 * Write the text to a new file beside `path`, and rename it to `path` when it is whole and on the
 * disk. An existing file is replaced. Unless the result is SAVING_DONE, nothing is left behind and
 * `why` has the reason, with the path.
 */
enum saving_result saving_write(
	const char *path, const struct buffer *text, mode_t mode, char *why, size_t size);

/* Write the whole text to an open file. Returns false with errno when that fails. */
bool saving_write_all(int fd, const struct buffer *text);

/*
 * Keep the text in memory and set `path` to where it can be read, again and again, by this
 * process and the program that it executes, until both have ended. Returns false, with the reason
 * in `why`.
 */
bool saving_keep(const char *name, const struct buffer *text, char path[SAVING_PATH_SIZE],
	char *why, size_t size);

#endif
