/* SPDX-License-Identifier: ISC */
#include "session/serving/unsent_query.h"

#include "model/host/host_items.h"
#include "model/registry.h"
#include "model/statistics/reason_facts.h"
#include "session/link/client_limits.h"
#include "session/notify/delivery.h"
#include "session/notify/listen_command.h"
#include "session/pool/draining.h"
#include "session/relay/pair.h"
#include "session/relay/relay_rules.h"
#include "session/serving/replication.h"
#include "session/slow/slow_queries.h"
#include "wire/message.h"
#include "wire/writer.h"

/* The tables below judge the messages of the query from here on. */
static void begin_to_end(struct client_link *client, enum reason reason)
{
	if (link_registry(&client->link)->query_watch)
		slow_queries_unsent(client, reason);
	client->query_start = client->transaction_start = 0;
	client->ending = reason;
	client_set_step(client, CLIENT_STEP_ENDING);
}

enum verdict unsent_query_refuse(struct relay_run *run, enum reason reason)
{
	begin_to_end(run->client, reason);
	return RELAY_AGAIN;
}

void unsent_query_end(struct client_link *client, enum reason reason)
{
	struct link *peer = client->link.peer;

	if (peer) {
		pair_unpair(peer);
		draining_client_unpaired(server_of(peer), true);
	} else if (client->step == CLIENT_STEP_LISTENING) {
		listen_command_withdraw(client);
	} else if (client->link.state != CLIENT_IDLE) {
		replication_close_server(client);
		client_enter(client, CLIENT_IDLE);
	}
	/* The client is idle from now on, or client_idle_timeout would count the wait. */
	client->link.request_time = loop_now(client->link.stream.loop);
	begin_to_end(client, reason);
	client_limits_start(client);
	relay_client_resume(client);
}

/* --- answers ------------------------------------------------------------------------------ */

/* A cancel request is the client's own wish, so no line is logged for it. */
static void log_error(const struct client_link *client)
{
	const char *text = reason_text(client->ending);

	if (client->ending != REASON_SETTING_CANCELED &&
		link_registry(&client->link)->process->settings->log_pooler_errors)
		link_log_kind(&client->link, LEVEL_WARNING, text, 0, "pooler error: %s", text);
}

static void write_report(
	const struct client_link *client, struct buffer *answer, enum reason reason)
{
	struct buffer detail = {0};

	if (reason == REASON_QUERY_WAIT_TIMEOUT && client->link.pool->failing)
		host_items_explain(client->link.pool, &detail);
	buffer_append(&detail, "", 1);
	writer_error_detail(answer, "ERROR", reason_sqlstate(reason), reason_text(reason),
		(const char *)detail.data);
	buffer_free(&detail);
}

static void write_error(struct client_link *client, struct buffer *answer)
{
	const enum reason reason = client->ending;

	client->link.pool->unsent[reason_unsent_ending(reason)]++;
	log_error(client);
	/* The client has got the server's own error. */
	if (reason != REASON_SETTING_REFUSED)
		write_report(client, answer, reason);
}

/* Drop the message. A run that is repeated with another server must begin after it. */
static enum verdict drop(struct relay_run *run)
{
	if (run->whole)
		run->start = run->at + run->frame.total;
	return RELAY_DROP;
}

/*
 * Drop the message, which gets this answer. If the client does not read its answers, its next
 * messages are held until it has taken this one.
 */
static enum verdict answer_message(struct relay_run *run, struct buffer *answer)
{
	struct stream *stream = &run->client->link.stream;

	if (!link_send(&run->client->link, answer))
		return relay_fail(run, failure_of(REASON_UNEXPECTED_EOF));
	delivery_to_client(run->client);
	if (run->client->link.state == CLIENT_CLOSED)
		return RELAY_STOP;
	if (!stream_is_blocked(stream))
		return drop(run);
	if (!run->whole) {
		stream_pause(stream);
		return RELAY_DROP;
	}
	relay_step_over(run, drop(run));
	return RELAY_HOLD;
}

/* --- messages of the query ---------------------------------------------------------------- */

/* A Query or FunctionCall is the whole query. */
static enum verdict judge_whole_query(struct relay_run *run)
{
	struct buffer answer;

	buffer_init(&answer);
	write_error(run->client, &answer);
	writer_ready(&answer, READY_IDLE);
	client_set_step(run->client, CLIENT_STEP_NONE);
	return answer_message(run, &answer);
}

/* The first message of a batch: the others are dropped, as PostgreSQL does after an error. */
static enum verdict judge_batch(struct relay_run *run)
{
	struct buffer answer;

	buffer_init(&answer);
	write_error(run->client, &answer);
	client_set_step(run->client, CLIENT_STEP_SKIPPING);
	return answer_message(run, &answer);
}

static enum verdict judge_skipped(struct relay_run *run)
{
	return drop(run);
}

static enum verdict judge_sync(struct relay_run *run)
{
	struct buffer answer;

	buffer_init(&answer);
	writer_ready(&answer, READY_IDLE);
	client_set_step(run->client, CLIENT_STEP_NONE);
	return answer_message(run, &answer);
}

/* Other messages are not part of a query. */
static enum verdict judge_otherwise(struct relay_run *run)
{
	client_set_step(run->client, CLIENT_STEP_NONE);
	return RELAY_AGAIN;
}

/* --- the tables --------------------------------------------------------------------------- */

/* In each table the first row is the default, which later initializers override. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define BATCH                                                                                  \
	{                                                                                      \
		judge_batch, .at_once = true                                                   \
	}

#define SKIPPED                                                                                \
	{                                                                                      \
		judge_skipped, .at_once = true                                                 \
	}

const struct relay_rule relay_ending_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_otherwise),
	[PQ_QUERY] = {judge_whole_query, .at_once = true},
	[PQ_FUNCTION_CALL] = {judge_whole_query, .at_once = true},
	[PQ_SYNC] = {judge_sync},
	[PQ_PARSE] = BATCH,
	[PQ_BIND] = BATCH,
	[PQ_DESCRIBE] = BATCH,
	[PQ_EXECUTE] = BATCH,
	[PQ_CLOSE] = BATCH,
};

const struct relay_rule relay_skipping_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_otherwise),
	[PQ_QUERY] = SKIPPED,
	[PQ_FUNCTION_CALL] = SKIPPED,
	[PQ_SYNC] = {judge_sync},
	[PQ_PARSE] = SKIPPED,
	[PQ_BIND] = SKIPPED,
	[PQ_DESCRIBE] = SKIPPED,
	[PQ_EXECUTE] = SKIPPED,
	[PQ_CLOSE] = SKIPPED,
	[PQ_FLUSH] = SKIPPED,
	[PQ_COPY_DATA] = SKIPPED,
	[PQ_COPY_DONE] = SKIPPED,
	[PQ_COPY_FAIL] = SKIPPED,
};
