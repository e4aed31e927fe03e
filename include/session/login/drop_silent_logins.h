/* SPDX-License-Identifier: ISC */
/*
 * When sockets run short, those who say nothing before they have logged in make room for those who
 * come: somebody who opens connections and stays silent cannot keep everybody else out.
 */
#ifndef PGUSHER_SESSION_LOGIN_DROP_SILENT_LOGINS_H
#define PGUSHER_SESSION_LOGIN_DROP_SILENT_LOGINS_H

#include "model/registry.h"

/* A connection was accepted under this descriptor: if few are left, drop a silent one. */
void drop_silent_logins_make_room(struct registry *registry, int fd);

/*
 * Close one client, chosen at random among those that have long been silent in their login, but
 * never `except`; `why` is what metrics call it. False: there is none.
 */
bool drop_silent_logins_one(
	struct registry *registry, const struct client_link *except, enum client_rejection why);

#endif
