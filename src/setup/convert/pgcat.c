/* SPDX-License-Identifier: ISC */
/*
 * pgcat.toml: [general], [pools.NAME] with users, shards and servers, [plugins], as PgCat's
 * reference of its configuration describes them.
 */
#include <string.h>

#include "config/database_config.h"
#include "config/entry.h"
#include "setup/convert/auth_rules.h"
#include "setup/convert/facts.h"
#include "setup/convert/poolers.h"
#include "setup/convert/toml.h"

enum { HOSTS_MOST = 256 };

enum scope { ROOT, GENERAL, POOL, USER, SHARD };

static const struct fact rows[] = {
	{ROOT, "general", FACT_PART, NOWHERE, NULL},
	{ROOT, "include", FACT_NONE, NOWHERE,
		"%include of our file reads others; convert each, and name it there"},
	{ROOT, "plugins", FACT_NONE, NOWHERE,
		"no plugins; roles and GRANT decide what a user may run, and the server's log_statement "
		"logs it"},
	{ROOT, "pools", FACT_PART, NOWHERE, NULL},

	{GENERAL, "admin_auth_type", FACT_PART, NOWHERE, NULL},
	{GENERAL, "admin_password", FACT_PART, NOWHERE, NULL},
	{GENERAL, "admin_username", FACT_PART, NOWHERE, NULL},
	{GENERAL, "auth_query", FACT_PART, NOWHERE, NULL},
	{GENERAL, "auth_query_password", FACT_PART, NOWHERE, NULL},
	{GENERAL, "auth_query_user", FACT_PART, NOWHERE, NULL},
	{GENERAL, "autoreload", FACT_NONE, NOWHERE,
		"files are read again by SIGHUP, RELOAD or `systemctl reload`"},
	{GENERAL, "ban_time", FACT_NONE, NOWHERE,
		"no ban: a host that fails is tried again after 1 to 30 seconds, by one login"},
	{GENERAL, "connect_timeout", FACT_MILLISECONDS, SETTING("server_connect_timeout"),
		"counts connecting and logging in; waits for a free server are query_wait_timeout"},
	{GENERAL, "dns_cache_enabled", FACT_ALWAYS, NOWHERE,
		"names are looked up again after dns_max_ttl"},
	{GENERAL, "dns_max_ttl", FACT_SECONDS, SETTING("dns_max_ttl"), NULL},
	{GENERAL, "enable_prometheus_exporter", FACT_PART, NOWHERE, NULL},
	{GENERAL, "healthcheck_delay", FACT_MILLISECONDS, SETTING("server_check_delay"), NULL},
	{GENERAL, "healthcheck_timeout", FACT_NONE, NOWHERE,
		"a check is part of query_wait_timeout of the client that waits for it"},
	{GENERAL, "host", FACT_TEXT, SETTING("listen_addr"), NULL},
	{GENERAL, "idle_client_in_transaction_timeout", FACT_MILLISECONDS,
		SETTING("idle_transaction_timeout"), NULL},
	{GENERAL, "idle_timeout", FACT_MILLISECONDS, SETTING("server_idle_timeout"), NULL},
	{GENERAL, "log_client_connections", FACT_PART, NOWHERE, NULL},
	{GENERAL, "log_client_disconnections", FACT_PART, NOWHERE, NULL},
	{GENERAL, "port", FACT_NUMBER, SETTING("listen_port"), NULL},
	{GENERAL, "prepared_statements", FACT_PART, NOWHERE, NULL},
	{GENERAL, "prepared_statements_cache_size", FACT_PART, NOWHERE, NULL},
	{GENERAL, "prometheus_exporter_port", FACT_PART, NOWHERE, NULL},
	{GENERAL, "server_lifetime", FACT_MILLISECONDS, SETTING("server_lifetime"), NULL},
	{GENERAL, "server_round_robin", FACT_FLAG, SETTING("server_round_robin"), NULL},
	{GENERAL, "server_tls", FACT_PART, NOWHERE, NULL},
	{GENERAL, "shutdown_timeout", FACT_MILLISECONDS, SETTING("shutdown_timeout"), NULL},
	{GENERAL, "tcp_keepalives_count", FACT_NUMBER, SETTING("tcp_keepcnt"), NULL},
	{GENERAL, "tcp_keepalives_idle", FACT_NUMBER, SETTING("tcp_keepidle"), NULL},
	{GENERAL, "tcp_keepalives_interval", FACT_NUMBER, SETTING("tcp_keepintvl"), NULL},
	{GENERAL, "tcp_user_timeout", FACT_NUMBER, SETTING("tcp_user_timeout"), NULL},
	{GENERAL, "tls_certificate", FACT_TEXT, SETTING("client_tls_cert_file"), NULL},
	{GENERAL, "tls_private_key", FACT_TEXT, SETTING("client_tls_key_file"), NULL},
	{GENERAL, "validate_config", FACT_ALWAYS, NOWHERE,
		"a start and a RELOAD check the whole configuration"},
	{GENERAL, "verify_server_certificate", FACT_PART, NOWHERE, NULL},
	{GENERAL, "worker_threads", FACT_NUMBER, SETTING("workers"), NULL},

	{POOL, "auth_query", FACT_PART, NOWHERE, NULL},
	{POOL, "auth_query_password", FACT_PART, NOWHERE, NULL},
	{POOL, "auth_query_user", FACT_PART, NOWHERE, NULL},
	{POOL, "automatic_sharding_key", FACT_NONE, NOWHERE, "no sharding"},
	{POOL, "checkout_failure_limit", FACT_NONE, NOWHERE,
		"a client whose wait is too long is closed, or gets an error "
		"(query_wait_timeout_action)"},
	{POOL, "cleanup_server_connections", FACT_ALWAYS, NOWHERE,
		"settings of clients never reach others, unless session_state = ignore"},
	{POOL, "connect_timeout", FACT_MILLISECONDS, SETTING("server_connect_timeout"), NULL},
	{POOL, "db_activity_based_routing", FACT_NEVER, NOWHERE,
		"queries are not divided between primary and replicas"},
	{POOL, "db_activity_init_delay", FACT_NONE, NOWHERE, "as db_activity_based_routing"},
	{POOL, "db_activity_ttl", FACT_NONE, NOWHERE, "as db_activity_based_routing"},
	{POOL, "default_role", FACT_PART, NOWHERE, NULL},
	{POOL, "default_shard", FACT_PART, NOWHERE, NULL},
	{POOL, "idle_timeout", FACT_MILLISECONDS, SETTING("server_idle_timeout"), NULL},
	{POOL, "load_balancing_mode", FACT_PART, NOWHERE, NULL},
	{POOL, "log_client_parameter_status_changes", FACT_NEVER, NOWHERE,
		"verbose = 1 logs decisions about sessions"},
	{POOL, "plugins", FACT_NONE, NOWHERE,
		"no plugins; roles and GRANT decide what a user may run, and the server's log_statement "
		"logs it"},
	{POOL, "pool_mode", FACT_TEXT, {NULL, "pool_mode", "pool_mode"}, NULL},
	{POOL, "prepared_statements_cache_size", FACT_PART, NOWHERE, NULL},
	{POOL, "primary_reads_enabled", FACT_PART, NOWHERE, NULL},
	{POOL, "query_parser_enabled", FACT_NEVER, NOWHERE,
		"texts are not parsed to find a server: the name of the database says which one"},
	{POOL, "query_parser_max_length", FACT_NONE, NOWHERE, "as query_parser_enabled"},
	{POOL, "query_parser_read_write_splitting", FACT_PART, NOWHERE, NULL},
	{POOL, "regex_search_limit", FACT_NONE, NOWHERE, "no sharding"},
	{POOL, "replica_to_primary_failover_enabled", FACT_PART, NOWHERE, NULL},
	{POOL, "server_lifetime", FACT_MILLISECONDS,
		{"server_lifetime", "server_lifetime", NULL}, NULL},
	{POOL, "shard_id_regex", FACT_NONE, NOWHERE, "no sharding"},
	{POOL, "sharding_function", FACT_PART, NOWHERE, NULL},
	{POOL, "sharding_key_regex", FACT_NONE, NOWHERE, "no sharding"},
	{POOL, "shards", FACT_PART, NOWHERE, NULL},
	{POOL, "users", FACT_PART, NOWHERE, NULL},

	{USER, "auth_type", FACT_PART, NOWHERE, NULL},
	{USER, "connect_timeout", FACT_MILLISECONDS, SETTING("server_connect_timeout"), NULL},
	{USER, "idle_timeout", FACT_MILLISECONDS, SETTING("server_idle_timeout"), NULL},
	{USER, "min_pool_size", FACT_NUMBER, {NULL, "min_pool_size", NULL}, NULL},
	{USER, "password", FACT_PART, NOWHERE, NULL},
	{USER, "pool_mode", FACT_TEXT, {NULL, "pool_mode", "pool_mode"}, NULL},
	{USER, "pool_size", FACT_NUMBER, {NULL, "pool_size", "pool_size"}, NULL},
	{USER, "server_lifetime", FACT_MILLISECONDS,
		{"server_lifetime", "server_lifetime", NULL}, NULL},
	{USER, "server_password", FACT_PART, NOWHERE, NULL},
	{USER, "server_username", FACT_PART, NOWHERE, NULL},
	{USER, "statement_timeout", FACT_MILLISECONDS, {"query_timeout", NULL, "query_timeout"},
		"query_timeout ends the client, not the query alone; the server's statement_timeout "
		"(ALTER ROLE ... SET) ends the query"},
	{USER, "username", FACT_PART, NOWHERE, NULL},

	{SHARD, "database", FACT_PART, NOWHERE, NULL},
	{SHARD, "mirrors", FACT_NONE, NOWHERE, "queries are not mirrored"},
	{SHARD, "servers", FACT_PART, NOWHERE, NULL},
};

