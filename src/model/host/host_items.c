/* SPDX-License-Identifier: ISC */
#include "model/host/host_items.h"

#include <string.h>

static struct process *process_of(const struct pool *pool)
{
	return pool->registry->process;
}

static struct host_item item_of(
	const struct process *process, const struct database_config *config, unsigned n)
{
	struct host_item item = {.port = config->port};

	if (config->host) {
		item.name = database_config_host(config, n, &item.length);
		item.port = database_config_port(config, n);
	} else {
		item.name = process->settings->unix_socket_dir;
		item.length = strlen(item.name);
	}
	return item;
}

struct host_item host_items_nth(const struct pool *pool, unsigned n)
{
	return item_of(process_of(pool), pool->database->config, n);
}

void host_item_copy_name(const struct host_item *item, char name[DATABASE_HOST_LIMIT + 1])
{
	const size_t length =
		item->length <= DATABASE_HOST_LIMIT ? item->length : DATABASE_HOST_LIMIT;

	memcpy(name, item->name, length);
	name[length] = '\0';
}

/* Has it addresses of its own, as names do? */
static bool has_addresses(const struct host_item *item)
{
	char name[DATABASE_HOST_LIMIT + 1];
	struct sockaddr_storage literal;

	host_item_copy_name(item, name);
	return name[0] != '/' && name[0] != '@' &&
		resolver_literal(name, item->port, &literal) == 0;
}

struct host *host_items_of_server(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const struct database_config *config = pool->database->config;
	struct host_item item;
	struct address address;

	if (config->host && server->host >= database_config_hosts(config))
		return NULL;
	item = host_items_nth(pool, server->host);
	if (!has_addresses(&item))
		return hosts_open(&pool->registry->hosts, &item, NULL);
	address = address_of((const struct sockaddr *)&server->where, server->where_length);
	return hosts_open(&pool->registry->hosts, &item, &address);
}

struct host *host_items_name(const struct pool *pool, unsigned n)
{
	const struct host_item item = host_items_nth(pool, n);
	struct host *host;

	if (!has_addresses(&item))
		return NULL;
	host = hosts_open(&pool->registry->hosts, &item, NULL);
	if (host)
		host->is_name = true;
	return host;
}

bool host_items_have(const struct pool *pool, const struct host *host)
{
	const struct database_config *config = pool->database->config;
	const unsigned count = config->host ? database_config_hosts(config) : 1;

	for (unsigned n = 0; n < count; n++) {
		const struct host_item item = host_items_nth(pool, n);

		if (host_is_of(host, &item))
			return true;
	}
	return false;
}

struct host *host_items_next(const struct registry *registry,
	const struct database_config *config, unsigned *n, const struct host *after)
{
	const unsigned count = config->host ? database_config_hosts(config) : 1;

	for (; *n < count; ++*n, after = NULL) {
		const struct host_item item = item_of(registry->process, config, *n);
		struct host *host = hosts_next(&registry->hosts, &item, after);

		if (host)
			return host;
	}
	return NULL;
}

static void mark_listed(struct registry *registry, const struct database_config *config)
{
	struct host *host = NULL;
	unsigned n = 0;

	while ((host = host_items_next(registry, config, &n, host)) != NULL)
		host->listed = true;
}

void host_items_prune(struct registry *registry)
{
	struct database *database;
	struct host *host;

	TAILQ_FOREACH (host, &registry->hosts, in_hosts)
		host->listed = false;
	TAILQ_FOREACH (database, &registry->databases, in_registry) {
		if (!database->console)
			mark_listed(registry, database->config);
	}
	hosts_prune(&registry->hosts);
}

/* --- explaining --------------------------------------------------------------------------- */

/* Enough for the hosts that an operator can look at. */
enum { EXPLANATION_MAX = 1000 };

static void explain(const struct host *host, struct buffer *out)
{
	char text[HOST_TEXT_SIZE];

	if (out->length > EXPLANATION_MAX)
		return;
	buffer_printf(out, "%s%s ", out->length > 0 ? "; " : "", host_text(host, text));
	if (host->failed_since > 0)
		buffer_printf(out, "cannot be used: %s", host->error);
	else if (host->superseded)
		buffer_printf(out, "is not the primary any more");
	else if (host->role == HOST_ROLE_UNKNOWN)
		buffer_printf(out, "has not told its role");
	else
		buffer_printf(out, "is a %s%s", host->read_only ? "read-only " : "",
			host_role_name(host));
}

void host_items_explain(const struct pool *pool, struct buffer *out)
{
	const struct database_config *config = pool->database->config;
	const unsigned count = config->host ? database_config_hosts(config) : 1;

	if (count < 2 && pool_target_session(pool) == TARGET_ANY)
		return;
	for (unsigned n = 0; n < count; n++) {
		const struct host_item item = host_items_nth(pool, n);
		const struct host *host = NULL;

		while ((host = hosts_next(&pool->registry->hosts, &item, host)) != NULL) {
			if (!host->is_name || host->failed_since > 0)
				explain(host, out);
		}
	}
}
