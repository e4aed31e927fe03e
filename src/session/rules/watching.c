/* SPDX-License-Identifier: ISC */
#include "session/rules/watching.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/slow_log.h"
#include "session/link/close.h"
#include "session/relay/relay_rules.h"
#include "session/slow/query_watch.h"
#include "session/slow/slow_queries.h"
#include "wire/message.h"

/* The tables that are replaced: of PAIRED clients, and two of servers. */
enum { TABLES = CLIENT_PAIRINGS + 2 };

struct watched_table {
	const struct relay_rule *original;
	struct relay_rule rules[RELAY_TYPES];
};

struct watching {
	struct query_watch watch; /* registry.query_watch points to it */
	/* What is in force while the log is off. */
	const struct link_rules *plain_rules;
	const struct close_events *plain_close;
	const struct relay_events *plain_relay, *plain_drain;
	/* What is in force instead. */
	struct link_rules rules;
	struct close_events close;
	struct relay_events relay, drain;
	struct watched_table tables[TABLES];
};

static const struct watching *watching_of(const struct link *link)
{
	return (const struct watching *)link_registry(link)->query_watch;
}

/* Returns the rule for the message at run->at in the table that is replaced. */
static inline const struct relay_rule *original(const struct relay_run *run)
{
	const struct watched_table *table =
		(const struct watched_table *)((const char *)run->from->rules -
			offsetof(struct watched_table, rules));

	return &table->original[run->frame.type];
}

/* --- messages that must be looked at before what follows them ------------------------------ */

/* The client may close the statement behind it. */
static enum verdict judge_bind(struct relay_run *run)
{
	const uint8_t *at = run->at;
	const enum verdict verdict = original(run)->judge(run);

	/* After RELAY_AGAIN the message was handled if the run is behind it. */
	if (verdict == RELAY_PASS || verdict == RELAY_DROP ||
		(verdict == RELAY_AGAIN && run->at != at))
		slow_queries_bind(run, at);
	return verdict;
}

static enum verdict judge_copy_end(struct relay_run *run)
{
	const enum verdict verdict = original(run)->judge(run);

	if (verdict == RELAY_PASS || verdict == RELAY_DROP)
		slow_queries_copy_end(run);
	return verdict;
}

static enum verdict judge_error(struct relay_run *run)
{
	const uint8_t *at = run->at;
	const struct frame frame = run->frame;
	const enum verdict verdict = original(run)->judge(run);

	if (verdict == RELAY_PASS || verdict == RELAY_DROP)
		slow_queries_error(run, at, &frame);
	return verdict;
}

static enum verdict judge_copy_in(struct relay_run *run)
{
	const enum verdict verdict = original(run)->judge(run);

	if (verdict == RELAY_PASS)
		slow_queries_copy_in(run);
	return verdict;
}

/* What follows in this run may answer queries of our own: see restore.h. */
static enum verdict judge_ready_of_reset(struct relay_run *run)
{
	slow_queries_count(run);
	return original(run)->judge(run);
}

/* --- events ------------------------------------------------------------------------------- */

static void on_unpair(struct link *link)
{
	const struct watching *watching = watching_of(link);

	slow_queries_closing(link);
	watching->plain_close->unpair(link);
}

static void on_client_closed(
	struct client_link *client, enum client_state state, const struct failure *why)
{
	const struct watching *watching = watching_of(&client->link);

	slow_queries_client_closed(client, state, why);
	watching->plain_close->client_closed(client, state, why);
}

static void on_server_closed(
	struct server_link *server, enum server_state state, const struct failure *why)
{
	const struct watching *watching = watching_of(&server->link);

	slow_queries_server_closed(server);
	watching->plain_close->server_closed(server, state, why);
}

/* --- the tables --------------------------------------------------------------------------- */

/* Copy a table; the caller replaces judges of the copy. */
static struct relay_rule *copy(
	struct watching *watching, unsigned index, const struct relay_rule *plain)
{
	struct watched_table *table = &watching->tables[index];

	table->original = plain;
	memcpy(table->rules, plain, sizeof(table->rules));
	return table->rules;
}

static const struct relay_rule *replace_client(
	struct watching *watching, unsigned index, const struct relay_rule *plain)
{
	struct relay_rule *rules = copy(watching, index, plain);

	rules[PQ_BIND].judge = judge_bind;
	rules[PQ_COPY_DONE].judge = rules[PQ_COPY_FAIL].judge = judge_copy_end;
	return rules;
}

static struct relay_rule *replace_server(
	struct watching *watching, unsigned index, const struct relay_rule *plain)
{
	struct relay_rule *rules = copy(watching, index, plain);

