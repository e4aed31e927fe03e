/* SPDX-License-Identifier: ISC */
/*
 * Records of tagged fields, in which one version of the program tells another what it knows:
 * a kind, then any number of fields, each a tag, a length and so many bytes. A reader skips tags
 * that it does not know, and what is not told has the value of nothing. A record travels as the
 * body of a CopyData message. Numbers are in network order.
 */
#ifndef PGUSHER_WIRE_TAGGED_H
#define PGUSHER_WIRE_TAGGED_H

#include "wire/reader.h"
#include "wire/writer.h"

struct tagged_field {
	uint16_t tag;
	const uint8_t *bytes;
	size_t length;
};

/* A record: begin, fields, end with the mark that the beginning gave. */
size_t tagged_begin(struct buffer *buffer, uint8_t kind);
void tagged_end(struct buffer *buffer, size_t mark);

void tagged_bytes(struct buffer *buffer, uint16_t tag, const void *bytes, size_t length);

/* NULL is not told. */
void tagged_text(struct buffer *buffer, uint16_t tag, const char *text);

/* 0 is not told. */
void tagged_number(struct buffer *buffer, uint16_t tag, uint64_t number);

/* The next field of a record whose kind has been read. False: there is none; see reader_done(). */
bool tagged_next(struct reader *reader, struct tagged_field *out);

/* What a field holds: a number (0: it is none), a text with its NUL (NULL: it is none). */
uint64_t tagged_to_number(const struct tagged_field *field);
const char *tagged_to_text(const struct tagged_field *field);

#endif
