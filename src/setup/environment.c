/* SPDX-License-Identifier: ISC */
#include "setup/environment.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "config/userlist.h"
#include "setup/environment_parts.h"
#include "setup/target.h"
#include "setup/url.h"

struct filling {
	const struct environment *environment;
	const struct family_defaults *defaults;
	struct draft *draft;
	char *why;
	size_t size;
};

static bool refuse(const struct filling *filling, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static bool refuse(const struct filling *filling, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(filling->why, filling->size, format, arguments);
	va_end(arguments);
	return false;
}

static const char *value_of(const struct filling *filling, enum fact_kind kind)
{
	return environment_value(filling->environment, kind);
}

/* For an error: the variable that has said it. */
static const char *variable_of(const struct filling *filling, enum fact_kind kind)
{
	const struct fact *fact = environment_find(filling->environment, kind, NULL);

	return fact ? fact->variable : "the default";
}

/* --- settings ----------------------------------------------------------------------------- */

static bool set(const struct filling *filling, const char *variable, const char *name,
	const char *value)
{
	char reason[200];

	return draft_set(filling->draft, name, value, reason, sizeof(reason)) ||
		refuse(filling, "%s: %s = %s: %s", variable, name,
			draft_hides(name) ? "..." : value, reason);
}

static bool set_default(const struct filling *filling, const char *name, const char *value)
{
	return draft_get(filling->draft, name) || set(filling, "the default", name, value);
}

static bool take_settings(const struct filling *filling)
{
	const struct environment *environment = filling->environment;

	for (size_t i = 0; i < environment->count; i++) {
		const struct fact *fact = &environment->facts[i];

		if (fact->kind == FACT_SETTING &&
			!set(filling, fact->variable, fact->key, fact->value))
			return false;
	}
	return true;
}

/* A root file system that is read-only has no place for the Unix socket. */
static bool set_socket_folder(const struct filling *filling)
{
	static const char usual[] = "/tmp";

	return draft_get(filling->draft, "unix_socket_dir") ||
		access(usual, W_OK | X_OK) == 0 ||
		(draft_remark(filling->draft, DRAFT_MAIN, "unix_socket_dir",
			 "/tmp cannot be written to, so there is no Unix socket.") &&
			set(filling, "the default", "unix_socket_dir", ""));
}

/* The name of a schema becomes part of a query. */
static bool set_lookup_query(const struct filling *filling)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_";
	const char *schema = value_of(filling, FACT_SCHEMA);
	char query[200];

	if (!schema)
		return !filling->defaults->auth_query ||
			set_default(filling, "auth_query", filling->defaults->auth_query);
	if (schema[strspn(schema, letters)] != '\0' || strlen(schema) > 63)
		return refuse(filling, "%s: a schema is a name of letters, digits and _",
			variable_of(filling, FACT_SCHEMA));
	snprintf(query, sizeof(query), "SELECT * FROM %s.user_lookup($1)", schema);
	return set_default(filling, "auth_query", query);
}

static const char *user_of(const struct filling *filling)
{
	const char *user = value_of(filling, FACT_USER);

	return user ? user : filling->defaults->user;
}

/* With a certificate Zalando's template demands TLS of clients. */
static bool set_client_tls(const struct filling *filling)
{
	return filling->environment->family != FAMILY_ZALANDO ||
		!draft_get(filling->draft, "client_tls_cert_file") ||
		set_default(filling, "client_tls_sslmode", "require");
}

static bool set_defaults(const struct filling *filling)
{
	const struct family_defaults *defaults = filling->defaults;
	const char *admin = defaults->admin ? defaults->admin : user_of(filling);

	return set_default(filling, "listen_addr", defaults->address) &&
		set_default(filling, "listen_port", defaults->port) &&
		set_default(filling, "auth_type", defaults->auth_type) &&
		(!admin || set_default(filling, "admin_users", admin)) &&
		set_default(filling, "ignore_startup_parameters", defaults->ignored) &&
		set_lookup_query(filling) && set_client_tls(filling) &&
		set_socket_folder(filling);
}

/* --- users -------------------------------------------------------------------------------- */

static bool is_auth_type(const struct filling *filling, const char *type)
{
	const char *set_type = draft_get(filling->draft, "auth_type");

	return set_type && strcasecmp(set_type, type) == 0;
}

