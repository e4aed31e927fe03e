/* SPDX-License-Identifier: ISC */
/*
 * Cells in PostgreSQL's binary format, made of the same cells as text. Pure.
 */
#ifndef PGUSHER_ADMIN_SHOW_BINARY_H
#define PGUSHER_ADMIN_SHOW_BINARY_H

#include "admin/show/result.h"

/* Append the length and the bytes of a cell, which is text of this type as admin/show/result writes it. */
void binary_write(struct buffer *out, enum column_type type, const char *text, size_t length);

#endif
