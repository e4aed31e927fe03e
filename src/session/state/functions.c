/* SPDX-License-Identifier: ISC */
#include "session/state/functions.h"

#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "session/link/close.h"
#include "session/parameters/welcome_message.h"
#include "session/relay/own_query.h"
#include "session/state/functions_query.h"

enum {
	/* Memory for an answer; a longer one is as one with too many names. */
	ANSWER_SIZE_MAX = 1024 * 1024,
};

/* The catalog of a database is read no more often, whatever its clients do. */
#define READ_PAUSE USEC_PER_SEC

static struct session_functions *functions_of(const struct server_link *server)
{
	return &server->link.pool->database->functions;
}

/* --- when to read ------------------------------------------------------------------------- */

static bool is_old(const struct session_functions *functions, const struct pool *pool)
{
	return loop_now(pool->registry->loop) - functions->read_at >
		pool->registry->process->settings->session_functions_refresh;
}

static bool is_due(const struct pool *pool)
{
	const struct session_functions *functions = &pool->database->functions;

	if (!pool_watches_functions(pool) || functions->reader ||
		(functions->read_at != 0 &&
			loop_now(pool->registry->loop) - functions->read_at < READ_PAUSE))
		return false;
	/* What is not committed cannot be read yet. */
	if (functions->changing > 0)
		return false;
	return !functions->known || functions->doubted || functions->due ||
		is_old(functions, pool);
}

static bool may_read(const struct server_link *server)
{
	const struct process *process = server->link.pool->registry->process;

	return !server->replication && !server->listens && !server->watches &&
		!server->close_needed && server->cancels == 0 && server->cancels_queued == 0 &&
		!pool_is_paused(server->link.pool) && !process->draining && !process->still &&
		server_is_clean(server);
}

static int major_version(const struct pool *pool)
{
	const char *version = welcome_message_value(pool, "server_version");

	return version ? atoi(version) : 0;
}

bool functions_read(struct server_link *server)
{
	struct session_functions *functions = functions_of(server);
	struct buffer sql = {0};

	server->functions_due = false;
	if (!is_due(server->link.pool) || !may_read(server))
		return false;
	functions->reader = server;
	functions->reader_used_at = server->link.request_time;
	functions->read_at = loop_now(server->link.stream.loop);
	functions->doubts_then = functions->doubts;
	functions->refused = functions->interrupted = false;
	functions_query_write(&sql, major_version(server->link.pool),
		functions->known ? functions->print : "");
	buffer_clear(&server->kept);
	if (server->link.state != SERVER_ASKING)
		server_enter(server, SERVER_ASKING);
	server->link.request_time = functions->read_at;
	if (sql.failed)
		server_close_for(server, REASON_NO_MEMORY);
	else if (own_query_send(server, (const char *)sql.data))
		server_set_task(server, SERVER_TASK_FUNCTIONS);
	buffer_free(&sql);
	return true;
}

bool functions_are_read(const struct pool *pool)
{
	const struct session_functions *functions = &pool->database->functions;

	return !functions->known && functions->reader && functions->reader->link.pool == pool;
}

/* --- the answer --------------------------------------------------------------------------- */

void functions_take_row(struct server_link *server, const struct row_value row[3])
{
	struct buffer *answer = &server->kept;

	for (int i = 0; i < 3; i++) {
		if (!row[i].data || memchr(row[i].data, '\0', row[i].length) ||
			answer->length + row[i].length > ANSWER_SIZE_MAX) {
			answer->failed = true;
			return;
		}
	}
	for (int i = 0; i < 3; i++) {
		buffer_append(answer, row[i].data, row[i].length);
		buffer_append(answer, "", 1);
	}
}

void functions_not_read(struct server_link *server)
{
	functions_of(server)->refused = true;
}

void functions_refused(struct server_link *server, const struct report *report)
{
	/* Of the last client of the server, maybe: another one may do it. */
	const bool passing = report_is_time_limit(report) || report_is_of(report, "57") ||
		report_is_of(report, "53");

	functions_of(server)->refused = !passing;
	functions_of(server)->interrupted = passing;
	link_log_repeated(&server->link, LEVEL_WARNING, "cannot read functions: %s",
		report->text ? report->text : "no message");
}

/* Take a row into the list. Returns false if it does not fit. */
static bool add(struct session_functions *functions, char letter, const char *name,
	session_topics topics)
{
	switch (letter) {
	case FUNCTIONS_NAME:
	case FUNCTIONS_PART:
		return watched_names_add(&functions->names, name, strlen(name), topics,
			letter == FUNCTIONS_PART);
	case FUNCTIONS_SETTING:
		return session_functions_add_setting(functions, name, strlen(name));
	default:
		return false;
	}
}

/* Take the rows behind the first one. */
static void take_rows(
	struct session_functions *functions, const struct buffer *answer, size_t at)
{
	const char *text = (const char *)answer->data;

	while (at < answer->length) {
		const char *letter = text + at, *name = letter + strlen(letter) + 1,
			   *topics = name + strlen(name) + 1;

		if (!add(functions, *letter, name, (session_topics)atoi(topics)))
			functions->everything = true;
		at = (size_t)(topics - text) + strlen(topics) + 1;
	}
}

static bool is_print(const char *text)
{
	return strspn(text, "0123456789.") == strlen(text) &&
		strlen(text) < sizeof(((struct session_functions *)NULL)->print);
}

