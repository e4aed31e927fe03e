/* SPDX-License-Identifier: ISC */
/*
 * Parses a Bind message. Pure; admin/console/extended looks up the names. Values are only
 * counted, because commands of the console take none. Protocol: "Message Formats", Bind.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_BINDING_H
#define PGUSHER_ADMIN_CONSOLE_BINDING_H

#include "wire/reader.h"

/* All pointers are into the message. */
struct binding {
	const char *portal, *statement;
	unsigned values, formats;
	const uint8_t *format; /* of the result's columns, two bytes each */
};

/* Returns false if the message is malformed. */
bool binding_read(struct reader *reader, struct binding *out);

/*
 * The binary columns, as struct result_options has them. One format applies to all columns;
 * without formats all columns are text.
 */
uint64_t binding_binary_columns(const struct binding *binding, unsigned columns);

/* The first format that is neither text (0) nor binary (1); 0 if there is none. */
unsigned binding_unknown_format(const struct binding *binding);

#endif