/* A user that two variables name has one password: an auth_file has no place for another. */
static bool add_user(const struct filling *filling, const char *variable, const char *user,
	const char *password)
{
	const char *former = draft_user_secret(filling->draft, user);
	char reason[200];

	if (former && strcmp(former, password) != 0)
		return refuse(filling, "%s: the user %s has another password elsewhere",
			variable, user);
	return draft_add_user(filling->draft, user, password, reason, sizeof(reason)) ||
		refuse(filling, "%s: %s", variable, reason);
}

/* With auth_type trust a user has to be known, with or without a password. */
static bool add_user_if_known(const struct filling *filling, const char *variable,
	const char *user, const char *password)
{
	if (!user || (!password && !is_auth_type(filling, "trust")))
		return true;
	return add_user(filling, variable, user, password ? password : "");
}

static bool add_listed_users(const struct filling *filling)
{
	const char *lines = value_of(filling, FACT_USERLIST);
	const char *variable = variable_of(filling, FACT_USERLIST);
	struct problems problems = {0};
	const char *name, *secret;
	struct userlist *list;
	bool broken = false, done = true;

	if (!lines)
		return true;
	list = userlist_parse(variable, lines, strlen(lines), &broken, &problems);
	if (!list || broken)
		done = refuse(filling, "%s: a line is \"name\" \"secret\"", variable);
	for (size_t i = 0; done && userlist_entry(list, i, &name, &secret); i++)
		done = add_user(filling, variable, name, secret);
	userlist_unref(list);
	problems_free(&problems);
	return done;
}

/* --- databases ---------------------------------------------------------------------------- */

static bool is_yes(const char *value)
{
	return value &&
		(strcasecmp(value, "yes") == 0 || strcasecmp(value, "true") == 0 ||
			strcmp(value, "1") == 0);
}

static bool put(const struct filling *filling, const char *variable, const char *entry,
	const char *key, const char *value)
{
	char reason[200];

	return !value ||
		draft_put(filling->draft, DRAFT_DATABASES, entry, key, value, reason,
			sizeof(reason)) ||
		refuse(filling, "%s: %s: %s", variable, key, reason);
}

static bool put_fact(
	const struct filling *filling, const char *entry, const char *key, enum fact_kind kind)
{
	return put(filling, variable_of(filling, kind), entry, key, value_of(filling, kind));
}

/*
 * Clients keep their own names at the server, as in the images; the user that is named here looks
 * up the others. It is forced where that was asked for, and with auth_type any, which needs one.
 */
static bool put_user(const struct filling *filling, const char *variable, const char *entry,
	const char *user, const char *password)
{
	const bool any = is_auth_type(filling, "any");

	if (any || is_yes(value_of(filling, FACT_FORCE_USER)))
		return put(filling, variable, entry, "user", user) &&
			(!(any || is_yes(value_of(filling, FACT_FORCE_PASSWORD))) ||
				put(filling, variable, entry, "password", password));
	return !filling->defaults->looks_up || draft_get(filling->draft, "auth_user") ||
		put(filling, variable, entry, "auth_user", user);
}

static bool put_common(const struct filling *filling, const char *entry)
{
	return put_fact(filling, entry, "connect_query", FACT_CONNECT_QUERY) &&
		put_fact(filling, entry, "client_encoding", FACT_CLIENT_ENCODING);
}

/* What a URL has behind its ?. */
static bool put_parameters(const struct filling *filling, const char *entry)
{
	const struct environment *environment = filling->environment;
	struct pairs pairs = {0};
	const char *variable = variable_of(filling, FACT_PARAMETER);
	char reason[300];
	bool done = true;

	for (size_t i = 0; done && i < environment->count; i++) {
		const struct fact *fact = &environment->facts[i];

		if (fact->kind == FACT_PARAMETER)
			done = pairs_add(&pairs, fact->key, fact->value) ||
				refuse(filling, "out of memory");
	}
	done = done &&
		(target_put(filling->draft, entry, &pairs, variable, reason, sizeof(reason)) ||
			refuse(filling, "%s: %s", variable, reason));
	pairs_free(&pairs);
	return done;
}

static bool put_named(const struct filling *filling, const char *entry, const char *dbname)
{
	const char *host = value_of(filling, FACT_HOST);
	const char *user = user_of(filling);

	return put(filling, variable_of(filling, FACT_HOST), entry, "host",
		       host ? host : filling->defaults->host) &&
		put_fact(filling, entry, "port", FACT_PORT) &&
		(!dbname || strcmp(dbname, entry) == 0 ||
			put(filling, variable_of(filling, FACT_DBNAME), entry, "dbname",
				dbname)) &&
		put_user(filling, variable_of(filling, FACT_USER), entry, user,
			value_of(filling, FACT_PASSWORD)) &&
		put_common(filling, entry) && put_parameters(filling, entry);
}

