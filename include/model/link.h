/* SPDX-License-Identifier: ISC */
/*
 * What a client's and a server's connection have in common: the stream, the bytes that wait, the
 * peer, the identity in logs and SHOW.
 *
 * A link is embedded as first member in its client_link or server_link. It dies in two steps:
 * closing detaches it at once (lists, peer, deadline, socket) and leaves the memory for the end
 * of the turn, so that callers higher on the stack may look at a closed link. See session/ending.
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

struct pool;
struct registry;
struct relay_rule;

enum link_kind { LINK_CLIENT, LINK_SERVER };

struct link {
	struct stream stream;
	TAILQ_ENTRY(link) place; /* in the list that the link's state names */
	struct link *peer; /* paired with; set by session/pool/pairing only */
	struct pool *pool; /* NULL: a client still logging in */
	struct parameters *parameters; /* tracked session parameters, counted; NULL: none yet */
	const struct relay_rule *rules; /* what a message means in the link's present mode */
	uint8_t *held; /* bytes received and not yet passed on */
	uint32_t held_length, held_capacity;
	uint32_t remaining; /* of the message that is passing by count */
	enum link_kind kind : 8;
	uint8_t state; /* enum client_state or server_state */
	bool discarding; /* drop the remaining bytes of the present message instead */
	bool cut; /* it was sent half a message, and the one who sent it has been parted from it */
	uint64_t id; /* as in SHOW; counted from 1, never used twice */
	struct address remote;
	struct loop_task ending;
	usec_t connect_time; /* loop time when accepted or launched */
	usec_t request_time; /* loop time when bytes were last received */
	TAILQ_ENTRY(link) in_registry; /* all that live: see model/link_walk */
	uint64_t handle; /* for registry.process->handles; 0: nobody has asked */
};

TAILQ_HEAD(link_list, link);

/* The number in `ptr`, `link` and the log prefix: unique for the life of the process. */
static inline unsigned long long link_handle(const struct link *link)
{
	/* Shaped like a heap address, since that is what operators' tools expect to see. */
	return 0x550000000000ULL + ((unsigned long long)link->id << 4);
}

/* The id as SHOW tells it and KILL_CLIENT takes it: wrapped to the positive numbers of an int4. */
static inline uint32_t link_number(const struct link *link)
{
	return (uint32_t)((link->id - 1) % INT32_MAX) + 1;
}

static inline struct registry *link_registry(const struct link *link)
{
	return link->stream.loop->owner;
}

/*
 * Whose it is, for people: `(nodb)` until a database and a known user have met, `(nouser)` until
 * somebody has named himself.
 */
const char *link_database_name(const struct link *link);
const char *link_user_name(const struct link *link);

/* What its session is for. Of a server, what it was asked for when it logged in. */
enum startup_replication link_replication(const struct link *link);

/*
 * The link's place in the log: `C-0x550000000010: db/user@127.0.0.1:5123`. What peers chose is
 * escaped. Returns out.
 */
const char *link_prefix(const struct link *link, char *out, size_t size);

/* Log a line with the prefix, if that level is enabled. */
void link_log(const struct link *link, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with facts about the event, for formats that have them apart from the text. */
enum { LINK_FACTS_MOST = 6 };
struct link_facts {
	struct log_fact facts[LINK_FACTS_MOST];
	size_t count;
};
void link_log_facts(const struct link *link, enum log_level level,
	const struct link_facts *facts, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * For what a peer can bring about again and again: only the first few lines of that kind about
 * the same client's address, or the same pool's server, are written in a second. See log.h.
 */
void link_log_repeated(const struct link *link, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The same for lines that are alike though their formats are not, or the other way round: `kind`
 * says which. At most `at_most` of them are written in a second; 0: as many as of others.
 */
void link_log_kind(const struct link *link, enum log_level level, const char *kind, int at_most,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The kind of lines about those who speak no protocol of ours. */
#define LINK_STRANGER "stranger"

/* Give it other parameters, which are counted for it. False: there are none, for want of memory. */
bool link_take_parameters(struct link *link, struct parameters *set);

/*
 * Change one tracked value of the link's parameters. Returns false when out of memory or when the
 * set would become too large; the link keeps its parameters then.
 */
bool link_set_parameter(struct link *link, unsigned index, const char *value);

/*
 * Keep bytes until they can be passed on; they are added behind those already held. False when
 * there is no memory: the link must be closed.
 */
bool link_hold(struct link *link, const void *data, size_t length);

/* Have room for so many more held bytes. False: no memory, or too many. */
bool link_make_room(struct link *link, size_t length);

/* Drop held bytes and give their memory back. */
void link_drop_held(struct link *link);

#endif