static const struct facts facts = {rows, sizeof(rows) / sizeof(rows[0]), "PgCat"};

/* --- [general] ---------------------------------------------------------------------------- */

static enum auth_method method_of(struct conversion *conversion, const struct source_node *node)
{
	const char *word = node ? node->text : NULL;

	if (!word || strcmp(word, "md5") == 0)
		return AUTH_METHOD_MD5;
	if (strcmp(word, "trust") == 0)
		return AUTH_METHOD_TRUST;
	if (strcmp(word, "scram-sha-256") == 0 || strcmp(word, "scram") == 0)
		return AUTH_METHOD_SCRAM;
	conversion_lose(conversion, node, "no such way to log in here; md5 is used");
	return AUTH_METHOD_MD5;
}

static void convert_admin(struct conversion *conversion, const struct source_node *general)
{
	const struct source_node *node = source_find(general, "admin_username");
	const char *password = source_text(general, "admin_password");

	if (!node || !node->text || node->kind > SOURCE_STRING)
		return;
	conversion_set(conversion, node, "admin_users", node->text);
	conversion_add_user(conversion, node, node->text, password ? password : "");
	auth_rules_add(conversion,
		&(struct auth_rule){.node = node,
			.database = "pgbouncer",
			.user = node->text,
			.method = method_of(
				conversion, source_find(general, "admin_auth_type"))});
}

