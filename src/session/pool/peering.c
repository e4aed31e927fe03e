/* SPDX-License-Identifier: ISC */
#include "session/pool/peering.h"

#include <string.h>

#include "session/link/close.h"
#include "session/pool/cancel_queue.h"

/* The bits of a key that count how often its request may be forwarded. */
enum { TTL_BITS = 3, TTL_BYTE = 7 };

/* Requests that may wait for a peer, of all clients together. */
enum { WAITING_MAX = 1000 };

static unsigned peer_of_key(const uint8_t *key)
{
	return key[1] | (unsigned)key[2] << 8;
}

bool peering_is_foreign(const struct registry *registry, const uint8_t *key, size_t length)
{
	const unsigned own = process_peer_id(registry->process);

	return own > 0 && length >= CANCEL_KEY_MIN && length <= CANCEL_KEY_MAX &&
		peer_of_key(key) != own;
}

void peering_forward(struct client_link *client, const uint8_t *key, size_t length)
{
	struct peer *peer;

	if ((key[TTL_BYTE] & TTL_BITS) == 0) {
		client_close_for(client, REASON_CANCEL_TTL_EXHAUSTED);
		return;
	}
	peer = peer_open(link_registry(&client->link), peer_of_key(key));
	if (!peer) {
		client_close_for(client, REASON_CANCEL_PEER_NOT_FOUND);
		return;
	}
	if (peer->pool->client_count[CLIENT_CANCEL_WAITING] >= WAITING_MAX) {
		client_close_for(client, REASON_FAILED_CANCEL_REQUEST);
		return;
	}
	memcpy(client->key, key, length);
	client->key[TTL_BYTE]--; /* the bits are not 0, so no other bit changes */
	client->key_length = (uint8_t)length;
	cancel_queue_add(client, peer->pool, NULL);
}

void peering_work(struct registry *registry)
{
	struct peer *peer;

	TAILQ_FOREACH (peer, &registry->process->peers, entry) {
		if (peer->pool->client_count[CLIENT_CANCEL_WAITING] > 0)
			pool_needs_work(peer->pool);
	}
}

static void close_list(struct link_list *list, enum reason reason)
{
	struct link *link;

	while ((link = TAILQ_FIRST(list)) != NULL) {
		if (link->kind == LINK_CLIENT)
			client_close_for(client_of(link), reason);
		else
			server_close_for(server_of(link), reason);
	}
}

static void close_all(struct pool *pool, enum reason reason)
{
	close_list(&pool->cancels, reason);
	close_list(&pool->servers[SERVERS_LOGIN], reason);
	close_list(&pool->servers[SERVERS_ACTIVE_CANCEL], reason);
}

void peering_apply(struct registry *registry)
{
	struct peer *peer, *next;

	TAILQ_FOREACH_SAFE (peer, &registry->process->peers, entry, next) {
		if (peer_is_configured(peer)) {
			/* The address may have changed: connect again. */
			close_list(&peer->pool->servers[SERVERS_LOGIN],
				REASON_CONNECT_STRING_CHANGED);
			if (!peer_renew(peer))
				log_write(LEVEL_ERROR, "no memory for peer %u", peer->id);
			pool_needs_work(peer->pool);
			continue;
		}
		close_all(peer->pool, REASON_PEER_REMOVED);
		peer_free(registry, peer);
	}
}

unsigned peering_count_servers(const struct registry *registry)
{
	const struct peer *peer;
	unsigned count = 0;

	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		count += pool_servers(peer->pool);
	return count;
}

void peering_drop_all(struct registry *registry, enum reason reason)
{
	struct peer *peer;

	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		close_all(peer->pool, reason);
}
