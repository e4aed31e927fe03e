/* SPDX-License-Identifier: ISC */
#include "session/server/own_connection.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "session/server/server_login_state.h"

static struct own_connections *own_of(const struct link *link)
{
	return &link_registry(link)->process->own_connections;
}

static uint16_t *count_of(struct own_connections *own, uint16_t port)
{
	return &own->ports[port % OWN_PORTS];
}

void own_connection_note(struct server_link *server, const struct address *local)
{
	struct own_connections *own = own_of(&server->link);

	own_connection_forget(server);
	if (local->family == AF_UNIX || local->port == 0)
		return;
	server->login->local = *local;
	server->login->remote = server->link.remote;
	memset(server->login->startup_digest, 0, sizeof(server->login->startup_digest));
	lock_take(&own->lock);
	TAILQ_INSERT_TAIL(&own->logins, server->login, in_own);
	SHARED_ADD(*count_of(own, local->port), 1);
	lock_give(&own->lock);
}

/* Returns false when out of memory. */
static bool digest(const void *message, size_t length, uint8_t out[SHA256_SIZE])
{
	const struct digest_piece piece = {message, length};

	return digest_of(DIGEST_SHA256, &piece, 1, out);
}

void own_connection_note_startup(struct server_link *server, const void *message, size_t length)
{
	struct own_connections *own = own_of(&server->link);
	uint8_t found[SHA256_SIZE];

	if (server->login->local.port == 0 || !digest(message, length, found))
		return;
	lock_take(&own->lock);
	memcpy(server->login->startup_digest, found, sizeof(found));
	lock_give(&own->lock);
}

void own_connection_forget(struct server_link *server)
{
	struct own_connections *own = own_of(&server->link);
	struct address *local = &server->login->local;

	if (local->port == 0)
		return;
	lock_take(&own->lock);
	TAILQ_REMOVE(&own->logins, server->login, in_own);
	SHARED_TAKE(*count_of(own, local->port), 1);
	lock_give(&own->lock);
	local->port = 0;
}

/* Returns the server that logs in from this address; NULL: none does. The lock is held. */
static const struct server_link *find(
	const struct own_connections *own, const struct address *from)
{
	const struct server_login *login;

	TAILQ_FOREACH (login, &own->logins, in_own) {
		if (address_equal(&login->local, from))
			return login->server;
	}
	return NULL;
}

/* Is the server's connection the one that this client has made, from end to end? */
static bool is_same_connection(
	const struct server_link *server, const struct client_link *client)
{
	const struct address local = address_local(client->link.stream.fd);
	const struct address here = address_unmapped(&local);
	const struct address there = address_unmapped(&server->login->remote);

	return here.family != AF_UNSPEC && address_equal(&here, &there);
}

/*
 * A server's connection has the address of the client, and goes elsewhere. Either the kernel has
 * given one port to both, as it may for connections to different addresses: where clients and servers
 * connect in turn it does so again and again. Or a rule of the network leads the connection back to this
 * pooler: then the client sends the StartupMessage of the server, and the next one comes at once.
 */
static bool is_led_back(struct own_connections *own, const struct server_link *server,
	const void *message, size_t length, usec_t now)
{
	const usec_t last = own->odd_loop;
	uint8_t found[SHA256_SIZE];

	if (!digest(message, length, found) ||
		memcmp(found, server->login->startup_digest, sizeof(found)) != 0)
		return false;
	own->odd_loop = now;
	return last > 0 && now - last < USEC_PER_SEC;
}

bool own_connection_is_client(const struct client_link *client, const void *message,
	size_t length, char *database, size_t size)
{
	struct own_connections *own = own_of(&client->link);
	const struct address *from = &client->link.remote;
	const struct server_link *server;
	bool is_own = false;

	if (from->family == AF_UNIX)
		return from->pid == getpid();
	if (SHARED_GET(*count_of(own, from->port)) == 0)
		return false;
	lock_take(&own->lock);
	server = find(own, from);
	if (server) {
		is_own = is_same_connection(server, client) ||
			is_led_back(own, server, message, length,
				loop_now(client->link.stream.loop));
		/* A copy: the database may be freed as soon as the server is forgotten. */
		if (is_own)
			text_copy(database, size, server->link.pool->database->name);
	}
	lock_give(&own->lock);
	return is_own;
}