	rules[PQ_ERROR_RESPONSE].judge = judge_error;
	rules[PQ_COPY_IN_RESPONSE].judge = judge_copy_in;
	return rules;
}

static void make_tables(struct watching *watching)
{
	struct link_rules *rules = &watching->rules;
	struct relay_rule *reset;

	*rules = *watching->plain_rules;
	for (unsigned i = 0; i < CLIENT_PAIRINGS; i++) {
		/* There is none for a pool mode that is not given. */
		if (!rules->client_paired[i])
			continue;
		rules->client_paired[i] = replace_client(watching, i, rules->client_paired[i]);
	}
	rules->server_states[SERVER_PAIRED] =
		replace_server(watching, CLIENT_PAIRINGS, rules->server_states[SERVER_PAIRED]);
	reset = replace_server(
		watching, CLIENT_PAIRINGS + 1, rules->server_tasks[SERVER_TASK_WATCH_RESET]);
	reset[PQ_READY_FOR_QUERY].judge = judge_ready_of_reset;
	rules->server_tasks[SERVER_TASK_WATCH_RESET] = reset;
	watching->close = *watching->plain_close;
	watching->close.unpair = on_unpair;
	watching->close.client_closed = on_client_closed;
	watching->close.server_closed = on_server_closed;
	watching->relay = *watching->plain_relay;
	watching->relay.client_ran = slow_queries_client_ran;
	watching->relay.server_ran = slow_queries_server_ran;
	watching->drain = *watching->plain_drain;
	watching->drain.client_ran = slow_queries_client_ran;
	watching->drain.server_ran = slow_queries_server_ran;
}

/* --- on and off --------------------------------------------------------------------------- */

/* Links point to the tables. */
static void renew_rules(struct registry *registry)
{
	struct link *link;

	TAILQ_FOREACH (link, &registry->links, in_registry) {
		if (link->kind == LINK_SERVER)
			server_renew_rules(server_of(link));
		else if (client_is_logged_in(client_of(link)))
			client_renew_rules(client_of(link));
	}
}

void watching_note_running(struct registry *registry)
{
	struct link *link;

	if (!registry->query_watch)
		return;
	TAILQ_FOREACH (link, &registry->links, in_registry) {
		if (link->kind == LINK_SERVER && link->peer)
			slow_queries_note_running(server_of(link));
	}
}

/* A shutdown has put the events of its drain in force. */
static bool is_drained(const struct registry *registry)
{
	return registry->relay_events == registry->drain_events;
}

/* Queries are counted from 1 each time that the log is turned on. */
static void begin_count(struct registry *registry)
{
	struct slow_shared *shared = &registry->process->slow;

	if (registry->number > 0)
		return;
	shared->last = 0;
	shared->sampling = (struct sampling){0};
}

static bool begin(struct registry *registry)
{
	struct watching *watching = calloc(1, sizeof(*watching));
	struct slow_log *log = slow_log_new(&registry->process->slow);
	const bool drained = is_drained(registry);

	if (!watching || !log) {
		free(watching);
		slow_log_free(log);
		return false;
	}
	watching->plain_rules = registry->rules;
	watching->plain_close = registry->close_events;
	watching->plain_relay = registry->relay_events;
	watching->plain_drain = registry->drain_events;
	make_tables(watching);
	registry->rules = &watching->rules;
	registry->close_events = &watching->close;
	registry->drain_events = &watching->drain;
	registry->relay_events = drained ? &watching->drain : &watching->relay;
	registry->query_watch = &watching->watch;
	registry->slow_log = log;
	begin_count(registry);
	renew_rules(registry);
	watching_note_running(registry);
	return true;
}

void watching_end(struct registry *registry)
{
	struct watching *watching = (struct watching *)registry->query_watch;
	const bool drained = is_drained(registry);

	if (!watching)
		return;
	registry->rules = watching->plain_rules;
	registry->close_events = watching->plain_close;
	registry->drain_events = watching->plain_drain;
	registry->relay_events = drained ? watching->plain_drain : watching->plain_relay;
	query_watch_clear(&watching->watch, registry);
	slow_log_free(registry->slow_log);
	registry->query_watch = NULL;
	registry->slow_log = NULL;
	renew_rules(registry);
	free(watching);
}

bool watching_follow(struct registry *registry)
{
	const bool wanted = registry->process->settings->log_min_duration >= 0;

	if (wanted && !registry->query_watch)
		return begin(registry);
	if (!wanted)
		watching_end(registry);
	return true;
}
