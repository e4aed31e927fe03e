/* SPDX-License-Identifier: ISC */
#include "session/server/failover.h"

#include <string.h>

#include "session/server/host_fit.h"
#include "session/server/host_role.h"

/*
 * Clients can cause the error often: by writing in transactions that they began as read-only.
 */
#define PAUSE (2 * USEC_PER_SEC)

/* --- a host name has moved ---------------------------------------------------------------- */

/* Was the server's address resolved from this host name? */
static bool has_host(const struct server_link *server, const char *name)
{
	const struct database_config *config = server->link.pool->database->config;
	const char *host;
	size_t length;

	/* If the list of hosts has changed since, the reload retires the server anyway. */
	if (server->host >= database_config_hosts(config))
		return false;
	host = database_config_host(config, server->host, &length);
	return strlen(name) == length && memcmp(host, name, length) == 0;
}

static bool is_at(const struct server_link *server, const struct address *old)
{
	struct address where =
		address_of((const struct sockaddr *)&server->where, server->where_length);

	where.port = old->port;
	return old->family != AF_UNSPEC && address_equal(&where, old);
}

static unsigned retire_moved(struct pool *pool, const char *name, const struct address *old)
{
	struct pool_walk walk = pool_walk_servers(pool);
	struct link *link;
	unsigned count = 0;

	while ((link = pool_walk_next(&walk)) != NULL) {
		struct server_link *server = server_of(link);

		if (server->close_needed || server->watches || !is_at(server, old) ||
			!has_host(server, name))
			continue;
		server_retire(server, SERVER_CLOSED_DNS);
		count++;
	}
	return count;
}

void failover_host_moved(
	void *argument, const char *name, const struct sockaddr *old, socklen_t length)
{
	struct registry *registry = argument;
	const struct address address = address_of(old, length);
	char text[ADDRESS_TEXT_SIZE];
	unsigned count = 0;
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		count += retire_moved(pool, name, &address);
	hosts_leave(&registry->hosts, name, &address);
	if (count > 0)
		log_write(LEVEL_LOG, "%s is no longer at %s, connections to be retired: %u",
			name, address_host(&address, text), count);
}

/* --- a server refuses to write ------------------------------------------------------------ */

static void forget_hosts(const struct registry *registry, const struct database_config *config)
{
	for (unsigned i = 0; i < database_config_hosts(config); i++) {
		size_t length;
		const char *host = database_config_host(config, i, &length);

		resolver_forget(registry->resolver, host, length);
	}
}

/* A host that is known as a standby is not the primary any more, or never was: use it last. */
static void ask_for_primary(struct server_link *server)
{
	struct database *database = server->link.pool->database;

	if (!database->wants_primary)
		link_log(&server->link, LEVEL_LOG,
			"host %s:%u is a standby and refuses to write, looking for the primary",
			server->at->name, server->at->port);
	database->wants_primary = true;
	host_role_retire(database);
}

void failover_server_is_read_only(struct server_link *server)
{
	const struct registry *registry = link_registry(&server->link);
	struct database *database = server->link.pool->database;
	const usec_t now = loop_now(registry->loop);
	struct pool *pool;

	if (!registry->process->settings->server_failover_check)
		return;
	if (server->at && host_fit_applies(server->link.pool)) {
		/* If its host is read-only, the answer retires servers; if the transaction is, none. */
		if (server->at->role != HOST_ROLE_STANDBY)
			host_role_doubt(server);
		else if (pool_target_session(server->link.pool) == TARGET_ANY)
			ask_for_primary(server);
		return;
	}
	if (now < database->failover_pause)
		return;
	database->failover_pause = now + PAUSE;
	link_log(
		&server->link, LEVEL_LOG, "the server is read-only, looking for its successor");
	if (registry->resolver)
		forget_hosts(registry, database->config);
	TAILQ_FOREACH (pool, &database->pools, in_database)
		pool_retire_servers(pool, SERVER_CLOSED_DNS);
}
