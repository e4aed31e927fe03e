/* SPDX-License-Identifier: ISC */
/*
 * Converts cells from text to PostgreSQL's binary format. Pure.
 */
#ifndef PGUSHER_ADMIN_SHOW_BINARY_H
#define PGUSHER_ADMIN_SHOW_BINARY_H

#include "admin/show/result.h"

/*
 * Append the length and the binary value of a cell, given as admin/show/result renders the
 * type.
 */
void binary_write(struct buffer *out, enum column_type type, const char *text, size_t length);

#endif
