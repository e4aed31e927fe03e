/* SPDX-License-Identifier: ISC */
/* How to tell whether a file is still the one that was read. */
#ifndef PGUSHER_BASE_FILE_IDENTITY_H
#define PGUSHER_BASE_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* What stat() says of a file; the same again means that nobody has written to it. */
struct file_identity {
	uint64_t device, inode;
	int64_t modified_seconds, modified_nanoseconds;
	int64_t size;
	mode_t mode;
	uid_t user;
	gid_t group;
};

struct file_identity file_identity_of(const struct stat *status);

/* The identity of the file at this path; false with errno set when there is none. */
bool file_identify(const char *path, struct file_identity *out);

bool file_identity_same(const struct file_identity *a, const struct file_identity *b);

#endif
