/* SPDX-License-Identifier: ISC */
/*
 * Commands that are answered later: PAUSE and SUSPEND when no server works for a client any
 * more, WAIT_CLOSE when all servers that were marked have been retired.
 *
 * Each wait is an object in process.console_waits, so that a client may send further commands
 * meanwhile. waits_look() checks the condition of every wait. A wait ends with its reason: a
 * RESUME answers a waiting PAUSE with an error. Every few seconds a notice reports to the
 * client what the command waits for; SHOW WAITS shows all waits.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_WAITS_H
#define PGUSHER_ADMIN_CONSOLE_WAITS_H

#include "model/registry.h"
#include "session/serving/progress.h"

enum wait_kind { WAIT_PAUSE, WAIT_SUSPEND, WAIT_CLOSE, WAIT_KINDS };

/* A wait as SHOW WAITS shows it; valid until the next turn. */
struct wait_view {
	const char *command;
	const char *database; /* NULL: all databases */
	const struct client_link *client; /* the client that gets the answer */
	usec_t since;
	unsigned servers; /* that it waits for */
};

/*
 * Add a wait for a command that is done but for the waiting. `database` may be NULL: all
 * databases. Returns false when out of memory or when the client has too many waits.
 */
bool waits_add(
	struct client_link *client, enum wait_kind kind, const struct database *database);

/*
 * Answer the newest wait of this client without ReadyForQuery, and then call `answered`, unless
 * sending closed the client.
 */
typedef void wait_answered(struct client_link *client, bool failed);
void waits_answer_to(struct client_link *client, wait_answered *answered);

/*
 * Delay the answers of this client's waits (`delay`) while another answer is being sent, or
 * send those that are due. May close the client.
 */
void waits_delay(struct client_link *client, bool delay);

/* Does the client wait for an answer? */
bool waits_has(const struct client_link *client);

/* Answer the waits that are over, and with an error those that can never be over. */
void waits_look(struct registry *registry);

/* Answer all waits of the client with an error: it was canceled by a cancel request. */
void waits_cancel(struct client_link *client);

/* Free all waits of the client without an answer: it is being closed. */
void waits_drop(struct client_link *client);

/* Iterate over all waits: NULL returns the first one; returns NULL after the last one. */
const struct console_wait *waits_next(
	const struct registry *registry, const struct console_wait *after);

/* What SHOW WAITS shows of a wait; `text` gets the words of session/serving/progress. */
struct wait_view waits_view(const struct registry *registry, const struct console_wait *wait,
	char text[PROGRESS_TEXT_SIZE]);

/* Does a console wait with a command of this kind for this database (NULL: all databases)? */
bool waits_has_kind(const struct registry *registry, enum wait_kind kind, const char *database);

#endif