static void convert_flag(struct conversion *conversion, const struct source_node *general,
	const char *name, const char *setting, const char *on, const char *off)
{
	const struct source_node *node = source_find(general, name);
	const char *value = node && fact_is_on(node->text) ? on : off;

	if (node && value)
		conversion_set(conversion, node, setting, value);
}

static void convert_tls(struct conversion *conversion, const struct source_node *general)
{
	const struct source_node *certificate = source_find(general, "tls_certificate");
	const char *verify = source_text(general, "verify_server_certificate");
	const bool verifies = verify && fact_is_on(verify);

	if (certificate)
		conversion_set(conversion, certificate, "client_tls_sslmode", "allow");
	convert_flag(conversion, general, "server_tls", "server_tls_sslmode",
		verifies ? "verify-full" : "require", "disable");
}

static void convert_metrics(struct conversion *conversion, const struct source_node *general)
{
	const struct source_node *node = source_find(general, "enable_prometheus_exporter");
	const char *port = source_text(general, "prometheus_exporter_port");

	if (!node || !fact_is_on(node->text))
		return;
	conversion_set(conversion, node, "metrics_port", port ? port : "9930");
	conversion_note(conversion, node,
		"other names of metrics (doc/metrics.md), on metrics_listen_addr = 127.0.0.1 only");
}

