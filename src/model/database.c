/* SPDX-License-Identifier: ISC */
#include "model/database.h"

#include "model/host/sizing.h"

int database_configured_size(const struct database *database, const struct settings *settings)
{
	const int own = database->config->pool_size;
	const int size = own != POOL_SIZE_INHERIT ? own : settings->default_pool_size;

	return size == POOL_SIZE_AUTO && database->peer_id > 0 ? SIZING_UNKNOWN : size;
}

int database_pool_size(const struct database *database, const struct settings *settings)
{
	const int size = database_configured_size(database, settings);

	if (size != POOL_SIZE_AUTO)
		return size;
	return database->auto_size > 0 ? database->auto_size : SIZING_LEAST;
}

int database_min_pool_size(const struct database *database, const struct settings *settings)
{
	const int own = database->config->min_pool_size;

	return own >= 0 ? own : settings->min_pool_size;
}

int database_reserve_pool_size(const struct database *database, const struct settings *settings)
{
	const int own = database->config->reserve_pool_size;

	return own >= 0 ? own : settings->reserve_pool_size;
}

int database_max_servers(const struct database *database, const struct settings *settings)
{
	const int own = database->config->max_db_connections;

	return own > 0 ? own : settings->max_db_connections;
}

int database_max_clients(const struct database *database, const struct settings *settings)
{
	const int own = database->config->max_db_client_connections;

	return own > 0 ? own : settings->max_db_client_connections;
}
