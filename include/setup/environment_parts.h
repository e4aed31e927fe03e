/* SPDX-License-Identifier: ISC */
/*
 * What the files of setup/environment share: environment_names.c knows the names,
 * environment_facts.c collects the values, environment.c makes a configuration of them.
 */
#ifndef PGUSHER_SETUP_ENVIRONMENT_PARTS_H
#define PGUSHER_SETUP_ENVIRONMENT_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "setup/environment.h"

/* Images whose variables are understood. */
enum family {
	FAMILY_NONE, /* the variable is of none of them in particular */
	FAMILY_EDOBURU,
	FAMILY_BITNAMI,
	FAMILY_CRUNCHY,
	FAMILY_ZALANDO,
	FAMILIES,
};

/* What a variable says. */
enum fact_kind {
	FACT_HOST,
	FACT_PORT,
	FACT_USER,
	FACT_PASSWORD,
	FACT_DBNAME, /* name of the database on the server */
	FACT_NAME, /* name of the database for clients; without it that on the server */
	FACT_URL, /* all of the above */
	FACT_URLS, /* several, separated by commas */
	FACT_DSN, /* `NAME=CONNECTION STRING`; its key is the number of the variable */
	FACT_FORCE_USER, /* yes: clients use the server as FACT_USER */
	FACT_FORCE_PASSWORD, /* yes: with FACT_PASSWORD in the entry */
	FACT_USERLIST, /* lines of an auth_file */
	FACT_SCHEMA, /* schema of the function user_lookup */
	FACT_CONNECT_QUERY,
	FACT_CLIENT_ENCODING,
	FACT_FLAGS, /* options of the command line */
	FACT_FOLDER, /* where the configuration belongs */
	FACT_PRESETS, /* nothing for the file: the daemon reads them (daemon/options) */
	FACT_NO_EFFECT, /* a variable for the scripts of an image; its key is its name */
	FACT_PARAMETER, /* of a URL; its key is the name */
	FACT_SETTING, /* its key is the name of the setting */
};

struct fact {
	enum fact_kind kind;
	char *key; /* NULL: none */
	char *value;
	char *variable; /* the one that said it */
	enum family family; /* of the variable */
};

struct environment {
	struct fact *facts;
	size_t count, capacity;
	size_t variables; /* that have a meaning */
	enum family family; /* decided when all variables are read */
	char *file, *users_file; /* where they belong */
};

/* What the images do without being told. */
struct family_defaults {
	const char *place; /* of a file that is used as it is */
	const char *users; /* name of the auth_file beside it */
	const char *host, *user, *admin; /* NULL: none */
	const char *port, *address;
	const char *auth_type, *auth_query;
	const char *ignored; /* ignore_startup_parameters */
	const char *extra_entry; /* a database beside the one that is named; NULL: none */
	bool looks_up; /* the server user runs auth_query for unknown users */
};

/* ---- environment_names.c ---------------------------------------------------------------- */

/* What a name means. */
struct meaning {
	enum fact_kind kind;
	enum family family;
	char key[64]; /* ""; none */
	bool may_be_empty; /* an empty value is one; otherwise it is as if not set */
};

/* Returns whether the variable has a meaning here; _FILE is not cut. */
bool environment_meaning(const char *variable, struct meaning *out);

/* Whether Kubernetes or Docker sets the variable for a service of the same name as ours. */
bool environment_is_service_link(const char *variable, const char *value);

/* The nearest setting, for a variable with our prefix that has no meaning; NULL: none. */
const char *environment_nearest(const char *variable);

const struct family_defaults *environment_defaults(enum family family);

/* ---- environment_facts.c ---------------------------------------------------------------- */

/* The fact of this kind and key; NULL: none. A NULL key finds any. */
const struct fact *environment_find(
	const struct environment *environment, enum fact_kind kind, const char *key);

/* Its value; NULL: none. */
const char *environment_value(const struct environment *environment, enum fact_kind kind);

#endif
