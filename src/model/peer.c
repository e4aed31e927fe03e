/* SPDX-License-Identifier: ISC */
#include "model/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- found peers -------------------------------------------------------------------------- */

void found_peers_add(struct found_peers *peers, unsigned id, const struct address *address)
{
	struct found_peer *peer = &peers->list[peers->count];
	char host[ADDRESS_TEXT_SIZE];

	for (unsigned i = 0; i < peers->count; i++) {
		if (peers->list[i].config.id == id)
			return;
	}
	if (peers->count == FOUND_PEERS_MOST)
		return;
	peers->count++;
	peer->address = *address;
	snprintf(peer->name, sizeof(peer->name), "%u", id);
	snprintf(peer->host, sizeof(peer->host), "%s", address_host(address, host));
	peer->config = (struct peer_config){
		.name = peer->name,
		.host = peer->host,
		.pool_size = -1,
		.id = (uint16_t)id,
		.port = address->port,
	};
}

bool found_peers_equal(const struct found_peers *a, const struct found_peers *b)
{
	if (a->count != b->count)
		return false;
	for (unsigned i = 0; i < a->count; i++) {
		if (a->list[i].config.id != b->list[i].config.id ||
			!address_equal(&a->list[i].address, &b->list[i].address))
			return false;
	}
	return true;
}

/* --- configurations ----------------------------------------------------------------------- */

/* The nth peer that is configured, or behind these the nth one that was found. */
static const struct peer_config *nth_config(const struct registry *registry, size_t n)
{
	const struct found_peers *found = registry->process->found_peers;
	size_t configured = 0;

	while (configured < n && snapshot_peer(registry->process->config, configured))
		configured++;
	if (configured == n && snapshot_peer(registry->process->config, n))
		return snapshot_peer(registry->process->config, n);
	return found && n - configured < found->count ? &found->list[n - configured].config
						      : NULL;
}

static const struct peer_config *find_config(const struct registry *registry, unsigned id)
{
	const struct peer_config *config;

	for (size_t i = 0; (config = nth_config(registry, i)) != NULL; i++) {
		if (config->id == id)
			return config;
	}
	return NULL;
}

const struct peer_config *peer_config_next(const struct registry *registry, unsigned after)
{
	const struct peer_config *peer, *next = NULL;

	for (size_t i = 0; (peer = nth_config(registry, i)) != NULL; i++) {
		if (peer->id > after && (!next || peer->id < next->id))
			next = peer;
	}
	return next;
}

int peer_pool_size(const struct peer_config *peer, const struct settings *settings)
{
	const int size = peer->pool_size >= 0 ? peer->pool_size : settings->default_pool_size;

	return size == POOL_SIZE_AUTO ? SIZING_UNKNOWN : size;
}

unsigned peer_processes(const struct registry *registry)
{
	const struct found_peers *found = registry->process->found_peers;
	const unsigned own = process_peer_id(registry->process);
	const struct peer_config *config;
	unsigned count = 1;

	for (size_t i = 0; (config = snapshot_peer(registry->process->config, i)) != NULL; i++)
		count += config->id != own;
	for (unsigned i = 0; found && i < found->count; i++) {
		const struct peer_config *each = &found->list[i].config;

		/* One that is configured too is not counted twice. */
		count += each->id != own && find_config(registry, each->id) == each;
	}
	return count;
}

/* --- peers -------------------------------------------------------------------------------- */

/* Make a database entry from a peer entry: connections to peers are opened like servers. */
static struct database_config *make_config(const struct peer_config *config)
{
	const struct database_config model = {
		.host = config->host,
		.port = config->port,
		.pool_size = config->pool_size,
		.min_pool_size = -1,
		.reserve_pool_size = -1,
		.query_wait_timeout = -1,
		.max_pool_waiters = -1,
	};

	return database_config_from_template(&model, config->name);
}

static struct database *make_database(const struct peer_config *config)
{
	const size_t size = strlen(config->name) + 1;
	struct database *database = calloc(1, sizeof(*database) + size);

	if (!database)
		return NULL;
	memcpy(database->name, config->name, size);
	TAILQ_INIT(&database->pools);
	cap_init(&database->cap, CAP_DATABASE);
	database->peer_id = config->id;
	database->config = database->own_config = make_config(config);
	if (database->config)
		return database;
	free(database);
	return NULL;
}

static struct user *make_user(void)
{
	struct user *user = calloc(1, sizeof(*user) + 1);

	if (!user)
		return NULL;
	TAILQ_INIT(&user->pools);
	cap_init(&user->cap, CAP_USER);
	return user;
}

static void free_owner(struct database *database, struct user *user)
{
	if (database) {
		database_config_free(database->own_config);
		counters_free(database->counters);
	}
	free(database);
	free(user);
}

/* Keep the list sorted by id, as SHOW PEERS lists it. */
static void insert(struct registry *registry, struct peer *peer)
{
	struct peer *other;

	TAILQ_FOREACH (other, &registry->process->peers, entry) {
		if (other->id > peer->id) {
			TAILQ_INSERT_BEFORE(other, peer, entry);
			return;
		}
	}
	TAILQ_INSERT_TAIL(&registry->process->peers, peer, entry);
}

static struct peer *make(struct registry *registry, const struct peer_config *config)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	struct database *database = make_database(config);
	struct user *user = make_user();

	if (peer && database && user)
		peer->pool = pool_new(registry, database, user, TARGET_INHERIT);
	if (!peer || !peer->pool) {
		free(peer);
		free_owner(database, user);
		return NULL;
	}
	peer->id = config->id;
	insert(registry, peer);
	return peer;
}

struct peer *peer_open(struct registry *registry, unsigned id)
{
	const struct peer_config *config = find_config(registry, id);
	struct peer *peer;

	if (!config || id == process_peer_id(registry->process))
		return NULL;
	TAILQ_FOREACH (peer, &registry->process->peers, entry) {
		if (peer->id == id)
			return peer;
	}
	return make(registry, config);
}

bool peer_is_configured(const struct peer *peer)
{
	return find_config(peer->pool->registry, peer->id) != NULL;
}

bool peer_renew(struct peer *peer)
{
	struct database *database = peer->pool->database;
	struct database_config *config =
		make_config(find_config(peer->pool->registry, peer->id));

	if (!config)
		return false;
	database_config_free(database->own_config);
	database->config = database->own_config = config;
	return true;
}

void peer_free(struct registry *registry, struct peer *peer)
{
	struct pool *pool = peer->pool;
	struct database *database = pool->database;
	struct user *user = pool->user;

	TAILQ_REMOVE(&registry->process->peers, peer, entry);
	if (pool->has_work)
		TAILQ_REMOVE(&registry->work, pool, in_work);
	pool_free(pool);
	free_owner(database, user);
	free(peer);
}
