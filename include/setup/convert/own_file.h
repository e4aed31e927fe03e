/* SPDX-License-Identifier: ISC */
/*
 * pgbouncer.ini, which can be used as it is: what behaves otherwise here is listed, and lines that
 * are not possible here become comments. Everything else of the file stays, comments too.
 */
#ifndef PGUSHER_SETUP_CONVERT_OWN_FILE_H
#define PGUSHER_SETUP_CONVERT_OWN_FILE_H

#include "base/buffer.h"
#include "config/problems.h"

/*
 * Append the file for pgusher to `out`, which should be a secret buffer; with `masked` passwords
 * are ********. Returns false, with
 * errors among the findings, if the text cannot be read, or has a mistake that no comment cures.
 */
bool own_file_convert(const char *file, const char *text, size_t length, bool masked,
	struct buffer *out, struct problems *findings);

/*
 * Print the settings of a configuration that differ from their defaults, to stdout. The text must
 * be a valid configuration; returns false if it is not.
 */
bool own_file_print_differences(const char *text, size_t length);

#endif
