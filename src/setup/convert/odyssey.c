/* SPDX-License-Identifier: ISC */
/*
 * odyssey.conf: settings of the process, listen, storage, ldap_endpoint, and routes: database and
 * user blocks, as Odyssey's documentation of its configuration describes them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "setup/convert/auth_rules.h"
#include "setup/convert/facts.h"
#include "setup/convert/odyssey_reader.h"
#include "setup/convert/poolers.h"

enum scope { ROOT, LISTEN, STORAGE, DATABASE, ROUTE, LDAP };

static const struct fact rows[] = {
	{ROOT, "availability_zone", FACT_NONE, NOWHERE,
		"list near hosts first, with load_balance_hosts = disable"},
	{ROOT, "backend_connect_timeout_ms", FACT_MILLISECONDS,
		SETTING("server_connect_timeout"), NULL},
	{ROOT, "bindwith_reuseport", FACT_FLAG, SETTING("so_reuseport"), NULL},
	{ROOT, "cache_coroutine", FACT_NONE, NOWHERE, "no coroutines"},
	{ROOT, "client_max", FACT_PART, NOWHERE, NULL},
	{ROOT, "client_max_routing", FACT_NONE, NOWHERE,
		"logins are handled as they come; max_client_conn bounds them"},
	{ROOT, "conn_drop_options", FACT_NONE, NOWHERE,
		"drain_delay and shutdown_timeout say how clients go"},
	{ROOT, "coroutine_stack_size", FACT_NONE, NOWHERE, "no coroutines"},
	{ROOT, "daemonize", FACT_NEVER, NOWHERE, "start with -d to run in the background"},
	{ROOT, "database", FACT_PART, NOWHERE, NULL},
	{ROOT, "disable_nolinger", FACT_NONE, NOWHERE, "connections are closed in order"},
	{ROOT, "enable_host_watcher", FACT_NEVER, NOWHERE,
		"metrics of the machine are up to its exporter"},
	{ROOT, "enable_online_restart", FACT_NEVER, NOWHERE,
		"`pgusher -R` takes over from the running process, when the operator starts it"},
	{ROOT, "graceful_die_on_errors", FACT_NONE, NOWHERE,
		"SIGTERM lets clients go within shutdown_timeout"},
	{ROOT, "graceful_shutdown_timeout_ms", FACT_MILLISECONDS, SETTING("shutdown_timeout"),
		NULL},
	{ROOT, "group_checker_interval", FACT_NONE, NOWHERE, "no groups: list the users"},
	{ROOT, "hba_file", FACT_TEXT, SETTING("auth_hba_file"),
		"counts with auth_type = hba only; its rules then say how each client logs in"},
	{ROOT, "keepalive", FACT_PART, NOWHERE, NULL},
	{ROOT, "keepalive_keep_interval", FACT_NUMBER, SETTING("tcp_keepintvl"), NULL},
	{ROOT, "keepalive_probes", FACT_NUMBER, SETTING("tcp_keepcnt"), NULL},
	{ROOT, "keepalive_usr_timeout", FACT_NUMBER, SETTING("tcp_user_timeout"), NULL},
	{ROOT, "ldap_endpoint", FACT_PART, NOWHERE, NULL},
	{ROOT, "listen", FACT_PART, NOWHERE, NULL},
	{ROOT, "load_module", FACT_NONE, NOWHERE, "no modules"},
	{ROOT, "locks_dir", FACT_NONE, NOWHERE,
		"the Unix socket and pidfile tell that a process runs"},
	{ROOT, "log_async", FACT_NEVER, NOWHERE,
		"a log that blocks loses lines, and counts them"},
	{ROOT, "log_config", FACT_NEVER, NOWHERE, "SHOW CONFIG has the settings in force"},
	{ROOT, "log_debug", FACT_FLAG, SETTING("verbose"), NULL},
	{ROOT, "log_file", FACT_TEXT, SETTING("logfile"), NULL},
	{ROOT, "log_format", FACT_NONE, NOWHERE,
		"lines have PgBouncer's form, or that of log_format = json"},
	{ROOT, "log_general_stats_prom", FACT_NEVER, NOWHERE,
		"metrics_port serves metrics to Prometheus"},
	{ROOT, "log_max_msg_size", FACT_NONE, NOWHERE, "lines are as long as their facts"},
	{ROOT, "log_query", FACT_NEVER, NOWHERE, "the server's log_statement logs queries"},
	{ROOT, "log_queue_depth", FACT_NONE, NOWHERE, "no queue of lines"},
	{ROOT, "log_route_stats_prom", FACT_NEVER, NOWHERE,
		"metrics_port serves metrics to Prometheus"},
	{ROOT, "log_session", FACT_PART, NOWHERE, NULL},
	{ROOT, "log_stats", FACT_FLAG, SETTING("log_stats"), NULL},
	{ROOT, "log_syslog", FACT_FLAG, SETTING("syslog"), NULL},
	{ROOT, "log_syslog_facility", FACT_TEXT, SETTING("syslog_facility"), NULL},
	{ROOT, "log_syslog_ident", FACT_TEXT, SETTING("syslog_ident"), NULL},
	{ROOT, "log_to_stdout", FACT_NEVER, NOWHERE,
		"the log is on stderr as well, unless -q is given"},
	{ROOT, "max_sigterms_to_die", FACT_NONE, NOWHERE,
		"the second SIGTERM ends the process"},
	{ROOT, "nodelay", FACT_ALWAYS, NOWHERE, "TCP_NODELAY is set on all connections"},
	{ROOT, "online_restart_drain_options", FACT_NONE, NOWHERE,
		"pgusher -R takes clients and servers along, in the middle of their work"},
	{ROOT, "packet_read_size", FACT_NONE, NOWHERE, "64 kB are read at once"},
	{ROOT, "packet_write_queue", FACT_NONE, NOWHERE,
		"what one side does not take stops the other"},
	{ROOT, "pid_file", FACT_TEXT, SETTING("pidfile"), NULL},
	{ROOT, "pipeline", FACT_NONE, NOWHERE, "64 kB are read at once"},
	{ROOT, "priority", FACT_NONE, NOWHERE, "Nice= of the unit"},
	{ROOT, "promhttp_server_port", FACT_NUMBER, SETTING("metrics_port"),
		"other names of metrics (doc/metrics.md), on metrics_listen_addr = 127.0.0.1 only"},
	{ROOT, "readahead", FACT_NONE, NOWHERE, "64 kB are read at once"},
	{ROOT, "resolvers", FACT_NONE, NOWHERE, "names are looked up by the event loop"},
	{ROOT, "sequential_routing", FACT_NONE, NOWHERE,
		"the nearest line counts: the name of the database, then *"},
	{ROOT, "server_login_retry", FACT_NONE, NOWHERE,
		"server_login_retry is about failed logins, in seconds"},
	{ROOT, "shared_pool", FACT_NONE, NOWHERE,
		"max_db_connections, max_user_connections and max_server_connections are limits "
		"that pools share"},
	{ROOT, "smart_search_path_enquoting", FACT_ALWAYS, NOWHERE,
		"a search_path follows its client as it was written"},
	{ROOT, "soft_oom", FACT_NONE, NOWHERE,
		"max_client_conn and max_prepared_memory bound memory"},
	{ROOT, "stats_interval", FACT_SECONDS, SETTING("stats_period"), NULL},
	{ROOT, "storage", FACT_PART, NOWHERE, NULL},
	{ROOT, "unix_socket_dir", FACT_TEXT, SETTING("unix_socket_dir"), NULL},
	{ROOT, "unix_socket_mode", FACT_TEXT, SETTING("unix_socket_mode"), NULL},
	{ROOT, "workers", FACT_NUMBER, SETTING("workers"), NULL},

	{LISTEN, "backlog", FACT_NUMBER, SETTING("listen_backlog"), NULL},
	{LISTEN, "client_login_timeout", FACT_MILLISECONDS, SETTING("client_login_timeout"),
		NULL},
	{LISTEN, "compression", FACT_NEVER, NOWHERE, "no compression"},
	{LISTEN, "host", FACT_PART, NOWHERE, NULL},
	{LISTEN, "port", FACT_PART, NOWHERE, NULL},
	{LISTEN, "target_session_attrs", FACT_NONE, NOWHERE,
		"the name of the database says which role its servers have: a line in [databases] "
		"for each"},
	{LISTEN, "tls", FACT_PART, NOWHERE, NULL},
	{LISTEN, "tls_ca_file", FACT_TEXT, SETTING("client_tls_ca_file"), NULL},
	{LISTEN, "tls_cert_file", FACT_TEXT, SETTING("client_tls_cert_file"), NULL},
	{LISTEN, "tls_key_file", FACT_TEXT, SETTING("client_tls_key_file"), NULL},
	{LISTEN, "tls_protocols", FACT_TEXT, SETTING("client_tls_protocols"), NULL},

	{STORAGE, "endpoints_status_poll_interval", FACT_MILLISECONDS,
		SETTING("host_check_interval"), NULL},
	{STORAGE, "host", FACT_PART, NOWHERE, NULL},
	{STORAGE, "port", FACT_PART, NOWHERE, NULL},
	{STORAGE, "server_max_routing", FACT_NUMBER, SETTING("server_login_concurrency"), NULL},
	{STORAGE, "target_session_attrs", FACT_PART, NOWHERE, NULL},
	{STORAGE, "tls", FACT_PART, NOWHERE, NULL},
	{STORAGE, "tls_ca_file", FACT_TEXT, SETTING("server_tls_ca_file"), NULL},
	{STORAGE, "tls_cert_file", FACT_TEXT, SETTING("server_tls_cert_file"), NULL},
	{STORAGE, "tls_key_file", FACT_TEXT, SETTING("server_tls_key_file"), NULL},
	{STORAGE, "tls_protocols", FACT_TEXT, SETTING("server_tls_protocols"), NULL},
	{STORAGE, "type", FACT_PART, NOWHERE, NULL},
	{STORAGE, "watchdog", FACT_NONE, NOWHERE,
		"max_standby_lag keeps clients from standbys that are too far behind"},

	{DATABASE, "user", FACT_PART, NOWHERE, NULL},
	{DATABASE, "group", FACT_NONE, NOWHERE,
		"no groups: list the users, or look them up by auth_query"},

	{ROUTE, "application_name_add_host", FACT_FLAG, SETTING("application_name_add_host"),
		NULL},
	{ROUTE, "auth_common_name", FACT_NONE, NOWHERE,
		"a certificate is for the user that has its name; others by a map "
		"(auth_ident_file)"},
	{ROUTE, "auth_ldap_service", FACT_NONE, NOWHERE,
		"the directory is that of ldap_endpoint_name: name it there, and convert again"},
	{ROUTE, "auth_module", FACT_NONE, NOWHERE,
		"no modules: LDAP, PAM and auth_query are there"},
	{ROUTE, "auth_pam_service", FACT_PART, NOWHERE, NULL},
	{ROUTE, "auth_query", FACT_PART, NOWHERE, NULL},
	{ROUTE, "auth_query_db", FACT_TEXT, {NULL, "auth_dbname", NULL}, NULL},
	{ROUTE, "auth_query_user", FACT_TEXT, {NULL, "auth_user", NULL}, NULL},
	{ROUTE, "authentication", FACT_PART, NOWHERE, NULL},
	{ROUTE, "backend_startup_options", FACT_NONE, NOWHERE,
		"ALTER ROLE ... SET on the server, or connect_query in the line of the database"},
	{ROUTE, "catchup_checks", FACT_NONE, NOWHERE, "as catchup_timeout"},
	{ROUTE, "catchup_timeout", FACT_NONE, NOWHERE,
		"max_standby_lag keeps clients from standbys that are too far behind"},
	{ROUTE, "client_fwd_error", FACT_ALWAYS, NOWHERE, "errors of servers reach the client"},
	{ROUTE, "client_max", FACT_NUMBER,
		{NULL, "max_db_client_connections", "max_user_client_connections"}, NULL},
	{ROUTE, "enable_mdb_iamproxy_auth", FACT_NEVER, NOWHERE, "no IAM proxy"},
	{ROUTE, "ldap_endpoint_name", FACT_PART, NOWHERE, NULL},
	{ROUTE, "ldap_pool_size", FACT_NONE, NOWHERE,
		"each login asks the directory, on a thread"},
	{ROUTE, "ldap_pool_timeout", FACT_NONE, NOWHERE, "client_login_timeout bounds a login"},
	{ROUTE, "ldap_pool_ttl", FACT_NONE, NOWHERE,
		"each login asks the directory, on a thread"},
	{ROUTE, "ldap_storage_credentials", FACT_NONE, NOWHERE,
		"servers are logged in to with the client's name and password, or with user= and "
		"password= of the database"},
	{ROUTE, "ldap_storage_credentials_attr", FACT_NONE, NOWHERE,
		"as ldap_storage_credentials"},
	{ROUTE, "log_debug", FACT_NEVER, NOWHERE, "verbose counts for all"},
	{ROUTE, "log_query", FACT_NEVER, NOWHERE, "the server's log_statement logs queries"},
	{ROUTE, "maintain_params", FACT_ALWAYS, NOWHERE,
		"settings follow their client, unless session_state = ignore"},
	{ROUTE, "mdb_iamproxy_socket_path", FACT_NONE, NOWHERE, "no IAM proxy"},
	{ROUTE, "min_pool_size", FACT_NUMBER, {NULL, "min_pool_size", NULL}, NULL},
	{ROUTE, "options", FACT_NONE, NOWHERE,
		"ALTER ROLE ... SET on the server, or connect_query in the line of the database"},
	{ROUTE, "password", FACT_PART, NOWHERE, NULL},
	{ROUTE, "password_passthrough", FACT_ALWAYS, NOWHERE,
		"a password or SCRAM key of the client's login is used at the server too"},
	{ROUTE, "pool", FACT_TEXT, {NULL, "pool_mode", "pool_mode"}, NULL},
	{ROUTE, "pool_cancel", FACT_ALWAYS, NOWHERE,
		"a query of a client that disconnects is cancelled"},
	{ROUTE, "pool_client_idle_timeout", FACT_SECONDS,
		{"client_idle_timeout", NULL, "client_idle_timeout"}, NULL},
	{ROUTE, "pool_discard", FACT_PART, NOWHERE, NULL},
	{ROUTE, "pool_discard_query", FACT_TEXT, SETTING("server_reset_query"), NULL},
	{ROUTE, "pool_idle_in_transaction_timeout", FACT_SECONDS,
		{"idle_transaction_timeout", NULL, "idle_transaction_timeout"}, NULL},
	{ROUTE, "pool_pin_on_listen", FACT_NEVER, NOWHERE,
		"LISTEN works without a server of the client; listen = pin is the other way"},
	{ROUTE, "pool_prepared_statement", FACT_ALWAYS, NOWHERE,
		"max_prepared_statements = 0 turns it off for all"},
	{ROUTE, "pool_reserve_prepared_statement", FACT_ALWAYS, NOWHERE,
		"max_prepared_statements = 0 turns it off for all"},
	{ROUTE, "pool_rollback", FACT_ALWAYS, NOWHERE,
		"a transaction of a client that disconnects is rolled back"},
	{ROUTE, "pool_routing", FACT_PART, NOWHERE, NULL},
	{ROUTE, "pool_size", FACT_NUMBER, {NULL, "pool_size", "pool_size"}, NULL},
	{ROUTE, "pool_smart_discard", FACT_NEVER, NOWHERE,
		"in transaction mode only what a client has changed is reset"},
	{ROUTE, "pool_timeout", FACT_MILLISECONDS,
		{NULL, "query_wait_timeout", "query_wait_timeout"}, NULL},
	{ROUTE, "pool_ttl", FACT_SECONDS, SETTING("server_idle_timeout"), NULL},
	{ROUTE, "preserve_session_server_conn", FACT_NONE, NOWHERE,
		"in session mode a server is kept until its client leaves"},
	{ROUTE, "quantiles", FACT_NONE, NOWHERE,
		"SHOW STATS_LATENCY and the metrics have histograms of latencies"},
	{ROUTE, "reserve_session_server_connection", FACT_NONE, NOWHERE,
		"in session mode a server is kept until its client leaves"},
	{ROUTE, "role", FACT_PART, NOWHERE, NULL},
	{ROUTE, "server_drop_on_cached_plan_error", FACT_NEVER, NOWHERE,
		"outdated plans are prepared again"},
	{ROUTE, "server_lifetime", FACT_SECONDS, {"server_lifetime", "server_lifetime", NULL},
		NULL},
	{ROUTE, "storage", FACT_PART, NOWHERE, NULL},
	{ROUTE, "storage_db", FACT_PART, NOWHERE, NULL},
	{ROUTE, "storage_password", FACT_PART, NOWHERE, NULL},
	{ROUTE, "storage_user", FACT_PART, NOWHERE, NULL},
	{ROUTE, "target_session_attrs", FACT_PART, NOWHERE, NULL},

	/* All of these become options of the same names. */
	{LDAP, "ldapbasedn", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapbinddn", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapbindpasswd", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapport", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapprefix", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapscheme", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapscope", FACT_NONE, NOWHERE, "the scope is that of ldapurl, else `sub`"},
	{LDAP, "ldapsearchattribute", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapsearchfilter", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapserver", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapsuffix", FACT_PART, NOWHERE, NULL},
	{LDAP, "ldapurl", FACT_PART, NOWHERE, NULL},
};

