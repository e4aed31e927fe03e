/* SPDX-License-Identifier: ISC */
/*
 * Replay of a batch after an outdated plan. The messages that a client has sent since its last
 * Sync are kept, and are sent again if its server has a plan that a change of the schema has
 * made unusable (error 0A000), so that the client does not get the error.
 *
 * A batch can be replayed as long as the server has answered none of it, nothing was sent after
 * it, and it began outside of a transaction. Most batches arrive in one read and are copied
 * once; of others each piece is copied. The copy is owned by the server link (server.kept).
 */
#ifndef PGUSHER_SESSION_STATEMENTS_REPLAY_H
#define PGUSHER_SESSION_STATEMENTS_REPLAY_H

#include "session/relay/relay.h"
#include "wire/report.h"

enum {
	/* Maximum length of a batch that is kept; longer ones are not replayed. */
	REPLAY_KEPT_MAX = 64 * 1024,
};

/*
 * The run of a client, which began with `data`, has ended, and its messages were sent: copy
 * those of a batch that may have to be replayed. When out of memory nothing is kept, and there
 * will be no replay. This is the event keep_batch of the relay.
 */
void replay_keep(struct relay_run *run, const uint8_t *data);

/* Returns whether this is the error of an outdated plan. */
bool replay_is_stale(const struct report *report);

/* Returns whether the batch of the oldest request in flight can be replayed. */
bool replay_may_begin(const struct relay_run *run);

/*
 * The server has sent this ErrorResponse. If it shows that the server does not have a
 * statement, or has it with an outdated plan, the statement will be prepared again when it is
 * next used. Returns true if the batch will be replayed: the ErrorResponse must not be passed
 * to the client.
 */
bool replay_begin(struct relay_run *run, const struct report *report);

#endif
