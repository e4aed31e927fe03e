/* SPDX-License-Identifier: ISC */
#include "session/pool/move_clients.h"

#include <string.h>

#include "session/link/close.h"
#include "session/notify/listening_server.h"
#include "wire/parameters.h"

/*
 * Servers of the new pool log in as another user: a client that has not set another session
 * authorization gets the usual one of the new pool, as with an unknown value. When out of memory
 * it keeps the old one, and its next query fails unless the new user may set that.
 */
static void forget_session_user(struct client_link *client)
{
	struct parameter_table *table = link_registry(&client->link)->parameters;
	const int index = parameter_index(table, "session_authorization");
	struct parameters *set = client->link.parameters;
	const char *user = index >= 0 ? parameters_get(set, (unsigned)index) : NULL;

	if (!user || strcmp(user, client->link.pool->user->name) != 0)
		return;
	set = parameters_with(table, set, (unsigned)index, NULL);
	if (!set)
		return;
	parameters_unref(client->link.parameters);
	client->link.parameters = set;
}

void move_clients_one(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct user *user = registry_server_user(registry, client->database, client->user);
	struct pool *pool;

	if (!user || user == client->link.pool->user)
		return;
	pool = registry_open_pool(
		registry, client->database, user, client->link.pool->asked_role);
	if (!pool)
		return;
	/* The server that is logging in for the client uses the old user. */
	if (client->replica && client->replica->server)
		server_close_for(client->replica->server, REASON_CONNECT_STRING_CHANGED);
	forget_session_user(client);
	if (!client->listener)
		client_move(client, pool);
	else if (!listening_server_move_client(client, pool))
		client_close_for(client, REASON_NO_MEMORY);
	pool_needs_work(pool);
}

static bool is_in_other_pool(const struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);

	return registry_server_user(registry, client->database, client->user) !=
		client->link.pool->user;
}

/*
 * Move the clients of this list that have no server. Returns true if a client with a server
 * belongs to another pool.
 */
static bool move_clients_of_list(struct link_list *clients)
{
	struct link *link, *next;
	bool others = false;

	TAILQ_FOREACH_SAFE (link, clients, place, next) {
		if (link->state == CLIENT_PAIRED)
			others = others || is_in_other_pool(client_of(link));
		else
			move_clients_one(client_of(link));
	}
	return others;
}

void move_clients_of_pool(struct pool *pool)
{
	bool others = move_clients_of_list(&pool->clients);

	move_clients_of_list(&pool->welcoming);
	move_clients_of_list(&pool->waiting);
	/* Without a forced user a pool stays in use if all its clients belong to it. */
	pool->left_behind = others || (pool->database->config->user && !pool_is_forced(pool));
}

void move_clients_of_database(struct database *database)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database)
		pool->left_behind = true;
	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (pool->left_behind)
			move_clients_of_pool(pool);
	}
}
