/* SPDX-License-Identifier: ISC */
/*
 * The cancel keys of clients: a hash table from key to client.
 *
 * Keys are random, so some of their bytes serve as the hash; the table of pointers costs 12 to
 * 16 bytes a client. Protocol: "Message Flow", Canceling Requests in Progress; BackendKeyData.
 */
#ifndef PGUSHER_MODEL_CANCEL_KEYS_H
#define PGUSHER_MODEL_CANCEL_KEYS_H

#include <stddef.h>

#include "base/lock.h"
#include "base/random.h"
#include "model/client_link.h"

struct cancel_keys {
	struct lock lock; /* of the functions below */
	struct client_link **slots;
	size_t capacity; /* a power of two, or 0 */
	size_t used; /* slots in use */
	uint16_t peer_id; /* our id among the processes that share a port; 0: none */
};

/*
 * Make a random key of `length` bytes (CANCEL_KEY_MIN to CANCEL_KEY_MAX) for the client, store
 * it in the client and add it to the table. The top bit of the first byte is 0, so that clients
 * do not see a negative process id. With peers the second and third byte are our peer_id, and
 * the last two bits of the eighth byte are set: the TTL of a CancelRequest that is forwarded
 * between peers. Returns false when out of memory.
 */
bool cancel_keys_issue(struct cancel_keys *keys, struct client_link *client, size_t length,
	struct random *random);

/*
 * Add a key that the client got from the old process of a takeover. Returns false when out of
 * memory, when the length is wrong, or when another client has this key.
 */
bool cancel_keys_keep(
	struct cancel_keys *keys, struct client_link *client, const void *key, size_t length);

/*
 * Returns the client with this key, or NULL. With peers the two TTL bits are ignored: each
 * forwarding counts them down. Keys are compared in constant time.
 */
struct client_link *cancel_keys_find(struct cancel_keys *keys, const void *key, size_t length);

/*
 * Returns the loop of that client, or NULL: only the thread of this loop may use the client, which
 * may be closed any time.
 */
struct loop *cancel_keys_find_loop(struct cancel_keys *keys, const void *key, size_t length);

/* New keys get this peer_id; 0: none. */
void cancel_keys_set_peer(struct cancel_keys *keys, uint16_t peer_id);

/* Remove the client's key from the table and from the client. Does nothing if it has none. */
void cancel_keys_forget(struct cancel_keys *keys, struct client_link *client);

/* Free the table; the clients keep their keys. */
void cancel_keys_free(struct cancel_keys *keys);

#endif