static const struct facts facts = {rows, sizeof(rows) / sizeof(rows[0]), "Odyssey"};

static const struct source_node *root_of(const struct conversion *conversion)
{
	return &conversion->source->root;
}

static bool is_named(const struct source_node *node, const char *name)
{
	return node->name && strcmp(node->name, name) == 0;
}

/* The block `keyword "name" {`; NULL: none. */
static const struct source_node *find_block(
	const struct conversion *conversion, const char *keyword, const char *name)
{
	for (const struct source_node *node = root_of(conversion)->first; name && node;
		node = node->next) {
		if (is_named(node, keyword) && node->kind == SOURCE_TABLE && node->text &&
			strcmp(node->text, name) == 0)
			return node;
	}
	return NULL;
}

/* --- the process -------------------------------------------------------------------------- */

static void convert_tls(
	struct conversion *conversion, const struct source_node *block, const char *setting)
{
	static const struct {
		const char *theirs, *ours;
	} modes[] = {
		{"allow", "allow"},
		{"disable", "disable"},
		{"prefer", "prefer"},
		{"require", "require"},
		{"verify-ca", "verify-ca"},
		{"verify-full", "verify-full"},
		{"verify_ca", "verify-ca"},
		{"verify_full", "verify-full"},
	};
	const struct source_node *node = source_find(block, "tls");

