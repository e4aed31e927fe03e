/* SPDX-License-Identifier: ISC */
#include "base/file_identity.h"

struct file_identity file_identity_of(const struct stat *status)
{
	return (struct file_identity){
		.device = status->st_dev,
		.inode = status->st_ino,
		.modified_seconds = status->st_mtim.tv_sec,
		.modified_nanoseconds = status->st_mtim.tv_nsec,
		.size = status->st_size,
		.mode = status->st_mode,
		.user = status->st_uid,
		.group = status->st_gid,
	};
}

bool file_identify(const char *path, struct file_identity *out)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return false;
	*out = file_identity_of(&status);
	return true;
}

bool file_identity_same(const struct file_identity *a, const struct file_identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->mode == b->mode &&
		a->user == b->user && a->group == b->group &&
		a->modified_seconds == b->modified_seconds &&
		a->modified_nanoseconds == b->modified_nanoseconds && a->size == b->size;
}
