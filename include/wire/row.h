/* SPDX-License-Identifier: ISC */
/*
 * The few rows that we read ourselves: what RowDescription and DataRow say.
 *
 * Servers are peers too: a message whose parts do not add up is malformed. Values point into the
 * message. Protocol: "Message Formats".
 */
#ifndef PGUSHER_WIRE_ROW_H
#define PGUSHER_WIRE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One value as it travels: text without a NUL at its end, but maybe one inside. */
struct row_value {
	const uint8_t *data; /* NULL: the value is NULL */
	size_t length;
};

enum { ROW_MALFORMED = -1 };

/* The number of columns that the body of a RowDescription tells of; or ROW_MALFORMED. */
int row_description_columns(const uint8_t *body, size_t length);

/*
 * The values of a DataRow's body: the first `count` of them are set, as far as there are so many.
 * Returns how many the row has; or ROW_MALFORMED.
 */
int row_read(const uint8_t *body, size_t length, struct row_value *values, int count);

#endif
