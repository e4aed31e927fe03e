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
	struct watched_query *query = query_watch_open(watch_of(&client->link), server);

	if (!query)
		return NULL;
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

struct watched_query *slow_queries_begin(const struct relay_run *run)
{
	struct client_link *client = run->client;

	if (client->query_start == 0 || client->replication)
		return NULL;
	return begin(client, run->server, client->query_start);
}

void slow_queries_message(
	struct relay_run *run, const uint8_t *at, const struct frame *frame, bool whole)
{
	const size_t there = (size_t)(run->end - at);
	struct watched_query *query = slow_queries_present(run);

	if (!query)
		return;
	if (query->client_since && !stream_is_blocked(&run->client->link.stream))
		client_goes_on(query, loop_now(run->loop));
	query->received += frame->total;
	captured_text_note(query, run->client,
		&(struct captured_message){
			.type = frame->type,
			.body = at + FRAME_HEADER_SIZE,
			.length = (there < frame->total ? there : frame->total) -
				FRAME_HEADER_SIZE,
			.whole = whole,
		});
}

void slow_queries_copy_data(struct relay_run *run)
{
	struct watched_query *query = slow_queries_present(run);

	if (!query)
		return;
	query->received += run->frame.total;
	if (!query->client_since || stream_is_blocked(&run->client->link.stream))
		return;
	/* The server waits for the next, unless it does not take this at once. */
	client_goes_on(query, loop_now(run->loop));
	query->client_since = loop_now(run->loop);
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
	struct watched_query *query = slow_queries_present(run);
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
	struct watched_query *query = slow_queries_present(run);

	if (query && !query->client_since)
		query->client_since = loop_now(run->loop);
}

void slow_queries_answered(struct relay_run *run, usec_t started)
{
	struct watched_query *query =
		query_watch_find(link_registry(run->from)->query_watch, run->server);

	if (run->client->replication)
		return;
	/* It began before the log was turned on, or in the process before a takeover. */
	if (!query || query->started != started || query->client != run->client->link.id)
		query = begin(run->client, run->server, started);
	if (query)
		query->ended = loop_now(run->loop);
}

/* --- the end of a run --------------------------------------------------------------------- */

/* The client has its answer, and did not keep the server waiting. */
static bool is_fast(const struct watched_query *query, const struct registry *registry)
{
	return query->client_since == 0 &&
		query->ended - query->started < registry->process->settings->log_min_duration;
}

void slow_queries_run_ended(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);
	const struct registry *registry = link_registry(&server->link);
	struct watched_query *query = query_watch_find(registry->query_watch, server);

	if (!query || query->client != client->link.id)
		return;
	if (stream_is_blocked(&client->link.stream) ||
		(!query->ended && requests_is_empty(&server->requests))) {
		/* Or the server owes nothing, and the client has not sent the end of its query. */
		if (!query->client_since)
			query->client_since = loop_now(registry->loop);
	} else if (query->ended) {
		if (is_fast(query, registry))
			watched_query_end(query);
		else
			report(client, query, NULL);
	}
}

void slow_queries_client_drained(struct client_link *client)
{
	struct watched_query *query;

	if (!client->link.peer)
		return;
	query = query_watch_find(watch_of(&client->link), server_of(client->link.peer));
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
	struct watched_query *query = query_watch_find(watch_of(&server->link), server);

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
	struct watched_query *query = query_watch_find(watch, server_of(server));

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
	watch->closing = query_watch_take(watch, server_of(server));
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
	watched_query_free(query_watch_take(watch_of(&server->link), server));
}

void slow_queries_unsent(const struct client_link *client, enum reason reason)
{
	if (is_slow(client)) {
		const struct failure why = failure_of(reason);

		report_unsent(client, &why);
	}
}
