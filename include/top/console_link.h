/* SPDX-License-Identifier: ISC */
/*
 * The connection to the console, by libpq, which never blocks the caller but for looking up a host
 * name. One SHOW is on its way at a time.
 *
 * A connection that is lost, or cannot be made, is tried again after a pause that grows from half a
 * second to 15 seconds. A console that does not answer for 30 seconds, or with more results than a SHOW
 * has, counts as lost. Notices and notifications are dropped.
 */
#ifndef PGUSHER_TOP_CONSOLE_LINK_H
#define PGUSHER_TOP_CONSOLE_LINK_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "base/clock.h"
#include "top/table.h"

enum console_link_state {
	CONSOLE_LINK_DOWN, /* waits for the next attempt */
	CONSOLE_LINK_CONNECTING,
	CONSOLE_LINK_READY,
	CONSOLE_LINK_ASKING,
};

/* What has become of the connection in a turn. */
enum console_link_event {
	CONSOLE_LINK_NOTHING,
	CONSOLE_LINK_CONNECTED,
	CONSOLE_LINK_ANSWERED, /* `answer` has the rows */
	CONSOLE_LINK_REFUSED, /* `why` has the console's error; the connection stays */
	CONSOLE_LINK_LOST, /* `why` has the reason */
	CONSOLE_LINK_NEEDS_PASSWORD, /* the server asks for one, and none is known */
};

enum { CONSOLE_LINK_WHY_SIZE = 512 };

struct console_link {
	/* Of PQconnectStartParams(), NULL at the end of each; owned by the caller. */
	const char *const *keywords, *const *values;
	PGconn *connection;
	PostgresPollingStatusType polling;
	enum console_link_state state;
	usec_t since; /* of the state, or of the last bytes of an answer under way */
	usec_t asked; /* when the SHOW under way was sent */
	usec_t down_since; /* when the connection was lost; 0 while there is one */
	usec_t next_attempt;
	unsigned results; /* of the SHOW under way, rows apart */
	unsigned attempts; /* failed ones since the last connection */
	struct table answer; /* the caller may take it after CONSOLE_LINK_ANSWERED */
	char why[CONSOLE_LINK_WHY_SIZE];
	bool refused; /* the SHOW under way got an error */
};

/* Keep the parameters; the first attempt is made by console_link_turn(). */
void console_link_begin(struct console_link *link, const char *const *keywords,
	const char *const *values, usec_t now);

/* Close the connection and free what the link owns. */
void console_link_end(struct console_link *link);

/* Try again now if there is no connection. */
void console_link_retry(struct console_link *link, usec_t now);

/* Send a SHOW. Only in CONSOLE_LINK_READY. */
void console_link_ask(struct console_link *link, const char *sql, usec_t now);

/* The socket to poll, or -1, and for what: POLLIN, POLLOUT. */
int console_link_socket(const struct console_link *link, short *events);

/* When console_link_turn() is to be called even if the socket is silent. */
usec_t console_link_deadline(const struct console_link *link);

/* Go on, after a poll or at the deadline. `ready` tells whether the socket is. */
enum console_link_event console_link_turn(struct console_link *link, bool ready, usec_t now);

#endif
