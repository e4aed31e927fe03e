/* SPDX-License-Identifier: ISC */
#include "model/database.h"

int database_pool_size(const struct database *database, const struct settings *settings)
{
	const int own = database->config->pool_size;

	return own >= 0 ? own : settings->default_pool_size;
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
