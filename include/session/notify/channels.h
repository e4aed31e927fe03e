/* SPDX-License-Identifier: ISC */
/*
 * The channels that clients of a pool listen on (LISTEN): which clients each channel has, and
 * which state it has at the listening server of the pool. Nothing is sent here.
 *
 * The pool has a hub from the first LISTEN of its clients until none of them listens and the
 * listening server is gone. Names are as the server reads them, in its encoding, at most 63 bytes.
 */
#ifndef PGUSHER_SESSION_NOTIFY_CHANNELS_H
#define PGUSHER_SESSION_NOTIFY_CHANNELS_H

#include "model/registry.h"
#include "session/notify/notification.h"

struct handoff;

enum {
	CHANNEL_NAME_SIZE = 64, /* NAMEDATALEN of PostgreSQL */
	/*
	 * PostgreSQL walks over all channels of a session for each LISTEN and each notification,
	 * so that the listening server of a pool must not have any number of them.
	 */
	CHANNELS_PER_CLIENT = 4096,
	CHANNELS_PER_POOL = 32768,
};

enum channel_state {
	CHANNEL_ABSENT, /* the listening server does not listen on it, as far as we know */
	CHANNEL_ASKED, /* a LISTEN is in flight */
	CHANNEL_PRESENT, /* the listening server has confirmed the LISTEN */
	CHANNEL_LEAVING, /* an UNLISTEN is in flight */
};

TAILQ_HEAD(subscription_list, subscription);
TAILQ_HEAD(channel_list, channel);
TAILQ_HEAD(channel_listener_list, channel_listener);
TAILQ_HEAD(handoff_list, handoff);

struct channel {
	UT_hash_handle by_name;
	uint64_t handle; /* in process.handles; 0: none yet */
	struct channel_hub *hub;
	TAILQ_ENTRY(channel) in_list; /* hub.due or hub.asked */
	struct subscription_list subscriptions;
	unsigned subscribers; /* their number */
	enum channel_state state : 8;
	bool is_due; /* in hub.due */
	char name[];
};

/* One client that listens on one channel. */
struct subscription {
	struct channel *channel;
	struct channel_listener *listener;
	TAILQ_ENTRY(subscription) in_channel, in_listener;
	/* Another server still listens for this client: see notify/handoff. NULL: none. */
	struct handoff *handoff;
	bool confirmed; /* the client was told that it listens */
};

/* Where a listener stands, that has something to be done after the run of the server. */
enum listener_place {
	LISTENER_QUIET, /* nothing is queued */
	LISTENER_READY, /* in hub.ready: to be looked at when the run has ended */
	LISTENER_LATER, /* in hub.later: its client is not between two answers */
};

/* What a client has that listens: client.listener, owned. */
struct channel_listener {
	struct client_link *client;
	struct channel_hub *hub;
	struct subscription_list subscriptions;
	unsigned channels; /* their number */
	struct notification_queue queue;
	TAILQ_ENTRY(channel_listener) in_hub; /* ready or later */
	enum listener_place place : 8;
	bool missed; /* no memory for a notification: the client is to be closed */
	bool resuming; /* its LISTEN, which was held, is to be judged again */
	struct notification *error; /* the answer to that LISTEN; NULL: it succeeds */
	struct buffer unlistens; /* names that UNLISTEN may end: see notify/unlisten */
	bool unlistens_all; /* and UNLISTEN * */
	bool unlistened; /* an UNLISTEN was run since those were noted */
	unsigned losses; /* of the hub, when the client was last told of one */
};

/* What a pool has for its listeners: pool.hub, owned. */
struct channel_hub {
	struct pool *pool;
	struct server_link *server; /* LISTENING, or logging in for it; NULL: none */
	struct channel *channels; /* uthash, by name */
	unsigned count; /* of the channels */
	unsigned listeners; /* number of clients with a listener */
	unsigned subscriptions; /* of all clients, to all channels */
	struct channel_list due; /* may need a LISTEN or an UNLISTEN */
	struct channel_list asked; /* queries in flight, the oldest first */
	unsigned in_flight; /* their number */
	struct channel_listener_list ready, later;
	struct handoff_list handoffs;
	struct channel *marker; /* of handoffs; owned; NULL: none was needed yet */
	usec_t used; /* when a client last listened */
	usec_t wanted_since; /* valid without a server: when the first client wanted it */
	struct notification *error; /* of the oldest query in flight; NULL: none so far */
	bool broken; /* the server cannot listen: close it when its run has ended */
	unsigned losses; /* how many listening servers were lost */
	uint64_t tokens; /* of handoffs, so far */
};

/* Returns the hub of the pool, made if there is none; NULL when out of memory. */
struct channel_hub *channels_open(struct pool *pool);

/* Free the hub of the pool, if it has one, unless a client or a server needs it. */
void channels_release(struct pool *pool);

/* Returns the channel of this name; NULL if no client listens on it. */
struct channel *channels_find(const struct channel_hub *hub, const char *name);

/*
 * Returns the channel of this name, made if there is none; NULL when out of memory. It goes with its
 * last subscription, when the listening server does not listen on it: see channels_drop_unused().
 */
struct channel *channels_open_channel(struct channel_hub *hub, const char *name);

/* Returns whether any client of the pool listens: its listening server is in use then. */
static inline bool channels_are_in_use(const struct pool *pool)
{
	return pool->hub && pool->hub->subscriptions > 0;
}

/* Returns whether the listening server of the pool is there. */
static inline bool channels_has_server(const struct channel_hub *hub)
{
	return hub->server && hub->server->link.state == SERVER_LISTENING;
}

/* Returns whether the listening server has confirmed this channel. */
static inline bool channels_is_present(const struct channel *channel)
{
	return channels_has_server(channel->hub) && channel->state == CHANNEL_PRESENT;
}

/*
 * Returns whether this client may share the listening server: it sends names and payloads in its own
 * encoding.
 */
bool channels_suit(const struct client_link *client);

/* Returns the channel of handoffs, which the listening server is to listen on from now on. */
struct channel *channels_marker(struct channel_hub *hub);

/* Returns the client's subscription to this channel; NULL: it has none. */
struct subscription *channels_subscription(const struct client_link *client, const char *name);

/*
 * Have the client listen on a channel, which it does not listen on yet. Returns NULL when out of
 * memory; then also, with *too_many set, if the client or its pool has too many channels.
 */
struct subscription *channels_subscribe(
	struct client_link *client, const char *name, bool *too_many);

/* End a subscription. Its listener stays. */
void channels_unsubscribe(struct subscription *subscription);

/* End all subscriptions of the client. */
void channels_unsubscribe_all(struct client_link *client);

/* Returns what the client has as a listener, made if it has nothing; NULL when out of memory. */
struct channel_listener *channels_open_listener(struct client_link *client);

/* Put the channel on the list of those that may need a LISTEN or an UNLISTEN. */
void channels_note_due(struct channel *channel);

/* Free the channel if it has no subscriptions and is not known to the server. */
void channels_drop_unused(struct channel *channel);

/*
 * Append the names of the channels on which the client knows that it listens, each with a NUL. Out of
 * memory sets the buffer's `failed`.
 */
void channels_write_names(const struct channel_listener *listener, struct buffer *out);

/* The client is closed, or moves to another pool: free its listener. NULL is allowed there. */
void channels_forget_client(struct client_link *client);

/* Move a listener to the place; its hub looks at those that are READY. */
void channels_place(struct channel_listener *listener, enum listener_place place);

#endif