	if (!node || !node->text)
		return;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].theirs, node->text) == 0) {
			conversion_set(conversion, node, setting, modes[i].ours);
			return;
		}
	}
	conversion_lose(conversion, node, "its value is not of the kind that is known");
}

static void convert_listen(
	struct conversion *conversion, const struct source_node *block, const char **addresses)
{
	const char *host = source_text(block, "host");
	const struct source_node *port = source_find(block, "port");
	const char *present = draft_get(conversion->draft, "listen_port");

	facts_apply(conversion, &facts, LISTEN, block, NULL);
	convert_tls(conversion, block, "client_tls_sslmode");
	if (port && port->text && present && strcmp(present, port->text) != 0) {
		conversion_lose(conversion, port,
			"one process has one port: start another one with this listen_port and "
			"so_reuseport, or have the clients use %s",
			present);
		return;
	}
	if (port && port->text)
		conversion_set(conversion, port, "listen_port", port->text);
	/* Without a host it is the Unix socket alone. */
	if (host && !text_list_has(*addresses, host))
		*addresses = conversion_text(
			conversion, "%s%s%s", *addresses, *addresses[0] ? "," : "", host);
}

static void convert_listeners(struct conversion *conversion)
{
	enum { LISTENERS_MOST = 64 };
	const struct source_node *first = source_find(root_of(conversion), "listen");
	const char *addresses = "";
	unsigned count = 0;

	for (const struct source_node *node = first; node; node = node->next) {
		if (!is_named(node, "listen") || ++count > LISTENERS_MOST)
			continue;
		convert_listen(conversion, node, &addresses);
	}
	if (addresses[0] != '\0')
		conversion_set(conversion, first, "listen_addr", addresses);
}

