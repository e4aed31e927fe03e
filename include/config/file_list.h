/* SPDX-License-Identifier: ISC */
/*
 * The names of the files that a configuration was read from, and of the folders that it lists,
 * each with its state just before it was read. A file that is another one later, or has other
 * content, has another state under the same name, however it was changed: in place, by rename,
 * by removal and creation, by another target of a symbolic link anywhere in its path.
 *
 * No file is kept open. A file that does not exist has a state too: it may be created later.
 */
#ifndef PGUSHER_CONFIG_FILE_LIST_H
#define PGUSHER_CONFIG_FILE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_identity.h"

struct file_state {
	bool exists;
	struct file_identity identity; /* all zero if it does not exist */
	/* Of a folder: a hash of the names of the files that count. Another file in it is none. */
	uint64_t names;
};

struct listed_file {
	char *path; /* owned */
	const char *suffix; /* of the names of a folder that count; NULL: a file. Static text */
	bool in_folder; /* it was found in such a folder, so it may be removed */
	struct file_state when_read;
};

/* Zeroed is empty. */
struct file_list {
	struct listed_file *files;
	size_t count, capacity;
	bool incomplete; /* there was no memory for some */
};

/*
 * Add a file with its present state. Call it before the file is read: a change during the
 * reading then shows as a state other than `when_read`. With a NULL list nothing is done.
 */
void file_list_note(struct file_list *list, const char *path);

/* The same for a file of a folder in the list: without it, the folder has changed. */
void file_list_note_in_folder(struct file_list *list, const char *path);

/* The same for a folder that is searched for files with this suffix, a static text. */
void file_list_note_folder(struct file_list *list, const char *path, const char *suffix);

/* Sort by path, and leave each path once. */
void file_list_tidy(struct file_list *list);

/*
 * Returns the present state of a file. `last`, a state that was found before, saves listing a
 * folder again.
 */
struct file_state file_list_look(const struct listed_file *file, const struct file_state *last);

/* Whether two states are the same; a folder is as long as it has files of the same names. */
bool file_state_same(
	const struct listed_file *file, const struct file_state *a, const struct file_state *b);

/* Free all names and leave the list empty. */
void file_list_free(struct file_list *list);

#endif
