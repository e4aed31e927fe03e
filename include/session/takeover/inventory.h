/* SPDX-License-Identifier: ISC */
/*
 * Everything that a process has, written down record by record for another one that goes on with
 * it: settings of the moment, databases, pools, users' keys, connections. session/takeover/adoption reads
 * it.
 *
 * Only what can go is written: connections that are encrypted, and those paired with one, stay
 * with the process that has their keys.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_INVENTORY_H
#define PGUSHER_SESSION_TAKEOVER_INVENTORY_H

#include "model/registry.h"

/* The version of all of it. What only adds tags, kinds and states does not change it. */
enum { INVENTORY_VERSION = 1 };

enum inventory_kind {
	INVENTORY_PROCESS = 'G',
	INVENTORY_DATABASE = 'B',
	INVENTORY_USER = 'U',
	INVENTORY_POOL = 'P',
	INVENTORY_STATEMENT = 'T', /* before those who have it */
	INVENTORY_LISTENER = 'L', /* with a descriptor, as the next two */
	INVENTORY_CLIENT = 'C',
	INVENTORY_SERVER = 'S',
};

/* Numbers are for ever, as those of session/takeover/link_record. */
enum inventory_tag {
	INVENTORY_VERSION_TEXT = 1,
	INVENTORY_LAST_ID = 2,
	INVENTORY_PAUSED = 3,
	INVENTORY_NAME = 4,
	INVENTORY_DISABLED = 5,
	INVENTORY_USER_NAME = 6,
	INVENTORY_CLIENT_KEY = 7,
	INVENTORY_SECRET = 8,
	INVENTORY_IS_PASSWORD = 9,
	INVENTORY_WELCOME = 10,
	INVENTORY_WELCOME_HEAD = 11,
	INVENTORY_STATS = 12, /* three times the totals, as numbers in their order */
	INVENTORY_PATH = 13,
	INVENTORY_STATS_NEWER_AGE = 14,
	INVENTORY_STATS_OLDER_AGE = 15,
	INVENTORY_LIFETIME_CLOSE_AGE = 16,
	INVENTORY_LAST_STATEMENT_ID = 17,
	INVENTORY_STATEMENT_ID = 18,
	INVENTORY_CONTENT = 19,
	INVENTORY_GENERATION = 20,
	INVENTORY_PARSES = 21,
	INVENTORY_BINDS = 22,
	INVENTORY_COUNTS =
		23, /* of process, database, pool: see session/takeover/count_record */
};

/* Takes each record, a whole message, and its descriptor (-1: none). False ends it all. */
typedef bool inventory_function(void *context, const struct buffer *record, int fd);

/* Write everything down. False: no memory, or somebody said so. */
bool inventory_write(const struct registry *registry, inventory_function *take, void *context);

/* Does the link go along? Every other stays. */
bool inventory_has(const struct link *link);

#endif
