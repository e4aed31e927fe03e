/* SPDX-License-Identifier: ISC */
/*
 * The system user that the process runs as. It needs no privileges beyond those of an ordinary
 * user, and keeps none.
 */
#ifndef PGUSHER_DAEMON_PRIVILEGES_H
#define PGUSHER_DAEMON_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>

/* Does this system user exist? */
bool privileges_knows_user(const char *user);

/*
 * Become this system user, with the user's primary group and, if the process is root, no other
 * groups. Returns false with the text of a fatal error in `why`; the process may have changed
 * its group only, and must end.
 */
bool privileges_assume(const char *user, char *why, size_t size);

#endif
