/* SPDX-License-Identifier: ISC */
#include "session/auth_query.h"

#include <string.h>

#include "session/client_limits.h"
#include "session/ending.h"
#include "session/followed.h"
#include "session/pairing.h"
#include "session/relay_rules.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/row.h"
#include "wire/writer.h"

/* What makes a session as new as the protocol can; connect_query follows it as after a login. */
static const char make_new[] = "DISCARD ALL";

/* The answer to the look-up proper, step by step; rows may come before the last. */
static const uint8_t steps[] = {
	PQ_PARSE_COMPLETE,
	PQ_BIND_COMPLETE,
	PQ_ROW_DESCRIPTION,
	PQ_COMMAND_COMPLETE,
};

enum { STEPS = sizeof(steps), STEP_OF_ROWS = STEPS - 1, RESULT_COLUMNS = 2 };

/* --- whom, where and how ------------------------------------------------------------------ */

static const char *first_of(const char *own, const char *global)
{
	const char *chosen = own ? own : global;

	return chosen && chosen[0] != '\0' ? chosen : NULL;
}

const char *auth_query_user(
	const struct registry *registry, const struct database_config *entry)
{
	return first_of(entry->auth_user, registry->settings->auth_user);
}

/* The database to ask in; NULL: there is none, and the client was closed for it. */
static struct database *find_target(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	const char *name = first_of(
		client->database->config->auth_dbname, registry->settings->auth_dbname);
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
		pool = registry_open_pool(registry, target, user);
	if (!pool)
		client_close_for(client, REASON_NO_MEMORY);
	return pool;
}

void auth_query_begin(struct client_link *client, const char *user)
{
	struct pool *pool = find_pool(client);

	if (!pool || pairing_refuse_hopeless(client, pool))
		return;
	if (pool->registry->shutdown == SHUTDOWN_WAIT_FOR_SERVERS) {
		client_close_for(client, REASON_SERVER_SHUTTING_DOWN);
		return;
	}
	if (!lookup_join(client, pool, user)) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	client_enter(client, CLIENT_LOOKING_UP);
	stream_pause(&client->link.stream);
	client_limits_start(client);
	/* At the end of the turn, so that all who came in it share what they have in common. */
	pool_needs_work(pool);
}

/* --- to the server ------------------------------------------------------------------------ */

static const char *query_of(const struct lookup *lookup)
{
	const char *own = lookup->database->config->auth_query;

	return own ? own : lookup->pool->registry->settings->auth_query;
}

static void write_preludes(struct lookup *lookup, struct buffer *out)
{
	const char *connect_query = lookup->pool->database->config->connect_query;

	writer_query(out, make_new);
	lookup->preludes = 1;
	if (!connect_query)
		return;
	writer_query(out, connect_query);
	lookup->preludes++;
}

/* The unnamed statement and portal, one parameter of whatever type, everything as text. */
static void write_query(const struct lookup *lookup, struct buffer *out)
{
	const size_t length = strlen(lookup->user);
	size_t mark = writer_begin(out, PQ_PARSE);

	writer_string(out, "");
	writer_string(out, query_of(lookup));
	writer_int16(out, 0);
	writer_end(out, mark);
	mark = writer_begin(out, PQ_BIND);
	writer_string(out, "");
	writer_string(out, "");
	writer_int16(out, 0);
	writer_int16(out, 1);
	writer_int32(out, (uint32_t)length);
	writer_bytes(out, lookup->user, length);
	writer_int16(out, 0);
	writer_end(out, mark);
	mark = writer_begin(out, PQ_DESCRIBE);
	writer_byte(out, 'P');
	writer_string(out, "");
	writer_end(out, mark);
	mark = writer_begin(out, PQ_EXECUTE);
	writer_string(out, "");
	writer_int32(out, 0);
	writer_end(out, mark);
	writer_message(out, PQ_SYNC, NULL, 0);
}

