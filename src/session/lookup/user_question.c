/* SPDX-License-Identifier: ISC */
#include "session/lookup/user_question.h"

#include <string.h>

#include "session/lookup/lookup_server.h"
#include "session/parameters/followed.h"
#include "wire/row.h"
#include "wire/writer.h"

/* Resets the session of a server. connect_query runs after it, as after a login. */
static const char reset_query[] = "DISCARD ALL";

enum { RESULT_COLUMNS = 2 };

/* --- to the server ------------------------------------------------------------------------ */

static const struct database *database_of(const struct lookup *lookup)
{
	return lookup->subject;
}

static const char *query_of(const struct lookup *lookup)
{
	const char *own = lookup->text ? lookup->text : database_of(lookup)->config->auth_query;

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

static void finish(struct lookup *lookup)
{
	/* The look-up is freed after its last asker. */
	struct credential *credential = lookup->credential;
	struct asker *asker;

	while ((asker = lookup_take_asker(lookup)) != NULL)
		asker->events->found(
			asker, credential ? lookup->name : lookup->user, credential);
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

/* --- where to ask ------------------------------------------------------------------------- */

/* The configuration is wrong: clients learn no more than that. */
static struct user_question_refusal misconfigured(enum user_question_problem problem)
{
	return (struct user_question_refusal){
		.problem = problem, .why = failure_of(REASON_BOUNCER_CONFIG_ERROR)};
}

static struct user_question_refusal refused(const struct failure *why)
{
	return (struct user_question_refusal){.problem = USER_QUESTION_REFUSED, .why = *why};
}

static void log_made(const struct user_question *question)
{
	if (question->link)
		link_log(question->link, LEVEL_LOG, "registered new auto-database: %s",
			question->where);
	else
		log_write(LEVEL_LOG, "registered new auto-database: %s", question->where);
}

/* Returns the database to run the query in, or NULL if there is none. */
static struct database *find_target(struct registry *registry,
	const struct user_question *question, struct user_question_refusal *refusal)
{
	struct database *database = question->database;
	struct failure why;
	bool made = false;

	if (question->where)
		database = registry_open_database(registry, question->where, &made);
	if (made)
		log_made(question);
	if (!database) {
		*refusal = misconfigured(USER_QUESTION_NO_DATABASE);
	} else if (database->console) {
		*refusal = misconfigured(USER_QUESTION_CONSOLE);
	} else if (database->disabled) {
		why = failure_of(REASON_AUTHENTICATION_DATABASE_DISABLED, database->name);
		*refusal = refused(&why);
	} else {
		return database;
	}
	return NULL;
}

static struct pool *find_pool(struct registry *registry, const struct user_question *question,
	struct user_question_refusal *refusal)
{
	const struct failure no_memory = failure_of(REASON_NO_MEMORY);
	struct database *target = find_target(registry, question, refusal);
	struct user *user;
	struct pool *pool = NULL;

	if (!target)
		return NULL;
	user = registry_open_user(registry, question->auth_user);
	if (user)
		pool = registry_open_pool(registry, target, user, TARGET_INHERIT);
	if (!pool)
		*refusal = refused(&no_memory);
	return pool;
}

void user_question_log(
	const struct client_link *client, const char *where, enum user_question_problem problem)
{
	switch (problem) {
	case USER_QUESTION_REFUSED:
		break;
	case USER_QUESTION_NO_DATABASE:
		link_log_repeated(&client->link, LEVEL_ERROR,
			"authentication database \"%s\" is not configured.", where);
		break;
	case USER_QUESTION_CONSOLE:
		link_log_repeated(&client->link, LEVEL_ERROR,
			"cannot use the reserved \"pgbouncer\" database as an auth_dbname");
		break;
	}
}

bool user_question_ask(struct asker *asker, struct registry *registry,
	const struct user_question *question, struct user_question_refusal *refusal)
{
	struct pool *pool = find_pool(registry, question, refusal);
	const struct lookup_question asked = {
		.kind = &kind,
		.subject = question->database,
		.user = question->user,
		.text = question->query,
	};
	struct failure why;

	if (!pool)
		return false;
	if (lookup_ask(asker, pool, &asked, question->replica, &why))
		return true;
	*refusal = refused(&why);
	return false;
}
