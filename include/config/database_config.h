/* SPDX-License-Identifier: ISC */
/*
 * One entry of [databases]: where its servers are, and its own sizes and limits.
 *
 * Immutable once made. A configuration owns its entries; one made from the `*` template is
 * owned by the caller that requested it. The entry owns its texts; the password is wiped with
 * it.
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
	/* Hosts that fail at once are all tried within one call, so the list has a limit. */
	DATABASE_HOSTS_LIMIT = 256,
	DATABASE_HOST_LIMIT = 255, /* bytes: longer names or paths do not work */
};

/* A text is NULL if it is not given. */
struct database_config {
	const char *name;
	const char *host; /* as written: names, addresses or directories, separated by commas */
	const char *dbname; /* on the server; NULL in the template only */
	const char *user; /* forced: all clients of the database use this server user */
	const char *password; /* of the forced user */
	const char *auth_user, *auth_query, *auth_dbname;
	const char *connect_query; /* sent to each new server */
	const char *client_encoding, *datestyle, *timezone, *application_name;
	usec_t server_lifetime; /* 0: inherit */
	usec_t query_wait_timeout; /* -1: inherit; 0: no limit */
	int pool_size; /* -1: inherit; 0: no limit; POOL_SIZE_AUTO */
	int min_pool_size, reserve_pool_size; /* -1: inherit; 0: none */
	int host_cores; /* of each host, for POOL_SIZE_AUTO; 0: not given */
	int max_pool_waiters; /* -1: inherit; 0: no limit */
	int max_db_connections, max_db_client_connections; /* 0: inherit */
	int pool_weight; /* of its pools; 0: 1 */
	int worker; /* the number of its home, modulo the number of workers; -1: not given */
	enum pool_mode pool_mode; /* POOL_MODE_INHERIT: inherit */
	enum session_state session_state; /* SESSION_STATE_INHERIT: inherit */
	enum wait_action query_wait_timeout_action; /* WAIT_ACTION_INHERIT: inherit */
	enum load_balance load_balance_hosts; /* LOAD_BALANCE_INHERIT: inherit */
	enum target_session target_session_attrs; /* TARGET_INHERIT: inherit */
	standby_lag max_standby_lag; /* STANDBY_LAG_INHERIT: inherit */
	const char *ports; /* as written: one, or one for each host, separated by commas */
	uint16_t port; /* the first one */
};

/*
 * Parse an entry. Returns NULL if it has mistakes, which are added to the problems (as
 * warnings if `lenient`), or when out of memory. The caller frees it.
 */
struct database_config *database_config_parse(const struct ini_place *place, const char *name,
	const char *text, bool lenient, struct problems *problems);

/*
 * Make an automatic database of this name from the template. The caller frees it. Returns NULL
 * without a template or when out of memory.
 */
struct database_config *database_config_from_template(
	const struct database_config *model, const char *name);

/* Wipe and free; NULL is allowed. */
void database_config_free(struct database_config *config);

/* Number of hosts in the list; 0: none, the servers are at our own Unix socket directory. */
unsigned database_config_hosts(const struct database_config *config);

/*
 * The nth host of the list, from 0; it ends at a comma or at the end of the text. The index
 * must be within the list.
 */
const char *database_config_host(
	const struct database_config *config, unsigned n, size_t *length);

/* The port of the nth host of the list, from 0. */
uint16_t database_config_port(const struct database_config *config, unsigned n);

/*
 * Whether servers connected for one entry may continue to serve the other. False if dbname,
 * host, port, user, connect_query, auth_dbname, auth_query or load_balance_hosts differ.
 * Servers of the wrong role are retired by session/server/host_role.
 */
bool database_config_same_target(
	const struct database_config *a, const struct database_config *b);

/* Whether both have the same forced server user, or both none. */
bool database_config_same_user(
	const struct database_config *a, const struct database_config *b);

/* The keys of an entry. */
const struct entry_grammar *database_config_grammar(void);

#endif
