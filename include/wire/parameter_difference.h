/* SPDX-License-Identifier: ISC */
/* The SQL that gives a server session the parameters of a client. */
#ifndef PGUSHER_WIRE_PARAMETER_DIFFERENCE_H
#define PGUSHER_WIRE_PARAMETER_DIFFERENCE_H

#include "wire/parameters.h"

/* What a new session of the server has when its first client gets it. */
struct session_start {
	const char *prelude; /* statements that were executed at its start; NULL: none */
	const struct parameters *usual; /* its tracked parameters; NULL: unknown */
};

/*
 * Append one text of SQL to `sql`: `RESET name;` for each parameter that the server follows
 * and the client does not, `SET name='value';` for each tracked parameter that both know and
 * that differs in more than letter case (lists of names, and the name of a role: at all), and
 * for each followed one that differs at all. A tracked value that is unknown of the client is
 * the usual one. Followed lists of names are set by set_config(), which takes them unchanged.
 *
 * The session's identity (role, session_authorization) is reset before everything else and set
 * after it, since it decides which parameters may be set. session_authorization is tracked, but
 * where it is not the usual one it is reset and set like a followed parameter. Time limits are
 * reset even before that, and set at the very end, so that they do not limit this SQL; those
 * that both follow are set again if there is anything to set: the caller may have lifted them.
 *
 * RESET goes back to the values that the session started with, so after RESETs all values are
 * set again: first the prelude, then all of the client's values.
 *
 * The sets may belong to two tables that were made from the same list. Returns the number of
 * SET and RESET. Returns a negative number and appends nothing when out of memory
 * (`sql->failed`), or if a value of the client that must be a list of names is not one.
 */
int parameters_difference(const struct parameters *client, const struct parameters *server,
	const struct session_start *start, struct buffer *sql);

#endif
