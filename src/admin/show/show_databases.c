/* SPDX-License-Identifier: ISC */
/* SHOW DATABASES and POOLS. */
#include <string.h>

#include "admin/show/show_stream.h"
#include "model/statistics/pool_figures.h"
#include "session/notify/channels.h"

/* The word of load_balance_hosts; NULL unless the database has a list of hosts. */
static const char *load_balance(
	const struct database *database, const struct settings *settings)
{
	if (database_config_hosts(database->config) < 2)
		return NULL;
	return load_balance_name(database_load_balance(database, settings));
}

/* --- DATABASES ---------------------------------------------------------------------------- */

static const struct column database_columns[] = {
	{"name", COLUMN_TEXT},
	{"host", COLUMN_TEXT},
	{"port", COLUMN_INT4},
	{"database", COLUMN_TEXT},
	{"force_user", COLUMN_TEXT},
	{"pool_size", COLUMN_INT4},
	{"min_pool_size", COLUMN_INT4},
	{"reserve_pool_size", COLUMN_INT4},
	{"server_lifetime", COLUMN_INT4},
	{"pool_mode", COLUMN_TEXT},
	{"load_balance_hosts", COLUMN_TEXT},
	{"max_connections", COLUMN_INT4},
	{"current_connections", COLUMN_INT4},
	{"max_client_connections", COLUMN_INT4},
	{"current_client_connections", COLUMN_INT4},
	{"paused", COLUMN_INT4},
	{"disabled", COLUMN_INT4},
};

static void add_database(
	struct result *result, const struct database *database, const struct settings *settings)
{
	const struct database_config *config = database->config;

	result_begin_row(result);
	result_text(result, database->name);
	result_text(result, config->host);
	result_number(result, database->console ? settings->listen_port : config->port);
	result_text(result, config->dbname);
	result_text(result, config->user);
	result_number(result, database_pool_size(database, settings));
	result_number(result, database_min_pool_size(database, settings));
	result_number(result, database_reserve_pool_size(database, settings));
	result_number(result, database_server_lifetime(database, settings) / USEC_PER_SEC);
	result_text(result,
		config->pool_mode == POOL_MODE_INHERIT ? NULL
						       : pool_mode_name(config->pool_mode));
	result_text(result, load_balance(database, settings));
	result_number(result, database_max_servers(database, settings));
	result_number(result, database->cap.servers);
	result_number(result, database_max_clients(database, settings));
	result_number(result, database->clients);
	result_number(result, database->paused);
	result_number(result, database->disabled);
	result_end_row(result);
}

static void add_rows_of_database(struct show_stream *show, void *object, unsigned kind)
{
	const struct database *database = object;

	(void)kind;
	/* An automatic database that is idle is left out until it is used again. */
	if (!database->own_config || database->idle_since == 0)
		add_database(&show->result, database, show->registry->process->settings);
}

static void list_databases(struct show_stream *show)
{
	struct database *database, *next;

	registry_sort(show->registry);
	HASH_ITER (by_name, show->registry->process->directory.databases, database, next)
		show_stream_add_object(show, &database->handle, database, 0);
}

static const struct topic_walk databases = {
	.list = list_databases, .add_rows = add_rows_of_database};

const struct topic show_databases = WALKED_TOPIC("DATABASES", database_columns, &databases);

/* --- POOLS -------------------------------------------------------------------------------- */

static const struct column pool_columns[] = {
	{"database", COLUMN_TEXT},
	{"user", COLUMN_TEXT},
	{"cl_active", COLUMN_INT4},
	{"cl_waiting", COLUMN_INT4},
	{"cl_active_cancel_req", COLUMN_INT4},
	{"cl_waiting_cancel_req", COLUMN_INT4},
	{"sv_active", COLUMN_INT4},
	{"sv_active_cancel", COLUMN_INT4},
	{"sv_being_canceled", COLUMN_INT4},
	{"sv_idle", COLUMN_INT4},
	{"sv_used", COLUMN_INT4},
	{"sv_tested", COLUMN_INT4},
	{"sv_login", COLUMN_INT4},
	{"maxwait", COLUMN_INT4},
	{"maxwait_us", COLUMN_INT4},
	{"pool_mode", COLUMN_TEXT},
	{"load_balance_hosts", COLUMN_TEXT},
};

static void add_rows_of_pool(struct show_stream *show, void *object, unsigned kind)
{
	const struct pool *pool = object;
	const unsigned *clients = pool->client_count, *servers = pool->server_count;
	const usec_t waited = pool_longest_wait(pool, loop_now(show->registry->loop));
	const unsigned listening = servers[SERVERS_LISTENING];
	const bool is_used = channels_are_in_use(pool);
	struct result *result = &show->result;

	(void)kind;
	result_begin_row(result);
	result_text(result, pool->label);
	result_text(result, pool->user->name);
	result_number(result,
		clients[CLIENT_IDLE] + clients[CLIENT_PAIRED] + clients[CLIENT_CONSOLE]);
	result_number(result, pool_waiting_clients(pool));
	result_number(result, clients[CLIENT_CANCEL_SENT]);
	result_number(result, clients[CLIENT_CANCEL_WAITING]);
	result_number(result, servers[SERVERS_ACTIVE] + (is_used ? listening : 0));
	result_number(result, servers[SERVERS_ACTIVE_CANCEL]);
	result_number(result, servers[SERVERS_BEING_CANCELED]);
	result_number(result, servers[SERVERS_IDLE] + (is_used ? 0 : listening));
	result_number(result, servers[SERVERS_USED]);
	result_number(result, servers[SERVERS_TESTED]);
	result_number(result, servers[SERVERS_LOGIN]);
	result_number(result, waited / USEC_PER_SEC);
	result_number(result, waited % USEC_PER_SEC);
	result_text(result, pool_mode_name(pool->mode));
	result_text(result, load_balance(pool->database, show->registry->process->settings));
	result_end_row(result);
}

static void list_pools(struct show_stream *show)
{
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->process->directory.pools, in_directory)
		show_stream_add_object(show, &pool->handle, pool, 0);
}

static const struct topic_walk pools = {.list = list_pools, .add_rows = add_rows_of_pool};

const struct topic show_pools = WALKED_TOPIC("POOLS", pool_columns, &pools);