static void convert_process(struct conversion *conversion)
{
	const struct source_node *keepalive = source_find(root_of(conversion), "keepalive");
	const struct source_node *session = source_find(root_of(conversion), "log_session");

	facts_apply(conversion, &facts, ROOT, root_of(conversion), NULL);
	convert_listeners(conversion);
	if (keepalive && keepalive->text) {
		const bool on = strcmp(keepalive->text, "0") != 0;

		conversion_set(conversion, keepalive, "tcp_keepalive", on ? "1" : "0");
		if (on)
			conversion_set(conversion, keepalive, "tcp_keepidle", keepalive->text);
	}
	if (session && session->text) {
		const char *value = fact_is_on(session->text) ? "1" : "0";

		conversion_set(conversion, session, "log_connections", value);
		conversion_set(conversion, session, "log_disconnections", value);
	}
}

/* --- storage ------------------------------------------------------------------------------ */

/* One host of a list: NAME, NAME:PORT, [IPv6]:PORT, each with `:ZONE` or without. */
struct host {
	const char *name, *port; /* NULL: that of the storage */
	int name_length, port_length;
};

static struct host split_host(const char *text, size_t length)
{
	struct host host = {.name = text, .name_length = (int)length};
	const char *end = text + length;
	const char *colon = memchr(text, ':', length);

