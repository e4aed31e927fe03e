/* SPDX-License-Identifier: ISC */
/*
 * As whom the process runs. It needs no rights but those of an ordinary user, and keeps none.
 */
#ifndef PGUSHER_DAEMON_PRIVILEGES_H
#define PGUSHER_DAEMON_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>

/* Is there such a system user? */
bool privileges_knows_user(const char *user);

/*
 * Become that system user, with his primary group and, if we are root, no other groups. False
 * with the fatal text in `why`; the process may then have changed half-way and must end.
 */
bool privileges_assume(const char *user, char *why, size_t size);

#endif
