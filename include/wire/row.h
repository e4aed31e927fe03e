/* SPDX-License-Identifier: ISC */
/*
 * Parses RowDescription and DataRow, for the few results that are read here.
 *
 * Servers are not trusted: a message with inconsistent lengths is malformed. Values point into
 * the message. Protocol: "Message Formats".
 */
#ifndef PGUSHER_WIRE_ROW_H
#define PGUSHER_WIRE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One value as sent: text without a terminating NUL; it may contain a NUL. */
struct row_value {
	const uint8_t *data; /* NULL: SQL NULL */
	size_t length;
};

enum { ROW_MALFORMED = -1 };

/* Number of columns in the body of a RowDescription, or ROW_MALFORMED. */
int row_description_columns(const uint8_t *body, size_t length);

/*
 * Read the body of a DataRow: store its first `count` values, or as many as it has. Returns
 * how many it has, or ROW_MALFORMED.
 */
int row_read(const uint8_t *body, size_t length, struct row_value *values, int count);

#endif
