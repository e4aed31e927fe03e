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

/* What other modules do when a link closes: registry.close_events, the table of rules/life. */
struct close_events {
	/*
	 * The client is about to be sent an ErrorResponse: send what has to come before it. Returns
	 * false when its connection is broken.
	 */
	bool (*before_error)(struct client_link *client);
	/* Split the pair that the link, which is closing, belongs to. */
	void (*unpair)(struct link *link);
	/* The client, which was in this state, is CLOSED: free what it has besides the link. */
	void (*client_closed)(struct client_link *client, enum client_state state);
	/*
	 * The last step for a client: `server`, which it was paired with (NULL: with none), is free
	 * of it. politely: the client has sent Terminate. The server may be closed by this.
	 */
	void (*client_left)(
		struct client_link *client, struct server_link *server, bool politely);
	/*
	 * The server, which was in this state, is CLOSED for this reason: free what it has besides
	 * the link, and tell whatever waits for it. Other links may be closed by this.
	 */
	void (*server_closed)(
		struct server_link *server, enum server_state state, const struct failure *why);
	/*
	 * The client has lost its server before the server received anything of its query: its
	 * query goes to another server, or is answered as canceled.
	 */
	void (*client_unserved)(struct client_link *client, const struct failure *why);
};

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
