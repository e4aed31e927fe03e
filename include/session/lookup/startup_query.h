/* SPDX-License-Identifier: ISC */
/*
 * The query that checks startup parameters on a server, and its answer. These are the functions
 * of struct lookup_kind: see pool/lookup.
 *
 * Each value is set by set_config() for the transaction of the query, which returns the value
 * as the server spells it (lookup.canonical). An ErrorResponse refuses the values
 * (lookup.refusal).
 */
#ifndef PGUSHER_SESSION_LOOKUP_STARTUP_QUERY_H
#define PGUSHER_SESSION_LOOKUP_STARTUP_QUERY_H

#include "session/pool/lookup.h"

/* Returns the values to be checked. */
static inline const struct parameters *startup_query_values(const struct lookup *lookup)
{
	return lookup->subject;
}

const void *startup_query_ref(const void *subject);
void startup_query_unref(const void *subject);
unsigned startup_query_write_preludes(struct server_link *server, struct buffer *out);
bool startup_query_prelude_done(struct server_link *server);
unsigned startup_query_write(
	const struct lookup *lookup, const struct server_link *server, struct buffer *out);
unsigned startup_query_columns(const struct lookup *lookup, unsigned statement);
bool startup_query_take_row(
	struct server_link *server, unsigned statement, const uint8_t *body, size_t length);
enum lookup_error startup_query_take_error(
	struct server_link *server, const struct report *report);

#endif
