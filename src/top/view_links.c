/* SPDX-License-Identifier: ISC */
/* Servers with the clients that hold them, all clients, and those that wait. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "top/ages.h"
#include "top/holders.h"
#include "top/view.h"

void view_add_place(
	struct sheet *sheet, const struct table *table, size_t row, size_t address, size_t port)
{
	const char *host = table_text(table, row, address),
		   *number = table_text(table, row, port);
	char text[TABLE_CELL_MOST + 32];

	if (!host || !host[0])
		text[0] = '\0';
	else if (!number || strncmp(host, "unix", 4) == 0)
		snprintf(text, sizeof(text), "%s", host);
	else
		snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%.16s" : "%s:%.16s",
			host, number);
	sheet_text(sheet, text);
}

/* --- servers ------------------------------------------------------------------------------ */

static const struct sheet_column server_columns[] = {
	{"SINCE", 1, .number = true},
	{"STATE", 2, 6},
	{"APPLICATION", 3, 5, 32},
	{"CLIENT", 5, 13},
	{"DATABASE", 4, 4, 32},
	{"USER", 6, 4, 32},
	{"SERVER", 8, 13},
	{"PID", 7, .number = true},
	{"CONNECTED", 11, .number = true},
	{"CLIENT ID", 9, .number = true},
	{"TLS", 12, 4, 32},
};

/* From here on an open transaction without a query is marked. */
static const double warning_idle = 5, critical_idle = 60;

static enum page_style style_of(const struct holder *holder)
{
	if (holder->holding == HOLDING_NOTHING)
		return STYLE_FAINT;
	if (holder->holding != HOLDING_TRANSACTION || holder->since < warning_idle)
		return STYLE_PLAIN;
	return holder->since < critical_idle ? STYLE_WARNING : STYLE_CRITICAL;
}

static const char *state_of(const struct holder *holder, const struct table *servers)
{
	switch (holder->holding) {
	case HOLDING_QUERY:
		return "query runs";
	case HOLDING_TRANSACTION:
		return "idle in transaction";
	case HOLDING_PIN:
		return "pinned";
	case HOLDING_SESSION:
		return "idle in session";
	case HOLDING_NOTHING:
		break;
	}
	return table_text(servers, holder->server, table_column(servers, "state"));
}

static const char *link_text(const struct table *table, size_t row, const char *column)
{
	return table_text(table, row, table_column(table, column));
}

static void add_number(
	struct sheet *sheet, const struct table *table, size_t row, const char *column)
{
	const size_t index = table_column(table, column);

	sheet_number(sheet, table_number(table, row, index, 0), table_text(table, row, index));
}

static void add_server(struct sheet *sheet, const struct feed *feed,
	const struct holders *holders, const struct holder *holder)
{
	const struct table *servers = feed_table(feed, TOPIC_SERVERS),
			   *clients = feed_table(feed, TOPIC_CLIENTS);
	const size_t client = holder->client;

	sheet_row(sheet, style_of(holder));
	sheet_time(sheet, holder->since);
	sheet_text(sheet, state_of(holder, servers));
	sheet_text(sheet, link_text(clients, client, "application_name"));
	view_add_place(sheet, clients, client, table_column(clients, "addr"),
		table_column(clients, "port"));
	sheet_text(sheet, link_text(servers, holder->server, "database"));
	sheet_text(sheet, link_text(servers, holder->server, "user"));
	view_add_place(sheet, servers, holder->server, table_column(servers, "addr"),
		table_column(servers, "port"));
	add_number(sheet, servers, holder->server, "remote_pid");
	sheet_time(sheet,
		ages_of(servers, holder->server, table_column(servers, "connect_time"),
			holders->now));
	add_number(sheet, clients, client, "id");
	sheet_text(sheet, link_text(servers, holder->server, "tls"));
}

static void fill_servers(struct sheet *sheet, const struct view_source *source)
{
	struct holders holders;

	sheet->note = "no connection to a server";
	holders_read(&holders, source->feed, source->holds);
	for (size_t i = 0; i < holders.count; i++)
		add_server(sheet, source->feed, &holders, &holders.list[i]);
	holders_free(&holders);
}