	if (text[0] == '[') {
		const char *bracket = memchr(text, ']', length);

		if (!bracket)
			return host;
		host.name = text + 1;
		host.name_length = (int)(bracket - text) - 1;
		colon = bracket + 1 < end && bracket[1] == ':' ? bracket + 1 : NULL;
	} else if (colon) {
		host.name_length = (int)(colon - text);
	}
	if (colon) {
		const char *port = colon + 1;

		host.port = port;
		while (port < end && *port >= '0' && *port <= '9')
			port++;
		host.port_length = (int)(port - host.port);
		if (host.port_length == 0)
			host.port = NULL;
	}
	return host;
}

static void put_hosts(struct conversion *conversion, const struct source_node *node,
	const char *database, const char *list, const char *port)
{
	enum { HOSTS_MOST = 256 };
	const char *hosts = "", *ports = "";
	unsigned count = 0;

	while (*list != '\0' && ++count <= HOSTS_MOST) {
		const size_t length = strcspn(list, ",");
		const struct host host = split_host(list, length);

		hosts = conversion_text(conversion, "%s%s%.*s", hosts, hosts[0] ? "," : "",
			host.name_length, host.name);
		ports = host.port ? conversion_text(conversion, "%s%s%.*s", ports,
					    ports[0] ? "," : "", host.port_length, host.port)
				  : conversion_text(conversion, "%s%s%s", ports,
					    ports[0] ? "," : "", port);
		list += length + (list[length] == ',');
	}
	if (count > HOSTS_MOST)
		conversion_lose(
			conversion, node, "a database has at most %d hosts", HOSTS_MOST);
	conversion_put(conversion, node, DRAFT_DATABASES, database, "host", hosts);
	conversion_put(conversion, node, DRAFT_DATABASES, database, "port", ports);
}

