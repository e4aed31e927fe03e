/* SPDX-License-Identifier: ISC */
/*
 * A connection written down, so that another process can go on with it: all that its link knows
 * but its descriptor, which travels beside.
 *
 * What is read comes from another process, and may be another version's: nothing in a record is
 * believed before session/takeover/adoption has looked at it.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_LINK_RECORD_H
#define PGUSHER_SESSION_TAKEOVER_LINK_RECORD_H

#include "model/registry.h"
#include "session/takeover/statement_record.h"
#include "wire/tagged.h"

enum link_record_flag {
	LINK_RECORD_DISCARDING = 1 << 0,
	LINK_RECORD_CUT = 1 << 1,
	LINK_RECORD_PAUSED = 1 << 2, /* its reading */
	LINK_RECORD_NOTIFIED = 1 << 3,
	LINK_RECORD_RING_FULL = 1 << 4,
	LINK_RECORD_COPYING_IN = 1 << 5,
	LINK_RECORD_REQUEST_FAILED = 1 << 6,
	LINK_RECORD_SKIPPING = 1 << 7,
	LINK_RECORD_SETTING = 1 << 8,
	LINK_RECORD_FRESH = 1 << 9,
	LINK_RECORD_TOUCHED = 1 << 10,
	LINK_RECORD_CLOSE_NEEDED = 1 << 11,
	LINK_RECORD_DIRTY = 1 << 12,
	/* 1 << 13 is not to be used: other versions write and read it. */
	LINK_RECORD_STREAMING = 1 << 14,
	LINK_RECORD_UNNAMED_PASSING = 1 << 15,
	LINK_RECORD_FORGETTING = 1 << 16,
	LINK_RECORD_GATHERED = 1 << 17,
	LINK_RECORD_RESET = 1 << 18, /* of a server: see session/rules/restore */
	LINK_RECORD_RESTORING = 1 << 19,
};

/* A run of bytes, lent. */
struct link_record_bytes {
	const uint8_t *at; /* NULL: none */
	size_t length;
};

/* Ages are in microseconds, and 0 where there is none. Texts and bytes are lent. */
struct link_record {
	enum link_kind kind;
	uint64_t handle,
		peer; /* of this link and its peer, among those written down together */
	uint64_t id; /* 0: it gets a new one */
	const char *state; /* its name */
	const char *database, *user; /* of a server: as whom it has logged in */
	const char *pool_user; /* of a client: the user of its pool */
	struct address remote;
	uint64_t age, quiet; /* since it connected, and since it was last heard of */
	uint64_t query_age, transaction_age, wait_age;
	uint64_t remaining, flags, protocol;
	enum startup_replication replication;
	const char *options; /* of a client of replication; NULL: none */
	struct link_record_bytes key, held, backlog;
	struct link_record_bytes requests; /* pairs of type and action */
	struct link_record_bytes where;
	uint64_t host, status;
	uint64_t close_cause; /* of a server to be closed when it is free */
	struct link_record_bytes target; /* of a server's database, as it was configured */
	struct link_record_bytes parameters; /* names and values, each with its NUL */
	struct link_record_bytes followed; /* name, is there a value, value */
	struct link_record_bytes asked,
		asked_followed; /* of a client, likewise: at its start */
	struct statement_record statements;
};

static inline bool link_record_is_set(
	const struct link_record *record, enum link_record_flag flag)
{
	return record->flags & flag;
}

/* Write the link down, as one message. */
void link_record_write(struct buffer *out, uint8_t kind, const struct link *link);

/* Read a record whose kind has been read. False: it is broken. */
bool link_record_read(struct reader *reader, enum link_kind kind, struct link_record *out);

/* Where the servers of a database are, in bytes that are the same only if it is the same. */
void link_record_target(struct buffer *out, const struct database_config *config);

/* Tracked parameters, as fields that other records have too. */
void link_record_write_parameters(struct buffer *out, uint16_t tag,
	const struct parameter_table *table, const struct parameters *set);

/* The set with these names and values, as far as they are tracked; NULL: no memory. Counted. */
struct parameters *link_record_parameters(
	struct parameter_table *table, const struct link_record_bytes *bytes);

/* The same with what the link, of this kind, follows besides; NULL: also if that is too much. */
struct parameters *link_record_set(struct parameter_table *table, enum link_kind kind,
	const struct link_record_bytes *tracked, const struct link_record_bytes *followed);

#endif