/* The time for which its logins may take is that of a login again. */
static void start_clocks(const struct lookup *lookup)
{
	const struct login *login;

	TAILQ_FOREACH (login, &lookup->logins, in_lookup)
		client_limits_start(login->client);
}

void auth_query_run(struct lookup *lookup, struct server_link *server)
{
	struct buffer message;
	bool sent;

	lookup->step = lookup->preludes = 0;
	buffer_init(&message);
	if (server->touched)
		write_preludes(lookup, &message);
	write_query(lookup, &message);
	server_enter(server, SERVER_LOOKING_UP);
	server->link.rules = relay_lookup_server;
	server->transaction_status = 0;
	lookup_start(lookup, server);
	server->unnamed = 0;
	sent = requests_add(&server->requests, PQ_SYNC, REQUEST_SWALLOW) && !message.failed &&
		stream_send_bytes(&server->link.stream, message.data, message.length) !=
			STREAM_SENT_NOT;
	buffer_free(&message);
	if (sent)
		start_clocks(lookup);
	else
		server_close_for(server, REASON_SERVER_CONNECTION_CLOSED);
}

/* --- from the server ---------------------------------------------------------------------- */

static bool reject(const struct server_link *server, const char *what)
{
	link_log_repeated(&server->link, LEVEL_ERROR, "auth_query: %s", what);
	return false;
}

/* Of several rows the last one counts. False: none that can be meant. */
static bool take_row(struct server_link *server, const uint8_t *body, size_t length)
{
	struct lookup *lookup = server->lookup;
	struct row_value values[RESULT_COLUMNS];
	const struct row_value *name = &values[0], *secret = &values[1];

	if (row_read(body, length, values, RESULT_COLUMNS) != RESULT_COLUMNS)
		return reject(server, "malformed row");
	if (!name->data || name->length == 0)
		return reject(server, "no name in the first column");
	if (memchr(name->data, '\0', name->length) ||
		(secret->length > 0 && memchr(secret->data, '\0', secret->length)))
		return reject(server, "text with a NUL in it");
	credential_unref(lookup->credential);
	/* NULL is no word that somebody could guess: see struct credential. */
	lookup->credential = credential_new(secret->data, secret->length);
	memset(lookup->name, 0, sizeof(lookup->name));
	memcpy(lookup->name, name->data,
		name->length < CLIENT_USER_NAME_MAX ? name->length : CLIENT_USER_NAME_MAX);
	return lookup->credential != NULL;
}

static bool take_step(
	struct server_link *server, uint8_t type, const uint8_t *body, size_t length)
{
	struct lookup *lookup = server->lookup;

	if (type == PQ_DATA_ROW && lookup->step == STEP_OF_ROWS)
		return take_row(server, body, length);
	if (lookup->step == STEPS || type != steps[lookup->step])
		return reject(server, "unexpected answer");
	if (type == PQ_ROW_DESCRIPTION &&
		row_description_columns(body, length) != RESULT_COLUMNS)
		return reject(server, "result has not two columns");
	lookup->step++;
	return true;
}

/* The server's words are for the log only. Class 57 is its operator's: another server will do. */
static void take_error(
	struct server_link *server, const uint8_t *body, size_t length, enum reason *why)
{
	struct report report;

	report_parse(body, length, &report);
	if (!server->lookup->heard && report.sqlstate &&
		strncmp(report.sqlstate, "57P", 3) == 0) {
		*why = REASON_SERVER_CONN_CRASHED;
		return;
	}
	link_log_repeated(&server->link, LEVEL_ERROR, "S: error in auth_query: %s: %s",
		report.severity ? report.severity : "ERROR",
		report.text ? report.text : "no message");
}

static enum auth_query_progress take_ready(
	struct server_link *server, const uint8_t *body, size_t length)
{
	struct lookup *lookup = server->lookup;

