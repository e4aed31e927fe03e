/* SPDX-License-Identifier: ISC */
/*
 * Commands that are answered later: PAUSE and SUSPEND when all is quiet, WAIT_CLOSE when all that
 * was marked has been retired.
 *
 * Each is an object of its own in registry.process->console_waits, so that a client may send further
 * commands meanwhile. What it waits for is looked at again whenever waits_look() is called; a
 * wait never outlives what it waits for: a RESUME ends a PAUSE that has not been answered. Who
 * waits is told every few seconds what for; SHOW WAITS tells everybody.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_WAITS_H
#define PGUSHER_ADMIN_CONSOLE_WAITS_H

#include "model/registry.h"
#include "session/work/control.h"

enum wait_kind { WAIT_PAUSE, WAIT_SUSPEND, WAIT_CLOSE, WAIT_KINDS };

/* A wait, for SHOW; good until the next turn. */
struct wait_view {
	const char *command;
	const char *database; /* NULL: all */
	const struct client_link *client; /* who is to be answered */
	usec_t since;
	unsigned servers; /* it waits for so many */
};

/* Room for what waits_describe() says. */
enum { WAIT_TEXT_SIZE = 256 };

/*
 * The client's command has been done but for the waiting. NULL is all databases. False: no
 * memory, or the client waits for a great many answers already.
 */
bool waits_add(
	struct client_link *client, enum wait_kind kind, const struct database *database);

/*
 * The newest wait of this client is answered without ReadyForQuery, and this is told when it has
 * been, unless the client is closed then.
 */
typedef void wait_answered(struct client_link *client, bool failed);
void waits_answer_to(struct client_link *client, wait_answered *answered);

/*
 * The client is in the middle of another answer, or no longer: what it waits for is answered when
 * that is at its end.
 */
void waits_hold(struct client_link *client, bool hold);

/* Does the client wait for an answer? */
bool waits_has(const struct client_link *client);

/* Answer what has come true, and with an error what cannot any more. */
void waits_look(struct registry *registry);

/* Answer all that the client waits for with an error: somebody canceled it. */
void waits_cancel(struct client_link *client);

/* Forget all that the client waits for: it is closing. */
void waits_drop(struct client_link *client);

/* Walk the waits: NULL starts, NULL ends. */
const struct console_wait *waits_next(
	const struct registry *registry, const struct console_wait *after);

/* What there is to show of one; `text` is told what it waits for. */
struct wait_view waits_view(const struct registry *registry, const struct console_wait *wait,
	char text[WAIT_TEXT_SIZE]);

/* `2 server connections, one of them used by client 12 (main/app) for 33 s`. */
void waits_describe(const struct registry *registry, const struct control_census *census,
	char text[WAIT_TEXT_SIZE]);

/*
 * Does some console wait with a command of this kind, for this database (NULL: for all)?
 */
bool waits_has_kind(const struct registry *registry, enum wait_kind kind, const char *database);

#endif
