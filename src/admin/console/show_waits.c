/* SPDX-License-Identifier: ISC */
/*
 * SHOW WAITS, which PgBouncer does not have: what consoles and the process wait for. A command
 * that a console waits for is a row with the id of that console; a pause or shutdown that was
 * started by a signal, or by a console that has closed, is a row without an id.
 */
#include "admin/console/waits.h"
#include "admin/show/topic.h"

static const struct column columns[] = {
	{"command", COLUMN_TEXT},
	{"database", COLUMN_TEXT},
	{"id", COLUMN_INT4},
	{"wait", COLUMN_INT4},
	{"wait_us", COLUMN_INT4},
	{"servers", COLUMN_INT4},
	{"clients", COLUMN_INT4},
	{"waits_for", COLUMN_TEXT},
};

struct row {
	const char *command, *database, *text;
	const struct client_link *client; /* the console; NULL: no console gets an answer */
	usec_t since;
	unsigned servers, clients;
};

static void add(struct result *result, const struct row *row, usec_t now)
{
	const usec_t waited = now - row->since;

	result_begin_row(result);
	result_text(result, row->command);
	result_text(result, row->database);
	if (row->client)
		result_number(result, link_number(&row->client->link));
	else
		result_text(result, NULL);
	result_number(result, (int64_t)(waited / USEC_PER_SEC));
	result_number(result, (int64_t)(waited % USEC_PER_SEC));
	result_number(result, row->servers);
	result_number(result, row->clients);
	result_text(result, row->text);
	result_end_row(result);
}

static void add_consoles(struct result *result, const struct registry *registry, usec_t now)
{
	const struct console_wait *wait = NULL;

	while ((wait = waits_next(registry, wait)) != NULL) {
		char text[PROGRESS_TEXT_SIZE];
		const struct wait_view view = waits_view(registry, wait, text);

		add(result,
			&(struct row){view.command, view.database, text, view.client,
				view.since, view.servers, 0},
			now);
	}
}

/* A pause that no console waits for. */
static void add_pause(struct result *result, const struct registry *registry,
	const struct database *database, usec_t since)
{
	const struct busy_servers census = control_count_busy(registry, database);
	const char *name = database ? database->name : NULL;
	char text[PROGRESS_TEXT_SIZE];

	if (census.servers == 0 || waits_has_kind(registry, WAIT_PAUSE, name))
		return;
	progress_of_pause(registry, database, text);
	add(result, &(struct row){"PAUSE", name, text, NULL, since, census.servers, 0},
		loop_now(registry->loop));
}

static void add_pauses(struct result *result, const struct registry *registry)
{
	const struct database *database, *next;

	if (registry->process->operation == OPERATION_PAUSED &&
		registry->process->shutdown == SHUTDOWN_NONE)
		add_pause(result, registry, NULL, registry->process->operation_at);
	HASH_ITER (by_name, registry->process->directory.databases, database, next) {
		if (database->paused)
			add_pause(result, registry, database, database->paused_at);
	}
}

static unsigned count_servers(const struct registry *registry)
{
	const struct pool *pool;
	unsigned count = 0;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		count += pool_servers(pool);
	return count;
}

static void add_shutdown(struct result *result, const struct registry *registry, usec_t now)
{
	char text[PROGRESS_TEXT_SIZE];
	struct row row = {
		.command = progress_shutdown_name(registry),
		.text = text,
		.since = registry->process->shutdown_at,
	};

	switch (registry->process->shutdown) {
	case SHUTDOWN_NONE:
		return;
	case SHUTDOWN_WAIT_FOR_SERVERS:
		row.servers = count_servers(registry);
		break;
	case SHUTDOWN_WAIT_FOR_CLIENTS:
		row.clients = registry->process->limits.clients;
		break;
	}
	progress_of_shutdown(registry, text);
	add(result, &row, now);
}

static void fill(struct result *result, const struct show_request *request)
{
	const struct registry *registry = request->registry;
	const usec_t now = loop_now(registry->loop);

	add_consoles(result, registry, now);
	add_pauses(result, registry);
	add_shutdown(result, registry, now);
}

const struct topic show_waits = TOPIC("WAITS", columns, fill);