/* Whether variables are about one server, and not only about those in lists. */
static bool is_named(const struct filling *filling)
{
	if (value_of(filling, FACT_HOST))
		return true;
	for (int kind = FACT_HOST; filling->defaults->host && kind <= FACT_NAME; kind++) {
		if (value_of(filling, (enum fact_kind)kind))
			return true;
	}
	return false;
}

/* The server of single variables, or of DATABASE_URL. */
static bool take_named(const struct filling *filling)
{
	const char *dbname = value_of(filling, FACT_DBNAME),
		   *entry = value_of(filling, FACT_NAME);
	const char *extra = filling->defaults->extra_entry;

	if (!is_named(filling))
		return true;
	/* DB_NAME=* means every database under its own name. */
	if (dbname && strcmp(dbname, "*") == 0)
		dbname = NULL;
	if (!entry)
		entry = dbname ? dbname : "*";
	return put_named(filling, entry, dbname) &&
		(!extra || put_named(filling, extra, NULL)) &&
		add_user_if_known(filling, variable_of(filling, FACT_PASSWORD),
			user_of(filling), value_of(filling, FACT_PASSWORD));
}

/* The user of a URL or connection string is one of clients too, like that of single variables. */
static bool put_target(const struct filling *filling, const char *variable, const char *entry,
	struct pairs *pairs)
{
	const char *user = pairs_find(pairs, "user"), *password = pairs_find(pairs, "password");
	char reason[300];
	bool done;

	if (!pairs_find(pairs, "host"))
		return refuse(filling, "%s: %s has no host", variable, entry);
	if (draft_has_entry(filling->draft, DRAFT_DATABASES, entry))
		return refuse(filling, "%s: the database %s is named twice", variable, entry);
	if (!add_user_if_known(filling, variable, user, password) ||
		(user && !put_user(filling, variable, entry, user, password)))
		return false;
	pairs_remove(pairs, "user");
	pairs_remove(pairs, "password");
	done = target_put(filling->draft, entry, pairs, variable, reason, sizeof(reason)) ||
		refuse(filling, "%s: %s", variable, reason);
	return done && put_common(filling, entry);
}

/* A comma ends a URL if another one begins behind it: hosts have commas too. */
static size_t url_length(const char *urls)
{
	size_t length = strcspn(urls, ",");

	while (urls[length] != '\0' &&
		!url_is_one(urls + length + 1 + strspn(urls + length + 1, " \n\t")))
		length += 1 + strcspn(urls + length + 1, ",");
	return length;
}

static bool take_url(const struct filling *filling, const char *variable, const char *url)
{
	struct pairs pairs = {0};
	const char *dbname;
	char reason[200], *entry;
	bool done;

	if (!url_parse(url, &pairs, reason, sizeof(reason))) {
		pairs_free(&pairs);
		return refuse(filling, "%s: %s", variable, reason);
	}
	/* Its name for clients; without one they name a database of the server. */
	dbname = pairs_find(&pairs, "dbname");
	entry = strdup(dbname ? dbname : "*");
	pairs_remove(&pairs, "dbname");
	done = entry ? put_target(filling, variable, entry, &pairs)
		     : refuse(filling, "out of memory");
	free(entry);
	pairs_free(&pairs);
	return done;
}

static bool take_urls(const struct filling *filling)
{
	const char *at = value_of(filling, FACT_URLS);
	const char *variable = variable_of(filling, FACT_URLS);
	bool done = true;

	while (done && at && *at) {
		size_t length;
		char *url;

		at += strspn(at, " \n\t");
		length = url_length(at);
		url = strndup(at, length);
		done = url ? take_url(filling, variable, url)
			   : refuse(filling, "out of memory");
		if (url)
			explicit_bzero(url, strlen(url));
		free(url);
		at += length;
		at += *at == ',';
	}
	return done;
}

