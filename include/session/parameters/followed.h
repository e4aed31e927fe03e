/* SPDX-License-Identifier: ISC */
/*
 * Followed parameters of a server: which values it has, and when these are no longer known with
 * session_state = ignore; otherwise see session/state.
 *
 * Servers do not report followed parameters. The only sign of a change is the tag of a command
 * that may have made one (SET, RESET). Neither the changed parameter nor the effect of a
 * rollback is known, so all parameters that were ever followed on the server are set or reset
 * for its next client. A change by set_config() in a function is not noticed.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_FOLLOWED_H
#define PGUSHER_SESSION_PARAMETERS_FOLLOWED_H

#include "session/relay/relay.h"

/*
 * A CommandComplete of a server with followed parameters: if its tag shows that they may have
 * changed, or were all reset, note that. Returns false when out of memory.
 */
bool followed_note_command(const struct relay_run *run);

/*
 * The server's client, which may be NULL, has run DISCARD ALL: the server has no followed
 * parameters, and the client those of its startup message. Returns false when out of memory.
 */
bool followed_note_discard(struct server_link *server, struct client_link *client);

/*
 * A ParameterStatus of a parameter that is not tracked. If the client follows it, note the
 * value for the server and, unless `later`, for the client. later: the client gets this report
 * later or not at all. Returns false when out of memory.
 */
bool followed_note_status(
	const struct relay_run *run, const char *name, const char *value, bool later);

/*
 * The server's session was reset: note that it has no followed parameters. Returns false when
 * out of memory.
 */
bool followed_forget(struct server_link *server);

#endif
