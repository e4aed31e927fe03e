/* SPDX-License-Identifier: ISC */
/*
 * Records of tagged fields, in which one version of the program passes its state to another: a
 * kind, then any number of fields, each a tag, a length and that many bytes. A reader skips
 * tags that it does not know; a missing field has the value NULL or 0. A record is the body of
 * a CopyData message. Numbers are in network order.
 */
#ifndef PGUSHER_WIRE_TAGGED_H
#define PGUSHER_WIRE_TAGGED_H

#include "wire/reader.h"
#include "wire/writer.h"

/* The bytes of a field, which stay where they were read. */
struct tagged_span {
	const uint8_t *at; /* NULL: none */
	size_t length;
};

struct tagged_field {
	uint16_t tag;
	const uint8_t *bytes;
	size_t length;
};

/*
 * Write a record: begin, fields, end with the mark that begin returned. Out of memory sets the
 * buffer's `failed`.
 */
size_t tagged_begin(struct buffer *buffer, uint8_t kind);
void tagged_end(struct buffer *buffer, size_t mark);

void tagged_bytes(struct buffer *buffer, uint16_t tag, const void *bytes, size_t length);

/* A NULL text is not written. */
void tagged_text(struct buffer *buffer, uint16_t tag, const char *text);

/* A number 0 is not written. */
void tagged_number(struct buffer *buffer, uint16_t tag, uint64_t number);

/*
 * Get the next field of a record after its kind. Returns false at the end and for a
 * broken record; reader_done() distinguishes them.
 */
bool tagged_next(struct reader *reader, struct tagged_field *out);

/*
 * Value of a field: a number (0 if the field is not one), a text with its NUL (NULL if the
 * field is not one).
 */
uint64_t tagged_to_number(const struct tagged_field *field);
const char *tagged_to_text(const struct tagged_field *field);

#endif
