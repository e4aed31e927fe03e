/* SPDX-License-Identifier: ISC */
/*
 * The record of a connection for another process that takes it over: the state of its link. The
 * descriptor is passed beside the record.
 *
 * A record that is read comes from another process, perhaps of another version: nothing in it
 * may be used before takeover/adoption has checked it.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_LINK_RECORD_H
#define PGUSHER_SESSION_TAKEOVER_LINK_RECORD_H

#include "model/registry.h"
#include "session/takeover/statement_record.h"
#include "wire/tagged.h"

enum link_record_flag {
	LINK_RECORD_DISCARDING = 1 << 0,
	LINK_RECORD_CUT = 1 << 1,
	LINK_RECORD_PAUSED = 1 << 2, /* it is not read from */
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
	LINK_RECORD_RESET = 1 << 18, /* of a server: see rules/restore */
	LINK_RECORD_RESTORING = 1 << 19,
	LINK_RECORD_AWAITS_BIND = 1 << 20,
	LINK_RECORD_ALTERED = 1 << 21,
	LINK_RECORD_LISTENING = 1 << 24, /* its LISTEN, which it holds, waits for a server */
};

/* Bytes that belong to the message that was read. */
/*
 * Ages are in microseconds, 0: there is none. Texts and bytes belong to the message that was
 * read.
 */
struct link_record {
	enum link_kind kind;
	uint64_t handle, peer; /* identify this link and its peer within one inventory */
	uint64_t id; /* 0: it gets a new one */
	const char *state; /* its name */
	const char *database, *user; /* of a server: the user of its login */
	const char *pool_role; /* that its clients have asked for; NULL: none */
	const char *pool_user; /* of a client: the user of its pool */
	struct address remote;
	uint64_t age, quiet; /* time since it connected, and since its last request */
	uint64_t query_age, transaction_age, wait_age;
	uint64_t remaining, flags, protocol;
	enum startup_replication replication;
	const char *options; /* of a replication client; NULL: none */
	struct tagged_span key, held, backlog;
	struct tagged_span requests; /* pairs of type and action */
	struct tagged_span where;
	uint64_t host, status;
	uint64_t close_cause; /* of a server to be closed when it is free */
	struct tagged_span target; /* of a server: see link_record_target() */
	struct tagged_span parameters; /* names and values, each with its NUL */
	struct tagged_span followed; /* name, 1 or 0: with a value or not, value */
	/* Of a client: the parameters of its startup message, in the same form. */
	struct tagged_span asked, asked_followed;
	struct tagged_span channels; /* on which it listens: names, each with its NUL */
	struct tagged_span messages; /* of a client: notifications that it has not got */
	struct tagged_span custom_names; /* of a client, each with its NUL */
	uint64_t suspected, pins; /* of a server: session_topics */
	uint64_t pinned_age;
	uint64_t knowledge; /* enum session_knowledge of the server's pool */
	uint64_t proxy; /* of a client: enum client_proxy */
	const char *pinned_by; /* NULL: unknown */
	struct statement_record statements;
};

static inline bool link_record_is_set(
	const struct link_record *record, enum link_record_flag flag)
{
	return record->flags & flag;
}

/* Append the record of the link, as one message of this enum inventory_kind. */
void link_record_write(struct buffer *out, uint8_t kind, const struct link *link);

/*
 * Read a record, behind its kind. The result points into the reader's bytes. Returns false
 * when the record is malformed.
 */
bool link_record_read(struct reader *reader, enum link_kind kind, struct link_record *out);

/*
 * Append host, database name and port: equal bytes mean that servers of the database may be
 * kept.
 */
void link_record_target(struct buffer *out, const struct database_config *config);

#endif
