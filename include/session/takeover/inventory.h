/* SPDX-License-Identifier: ISC */
/*
 * Writes the whole state of a process as records, for another process that takes over: state of
 * the process, databases, pools, users' keys, connections. takeover/adoption reads them.
 *
 * Encrypted connections, and connections paired with an encrypted one, are left out: they stay
 * with the process that has their TLS keys.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_INVENTORY_H
#define PGUSHER_SESSION_TAKEOVER_INVENTORY_H

#include "model/registry.h"

/* The version of the format. New tags, kinds and states do not change it. */
enum { INVENTORY_VERSION = 1 };

enum inventory_kind {
	INVENTORY_PROCESS = 'G',
	INVENTORY_DATABASE = 'B',
	INVENTORY_USER = 'U',
	INVENTORY_POOL = 'P',
	INVENTORY_STATEMENT = 'T', /* before the links that use it */
	INVENTORY_LISTENER = 'L', /* with a descriptor, as the next two */
	INVENTORY_CLIENT = 'C',
	INVENTORY_SERVER = 'S',
};

/* Never change or reuse a number: other versions read them. */
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
	INVENTORY_COUNTS = 23, /* of process, database, pool: see takeover/count_record */
	INVENTORY_PEER_ID = 25, /* drawn, not configured */
	INVENTORY_ROLE = 26, /* of a pool: the word of the role that its clients asked for */
	INVENTORY_WATCHDOG = 28, /* of the service manager; see process.watchdog */
	INVENTORY_MANAGERS = 27, /* of a listener: enum inventory_managers */
	INVENTORY_AUTO_SIZE = 29, /* of a pool: its size, if that is computed */
	INVENTORY_PROCESS_ID = 30, /* as getpid() returns it */
	INVENTORY_CLIENTS = 31, /* all that are logged in, whether they are written or not */
	INVENTORY_CLIENT_LOGINS = 24, /* three numbers, as the totals of INVENTORY_STATS */
};

/* A service manager holds a listener too, and keeps its file. */
enum inventory_managers {
	INVENTORY_MANAGERS_CLIENTS = 1,
	INVENTORY_MANAGERS_METRICS = 2, /* for HTTP, not for clients */
};

/*
 * Receives each record, which is a whole message, and its descriptor (-1: none), which stays
 * with the registry. The record is valid during the call. Returns false to stop the writing.
 */
typedef bool inventory_function(void *context, const struct buffer *record, int fd);

/*
 * Write all records. Returns false when out of memory, or when the function has returned false.
 */
bool inventory_write(const struct registry *registry, inventory_function *take, void *context);

/* Write the record of a socket for metrics that a service manager has passed. */
void inventory_metrics(struct buffer *out);

/*
 * The value of INVENTORY_MANAGERS in the body of a listener's record, which has at least its kind;
 * 0: there is none.
 */
unsigned inventory_managers_of(const void *body, size_t length);

/* Is the link written, and so taken over? All other links stay with this process. */
bool inventory_includes(const struct link *link);

#endif
