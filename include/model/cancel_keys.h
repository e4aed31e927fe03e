/* SPDX-License-Identifier: ISC */
/*
 * The cancel keys that were given to clients: a table from key to client.
 *
 * Keys are random, so their own bytes serve as hash; a table of pointers costs 8 to 16 bytes a
 * client. Protocol: "Message Flow", Canceling Requests in Progress; BackendKeyData.
 */
#ifndef PGUSHER_MODEL_CANCEL_KEYS_H
#define PGUSHER_MODEL_CANCEL_KEYS_H

#include <stddef.h>

#include "base/random.h"
#include "model/client_link.h"

struct cancel_keys {
	struct client_link **slots;
	size_t capacity; /* a power of two, or 0 */
	size_t used; /* slots with a client in them */
	uint16_t peer_id; /* who we are among processes that share a port; 0: we do not */
};

/*
 * Draw a key of that many bytes (CANCEL_KEY_MIN to CANCEL_KEY_MAX) for the client and remember
 * it. The top bit of the first byte is 0, so that nobody sees a negative process number; among
 * peers the second and third byte are our id, and the last two bits of the eighth are set.
 */
bool cancel_keys_issue(struct cancel_keys *keys, struct client_link *client, size_t length,
	struct random *random);

/* Remember a key that the client has already. False: no memory, or somebody else has it. */
bool cancel_keys_keep(
	struct cancel_keys *keys, struct client_link *client, const void *key, size_t length);

/*
 * The client to whom this very key was given, or NULL; among peers its last two bits may have
 * counted down on the way. Compares in constant time.
 */
struct client_link *cancel_keys_find(
	const struct cancel_keys *keys, const void *key, size_t length);

/* Forget the client's key, if it has one. */
void cancel_keys_forget(struct cancel_keys *keys, struct client_link *client);

void cancel_keys_free(struct cancel_keys *keys);

#endif
