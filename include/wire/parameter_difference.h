/* SPDX-License-Identifier: ISC */
/* What a server has to be told so that its session has the parameters of a client. */
#ifndef PGUSHER_WIRE_PARAMETER_DIFFERENCE_H
#define PGUSHER_WIRE_PARAMETER_DIFFERENCE_H

#include "wire/parameters.h"

/*
 * Append it as one text of SQL: `RESET name;` for what the server follows and the client does
 * not, `SET name='value';` for each tracked parameter that both know and whose values differ in
 * more than letter case (lists of names: at all), and for each followed one whose value differs
 * at all. Lists of names that are followed are set by set_config(), which takes them as they are.
 * Who the session acts as (role, session_authorization) is taken back before anything else and set after it,
 * since what may be set depends on it.
 *
 * A RESET goes back to what the session began with, so what was set then has to be set again:
 * behind RESETs comes `prelude` (NULL: nothing), and then all of the client's values.
 *
 * The sets may be of two tables that were made from the same list. Returns how many SET and RESET
 * there are. Negative: nothing was appended, since memory ran out (`sql->failed`), or a list of
 * names of the client is none.
 */
int parameters_difference(const struct parameters *client, const struct parameters *server,
	const char *prelude, struct buffer *sql);

#endif