/* `NAME=CONNECTION STRING`, as a line of [databases]. */
static bool take_dsn(const struct filling *filling, const struct fact *fact)
{
	const char *equals = strchr(fact->value, '=');
	size_t length = equals ? (size_t)(equals - fact->value) : 0;
	struct pairs pairs = {0};
	char reason[300], *entry;
	bool done;

	while (length > 0 && fact->value[length - 1] == ' ')
		length--;
	if (length == 0)
		return refuse(filling, "%s: it is NAME=CONNECTION STRING", fact->variable);
	entry = strndup(fact->value, length);
	if (!entry)
		return refuse(filling, "out of memory");
	done = target_parse(equals + 1, &pairs, reason, sizeof(reason)) ||
		refuse(filling, "%s: %s", fact->variable, reason);
	if (done && draft_has_entry(filling->draft, DRAFT_DATABASES, entry))
		done = refuse(
			filling, "%s: the database %s is named twice", fact->variable, entry);
	done = done &&
		(target_put(filling->draft, entry, &pairs, fact->variable, reason,
			 sizeof(reason)) ||
			refuse(filling, "%s: %s", fact->variable, reason)) &&
		put_common(filling, entry);
	pairs_free(&pairs);
	free(entry);
	return done;
}

static bool take_dsns(const struct filling *filling)
{
	const struct environment *environment = filling->environment;

	for (size_t i = 0; i < environment->count; i++) {
		if (environment->facts[i].kind == FACT_DSN &&
			!take_dsn(filling, &environment->facts[i]))
			return false;
	}
	return true;
}

/* --- all ---------------------------------------------------------------------------------- */

static void find_no_effect(const struct filling *filling)
{
	const struct environment *environment = filling->environment;

	for (size_t i = 0; i < environment->count; i++) {
		if (environment->facts[i].kind == FACT_NO_EFFECT)
			problems_add(draft_findings(filling->draft), PROBLEM_WARNING,
				environment->facts[i].variable, 0,
				"the variable has no effect");
	}
}

/* Whether there is anything to check a client's password against, or no need for it. */
static bool lets_clients_in(const struct filling *filling)
{
	static const char *const own_ways[] = {"any", "cert", "hba", "ldap", "pam"};
	const char *entry;

	for (size_t i = 0; i < sizeof(own_ways) / sizeof(own_ways[0]); i++) {
		if (is_auth_type(filling, own_ways[i]))
			return true;
	}
	for (size_t i = 0; (entry = draft_entry(filling->draft, DRAFT_DATABASES, i)); i++) {
		if (draft_key(filling->draft, DRAFT_DATABASES, entry, "auth_user"))
			return true;
	}
	return draft_user_count(filling->draft) > 0 || draft_get(filling->draft, "auth_user") ||
		draft_get(filling->draft, "auth_file");
}

static void warn_if_closed(const struct filling *filling)
{
	if (!lets_clients_in(filling))
		problems_add(draft_findings(filling->draft), PROBLEM_WARNING, "the environment",
			0, "no client can log in, since it names no user");
}

bool environment_fill(
	const struct environment *environment, struct draft *draft, char *why, size_t size)
{
	const struct filling filling = {
		.environment = environment,
		.defaults = environment_defaults(environment->family),
		.draft = draft,
		.why = why,
		.size = size,
	};

	find_no_effect(&filling);
	if (!take_settings(&filling) || !set_defaults(&filling) || !take_named(&filling) ||
		!take_urls(&filling) || !take_dsns(&filling) || !add_listed_users(&filling))
		return false;
	warn_if_closed(&filling);
	return true;
}

bool environment_names_server(const struct environment *environment)
{
	return environment->family != FAMILY_NONE;
}

size_t environment_count(const struct environment *environment)
{
	return environment->variables;
}

const char *environment_place(const struct environment *environment, size_t index)
{
	/* Without a server in the variables, each image's place; two of them have the same. */
	static const enum family order[] = {FAMILY_EDOBURU, FAMILY_BITNAMI, FAMILY_CRUNCHY};

	if (index == 0)
		return environment->file;
	if (environment_value(environment, FACT_FOLDER))
		return NULL;
	if (index == 1)
		return environment_defaults(FAMILY_NONE)->place;
	if (environment->family != FAMILY_NONE || index - 2 >= sizeof(order) / sizeof(order[0]))
		return NULL;
	return environment_defaults(order[index - 2])->place;
}

const char *environment_file(const struct environment *environment)
{
	return environment->file;
}

const char *environment_users_file(const struct environment *environment)
{
	return environment->users_file;
}

const char *environment_flags(const struct environment *environment)
{
	return environment_value(environment, FACT_FLAGS);
}
