/* SPDX-License-Identifier: ISC */
/*
 * A regular expression from a configuration file, as PostgreSQL's ident maps have them: matched
 * anywhere in a text unless anchored, `.` being any character and `$` only the very end.
 *
 * Perl's syntax, by PCRE2, which knows what PostgreSQL's own is commonly used for. Never changed
 * once made. Each match has a bound on its work and memory: what would take more does not match.
 */
#ifndef PGUSHER_CONFIG_PATTERN_H
#define PGUSHER_CONFIG_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

enum { PATTERN_LENGTH_MAX = 4096 /* bytes of an expression */ };

struct pattern;

/* NULL: no such expression, or no memory, and `why` says which. */
struct pattern *pattern_new(const char *text, char *why, size_t size);

/* NULL is fine. */
void pattern_free(struct pattern *pattern);

/* How many groups it has: (...). */
unsigned pattern_groups(const struct pattern *pattern);

/*
 * Does the text match? `*group` is then what the first group took, inside of the text, NULL if
 * it took no part.
 */
bool pattern_matches(const struct pattern *pattern, const char *text, const char **group,
	size_t *group_length);

#endif