const struct view view_servers = {
	.key = 's',
	.name = "servers",
	.help = "which clients hold the servers, and since when; PID is that of the PostgreSQL process",
	.topics = TOPIC_BIT(TOPIC_SERVERS) | TOPIC_BIT(TOPIC_CLIENTS) | TOPIC_BIT(TOPIC_PINS),
	.main = TOPIC_SERVERS,
	.columns = server_columns,
	.column_count = sizeof(server_columns) / sizeof(server_columns[0]),
	.sorted = 0,
	.fill = fill_servers,
};

/* --- clients ------------------------------------------------------------------------------ */

static const struct sheet_column client_columns[] = {
	{"SINCE", 1, .number = true},
	{"STATE", 2, 6},
	{"APPLICATION", 3, 5, 32},
	{"CLIENT", 5, 13},
	{"DATABASE", 4, 4, 32},
	{"USER", 6, 4, 32},
	{"ID", 7, .number = true},
	{"CONNECTED", 8, .number = true},
	{"STATEMENTS", 10, .number = true},
	{"TLS", 11, 4, 32},
};

static void add_client(struct sheet *sheet, const struct table *clients, size_t row, double now)
{
	const double wait = ages_wait(
		clients, row, table_column(clients, "wait"), table_column(clients, "wait_us"));
	const char *state = link_text(clients, row, "state"),
		   *database = link_text(clients, row, "database");
	const bool waits = state && strcmp(state, "waiting") == 0,
		   idle = state && strcmp(state, "idle") == 0;

	sheet_row(sheet, waits ? STYLE_WARNING : idle ? STYLE_FAINT : STYLE_PLAIN);
	sheet_time(sheet,
		(waits || wait > 0) && !(idle && database && strcmp(database, "pgbouncer") == 0)
			? wait
			: ages_of(clients, row, table_column(clients, "request_time"), now));
	sheet_text(sheet, state);
	sheet_text(sheet, link_text(clients, row, "application_name"));
	view_add_place(sheet, clients, row, table_column(clients, "addr"),
		table_column(clients, "port"));
	sheet_text(sheet, database);
	sheet_text(sheet, link_text(clients, row, "user"));
	add_number(sheet, clients, row, "id");
	sheet_time(sheet, ages_of(clients, row, table_column(clients, "connect_time"), now));
	add_number(sheet, clients, row, "prepared_statements");
	sheet_text(sheet, link_text(clients, row, "tls"));
}

static void add_clients(struct sheet *sheet, const struct feed *feed, const char *state)
{
	const struct table *clients = feed_table(feed, TOPIC_CLIENTS);
	const double now = ages_now(clients);

	for (size_t row = 0; row < clients->row_count; row++) {
		const char *found = link_text(clients, row, "state");

		if (!state || (found && strcmp(found, state) == 0))
			add_client(sheet, clients, row, now);
	}
}

static void fill_clients(struct sheet *sheet, const struct view_source *source)
{
	sheet->note = "no client";
	add_clients(sheet, source->feed, NULL);
}

static void fill_waits(struct sheet *sheet, const struct view_source *source)
{
	sheet->note = "no client waits for a server";
	add_clients(sheet, source->feed, "waiting");
}

const struct view view_clients = {
	.key = 'c',
	.name = "clients",
	.help = "all clients: since when they wait, run a query, or have sent nothing",
	.topics = TOPIC_BIT(TOPIC_CLIENTS),
	.main = TOPIC_CLIENTS,
	.columns = client_columns,
	.column_count = sizeof(client_columns) / sizeof(client_columns[0]),
	.sorted = 1,
	.fill = fill_clients,
};

const struct view view_waits = {
	.key = 'w',
	.name = "waits",
	.help = "clients that wait for a server, the longest wait first",
	.topics = TOPIC_BIT(TOPIC_CLIENTS),
	.main = TOPIC_CLIENTS,
	.columns = client_columns,
	.column_count = sizeof(client_columns) / sizeof(client_columns[0]),
	.sorted = 0,
	.fill = fill_waits,
};
