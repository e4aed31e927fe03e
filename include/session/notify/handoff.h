/* SPDX-License-Identifier: ISC */
/*
 * Hands the channels on which a server listens for its client over to the listening server of the pool:
 * after a LISTEN inside a transaction, by the extended protocol, in a function. The client gets each
 * notification once, and none is lost.
 *
 * The listening server is made to LISTEN first, so that for some time both servers listen. Then the
 * client's server notifies a channel that only pgusher knows, with a token, and stops listening. All
 * sessions get notifications in one order, that of the commits: what the client's server sends before
 * the token comes from there, and what the listening server sends behind it from the latter.
 */
#ifndef PGUSHER_SESSION_NOTIFY_HANDOFF_H
#define PGUSHER_SESSION_NOTIFY_HANDOFF_H

#include "session/notify/channels.h"
#include "session/notify/notifier.h"

/*
 * Take over the server, which is ASKING and clean, and listens for its former client (NULL: closed) on
 * these channels: `length` bytes of names, each with a NUL, in the encoding of the client. When it
 * listens no more, own_query_done is called for the server, and handoff_done() is true.
 *
 * Returns false, without a change, if the channels cannot be shared: the encoding of the client differs
 * from that of the listening server, the pool may have none (notify/listening_limits), there are too
 * many channels, or memory is short. The server must then stay with its client.
 */
bool handoff_begin(struct server_link *server, struct client_link *client, const char *names,
	size_t length);

/* Returns whether a handoff has the server. */
static inline bool handoff_has(const struct server_link *server)
{
	return server->handoff != NULL;
}

/*
 * The server has answered all queries of the handoff: it listens no more, and the handoff has let go of
 * it. Returns false if it has failed to do so: it must be closed.
 */
bool handoff_done(struct server_link *server);

/* The listening server has got this token, or has been lost. */
void handoff_marked(struct channel_hub *hub, const char *token);
void handoff_listening_server_lost(struct channel_hub *hub);

/* Go on with handoffs that have waited for the listening server. May close servers of handoffs. */
void handoff_check(struct channel_hub *hub);

/*
 * No listening server will come soon: end those that wait for it. Their clients are warned, and get
 * notifications when there is one. May close servers of handoffs.
 */
void handoff_abandon(struct channel_hub *hub);

/* End those that wait for too long, so that no client waits for their servers. May close these. */
void handoff_expire(struct channel_hub *hub, usec_t now);

/*
 * What the server of a handoff sends: a notification, an error, and a ReadyForQuery, of which false
 * says that none was owed, and *last that no more are.
 */
void handoff_take_notification(
	const struct relay_run *run, const struct notifier_message *message);
void handoff_take_error(struct server_link *server);
bool handoff_take_ready(struct server_link *server, bool *last);

/* The server of a handoff was closed. */
void handoff_server_closed(struct server_link *server);

#endif
