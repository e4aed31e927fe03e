/* SPDX-License-Identifier: ISC */
/*
 * With session_state = error: refuses statements that would leave in the session what cannot follow
 * its client. The server gets a statement that fails in place of the client's, so that its
 * transaction fails as after any error, and the client gets pgusher's error.
 */
#ifndef PGUSHER_SESSION_STATE_REFUSAL_H
#define PGUSHER_SESSION_STATE_REFUSAL_H

#include "session/relay/relay.h"

/*
 * Returns whether refusal_concerns() has to look at the text although its words are not suspicious: it
 * is a PREPARE, and what SQL prepares otherwise than by a Query of its own cannot follow.
 */
bool refusal_may_concern(const struct relay_run *run, const char *text, size_t length);

/*
 * Returns whether this text of a Query or Parse, which is whole, is to be refused by the setting of
 * its pool.
 */
bool refusal_concerns(const struct relay_run *run, const char *text, size_t length);

/* Send what fails in place of the Query or Parse; its request is marked REQUEST_BARRED. */
enum verdict refusal_send(struct relay_run *run);

/* Send the error to the client in place of the server's. */
enum verdict refusal_answer(struct relay_run *run);

#endif
