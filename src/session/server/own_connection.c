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

/* Is the server's connection the one that this client has made, from end to end? */
static bool is_same_connection(
	const struct server_link *server, const struct client_link *client)
{
	const struct address local = address_local(client->link.stream.fd);
	const struct address here = address_unmapped(&local);
	const struct address there = address_unmapped(&server->link.remote);

	return here.family != AF_UNSPEC && address_equal(&here, &there);
}

/*
 * A server's connection has the address of the client, and goes elsewhere. Either the kernel has
 * given one port to both, as it may for connections to different addresses; that is rare. Or a
 * rule of the network leads the connection back to this pooler; then the next one comes at once.
 */
static bool is_led_back(struct registry *registry)
{
	const usec_t now = loop_now(registry->loop), last = registry->odd_loop;

	registry->odd_loop = now;
	return last > 0 && now - last < USEC_PER_SEC;
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
	if (!server || (!is_same_connection(server, client) && !is_led_back(registry)))
		return false;
	*database = server->link.pool->database->name;
	return true;
}