/* PgCat puts the name into the text, in quotes; here it is a parameter. */
static const char *query_of(struct conversion *conversion, const char *query)
{
	const char *quoted = strstr(query, "'$1'");

	if (!quoted)
		return query;
	return conversion_text(
		conversion, "%.*s$1%s", (int)(quoted - query), query, quoted + strlen("'$1'"));
}

/* `database`: NULL for [general]. */
static void convert_auth_query(
	struct conversion *conversion, const struct source_node *parent, const char *database)
{
	const struct source_node *query = source_find(parent, "auth_query");
	const struct source_node *user = source_find(parent, "auth_query_user");
	const char *password = source_text(parent, "auth_query_password");

	if (query && query->text) {
		const char *text = query_of(conversion, query->text);

		if (database)
			conversion_put(conversion, query, DRAFT_DATABASES, database,
				"auth_query", text);
		else
			conversion_set(conversion, query, "auth_query", text);
	}
	if (!user || !user->text)
		return;
	if (database)
		conversion_put(
			conversion, user, DRAFT_DATABASES, database, "auth_user", user->text);
	else
		conversion_set(conversion, user, "auth_user", user->text);
	conversion_add_user(conversion, user, user->text, password ? password : "");
}

/* 0 turns statements off there, which then fail in transaction mode: ours go on. */
static void convert_cache_size(struct conversion *conversion, const struct source_node *parent)
{
	const struct source_node *node = source_find(parent, "prepared_statements_cache_size");

	if (node && node->text && strcmp(node->text, "0") != 0)
		conversion_set(conversion, node, "max_prepared_statements", node->text);
}

static void convert_general(struct conversion *conversion, const struct source_node *general)
{
	const struct source_node *prepared = source_find(general, "prepared_statements");

	facts_apply(conversion, &facts, GENERAL, general, NULL);
	convert_admin(conversion, general);
	convert_tls(conversion, general);
	convert_metrics(conversion, general);
	convert_flag(
		conversion, general, "log_client_connections", "log_connections", "1", "0");
	convert_flag(conversion, general, "log_client_disconnections", "log_disconnections",
		"1", "0");
	convert_cache_size(conversion, general);
	if (prepared && !fact_is_on(prepared->text))
		conversion_set(conversion, prepared, "max_prepared_statements", "0");
	convert_auth_query(conversion, general, NULL);
}

/* --- shards and servers ------------------------------------------------------------------- */

static bool is_on(const struct source_node *parent, const char *name)
{
	const char *text = source_text(parent, name);

	return text && fact_is_on(text);
}

/* What a database asks of its servers; NULL: nothing. */
static const char *role_of(const struct source_node *pool, bool splits)
{
	const char *role = source_text(pool, "default_role");
	if (splits || (role && strcmp(role, "primary") == 0))
		return "read-write";
	if (role && strcmp(role, "replica") == 0)
		return is_on(pool, "primary_reads_enabled") ||
				is_on(pool, "replica_to_primary_failover_enabled")
			? "prefer-standby"
			: "standby";
	return NULL;
}

