/* SPDX-License-Identifier: ISC */
/* Detects whether a file has changed since it was read. */
#ifndef PGUSHER_BASE_FILE_IDENTITY_H
#define PGUSHER_BASE_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* What stat() reports of a file. Equal values mean that the file was not written to. */
struct file_identity {
	uint64_t device, inode;
	int64_t modified_seconds, modified_nanoseconds;
	int64_t size;
	mode_t mode;
	uid_t user;
	gid_t group;
};

struct file_identity file_identity_of(const struct stat *status);

/* Store the identity of the file at `path`. Returns false with errno set if stat() fails. */
bool file_identify(const char *path, struct file_identity *out);

bool file_identity_same(const struct file_identity *a, const struct file_identity *b);

#endif
