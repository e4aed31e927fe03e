/* SPDX-License-Identifier: ISC */
/*
 * Reads TOML 1.0 (toml.io/en/v1.0.0) into the tree of a source.
 *
 * Tables and inline tables become tables, arrays lists (an array of tables a list of tables),
 * strings strings, and numbers, booleans and dates words. Integers are decimal in the tree,
 * without signs and underscores that they do not need. Stricter than TOML: no \u0000 in strings,
 * SOURCE_DEPTH_MOST levels. Less strict: dates are not checked.
 */
#ifndef PGUSHER_SETUP_CONVERT_TOML_H
#define PGUSHER_SETUP_CONVERT_TOML_H

#include "setup/convert/source.h"

/*
 * Add the text to the root of a source. `file` must live as long as the source. Returns false,
 * and adds an error, at the first mistake.
 */
bool toml_read(struct source *source, const char *file, const char *text, size_t length,
	struct problems *problems);

#endif
