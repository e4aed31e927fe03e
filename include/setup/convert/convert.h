/* SPDX-License-Identifier: ISC */
/*
 * `pgusher --convert FILE`: reads the configuration of another pooler, writes ours, and lists on
 * stderr what has no counterpart here or behaves otherwise, with the place of each.
 */
#ifndef PGUSHER_SETUP_CONVERT_CONVERT_H
#define PGUSHER_SETUP_CONVERT_CONVERT_H

#include <stdbool.h>

enum convert_result {
	CONVERT_DONE = 0, /* all is converted; there may be notes */
	CONVERT_FAILED = 1, /* nothing was written */
	CONVERT_LOST = 2, /* written; something has no counterpart */
};

struct convert_request {
	const char *path; /* the file to read */
	const char *pooler; /* pgbouncer, odyssey, pgcat, pgagroal; NULL: see by the content */
	/* File to write; files beside it get names that begin like it. NULL: stdout, no secrets. */
	const char *output;
	bool differences; /* print what differs from our defaults, not the file */
};

/* Do it. Returns the exit status of the process. */
enum convert_result convert_run(const struct convert_request *request);

#endif
