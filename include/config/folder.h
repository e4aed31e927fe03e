/* SPDX-License-Identifier: ISC */
/*
 * The files of a folder in which configuration is put down in pieces, such as conf.d.
 */
#ifndef PGUSHER_CONFIG_FOLDER_H
#define PGUSHER_CONFIG_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct folder {
	char **paths; /* `PATH/NAME`, in byte order of names */
	size_t count;
};

/* Is there a folder at this path? */
bool folder_exists(const char *path);

/*
 * List the regular files whose names end in `suffix`, symbolic links to such included; names
 * that start with a dot are not looked at. A link that leads nowhere is listed too, so that
 * reading it tells. False with errno set: there is no such folder, it cannot be read, or no
 * memory.
 */
bool folder_list(const char *path, const char *suffix, struct folder *out);

void folder_free(struct folder *folder);

#endif
