/* SPDX-License-Identifier: ISC */
/*
 * The functions of a database that may change the session although a plain SELECT or INSERT calls
 * them, as its servers' catalog has them: session/state/functions reads it. While they are not
 * known, or may have changed since, every text is suspected.
 */
#ifndef PGUSHER_MODEL_STATE_SESSION_FUNCTIONS_H
#define PGUSHER_MODEL_STATE_SESSION_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "wire/watched_names.h"

struct database;
struct server_link;

/* How their list came to be, and whether it can be relied upon. */
struct session_functions {
	struct watched_names names; /* of the functions, and of what calls them */
	struct buffer settings; /* the custom settings that they set, each with a NUL */
	char print
		[256]; /* what the catalog had to show for it: unchanged, it is the same list */
	uint64_t version; /* of the list, among all databases; 0: none yet */
	struct server_link *reader; /* reads the catalog now; NULL: none does */
	usec_t read_at; /* when it was read last, or that was begun; 0: never */
	usec_t reader_used_at; /* when the reader was last used by a client */
	unsigned changing; /* servers with a transaction that may have changed functions */
	unsigned doubts; /* how often they may have changed, also as of the last read */
	unsigned doubts_then;
	bool known; /* it was read; else nothing is known */
	bool doubted; /* functions may have changed since it was read */
	bool due; /* the same, but too improbable for a doubt: it is to be read soon */
	bool refused; /* the reader has answered by an error, which is its answer */
	bool interrupted; /* or by one that another server may not have */
	bool everything; /* there are too many of them, or some that have no name */
};

/* Returns whether texts are to be looked at. */
static inline bool session_functions_are_watched(const struct session_functions *functions)
{
	return !functions->known || functions->doubted || functions->everything ||
		watched_names_count(&functions->names) > 0;
}

/* Returns the topics that a statement with this text may change by such functions. */
session_topics session_functions_in(
	const struct session_functions *functions, const char *text, size_t length);

/*
 * Add a custom setting, in lower case, perhaps with double quotes. Returns false if there are too many, this
 * one is too long, or memory is short.
 */
bool session_functions_add_setting(
	struct session_functions *functions, const char *name, size_t length);

/* Remove what was read: names and settings. The rest remains. */
void session_functions_clear(struct session_functions *functions);

/*
 * Set by which rules messages of the database's clients are judged, from their next server on, after
 * the list or its standing has changed. The list gets a new version.
 */
void session_functions_apply(struct database *database);

/* Functions of the database may have changed: every text is suspected until it is read again. */
void session_functions_doubt(struct database *database);

/* Forget everything: the database is another one now. */
void session_functions_forget(struct database *database);

#endif
