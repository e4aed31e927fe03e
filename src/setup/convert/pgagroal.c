/* SPDX-License-Identifier: ISC */
/*
 * pgagroal.conf, and the files beside it: pgagroal_databases.conf with limits, pgagroal_hba.conf
 * with rules, pgagroal_users.conf with users, as pgagroal's documentation describes them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/file.h"
#include "config/ini.h"
#include "setup/convert/auth_rules.h"
#include "setup/convert/facts.h"
#include "setup/convert/poolers.h"

enum scope { MAIN, SERVER };

static const struct fact rows[] = {
	{MAIN, "allow_unknown_users", FACT_PART, NOWHERE, NULL},
	{MAIN, "auth_query", FACT_PART, NOWHERE, NULL},
	{MAIN, "authentication_timeout", FACT_TIME, SETTING("client_login_timeout"), NULL},
	{MAIN, "authquery", FACT_PART, NOWHERE, NULL},
	{MAIN, "background_interval", FACT_NONE, NOWHERE,
		"a server is checked before its use if it was idle for server_check_delay"},
	{MAIN, "backlog", FACT_NUMBER, SETTING("listen_backlog"), NULL},
	{MAIN, "blocking_timeout", FACT_TIME, SETTING("query_wait_timeout"), NULL},
	{MAIN, "buffer_size", FACT_NONE, NOWHERE, "pkt_buf is for another purpose"},
	{MAIN, "disconnect_client", FACT_TIME, SETTING("client_idle_timeout"), NULL},
	{MAIN, "disconnect_client_force", FACT_NEVER, NOWHERE,
		"idle_transaction_timeout and transaction_timeout end clients that are active"},
	{MAIN, "ev_backend", FACT_NONE, NOWHERE, "the event loop uses epoll"},
	{MAIN, "failover", FACT_PART, NOWHERE, NULL},
	{MAIN, "failover_script", FACT_NONE, NOWHERE,
		"nothing is promoted: that is up to the operator, Patroni or the like; the new "
		"primary is found by target_session_attrs"},
	{MAIN, "host", FACT_TEXT, SETTING("listen_addr"), NULL},
	{MAIN, "hugepage", FACT_NONE, NOWHERE, "no shared memory"},
	{MAIN, "idle_timeout", FACT_TIME, SETTING("server_idle_timeout"), NULL},
	{MAIN, "keep_alive", FACT_FLAG, SETTING("tcp_keepalive"), NULL},
	{MAIN, "libev", FACT_NONE, NOWHERE, "the event loop uses epoll"},
	{MAIN, "log_connections", FACT_FLAG, SETTING("log_connections"), NULL},
	{MAIN, "log_disconnections", FACT_FLAG, SETTING("log_disconnections"), NULL},
	{MAIN, "log_level", FACT_PART, NOWHERE, NULL},
	{MAIN, "log_line_prefix", FACT_NONE, NOWHERE,
		"lines have PgBouncer's form, or that of log_format = json"},
	{MAIN, "log_mode", FACT_NONE, NOWHERE, "a log file is appended to"},
	{MAIN, "log_path", FACT_PART, NOWHERE, NULL},
	{MAIN, "log_rotation_age", FACT_NONE, NOWHERE,
		"logrotate does it: etc/pgusher.logrotate"},
	{MAIN, "log_rotation_size", FACT_NONE, NOWHERE,
		"logrotate does it: etc/pgusher.logrotate"},
	{MAIN, "log_type", FACT_PART, NOWHERE, NULL},
	{MAIN, "management", FACT_NONE, NOWHERE,
		"the console is the database pgbouncer, on the port of the clients"},
	{MAIN, "max_connection_age", FACT_TIME, SETTING("server_lifetime"), NULL},
	{MAIN, "max_connections", FACT_NUMBER, SETTING("max_server_connections"),
		"counts servers; clients that find all in use wait for query_wait_timeout"},
	{MAIN, "max_retries", FACT_NONE, NOWHERE,
		"a client waits in a queue, in which it is served in turn"},
	{MAIN, "metrics", FACT_PART, NOWHERE, NULL},
	{MAIN, "metrics_ca_file", FACT_NONE, NOWHERE,
		"the page of metrics has no TLS: bind it to 127.0.0.1, or put a proxy before it"},
	{MAIN, "metrics_cache_max_age", FACT_NONE, NOWHERE, "the page is made in milliseconds"},
	{MAIN, "metrics_cache_max_size", FACT_NONE, NOWHERE,
		"max_metric_series bounds the page"},
	{MAIN, "metrics_cert_file", FACT_NONE, NOWHERE, "as metrics_ca_file"},
	{MAIN, "metrics_key_file", FACT_NONE, NOWHERE, "as metrics_ca_file"},
	{MAIN, "nodelay", FACT_ALWAYS, NOWHERE, "TCP_NODELAY is set on all connections"},
	{MAIN, "non_blocking", FACT_ALWAYS, NOWHERE, "one event loop serves all connections"},
	{MAIN, "pidfile", FACT_TEXT, SETTING("pidfile"), NULL},
	{MAIN, "pipeline", FACT_PART, NOWHERE, NULL},
	{MAIN, "port", FACT_NUMBER, SETTING("listen_port"), NULL},
	{MAIN, "rotate_frontend_password_length", FACT_NONE, NOWHERE, "no passwords are made"},
	{MAIN, "rotate_frontend_password_timeout", FACT_NEVER, NOWHERE,
		"no passwords are made"},
	{MAIN, "tls", FACT_PART, NOWHERE, NULL},
	{MAIN, "tls_ca_file", FACT_TEXT, SETTING("client_tls_ca_file"), NULL},
	{MAIN, "tls_cert_file", FACT_TEXT, SETTING("client_tls_cert_file"), NULL},
	{MAIN, "tls_key_file", FACT_TEXT, SETTING("client_tls_key_file"), NULL},
	{MAIN, "track_prepared_statements", FACT_PART, NOWHERE, NULL},
	{MAIN, "tracker", FACT_NEVER, NOWHERE, "verbose = 1 logs decisions about connections"},
	{MAIN, "unix_socket_dir", FACT_PART, NOWHERE, NULL},
	{MAIN, "update_process_title", FACT_NONE, NOWHERE,
		"one process serves all; SHOW CLIENTS and SHOW SERVERS list them"},
	{MAIN, "validation", FACT_PART, NOWHERE, NULL},

	{SERVER, "host", FACT_PART, NOWHERE, NULL},
	{SERVER, "port", FACT_PART, NOWHERE, NULL},
	{SERVER, "primary", FACT_PART, NOWHERE, NULL},
	{SERVER, "tls", FACT_PART, NOWHERE, NULL},
	{SERVER, "tls_ca_file", FACT_TEXT, SETTING("server_tls_ca_file"), NULL},
	{SERVER, "tls_cert_file", FACT_TEXT, SETTING("server_tls_cert_file"), NULL},
	{SERVER, "tls_key_file", FACT_TEXT, SETTING("server_tls_key_file"), NULL},
};

static const struct facts facts = {rows, sizeof(rows) / sizeof(rows[0]), "pgagroal"};

/* --- reading ------------------------------------------------------------------------------ */