static const struct source_node *item(const struct source_node *list, unsigned n)
{
	const struct source_node *node = list ? list->first : NULL;

	while (node && n-- > 0)
		node = node->next;
	return node;
}

/* A server is a list of host, port and role, or a table with these names. */
static const struct source_node *part(
	const struct source_node *server, unsigned n, const char *name)
{
	const struct source_node *node =
		server->kind == SOURCE_TABLE ? source_find(server, name) : item(server, n);

	return node && node->kind <= SOURCE_STRING ? node : NULL;
}

/* Put the servers into the line of the database. Their roles are asked of them, at each login. */
static void put_servers(struct conversion *conversion, const struct source_node *shard,
	const struct source_node *place, const char *database)
{
	const struct source_node *servers = source_find(shard, "servers");
	const char *name = source_text(shard, "database");
	const char *hosts = "", *ports = "";
	bool same_port = true;
	unsigned count = 0;
	const char *first_port = NULL;

	for (const struct source_node *server = servers ? servers->first : NULL; server;
		server = server->next) {
		const struct source_node *host = part(server, 0, "host");
		const struct source_node *port = part(server, 1, "port");

		if (++count > HOSTS_MOST) {
			conversion_lose(conversion, server, "a database has at most %d servers",
				HOSTS_MOST);
			break;
		}
		if (!host || strchr(host->text, ',')) {
			conversion_lose(
				conversion, server, "a server is [\"host\", port, \"role\"]");
			continue;
		}
		hosts = conversion_text(
			conversion, "%s%s%s", hosts, hosts[0] ? "," : "", host->text);
		ports = conversion_text(conversion, "%s%s%s", ports, ports[0] ? "," : "",
			port ? port->text : "5432");
		if (!first_port)
			first_port = port ? port->text : "5432";
		same_port = same_port && strcmp(first_port, port ? port->text : "5432") == 0;
	}
	if (!first_port) {
		conversion_lose(conversion, place, "it has no servers");
		return;
	}
	conversion_put(conversion, place, DRAFT_DATABASES, database, "host", hosts);
	conversion_put(conversion, place, DRAFT_DATABASES, database, "port",
		same_port ? first_port : ports);
	if (name && strcmp(name, database) != 0)
		conversion_put(conversion, place, DRAFT_DATABASES, database, "dbname", name);
}

/* --- users -------------------------------------------------------------------------------- */

/* A user that the pooler logs in as, whatever the client's name is. */
static void convert_server_user(struct conversion *conversion, const struct source_node *user,
	const char *database, const char *name, bool alone)
{
	const struct source_node *node = source_find(user, "server_username");
	const struct source_node *secret = source_find(user, "server_password");
	const char *server_name = source_text(user, "server_username");
	const char *server_secret = source_text(user, "server_password");
	const char *password = source_text(user, "password");

	if (!server_name && !server_secret)
		return;
	if (!server_name)
		server_name = name;
	if (strcmp(server_name, name) == 0 &&
		(!server_secret || (password && strcmp(server_secret, password) == 0)))
		return;
	if (!alone) {
		conversion_lose(conversion, node ? node : secret,
			"a database has one server user for all its clients here: make a line in "
			"[databases] with another name for this user");
		return;
	}
	conversion_put(conversion, node ? node : secret, DRAFT_DATABASES, database, "user",
		server_name);
	if (server_secret)
		conversion_put(conversion, secret, DRAFT_DATABASES, database, "password",
			server_secret);
}

