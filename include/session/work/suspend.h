/* SPDX-License-Identifier: ISC */
/*
 * SUSPEND: every connection comes to rest between two messages and is not read any further, so
 * that the descriptors can be taken over by another process.
 *
 * First the clients, and whatever they wait for: logins end, those who wait for a server get one.
 * Then the servers, whose answers are left unread. What is not quiet after suspend_timeout is
 * cut. It ends by RESUME, or when no console is left to give that.
 */
#ifndef PGUSHER_SESSION_WORK_SUSPEND_H
#define PGUSHER_SESSION_WORK_SUSPEND_H

#include "model/registry.h"

/* Begin. False: no memory, nothing has changed. */
bool suspend_begin(struct registry *registry);

/* Is everything at rest? */
bool suspend_is_complete(const struct registry *registry);

/* Look at once what has come to rest, and what must not be kept; may end the suspension. */
void suspend_check(struct registry *registry);

/* Read on; nothing happens if it was not suspended. */
void suspend_end(struct registry *registry);

/* Does a client that has a server keep on with it, for the sake of those who wait? */
bool suspend_may_continue(const struct client_link *client);

#endif
