/* SPDX-License-Identifier: ISC */
#include "session/slow/slow_queries.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "session/slow/captured_text.h"
#include "session/slow/slow_report.h"
#include "wire/message.h"
#include "wire/report.h"

static struct query_watch *watch_of(const struct link *link)
{
	return link_registry(link)->query_watch;
}

/* --- time of the client ------------------------------------------------------------------- */

static void client_goes_on(struct watched_query *query, usec_t now)
{
	if (query->client_since)
		query->client_time += now - query->client_since;
	query->client_since = 0;
}

static void report(const struct client_link *client, struct watched_query *query,
	const struct failure *why)
{
	const usec_t now = loop_now(client->link.stream.loop);
	/* An answered query ends when the client has taken its answer, or does not any more. */
	const usec_t end = query->ended && !query->client_since ? query->ended : now;

	client_goes_on(query, now);
	slow_report(client, query, end, why);
	watched_query_end(query);
}

/* --- messages of the client --------------------------------------------------------------- */

/* Returns NULL when out of memory. */
static struct watched_query *begin(
	struct client_link *client, struct server_link *server, usec_t started)
{
	struct watched_query *query = server->watched;

	if (!query) {
		query = query_watch_open(server);
		if (!query)
			return NULL;
	}
	/* The client has sent more before it took the answer of its last query. */
	if (query->ended && query->client == client->link.id)
		report(client, query, NULL);
	watched_query_begin(query, client, started);
	if (client->served > started)
		query->queue_time = client->served - started;
	if (stream_is_blocked(&client->link.stream))
		query->client_since = loop_now(client->link.stream.loop);
	return query;
}

/* Returns the record of the client's present query, which begins if there is none; or NULL. */
static inline struct watched_query *present(
	struct client_link *client, struct server_link *server)
{
	struct watched_query *query;

	if (!client || !server || client->query_start == 0)
		return NULL;
	query = server->watched;
	if (query && watched_query_is_of(query, client))
		return query;
	return client->replication ? NULL : begin(client, server, client->query_start);
}

/* The client has gone on. What it sends of a COPY may not be all: the server waits for the rest. */
static void client_sent(struct watched_query *query, const struct server_link *server)
{
	const usec_t now = loop_now(server->link.stream.loop);

	if (stream_is_blocked(&server->link.peer->stream))
		return;
	client_goes_on(query, now);
	/* Or the server owes nothing, and the client has not sent the end of its query. */
	if (server->copy == COPY_IN || requests_is_empty(&server->requests))
		query->client_since = now;
}

void slow_queries_client_ran(const struct relay_run *run, const uint8_t *data)
{
	struct client_link *client = run->client;
	struct server_link *server = server_of(client->link.peer);
	struct watched_query *query;

	if (run->at == data)
		return;
	query = present(client, server);
	if (!query)
		return;
	if (!run->is_replay)
		query->received += (uint64_t)(run->at - data);
	if (!query->has_text)
		captured_text_find(query, client, run->start, run->at);
	if (query->client_since)
		client_sent(query, server);
	else if (requests_is_empty(&server->requests))
		query->client_since = loop_now(run->loop);
}

static inline bool logs_parameters(const struct link *link)
{
	return link_registry(link)->process->settings->log_parameters;
}

void slow_queries_bind(const struct relay_run *run, const uint8_t *at)
{
	struct watched_query *query = present(run->client, run->server);

	if (query && (!query->has_text || logs_parameters(run->from)))
		captured_text_bind(query, run->client, run->start, at, run->end);
}

void slow_queries_copy_end(const struct relay_run *run)
{
	struct watched_query *query = present(run->client, run->server);

	if (query && !stream_is_blocked(&run->client->link.stream))
		client_goes_on(query, loop_now(run->loop));
}

void slow_queries_note_running(struct server_link *server)
{
	struct watched_query *query = present(client_of(server->link.peer), server);

	/* Its text is not known: that of a message behind it would be another. */
	if (query)
		query->has_text = true;
}

