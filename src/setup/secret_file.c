/* SPDX-License-Identifier: ISC */
#include "setup/secret_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/file.h"

static void cut_line_end(struct file_text *file)
{
	size_t length = file->length;

	if (length > 0 && file->text[length - 1] == '\n')
		length--;
	if (length < file->length && length > 0 && file->text[length - 1] == '\r')
		length--;
	file->text[length] = '\0';
	file->length = length;
}

static char *refuse(
	struct file_text *file, const char *path, const char *reason, char *why, size_t size)
{
	snprintf(why, size, "%s: %s", path, reason);
	file_text_free(file);
	return NULL;
}

char *secret_file_read(const char *path, char *why, size_t size)
{
	struct file_text file;

	if (!file_read(path, SECRET_FILE_LIMIT, &file)) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return NULL;
	}
	cut_line_end(&file);
	if (file.length == 0)
		return refuse(&file, path, "the file is empty", why, size);
	if (memchr(file.text, '\0', file.length))
		return refuse(&file, path, "the file holds a NUL byte", why, size);
	return file.text;
}
