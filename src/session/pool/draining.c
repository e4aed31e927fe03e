/* SPDX-License-Identifier: ISC */
#include "session/pool/draining.h"

#include "model/registry.h"
#include "session/link/close.h"
#include "session/pool/cancel_queue.h"
#include "session/pool/return_to_pool.h"
#include "session/relay/own_query.h"
#include "session/relay/relay_rules.h"
#include "wire/message.h"
#include "wire/writer.h"

enum {
	/* Bytes of an answer that are dropped before the query is cancelled. */
	BYTES_BEFORE = 1024 * 1024,
	/* And after the cancel request: the buffers of two sockets may be full. */
	BYTES_AFTER = 16 * 1024 * 1024,
};

/* How long requests that were sent before a Terminate may run. */
#define GRACE (2 * USEC_PER_SEC)

/* How long draining may take if cancel_wait_timeout sets no limit. */
#define LONGEST (10 * USEC_PER_SEC)

/* --- servers that cannot be drained ------------------------------------------------------- */

static void close_undrained(struct server_link *server)
{
	if (server->transaction_status != 'I' || server_is_syncing(server))
		server_close_for(server, REASON_CLIENT_DISCONNECT_NOT_READY);
	else if (!requests_is_empty(&server->requests))
		server_close_for(server, REASON_CLIENT_DISCONNECTED_WITH_QUERY);
	else
		server_close_for(server, REASON_CLIENT_DISCONNECT_BEFORE_SENT);
}

/* Returns why the server cannot return to its pool at once. */
static enum unclean_release why_unclean(const struct server_link *server)
{
	if (server->dirty || server->link.remaining > 0)
		return UNCLEAN_OUT_OF_SYNC;
	if (server->copy)
		return UNCLEAN_COPY;
	if (server_is_syncing(server) || !requests_is_empty(&server->requests))
		return UNCLEAN_PENDING;
	return server->transaction_status != 'I' ? UNCLEAN_OPEN_TX : UNCLEAN_OUT_OF_SYNC;
}

/* --- what the client left open ------------------------------------------------------------ */

enum tail {
	TAIL_ENDED, /* ReadyForQuery has answered, or will answer, all requests */
	TAIL_FAILED, /* a batch has failed, and its Sync has not been sent */
	TAIL_OPEN, /* a batch without its Sync */
	TAIL_COPY, /* a COPY of a simple query waits for data */
	TAIL_BATCH_COPY, /* a COPY of a batch; its Sync was not sent or will be ignored */
	TAIL_UNCLEAR, /* it is unknown what the server answers next */
};

static bool is_copy_end(uint8_t type)
{
	return type == PQ_COPY_DONE || type == PQ_COPY_FAIL;
}

/* Returns true for requests that ReadyForQuery ends. */
static bool is_whole_request(uint8_t type)
{
	return type == PQ_QUERY || type == PQ_FUNCTION_CALL || type == PQ_SYNC;
}

/* The requests in the ring, as far as they matter for a COPY. */
struct request_summary {
	uint32_t copy_end; /* index of the first CopyDone or CopyFail; none: the count */
	uint32_t syncs; /* number of Syncs before that */
	uint8_t first, last;
	uint8_t last_request; /* last that is not CopyDone or CopyFail */
};

static struct request_summary summarize_requests(const struct requests *requests)
{
	struct request_summary summary = {.copy_end = requests->count};

	for (uint32_t i = 0; i < requests->count; i++) {
		const uint8_t type = requests_at(requests, i)->type;

		summary.first = i == 0 ? type : summary.first;
		summary.last = type;
		if (!is_copy_end(type))
			summary.last_request = type;
		else if (summary.copy_end == requests->count)
			summary.copy_end = i;
		if (type == PQ_SYNC && summary.copy_end == requests->count)
			summary.syncs++;
	}
	return summary;
}

/*
 * Returns true if only Syncs come before the end of the data, which the server does not answer.
 * Any other message there causes an error that does not name the message. Protocol: "Message
 * Flow", COPY.
 */
static bool is_plain_copy(const struct request_summary *summary)
{
	return summary->first == PQ_QUERY
		? summary->copy_end == 1
		: summary->first == PQ_EXECUTE && summary->copy_end == 1 + summary->syncs;
}

/* The server waits for COPY data: returns whether their end was sent, and what follows it. */
static enum tail tail_of_copy(
	const struct server_link *server, const struct request_summary *summary)
{
	if (!is_plain_copy(summary))
		return TAIL_UNCLEAR;
	if (summary->copy_end == server->requests.count)
		return summary->first == PQ_QUERY ? TAIL_COPY : TAIL_BATCH_COPY;
	if (is_whole_request(summary->last) ||
		(is_copy_end(summary->last) && summary->last_request == PQ_QUERY))
		return TAIL_ENDED;
	return TAIL_OPEN;
}

static enum tail tail_of(const struct server_link *server)
{
	const struct request_summary summary = summarize_requests(&server->requests);