#define MAIN_SECTION "pgagroal"

struct reading {
	struct conversion *conversion;
	bool failed;
};

static const char *copy_text(struct reading *reading, const char *text)
{
	const char *copy = source_copy(reading->conversion->source, text, strlen(text));

	if (!copy)
		reading->failed = true;
	return copy;
}

/* The name of the file of a place, as a text that lives as long as the source. */
static const char *file_of(struct reading *reading, const struct ini_place *place)
{
	return strcmp(place->file, reading->conversion->file) == 0
		? reading->conversion->file
		: copy_text(reading, place->file);
}

static const void *on_section(void *context, const struct ini_place *place, const char *name)
{
	struct reading *reading = context;
	struct source *source = reading->conversion->source;
	struct source_node *section = source_find(&source->root, name);

	if (!section)
		section = source_add(source, &source->root, SOURCE_TABLE,
			copy_text(reading, name), file_of(reading, place), place->line);
	if (!section)
		reading->failed = true;
	return section;
}

/* A value may be in quotes, and a comment may follow it behind a blank. */
static void cut_value(char *value)
{
	const size_t length = strlen(value);
	char *comment;

	if (length > 1 && (value[0] == '"' || value[0] == '\'')) {
		char *end = strchr(value + 1, value[0]);

		if (end) {
			*end = '\0';
			memmove(value, value + 1, strlen(value + 1) + 1);
			return;
		}
	}
	comment = strstr(value, " #");
	if (!comment)
		comment = strstr(value, "\t#");
	if (comment) {
		while (comment > value && (comment[-1] == ' ' || comment[-1] == '\t'))
			comment--;
		*comment = '\0';
	}
}

