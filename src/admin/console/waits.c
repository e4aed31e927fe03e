/* SPDX-License-Identifier: ISC */
#include "admin/console/waits.h"

#include <stdlib.h>
#include <string.h>

#include "admin/console/console_session.h"
#include "admin/console/reply.h"
#include "base/text.h"
#include "session/link/close.h"
#include "session/serving/suspend.h"
#include "wire/writer.h"

/* Most waits of one client. A client needs one at a time. */
enum { WAITS_OF_A_CLIENT = 16, DATABASE_NAME_SIZE = 64 };

struct console_wait {
	LIST_ENTRY(console_wait) entry;
	struct client_link *client;
	enum wait_kind kind;
	bool for_database;
	char database[DATABASE_NAME_SIZE]; /* by name: it may be removed meanwhile */
	wait_answered *answered; /* NULL: no callback, and the answer ends with ReadyForQuery */
	bool is_delayed; /* another answer is being sent to the client */
	bool canceled; /* by a cancel request */
	unsigned all; /* how many servers it waited for at first */
	usec_t since, notified; /* when it began, and when the last notice was sent */
};

/* --- what commands wait for --------------------------------------------------------------- */

struct wait_rules {
	const char *command;
	const char *ended; /* the error if the condition cannot be met any more; NULL: it can */
	/* Can the condition still be met? NULL: always. */
	bool (*holds)(const struct registry *registry, const struct database *database);
	bool (*is_over)(const struct registry *registry, const struct database *database);
	/* The servers that it waits for. */
	struct busy_servers (*count)(
		const struct registry *registry, const struct database *database);
	/* How far it is, in words; `all`: how many servers it waited for at first. */
	void (*describe)(const struct registry *registry, const struct database *database,
		unsigned all, char out[PROGRESS_TEXT_SIZE]);
};

static bool pause_holds(const struct registry *registry, const struct database *database)
{
	return database ? database->paused : registry->process->operation == OPERATION_PAUSED;
}

static bool suspend_holds(const struct registry *registry, const struct database *database)
{
	(void)database;
	return registry->process->operation == OPERATION_SUSPENDED;
}

static bool is_suspended(const struct registry *registry, const struct database *database)
{
	(void)database;
	return suspend_is_complete(registry);
}

static bool is_retired(const struct registry *registry, const struct database *database)
{
	return !control_is_reconnecting(registry, database);
}

static void describe_pause(const struct registry *registry, const struct database *database,
	unsigned all, char out[PROGRESS_TEXT_SIZE])
{
	(void)all;
	progress_of_pause(registry, database, out);
}

static const struct wait_rules rules[WAIT_KINDS] = {
	[WAIT_PAUSE] = {"PAUSE", "PAUSE was ended by RESUME", pause_holds,
		control_pause_is_done, control_count_busy, describe_pause},
	[WAIT_SUSPEND] = {"SUSPEND", "SUSPEND was ended by RESUME", suspend_holds, is_suspended,
		control_count_busy, describe_pause},
	[WAIT_CLOSE] = {"WAIT_CLOSE", NULL, NULL, is_retired, control_count_retired,
		progress_of_reconnect},
};

/* --- the list ----------------------------------------------------------------------------- */

bool waits_add(struct client_link *client, enum wait_kind kind, const struct database *database)
{
	struct registry *registry = link_registry(&client->link);
	struct console_wait *wait, *last = NULL;
	unsigned count = 0;

	LIST_FOREACH(wait, &registry->process->console_waits, entry)
	{
		if (wait->client == client)
			count++;
		last = wait;
	}
	wait = count < WAITS_OF_A_CLIENT ? calloc(1, sizeof(*wait)) : NULL;
	if (!wait)
		return false;
	wait->client = client;
	wait->kind = kind;
	wait->for_database = database != NULL;
	wait->since = wait->notified = loop_now(registry->loop);
	wait->all = rules[kind].count(registry, database).servers;
	if (database)
		text_copy(wait->database, sizeof(wait->database), database->name);
	if (last)
		LIST_INSERT_AFTER(last, wait, entry);
	else
		LIST_INSERT_HEAD(&registry->process->console_waits, wait, entry);
	return true;
}

void waits_answer_to(struct client_link *client, wait_answered *answered)
{
	const struct registry *registry = link_registry(&client->link);
	struct console_wait *wait, *newest = NULL;

	LIST_FOREACH(wait, &registry->process->console_waits, entry)
	{
		if (wait->client == client)
			newest = wait;
	}
	if (newest)
		newest->answered = answered;
}

void waits_delay(struct client_link *client, bool delay)
{
	struct registry *registry = link_registry(&client->link);
	struct console_wait *wait;

	LIST_FOREACH(wait, &registry->process->console_waits, entry)
	{
		if (wait->client == client)
			wait->is_delayed = delay;
	}
	if (!delay)
		waits_look(registry);
}

bool waits_has(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	const struct console_wait *wait;

	LIST_FOREACH(wait, &registry->process->console_waits, entry)
	{
		if (wait->client == client)
			return true;
	}
	return false;
}

static void end_wait(struct console_wait *wait)
{
	LIST_REMOVE(wait, entry);
	free(wait);
}

