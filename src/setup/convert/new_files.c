/* SPDX-License-Identifier: ISC */
#include "setup/convert/new_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "setup/saving.h"

enum { PATH_SIZE = 4096 };

static bool refuse(char *why, size_t size, const char *path, int error)
{
	snprintf(why, size, "%s: %s", path,
		error == EEXIST ? "exists already, and no file is overwritten"
				: strerror(error));
	return false;
}

static bool name_draft(const struct new_file *file, char out[PATH_SIZE])
{
	const int length = snprintf(out, PATH_SIZE, "%s.%ld.new", file->path, (long)getpid());

	if (length < PATH_SIZE)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

/* Write the file under its other name. errno tells why not. */
static bool write_draft(const struct new_file *file)
{
	char path[PATH_SIZE];
	bool done;
	int fd, error;

	if (!name_draft(file, path))
		return false;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	/* A full disk may tell so late. */
	done = saving_write_all(fd, file->content) && fsync(fd) == 0;
	error = errno;
	if (close(fd) != 0 && done) {
		done = false;
		error = errno;
	}
	if (!done)
		unlink(path);
	errno = error;
	return done;
}

/* Unlike rename(), link() fails if the name exists. */
static bool publish(const struct new_file *file)
{
	char path[PATH_SIZE];

	return name_draft(file, path) && link(path, file->path) == 0;
}

static void remove_drafts(const struct new_file *files, size_t count)
{
	char path[PATH_SIZE];

	for (size_t i = 0; i < count; i++) {
		if (name_draft(&files[i], path))
			unlink(path);
	}
}

bool new_files_write(const struct new_file *files, size_t count, char *why, size_t size)
{
	size_t written = 0, published = 0;

	for (size_t i = 0; i < count; i++) {
		if (access(files[i].path, F_OK) == 0)
			return refuse(why, size, files[i].path, EEXIST);
	}
	while (written < count && write_draft(&files[written]))
		written++;
	while (written == count && published < count && publish(&files[published]))
		published++;
	if (published < count)
		refuse(why, size, files[written < count ? written : published].path, errno);
	remove_drafts(files, written);
	if (published == count)
		return true;
	for (size_t i = 0; i < published; i++)
		unlink(files[i].path);
	return false;
}
