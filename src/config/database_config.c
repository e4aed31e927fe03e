/* SPDX-License-Identifier: ISC */
#include "config/database_config.h"

#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/user_config.h"

#define FIELD(name) offsetof(struct database_config, name)

static const struct entry_key keys[] = {
	/* Sorted by name. */
	{"application_name", ENTRY_TEXT, FIELD(application_name),
		"application_name of server connections at their start, and so the "
		"default for clients that send none."},
	{"auth_dbname", ENTRY_TEXT, FIELD(auth_dbname),
		"Database in which auth_query runs, in place of the setting."},
	{"auth_query", ENTRY_TEXT, FIELD(auth_query),
		"Query that returns the secret of a user, in place of the setting. It "
		"contains blanks, so it must be quoted."},
	{"auth_user", ENTRY_TEXT, FIELD(auth_user),
		"Server user that runs auth_query, in place of the setting."},
	{"client_encoding", ENTRY_TEXT, FIELD(client_encoding),
		"client_encoding of server connections at their start."},
	{"connect_query", ENTRY_TEXT, FIELD(connect_query),
		"Query for each new server connection, before its first use; it may contain "
		"several statements. An error in it is logged and ignored."},
	{"datestyle", ENTRY_TEXT, FIELD(datestyle),
		"DateStyle of server connections at their start."},
	{"dbname", ENTRY_TEXT, FIELD(dbname),
		"Name of the database on the server. By default the one that clients request."},
	{"host", ENTRY_HOST, FIELD(host),
		"Address of the server: a host name or an IP address; if it starts with /, "
		"the folder of its Unix socket; if it starts with @, an abstract Unix "
		"socket. Each connection uses one host of a list. By default the Unix socket "
		"in unix_socket_dir."},
	{"host_cores", ENTRY_LIMIT, FIELD(host_cores),
		"Processor cores of each host, for pool_size = auto; 0 or not given: as the "
		"server tells, or if it is on this machine those that pgusher may use."},
	{"load_balance_hosts", ENTRY_LOAD_BALANCE, FIELD(load_balance_hosts),
		"How a connection selects a host of a list, in place of the setting."},
	{"max_db_client_connections", ENTRY_LIMIT, FIELD(max_db_client_connections),
		"Client connections of this database, in place of the setting; 0: use "
		"the setting."},
	{"max_db_connections", ENTRY_LIMIT, FIELD(max_db_connections),
		"Server connections of this database, in place of the setting; 0: use "
		"the setting."},
	{"max_pool_waiters", ENTRY_SIZE, FIELD(max_pool_waiters),
		"Clients that may wait in each pool, in place of the setting; 0: no limit; "
		"-1: use the setting."},
	{"max_standby_lag", ENTRY_STANDBY_LAG, FIELD(max_standby_lag),
		"How far behind a standby may be, in place of the setting."},
	{"min_pool_size", ENTRY_SIZE, FIELD(min_pool_size),
		"Server connections that each pool in use keeps open, in place of the "
		"setting; -1: use the setting."},
	{"password", ENTRY_TEXT, FIELD(password),
		"Password of the forced user; by default that of auth_file."},
	{"pool_mode", ENTRY_POOL_MODE, FIELD(pool_mode), "Pool mode, in place of the setting."},
	{"pool_size", ENTRY_POOL_SIZE, FIELD(pool_size),
		"Server connections of each pool, in place of default_pool_size; 0: no "
		"limit; auto: computed, as there; -1: use the setting."},
	{"pool_weight", ENTRY_LIMIT, FIELD(pool_weight),
		"Share of each pool below max_db_connections, max_user_connections and "
		"max_server_connections, compared with other pools: one of weight 2 gets "
		"twice the connections of one of weight 1, beyond min_pool_size. 1 by "
		"default."},
	{"port", ENTRY_PORTS, FIELD(ports),
		"Port of the server, or the number in the name of its Unix socket; for a list of "
		"hosts one for all, or a list as long as theirs, in which an empty item is "
		"5432. 5432 by default."},
	{"query_wait_timeout", ENTRY_WAIT, FIELD(query_wait_timeout),
		"For its clients, in place of the setting; 0: no limit; -1: use the setting."},
	{"query_wait_timeout_action", ENTRY_WAIT_ACTION, FIELD(query_wait_timeout_action),
		"For its clients, in place of the setting."},
	{"reserve_pool", ENTRY_SIZE, FIELD(reserve_pool_size),
		"The older name of reserve_pool_size."},
	{"reserve_pool_size", ENTRY_SIZE, FIELD(reserve_pool_size),
		"Reserve size of each pool, in place of the setting; 0: none; -1: use the "
		"setting."},
	{"server_lifetime", ENTRY_TIME, FIELD(server_lifetime),
		"For its servers, in place of the setting; 0: use the setting."},
	{"session_state", ENTRY_SESSION_STATE, FIELD(session_state),
		"For its clients, in place of the setting."},
	{"target_session_attrs", ENTRY_TARGET_SESSION, FIELD(target_session_attrs),
		"Role of the servers that its clients use, in place of the setting."},
	{"timezone", ENTRY_TEXT, FIELD(timezone),
		"TimeZone of server connections at their start."},
	{"user", ENTRY_TEXT, FIELD(user),
		"Forced server user: all clients share one pool of this user. Clients "
		"still log in to us under their own names."},
	{"worker", ENTRY_SIZE, FIELD(worker),
		"Number of the worker that serves the database, from 0; numbers beyond the last "
		"worker begin again at 0. A change moves no database before the next start. -1 "
		"or not given: the worker with the fewest databases; for the entry *, one that "
		"follows from the name."},
};

