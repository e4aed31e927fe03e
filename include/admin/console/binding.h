/* SPDX-License-Identifier: ISC */
/*
 * What a Bind message asks for. Pure; what it names is looked up by admin/console/extended. Values are
 * counted only: the console takes none. Protocol: "Message Formats", Bind.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_BINDING_H
#define PGUSHER_ADMIN_CONSOLE_BINDING_H

#include "wire/reader.h"

struct binding {
	const char *portal, *statement; /* in the message */
	unsigned values, formats;
	const uint8_t *format; /* of results: two bytes each */
};

/* False: the message is malformed. */
bool binding_read(struct reader *reader, struct binding *out);

/* The bits of struct result_wish. One format is for all columns, none is text for all. */
uint64_t binding_binary_columns(const struct binding *binding, unsigned columns);

/* The first format that is neither text (0) nor binary (1); 0: there is none. */
unsigned binding_unknown_format(const struct binding *binding);

#endif