static void on_pair(void *context, const void *section, const struct ini_place *place,
	const char *key, const char *value)
{
	struct reading *reading = context;
	struct source *source = reading->conversion->source;
	/* The section is a node of ours; the parser hands it back as constant. */
	struct source_node *parent = section ? (struct source_node *)(uintptr_t)section : NULL;
	struct source_node *node;
	char *text;

	if (!parent)
		return;
	node = source_add(source, parent, SOURCE_WORD, copy_text(reading, key),
		file_of(reading, place), place->line);
	text = source_copy(source, value, strlen(value));
	if (!node || !text) {
		reading->failed = true;
		return;
	}
	cut_value(text);
	node->text = text;
}

/* --- the main section --------------------------------------------------------------------- */

static void convert_log(struct conversion *conversion, const struct source_node *section)
{
	const struct source_node *type = source_find(section, "log_type");
	const struct source_node *path = source_find(section, "log_path");
	const struct source_node *level = source_find(section, "log_level");

	if (type && strcmp(type->text, "syslog") == 0)
		conversion_set(conversion, type, "syslog", "1");
	else if (path && type && strcmp(type->text, "file") == 0)
		conversion_set(conversion, path, "logfile", path->text);
	if (!level)
		return;
	if (strncmp(level->text, "debug5", 6) == 0)
		conversion_set(conversion, level, "verbose", "2");
	else if (strncmp(level->text, "debug", 5) == 0 || strcmp(level->text, "trace") == 0)
		conversion_set(conversion, level, "verbose", "1");
	else if (strcmp(level->text, "info") != 0)
		conversion_lose(conversion, level,
			"no counterpart: the log has all lines of LOG and above; verbose = 1 or 2 "
			"has more");
}

static void convert_pipeline(struct conversion *conversion, const struct source_node *section)
{
	const struct source_node *node = source_find(section, "pipeline");
	const char *word = node ? node->text : "auto";

	if (node && strcmp(word, "transaction") == 0) {
		conversion_set(conversion, node, "pool_mode", "transaction");
		return;
	}
	if (node)
		conversion_set(conversion, node, "pool_mode", "session");
	if (strcmp(word, "performance") == 0)
		conversion_note(conversion, node,
			"becomes pool_mode = session: servers are reset after each client");
	else if (strcmp(word, "auto") != 0 && strcmp(word, "session") != 0)
		conversion_lose(conversion, node, "unknown; pool_mode = session is used");
}

static void convert_metrics(struct conversion *conversion, const struct source_node *section)
{
	const struct source_node *node = source_find(section, "metrics");

	if (!node || strcmp(node->text, "0") == 0)
		return;
	conversion_set(conversion, node, "metrics_port", node->text);
	conversion_note(conversion, node,
		"other names of metrics (doc/metrics.md), on metrics_listen_addr = 127.0.0.1 only");
}

static void convert_validation(struct conversion *conversion, const struct source_node *section)
{
	const struct source_node *node = source_find(section, "validation");

	if (!node || strcmp(node->text, "off") == 0)
		return;
	conversion_set(conversion, node, "server_check_delay",
		strcmp(node->text, "foreground") == 0 ? "0" : "30");
	conversion_note(conversion, node,
		"a server that was idle for server_check_delay is checked before its next use");
}

static void convert_socket_folder(
	struct conversion *conversion, const struct source_node *section)
{
	const struct source_node *node = source_find(section, "unix_socket_dir");
	size_t length = node ? strlen(node->text) : 0;

	if (!node)
		return;
	while (length > 1 && node->text[length - 1] == '/')
		length--;
	conversion_set(conversion, node, "unix_socket_dir",
		conversion_text(conversion, "%.*s", (int)length, node->text));
}

