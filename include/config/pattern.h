/* SPDX-License-Identifier: ISC */
/*
 * A regular expression from a configuration file, as in PostgreSQL's ident maps: matched
 * anywhere in a text unless anchored; `.` is any character and `$` only the end of the text.
 *
 * The syntax is Perl's, by PCRE2, which includes the common features of PostgreSQL's.
 * Immutable. Each match is limited in work and memory: a text that would exceed the limit does
 * not match.
 */
#ifndef PGUSHER_CONFIG_PATTERN_H
#define PGUSHER_CONFIG_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

enum { PATTERN_LENGTH_MAX = 4096 /* of an expression, in bytes */ };

struct pattern;

/*
 * Compile an expression; the caller frees it. Returns NULL if it is invalid or when out of
 * memory; `why` has the reason.
 */
struct pattern *pattern_new(const char *text, char *why, size_t size);

/* Free; NULL is allowed. */
void pattern_free(struct pattern *pattern);

/* Number of its groups: (...). */
unsigned pattern_groups(const struct pattern *pattern);

/*
 * Whether the text matches. On a match `*group` is the text of the first group, inside `text`,
 * or NULL if the group took no part.
 */
bool pattern_matches(const struct pattern *pattern, const char *text, const char **group,
	size_t *group_length);

#endif