	if (server->copy)
		return tail_of_copy(server, &summary);
	if (server->requests.count == 0) {
		if (server->transaction_status != 0)
			return TAIL_ENDED;
		return server->request_error == REQUEST_ERROR_UNTIL_SYNC ? TAIL_FAILED
									 : TAIL_OPEN;
	}
	if (is_whole_request(summary.last) || summary.last_request == PQ_QUERY)
		return TAIL_ENDED;
	/* The Sync is not answered if one of the requests before it starts a COPY. */
	return summary.last_request == PQ_SYNC ? TAIL_UNCLEAR : TAIL_OPEN;
}

/* --- ending it ---------------------------------------------------------------------------- */

/*
 * Protocol: "Message Flow", COPY and Extended Query. Each of these messages adds an entry to
 * the ring of requests.
 */
static bool add_copy_fail(struct server_link *server, struct buffer *out)
{
	const size_t mark = writer_begin(out, PQ_COPY_FAIL);

	writer_string(out, "the client has disconnected");
	writer_end(out, mark);
	return requests_add(&server->requests, PQ_COPY_FAIL, REQUEST_SWALLOW);
}

static bool add_rollback(struct server_link *server, struct buffer *out)
{
	writer_query(out, "ROLLBACK");
	return requests_add(&server->requests, PQ_QUERY, REQUEST_SWALLOW);
}

static bool add_sync(struct server_link *server, struct buffer *out)
{
	writer_end(out, writer_begin(out, PQ_SYNC));
	if (server->request_error == REQUEST_ERROR_UNTIL_SYNC)
		server->request_error = REQUEST_ERROR_UNTIL_READY;
	return requests_add(&server->requests, PQ_SYNC, REQUEST_SWALLOW);
}

/*
 * Append what ends the requests of the client. A Sync alone would commit a batch, so a ROLLBACK
 * precedes it; if the batch has failed, the server ignores the ROLLBACK. Returns false if it is
 * unknown what ends them, or when out of memory.
 */
static bool add_end(struct server_link *server, struct buffer *out)
{
	switch (tail_of(server)) {
	case TAIL_ENDED:
		return true;
	case TAIL_FAILED:
		return add_sync(server, out);
	case TAIL_OPEN:
		return add_rollback(server, out) && add_sync(server, out);
	case TAIL_COPY:
		return add_copy_fail(server, out);
	case TAIL_BATCH_COPY:
		return add_copy_fail(server, out) && add_sync(server, out);
	case TAIL_UNCLEAR:
		break;
	}
	return false;
}

static bool end_tail(struct server_link *server)
{
	struct buffer message;
	bool sent;

	buffer_init(&message);
	sent = add_end(server, &message) && !message.failed &&
		(message.length == 0 ||
			stream_send_bytes(&server->link.stream, message.data, message.length) !=
				STREAM_SENT_NOT);
	buffer_free(&message);
	return sent;
}

bool draining_end_copy(struct server_link *server)
{
	return end_tail(server);
}

/* --- cancel requests of ours -------------------------------------------------------------- */

/* Returns true while the server runs requests of its former client. */
static bool is_busy(const struct server_link *server)
{
	return !requests_is_empty(&server->requests) && !server_is_syncing(server) &&
		server->task != SERVER_TASK_OWN_QUERY;
}

/* Request a cancel connection, unless a cancel request for this server is on its way. */
static void request_cancel(struct server_link *server)
{
	struct pool *pool = server->link.pool;

	if (!server->cancel_key || server->draining.cancel == DRAINING_CANCEL_DUE ||
		server->cancels > 0 || server->cancels_queued > 0)
		return;
	server->draining.cancel = DRAINING_CANCEL_DUE;
	pool->cancels_due++;
	pool_needs_work(pool);
}

void draining_withdraw_cancel(struct server_link *server)
{
	if (server->draining.cancel != DRAINING_CANCEL_DUE)
		return;
	server->draining.cancel = DRAINING_CANCEL_NONE;
	server->link.pool->cancels_due--;
}

void draining_request_ended(struct server_link *server)
{
	server->draining.canceled = false;
	server->draining.bytes = 0;
	if (server->draining.polite)
		return;
	if (server->draining.cancel == DRAINING_CANCEL_NONE)
		server->draining.cancel = DRAINING_CANCEL_AGAIN;
	request_cancel(server);
}

/*
 * The answer is too long to be dropped, so the query is cancelled. PostgreSQL would end the
 * query too when its client disconnects. The server is not read meanwhile, so that it stops
 * sending.
 */
static void pause_for_cancel(struct server_link *server)
{
	if (!server->cancel_key) {
		close_undrained(server);
		return;
	}
	server->draining.polite = false;
	stream_pause(&server->link.stream);
	request_cancel(server);
}

static void resume_reading(struct server_link *server)
{
	server->draining.canceled = true;
	server->draining.bytes = 0;
	stream_resume(&server->link.stream);
}

/* --- steps -------------------------------------------------------------------------------- */