static const struct entry_grammar grammar = {
	.keys = keys,
	.key_count = sizeof(keys) / sizeof(keys[0]),
	.size = sizeof(struct database_config),
	.malformed = "syntax error in connection string",
	.unknown = "unrecognized connection parameter",
};

const struct entry_grammar *database_config_grammar(void)
{
	return &grammar;
}

static bool is_template(const char *name)
{
	return strcmp(name, "*") == 0;
}

static void check_name(struct entry *entry)
{
	const size_t length = strlen(entry->name);

	if (strcmp(entry->name, "pgbouncer") == 0)
		entry_refuse(entry, "database name \"pgbouncer\" is reserved");
	else if (length == 0 || length > DATABASE_NAME_LIMIT)
		entry_refuse(entry, "a database name has 1 to %d bytes", DATABASE_NAME_LIMIT);
}

static void check_user(struct entry *entry, const char *user)
{
	if (user && strlen(user) > USER_NAME_LIMIT)
		entry_refuse(entry, "invalid user: a user name has at most %d bytes",
			USER_NAME_LIMIT);
}

static unsigned count_items(const char *list)
{
	unsigned count = list != NULL;

	for (const char *at = list; at && *at; at++)
		count += *at == ',';
	return count;
}

/* libpq: "Connecting to multiple hosts": one port for all hosts, or as many as hosts. */
static void check_ports(struct entry *entry, struct database_config *config)
{
	const unsigned ports = count_items(config->ports), hosts = count_items(config->host);

	if (ports > 1 && ports != hosts)
		entry_refuse(entry, "invalid port: %u ports for %u hosts", ports, hosts);
	else if (ports > 0 && config->ports[0] && config->ports[0] != ',')
		config->port = (uint16_t)strtoul(config->ports, NULL, 10);
}

struct database_config *database_config_parse(const struct ini_place *place, const char *name,
	const char *text, bool lenient, struct problems *problems)
{
	struct database_config config = {
		.name = name,
		.query_wait_timeout = -1,
		.max_pool_waiters = -1,
		.worker = -1,
		.pool_size = -1,
		.min_pool_size = -1,
		.reserve_pool_size = -1,
		.max_standby_lag = STANDBY_LAG_INHERIT,
		.port = DATABASE_DEFAULT_PORT,
	};
	struct database_config *made = NULL;
	struct entry entry;

	if (entry_begin(&entry, &grammar, place, name, text,
		    lenient ? PROBLEM_WARNING : PROBLEM_ERROR, problems)) {
		check_name(&entry);
		entry_read(&entry, &config);
		check_user(&entry, config.user);
		check_ports(&entry, &config);
		if (!config.dbname && !is_template(name))
			config.dbname = name;
		made = entry_finish(&entry, &config);
	}
	entry_end(&entry);
	return made;
}

struct database_config *database_config_from_template(
	const struct database_config *model, const char *name)
{
	struct database_config config;

	if (!model)
		return NULL;
	config = *model;
	config.name = name;
	if (!config.dbname)
		config.dbname = name;
	return entry_pack(&grammar, &config);
}

void database_config_free(struct database_config *config)
{
	if (config && config->password)
		explicit_bzero((char *)config->password, strlen(config->password));
	free(config);
}

unsigned database_config_hosts(const struct database_config *config)
{
	return count_items(config->host);
}

/* The nth item of a list that has so many; it ends at a comma or at the end of the text. */
static const char *item_of(const char *list, unsigned n)
{
	while (n-- > 0)
		list = strchr(list, ',') + 1;
	return list;
}

const char *database_config_host(
	const struct database_config *config, unsigned n, size_t *length)
{
	const char *start = item_of(config->host, n);

	*length = strcspn(start, ",");
	return start;
}

uint16_t database_config_port(const struct database_config *config, unsigned n)
{
	const char *port = config->ports;

	if (!port || !strchr(port, ','))
		return config->port;
	port = item_of(port, n);
	return *port && *port != ',' ? (uint16_t)strtoul(port, NULL, 10)
				     : DATABASE_DEFAULT_PORT;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool database_config_same_target(
	const struct database_config *a, const struct database_config *b)
{
	return same_text(a->dbname, b->dbname) && same_text(a->host, b->host) &&
		same_text(a->ports, b->ports) && same_text(a->user, b->user) &&
		same_text(a->connect_query, b->connect_query) &&
		same_text(a->auth_dbname, b->auth_dbname) &&
		same_text(a->auth_query, b->auth_query) &&
		a->load_balance_hosts == b->load_balance_hosts;
}

bool database_config_same_user(const struct database_config *a, const struct database_config *b)
{
	return same_text(a->user, b->user);
}
