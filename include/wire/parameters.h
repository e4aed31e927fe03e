/* SPDX-License-Identifier: ISC */
/*
 * The session parameters that follow a client from server to server, such as TimeZone.
 *
 * A set has two parts. A table knows which parameters are *tracked*, since servers report them:
 * for each of these a set holds a value, or "unknown". Besides there are those that a client
 * asked for though nobody reports them, such as statement_timeout: what is *followed*, a short
 * list of names and values. In a client's set stands what it wants, in a server's what we have
 * set there and not taken back; a value that may have been changed since is in doubt there.
 *
 * Sets never change, are counted, and exist once: within one table the same content is the same
 * pointer. So client and server mostly share one set, and to compare them is to compare two
 * pointers. What a difference means for a server is wire/parameter_difference's.
 *
 * Holders of a set: each link, the welcome of each pool, what a pool has checked, and who is just
 * at work with one. Sets are made one value after the other by wire/parameter_draft, and taken
 * apart by wire/parameter_values.
 */
#ifndef PGUSHER_WIRE_PARAMETERS_H
#define PGUSHER_WIRE_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum {
	PARAMETERS_MAX = 32, /* tracked names */
	PARAMETERS_FOLLOWED_MAX = 64, /* names that one set follows besides */
	PARAMETER_NAME_SIZE = 64, /* PostgreSQL's own limit for names, NUL included */
	/* Bytes of a set: all that fits into a startup message, and some for what we add. */
	PARAMETERS_SIZE_MAX = 66 * 1024,
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

/* Can it be the name of a parameter? It may stand in SQL of ours then. */
bool parameter_name_is_legal(const char *name);

/* Is its value a list of names, which SQL does not take as one literal? */
bool parameter_is_name_list(const char *name);

/* Put a legal name into lower case. */
void parameter_name_lower(const char *name, char out[PARAMETER_NAME_SIZE]);

/* ---- Sets ------------------------------------------------------------------------------- */

/* The set in which nothing is known; never NULL. Counted for the caller. */
struct parameters *parameters_empty(struct parameter_table *table);

/*
 * The set that differs from `set` in one value, which is copied; NULL makes it unknown.
 * What it follows stays. Counted for the caller, who keeps its count of `set`. NULL: no memory,
 * or the new set would be larger than PARAMETERS_SIZE_MAX.
 */
struct parameters *parameters_with(struct parameter_table *table, const struct parameters *set,
	unsigned index, const char *value);

/*
 * `base`, with the values that `over` knows in place of its own, tracked and followed: the
 * welcome is the pool's start values overlaid by what the client asked for. Counted; NULL as
 * above.
 */
struct parameters *parameters_merge(struct parameter_table *table,
	const struct parameters *base, const struct parameters *over);

/* `set`, which follows what `of` follows, and nothing else. Counted; NULL as above. */
struct parameters *parameters_follow(struct parameter_table *table,
	const struct parameters *set, const struct parameters *of);

/*
 * The client's set after the server took its values over: the server's spelling of every
 * tracked parameter that the server knows. Counted; NULL as above.
 */
struct parameters *parameters_adopt(struct parameter_table *table,
	const struct parameters *client, const struct parameters *server);

/*
 * A server's set after its session was changed behind our back: whatever it follows is in doubt,
 * and differs from what any client wants. Counted; NULL as above.
 */
struct parameters *parameters_doubt(
	struct parameter_table *table, const struct parameters *server);

/*
 * `set`, in which a parameter that it follows has another value; the same set if it does not
 * follow that one. The name may be in any letter case. Counted; NULL as above.
 */
struct parameters *parameters_refollow(struct parameter_table *table,
	const struct parameters *set, const char *name, const char *value);

/*
 * `set`, in which every tracked parameter is followed instead that it knows and `known` does not:
 * servers that do not report one have it set like any other. Counted; NULL as above, or if that
 * would be more than can be followed.
 */
struct parameters *parameters_follow_unknown(struct parameter_table *table,
	const struct parameters *set, const struct parameters *known);

/* Does it follow anything beyond what is tracked? */
bool parameters_has_followed(const struct parameters *set);

/* Bytes of memory that it takes. */
size_t parameters_size(const struct parameters *set);

/* The table that it belongs to. */
struct parameter_table *parameters_table(const struct parameters *set);

/* One more holder; returns the set. */
struct parameters *parameters_ref(struct parameters *set);

/* One holder less. NULL is allowed. */
void parameters_unref(struct parameters *set);

/* A value, good as long as the set is held. NULL: unknown. */
const char *parameters_get(const struct parameters *set, unsigned index);

/* The value that it follows under this name, in whatever letter case; NULL: none, or in doubt. */
const char *parameters_get_followed(const struct parameters *set, const char *name);

/* Append a ParameterStatus for each known tracked value, in the order of the table. */
void parameters_report(const struct parameters *set, struct buffer *buffer);

#endif
