/* SPDX-License-Identifier: ISC */
/*
 * Watches the files that the configuration was read from, by their names, and tells when they
 * have changed (the setting watch_config). A round looks at each name with stat(), which works
 * on every file system, and needs nothing while the watch is off.
 *
 * A change is told once, and not before all files were the same in two rounds, so that none is
 * read while it is written, and files that are changed one after the other are read together. A
 * file that is missing has not changed: it may come back. It holds back the others for a while.
 */
#ifndef PGUSHER_DAEMON_FILE_WATCH_H
#define PGUSHER_DAEMON_FILE_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "config/file_list.h"
#include "net/loop.h"

/* From the begin of one round to the next, if all files fit into one step. */
#define FILE_WATCH_PERIOD USEC_PER_SEC

enum {
	/* Names that are looked at in one step. The next step follows a tenth of a second later. */
	FILE_WATCH_STEP = 256,
	/* Rounds for which a missing file holds back a change of others; then a warning, once. */
	FILE_WATCH_PATIENCE = 10,
};

struct file_watch;

/*
 * Called when files have changed: `path` is one of them, and there are `others`. The path is
 * valid until the list is replaced by file_watch_adopt(), which the function does if it reads
 * the files. If it does not, it is called again after the next round.
 */
typedef void file_watch_function(struct file_watch *watch, const char *path, size_t others);

struct file_watch {
	struct deadline deadline;
	struct loop *loop;
	file_watch_function *changed;
	struct file_list files; /* owned; as they were when they were read */
	struct file_state *seen; /* owned; of each file in the last round; NULL: no memory */
	size_t next; /* the file that this round looks at next */
	usec_t began; /* when this round did */
	/* Of the round that runs: */
	bool moved; /* some file is not as in the round before */
	size_t different, missing; /* from when it was read; number of files */
	const char *first; /* of the different ones; a text in `files` */
	unsigned lacking; /* rounds in a row, up to this one, in which a file is missing */
};

/* Prepare a watch, which is off. Its list of files may be filled already. */
void file_watch_init(struct file_watch *watch, struct loop *loop, file_watch_function *changed);

/* Turn the watch on or off. Changes since the files were read count. */
void file_watch_turn(struct file_watch *watch, bool on);

/* Replace the list by this one, which is left empty: the files were just read again. */
void file_watch_adopt(struct file_watch *watch, struct file_list *files);

/* Turn the watch off and free its list; does nothing before file_watch_init(). */
void file_watch_end(struct file_watch *watch);

#endif
