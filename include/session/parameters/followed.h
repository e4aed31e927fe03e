/* SPDX-License-Identifier: ISC */
/*
 * What a server follows for its clients, and when that is not to be believed any more.
 *
 * Nobody reports the followed settings, so all that tells of a change is the tag of a command
 * that may have made one. What it changed is not known, nor whether a rollback will undo it: the
 * next client has everything set or reset that was ever followed there. A function that calls
 * set_config() is seen by nobody.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_FOLLOWED_H
#define PGUSHER_SESSION_PARAMETERS_FOLLOWED_H

#include "session/relay/relay.h"

/*
 * A CommandComplete of a server that follows something: does its tag cast doubt on that, or take
 * it all back? False: no memory.
 */
bool followed_note_command(const struct relay_run *run);

/*
 * A ParameterStatus that is not tracked: if it is followed, this is its value from now on, on
 * the server and, unless that is told later, for its client. False: no memory.
 */
bool followed_note_status(
	const struct relay_run *run, const char *name, const char *value, bool later);

/* The server's session is as it was made: it follows nothing. False: no memory. */
bool followed_forget(struct server_link *server);

#endif
