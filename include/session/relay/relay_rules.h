/* SPDX-License-Identifier: ISC */
/*
 * What each message means to us, by direction and by the mode its link is in. A link points at
 * one of these tables (link.rules), indexed by the message's type byte. Those for clients stand
 * in client_rules.c, canceled.c and setting.c, for a server that a client has, or had, in
 * server_rules.c, for one that answers us or nobody in own_rules.c and setting_rules.c.
 */
#ifndef PGUSHER_SESSION_RELAY_RELAY_RULES_H
#define PGUSHER_SESSION_RELAY_RELAY_RULES_H

#include <string.h>

#include "session/relay/relay.h"

enum { RELAY_TYPES = 256 };

/* From a client that has no server: the first message that needs one asks for it. */
extern const struct relay_rule relay_idle_client[RELAY_TYPES];

/* From a client that is paired in session mode. */
extern const struct relay_rule relay_paired_client[RELAY_TYPES];

/* The same in the other modes, where its prepared statements follow it. */
extern const struct relay_rule relay_tracked_client[RELAY_TYPES];

/*
 * From such a client behind a Query that makes its server forget all statements: what is there for
 * the next message is known when everything has been answered.
 */
extern const struct relay_rule relay_forgetting_client[RELAY_TYPES];

/* From a client whose server has to be told first what its parameters are: see session/parameters/parameter_sync. */
extern const struct relay_rule relay_differing_client[RELAY_TYPES];

/*
 * From an idle client whose waiting query was cancelled: the first message of that query, and those
 * that are skipped after it up to a Sync.
 */
extern const struct relay_rule relay_canceled_client[RELAY_TYPES];
extern const struct relay_rule relay_skipping_client[RELAY_TYPES];

/* From a server that is paired. */
extern const struct relay_rule relay_paired_server[RELAY_TYPES];

/*
 * The same after its client has said RESET, up to the ReadyForQuery that ends all; and while it
 * sets again what the client had asked for at its start: see session/rules/restore.
 */
extern const struct relay_rule relay_reset_server[RELAY_TYPES];
extern const struct relay_rule relay_restoring_server[RELAY_TYPES];

/* From a server whose client has gone in the middle: judged as if it were paired, told to nobody. */
extern const struct relay_rule relay_draining_server[RELAY_TYPES];

/* From a server that runs our SETs, behind which its client's messages may have gone. */
extern const struct relay_rule relay_syncing_server[RELAY_TYPES];

/* From a server that runs a query of our own: connect_query, reset query, check query. */
extern const struct relay_rule relay_own_server[RELAY_TYPES];

/* From a server that looks up a user for us. */
extern const struct relay_rule relay_lookup_server[RELAY_TYPES];

/* From a server in the pool that was asked nothing. */
extern const struct relay_rule relay_unused_server[RELAY_TYPES];

/* ---- For those who write the tables ----------------------------------------------------- */

/* What all types mean; rows that follow it say what some of them mean instead. */
#define RELAY_EVERY(judge) [0 ... RELAY_TYPES - 1] = {judge, .at_once = true}

/* It means nothing to us. */
#define RELAY_PASSES                                                                           \
	{                                                                                      \
		NULL                                                                           \
	}

/* Is it a status that ReadyForQuery can have? */
static inline bool relay_is_status(uint8_t status)
{
	return status == 'I' || status == 'T' || status == 'E';
}

/* Does the CommandComplete have this tag? Those that are that short come whole. */
static inline bool relay_has_tag(const struct relay_run *run, const char *tag)
{
	const size_t size = strlen(tag) + 1;

	return run->frame.total == FRAME_HEADER_SIZE + size && run->whole &&
		memcmp(run->at + FRAME_HEADER_SIZE, tag, size) == 0;
}

/* Does it say that the server has just forgotten all its statements? */
static inline bool relay_forgets_all(const struct relay_run *run)
{
	return relay_has_tag(run, "DISCARD ALL") || relay_has_tag(run, "DEALLOCATE ALL");
}

/* What answers a query of our own goes to nobody. */
enum verdict relay_drop_own(struct relay_run *run);

/* A ParameterStatus, which must be whole, among that. */
enum verdict relay_judge_own_parameter(struct relay_run *run);

/* That was the end of a query of our own: what comes behind it was not asked for. */
enum verdict relay_end_own(struct relay_run *run, char status);

/* The status that a whole ReadyForQuery tells; 0: none. */
char relay_ready_status(const struct relay_run *run);

/*
 * Remember a whole ParameterStatus for the server, and for its client. A verdict: drop it if the
 * client, which there need not be, is told later or not at all; stop if the message is broken or
 * there is no memory.
 */
enum verdict relay_remember_parameter(struct relay_run *run);

#endif
