/* SPDX-License-Identifier: ISC */
/*
 * A whole small file in memory, and how to tell whether a file is still the same one.
 *
 * Configuration files may hold passwords, so the memory is wiped when it is given back.
 */
#ifndef PGUSHER_CONFIG_FILE_H
#define PGUSHER_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What stat() says of a file; the same again means that nobody has written to it. */
struct file_identity {
	uint64_t device, inode;
	int64_t modified_seconds, modified_nanoseconds;
	int64_t size;
	mode_t mode;
	uid_t user;
	gid_t group;
};

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

/* The identity of the file at this path; false with errno set when there is none. */
bool file_identify(const char *path, struct file_identity *out);

bool file_identity_same(const struct file_identity *a, const struct file_identity *b);

#endif
