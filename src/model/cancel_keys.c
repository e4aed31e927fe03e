/* SPDX-License-Identifier: ISC */
#include "model/cancel_keys.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 64 };

enum { RANDOM_FROM = 3, TTL_BYTE = 7, TTL_BITS = 3 };

/* The fourth to seventh byte are random in the keys of any peer: they serve as the hash. */
static size_t slot_of(const struct cancel_keys *keys, const uint8_t *key)
{
	uint32_t word;

	memcpy(&word, key + RANDOM_FROM, sizeof(word));
	return word & (keys->capacity - 1);
}

/* Write our peer_id and the TTL into a new key, and clear the sign bit of the process id. */
static void set_peer_id(const struct cancel_keys *keys, uint8_t *key)
{
	key[0] &= 0x7f;
	if (keys->peer_id == 0)
		return;
	key[1] = keys->peer_id & 0xff;
	key[2] = (uint8_t)(keys->peer_id >> 8);
	key[TTL_BYTE] |= TTL_BITS;
}

/*
 * Compare in constant time. With peers also without the TTL bits, which forwarding counts down.
 */
static bool is_same(
	const struct cancel_keys *keys, const struct client_link *client, const uint8_t *key)
{
	uint8_t issued[CANCEL_KEY_MAX];
	bool same = CRYPTO_memcmp(client->key, key, client->key_length) == 0;

	if (keys->peer_id > 0) {
		memcpy(issued, key, client->key_length);
		issued[TTL_BYTE] |= TTL_BITS;
		same |= CRYPTO_memcmp(client->key, issued, client->key_length) == 0;
	}
	return same;
}

static void place(struct cancel_keys *keys, struct client_link *client)
{
	size_t slot = slot_of(keys, client->key);

	while (keys->slots[slot])
		slot = (slot + 1) & (keys->capacity - 1);
	keys->slots[slot] = client;
}

static bool resize(struct cancel_keys *keys, size_t capacity)
{
	struct client_link **before = keys->slots;
	const size_t count = keys->capacity;
	struct client_link **slots = calloc(capacity, sizeof(struct client_link *));

	if (!slots)
		return false;
	keys->slots = slots;
	keys->capacity = capacity;
	for (size_t i = 0; i < count; i++) {
		if (before[i])
			place(keys, before[i]);
	}
	free(before);
	return true;
}

static struct client_link *find(const struct cancel_keys *keys, const void *key, size_t length)
{
	struct client_link *found = NULL;

	if (keys->capacity == 0 || length < CANCEL_KEY_MIN)
		return NULL;
	/*
	 * Compare all entries of the run, so that the time does not show whether one has the
	 * key.
	 */
	for (size_t slot = slot_of(keys, key); keys->slots[slot];
		slot = (slot + 1) & (keys->capacity - 1)) {
		struct client_link *client = keys->slots[slot];

		if (client->key_length == length && is_same(keys, client, key))
			found = client;
	}
	return found;
}

struct client_link *cancel_keys_find(struct cancel_keys *keys, const void *key, size_t length)
{
	struct client_link *found;

	lock_take(&keys->lock);
	found = find(keys, key, length);
	lock_give(&keys->lock);
	return found;
}

struct loop *cancel_keys_find_loop(struct cancel_keys *keys, const void *key, size_t length)
{
	const struct client_link *found;
	struct loop *loop;

	lock_take(&keys->lock);
	found = find(keys, key, length);
	loop = found ? found->link.stream.loop : NULL;
	lock_give(&keys->lock);
	return loop;
}

/* At most two thirds full, so that runs stay short. */
static bool make_room(struct cancel_keys *keys)
{
	return (keys->used + 1) * 3 <= keys->capacity * 2 ||
		resize(keys, keys->capacity ? keys->capacity * 2 : SMALLEST);
}

static void add(struct cancel_keys *keys, struct client_link *client, size_t length)
{
	client->key_length = (uint8_t)length;
	place(keys, client);
	keys->used++;
}

bool cancel_keys_keep(
	struct cancel_keys *keys, struct client_link *client, const void *key, size_t length)
{
	bool good = length >= CANCEL_KEY_MIN && length <= CANCEL_KEY_MAX;

	lock_take(&keys->lock);
	good = good && make_room(keys) && !find(keys, key, length);
	if (good) {
		memcpy(client->key, key, length);
		add(keys, client, length);
	}
	lock_give(&keys->lock);
	return good;
}

bool cancel_keys_issue(struct cancel_keys *keys, struct client_link *client, size_t length,
	struct random *random)
{
	bool good;

	lock_take(&keys->lock);
	good = make_room(keys);
	if (good) {
		do {
			random_fill(random, client->key, length);
			set_peer_id(keys, client->key);
		} while (find(keys, client->key, length));
		add(keys, client, length);
	}
	lock_give(&keys->lock);
	return good;
}

static void forget(struct cancel_keys *keys, struct client_link *client)
{
	size_t slot;

	slot = slot_of(keys, client->key);
	while (keys->slots[slot] && keys->slots[slot] != client)
		slot = (slot + 1) & (keys->capacity - 1);
	if (!keys->slots[slot])
		return;
	keys->slots[slot] = NULL;
	keys->used--;
	client->key_length = 0;
	/*
	 * Insert the rest of the run again, since the empty slot would hide entries after it.
	 */
	for (slot = (slot + 1) & (keys->capacity - 1); keys->slots[slot];
		slot = (slot + 1) & (keys->capacity - 1)) {
		struct client_link *moved = keys->slots[slot];

		keys->slots[slot] = NULL;
		place(keys, moved);
	}
	if (keys->capacity > SMALLEST && keys->used * 8 < keys->capacity)
		resize(keys, keys->capacity / 2); /* on failure the table stays large */
}

void cancel_keys_forget(struct cancel_keys *keys, struct client_link *client)
{
	/* Only the client's own loop issues and forgets its key. */
	if (client->key_length == 0)
		return;
	lock_take(&keys->lock);
	if (keys->capacity > 0)
		forget(keys, client);
	lock_give(&keys->lock);
}

void cancel_keys_set_peer(struct cancel_keys *keys, uint16_t peer_id)
{
	lock_take(&keys->lock);
	SHARED_SET(keys->peer_id, peer_id);
	lock_give(&keys->lock);
}

void cancel_keys_free(struct cancel_keys *keys)
{
	free(keys->slots);
	lock_end(&keys->lock);
	*keys = (struct cancel_keys){0};
}
