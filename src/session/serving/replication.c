/* SPDX-License-Identifier: ISC */
#include "session/serving/replication.h"

#include <stdlib.h>
#include <string.h>

#include "session/link/close.h"
#include "session/parameters/parameter_sync.h"
#include "session/pool/launch.h"
#include "session/pool/lookup.h"
#include "session/relay/pair.h"
#include "session/relay/relay.h"
#include "session/serving/welcome.h"
#include "wire/parameter_values.h"
#include "wire/writer.h"

bool replication_want(struct client_link *client, const struct startup_login *wanted)
{
	const char *options = wanted->options ? wanted->options : "";
	const size_t size = strlen(options) + 1;

	if (wanted->replication == REPLICATION_NONE)
		return true;
	client->replica = malloc(sizeof(*client->replica) + size);
	if (!client->replica)
		return false;
	client->replica->server = NULL;
	memcpy(client->replica->options, options, size);
	client->replication = wanted->replication;
	return true;
}

/* --- the server of a client --------------------------------------------------------------- */

/* Returns the client that has waited longest and has no server that logs in for it, or NULL. */
static struct client_link *first_without_server(const struct pool *pool)
{
	struct link *link;

	TAILQ_FOREACH (link, &pool->welcoming, place) {
		const struct replica *replica = client_of(link)->replica;

		if (replica && !replica->server)
			return client_of(link);
	}
	return NULL;
}

void replication_launch(struct pool *pool)
{
	struct client_link *client;

	while ((client = first_without_server(pool)) != NULL && launch_for_replication(client))
		;
}

/* Would the pool get the place below a cap if one of its servers were closed? */
static bool is_next_below_cap(const struct pool *pool)
{
	struct cap *cap = pool->wait.cap;

	return cap && cap_is_full(pool, cap->kind) && cap_first_waiting(cap) == pool;
}

bool replication_is_next(const struct pool *pool)
{
	const struct client_link *client = first_without_server(pool);
	const struct client_link *waiter = pool_first_waiter(pool);
	const struct lookup *lookup = lookup_next(pool);
	const int size = pool_size(pool);

	return client &&
		((size > 0 && pool_servers(pool) >= (unsigned)size) ||
			is_next_below_cap(pool)) &&
		(!waiter || client->wait_start < waiter->wait_start) &&
		(!lookup || client->wait_start < lookup->since);
}

static void write_pair(struct buffer *message, const char *name, const char *value)
{
	if (!value)
		return;
	writer_string(message, name);
	writer_string(message, value);
}

void replication_write_startup(const struct server_link *server, struct buffer *message)
{
	const struct client_link *client = server->launched_for;
	const struct parameter_table *table = link_registry(&server->link)->parameters;
	struct parameter_values wanted;

	if (!client)
		return;
	parameter_values_read(client->link.parameters, &wanted);
	write_pair(message, "replication",
		server->replication == REPLICATION_LOGICAL ? "database" : "yes");
	for (unsigned i = 0; i < parameter_count(table); i++)
		write_pair(message, parameter_name(table, i), wanted.tracked[i]);
	for (unsigned i = 0; i < wanted.count; i++)
		write_pair(message, wanted.followed[i].name, wanted.followed[i].value);
	if (client->replica->options[0] != '\0')
		write_pair(message, "options", client->replica->options);
}

struct client_link *replication_detach(struct server_link *server)
{
	struct client_link *client = server->launched_for;

	if (!client)
		return NULL;
	client->replica->server = NULL;
	server->launched_for = NULL;
	return client;
}

void replication_begin(struct server_link *server, struct buffer *head)
{
	struct client_link *client = replication_detach(server);

	if (!parameter_sync_adopt(client, server))
		client_close_for(client, REASON_NO_MEMORY);
	else if (client->link.state == CLIENT_WELCOMING)
		welcome_replica(client, head);
	if (client->link.state == CLIENT_CLOSED) {
		server_close_for(server, REASON_REPLICATION_CLIENT_WAS_CLOSED);
		return;
	}
	pair_bind(client, server);
	relay_client_resume(client);
}

/* --- the end ------------------------------------------------------------------------------ */

void replication_close_server(struct client_link *client)
{
	struct server_link *server = client->replica ? client->replica->server : NULL;

	if (!server)
		return;
	replication_detach(server);
	server_close_for(server, REASON_REPLICATION_CLIENT_WAS_CLOSED);
}

void replication_client_closed(struct client_link *client)
{
	replication_close_server(client);
	free(client->replica);
	client->replica = NULL;
}

bool replication_is_endless(const struct server_link *server)
{
	if (!server->replication)
		return false;
	return server->copy != COPY_NONE
		? server->copy == COPY_BOTH
		: server->transaction_status == 'I' && requests_is_empty(&server->requests);
}

/* --- shutdown ----------------------------------------------------------------------------- */

static bool is_endless(const struct link *link)
{
	if (!client_of((struct link *)link)->replica)
		return false;
	return link->state == CLIENT_IDLE ||
		(link->state == CLIENT_PAIRED &&
			replication_is_endless((const struct server_link *)link->peer));
}

static unsigned count_endless(const struct registry *registry)
{
	const struct pool *pool;
	const struct link *link;
	unsigned count = 0;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		TAILQ_FOREACH (link, &pool->clients, place)
			count += is_endless(link);
	}
	return count;
}

void replication_end_last(struct registry *registry, unsigned clients)
{
	struct link *link, *next;
	struct pool *pool;

	if (count_endless(registry) < clients)
		return;
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		TAILQ_FOREACH_SAFE (link, &pool->clients, place, next)
			client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
	}
}