/* --- messages of the server --------------------------------------------------------------- */

uint64_t slow_queries_rows_of(const uint8_t *tag, size_t length)
{
	uint64_t rows = 0, place = 1;

	/* The NUL is the last byte. */
	for (size_t i = length > 0 ? length - 1 : 0; i > 0 && place < UINT64_MAX / 100; i--) {
		const uint8_t byte = tag[i - 1];

		if (byte == ' ')
			return rows;
		if (byte < '0' || byte > '9')
			return 0;
		rows += place * (uint64_t)(byte - '0');
		place *= 10;
	}
	return 0;
}

void slow_queries_error(struct relay_run *run, const uint8_t *at, const struct frame *frame)
{
	struct watched_query *query = present(run->client, run->server);
	const size_t there = (size_t)(run->end - at);
	struct report error;

	/* The client does not get the error of a batch that is replayed. */
	if (!query || query->sqlstate[0] || run->server->batch_progress == BATCH_FAILED)
		return;
	report_parse(at + FRAME_HEADER_SIZE,
		(there < frame->total ? there : frame->total) - FRAME_HEADER_SIZE, &error);
	if (error.sqlstate)
		text_escape(query->sqlstate, sizeof(query->sqlstate), error.sqlstate,
			strlen(error.sqlstate));
	if (run->server->copy != COPY_IN)
		client_goes_on(query, loop_now(run->loop));
}

void slow_queries_copy_in(struct relay_run *run)
{
	struct watched_query *query = present(run->client, run->server);

	if (query && !query->client_since)
		query->client_since = loop_now(run->loop);
}

/* A message that is not whole here is counted, and the rest of it in later runs is not. */
static void count(struct relay_run *run, struct watched_query *query)
{
	const uint8_t *at = run->start;
	struct frame frame;

	run->start = run->at;
	while (at < run->at) {
		const size_t there = (size_t)(run->at - at);
		const enum frame_result result =
			frame_peek(at, there, run->max_message, &frame);

		if (result != FRAME_WHOLE && result != FRAME_PARTIAL)
			return;
		if (frame.type == PQ_DATA_ROW || frame.type == PQ_COPY_DATA)
			query->sent += frame.total;
		else if (frame.type == PQ_COMMAND_COMPLETE && result == FRAME_WHOLE)
			query->rows +=
				slow_queries_rows_of(frame_body(at), frame_body_size(&frame));
		at += frame.total < there ? frame.total : there;
	}
}

void slow_queries_count(struct relay_run *run)
{
	struct watched_query *query = present(run->client, run->server);

	if (query)
		count(run, query);
}

/* --- the end of a run --------------------------------------------------------------------- */

/* Does the server run the client's requests, not queries of our own? Their rows are not counted. */
static bool answers_client(const struct server_link *server)
{
	return server->task == SERVER_TASK_NONE || server->task == SERVER_TASK_WATCH_RESET;
}

/* A function of its own: most answers are whole, and fast. */
static __attribute__((noinline)) void follow_answer(
	struct relay_run *run, struct watched_query *query, bool answered)
{
	struct client_link *client = run->client;
	const usec_t now = loop_now(run->loop);

	if (!query->ended && answers_client(run->server))
		count(run, query);
	if (!query->ended && answered)
		query->ended = now;
	/* The client is about to be closed. */
	if (run->broken)
		return;
	if (stream_is_blocked(&client->link.stream) ||
		(!query->ended && requests_is_empty(&run->server->requests))) {
		/* Or the server owes nothing, and the client has not sent the end of its query. */
		if (!query->client_since)
			query->client_since = now;
	} else if (query->ended) {
		report(client, query, NULL);
	}
}

