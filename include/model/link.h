/* SPDX-License-Identifier: ISC */
/*
 * The common part of a client connection and a server connection: stream, held bytes, peer, and
 * identity in logs and SHOW.
 *
 * A link is the first member of its client_link or server_link. It is closed in two steps:
 * closing removes it at once from its lists, peer, deadline and socket; its memory is freed at
 * the end of the turn, so that callers up the stack may still read a closed link. See
 * session/link/close.
 */
#ifndef PGUSHER_MODEL_LINK_H
#define PGUSHER_MODEL_LINK_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/stream.h"
#include "wire/parameters.h"
#include "wire/startup.h"

struct buffer;
struct pool;
struct registry;
struct relay_rule;

enum link_kind { LINK_CLIENT, LINK_SERVER };

struct link {
	struct stream stream;
	TAILQ_ENTRY(link) place; /* in the list of the link's state */
	/*
	 * The paired link or NULL; set by session/relay/pair and session/takeover/adoption.
	 */
	struct link *peer;
	struct pool *pool; /* NULL: a client still logging in */
	struct parameters *parameters; /* tracked parameters, a reference; NULL: none yet */
	const struct relay_rule
		*rules; /* how to handle each message type in the current mode */
	uint8_t *held; /* bytes received and not yet passed on: see model/held */
	uint32_t held_length, held_capacity;
	uint32_t remaining; /* bytes of the current message that are still to be relayed */
	enum link_kind kind : 8;
	uint8_t state; /* enum client_state or server_state */
	bool discarding; /* drop the remaining bytes of the current message instead */
	bool cut; /* it got only half of a message, and its sender is no longer its peer */
	uint64_t id; /* as in SHOW; counted from 1, never reused */
	struct address remote;
	struct loop_task ending; /* frees the link at the end of the turn */
	usec_t connect_time; /* loop time when accepted or launched */
	usec_t request_time; /* loop time when bytes were last received */
	TAILQ_ENTRY(link)
	in_registry; /* in registry.links, all open links: see model/link_walk */
	uint64_t handle; /* in process.handles; 0: none yet */
};

TAILQ_HEAD(link_list, link);

/*
 * Returns the number in `ptr`, `link` and the log prefix: unique as long as the process runs.
 */
static inline unsigned long long link_handle(const struct link *link)
{
	/* Looks like a heap address, since monitoring tools expect one. */
	return 0x550000000000ULL + ((unsigned long long)link->id << 4);
}

/* Returns the id as in SHOW and KILL_CLIENT: wrapped to the positive numbers of an int4. */
static inline uint32_t link_number(const struct link *link)
{
	return (uint32_t)((link->id - 1) % INT32_MAX) + 1;
}

static inline struct registry *link_registry(const struct link *link)
{
	return link->stream.loop->owner;
}

/*
 * Return the names for logs and SHOW: `(nodb)` until both the database and the user of a client
 * are known, `(nouser)` until the user is known, and both for links of a peer process. The
 * names belong to the link's database and user.
 */
const char *link_database_name(const struct link *link);
const char *link_user_name(const struct link *link);

/*
 * Returns the kind of replication that the client, or the login to the server, has asked for.
 */
enum startup_replication link_replication(const struct link *link);

/*
 * Write the prefix of log lines: `C-0x550000000010: db/user@127.0.0.1:5123`, with names
 * escaped. Returns `out`.
 */
const char *link_prefix(const struct link *link, char *out, size_t size);

/* Log a line with the prefix, if the level is enabled. The text is escaped. */
void link_log(const struct link *link, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * As link_log(), with facts about the event for log formats that separate them from the text.
 */
enum { LINK_FACTS_MOST = 18 };
struct link_facts {
	struct log_fact facts[LINK_FACTS_MOST];
	size_t count;
	const char
		*details; /* behind the text, in formats without facts; escaped; NULL: none */
};
void link_log_facts(const struct link *link, enum log_level level,
	const struct link_facts *facts, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * As link_log(), for events that a client or server can cause repeatedly: only the first few
 * lines with this format about one client address, or one server of a pool, are written in a
 * second. See log.h.
 */
void link_log_repeated(const struct link *link, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * As link_log_repeated(), but lines are alike if they have the same `kind`, not the same
 * format. At most `at_most` of them are written in a second; 0: the default number.
 */
void link_log_kind(const struct link *link, enum log_level level, const char *kind, int at_most,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The kind of lines about connections that do not use the protocol of PostgreSQL. */
#define LINK_STRANGER "stranger"

/*
 * Replace the link's parameters, taking over the caller's reference. Returns false, unchanged,
 * when `set` is NULL: the caller was out of memory.
 */
bool link_take_parameters(struct link *link, struct parameters *set);

/*
 * Change one tracked value of the link's parameters. Returns false when out of memory or when
 * the set would become too large; the link keeps its parameters then.
 */
bool link_set_parameter(struct link *link, unsigned index, const char *value);

/*
 * Send the message and free it; a secret buffer is wiped. Returns false when the message has
 * failed (out of memory) or the stream is broken; the caller then closes the link.
 */
bool link_send(struct link *link, struct buffer *message);

/*
 * Append bytes to the held ones, until they can be passed on. Returns false when out of memory
 * or when there are too many: the link must be closed then.
 */
bool link_hold(struct link *link, const void *data, size_t length);

/* Have room for `length` more held bytes. Returns false when out of memory, or for too many. */
bool link_make_room(struct link *link, size_t length);

/* Drop the held bytes and free their memory. */
void link_drop_held(struct link *link);

#endif
