/* SPDX-License-Identifier: ISC */
#include "session/server/own_connection.h"

#include <unistd.h>

#include "session/server/server_login_state.h"

static uint16_t *count_of(struct registry *registry, uint16_t port)
{
	return &registry->own_ports[port % OWN_PORTS];
}

void own_connection_note(struct server_link *server, const struct address *local)
{
	own_connection_forget(server);
	if (local->family == AF_UNIX || local->port == 0)
		return;
	server->login->local = *local;
	++*count_of(link_registry(&server->link), local->port);
}

void own_connection_forget(struct server_link *server)
{
	struct address *local = &server->login->local;

	if (local->port == 0)
		return;
	--*count_of(link_registry(&server->link), local->port);
	local->port = 0;
}

/* Returns the server that logs in from this address; NULL: none does. */
static const struct server_link *find(
	const struct registry *registry, const struct address *from)
{
	const struct pool *pool;
	const struct link *link;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		TAILQ_FOREACH (link, &pool->servers[SERVERS_LOGIN], place) {
			const struct server_link *server = (const struct server_link *)link;

			if (server->login && server->login->local.port != 0 &&
				address_equal(&server->login->local, from))
				return server;
		}
	}
	return NULL;
}

bool own_connection_is_client(const struct client_link *client, const char **database)
{
	struct registry *registry = link_registry(&client->link);
	const struct address *from = &client->link.remote;
	const struct server_link *server;

	if (from->family == AF_UNIX)
		return from->pid == getpid();
	if (*count_of(registry, from->port) == 0)
		return false;
	server = find(registry, from);
	if (server)
		*database = server->link.pool->database->name;
	return server != NULL;
}