static void convert_user(struct conversion *conversion, const struct source_node *user,
	const char *database, bool alone)
{
	const char *name = source_text(user, "username");
	const char *password = source_text(user, "password");

	if (!name) {
		conversion_lose(conversion, user, "it has no username");
		return;
	}
	facts_apply(
		conversion, &facts, USER, user, route_add(conversion, user, database, name));
	if (password || !draft_get(conversion->draft, "auth_user"))
		conversion_add_user(conversion, user, name, password ? password : "");
	auth_rules_add(conversion,
		&(struct auth_rule){.node = user,
			.database = database,
			.user = name,
			.method = method_of(conversion, source_find(user, "auth_type"))});
	convert_server_user(conversion, user, database, name, alone);
}

/* --- pools -------------------------------------------------------------------------------- */

/* The shard of clients that name none. */
static const struct source_node *default_shard(
	struct conversion *conversion, const struct source_node *pool)
{
	const struct source_node *shards = source_find(pool, "shards");
	const struct source_node *first = shards ? shards->first : NULL;
	const struct source_node *node = source_find(pool, "default_shard");
	const struct source_node *found = NULL;

	if (!node || !node->text || node->kind > SOURCE_STRING)
		return first;
	if (strncmp(node->text, "shard_", strlen("shard_")) == 0)
		found = source_find(shards, node->text + strlen("shard_"));
	if (!found)
		conversion_lose(conversion, node, "no counterpart: the first shard is used");
	return found ? found : first;
}

static void convert_pool(struct conversion *conversion, const struct source_node *pool)
{
	const struct source_node *shard = default_shard(conversion, pool);
	const struct source_node *users = source_find(pool, "users");
	const struct source_node *mode = source_find(pool, "load_balancing_mode");
	struct route *defaults = route_add(conversion, pool, pool->name, NULL);
	const bool splits = is_on(pool, "query_parser_read_write_splitting");
	const char *role = role_of(pool, splits);

	if (defaults)
		defaults->only_defaults = true;
	put_servers(conversion, shard, pool, pool->name);
	if (role)
		conversion_put(conversion, pool, DRAFT_DATABASES, pool->name,
			"target_session_attrs", role);
	if (mode && mode->text)
		conversion_put(conversion, mode, DRAFT_DATABASES, pool->name,
			"load_balance_hosts",
			strcmp(mode->text, "loc") == 0 ? "least-connections" : mode->text);
	facts_apply(conversion, &facts, POOL, pool, defaults);
	convert_cache_size(conversion, pool);
	convert_auth_query(conversion, pool, pool->name);
	for (const struct source_node *user = users ? users->first : NULL; user;
		user = user->next)
		convert_user(conversion, user, pool->name, users->children == 1);
}

/* --- more lines for the same pool --------------------------------------------------------- */

/* Give a database what another one has and it has not, and the same rules. */
static void copy_database(struct conversion *conversion, const struct source_node *node,
	const char *from, const char *to)
{
	const struct entry_grammar *grammar = database_config_grammar();
	const struct auth_rule *last = conversion->last_rule;

	for (size_t i = 0; i < grammar->key_count; i++) {
		const char *key = grammar->keys[i].name;
		const char *value = draft_key(conversion->draft, DRAFT_DATABASES, from, key);

		if (value && !draft_key(conversion->draft, DRAFT_DATABASES, to, key))
			conversion_put(conversion, node, DRAFT_DATABASES, to, key, value);
	}
	if (!draft_key(conversion->draft, DRAFT_DATABASES, to, "dbname"))
		conversion_put(conversion, node, DRAFT_DATABASES, to, "dbname", from);
	for (const struct auth_rule *rule = conversion->rules; rule; rule = rule->next) {
		if (rule->database && strcmp(rule->database, from) == 0) {
			struct auth_rule copy = *rule;

			copy.database = to;
			auth_rules_add(conversion, &copy);
		}
		if (rule == last)
			break;
	}
}

