/* SPDX-License-Identifier: ISC */
/*
 * While the process waits, in a PAUSE, SUSPEND or SHUTDOWN, says how far it is: in a log line every
 * ten seconds, and more often in the status for the service manager. The words are those of
 * session/serving/progress. A wait of less than two seconds is not mentioned.
 */
#ifndef PGUSHER_DAEMON_PROGRESS_PROGRESS_LINES_H
#define PGUSHER_DAEMON_PROGRESS_PROGRESS_LINES_H

#include "model/registry.h"

/* Zeroed at first. */
struct progress_lines {
	usec_t looked; /* when it was last looked; 0: never */
	usec_t logged; /* the last line; 0: none in this wait */
	usec_t since; /* when the present wait began; 0: there is none */
	bool is_shown; /* the status is ours, not that of the statistics */
};

/* To be called regularly; does something once a second. */
void progress_lines_work(struct progress_lines *lines, const struct registry *registry);

#endif
