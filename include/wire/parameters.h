/* SPDX-License-Identifier: ISC */
/*
 * Sets of session parameters, such as TimeZone, that follow a client from server to server.
 *
 * A set has two parts. The table lists the *tracked* parameters, which servers report: for
 * each of them a set has a value, or "unknown". The *followed* parameters are those that a
 * client set although servers do not report them, such as statement_timeout: a short list of
 * names and values. A client's set has the values that the client wants; a server's set has
 * the values that we set there and did not reset. A value on the server that may have changed
 * since is in doubt.
 *
 * Sets are immutable, reference-counted and unique: within one table, equal content is the
 * same pointer. So client and server mostly share one set, and sets are compared by comparing
 * pointers. wire/parameter_difference makes SQL from a difference.
 *
 * References are held by each link, by the welcome of each pool, by the startup values that a
 * pool has checked, and temporarily by code that works with a set. wire/parameter_draft builds
 * a set value by value, wire/parameter_values unpacks one.
 */
#ifndef PGUSHER_WIRE_PARAMETERS_H
#define PGUSHER_WIRE_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum {
	PARAMETERS_MAX = 40, /* tracked names in a table */
	PARAMETERS_FOLLOWED_MAX = 1000, /* followed names in one set */
	PARAMETER_NAME_SIZE = 64, /* PostgreSQL's limit for names, NUL included */
	/* Largest size of a set in bytes: no honest client comes near it. */
	PARAMETERS_SIZE_MAX = 1100 * 1024,
};

struct parameter_table;
struct parameters;

/* ---- Names ------------------------------------------------------------------------------ */

/*
 * Make the table of tracked parameters: all that some version of PostgreSQL reports and that a
 * session can change (PostgreSQL 18, "Message Flow", Asynchronous Operations), then the names
 * in `extra` (separated by commas or white space; NULL: none), without duplicates. Returns NULL with errno: EINVAL for
 * a name that cannot be a parameter's, E2BIG for more than PARAMETERS_MAX, ENOMEM. The caller
 * frees it.
 */
struct parameter_table *parameter_table_new(const char *extra);

/* All references to sets of the table must have been released. NULL is allowed. */
void parameter_table_free(struct parameter_table *table);

unsigned parameter_count(const struct parameter_table *table);

/* Index of a name, letter case ignored; -1 if it is not tracked. */
int parameter_index(const struct parameter_table *table, const char *name);

/* The name, spelled as in the list. Owned by the table. */
const char *parameter_name(const struct parameter_table *table, unsigned index);

/* Whether this can be the name of a parameter, so that it can be written into SQL. */
bool parameter_name_is_legal(const char *name);

/*
 * Whether the parameter, in any letter case, is followed from the time when a client SETs it,
 * though servers report it. It is not tracked: an operator may change it on a server to keep clients
 * from writing there (default_transaction_read_only), which no client's old value may undo.
 */
bool parameter_follows_its_set(const char *name);

/*
 * Whether the parameter, in any letter case, is one of the transaction: it has no effect at the start
 * of a session, ends with each transaction, and cannot be RESET.
 */
bool parameter_is_of_transaction(const char *name);

/* Whether the parameter, in any letter case, may follow a client: `seed` has no value to go back to. */
bool parameter_may_follow(const char *name);

/* Whether the parameter's value is a list of names, which SQL does not take as one literal. */
bool parameter_is_name_list(const char *name);

/*
 * Whether the parameter, with a name in lower case, limits the time of a query or transaction;
 * its value 0 means no limit.
 */
bool parameter_is_time_limit(const char *name);

/*
 * Whether values of the parameter that differ in letter case only are different: lists of names,
 * and names of roles.
 */
bool parameter_minds_case(const char *name);

/* Copy a legal name in lower case. */
void parameter_name_lower(const char *name, char out[PARAMETER_NAME_SIZE]);

/* ---- Sets ------------------------------------------------------------------------------- */

