/* SPDX-License-Identifier: ISC */
/* SHOW VERSION, STATE, LISTS and MEM: the process as a whole. */
#include "admin/show/topic.h"
#include "model/peer.h"
#include "model/statistics/pool_figures.h"
#include "net/dns_zones.h"

/* --- VERSION ------------------------------------------------------------------------------ */

static const struct column version_columns[] = {{"version", COLUMN_TEXT}};

static void fill_version(struct result *result, const struct show_request *request)
{
	result_begin_row(result);
	result_text(result, request->registry->process->version);
	result_end_row(result);
}

const struct topic show_version = TOPIC("VERSION", version_columns, fill_version);

/* --- STATE -------------------------------------------------------------------------------- */

static const struct column state_columns[] = {{"key", COLUMN_TEXT}, {"value", COLUMN_TEXT}};

static void add_state(struct result *result, const char *key, bool is)
{
	result_begin_row(result);
	result_text(result, key);
	result_text(result, is ? "yes" : "no");
	result_end_row(result);
}

static void fill_state(struct result *result, const struct show_request *request)
{
	const enum operation operation = request->registry->process->operation;

	add_state(result, "active", operation == OPERATION_RUNNING);
	add_state(result, "paused", operation == OPERATION_PAUSED);
	add_state(result, "suspended", operation == OPERATION_SUSPENDED);
}

const struct topic show_state = TOPIC("STATE", state_columns, fill_state);

/* --- LISTS -------------------------------------------------------------------------------- */

static const struct column list_columns[] = {{"list", COLUMN_TEXT}, {"items", COLUMN_INT4}};

static void add_list(struct result *result, const char *name, size_t items)
{
	result_begin_row(result);
	result_text(result, name);
	result_number(result, (int64_t)items);
	result_end_row(result);
}

static size_t count_peers(const struct registry *registry)
{
	size_t count = 0;

	while (snapshot_peer(registry->process->config, count))
		count++;
	return count;
}

static size_t count_peer_pools(const struct registry *registry)
{
	const struct peer *peer;
	size_t count = 0;

	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		count++;
	return count;
}

static size_t count_zones(const struct resolver *resolver)
{
	const struct dns_zones *zones = resolver ? resolver_zones(resolver) : NULL;

	return zones ? zones->count : 0;
}

static void fill_lists(struct result *result, const struct show_request *request)
{
	const struct registry *registry = request->registry;
	const struct resolver *resolver = registry->resolver;

	add_list(result, "databases", registry_count_databases(registry));
	add_list(result, "users", registry_count_users(registry));
	add_list(result, "peers", count_peers(registry));
	add_list(result, "pools", registry_count_pools(registry));
	add_list(result, "peer_pools", count_peer_pools(registry));
	add_list(result, "free_clients", registry->clients.free);
	add_list(result, "used_clients", registry->clients.used);
	add_list(result, "login_clients", registry->login_count);
	add_list(result, "free_servers", registry->servers.free);
	add_list(result, "used_servers", registry->servers.used);
	add_list(result, "dns_names", resolver ? resolver_names(resolver) : 0);
	add_list(result, "dns_zones", count_zones(resolver));
	add_list(result, "dns_queries", resolver ? resolver_in_flight(resolver) : 0);
	add_list(result, "dns_pending", 0);
}

const struct topic show_lists = TOPIC("LISTS", list_columns, fill_lists);

/* --- MEM ---------------------------------------------------------------------------------- */

static const struct column mem_columns[] = {
	{"name", COLUMN_TEXT},
	{"size", COLUMN_INT4},
	{"used", COLUMN_INT4},
	{"free", COLUMN_INT4},
	{"memtotal", COLUMN_INT4},
};

static void add_objects(
	struct result *result, const char *name, size_t size, size_t used, size_t free)
{
	result_begin_row(result);
	result_text(result, name);
	result_number(result, (int64_t)size);
	result_number(result, (int64_t)used);
	result_number(result, (int64_t)free);
	result_number(result, (int64_t)((used + free) * size));
	result_end_row(result);
}

static void fill_mem(struct result *result, const struct show_request *request)
{
	const struct registry *registry = request->registry;
	const struct slab *const slabs[] = {&registry->servers, &registry->clients,
		&registry->helds, &registry->loop->backlogs};
	const struct pool *pool;
	size_t prepared = 0;

	for (size_t i = 0; i < sizeof(slabs) / sizeof(slabs[0]); i++)
		add_objects(result, slabs[i]->name, slabs[i]->object_size, slabs[i]->used,
			slabs[i]->free);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		prepared += pool_prepared_statements(pool);
	add_objects(result, "server_prepared_statement_cache", sizeof(struct server_statement),
		prepared, 0);
}

const struct topic show_mem = TOPIC("MEM", mem_columns, fill_mem);
