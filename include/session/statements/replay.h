/* SPDX-License-Identifier: ISC */
/*
 * Plans out of date: what a client has said since its last Sync is kept, and said again if its server
 * turns out to have a plan that a change of the schema has made useless (0A000).
 *
 * That is possible as long as nothing of the batch has been answered, nothing has been sent behind
 * it, and it began outside of any transaction. Most batches come in one read, and are copied once;
 * of one that comes in several each piece is. Nobody else has what is kept: it belongs to the
 * server, which has it for as long as it lives.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_REPLAY_H
#define PGUSHER_SESSION_STATEMENTS_REPLAY_H

#include "session/relay/relay.h"
#include "wire/report.h"

enum {
	/* A batch may be this long to be kept until it has been answered. */
	HEALING_KEPT_MAX = 64 * 1024,
};

/*
 * The run of a client, which began with `data`, is over and its messages have been sent: keep those
 * of a batch that may have to be replayed. This is the event keep_batch of the relay.
 */
void replay_keep(struct relay_run *run, const uint8_t *data);

/* Is this the error of a plan out of date? */
bool replay_is_stale(const struct report *report);

/* Could the oldest request still be said again, with all of its batch? */
bool replay_may_begin(const struct relay_run *run);

/*
 * An ErrorResponse: true if it tells of a plan out of date and its batch will be said again, so that
 * nobody has to hear of it. Else that statement is prepared anew the next time.
 */
bool replay_begin(struct relay_run *run, const struct report *report);

#endif
