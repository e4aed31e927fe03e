/* SPDX-License-Identifier: ISC */
/*
 * Says in words how far a PAUSE, SUSPEND, WAIT_CLOSE or SHUTDOWN is: how much is done, what remains,
 * which client delays it, and for how long it may go on. Notices to consoles, SHOW WAITS, log
 * lines and the status for the service manager all have their words from here.
 *
 * It walks pools and servers, never clients. Names of clients are escaped.
 */
#ifndef PGUSHER_SESSION_SERVING_PROGRESS_H
#define PGUSHER_SESSION_SERVING_PROGRESS_H

#include "session/serving/control.h"

enum { PROGRESS_TEXT_SIZE = 768, PROGRESS_LINE_SIZE = PROGRESS_TEXT_SIZE + 192 };

/* One wait. The names belong to the caller, or to the registry until the end of the turn. */
struct progress {
	const char *command;
	const char *database; /* NULL: all databases */
	usec_t since;
	char text[PROGRESS_TEXT_SIZE];
};

/*
 * What a pause waits for: `3 of 40 servers are still in use, 2 in a transaction; the oldest
 * transaction is open for 35 s (application billing, client 12 of main/app at 10.0.0.7:5123,
 * idle in transaction)`. `database` may be NULL: all databases.
 */
void progress_of_pause(const struct registry *registry, const struct database *database,
	char out[PROGRESS_TEXT_SIZE]);

/* What WAIT_CLOSE waits for; `all`: how many servers it had to wait for at first. */
void progress_of_reconnect(const struct registry *registry, const struct database *database,
	unsigned all, char out[PROGRESS_TEXT_SIZE]);

/*
 * What the present shutdown waits for: `300 of 1,000 clients have left, 700 remain, 12 in a
 * transaction; ...; at most 25 s more`.
 */
void progress_of_shutdown(const struct registry *registry, char out[PROGRESS_TEXT_SIZE]);

/*
 * What this process has taken over, in this time, and what stays: `taken over 4,000 of 4,010 clients
 * and 20 servers in 85 ms; 10 clients stay with process 123 until their transactions end: ...`.
 */
void progress_of_takeover(
	const struct registry *registry, usec_t time, char out[PROGRESS_LINE_SIZE]);

/* The name of that shutdown; NULL: there is none. */
const char *progress_shutdown_name(const struct registry *registry);

/*
 * What the process waits for at present, whether or not a console waits for it too: a shutdown,
 * else a SUSPEND or PAUSE, else the PAUSE of a database. Returns false if it waits for nothing.
 */
bool progress_of_process(const struct registry *registry, struct progress *out);

/* The whole line: `PAUSE main has waited 12 s: 3 of 40 servers ...`. */
void progress_line(const struct progress *progress, usec_t now, char out[PROGRESS_LINE_SIZE]);

#endif