static void convert_main(struct conversion *conversion, const struct source_node *section)
{
	const struct source_node *tls = source_find(section, "tls");
	const struct source_node *unknown = source_find(section, "allow_unknown_users");
	const struct source_node *query = source_find(section, "auth_query");
	const struct source_node *tracks = source_find(section, "track_prepared_statements");

	facts_apply(conversion, &facts, MAIN, section, NULL);
	if (tls && fact_is_on(tls->text))
		conversion_set(conversion, tls, "client_tls_sslmode", "allow");
	if (unknown && fact_is_on(unknown->text))
		conversion_lose(conversion, unknown,
			"no counterpart: users are in auth_file, or are looked up by auth_query");
	if (!query)
		query = source_find(section, "authquery");
	if (query && fact_is_on(query->text))
		conversion_lose(conversion, query,
			"auth_query needs auth_user, a user that may read the secrets: set it");
	if (tracks && !fact_is_on(tracks->text))
		conversion_note(conversion, tracks,
			"prepared statements work in transaction mode; "
			"max_prepared_statements = 0 turns that off");
	convert_log(conversion, section);
	convert_pipeline(conversion, section);
	convert_metrics(conversion, section);
	convert_validation(conversion, section);
	convert_socket_folder(conversion, section);
}

/* --- servers ------------------------------------------------------------------------------ */

enum { SERVERS_MOST = 64 }; /* of pgagroal */

struct servers {
	unsigned count;
	const char *hosts, *ports;
	const struct source_node *first; /* its section */
	const char *target; /* target_session_attrs; NULL: not needed */
};

static void add_server(struct conversion *conversion, struct servers *servers,
	const struct source_node *section)
{
	const char *host = source_text(section, "host");
	const char *port = source_text(section, "port");
	const struct source_node *tls = source_find(section, "tls");

	if (!host || strchr(host, ',')) {
		conversion_lose(conversion, section, "a server needs a host");
		return;
	}
	if (servers->first)
		servers->target = "read-write";
	else
		servers->first = section;
	servers->hosts = conversion_text(
		conversion, "%s%s%s", servers->hosts, servers->hosts[0] ? "," : "", host);
	servers->ports = conversion_text(conversion, "%s%s%s", servers->ports,
		servers->ports[0] ? "," : "", port ? port : "5432");
	if (tls)
		conversion_set(conversion, tls, "server_tls_sslmode",
			fact_is_on(tls->text)
				? source_text(section, "tls_ca_file") ? "verify-ca" : "require"
				: "disable");
}

/* Servers with `primary = on`, or those without, in the order of the file. */
static void add_servers(struct conversion *conversion, struct servers *servers, bool primary)
{
	for (const struct source_node *section = conversion->source->root.first; section;
		section = section->next) {
		const char *word = source_text(section, "primary");

		if (strcmp(section->name, MAIN_SECTION) == 0 ||
			(word && fact_is_on(word)) != primary)
			continue;
		if (++servers->count > SERVERS_MOST) {
			conversion_lose(conversion, section, "too many servers");
			break;
		}
		facts_apply(conversion, &facts, SERVER, section, NULL);
		add_server(conversion, servers, section);
	}
}

/* The primary is first in the list, although each server is asked for its role. */
static void collect_servers(struct conversion *conversion, struct servers *servers,
	const struct source_node *main_section)
{
	const char *failover = source_text(main_section, "failover");

	*servers = (struct servers){.hosts = "", .ports = ""};
	add_servers(conversion, servers, true);
	add_servers(conversion, servers, false);
	if (servers->target && !(failover && fact_is_on(failover)))
		conversion_note(conversion, servers->first,
			"clients go to the server that is the primary, also after a failover");
}

static void put_servers(struct conversion *conversion, const struct servers *servers,
	const struct source_node *node, const char *entry)
{
	if (!servers->first)
		return;
	conversion_put(conversion, node, DRAFT_DATABASES, entry, "host", servers->hosts);
	conversion_put(conversion, node, DRAFT_DATABASES, entry, "port", servers->ports);
	if (servers->target)
		conversion_put(conversion, node, DRAFT_DATABASES, entry, "target_session_attrs",
			servers->target);
}

/* --- files beside ------------------------------------------------------------------------- */

enum { FIELDS_MOST = 8 };

/* A line of words; `count` of them are set. */
struct line {
	const struct source_node *node; /* its place */
	char *fields[FIELDS_MOST];
	unsigned count;
};

typedef void line_reader(
	struct conversion *conversion, const struct line *line, const void *context);

/* Split the line, which lives as long as the source. */
static void split_line(struct line *line, char *text)
{
	char *cursor = text, *word;

	line->count = 0;
	while (line->count < FIELDS_MOST && (word = strsep(&cursor, " \t\r")) != NULL) {
		if (*word != '\0')
			line->fields[line->count++] = word;
	}
}

