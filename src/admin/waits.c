/* SPDX-License-Identifier: ISC */
#include "admin/waits.h"

#include <stdlib.h>

#include "admin/reply.h"
#include "base/text.h"
#include "session/control.h"
#include "session/ending.h"
#include "wire/writer.h"

/* One client can have this many unanswered commands; nobody needs a second. */
enum { WAITS_OF_A_CLIENT = 16, DATABASE_NAME_SIZE = 64 };

struct console_wait {
	LIST_ENTRY(console_wait) entry;
	struct client_link *client;
	enum wait_kind kind;
	bool for_database;
	char database[DATABASE_NAME_SIZE]; /* by name: it may vanish meanwhile */
};

bool waits_add(struct client_link *client, enum wait_kind kind, const struct database *database)
{
	struct registry *registry = link_registry(&client->link);
	struct console_wait *wait, *last = NULL;
	unsigned count = 0;

	LIST_FOREACH(wait, &registry->console_waits, entry)
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
	if (database)
		text_copy(wait->database, sizeof(wait->database), database->name);
	if (last)
		LIST_INSERT_AFTER(last, wait, entry);
	else
		LIST_INSERT_HEAD(&registry->console_waits, wait, entry);
	return true;
}

bool waits_has(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	const struct console_wait *wait;

	LIST_FOREACH(wait, &registry->console_waits, entry)
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

/* Send the answer; a wait that has one is over. */
static void answer(struct console_wait *wait, struct buffer *out)
{
	struct client_link *client = wait->client;

	end_wait(wait);
	writer_ready(out, READY_IDLE);
	if (out->failed)
		client_close_for(client, REASON_NO_MEMORY);
	else if (stream_send_bytes(&client->link.stream, out->data, out->length) ==
		STREAM_SENT_NOT)
		client_close_for(client, REASON_UNEXPECTED_EOF);
	buffer_free(out);
}

static void answer_done(struct console_wait *wait)
{
	struct buffer out = {0};

	writer_command_complete(&out, wait->kind == WAIT_PAUSE ? "PAUSE" : "WAIT_CLOSE");
	answer(wait, &out);
}

static void answer_error(struct console_wait *wait, const char *text)
{
	struct buffer out = {0};

	reply_error(&out, wait->client, "%s", text);
	answer(wait, &out);
}

/* Is the pause that it waits for still in force? */
static bool still_holds(const struct registry *registry, const struct database *database)
{
	return database ? database->paused : registry->operation == OPERATION_PAUSED;
}

/* Answer it if it is over; was it? */
static bool look(struct registry *registry, struct console_wait *wait)
{
	const struct database *database = NULL;

	if (wait->for_database)
		database = registry_find_database(registry, wait->database);
	if (wait->for_database && !database) {
		/* It went with all its servers. */
		if (wait->kind == WAIT_CLOSE)
			answer_done(wait);
		else
			answer_error(wait, "the paused database was removed");
	} else if (wait->kind == WAIT_PAUSE && !still_holds(registry, database)) {
		answer_error(wait, "PAUSE was ended by RESUME");
	} else if (wait->kind == WAIT_PAUSE ? control_is_quiet(registry, database)
					    : !control_is_reconnecting(registry, database)) {
		answer_done(wait);
	} else {
		return false;
	}
	return true;
}

static bool end_one(struct registry *registry)
{
	struct console_wait *wait;

	LIST_FOREACH(wait, &registry->console_waits, entry)
	{
		if (look(registry, wait))
			return true;
	}
	return false;
}

void waits_look(struct registry *registry)
{
	if (LIST_EMPTY(&registry->console_waits))
		return;
	control_rest(registry);
	/* From the start again after each: its client may have closed and taken others along. */
	while (end_one(registry))
		;
}

static void end_all_of(struct client_link *client, void (*how)(struct console_wait *wait))
{
	struct registry *registry = link_registry(&client->link);
	struct console_wait *wait = LIST_FIRST(&registry->console_waits);

	while (wait) {
		if (wait->client != client) {
			wait = LIST_NEXT(wait, entry);
			continue;
		}
		how(wait);
		wait = LIST_FIRST(&registry->console_waits);
	}
}

static void answer_canceled(struct console_wait *wait)
{
	answer_error(wait, "canceled");
}

void waits_cancel(struct client_link *client)
{
	end_all_of(client, answer_canceled);
}

void waits_drop(struct client_link *client)
{
	end_all_of(client, end_wait);
}
