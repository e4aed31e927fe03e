/* SPDX-License-Identifier: ISC */
#include "config/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool folder_exists(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool has_suffix(const char *name, const char *suffix)
{
	const size_t length = strlen(name), wanted = strlen(suffix);

	return name[0] != '.' && length > wanted && strcmp(name + length - wanted, suffix) == 0;
}

static bool is_other_than_a_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* Returns false when out of memory. */
static bool add(struct folder *folder, const char *path, const char *name)
{
	char **paths = realloc(folder->paths, (folder->count + 1) * sizeof(*paths));
	char *whole;

	if (!paths)
		return false;
	folder->paths = paths;
	if (asprintf(&whole, "%s/%s", path, name) < 0)
		return false;
	if (is_other_than_a_file(whole))
		free(whole);
	else
		paths[folder->count++] = whole;
	return true;
}

/* Returns false with errno set. */
static bool add_all(struct folder *folder, DIR *stream, const char *path, const char *suffix)
{
	const struct dirent *entry;

	for (errno = 0; (entry = readdir(stream)) != NULL; errno = 0) {
		if (has_suffix(entry->d_name, suffix) && !add(folder, path, entry->d_name)) {
			errno = ENOMEM;
			return false;
		}
	}
	return errno == 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool folder_list(const char *path, const char *suffix, struct folder *out)
{
	struct folder folder = {0};
	DIR *stream = opendir(path);
	bool done;
	int why;

	if (!stream)
		return false;
	done = add_all(&folder, stream, path, suffix);
	why = errno;
	closedir(stream);
	if (!done) {
		folder_free(&folder);
		errno = why;
		return false;
	}
	if (folder.count > 0)
		qsort(folder.paths, folder.count, sizeof(folder.paths[0]), compare);
	*out = folder;
	return true;
}

void folder_free(struct folder *folder)
{
	for (size_t i = 0; i < folder->count; i++)
		free(folder->paths[i]);
	free(folder->paths);
	*folder = (struct folder){0};
}
