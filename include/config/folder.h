/* SPDX-License-Identifier: ISC */
/* The files of a directory that holds parts of the configuration, such as conf.d. */
#ifndef PGUSHER_CONFIG_FOLDER_H
#define PGUSHER_CONFIG_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct folder {
	char **paths; /* `PATH/NAME`, in byte order of the names */
	size_t count;
};

/* Whether a directory exists at this path. */
bool folder_exists(const char *path);

/*
 * List the regular files with names ending in `suffix`, and symbolic links to such files;
 * names that start with a dot are skipped. A dangling link is listed too, so that reading it
 * reports the error. Returns false with errno set if the directory is missing or unreadable,
 * or when out of memory.
 */
bool folder_list(const char *path, const char *suffix, struct folder *out);

void folder_free(struct folder *folder);

#endif
