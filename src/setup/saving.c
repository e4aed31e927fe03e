/* SPDX-License-Identifier: ISC */
#include "setup/saving.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool saving_write_all(int fd, const struct buffer *text)
{
	size_t done = 0;

	while (done < text->length) {
		const ssize_t written = write(fd, text->data + done, text->length - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		done += (size_t)written;
	}
	return true;
}

/* A full disk may be reported as late as by fsync() and close(). */
static bool fill(int fd, const struct buffer *text, mode_t mode)
{
	const bool written =
		saving_write_all(fd, text) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
	const int error = errno;
	const bool closed = close(fd) == 0;

	if (!written)
		errno = error;
	return written && closed;
}

static enum saving_result fail(const char *path, char *why, size_t size)
{
	const int error = errno;

	snprintf(why, size, "cannot write %s: %s", path, strerror(error));
	switch (error) {
	case EACCES:
	case EPERM:
	case EROFS:
	case ENOENT:
	case ENOTDIR:
		return SAVING_NO_PLACE;
	default:
		return SAVING_FAILED;
	}
}

enum saving_result saving_write(
	const char *path, const struct buffer *text, mode_t mode, char *why, size_t size)
{
	enum saving_result result = SAVING_DONE;
	char *draft;
	int fd;

	if (asprintf(&draft, "%s.XXXXXX", path) < 0) {
		errno = ENOMEM;
		return fail(path, why, size);
	}
	fd = mkostemp(draft, O_CLOEXEC);
	if (fd < 0) {
		result = fail(path, why, size);
	} else if (!fill(fd, text, mode) || rename(draft, path) != 0) {
		result = fail(path, why, size);
		unlink(draft);
	}
	free(draft);
	return result;
}

bool saving_keep(const char *name, const struct buffer *text, char path[SAVING_PATH_SIZE],
	char *why, size_t size)
{
	const int fd = memfd_create(name, 0);

	if (fd >= 0 && saving_write_all(fd, text) && fchmod(fd, 0600) == 0) {
		snprintf(path, SAVING_PATH_SIZE, "/dev/fd/%d", fd);
		return true;
	}
	snprintf(why, size, "cannot keep %s in memory: %s", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return false;
}
