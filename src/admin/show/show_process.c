/* SPDX-License-Identifier: ISC */
/* SHOW VERSION, STATE, LISTS and MEM: the process as a whole. */
#include "admin/show/topic.h"
#include "model/peer.h"
#include "model/shared/all_names.h"
#include "model/shared/all_users.h"
#include "model/shared/all_workers.h"
#include "model/statistics/pool_figures.h"

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

static void fill_lists(struct result *result, const struct show_request *request)
{
	const struct registry *registry = request->registry;
	const struct process *process = registry->process;
	const struct worker_sums sums = all_workers_sum(process);

	add_list(result, "databases", registry_count_databases(registry));
	add_list(result, "users", all_users_count(process));
	add_list(result, "peers", count_peers(registry));
	add_list(result, "pools", registry_count_pools(registry));
	add_list(result, "peer_pools", count_peer_pools(registry));
	add_list(result, "free_clients", sums.clients.free);
	add_list(result, "used_clients", sums.clients.used);
	add_list(result, "login_clients", sums.logins);
	add_list(result, "free_servers", sums.servers.free);
	add_list(result, "used_servers", sums.servers.used);
	add_list(result, "dns_names", all_names_count(process));
	add_list(result, "dns_zones", all_zones_count(process));
	add_list(result, "dns_queries", all_names_in_flight(process));
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
	const struct worker_sums sums = all_workers_sum(registry->process);
	const struct slab *const slabs[] = {
		&sums.servers, &sums.clients, &sums.helds, &sums.backlogs};
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
