/* SPDX-License-Identifier: ISC */
#include "config/file_list.h"

#include <stdlib.h>
#include <string.h>

#include "config/folder.h"

/* FNV-1a over the names with their NULs; two equal hashes of different names would need luck. */
static uint64_t names_in(const char *path, const char *suffix)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	struct folder folder;

	if (!folder_list(path, suffix, &folder))
		return 0;
	for (size_t i = 0; i < folder.count; i++) {
		const char *name = folder.paths[i];

		for (size_t at = 0; at <= strlen(name); at++)
			hash = (hash ^ (unsigned char)name[at]) * UINT64_C(0x100000001b3);
	}
	folder_free(&folder);
	return hash;
}

struct file_state file_list_look(const struct listed_file *file, const struct file_state *last)
{
	struct file_state state = {0};

	state.exists = file_identify(file->path, &state.identity);
	if (!state.exists || !file->suffix)
		return state;
	if (last && last->exists && file_identity_same(&state.identity, &last->identity))
		state.names = last->names;
	else
		state.names = names_in(file->path, file->suffix);
	return state;
}

bool file_state_same(
	const struct listed_file *file, const struct file_state *a, const struct file_state *b)
{
	if (a->exists != b->exists)
		return false;
	if (!a->exists)
		return true;
	return file->suffix ? a->names == b->names
			    : file_identity_same(&a->identity, &b->identity);
}

static void add(struct file_list *list, const char *path, struct listed_file file)
{
	file.path = strdup(path);

	if (file.path && list->count == list->capacity) {
		const size_t capacity = list->capacity ? list->capacity * 2 : 8;
		struct listed_file *files = realloc(list->files, capacity * sizeof(*files));

		if (files) {
			list->files = files;
			list->capacity = capacity;
		}
	}
	if (!file.path || list->count == list->capacity) {
		list->incomplete = true;
		free(file.path);
		return;
	}
	file.when_read = file_list_look(&file, NULL);
	list->files[list->count++] = file;
}

void file_list_note(struct file_list *list, const char *path)
{
	if (list)
		add(list, path, (struct listed_file){0});
}

void file_list_note_in_folder(struct file_list *list, const char *path)
{
	if (list)
		add(list, path, (struct listed_file){.in_folder = true});
}

void file_list_note_folder(struct file_list *list, const char *path, const char *suffix)
{
	if (list)
		add(list, path, (struct listed_file){.suffix = suffix});
}

static int compare(const void *a, const void *b)
{
	const struct listed_file *left = a, *right = b;
	const int order = strcmp(left->path, right->path);

	return order != 0 ? order : (left->suffix != NULL) - (right->suffix != NULL);
}

void file_list_tidy(struct file_list *list)
{
	size_t kept = 0;

	if (list->count > 1)
		qsort(list->files, list->count, sizeof(list->files[0]), compare);
	for (size_t i = 0; i < list->count; i++) {
		if (kept > 0 && compare(&list->files[i], &list->files[kept - 1]) == 0)
			free(list->files[i].path);
		else
			list->files[kept++] = list->files[i];
	}
	list->count = kept;
}

void file_list_free(struct file_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->files[i].path);
	free(list->files);
	*list = (struct file_list){0};
}
