/* SPDX-License-Identifier: ISC */
/*
 * Names that are looked for in the texts of statements: of functions that may change the session,
 * and of tables, types and operators that call them. Each has the topics that it may change.
 *
 * A text may mention a name without using it. It does not use one that it does not mention, unless
 * by U&"..." (wire/suspicion).
 */
#ifndef PGUSHER_WIRE_WATCHED_NAMES_H
#define PGUSHER_WIRE_WATCHED_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "wire/session_topics.h"

enum {
	WATCHED_NAMES_MAX = 4096, /* names */
	WATCHED_NAME_MAX = 63, /* bytes of a name, as PostgreSQL keeps it (NAMEDATALEN) */
};

struct watched_name {
	uint16_t next; /* of the same bucket: index + 1; 0: none */
	session_topics topics;
	uint8_t length;
	char text[WATCHED_NAME_MAX]; /* in lower case (ASCII), without a NUL */
};

/* Empty when all bytes are 0. */
struct watched_names {
	struct buffer words; /* array of struct watched_name: each is a whole word of a text */
	struct buffer parts; /* the same: each may be anywhere in a text */
	uint16_t *buckets; /* owned: index in words + 1; 0: none. Its size is a power of two */
	unsigned bucket_count;
};

/*
 * Add a name. anywhere: it may be a part of a longer word, or of no word at all; so may every name
 * that has other characters than words without quotes have. Returns false if there are too many
 * names, this one is empty or too long, or memory is short.
 */
bool watched_names_add(struct watched_names *names, const char *name, size_t length,
	session_topics topics, bool anywhere);

/* Returns the number of names. */
unsigned watched_names_count(const struct watched_names *names);

/*
 * Returns the topics of all names in this text, which ends at `length` bytes or at its first NUL. Words
 * are compared without case, and as far as PostgreSQL reads them (63 bytes).
 */
session_topics watched_names_find(
	const struct watched_names *names, const char *text, size_t length);

/* Remove all names, and free their memory. */
void watched_names_free(struct watched_names *names);

#endif