static void read_line(struct conversion *conversion, const char *path, unsigned number,
	char *text, line_reader *read, const void *context)
{
	struct source_node *node;
	struct line line;

	text[strcspn(text, "#")] = '\0';
	split_line(&line, text);
	if (line.count == 0)
		return;
	node = source_take(conversion->source, sizeof(*node));
	if (!node) {
		conversion->failed = true;
		return;
	}
	*node = (struct source_node){.file = path, .line = number};
	line.node = node;
	read(conversion, &line, context);
}

/*
 * Read each line of the file of this name beside the main file. Returns false, and adds an error,
 * if it exists and cannot be read.
 */
static bool read_beside(
	struct conversion *conversion, const char *name, line_reader *read, const void *context)
{
	const char *slash = strrchr(conversion->file, '/');
	const char *path = conversion_text(conversion, "%.*s%s",
		slash ? (int)(slash - conversion->file) + 1 : 0, conversion->file, name);
	struct problems *problems = draft_findings(conversion->draft);
	struct file_text file;
	char *text, *next;

	if (!file_read(path, SOURCE_FILE_LIMIT, &file)) {
		if (errno == ENOENT)
			return true;
		problems_add(problems, PROBLEM_ERROR, path, 0, "cannot read this file: %s",
			strerror(errno));
		return false;
	}
	text = source_is_text(problems, path, file.text, file.length)
		? source_copy(conversion->source, file.text, file.length)
		: NULL;
	file_text_free(&file);
	if (!text)
		return false;
	next = text;
	for (unsigned number = 1; next; number++) {
		char *line = strsep(&next, "\n");

		read_line(conversion, path, number, line, read, context);
	}
	return true;
}

static const char *name_or_all(const char *word)
{
	return strcmp(word, "all") == 0 ? NULL : word;
}

/* --- pgagroal_databases.conf -------------------------------------------------------------- */

static void add_limit(struct conversion *conversion, const struct line *line,
	const char *database, const char *dbname, const struct servers *servers)
{
	static const struct target size = {NULL, "pool_size", "pool_size"};
	static const struct target least = {NULL, "min_pool_size", NULL};
	struct route *route =
		route_add(conversion, line->node, database, name_or_all(line->fields[1]));

	if (!route)
		return;
	if (!draft_has_entry(conversion->draft, DRAFT_DATABASES, database)) {
		put_servers(conversion, servers, line->node, database);
		if (dbname)
			conversion_put(conversion, line->node, DRAFT_DATABASES, database,
				"dbname", dbname);
	}
	/* `all` as a size: as much as there is. */
	if (strcmp(line->fields[2], "all") != 0)
		route_add_key(conversion, route, &size, line->node, line->fields[2]);
	if (line->count > 4)
		route_add_key(conversion, route, &least, line->node, line->fields[4]);
	else if (line->count > 3)
		route_add_key(conversion, route, &least, line->node, line->fields[3]);
}

/* DATABASE[=ALIAS,...] USER MAX_SIZE [INITIAL_SIZE [MIN_SIZE]] */
static void read_limit(
	struct conversion *conversion, const struct line *line, const void *context)
{
	const struct servers *servers = context;
	char *aliases, *alias;

	if (line->count < 3) {
		conversion_lose(conversion, line->node,
			"a line is DATABASE USER MAX_SIZE INITIAL_SIZE MIN_SIZE");
		return;
	}
	aliases = strchr(line->fields[0], '=');
	if (aliases)
		*aliases++ = '\0';
	add_limit(conversion, line, strcmp(line->fields[0], "all") == 0 ? "*" : line->fields[0],
		NULL, servers);
	while ((alias = strsep(&aliases, ",")) != NULL)
		add_limit(conversion, line, alias, line->fields[0], servers);
}

/* --- pgagroal_hba.conf -------------------------------------------------------------------- */

static const struct {
	const char *word;
	enum auth_method method;
} methods[] = {
	{"all", AUTH_METHOD_MD5},
	{"cert", AUTH_METHOD_CERT},
	{"md5", AUTH_METHOD_MD5},
	{"password", AUTH_METHOD_PASSWORD},
	{"reject", AUTH_METHOD_REJECT},
	{"scram-sha-256", AUTH_METHOD_SCRAM},
	{"trust", AUTH_METHOD_TRUST},
};

