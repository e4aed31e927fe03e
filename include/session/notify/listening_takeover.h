/* SPDX-License-Identifier: ISC */
/*
 * Listening servers and subscriptions that another process hands over, or that this one does: see
 * session/takeover. Notifications that a client has not got yet go along.
 */
#ifndef PGUSHER_SESSION_NOTIFY_LISTENING_TAKEOVER_H
#define PGUSHER_SESSION_NOTIFY_LISTENING_TAKEOVER_H

#include "session/notify/channels.h"

/*
 * Returns whether the server is at rest: it owes no answer, and no handoff waits for it. Only then can
 * it be handed over.
 */
bool listening_takeover_is_settled(const struct server_link *server);

/* Append the channels on which the listening server listens, each with a NUL. */
void listening_takeover_write_channels(const struct server_link *server, struct buffer *out);

/* Append the messages that wait for the client. */
void listening_takeover_write_messages(
	const struct channel_listener *listener, struct buffer *out);

/*
 * A client that was taken over listens on these channels, `length` bytes of names, each with a NUL,
 * and has not got these messages. Returns false if they are malformed or memory is short.
 */
bool listening_takeover_take_client(struct client_link *client, const char *names,
	size_t length, const uint8_t *messages, size_t messages_length);

/*
 * A listening server that was taken over listens on these channels. Returns false if the pool has
 * another one, the names are malformed or memory is short: it must be dropped then.
 */
bool listening_takeover_take_server(
	struct server_link *server, const char *names, size_t length);

/* That server is not taken over after all, and is freed. For any server. */
void listening_takeover_drop_server(struct server_link *server);

/*
 * All links were taken over: clients of a pool without a listening server are warned, and listen again.
 */
void listening_takeover_end(struct pool *pool);

#endif
