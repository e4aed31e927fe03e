/* SPDX-License-Identifier: ISC */
#include "daemon/file_watch.h"

#include <stdlib.h>

#include "base/log.h"

/* --- a round ------------------------------------------------------------------------------ */

static void begin_round(struct file_watch *watch)
{
	watch->began = loop_now(watch->loop);
	watch->next = 0;
	watch->moved = false;
	watch->different = watch->missing = 0;
	watch->first = NULL;
}

static void look_at(struct file_watch *watch, size_t index)
{
	const struct listed_file *file = &watch->files.files[index];
	struct file_state *seen = &watch->seen[index];
	const struct file_state now = file_list_look(file, seen);

	if (!file_state_same(file, &now, seen))
		watch->moved = true;
	*seen = now;
	if (file_state_same(file, &now, &file->when_read))
		return;
	if (!now.exists)
		watch->missing += !file->in_folder;
	else if (watch->different++ == 0)
		watch->first = file->path;
}

static void warn_of_missing_file(const struct file_watch *watch)
{
	for (size_t i = 0; i < watch->files.count; i++) {
		const struct listed_file *file = &watch->files.files[i];

		if (file->in_folder || !file->when_read.exists || watch->seen[i].exists)
			continue;
		log_write(LEVEL_WARNING,
			"'%s' is missing: what was read from it stays in force", file->path);
		return;
	}
}

/* Are the changed files to be read now? */
static bool is_time(struct file_watch *watch)
{
	watch->lacking = watch->missing > 0 ? watch->lacking + 1 : 0;
	if (watch->lacking == FILE_WATCH_PATIENCE)
		warn_of_missing_file(watch);
	if (watch->different == 0 || watch->moved)
		return false;
	return watch->missing == 0 || watch->lacking >= FILE_WATCH_PATIENCE;
}

static void end_round(struct file_watch *watch)
{
	const bool tells = is_time(watch);
	const char *first = watch->first;
	const size_t others = watch->different - 1;
	const usec_t next = watch->began + FILE_WATCH_PERIOD;
	const usec_t now = loop_now(watch->loop);

	begin_round(watch);
	wheel_set(&watch->loop->wheel, &watch->deadline,
		next > now + WHEEL_TICK ? next : now + WHEEL_TICK);
	/* Last, since it may turn the watch off. */
	if (tells)
		watch->changed(watch, first, others);
}

static void on_step(struct deadline *deadline)
{
	struct file_watch *watch = (struct file_watch *)deadline;

	if (watch->next == 0)
		watch->began = loop_now(watch->loop);
	for (size_t i = 0; i < FILE_WATCH_STEP && watch->next < watch->files.count; i++)
		look_at(watch, watch->next++);
	if (watch->next >= watch->files.count)
		end_round(watch);
	else
		wheel_set(&watch->loop->wheel, &watch->deadline,
			loop_now(watch->loop) + WHEEL_TICK);
}

/* --- turning it on and off ---------------------------------------------------------------- */

/* The first round compares with the files as they were read. Returns false when out of memory. */
static bool forget_rounds(struct file_watch *watch)
{
	begin_round(watch);
	watch->lacking = 0;
	free(watch->seen);
	watch->seen = calloc(watch->files.count + 1, sizeof(*watch->seen));
	for (size_t i = 0; watch->seen && i < watch->files.count; i++)
		watch->seen[i] = watch->files.files[i].when_read;
	if (!watch->seen || watch->files.incomplete)
		log_write(LEVEL_ERROR, "no memory to watch all files of the configuration");
	return watch->seen != NULL;
}

void file_watch_init(struct file_watch *watch, struct loop *loop, file_watch_function *changed)
{
	watch->loop = loop;
	watch->changed = changed;
	watch->deadline.expire = on_step;
}

void file_watch_turn(struct file_watch *watch, bool on)
{
	if (on == (watch->seen != NULL))
		return;
	if (on && forget_rounds(watch)) {
		wheel_set(&watch->loop->wheel, &watch->deadline,
			watch->began + FILE_WATCH_PERIOD);
		return;
	}
	wheel_remove(&watch->loop->wheel, &watch->deadline);
	free(watch->seen);
	watch->seen = NULL;
}

void file_watch_adopt(struct file_watch *watch, struct file_list *files)
{
	const bool on = watch->seen != NULL;

	if (on)
		file_watch_turn(watch, false);
	file_list_free(&watch->files);
	watch->files = *files;
	*files = (struct file_list){0};
	if (on)
		file_watch_turn(watch, true);
}

void file_watch_end(struct file_watch *watch)
{
	if (watch->seen)
		file_watch_turn(watch, false);
	file_list_free(&watch->files);
}
