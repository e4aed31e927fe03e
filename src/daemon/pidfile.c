/* SPDX-License-Identifier: ISC */
#include "daemon/pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"

enum { NUMBER_SIZE = 32 };

static bool is_named(const char *path)
{
	return path && path[0] != '\0';
}

/* The process id in the file; 0: there is none. */
static pid_t parse(char *text)
{
	long long number;

	text[strcspn(text, " \t\r\n")] = '\0';
	/* Decimal only, without the 0x and octal numbers that settings allow. */
	if (strspn(text, "0123456789") != strlen(text) || text[0] == '0' ||
		!text_to_integer(text, &number) || number > INT_MAX)
		return 0;
	return (pid_t)number;
}

/* Returns false with errno when the file cannot be read. */
static bool read_number(const char *path, pid_t *out)
{
	char text[NUMBER_SIZE] = "";
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t length;
	int error;

	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	error = errno;
	close(fd);
	errno = error;
	if (length < 0)
		return false;
	*out = parse(text);
	return true;
}

/*
 * A restarted container gives its only process the same process id again. So a file with this
 * process's own id was written by an earlier process, which no longer runs.
 */
static bool is_alive(pid_t pid)
{
	return pid != getpid() && (kill(pid, 0) == 0 || errno != ESRCH);
}

bool pidfile_check(const char *path, char *why, size_t size)
{
	pid_t pid;

	if (!is_named(path))
		return true;
	if (!read_number(path, &pid)) {
		if (errno == ENOENT)
			return true;
		snprintf(why, size, "could not open pidfile '%s': %s", path, strerror(errno));
		return false;
	}
	if (pid == 0 || is_alive(pid)) {
		snprintf(why, size, "pidfile '%s' exists, another instance running?", path);
		return false;
	}
	log_write(LEVEL_LOG, "stale pidfile, removing");
	if (unlink(path) != 0 && errno != ENOENT) {
		snprintf(why, size, "could not remove stale pidfile '%s': %s", path,
			strerror(errno));
		return false;
	}
	return true;
}

/* Write the process id, and store the file's device and inode. Returns false with errno. */
static bool fill(struct pidfile *pidfile, int fd)
{
	char text[NUMBER_SIZE];
	const int length = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	struct stat status;
	ssize_t written;

	if (fstat(fd, &status) != 0)
		return false;
	pidfile->device = status.st_dev;
	pidfile->inode = status.st_ino;
	written = write(fd, text, (size_t)length);
	if (written >= 0 && written != length)
		errno = ENOSPC;
	return written == length;
}

bool pidfile_write(struct pidfile *pidfile, const char *path, char *why, size_t size)
{
	int fd, error;
	bool done;

	if (!is_named(path))
		return true;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOCTTY | O_CLOEXEC, 0644);
	if (fd < 0) {
		snprintf(why, size, "could not open pidfile '%s': %s", path, strerror(errno));
		return false;
	}
	pidfile->path = strdup(path);
	done = pidfile->path && fill(pidfile, fd);
	error = errno;
	/* Some file systems report a full disk only on close. */
	if (close(fd) != 0 && done) {
		error = errno;
		done = false;
	}
	if (done)
		return true;
	unlink(path);
	free(pidfile->path);
	pidfile->path = NULL;
	snprintf(why, size, "could not write pidfile '%s': %s", path, strerror(error));
	return false;
}

void pidfile_remove(struct pidfile *pidfile)
{
	struct stat status;

	if (!pidfile->path)
		return;
	if (lstat(pidfile->path, &status) == 0 && status.st_dev == pidfile->device &&
		status.st_ino == pidfile->inode && unlink(pidfile->path) != 0)
		log_write(LEVEL_WARNING, "could not remove pidfile '%s': %m", pidfile->path);
	free(pidfile->path);
	pidfile->path = NULL;
}