/* TYPE DATABASE USER ADDRESS METHOD */
static void read_rule(
	struct conversion *conversion, const struct line *line, const void *context)
{
	struct auth_rule rule = {.node = line->node};
	size_t i = 0;

	(void)context;
	if (line->count < 5) {
		conversion_lose(
			conversion, line->node, "a rule is TYPE DATABASE USER ADDRESS METHOD");
		return;
	}
	while (i < sizeof(methods) / sizeof(methods[0]) &&
		strcmp(methods[i].word, line->fields[4]) != 0)
		i++;
	if (i == sizeof(methods) / sizeof(methods[0])) {
		conversion_lose(conversion, line->node,
			"no such method: %.20s; users it is for "
			"are refused",
			line->fields[4]);
		i = 4;
	}
	rule.method = methods[i].method;
	rule.database = name_or_all(line->fields[1]);
	rule.user = name_or_all(line->fields[2]);
	rule.address = name_or_all(line->fields[3]);
	/* Rules for all connections are for Unix sockets too. */
	rule.type = strcmp(line->fields[0], "host") == 0 && !rule.address ? NULL
		: strcmp(line->fields[0], "local") == 0			  ? "local"
		: strcmp(line->fields[0], "hostssl") == 0		  ? "hostssl"
									  : "host";
	auth_rules_add(conversion, &rule);
	if (strcmp(line->fields[4], "all") == 0)
		conversion_note(conversion, line->node,
			"the method `all` becomes md5, which takes MD5 and SCRAM secrets");
}

/* --- pgagroal_users.conf ------------------------------------------------------------------ */

/* NAME:ENCRYPTED */
static void read_user(
	struct conversion *conversion, const struct line *line, const void *context)
{
	char *colon = strchr(line->fields[0], ':');

	(void)context;
	if (!colon || colon == line->fields[0]) {
		conversion_lose(conversion, line->node, "a line is NAME:PASSWORD");
		return;
	}
	*colon = '\0';
	conversion_lose(conversion, line->node,
		"the password of user %.63s is encrypted with pgagroal's master key: write it, or "
		"the user's secret from pg_authid, into auth_file (etc/mkauth.py writes all)",
		line->fields[0]);
	buffer_printf(&conversion->users_wanted, "; \"%s\" \"...\"\n", line->fields[0]);
}

static bool convert_beside(struct conversion *conversion, const struct servers *servers)
{
	return read_beside(conversion, "pgagroal_databases.conf", read_limit, servers) &&
		read_beside(conversion, "pgagroal_hba.conf", read_rule, NULL) &&
		read_beside(conversion, "pgagroal_users.conf", read_user, NULL);
}

/* --- all ---------------------------------------------------------------------------------- */

static void set_defaults(struct conversion *conversion, const struct source_node *section)
{
	conversion_set(conversion, section, "max_client_conn", "10000");
	draft_remark(conversion->draft, DRAFT_MAIN, "max_client_conn",
		"pgagroal lets as many clients wait as connect.");
	/* All pairs of a database and a user share max_connections. */
	if (draft_get(conversion->draft, "max_server_connections"))
		conversion_set(conversion, section, "default_pool_size",
			draft_get(conversion->draft, "max_server_connections"));
}

bool pgagroal_convert(struct conversion *conversion, const char *text, size_t length)
{
	static const struct ini_events events = {.section = on_section, .pair = on_pair};
	struct problems *problems = draft_findings(conversion->draft);
	struct reading reading = {conversion, false};
	const struct source_node *section;
	struct servers servers;

	if (!source_is_text(problems, conversion->file, text, length))
		return false;
	ini_read_text(conversion->file, text, length, &events, &reading, problems);
	section = source_find(&conversion->source->root, MAIN_SECTION);
	if (reading.failed)
		problems_add(problems, PROBLEM_ERROR, conversion->file, 0, "too many lines");
	else if (!section)
		problems_add(problems, PROBLEM_ERROR, conversion->file, 0,
			"it has no section [%s]", MAIN_SECTION);
	if (problems->errors > 0)
		return false;
	convert_main(conversion, section);
	collect_servers(conversion, &servers, section);
	if (!convert_beside(conversion, &servers))
		return false;
	routes_write(conversion);
	if (!draft_has_entry(conversion->draft, DRAFT_DATABASES, "*"))
		put_servers(conversion, &servers, section, "*");
	set_defaults(conversion, section);
	auth_rules_write(conversion, false);
	return true;
}
