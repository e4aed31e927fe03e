/* SPDX-License-Identifier: ISC */
/*
 * Where servers are, as libpq and its users write it: a connection string or a URL, turned into
 * an entry of [databases] and, for keys that PgBouncer has as settings (sslmode), into settings.
 */
#ifndef PGUSHER_SETUP_TARGET_H
#define PGUSHER_SETUP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "setup/draft.h"
#include "setup/pairs.h"

/*
 * Parse a connection string, as in [databases], or a URL into its pairs. Returns false, with the
 * reason in `why`; the pairs are freed by the caller in either case.
 */
bool target_parse(const char *text, struct pairs *out, char *why, size_t size);

/*
 * Put all pairs into an entry of [databases] and into settings. Keys that have no counterpart are
 * added to the draft's findings, with `origin` as their file. Returns false, with the reason in
 * `why`, if a value is not allowed, or a setting has another value already.
 */
bool target_put(struct draft *draft, const char *entry, const struct pairs *pairs,
	const char *origin, char *why, size_t size);

#endif