static void convert_storage(struct conversion *conversion, const struct source_node *route,
	const struct source_node *storage, const char *database)
{
	const struct source_node *host = source_find(storage, "host");
	const char *port = source_text(storage, "port");
	const struct source_node *role = source_find(route, "target_session_attrs");

	if (!role)
		role = source_find(storage, "target_session_attrs");
	if (host && host->text && host->kind <= SOURCE_STRING)
		put_hosts(conversion, host, database, host->text, port ? port : "5432");
	else if (port)
		conversion_put(conversion, storage, DRAFT_DATABASES, database, "port", port);
	if (role && role->text)
		conversion_put(conversion, role, DRAFT_DATABASES, database,
			"target_session_attrs", role->text);
}

static void convert_storages(struct conversion *conversion)
{
	for (const struct source_node *node = root_of(conversion)->first; node;
		node = node->next) {
		if (is_named(node, "storage") && node->kind == SOURCE_TABLE) {
			facts_apply(conversion, &facts, STORAGE, node, NULL);
			convert_tls(conversion, node, "server_tls_sslmode");
		} else if (is_named(node, "ldap_endpoint")) {
			facts_apply(conversion, &facts, LDAP, node, NULL);
		}
	}
}

/* --- logins ------------------------------------------------------------------------------- */

