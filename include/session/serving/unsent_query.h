/* SPDX-License-Identifier: ISC */
/*
 * Ends a query of which no server has received anything with an error of pgusher's own: it was
 * canceled while it waited, it has waited for too long, or too many clients wait already.
 *
 * The client stays connected. A Query or FunctionCall is answered with ErrorResponse and
 * ReadyForQuery. In the extended protocol one ErrorResponse answers the batch, whose messages
 * are dropped up to its Sync, which may arrive later; what follows the Sync is a new query. A
 * Sync alone cannot fail, and is answered with ReadyForQuery. Protocol: "Message Flow".
 */
#ifndef PGUSHER_SESSION_SERVING_UNSENT_QUERY_H
#define PGUSHER_SESSION_SERVING_UNSENT_QUERY_H

#include "session/relay/relay.h"

/*
 * End the query of a client, which holds its first messages, with the error of the reason, whose
 * row has UNSENT. The client is WAITING or LAUNCHING, PAIRED with a server that runs our SETs
 * first, or IDLE after such a server was closed. The next messages of the client are handled
 * before this returns, so the contents of the loop's buffer are lost. The client may be closed.
 */
void unsent_query_end(struct client_link *client, enum reason reason);

/* For judges: the same for the query of an idle client that begins with this message. */
enum verdict unsent_query_refuse(struct relay_run *run, enum reason reason);

#endif
