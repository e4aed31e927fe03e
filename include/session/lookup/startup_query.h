/* SPDX-License-Identifier: ISC */
/*
 * The query that asks a server about startup parameters, and its answer: the functions of a
 * lookup_kind, see session/pool/lookup.
 */
#ifndef PGUSHER_SESSION_LOOKUP_STARTUP_QUERY_H
#define PGUSHER_SESSION_LOOKUP_STARTUP_QUERY_H

#include "session/pool/lookup.h"

/* The values that are asked for. */
static inline const struct parameters *startup_query_values(const struct lookup *lookup)
{
	return lookup->subject;
}

const void *startup_query_hold(const void *subject);
void startup_query_release(const void *subject);
unsigned startup_query_prepare(struct server_link *server, struct buffer *out);
bool startup_query_fit(struct server_link *server);
unsigned startup_query_ask(
	const struct lookup *lookup, const struct server_link *server, struct buffer *out);
unsigned startup_query_columns(const struct lookup *lookup, unsigned statement);
bool startup_query_take_row(
	struct server_link *server, unsigned statement, const uint8_t *body, size_t length);
enum lookup_error startup_query_take_error(
	struct server_link *server, const struct report *report);

#endif