void slow_queries_server_ran(struct relay_run *run)
{
	const struct client_link *client = run->client;
	struct watched_query *query = run->server->watched;
	const usec_t limit = link_registry(run->from)->process->settings->log_min_duration;
	bool answered;

	if (!client || query->client != client->link.id)
		return;
	answered = client->query_start != query->started;
	if (answered && !query->ended && query->client_since == 0 &&
		loop_now(run->loop) - query->started < limit &&
		!stream_is_blocked(&client->link.stream))
		watched_query_end(query);
	else
		follow_answer(run, query, answered);
}

void slow_queries_client_drained(struct client_link *client)
{
	struct watched_query *query;

	if (!client->link.peer)
		return;
	query = server_of(client->link.peer)->watched;
	if (!query || query->client != client->link.id)
		return;
	client_goes_on(query, loop_now(client->link.stream.loop));
	if (query->ended) {
		query->ended = loop_now(client->link.stream.loop);
		report(client, query, NULL);
	}
}

/* While it took COPY data, the client could not send more. */
void slow_queries_server_drained(struct server_link *server)
{
	struct watched_query *query = server->watched;

	if (query && query->client_since && server->copy == COPY_IN)
		query->client_since = loop_now(server->link.stream.loop);
}

/* --- without an answer -------------------------------------------------------------------- */

void slow_queries_closing(const struct link *link)
{
	struct query_watch *watch = watch_of(link);
	struct link *server = link->kind == LINK_SERVER ? (struct link *)link : link->peer;
	const struct client_link *client =
		(const struct client_link *)(link->kind == LINK_CLIENT ? link : link->peer);
	struct watched_query *query = server_of(server)->watched;

	if (query && query->client != client->link.id)
		query = NULL;
	if (client->replication || (client->query_start == 0 && !(query && query->ended)))
		return;
	if (!query)
		query = begin(
			(struct client_link *)client, server_of(server), client->query_start);
	if (!query)
		return;
	watched_query_free(watch->closing);
	watch->closing = query_watch_take(server_of(server));
}

/* Report a query without a server. */
static void report_unsent(const struct client_link *client, const struct failure *why)
{
	const usec_t now = loop_now(client->link.stream.loop);
	struct watched_query *query = calloc(1, sizeof(*query));
	struct frame frame;

	if (!query)
		return;
	watched_query_begin(query, client, client->query_start);
	query->queue_time = now - client->query_start;
	if (client->link.held_length > 0 &&
		frame_peek(client->link.held, client->link.held_length, UINT32_MAX, &frame) <=
			FRAME_PARTIAL) {
		const size_t there = client->link.held_length < frame.total
			? client->link.held_length
			: frame.total;

		query->received = client->link.held_length;
		captured_text_note(query, client,
			&(struct captured_message){
				.type = frame.type,
				.body = client->link.held + FRAME_HEADER_SIZE,
				.length = there - FRAME_HEADER_SIZE,
				.whole = there == frame.total,
			});
	}
	slow_report(client, query, now, why);
	watched_query_free(query);
}

static bool is_slow(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);

	return client->query_start != 0 && !client->replication &&
		loop_now(registry->loop) - client->query_start >=
		registry->process->settings->log_min_duration;
}

void slow_queries_client_closed(
	struct client_link *client, enum client_state state, const struct failure *why)
{
	struct query_watch *watch = watch_of(&client->link);
	struct watched_query *query = watch->closing;

	if (query && query->client == client->link.id) {
		watch->closing = NULL;
		report(client, query, why);
		watched_query_free(query);
	} else if ((state == CLIENT_WAITING || state == CLIENT_IDLE) && is_slow(client)) {
		report_unsent(client, why);
	}
}

void slow_queries_server_closed(struct server_link *server)
{
	watched_query_free(query_watch_take(server));
}

void slow_queries_unsent(const struct client_link *client, enum reason reason)
{
	if (is_slow(client)) {
		const struct failure why = failure_of(reason);

		report_unsent(client, &why);
	}
}
