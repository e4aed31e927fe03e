/* SPDX-License-Identifier: ISC */
/*
 * The session parameters that follow a client from server to server, such as TimeZone.
 *
 * A table knows which parameters these are. A set holds a value, or "unknown", for each of
 * them; sets never change, are counted, and exist once: within one table the same content is
 * the same pointer. So client and server mostly share one set, and to compare them is to
 * compare two pointers. Sets of two tables may be compared too (parameters_difference) if the
 * tables were made from the same list.
 *
 * Holders of a set: each link, the welcome of each pool, and who is just at work with one.
 */
#ifndef PGUSHER_WIRE_PARAMETERS_H
#define PGUSHER_WIRE_PARAMETERS_H

#include <stddef.h>

#include "base/buffer.h"

enum {
	PARAMETERS_MAX = 32, /* tracked names */
	PARAMETERS_SIZE_MAX = 65536, /* bytes of all values of one set, with a few for each */
};

struct parameter_table;
struct parameters;

/* ---- Names ------------------------------------------------------------------------------ */

/*
 * DateStyle, client_encoding, TimeZone, standard_conforming_strings, application_name, then the
 * names in `extra` (apart by commas or white space; NULL is none), without those that came
 * before. NULL with errno: EINVAL for a name that cannot be a parameter's, E2BIG for more than
 * PARAMETERS_MAX, ENOMEM.
 */
struct parameter_table *parameter_table_new(const char *extra);

/* All sets must have been given back. NULL is allowed. */
void parameter_table_free(struct parameter_table *table);

unsigned parameter_count(const struct parameter_table *table);

/* Place of a name, letter case ignored; -1: it is not tracked. */
int parameter_index(const struct parameter_table *table, const char *name);

/* The name, spelled as in the list. */
const char *parameter_name(const struct parameter_table *table, unsigned index);

/* ---- Sets ------------------------------------------------------------------------------- */

/* The set in which nothing is known; never NULL. Counted for the caller. */
struct parameters *parameters_empty(struct parameter_table *table);

/*
 * The set that differs from `set` in one value, which is copied; NULL makes it unknown.
 * Counted for the caller, who keeps its count of `set`. NULL: no memory, or the new set would
 * be larger than PARAMETERS_SIZE_MAX.
 */
struct parameters *parameters_with(struct parameter_table *table, const struct parameters *set,
	unsigned index, const char *value);

/*
 * `base`, with the values that `over` knows in place of its own: the welcome is the pool's
 * start values overlaid by what the client asked for. Counted; NULL as above.
 */
struct parameters *parameters_overlay(struct parameter_table *table,
	const struct parameters *base, const struct parameters *over);

/*
 * The client's set after the server took its values over: the server's spelling of every
 * parameter that the server knows. Counted; NULL as above.
 */
struct parameters *parameters_adopt(struct parameter_table *table,
	const struct parameters *client, const struct parameters *server);

/* One more holder; returns the set. */
struct parameters *parameters_ref(struct parameters *set);

/* One holder less. NULL is allowed. */
void parameters_unref(struct parameters *set);

/* A value, good as long as the set is held. NULL: unknown. */
const char *parameters_get(const struct parameters *set, unsigned index);

/* Append a ParameterStatus for each known value, in the order of the table. */
void parameters_report(const struct parameters *set, struct buffer *buffer);

/*
 * Append `SET name='value';` for each parameter that both sides know and whose values differ
 * in more than letter case. Returns how many. Negative: nothing was appended, since memory ran
 * out (`sql->failed`), or a search_path of the client is no list of names.
 */
int parameters_difference(
	const struct parameters *client, const struct parameters *server, struct buffer *sql);

#endif
