/* SPDX-License-Identifier: ISC */
/*
 * Commands that are answered later: PAUSE when all is quiet, WAIT_CLOSE when all that was marked
 * has been retired.
 *
 * Each is an object of its own in registry.console_waits, so that a client may send further
 * commands meanwhile. What it waits for is looked at again whenever waits_look() is called; a
 * wait never outlives what it waits for: a RESUME ends a PAUSE that has not been answered.
 */
#ifndef PGUSHER_ADMIN_WAITS_H
#define PGUSHER_ADMIN_WAITS_H

#include "model/registry.h"

enum wait_kind { WAIT_PAUSE, WAIT_CLOSE };

/*
 * The client's command has been done but for the waiting. NULL is all databases. False: no
 * memory, or the client waits for a great many answers already.
 */
bool waits_add(
	struct client_link *client, enum wait_kind kind, const struct database *database);

/* Does the client wait for an answer? */
bool waits_has(const struct client_link *client);

/* Answer what has come true, and with an error what cannot any more. */
void waits_look(struct registry *registry);

/* Answer all that the client waits for with an error: somebody canceled it. */
void waits_cancel(struct client_link *client);

/* Forget all that the client waits for: it is closing. */
void waits_drop(struct client_link *client);

#endif
