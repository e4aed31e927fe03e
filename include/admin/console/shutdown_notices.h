/* SPDX-License-Identifier: ISC */
/*
 * Notices to the consoles that have asked for the shutdown in progress: the first one with the
 * answer, and then one every few seconds until the console disconnects, or the process ends.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_SHUTDOWN_NOTICES_H
#define PGUSHER_ADMIN_CONSOLE_SHUTDOWN_NOTICES_H

#include "base/buffer.h"
#include "model/registry.h"

/* The console has begun a shutdown that waits: append the first notice to its answer. */
void shutdown_notices_begin(struct client_link *client, struct buffer *out);

/* Send the notices that are due. May close their clients. */
void shutdown_notices_send(struct registry *registry);

#endif