/* Clients that only read have a database of their own. */
static void add_read_only(struct conversion *conversion, const struct source_node *pool)
{
	const struct source_node *place =
		source_find(pool, "query_parser_read_write_splitting");
	const char *name = conversion_text(conversion, "%s_ro", pool->name);

	conversion_put(conversion, place, DRAFT_DATABASES, name, "target_session_attrs",
		is_on(pool, "primary_reads_enabled") ? "prefer-standby" : "standby");
	copy_database(conversion, place, pool->name, name);
	conversion_lose(conversion, place,
		"reads are not told from writes: database %s is the primary, and %s its replicas "
		"for clients that only read",
		pool->name, name);
}

static void add_shards(struct conversion *conversion, const struct source_node *pool)
{
	const struct source_node *shards = source_find(pool, "shards");

	if (!shards || shards->children < 2)
		return;
	if (source_find(pool, "sharding_function"))
		conversion_lose(
			conversion, source_find(pool, "sharding_function"), "no sharding");
	conversion_lose(conversion, shards,
		"no sharding: clients name the database of a shard, %s_shard_N; %s is the default "
		"one",
		pool->name, pool->name);
	for (const struct source_node *shard = shards->first; shard; shard = shard->next) {
		const char *name = conversion_text(
			conversion, "%s_shard_%s", pool->name, shard->name ? shard->name : "");

		put_servers(conversion, shard, shard, name);
		copy_database(conversion, shard, pool->name, name);
	}
}

static void convert_shards(struct conversion *conversion, const struct source_node *pool)
{
	const struct source_node *shards = source_find(pool, "shards");

	for (const struct source_node *shard = shards ? shards->first : NULL; shard;
		shard = shard->next)
		facts_apply(conversion, &facts, SHARD, shard, NULL);
	/* Its name may not be possible: names made of it are not either. */
	if (!draft_has_entry(conversion->draft, DRAFT_DATABASES, pool->name))
		return;
	add_shards(conversion, pool);
	if (is_on(pool, "query_parser_read_write_splitting"))
		add_read_only(conversion, pool);
}

/* --- all ---------------------------------------------------------------------------------- */

/* What is so there if no line says otherwise, and not here. */
static void set_defaults(struct conversion *conversion, const struct source_node *general)
{
	static const struct source_node nowhere = {.file = ""};

	conversion_set(conversion, &nowhere, "pool_mode", "transaction");
	conversion_set(conversion, &nowhere, "max_client_conn", "10000");
	draft_remark(
		conversion->draft, DRAFT_MAIN, "max_client_conn", "PgCat has no such limit.");
	if (!source_find(general, "host"))
		conversion_set(conversion, &nowhere, "listen_addr", "0.0.0.0");
	if (!source_find(general, "port"))
		conversion_set(conversion, &nowhere, "listen_port", "5432");
}

/* The first of [pools.NAME]; what is in a list has no names, so no pool is in one. */
static const struct source_node *first_pool(struct conversion *conversion)
{
	const struct source_node *pools = source_find(&conversion->source->root, "pools");

	if (pools && pools->kind != SOURCE_TABLE) {
		conversion_lose(conversion, pools, "a pool is a table, [pools.NAME]");
		return NULL;
	}
	return pools ? pools->first : NULL;
}

bool pgcat_convert(struct conversion *conversion, const char *text, size_t length)
{
	const struct source_node *root = &conversion->source->root;
	const struct source_node *first;

	if (!toml_read(conversion->source, conversion->file, text, length,
		    draft_findings(conversion->draft)))
		return false;
	set_defaults(conversion, source_find(root, "general"));
	facts_apply(conversion, &facts, ROOT, root, NULL);
	convert_general(conversion, source_find(root, "general"));
	first = first_pool(conversion);
	for (const struct source_node *pool = first; pool; pool = pool->next)
		convert_pool(conversion, pool);
	routes_write(conversion);
	for (const struct source_node *pool = first; pool; pool = pool->next)
		convert_shards(conversion, pool);
	auth_rules_write(conversion, true);
	return true;
}