/* Returns whether the answer has a list that is not the known one, and takes it. */
static bool take_answer(struct session_functions *functions, const struct buffer *answer)
{
	const char *letter = (const char *)answer->data, *print = letter + 2;

	/* A server that is not PostgreSQL, or one that cannot be read. */
	if (functions->refused || (!answer->failed && answer->length == 0))
		return false;
	if (answer->failed) { /* too long */
		session_functions_clear(functions);
		functions->everything = true;
		return true;
	}
	if (letter[0] != FUNCTIONS_PRINT || letter[1] != '\0' || !is_print(print))
		return false;
	if (functions->known && strcmp(print, functions->print) == 0)
		return false;
	session_functions_clear(functions);
	memcpy(functions->print, print, strlen(print) + 1);
	/* Behind the print and its topics, "0". */
	take_rows(functions, answer, strlen(print) + 3 + 2);
	return true;
}

static void log_list(
	const struct server_link *server, const struct session_functions *functions)
{
	if (functions->everything)
		link_log(&server->link, LEVEL_WARNING,
			"too many functions may change the session, or some without a name: each "
			"transaction is followed by a question");
	else if (watched_names_count(&functions->names) > 0)
		link_log(&server->link, LEVEL_LOG,
			"%u functions, or what calls them, may change the session",
			watched_names_count(&functions->names));
}

void functions_done(struct server_link *server)
{
	struct session_functions *functions = functions_of(server);
	const bool current = functions->doubts == functions->doubts_then;

	functions->reader = NULL;
	server->link.request_time = functions->reader_used_at;
	/* If it was forgotten meanwhile, the answer may be of another database. */
	if (!functions->interrupted && (functions->known || current)) {
		if (take_answer(functions, &server->kept))
			log_list(server, functions);
		functions->known = true;
		functions->due = false;
		functions->doubted =
			functions->doubted && (!current || functions->changing > 0);
		session_functions_apply(server->link.pool->database);
	}
	buffer_free(&server->kept);
}

/* A server that has not answered in time would not do so the next time either. */
void functions_server_closed(struct server_link *server)
{
	struct session_functions *functions = functions_of(server);
	const usec_t limit =
		server->link.pool->registry->process->settings->server_connect_timeout;

	functions_settle(server);
	if (functions->reader != server)
		return;
	functions->reader = NULL;
	if (limit <= 0 || loop_now(server->link.stream.loop) - functions->read_at < limit)
		return;
	session_functions_clear(functions);
	functions->known = functions->everything = true;
	log_list(server, functions);
	session_functions_apply(server->link.pool->database);
}

/* --- what may change them ----------------------------------------------------------------- */

static bool is_in(const char *tag, const char *const *list)
{
	for (; *list; list++) {
		if (strcmp(tag, *list) == 0)
			return true;
	}
	return false;
}

/* Does this command define a function? Else it may have something call one that is known. */
static bool defines_function(const char *tag)
{
	static const char *const tags[] = {"CREATE FUNCTION", "CREATE PROCEDURE",
		"CREATE EXTENSION", "ALTER FUNCTION", "ALTER PROCEDURE", "ALTER ROUTINE",
		"ALTER EXTENSION", NULL};

	return is_in(tag, tags);
}

static bool defines_caller(const struct server_link *server, const char *tag)
{
	if (strncmp(tag, "CREATE ", 7) != 0 && strncmp(tag, "ALTER ", 6) != 0)
		return false;
	/* It does so by its name, which was in a text of the transaction then. */
	return (server->suspected & TOPICS_ALL) &&
		watched_names_count(&functions_of(server)->names) > 0;
}

bool functions_note_tag(struct server_link *server, const char *tag)
{
	struct session_functions *functions = functions_of(server);

	if (!pool_watches_functions(server->link.pool))
		return false;
	/* These define functions seldom. */
	if (strcmp(tag, "DO") == 0 || strcmp(tag, "CALL") == 0)
		functions->due = true;
	if (!defines_function(tag) && !defines_caller(server, tag))
		return false;
	if (!server->changes_functions)
		functions->changing++;
	server->changes_functions = true;
	session_functions_doubt(server->link.pool->database);
	return true;
}

void functions_settle(struct server_link *server)
{
	if (!server->changes_functions)
		return;
	server->changes_functions = false;
	functions_of(server)->changing--;
}

/* --- from time to time -------------------------------------------------------------------- */

static bool was_used_since(const struct pool *pool, usec_t since)
{
	const struct link *link;

	if (pool->server_count[SERVERS_ACTIVE] > 0)
		return true;
	TAILQ_FOREACH (link, &pool->servers[SERVERS_IDLE], place) {
		if (link->request_time > since)
			return true;
	}
	return false;
}

/* Have the first server that is released read them. */
static void read_at_release(struct pool *pool)
{
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		if (link->state == SERVER_PAIRED && !server_of(link)->replication) {
			server_of(link)->functions_due = true;
			return;
		}
	}
}

void functions_upkeep(struct pool *pool)
{
	struct session_functions *functions = &pool->database->functions;
	struct link *idle = TAILQ_FIRST(&pool->servers[SERVERS_IDLE]);

	if (!is_due(pool))
		return;
	/* While the database is not used its servers are left alone: the next use is suspected. */
	if (functions->known && !was_used_since(pool, functions->read_at)) {
		if (!functions->doubted)
			session_functions_doubt(pool->database);
		return;
	}
	if (!idle || !functions_read(server_of(idle)))
		read_at_release(pool);
}
