/* SPDX-License-Identifier: ISC */
#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read up to the end of the file or of the buffer. */
static ssize_t read_all(int fd, char *buffer, size_t size)
{
	size_t length = 0;

	while (length < size) {
		const ssize_t got = read(fd, buffer + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	return (ssize_t)length;
}

static bool read_open_file(int fd, size_t limit, struct file_text *out)
{
	struct file_text file = {0};
	struct stat status;
	ssize_t length;
	size_t size;

	if (fstat(fd, &status) < 0)
		return false;
	if (S_ISDIR(status.st_mode)) {
		errno = EISDIR;
		return false;
	}
	size = S_ISREG(status.st_mode) ? (size_t)status.st_size : 0;
	if (size > limit) {
		errno = EFBIG;
		return false;
	}
	file.identity = file_identity_of(&status);
	file.text = malloc(size + 1);
	if (!file.text)
		return false;
	length = read_all(fd, file.text, size);
	if (length < 0) {
		const int why = errno;

		file.length = size;
		file_text_free(&file);
		errno = why;
		return false;
	}
	file.length = (size_t)length;
	file.text[file.length] = '\0';
	*out = file;
	return true;
}

bool file_read(const char *path, size_t limit, struct file_text *out)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool done;
	int why;

	if (fd < 0)
		return false;
	done = read_open_file(fd, limit, out);
	why = errno;
	close(fd);
	errno = why;
	return done;
}

void file_text_free(struct file_text *file)
{
	if (file->text)
		explicit_bzero(file->text, file->length);
	free(file->text);
	*file = (struct file_text){0};
}
