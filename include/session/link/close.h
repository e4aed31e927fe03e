/* SPDX-License-Identifier: ISC */
/*
 * How links end: tell the peer, log the reason, let go of everything, free at the end of the turn.
 *
 * A closed link may still be looked at by callers higher on the stack in this turn; it has no
 * stream, no peer and no place in any list. Closing a closed link does nothing.
 */
#ifndef PGUSHER_SESSION_LINK_CLOSE_H
#define PGUSHER_SESSION_LINK_CLOSE_H

#include "base/failure.h"
#include "model/client_link.h"
#include "model/server_link.h"

/*
 * Close a client for a reason that is its business: it gets a FATAL ErrorResponse (unless the
 * row of the reason is a silent one, or it cannot be written to), the log gets `pooler error`
 * and `closing because`. A server it was paired with is released if it is clean, else closed.
 */
void client_close(struct client_link *client, const struct failure *why);

/* The same for a reason that needs no text of its own. */
void client_close_for(struct client_link *client, enum reason reason);

/*
 * Close a server. A client paired with it is closed with the same reason after what the server
 * had already sent. A logged-in server is sent Terminate.
 */
void server_close(struct server_link *server, const struct failure *why);
void server_close_for(struct server_link *server, enum reason reason);

#endif