/* Returns the set with no values; never NULL. The caller owns the reference. */
struct parameters *parameters_empty(struct parameter_table *table);

/*
 * Returns a set that differs from `set` in one tracked value, which is copied; a NULL value is
 * unknown. Followed values stay. The caller owns the returned reference and keeps its own of
 * `set`. Returns NULL when out of memory or if the new set would be larger than
 * PARAMETERS_SIZE_MAX.
 */
struct parameters *parameters_with(struct parameter_table *table, const struct parameters *set,
	unsigned index, const char *value);

/*
 * Returns `base` with the values, tracked and followed, that are known in `over` in place of
 * its own. Used for a welcome: start values of the pool, overlaid by the client's startup
 * parameters. Reference and NULL as for parameters_with().
 */
struct parameters *parameters_merge(struct parameter_table *table,
	const struct parameters *base, const struct parameters *over);

/*
 * Returns `set` with exactly the followed values of `of`. Reference and NULL as for
 * parameters_with().
 */
struct parameters *parameters_follow(struct parameter_table *table,
	const struct parameters *set, const struct parameters *of);

/*
 * Returns the client's set after the server has taken over its values: with the server's
 * spelling of every tracked parameter that is known of the server. Reference and NULL as for
 * parameters_with().
 */
struct parameters *parameters_adopt(struct parameter_table *table,
	const struct parameters *client, const struct parameters *server);

/*
 * Returns a server's set after its session may have been changed by statements we did not see:
 * all followed values are in doubt, and so differ from every client's. Reference and NULL as
 * for parameters_with().
 */
struct parameters *parameters_doubt(
	struct parameter_table *table, const struct parameters *server);

/*
 * The same after pgusher's SETs for `client`, of which some may have taken effect: what either of
 * them follows is in doubt. Also NULL if there would be too many followed names.
 */
struct parameters *parameters_doubt_both(struct parameter_table *table,
	const struct parameters *server, const struct parameters *client);

/*
 * Returns `set` with another value for a followed parameter; the same set if it does not
 * follow that parameter. The name may be in any letter case. Reference and NULL as for
 * parameters_with().
 */
struct parameters *parameters_refollow(struct parameter_table *table,
	const struct parameters *set, const char *name, const char *value);

/*
 * Returns `set` with this followed parameter, a name in lower case, in addition. Reference and
 * NULL as for parameters_with(); also NULL if there would be too many followed names.
 */
struct parameters *parameters_follow_also(struct parameter_table *table,
	const struct parameters *set, const char *name, const char *value);

/*
 * Returns `set` with each tracked parameter that is known in it and unknown in `known` moved
 * to the followed ones: a server that does not report a parameter has it set by SET like any
 * other. Reference and NULL as for parameters_with(); also NULL if there would be too many
 * followed names.
 */
struct parameters *parameters_follow_unknown(struct parameter_table *table,
	const struct parameters *set, const struct parameters *known);

/* Whether the set follows any parameter. */
bool parameters_has_followed(const struct parameters *set);

/* Memory of the set in bytes. */
size_t parameters_size(const struct parameters *set);

/* The table of the set. */
struct parameter_table *parameters_table(const struct parameters *set);

/* Add a reference; returns the set. */
struct parameters *parameters_ref(struct parameters *set);

/* Release a reference; the last one frees the set. NULL is allowed. */
void parameters_unref(struct parameters *set);

/* A tracked value, valid as long as the set; NULL: unknown. */
const char *parameters_get(const struct parameters *set, unsigned index);

/* The followed value of this name, in any letter case; NULL: not followed, or in doubt. */
const char *parameters_get_followed(const struct parameters *set, const char *name);

/*
 * Append a ParameterStatus for each known tracked value, in the order of the table. Out of
 * memory sets the buffer's `failed`.
 */
void parameters_report(const struct parameters *set, struct buffer *buffer);

#endif
