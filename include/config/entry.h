/* SPDX-License-Identifier: ISC */
/*
 * What the entries of [databases], [users] and [peers] have in common: a connect string whose
 * keys fill a struct, by a table. A new key is one row.
 *
 * An entry is first read into a struct whose texts point into the string, then packed into one
 * block of memory with its texts behind it. Its first member is `const char *name`.
 */
#ifndef PGUSHER_CONFIG_ENTRY_H
#define PGUSHER_CONFIG_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/ini.h"

/* The types of values. */
enum entry_kind {
	ENTRY_TEXT, /* const char * */
	ENTRY_HOST, /* const char *; a list without empty items */
	ENTRY_PORT, /* uint16_t, not 0 */
	ENTRY_SIZE, /* int; negative ones are -1 */
	ENTRY_LIMIT, /* int; negative ones are 0 */
	ENTRY_TIME, /* usec_t; negative ones are 0 */
	ENTRY_WAIT, /* usec_t; negative ones are -1 */
	ENTRY_POOL_MODE, /* enum pool_mode */
	ENTRY_LOAD_BALANCE, /* enum load_balance */
};

struct entry_key {
	const char *name;
	enum entry_kind kind;
	size_t offset; /* of the field */
	const char *doc; /* sentences for the reference page */
};

/* The keys of one section, and PgBouncer's words for what does not fit. */
struct entry_grammar {
	const struct entry_key *keys;
	size_t key_count;
	size_t size; /* of the struct */
	const char *malformed; /* "syntax error in connection string" */
	const char *unknown; /* "unrecognized connection parameter" */
};

/* What may be written as the key's value, for people. */
const char *entry_allowed(const struct entry_key *key);

/* One entry while it is read. */
struct entry {
	const struct entry_grammar *grammar;
	const struct ini_place *place;
	const char *name;
	enum problem_severity severity; /* of its mistakes */
	struct problems *problems;
	char *text; /* cut into pieces */
	size_t text_size;
	char *shown; /* the text for problems, passwords left out */
	bool wrong; /* there was a mistake */
};

/*
 * Start reading the entry `name = text`; mistakes get this severity. False, with a problem, when
 * there is no memory. entry_end() must follow in either case.
 */
bool entry_begin(struct entry *entry, const struct entry_grammar *grammar,
	const struct ini_place *place, const char *name, const char *text,
	enum problem_severity severity, struct problems *problems);

/* Say what is wrong with the entry. */
void entry_refuse(struct entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Read all keys into the struct, where the defaults are already. */
void entry_read(struct entry *entry, void *fields);

/*
 * The struct in memory of its own, with texts of its own, for free(). NULL if there was any
 * mistake, or without memory, which then is one.
 */
void *entry_finish(struct entry *entry, const void *fields);

/* Wipe and free what entry_begin() made. */
void entry_end(struct entry *entry);

/* A second struct with texts of its own, in one block for free(); NULL without memory. */
void *entry_pack(const struct entry_grammar *grammar, const void *fields);

#endif
