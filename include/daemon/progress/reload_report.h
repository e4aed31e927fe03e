/* SPDX-License-Identifier: ISC */
/*
 * Says in one line what a RELOAD has read and changed, and how long that took: `RELOAD: read 2 files
 * with 10,000 databases and 3 users in 85 ms, applied in 12 ms; 1 database added, 2 changed; 4
 * servers are to be renewed as they come free`.
 *
 * A reload is one turn of the loop, so the line comes at its end; if reading alone has taken long,
 * a line before it says so.
 */
#ifndef PGUSHER_DAEMON_PROGRESS_RELOAD_REPORT_H
#define PGUSHER_DAEMON_PROGRESS_RELOAD_REPORT_H

#include "config/file_list.h"
#include "config/snapshot.h"
#include "model/registry.h"

enum { RELOAD_REPORT_SIZE = 768 };

/* How two lists of names differ. */
struct reload_changes {
	size_t added, changed, removed;
};

struct reload_report {
	usec_t began,
		read; /* by the clock, not the loop's time, which stands still meanwhile */
	struct reload_changes databases; /* with the `*` entry */
	struct reload_changes users; /* of auth_file */
	struct reload_changes user_entries, peers; /* of [users] and [peers] */
	size_t settings; /* how many have another value */
	char names[256]; /* of the first ones */
	size_t files, database_count, user_count;
	unsigned retired; /* servers that were to be renewed before */
	char text[RELOAD_REPORT_SIZE]; /* what reload_report_end() has logged */
	bool notable; /* something has changed, or it has taken long */
};

/* The files are about to be read. */
void reload_report_begin(struct reload_report *report);

/* They were read from these files: compare both configurations, the old one in force. */
void reload_report_read(struct reload_report *report, const struct registry *registry,
	const struct snapshot *new, const struct file_list *files);

/* The new configuration is in force: log the line, and show it as the status. */
void reload_report_end(struct reload_report *report, const struct registry *registry);

#endif
