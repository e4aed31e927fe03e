/* SPDX-License-Identifier: ISC */
/*
 * Closing links: send the peer its last message, log the reason, remove the link from its
 * lists, and free it at the end of the turn.
 *
 * Callers higher on the stack may still read a closed link in this turn; it has no stream, no
 * peer and no place in any list. Closing a closed link does nothing.
 */
#ifndef PGUSHER_SESSION_LINK_CLOSE_H
#define PGUSHER_SESSION_LINK_CLOSE_H

#include "base/failure.h"
#include "model/client_link.h"
#include "model/server_link.h"

/* What other modules do when a link closes: registry.close_events, the table of rules/life. */
struct close_events {
	/*
	 * The client is about to be sent an ErrorResponse: send what has to come before it.
	 * Returns false when its connection is broken.
	 */
	bool (*before_error)(struct client_link *client);
	/* Split the pair that the link, which is closing, belongs to. */
	void (*unpair)(struct link *link);
	/*
	 * The client, which was in this state, is CLOSED for this reason: free what it has
	 * besides the link.
	 */
	void (*client_closed)(
		struct client_link *client, enum client_state state, const struct failure *why);
	/*
	 * The last step for a client: `server`, with which it was paired (NULL: with none), is
	 * no longer paired. terminated: the client has sent Terminate. May close the server.
	 */
	void (*after_client_closed)(
		struct client_link *client, struct server_link *server, bool terminated);
	/*
	 * The server, which was in this state, is CLOSED for this reason: free what it has
	 * besides the link, and continue what waits for it. May close other links.
	 */
	void (*server_closed)(
		struct server_link *server, enum server_state state, const struct failure *why);
	/*
	 * The client's server was closed before it received anything of the client's query:
	 * send the query to another server, or answer it as canceled.
	 */
	void (*query_unsent)(struct client_link *client, const struct failure *why);
};

/*
 * Close a client. Sends it a FATAL ErrorResponse with the reason, unless the row of the reason
 * has no SQLSTATE or the client cannot be written to. Logs `pooler error` and `closing
 * because`. A server paired with the client returns to its pool if it is clean, else it is
 * drained or closed.
 */
void client_close(struct client_link *client, const struct failure *why);

/* As client_close(), for a reason with a fixed text. */
void client_close_for(struct client_link *client, enum reason reason);

/*
 * The client, in GREETING, goes on at another worker, with its stream, which has left: remove its link
 * without a word. What counts the client for the process and its address goes on counting it.
 */
void client_leave(struct client_link *client);

/*
 * Close a server. Sends Terminate to a logged-in server. A client paired with it is closed for
 * the same reason, after what the server has already sent; but if the server has received
 * nothing of the client's query the client stays open: see close_events.query_unsent.
 */
void server_close(struct server_link *server, const struct failure *why);

/* As server_close(), for a reason with a fixed text. */
void server_close_for(struct server_link *server, enum reason reason);

/*
 * Write the log line of a server that is closed for this reason, for one that goes on with
 * another host.
 */
void server_log_closing(struct server_link *server, enum reason reason);

#endif
