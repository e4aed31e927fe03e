/* SPDX-License-Identifier: ISC */
/*
 * When descriptors or client slots run short, clients that have connected but send nothing are
 * closed in favour of new ones: connections that stay silent cannot lock out all other clients.
 */
#ifndef PGUSHER_SESSION_LOGIN_DROP_SILENT_LOGINS_H
#define PGUSHER_SESSION_LOGIN_DROP_SILENT_LOGINS_H

#include "model/registry.h"

/*
 * Close one client, chosen at random among the oldest that have been silent in their login for
 * long, but never `except`. `why` is the rejection that metrics count. Returns false when there
 * is no such client.
 */
bool drop_silent_logins_one(
	struct registry *registry, const struct client_link *except, enum client_rejection why);

#endif