/* Returns true if the server has answered everything, and no message is incomplete. */
static bool has_answered_all(const struct server_link *server)
{
	return server->transaction_status != 0 && requests_is_empty(&server->requests) &&
		!server->copy && !server_is_syncing(server) && server->link.remaining == 0 &&
		server->link.held_length == 0 && !stream_is_blocked(&server->link.stream);
}

/* Returns true if a batch has failed, so that the server ignores our Query until a Sync. */
static bool waits_for_sync(const struct server_link *server)
{
	return server->request_error == REQUEST_ERROR_UNTIL_SYNC &&
		requests_is_empty(&server->requests) && server->link.remaining == 0;
}

/* In session mode the reset query of a drained server has to succeed: see own_query_error(). */
static void return_drained(struct server_link *server)
{
	link_log(&server->link, LEVEL_DEBUG, "drained after its client had disconnected");
	server->drained = true;
	server->unnamed = 0; /* a Query of ours removes the unnamed statement */
	return_to_pool(server);
	server->drained = server->link.state == SERVER_RESETTING;
}

/* A cancel request in flight could hit the next query, so its end is awaited first. */
static void finish(struct server_link *server)
{
	draining_withdraw_cancel(server);
	cancel_queue_drop(server);
	if (server->cancels > 0)
		return;
	if (server->transaction_status == 'I')
		return_drained(server);
	else
		own_query_send(server, "ROLLBACK");
}

void draining_proceed(struct server_link *server, size_t length)
{
	struct draining *draining = &server->draining;

	draining->bytes += length < BYTES_AFTER ? (uint32_t)length : BYTES_AFTER;
	if (server->dirty || server->link.remaining > BYTES_AFTER)
		close_undrained(server);
	else if (has_answered_all(server))
		finish(server);
	else if (waits_for_sync(server) && !end_tail(server))
		close_undrained(server);
	else if (draining->canceled && draining->bytes > BYTES_AFTER)
		close_undrained(server);
	else if (!draining->canceled && draining->bytes > BYTES_BEFORE)
		pause_for_cancel(server);
}

void draining_own_query_done(struct server_link *server)
{
	const bool was_syncing = server_is_syncing(server);

	server_set_task(server, SERVER_TASK_NONE);
	if (was_syncing)
		draining_proceed(server, 0);
	else if (server_is_clean(server))
		return_drained(server);
	else
		close_undrained(server);
}

void draining_cancel_done(struct server_link *server)
{
	resume_reading(server);
	if (has_answered_all(server))
		finish(server);
	else if (server->draining.cancel == DRAINING_CANCEL_AGAIN)
		request_cancel(server);
	/* Else the answer is in flight; if it is not, draining_inspect() cancels again. */
}

/* --- start -------------------------------------------------------------------------------- */

/* SUSPEND and a takeover do not wait for servers without a client, so these are closed. */
static bool may_drain(const struct server_link *server, bool politely)
{
	const struct registry *registry = server->link.pool->registry;

	if (server->dirty || server->link.cut || registry->process->suspension ||
		registry->process->still)
		return false;
	if (server_is_syncing(server) && server->sync_followed)
		return false;
	if (politely)
		return true;
	return !stream_is_blocked(&server->link.stream) &&
		(server->cancel_key || !(is_busy(server) || server_has_gathered(server)));
}

bool draining_start(struct server_link *server)
{
	if (!server->draining.polite && is_busy(server) && !server->copy)
		request_cancel(server);
	return end_tail(server);
}

static void drain(struct server_link *server, bool politely)
{
	counters_unclean(server, why_unclean(server));
	if (!may_drain(server, politely)) {
		close_undrained(server);
		return;
	}
	server->draining = (struct draining){
		.since = loop_now(server->link.stream.loop),
		.polite = politely,
	};
	server_enter_last(server, SERVER_DRAINING);
	if (!server_is_syncing(server) && !draining_start(server)) {
		close_undrained(server);
		return;
	}
	draining_proceed(server, 0);
}

void draining_client_unpaired(struct server_link *server, bool politely)
{
	if (server->link.state != SERVER_PAIRED)
		return;
	if (server->replication) {
		server_close_for(server,
			server_is_clean(server) ? REASON_REPLICATION_CLIENT_WAS_CLOSED
						: REASON_REPLICATION_CLIENT_DISCONNECTED);
		return;
	}
	if (server_is_clean(server))
		return_to_pool(server);
	else
		drain(server, politely);
}

/* --- time limits -------------------------------------------------------------------------- */

void draining_inspect(struct server_link *server, usec_t now)
{
	struct draining *draining = &server->draining;
	const usec_t set = server->link.pool->registry->process->settings->cancel_wait_timeout;
	const usec_t limit = GRACE + (set > 0 ? set : LONGEST);

	if (draining->polite && now - draining->since > GRACE)
		draining->polite = false;
	if (now - draining->since > limit)
		close_undrained(server);
	else if (!draining->polite && is_busy(server))
		request_cancel(server);
}
