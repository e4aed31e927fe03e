/* SPDX-License-Identifier: ISC */
/*
 * One entry of [databases]: where its servers are, and its own sizes and limits.
 *
 * Made whole, then never changed. A configuration holds its entries; one that was made from the
 * `*` template stands alone and belongs to whoever asked for it. Texts belong to the entry, the
 * password is wiped with it.
 */
#ifndef PGUSHER_CONFIG_DATABASE_CONFIG_H
#define PGUSHER_CONFIG_DATABASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "config/ini.h"
#include "config/settings.h"

struct entry_grammar;

enum {
	DATABASE_NAME_LIMIT = 63, /* bytes */
	DATABASE_DEFAULT_PORT = 5432,
	/* Hosts that all fail at once are tried in one go: a list is no longer than that bears. */
	DATABASE_HOSTS_LIMIT = 256,
	DATABASE_HOST_LIMIT = 255, /* bytes: no name or path that works has more */
};

enum load_balance { LOAD_BALANCE_ROUND_ROBIN, LOAD_BALANCE_DISABLE };

/* Texts that are NULL were not given. */
struct database_config {
	const char *name;
	const char *host; /* as written: names, addresses or directories, separated by commas */
	const char *dbname; /* at the server; never NULL but in the template */
	const char *user; /* forced: everybody is this one at the server */
	const char *password; /* of the forced user */
	const char *auth_user, *auth_query, *auth_dbname;
	const char *connect_query; /* sent to each new server */
	const char *client_encoding, *datestyle, *timezone, *application_name;
	usec_t server_lifetime; /* 0: inherit */
	usec_t query_wait_timeout; /* -1: inherit; 0: no limit */
	int pool_size, min_pool_size,
		reserve_pool_size; /* -1: inherit; 0: no limit, none, none */
	int max_db_connections, max_db_client_connections; /* 0: inherit */
	enum pool_mode pool_mode; /* POOL_MODE_INHERIT: inherit */
	enum load_balance load_balance_hosts;
	uint16_t port;
	bool automatic; /* made from the template */
};

/*
 * Read an entry. NULL when it has mistakes, which were added to the problems (warnings, if
 * `lenient`), or without memory.
 */
struct database_config *database_config_parse(const struct ini_place *place, const char *name,
	const char *text, bool lenient, struct problems *problems);

/* An automatic database of that name; the caller frees it. NULL without template or memory. */
struct database_config *database_config_from_template(
	const struct database_config *model, const char *name);

/* Wipe and free; NULL is fine. */
void database_config_free(struct database_config *config);

/* How many hosts it lists; 0: none, its servers are at our own Unix sockets. */
unsigned database_config_hosts(const struct database_config *config);

/* The nth host of the list, which ends at a comma or with the text; the list must be that long. */
const char *database_config_host(
	const struct database_config *config, unsigned n, size_t *length);

/*
 * May servers connected for one go on serving the other? False if dbname, host, port, user,
 * connect_query, auth_dbname, auth_query or load_balance_hosts differ.
 */
bool database_config_same_target(
	const struct database_config *a, const struct database_config *b);

/* Do both log in to their servers as the same forced user, or as no forced one? */
bool database_config_same_user(
	const struct database_config *a, const struct database_config *b);

/* The keys of such an entry. */
const struct entry_grammar *database_config_grammar(void);

#endif
