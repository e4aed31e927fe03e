/* SPDX-License-Identifier: ISC */
/* The names of variables, one row each. doc/install-container.md has the same table. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "config/settings.h"
#include "setup/environment_parts.h"

static const struct {
	const char *variable;
	enum fact_kind kind;
	enum family family;
	const char *setting; /* of FACT_SETTING */
} rows[] = {
	/* edoburu/pgbouncer. Settings under their upper-case names are found without a row. */
	{"DATABASE_URL", FACT_URL, FAMILY_EDOBURU, NULL},
	{"DATABASE_URLS", FACT_URLS, FAMILY_EDOBURU, NULL},
	{"DB_HOST", FACT_HOST, FAMILY_EDOBURU, NULL},
	{"DB_PORT", FACT_PORT, FAMILY_EDOBURU, NULL},
	{"DB_USER", FACT_USER, FAMILY_EDOBURU, NULL},
	{"DB_PASSWORD", FACT_PASSWORD, FAMILY_EDOBURU, NULL},
	{"DB_NAME", FACT_DBNAME, FAMILY_EDOBURU, NULL},
	{"CLIENT_ENCODING", FACT_CLIENT_ENCODING, FAMILY_EDOBURU, NULL},
	{"POOL_SIZE", FACT_SETTING, FAMILY_EDOBURU, "default_pool_size"},
	/* bitnami/pgbouncer. PGBOUNCER_<SETTING> is found without a row. */
	{"POSTGRESQL_HOST", FACT_HOST, FAMILY_BITNAMI, NULL},
	{"POSTGRESQL_PORT", FACT_PORT, FAMILY_BITNAMI, NULL},
	{"POSTGRESQL_USERNAME", FACT_USER, FAMILY_BITNAMI, NULL},
	{"POSTGRESQL_PASSWORD", FACT_PASSWORD, FAMILY_BITNAMI, NULL},
	{"POSTGRESQL_DATABASE", FACT_DBNAME, FAMILY_BITNAMI, NULL},
	{"PGBOUNCER_DATABASE", FACT_NAME, FAMILY_BITNAMI, NULL},
	{"PGBOUNCER_PORT", FACT_SETTING, FAMILY_BITNAMI, "listen_port"},
	{"PGBOUNCER_BIND_ADDRESS", FACT_SETTING, FAMILY_BITNAMI, "listen_addr"},
	{"PGBOUNCER_SOCKET_DIR", FACT_SETTING, FAMILY_BITNAMI, "unix_socket_dir"},
	{"PGBOUNCER_SOCKET_MODE", FACT_SETTING, FAMILY_BITNAMI, "unix_socket_mode"},
	{"PGBOUNCER_SOCKET_GROUP", FACT_SETTING, FAMILY_BITNAMI, "unix_socket_group"},
	{"PGBOUNCER_DAEMON_USER", FACT_SETTING, FAMILY_BITNAMI, "user"},
	{"PGBOUNCER_DAEMON_GROUP", FACT_NO_EFFECT, FAMILY_BITNAMI, NULL},
	{"PGBOUNCER_FORCE_INITSCRIPTS", FACT_NO_EFFECT, FAMILY_BITNAMI, NULL},
	{"PGBOUNCER_USERLIST", FACT_USERLIST, FAMILY_BITNAMI, NULL},
	{"PGBOUNCER_SET_DATABASE_USER", FACT_FORCE_USER, FAMILY_BITNAMI, NULL},
	{"PGBOUNCER_SET_DATABASE_PASSWORD", FACT_FORCE_PASSWORD, FAMILY_BITNAMI, NULL},
	{"PGBOUNCER_CONNECT_QUERY", FACT_CONNECT_QUERY, FAMILY_BITNAMI, NULL},
	{"PGBOUNCER_EXTRA_FLAGS", FACT_FLAGS, FAMILY_BITNAMI, NULL},
	/* Crunchy's container before its operator of version 5. */
	{"PG_SERVICE", FACT_HOST, FAMILY_CRUNCHY, NULL},
	{"PGBOUNCER_PASSWORD", FACT_PASSWORD, FAMILY_CRUNCHY, NULL},
	/* Zalando's operator. */
	{"PGHOST", FACT_HOST, FAMILY_ZALANDO, NULL},
	{"PGPORT", FACT_PORT, FAMILY_ZALANDO, NULL},
	{"PGUSER", FACT_USER, FAMILY_ZALANDO, NULL},
	{"PGPASSWORD", FACT_PASSWORD, FAMILY_ZALANDO, NULL},
	{"PGSCHEMA", FACT_SCHEMA, FAMILY_ZALANDO, NULL},
	{"CONNECTION_POOLER_PORT", FACT_SETTING, FAMILY_ZALANDO, "listen_port"},
	{"CONNECTION_POOLER_MODE", FACT_SETTING, FAMILY_ZALANDO, "pool_mode"},
	{"CONNECTION_POOLER_DEFAULT_SIZE", FACT_SETTING, FAMILY_ZALANDO, "default_pool_size"},
	{"CONNECTION_POOLER_MIN_SIZE", FACT_SETTING, FAMILY_ZALANDO, "min_pool_size"},
	{"CONNECTION_POOLER_RESERVE_SIZE", FACT_SETTING, FAMILY_ZALANDO, "reserve_pool_size"},
	{"CONNECTION_POOLER_MAX_CLIENT_CONN", FACT_SETTING, FAMILY_ZALANDO, "max_client_conn"},
	{"CONNECTION_POOLER_MAX_DB_CONN", FACT_SETTING, FAMILY_ZALANDO, "max_db_connections"},
	{"CONNECTION_POOLER_CLIENT_TLS_CRT", FACT_SETTING, FAMILY_ZALANDO,
		"client_tls_cert_file"},
	{"CONNECTION_POOLER_CLIENT_TLS_KEY", FACT_SETTING, FAMILY_ZALANDO,
		"client_tls_key_file"},
	{"CONNECTION_POOLER_CLIENT_CA_FILE", FACT_SETTING, FAMILY_ZALANDO,
		"client_tls_ca_file"},
	{"INFRASTRUCTURE_ROLES", FACT_SETTING, FAMILY_ZALANDO, "stats_users"},
	/* Our own, beside PGUSHER_<SETTING>. */
	{"PGUSHER_CONFIG_FOLDER", FACT_FOLDER, FAMILY_NONE, NULL},
	{"PGUSHER_PRESETS", FACT_PRESETS, FAMILY_NONE, NULL},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char own_prefix[] = "PGUSHER_";
static const char dsn_prefix[] = "PGBOUNCER_DSN_";

/* Prefixes of settings. The last one is none. */
static const char *const prefixes[] = {own_prefix, "PGBOUNCER_", ""};

static bool begins(const char *text, const char *front)
{
	return strncmp(text, front, strlen(front)) == 0;
}

/* Write the name in small letters; false if it is not one of capitals, or too long. */
static bool to_small(const char *name, char *out, size_t size)
{
	static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	const size_t length = strlen(name);

	if (length >= size || name[strspn(name, capitals)] != '\0')
		return false;
	for (size_t i = 0; i <= length; i++)
		out[i] = (char)tolower((unsigned char)name[i]);
	return true;
}

/* USER is set by most shells, and is not about us. */
static bool is_setting(const char *variable, struct meaning *out)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		char name[sizeof(out->key)];

		if (!begins(variable, prefixes[i]) ||
			!to_small(variable + strlen(prefixes[i]), name, sizeof(name)) ||
			!settings_find(name) || strcmp(variable, "USER") == 0)
			continue;
		*out = (struct meaning){
			.kind = FACT_SETTING, .may_be_empty = prefixes[i] == own_prefix};
		memcpy(out->key, name, sizeof(name));
		return true;
	}
	return false;
}