/* Send the answer and free the wait. May close the client. */
static void answer(struct console_wait *wait, struct buffer *out, bool failed)
{
	struct client_link *client = wait->client;
	wait_answered *answered = wait->answered;

	end_wait(wait);
	if (!answered)
		console_session_write_ready(client, out);
	if (out->failed)
		client_close_for(client, REASON_NO_MEMORY);
	else if (!link_send(&client->link, out))
		client_close_for(client, REASON_UNEXPECTED_EOF);
	else if (answered)
		answered(client, failed);
	buffer_free(out);
}

static void answer_done(struct console_wait *wait)
{
	struct buffer out = {0};

	writer_command_complete(&out, rules[wait->kind].command);
	answer(wait, &out, false);
}

static void answer_error(struct console_wait *wait, const char *text)
{
	struct buffer out = {0};

	reply_error(&out, wait->client, "%s", text);
	answer(wait, &out, true);
}

static const struct database *database_of(
	const struct registry *registry, const struct console_wait *wait)
{
	return wait->for_database ? registry_find_database(registry, wait->database) : NULL;
}

/* Answer the wait if it is over. Returns whether it was. */
static bool look(struct registry *registry, struct console_wait *wait)
{
	const struct wait_rules *rule = &rules[wait->kind];
	const struct database *database = database_of(registry, wait);

	if (wait->is_delayed)
		return false;
	if (wait->canceled) {
		answer_error(wait, "canceled");
	} else if (wait->for_database && !database) {
		/* The database was removed with all its servers. */
		if (rule->ended)
			answer_error(wait, "the paused database was removed");
		else
			answer_done(wait);
	} else if (rule->holds && !rule->holds(registry, database)) {
		answer_error(wait, rule->ended);
	} else if (rule->is_over(registry, database)) {
		answer_done(wait);
	} else {
		return false;
	}
	return true;
}

static bool end_one(struct registry *registry)
{
	struct console_wait *wait;

	LIST_FOREACH(wait, &registry->process->console_waits, entry)
	{
		if (look(registry, wait))
			return true;
	}
	return false;
}

/* --- notices and SHOW WAITS --------------------------------------------------------------- */

struct wait_view waits_view(const struct registry *registry, const struct console_wait *wait,
	char text[PROGRESS_TEXT_SIZE])
{
	const struct wait_rules *rule = &rules[wait->kind];
	const struct database *database = database_of(registry, wait);

	rule->describe(registry, database, wait->all, text);
	return (struct wait_view){
		.command = rules[wait->kind].command,
		.database = wait->for_database ? wait->database : NULL,
		.client = wait->client,
		.since = wait->since,
		.servers = rule->count(registry, database).servers,
	};
}

static void notify(struct registry *registry, struct console_wait *wait)
{
	struct progress progress;
	char notice[PROGRESS_LINE_SIZE];
	const struct wait_view view = waits_view(registry, wait, progress.text);

	progress.command = view.command;
	progress.database = view.database;
	progress.since = view.since;
	progress_line(&progress, loop_now(registry->loop), notice);
	console_session_notify(wait->client, notice);
}

/* Send the first notice that is due. Returns false if there is none. */
static bool notify_one(struct registry *registry)
{
	const usec_t now = loop_now(registry->loop);
	struct console_wait *wait;

	LIST_FOREACH(wait, &registry->process->console_waits, entry)
	{
		/* The process of a takeover expects the tag of SUSPEND and nothing else. */
		if (now - wait->notified < CONSOLE_NOTICE_PERIOD || wait->kind == WAIT_SUSPEND)
			continue;
		wait->notified = now;
		/* Do not add notices to the backlog of a client that does not read. */
		if (!stream_is_blocked(&wait->client->link.stream)) {
			notify(registry, wait);
			return true;
		}
	}
	return false;
}

const struct console_wait *waits_next(
	const struct registry *registry, const struct console_wait *after)
{
	return after ? LIST_NEXT(after, entry) : LIST_FIRST(&registry->process->console_waits);
}

bool waits_has_kind(const struct registry *registry, enum wait_kind kind, const char *database)
{
	const struct console_wait *wait;

	LIST_FOREACH(wait, &registry->process->console_waits, entry)
	{
		if (wait->kind == kind && wait->for_database == (database != NULL) &&
			(!database || strcmp(wait->database, database) == 0))
			return true;
	}
	return false;
}

void waits_look(struct registry *registry)
{
	if (LIST_EMPTY(&registry->process->console_waits))
		return;
	control_close_unused(registry);
	/* Start over after each: its client may have been closed, which frees other waits. */
	while (end_one(registry))
		;
	while (notify_one(registry))
		;
}

void waits_drop(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct console_wait *wait = LIST_FIRST(&registry->process->console_waits);

	while (wait) {
		if (wait->client != client) {
			wait = LIST_NEXT(wait, entry);
			continue;
		}
		end_wait(wait);
		wait = LIST_FIRST(&registry->process->console_waits);
	}
}

void waits_cancel(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct console_wait *wait;

	LIST_FOREACH(wait, &registry->process->console_waits, entry)
	{
		if (wait->client == client)
			wait->canceled = true;
	}
	waits_look(registry);
}
