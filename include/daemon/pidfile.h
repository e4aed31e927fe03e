/* SPDX-License-Identifier: ISC */
/*
 * The file that holds the process id, and keeps a second process from running with the same
 * configuration.
 */
#ifndef PGUSHER_DAEMON_PIDFILE_H
#define PGUSHER_DAEMON_PIDFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* All zero: no file was written. */
struct pidfile {
	char *path; /* owned; NULL: no file was written, or it has been removed */
	dev_t device; /* with the inode: removes only the file that this process wrote */
	ino_t inode;
};

/*
 * Returns whether a process that will write to this path (NULL or empty: none) may start. If
 * the process of the file no longer runs, removes the stale file and logs that. Returns false
 * with the text of a fatal error in `why` when that process runs, or the file cannot be read or
 * understood.
 */
bool pidfile_check(const char *path, char *why, size_t size);

/*
 * Write the process id; writes nothing if the path is NULL or empty. The file must not exist.
 * Returns false with the text of a fatal error in `why`.
 */
bool pidfile_write(struct pidfile *pidfile, const char *path, char *why, size_t size);

/* Remove the file if pidfile_write() wrote it and it is still the same file. */
void pidfile_remove(struct pidfile *pidfile);

#endif