static bool is_dsn(const char *variable, struct meaning *out)
{
	const char *number = variable + strlen(dsn_prefix);

	if (!begins(variable, dsn_prefix) || *number == '\0' ||
		number[strspn(number, "0123456789")] != '\0' ||
		strlen(number) >= sizeof(out->key))
		return false;
	*out = (struct meaning){.kind = FACT_DSN, .family = FAMILY_BITNAMI};
	memcpy(out->key, number, strlen(number) + 1);
	return true;
}

bool environment_meaning(const char *variable, struct meaning *out)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].variable, variable) != 0)
			continue;
		*out = (struct meaning){.kind = rows[i].kind, .family = rows[i].family};
		snprintf(out->key, sizeof(out->key), "%s",
			rows[i].setting				 ? rows[i].setting
				: rows[i].kind == FACT_NO_EFFECT ? variable
								 : "");
		return true;
	}
	return is_dsn(variable, out) || is_setting(variable, out);
}

bool environment_is_service_link(const char *variable, const char *value)
{
	return begins(value, "tcp://") || begins(value, "udp://") || begins(value, "sctp://") ||
		strstr(variable, "_SERVICE_HOST") || strstr(variable, "_SERVICE_PORT") ||
		strstr(variable, "_PORT_");
}

const char *environment_nearest(const char *variable)
{
	char name[64];

	if (!begins(variable, own_prefix) ||
		!to_small(variable + strlen(own_prefix), name, sizeof(name)))
		return NULL;
	return settings_nearest(name);
}

/* --- families ----------------------------------------------------------------------------- */

static const char numbers[] = "extra_float_digits";

static const struct family_defaults defaults[FAMILIES] = {
	[FAMILY_NONE] = {.place = "/etc/pgusher/pgusher.ini",
		.users = "userlist.txt",
		.port = "6432",
		.address = "*",
		.auth_type = "scram-sha-256",
		.ignored = ""},
	[FAMILY_EDOBURU] = {.place = "/etc/pgbouncer/pgbouncer.ini",
		.users = "userlist.txt",
		.admin = "postgres",
		.port = "5432",
		.address = "0.0.0.0",
		.auth_type = "md5",
		.ignored = numbers,
		.looks_up = true},
	[FAMILY_BITNAMI] = {.place = "/bitnami/pgbouncer/conf/pgbouncer.ini",
		.users = "userlist.txt",
		.host = "postgresql",
		.user = "postgres",
		.port = "6432",
		.address = "0.0.0.0",
		.auth_type = "scram-sha-256",
		.ignored = numbers},
	[FAMILY_CRUNCHY] = {.place = "/pgconf/pgbouncer.ini",
		.users = "users.txt",
		.user = "pgbouncer",
		.port = "5432",
		.address = "*",
		.auth_type = "md5",
		.auth_query = "SELECT username, password FROM pgbouncer.get_auth($1)",
		.ignored = numbers,
		.looks_up = true},
	[FAMILY_ZALANDO] = {.place = "/etc/pgbouncer/pgbouncer.ini",
		.users = "userlist.txt",
		.port = "5432",
		.address = "*",
		.auth_type = "md5",
		.ignored = "extra_float_digits,options",
		.extra_entry = "postgres",
		.looks_up = true},
};

const struct family_defaults *environment_defaults(enum family family)
{
	return &defaults[family];
}
