/* SPDX-License-Identifier: ISC */
/*
 * The tables of rules for messages: one for each direction and mode of a link. A link points at
 * one of them (link.rules), indexed by the message's type byte.
 *
 * The tables for clients are in rules/client_rules.c, serving/unsent_query.c and
 * parameters/parameter_sync.c; those for a server that is or was paired in rules/server_rules.c
 * and rules/restore.c; those for the answers to our own queries in rules/own_rules.c and
 * rules/parameter_sync_rules.c.
 */
#ifndef PGUSHER_SESSION_RELAY_RELAY_RULES_H
#define PGUSHER_SESSION_RELAY_RELAY_RULES_H

#include <string.h>

#include "session/relay/relay.h"

enum { RELAY_TYPES = 256 };

/* From a client without a server: the first message that needs one makes the client wait. */
extern const struct relay_rule relay_idle_client[RELAY_TYPES];

/* From a client that is paired in session mode. */
extern const struct relay_rule relay_paired_client[RELAY_TYPES];

/* From a client that is paired in another mode: its prepared statements are tracked. */
extern const struct relay_rule relay_tracked_client[RELAY_TYPES];

/* From such a client whose database has functions that may change the session. */
extern const struct relay_rule relay_watched_client[RELAY_TYPES];

/*
 * From such a client after a Query that deallocates all statements of its server: the next
 * message waits until all requests are answered, since the server's statements are unknown
 * until then.
 */
extern const struct relay_rule relay_forgetting_client[RELAY_TYPES];

/* From a client before our SETs were sent to its server: see parameters/parameter_sync. */
extern const struct relay_rule relay_differing_client[RELAY_TYPES];

/*
 * From an idle client with a query that ends before a server has received any of it: the first
 * message of that query, and the messages after it that are skipped up to a Sync.
 */
extern const struct relay_rule relay_ending_client[RELAY_TYPES];
extern const struct relay_rule relay_skipping_client[RELAY_TYPES];

/* From a server that is paired. */
extern const struct relay_rule relay_paired_server[RELAY_TYPES];

/*
 * From a paired server after its client's RESET, up to the ReadyForQuery of the last request in
 * flight; and while it sets the client's startup parameters again: see rules/restore.
 */
extern const struct relay_rule relay_reset_server[RELAY_TYPES];
extern const struct relay_rule relay_restoring_server[RELAY_TYPES];

/* From a DRAINING server: judged as if it were paired, but passed to no client. */
extern const struct relay_rule relay_draining_server[RELAY_TYPES];

/* From a server that runs our SETs, and perhaps its client's messages sent with them. */
extern const struct relay_rule relay_syncing_server[RELAY_TYPES];

/* From a server that runs a query of our own: connect_query, reset query, check query. */
extern const struct relay_rule relay_own_server[RELAY_TYPES];

/* From a server that runs a question, and from the client that waits: parameters/question. */
extern const struct relay_rule relay_asked_server[RELAY_TYPES];
extern const struct relay_rule relay_asked_client[RELAY_TYPES];

/* From the listening server of a pool, and from one that hands its channels over to it. */
extern const struct relay_rule relay_listening_server[RELAY_TYPES];
extern const struct relay_rule relay_handoff_server[RELAY_TYPES];
/* From a server that is asked for functions: see state/functions. */
extern const struct relay_rule relay_functions_server[RELAY_TYPES];

/* From a server that is asked for the role of its host, or watches it. */
extern const struct relay_rule relay_probed_server[RELAY_TYPES];
extern const struct relay_rule relay_capacity_server[RELAY_TYPES];

/* From a server that runs a look-up. */
extern const struct relay_rule relay_lookup_server[RELAY_TYPES];

/* From a server without requests in flight, paired with no client. */
extern const struct relay_rule relay_unused_server[RELAY_TYPES];

/* ---- For the files with the tables ------------------------------------------------------ */

/* The rule for all types; rows that follow it replace the rules of some types. */
#define RELAY_EVERY(judge) [0 ... RELAY_TYPES - 1] = {judge, .at_once = true}

/* The message passes. */
#define RELAY_PASSES                                                                           \
	{                                                                                      \
		NULL                                                                           \
	}

/* Returns whether ReadyForQuery can have this status. */
static inline bool relay_is_status(uint8_t status)
{
	return status == 'I' || status == 'T' || status == 'E';
}

/* Returns whether the CommandComplete has this tag. False if it is not whole. */
static inline bool relay_has_tag(const struct relay_run *run, const char *tag)
{
	const size_t size = strlen(tag) + 1;

	return run->frame.total == FRAME_HEADER_SIZE + size && run->whole &&
		memcmp(run->at + FRAME_HEADER_SIZE, tag, size) == 0;
}

/* Returns whether the tag shows that the server has deallocated all its statements. */
static inline bool relay_forgets_all(const struct relay_run *run)
{
	return relay_has_tag(run, "DISCARD ALL") || relay_has_tag(run, "DEALLOCATE ALL");
}

/* Judge of the answers to a query of our own, which are dropped. */
enum verdict relay_drop_own(struct relay_run *run);

/* Judge of a ParameterStatus among those answers; its row has `whole`. */
enum verdict relay_judge_own_parameter(struct relay_run *run);

/*
 * The ReadyForQuery of a query of our own, with this status, has arrived: set run.own_done and
 * the rules for what follows, which is unrequested. Returns RELAY_DROP.
 */
enum verdict relay_end_own(struct relay_run *run, char status);

/* Returns the status in a whole ReadyForQuery; 0: it is malformed. */
char relay_ready_status(const struct relay_run *run);

/*
 * Note a whole ParameterStatus for the server, and for its client if there is one. Returns
 * RELAY_PASS; RELAY_DROP if the client gets the message later or not at all; RELAY_STOP if the
 * message is malformed or memory is short.
 */
enum verdict relay_remember_parameter(struct relay_run *run);

#endif
