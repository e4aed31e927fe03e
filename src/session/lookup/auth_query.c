/* SPDX-License-Identifier: ISC */
#include "session/lookup/auth_query.h"

#include <string.h>

#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/parameters/followed.h"
#include "wire/row.h"
#include "wire/writer.h"

/* Resets the session of a server. connect_query runs after it, as after a login. */
static const char reset_query[] = "DISCARD ALL";

enum { RESULT_COLUMNS = 2 };

/* --- where to look up --------------------------------------------------------------------- */

static const char *first_of(const char *own, const char *global)
{
	const char *chosen = own ? own : global;

	return chosen && chosen[0] != '\0' ? chosen : NULL;
}

const char *auth_query_user(
	const struct registry *registry, const struct database_config *entry)
{
	return first_of(entry->auth_user, registry->process->settings->auth_user);
}

/*
 * Returns the database to run the query in, or NULL if there is none; the client was closed
 * then.
 */
static struct database *find_target(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	const char *name = first_of(client->database->config->auth_dbname,
		registry->process->settings->auth_dbname);
	struct database *database = client->database;
	struct failure why = failure_of(REASON_BOUNCER_CONFIG_ERROR);
	bool made = false;

	if (name)
		database = registry_open_database(registry, name, &made);
	if (made)
		link_log(&client->link, LEVEL_LOG, "registered new auto-database: %s", name);
	if (!database) {
		link_log_repeated(&client->link, LEVEL_ERROR,
			"authentication database \"%s\" is not configured.", name);
	} else if (database->console) {
		link_log_repeated(&client->link, LEVEL_ERROR,
			"cannot use the reserved \"pgbouncer\" database as an auth_dbname");
	} else if (database->disabled) {
		why = failure_of(REASON_AUTHENTICATION_DATABASE_DISABLED, database->name);
	} else {
		return database;
	}
	client_close(client, &why);
	return NULL;
}

static struct pool *find_pool(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct database *target = find_target(client);
	struct user *user;
	struct pool *pool = NULL;

	if (!target)
		return NULL;
	user = registry_open_user(
		registry, auth_query_user(registry, client->database->config));
	if (user)
		pool = registry_open_pool(registry, target, user, TARGET_INHERIT);
	if (!pool)
		client_close_for(client, REASON_NO_MEMORY);
	return pool;
}

/* --- to the server ------------------------------------------------------------------------ */

static const struct database *database_of(const struct lookup *lookup)
{
	return lookup->subject;
}

static const char *query_of(const struct lookup *lookup)
{
	const char *own = database_of(lookup)->config->auth_query;

	return own ? own : lookup->pool->registry->process->settings->auth_query;
}

static unsigned write_preludes(struct server_link *server, struct buffer *out)
{
	const char *connect_query = server->link.pool->database->config->connect_query;

	if (!server->touched)
		return 0;
	writer_query(out, reset_query);
	if (!connect_query)
		return 1;
	writer_query(out, connect_query);
	return 2;
}

static bool prelude_done(struct server_link *server)
{
	server->touched = server->lookup->preludes > 0;
	return !parameters_has_followed(server->link.parameters) || followed_forget(server);
}

static unsigned write_query(
	const struct lookup *lookup, const struct server_link *server, struct buffer *out)
{
	const char *user = lookup->user;

	(void)server;
	lookup_write_statement(out, query_of(lookup), &user, 1);
	return 1;
}

/* --- from the server ---------------------------------------------------------------------- */

static unsigned columns(const struct lookup *lookup, unsigned statement)
{
	(void)lookup;
	(void)statement;
	return RESULT_COLUMNS;
}

/*
 * The last of several rows counts. Returns false if the row is invalid, or when out of memory.
 */
static bool take_row(
	struct server_link *server, unsigned statement, const uint8_t *body, size_t length)
{
	struct lookup *lookup = server->lookup;
	struct row_value values[RESULT_COLUMNS];
	const struct row_value *name = &values[0], *secret = &values[1];

	(void)statement;
	if (row_read(body, length, values, RESULT_COLUMNS) != RESULT_COLUMNS)
		return lookup_reject(server, "malformed row");
	if (!name->data || name->length == 0)
		return lookup_reject(server, "no name in the first column");
	if (memchr(name->data, '\0', name->length) ||
		(secret->length > 0 && memchr(secret->data, '\0', secret->length)))
		return lookup_reject(server, "text with a NUL in it");
	credential_unref(lookup->credential);
	/* With NULL no password is right: see struct credential. */
	lookup->credential = credential_new(secret->data, secret->length);
	memset(lookup->name, 0, sizeof(lookup->name));
	memcpy(lookup->name, name->data,
		name->length < CLIENT_USER_NAME_MAX ? name->length : CLIENT_USER_NAME_MAX);
	return lookup->credential != NULL;
}

/* The text of the error goes to the log only, not to clients. */
static enum lookup_error take_error(struct server_link *server, const struct report *report)
{
	link_log_repeated(&server->link, LEVEL_ERROR, "S: error in auth_query: %s: %s",
		report->severity ? report->severity : "ERROR",
		report->text ? report->text : "no message");
	return LOOKUP_ERROR_CLOSES;
}

/* --- the result --------------------------------------------------------------------------- */

static void refuse_unknown(struct client_link *client, const char *user)
{
	if (link_registry(&client->link)->process->settings->log_connections)
		link_log_repeated(&client->link, LEVEL_LOG, "login failed: db=%s user=%s",
			client->database->name, user);
	client_close_for(client, REASON_NO_SUCH_USER);
}

static void finish(struct lookup *lookup)
{
	struct login *login;

	while ((login = lookup_take_login(lookup)) != NULL) {
		if (lookup->credential)
			login->steps->found(login->client, lookup->name, lookup->credential);
		else
			refuse_unknown(login->client, lookup->user);
	}
}

static const struct lookup_kind kind = {
	.name = "auth_query",
	.write_preludes = write_preludes,
	.prelude_done = prelude_done,
	.write = write_query,
	.columns = columns,
	.take_row = take_row,
	.take_error = take_error,
	.finish = finish,
	.broken = REASON_AUTH_QUERY_FAILED,
	.failure = REASON_BOUNCER_CONFIG_ERROR,
};

void auth_query_begin(struct client_link *client, const char *user)
{
	struct pool *pool = find_pool(client);

	if (pool)
		lookup_begin(client, pool, &kind, client->database, user);
}