	if (length != 1 || body[0] != READY_IDLE)
		return AUTH_QUERY_BROKEN;
	if (lookup->preludes > 0) {
		server->touched = --lookup->preludes > 0;
		if (parameters_has_followed(server->link.parameters) &&
			!followed_forget(server))
			return AUTH_QUERY_BROKEN;
		return AUTH_QUERY_GOES_ON;
	}
	return lookup->step == STEPS ? AUTH_QUERY_ENDS : AUTH_QUERY_BROKEN;
}

enum auth_query_progress auth_query_answer(struct server_link *server, uint8_t type,
	const uint8_t *body, size_t length, enum reason *why)
{
	struct lookup *lookup = server->lookup;
	bool good = true;

	*why = REASON_AUTH_QUERY_FAILED;
	if (type == PQ_ERROR_RESPONSE) {
		take_error(server, body, length, why);
		return AUTH_QUERY_BROKEN;
	}
	if (type == PQ_READY_FOR_QUERY)
		return take_ready(server, body, length);
	/* What connect_query has to say is not for us. */
	if (lookup->preludes == 0) {
		lookup->heard = true;
		good = take_step(server, type, body, length);
	}
	return good ? AUTH_QUERY_GOES_ON : AUTH_QUERY_BROKEN;
}

/* --- what comes of it --------------------------------------------------------------------- */

static void refuse_unknown(struct client_link *client, const char *user)
{
	if (link_registry(&client->link)->settings->log_connections)
		link_log_repeated(&client->link, LEVEL_LOG, "login failed: db=%s user=%s",
			client->database->name, user);
	client_close_for(client, REASON_NO_SUCH_USER);
}

static void finish(struct lookup *lookup)
{
	struct login *login;

	while ((login = lookup_take_login(lookup)) != NULL) {
		if (lookup->credential)
			client_login_found(login->client, lookup->name, lookup->credential);
		else
			refuse_unknown(login->client, lookup->user);
	}
}

static void fail(struct lookup *lookup, const struct failure *why)
{
	struct login *login;

	while ((login = lookup_take_login(lookup)) != NULL)
		client_close(login->client, why);
}

void auth_query_done(struct server_link *server)
{
	struct lookup *lookup = server->lookup;

	lookup_end(lookup);
	if (server_is_clean(server))
		pairing_release(server);
	else
		server_close_for(server, REASON_IDLE_SERVER_GOT_DIRTY);
	finish(lookup);
}

static bool is_broken(const struct failure *why)
{
	return why->reason == REASON_SERVER_CONN_CRASHED ||
		why->reason == REASON_SERVER_CONNECTION_CLOSED;
}

/*
 * Would another server have known? One that was there before and died unheard, or that could not
 * be made as new, says nothing of the look-up.
 */
static bool deserves_another(const struct lookup *lookup, const struct server_link *server,
	const struct failure *why)
{
	if (lookup->heard)
		return false;
	if (is_broken(why))
		return server->touched || server->link.connect_time < lookup->since;
	return why->reason == REASON_AUTH_QUERY_FAILED && lookup->preludes > 0;
}

void auth_query_server_gone(struct server_link *server, const struct failure *why)
{
	const struct failure hidden = failure_of(REASON_BOUNCER_CONFIG_ERROR);
	struct lookup *lookup = server->lookup;

	if (!lookup)
		return;
	if (deserves_another(lookup, server, why)) {
		lookup_start_again(lookup);
		start_clocks(lookup);
		return;
	}
	lookup_end(lookup);
	fail(lookup, &hidden);
}

void auth_query_leave(struct login *login)
{
	struct server_link *server = lookup_leave(login);

	if (server)
		server_close_for(server, REASON_CLIENT_DISCONNECT_NOT_READY);
}

void auth_query_refuse(struct pool *pool, const struct failure *why)
{
	struct lookup *lookup;

	while ((lookup = TAILQ_FIRST(&pool->lookups)) != NULL) {
		lookup_end(lookup);
		fail(lookup, why);
	}
}