/* Names are written as they are: one that may be in quotes has to be of the table. */
static bool is_ldap_option(const char *name)
{
	for (size_t i = 0; i < facts.count; i++) {
		if (rows[i].scope == LDAP && rows[i].value == FACT_PART &&
			strcmp(rows[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Options of an LDAP endpoint as those of an HBA rule; NULL, with a finding, if not possible. */
static const char *ldap_options(struct conversion *conversion, const struct source_node *route)
{
	const struct source_node *name = source_find(route, "ldap_endpoint_name");
	const struct source_node *endpoint =
		name ? find_block(conversion, "ldap_endpoint", name->text) : NULL;
	const char *options = "";

	if (!endpoint) {
		conversion_lose(conversion, name, "there is no ldap_endpoint of this name");
		return NULL;
	}
	for (const struct source_node *node = endpoint->first; node; node = node->next) {
		if (!node->text || node->kind > SOURCE_STRING || !is_ldap_option(node->name))
			continue;
		if (strpbrk(node->text, "\"\r\n")) {
			conversion_lose(conversion, node, "not possible: it has quotes");
			continue;
		}
		options = conversion_text(conversion, "%s%s%s=\"%s\"", options,
			options[0] ? " " : "", node->name, node->text);
	}
	return options;
}

static enum auth_method plain_method(
	struct conversion *conversion, const struct source_node *route, const char **options)
{
	const struct source_node *pam = source_find(route, "auth_pam_service");

	if (source_find(route, "ldap_endpoint_name")) {
		*options = ldap_options(conversion, route);
		return *options ? AUTH_METHOD_LDAP : AUTH_METHOD_REJECT;
	}
	if (!pam)
		return AUTH_METHOD_PASSWORD;
	if (!pam->text || strcmp(pam->text, "pgbouncer") != 0)
		conversion_lose(conversion, pam,
			"the service of PAM is pgbouncer: copy its file in /etc/pam.d");
	return AUTH_METHOD_PAM;
}

static enum auth_method method_of(
	struct conversion *conversion, const struct source_node *route, const char **options)
{
	static const struct {
		const char *word;
		enum auth_method method;
	} methods[] = {
		{"block", AUTH_METHOD_REJECT},
		{"cert", AUTH_METHOD_CERT},
		{"md5", AUTH_METHOD_MD5},
		{"none", AUTH_METHOD_TRUST},
		{"scram-sha-256", AUTH_METHOD_SCRAM},
	};
	const struct source_node *node = source_find(route, "authentication");
	const char *word = node ? node->text : NULL;

	if (word && strcmp(word, "clear_text") == 0)
		return plain_method(conversion, route, options);
	for (size_t i = 0; word && i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i].word, word) == 0)
			return methods[i].method;
	}
	conversion_lose(conversion, node ? node : route,
		"no known authentication: this user is refused");
	return AUTH_METHOD_REJECT;
}

/* Text in quotes may hold anything, and an address stands without quotes in the rules. */
static bool is_address(const char *text)
{
	static const char bytes[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_./:";

	return strpbrk(text, "./:") && text[strspn(text, bytes)] == '\0';
}

/* The kind of connections and the addresses behind the name of a user. */
static void read_arguments(
	struct conversion *conversion, const struct source_node *route, struct auth_rule *rule)
{
	static const char *const types[] = {"local", "host", "hostssl", "hostnossl"};
	const struct source_node *argument = route->arguments ? route->arguments->first : NULL;

	for (; argument; argument = argument->next) {
		const char *text = argument->text;
		size_t i = 0;

		while (i < sizeof(types) / sizeof(types[0]) && strcmp(types[i], text) != 0)
			i++;
		if (i < sizeof(types) / sizeof(types[0])) {
			rule->type = types[i];
		} else if (is_address(text)) {
			rule->address = text;
		} else if (strcmp(text, "all") != 0 && strcmp(text, "default") != 0) {
			/* It narrows the rule in a way that is not known: no client may come by it. */
			conversion_lose(conversion, route,
				"%.40s is not known behind a user: this user is refused", text);
			rule->method = AUTH_METHOD_REJECT;
		}
	}
	if (rule->address && !rule->type)
		rule->type = "host";
}

static void convert_login(struct conversion *conversion, const struct source_node *route,
	const char *database, const char *user)
{
	const struct source_node *password = source_find(route, "password");
	struct auth_rule rule = {.node = route};

	rule.database = strcmp(database, "*") == 0 ? NULL : database;
	rule.user = user;
	rule.method = method_of(conversion, route, &rule.options);
	read_arguments(conversion, route, &rule);
	auth_rules_add(conversion, &rule);
	if (user && rule.method != AUTH_METHOD_REJECT)
		conversion_add_user(conversion, route, user,
			password && password->text ? password->text : "");
	else if (!user && rule.method == AUTH_METHOD_TRUST)
		conversion_lose(conversion, route,
			"a user that is not in auth_file is refused here: add those that may come");
}

/* --- routes ------------------------------------------------------------------------------- */

/* Databases that are the console have another name here. */
static bool is_console(const struct conversion *conversion, const struct source_node *route)
{
	const struct source_node *storage =
		find_block(conversion, "storage", source_text(route, "storage"));
	const char *type = source_text(storage, "type");

	return type && strcmp(type, "local") == 0;
}

static void convert_console(
	struct conversion *conversion, const struct source_node *route, const char *user)
{
	const struct source_node *role = source_find(route, "role");
	const char *word = role ? role->text : NULL;
	struct auth_rule rule = {.node = route, .database = "pgbouncer", .user = user};
	enum { NAMES_MOST = 4000 }; /* bytes */
	const char *setting, *present;
	char why[200];

	if (!user) {
		conversion_lose(conversion, route,
			"the console is the database pgbouncer, for users in admin_users and "
			"stats_users only: name them there");
		return;
	}
	if (word && strcmp(word, "notallow") == 0)
		return;
	setting = word && strcmp(word, "admin") == 0 ? "admin_users" : "stats_users";
	present = draft_get(conversion->draft, setting);
	if (!present)
		present = "";
	if (strlen(present) > NAMES_MOST ||
		!draft_set(conversion->draft, setting,
			conversion_text(
				conversion, "%s%s%s", present, present[0] ? ", " : "", user),
			why, sizeof(why)))
		conversion_lose(conversion, route, "not possible in %s", setting);
	rule.method = method_of(conversion, route, &rule.options);
	auth_rules_add(conversion, &rule);
	conversion_add_user(conversion, route, user,
		source_text(route, "password") ? source_text(route, "password") : "");
	conversion_note(conversion, route, "the console is the database pgbouncer");
}

static void put_server_user(struct conversion *conversion, const struct source_node *route,
	const char *database, const char *user, bool alone)
{
	const struct source_node *node = source_find(route, "storage_user");
	const struct source_node *secret = source_find(route, "storage_password");
	const char *name = node ? source_text(route, "storage_user") : user;
	const char *password = source_text(route, "storage_password");
	const char *client_password = source_text(route, "password");

	if (!node && !secret)
		return;
	if (user && name && strcmp(user, name) == 0 &&
		(!password || (client_password && strcmp(password, client_password) == 0)))
		return;
	if (!name || !alone) {
		conversion_lose(conversion, node ? node : secret,
			"a database has one server user for all its clients here: make a line in "
			"[databases] with another name for this user");
		return;
	}
	conversion_put(
		conversion, node ? node : secret, DRAFT_DATABASES, database, "user", name);
	if (password)
		conversion_put(
			conversion, secret, DRAFT_DATABASES, database, "password", password);
}

static void convert_words(
	struct conversion *conversion, const struct source_node *route, const char *database)
{
	const struct source_node *discard = source_find(route, "pool_discard");
	const struct source_node *routing = source_find(route, "pool_routing");
	const struct source_node *query = source_find(route, "auth_query");
	const struct source_node *role = source_find(route, "role");
	const char *mode = source_text(route, "pool");

	if (discard && !fact_is_on(discard->text) && mode && strcmp(mode, "session") == 0)
		conversion_set(conversion, discard, "server_reset_query", "");
	if (routing && routing->text && strcmp(routing->text, "client_visible") != 0)
		conversion_lose(conversion, routing,
			"no pools for the pooler's own use: any user that may log in may come");
	if (role && role->text && strcmp(role->text, "notallow") != 0)
		conversion_lose(conversion, role,
			"the console is the database pgbouncer: name the user in admin_users or "
			"stats_users");
	if (!query || !query->text)
		return;
	conversion_put(conversion, query, DRAFT_DATABASES, database, "auth_query", query->text);
	if (strchr(query->text, '%'))
		conversion_lose(conversion, query,
			"only $1, the name of the user, is replaced, as a parameter");
}

/* Nothing needs to be said of what is refused here too: databases that are not listed. */
static bool is_blocked(const struct source_node *route)
{
	const char *word = source_text(route, "authentication");

	return word && strcmp(word, "block") == 0;
}

static void convert_route(struct conversion *conversion, const struct source_node *route,
	const char *database, bool alone)
{
	const bool is_default = !route->text ||
		(route->kind == SOURCE_TABLE && strcmp(route->text, "default") == 0);
	const char *user = is_default ? NULL : route->text;
	const struct source_node *name = source_find(route, "storage");
	const struct source_node *storage =
		find_block(conversion, "storage", name ? name->text : NULL);
	const char *dbname = source_text(route, "storage_db");

	if (is_console(conversion, route)) {
		convert_console(conversion, route, user);
		return;
	}
	if (!user && strcmp(database, "*") == 0 && is_blocked(route))
		return;
	facts_apply(
		conversion, &facts, ROUTE, route, route_add(conversion, route, database, user));
	if (storage)
		convert_storage(conversion, route, storage, database);
	else
		conversion_lose(conversion, name ? name : route, "there is no storage for it");
	if (dbname && strcmp(dbname, database) != 0)
		conversion_put(conversion, route, DRAFT_DATABASES, database, "dbname", dbname);
	convert_words(conversion, route, database);
	put_server_user(conversion, route, database, user, alone);
	convert_login(conversion, route, database, user);
}

static void convert_database(struct conversion *conversion, const struct source_node *block)
{
	const char *name = block->text ? block->text : "default";
	unsigned users = 0;

	for (const struct source_node *node = block->first; node; node = node->next)
		users += is_named(node, "user");
	facts_apply(conversion, &facts, DATABASE, block, NULL);
	for (const struct source_node *node = block->first; node; node = node->next) {
		if (is_named(node, "user") && node->kind == SOURCE_TABLE)
			convert_route(conversion, node,
				strcmp(name, "default") == 0 ? "*" : name, users == 1);
	}
}

/* --- all ---------------------------------------------------------------------------------- */

/* What is so there if no line says otherwise, and not here. */
static void set_defaults(struct conversion *conversion)
{
	static const struct source_node nowhere = {.file = ""};
	const struct source_node *most = source_find(root_of(conversion), "client_max");

	if (most && most->text && strcmp(most->text, "0") != 0) {
		conversion_set(conversion, most, "max_client_conn", most->text);
	} else {
		conversion_set(conversion, &nowhere, "max_client_conn", "10000");
		draft_remark(conversion->draft, DRAFT_MAIN, "max_client_conn",
			"Odyssey has no limit without client_max.");
	}
}

bool odyssey_convert(struct conversion *conversion, const char *text, size_t length)
{
	if (!odyssey_read(conversion->source, conversion->file, text, length,
		    draft_findings(conversion->draft)))
		return false;
	convert_process(conversion);
	convert_storages(conversion);
	for (const struct source_node *node = root_of(conversion)->first; node;
		node = node->next) {
		if (is_named(node, "database") && node->kind == SOURCE_TABLE)
			convert_database(conversion, node);
	}
	routes_write(conversion);
	set_defaults(conversion);
	auth_rules_write(conversion, true);
	return true;
}
