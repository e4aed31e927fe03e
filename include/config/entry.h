/* SPDX-License-Identifier: ISC */
/*
 * Shared code for entries of [databases], [users] and [peers]: a connect string with keys that
 * fill a struct, driven by a table. A new key is one row.
 *
 * An entry is first parsed into a struct with texts that point into the string, then packed
 * into one block of memory, followed by its texts. The struct's first member is
 * `const char *name`.
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
	ENTRY_HOST, /* const char *; a comma-separated list without empty items */
	ENTRY_PORT, /* uint16_t, not 0 */
	ENTRY_PORTS, /* text: as ENTRY_PORT, or several separated by commas */
	/* Numbers are at least -1, which means that the key is not set. */
	ENTRY_SIZE, /* int; -1 stays */
	ENTRY_POOL_SIZE, /* int; -1 stays; `auto`: POOL_SIZE_AUTO */
	ENTRY_LIMIT, /* int; -1 is 0 */
	ENTRY_TIME, /* usec_t; -1 is 0 */
	ENTRY_WAIT, /* usec_t; -1 stays */
	ENTRY_POOL_MODE, /* enum pool_mode */
	ENTRY_WAIT_ACTION, /* enum wait_action */
	ENTRY_SESSION_STATE, /* enum session_state */
	ENTRY_LOAD_BALANCE, /* enum load_balance */
	ENTRY_TARGET_SESSION, /* enum target_session */
	ENTRY_STANDBY_LAG, /* standby_lag */
};

struct entry_key {
	const char *name;
	enum entry_kind kind;
	size_t offset; /* of the field, in bytes */
	const char *doc; /* description for the manual page */
};

/* The keys of one section, and PgBouncer's texts for mistakes. */
struct entry_grammar {
	const struct entry_key *keys;
	size_t key_count;
	size_t size; /* of the struct, in bytes */
	const char *malformed; /* "syntax error in connection string" */
	const char *unknown; /* "unrecognized connection parameter" */
};

/* Description of the values allowed for a key. */
const char *entry_allowed(const struct entry_key *key);

/* One entry while it is parsed. */
struct entry {
	const struct entry_grammar *grammar;
	const struct ini_place *place;
	const char *name;
	enum problem_severity severity; /* of mistakes in it */
	struct problems *problems;
	char *text; /* the string, modified while parsing */
	size_t text_size;
	char *shown; /* the string as shown in problems, without passwords */
	bool wrong; /* a mistake was found */
};

/*
 * Start parsing the entry `name = text`; mistakes are reported with this severity. Returns
 * false, and adds a problem, when out of memory. entry_end() must be called in either case.
 */
bool entry_begin(struct entry *entry, const struct entry_grammar *grammar,
	const struct ini_place *place, const char *name, const char *text,
	enum problem_severity severity, struct problems *problems);

/* Report a mistake in the entry. */
void entry_refuse(struct entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Parse all keys into the struct, which already has the defaults. */
void entry_read(struct entry *entry, void *fields);

/*
 * Copy the struct and its texts into a new block, which the caller frees with free(). Returns
 * NULL after any mistake; being out of memory is reported as one.
 */
void *entry_finish(struct entry *entry, const void *fields);

/* Wipe and free the memory of entry_begin(). */
void entry_end(struct entry *entry);

/* Have all keys the same values in both structs? */
bool entry_same(const struct entry_grammar *grammar, const void *a, const void *b);

/*
 * Copy the struct and its texts into one block, which the caller frees with free(); NULL when
 * out of memory.
 */
void *entry_pack(const struct entry_grammar *grammar, const void *fields);

#endif
