/* SPDX-License-Identifier: ISC */
/*
 * A client that has proved who it is goes to where it wanted: to the console, or to the pool of its
 * database and user, where its welcome waits. Both may close it.
 */
#ifndef PGUSHER_SESSION_LOGIN_ADMISSION_H
#define PGUSHER_SESSION_LOGIN_ADMISSION_H

#include "model/registry.h"

/* To wherever it belongs, if that is still to be had. */
void admission_begin(struct client_link *client);

/* To the console. */
void admission_to_console(struct client_link *client);

#endif
