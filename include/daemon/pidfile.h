/* SPDX-License-Identifier: ISC */
/*
 * The file that holds our process number, and keeps a second process from running with the same
 * configuration.
 */
#ifndef PGUSHER_DAEMON_PIDFILE_H
#define PGUSHER_DAEMON_PIDFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* All zero: none was written. */
struct pidfile {
	char *path; /* owned; NULL: none was written, or it has been removed */
	dev_t device; /* so that only our own is removed */
	ino_t inode;
};

/*
 * May a process start that will write to this path (NULL or empty: none)? One that was left
 * behind by a process that is gone is removed, which is logged. False with the fatal text in
 * `why` when its process lives, or nobody can tell.
 */
bool pidfile_check(const char *path, char *why, size_t size);

/*
 * Write our process number; NULL or empty: nothing is written. The file must not exist. False
 * with the fatal text in `why`.
 */
bool pidfile_write(struct pidfile *pidfile, const char *path, char *why, size_t size);

/* Remove the file, if it was written here and is still the same. */
void pidfile_remove(struct pidfile *pidfile);

#endif
