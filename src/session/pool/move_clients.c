/* SPDX-License-Identifier: ISC */
#include "session/pool/move_clients.h"

#include "session/link/close.h"

void move_clients_one(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct user *user = registry_server_user(registry, client->database, client->user);
	struct pool *pool;

	if (!user || user == client->link.pool->user)
		return;
	pool = registry_open_pool(registry, client->database, user);
	if (!pool)
		return;
	/* What logs in for it does so as somebody else. */
	if (client->replica && client->replica->server)
		server_close_for(client->replica->server, REASON_CONNECT_STRING_CHANGED);
	client_move(client, pool);
	pool_needs_work(pool);
}

static bool is_stranger(const struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);

	return registry_server_user(registry, client->database, client->user) !=
		client->link.pool->user;
}

/* Those who have no server. True if there are strangers among the others. */
static bool move_clients_of_list(struct link_list *clients)
{
	struct link *link, *next;
	bool strangers = false;

	TAILQ_FOREACH_SAFE (link, clients, place, next) {
		if (link->state == CLIENT_PAIRED)
			strangers = strangers || is_stranger(client_of(link));
		else
			move_clients_one(client_of(link));
	}
	return strangers;
}

void move_clients_of_pool(struct pool *pool)
{
	bool strangers = move_clients_of_list(&pool->clients);

	move_clients_of_list(&pool->welcoming);
	move_clients_of_list(&pool->waiting);
	/* Where nobody is forced any more, a pool may well go on with those who are its own. */
	pool->left_behind =
		strangers || (pool->database->config->user && !pool_is_forced(pool));
}

void move_clients_of_database(struct registry *registry, struct database *database)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (pool->database == database)
			pool->left_behind = true;
	}
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (pool->database == database && pool->left_behind)
			move_clients_of_pool(pool);
	}
}
