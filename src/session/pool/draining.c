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
	/* What is read of an answer that nobody waits for, before it is cancelled. */
	BYTES_BEFORE = 1024 * 1024,
	/* And afterwards: the buffers of two sockets may be full of it. */
	BYTES_AFTER = 16 * 1024 * 1024,
};

/* How long what was sent before a Terminate may run. */
#define GRACE (2 * USEC_PER_SEC)

/* How long all of it may take where cancel requests have no limit. */
#define LONGEST (10 * USEC_PER_SEC)

/* --- the end that cannot be reached ------------------------------------------------------- */

static void give_up(struct server_link *server)
{
	if (server->transaction_status != 'I' || server_is_syncing(server))
		server_close_for(server, REASON_CLIENT_DISCONNECT_NOT_READY);
	else if (!requests_is_empty(&server->requests))
		server_close_for(server, REASON_CLIENT_DISCONNECTED_WITH_QUERY);
	else
		server_close_for(server, REASON_CLIENT_DISCONNECT_BEFORE_SENT);
}

/* What keeps it from being given back. */
static enum unclean_release uncleanness(const struct server_link *server)
{
	if (server->dirty || server->link.remaining > 0)
		return UNCLEAN_OUT_OF_SYNC;
	if (server->copy)
		return UNCLEAN_COPY;
	if (server_is_syncing(server) || !requests_is_empty(&server->requests))
		return UNCLEAN_PENDING;
	return server->transaction_status != 'I' ? UNCLEAN_OPEN_TX : UNCLEAN_OUT_OF_SYNC;
}

/* --- how its client left it --------------------------------------------------------------- */

enum tail {
	TAIL_ENDED, /* ReadyForQuery will come, or has come, for all that was asked */
	TAIL_FAILED, /* a batch has failed, and its Sync has not been sent */
	TAIL_OPEN, /* a batch without its Sync */
	TAIL_COPY, /* a simple query waits for the data of its COPY */
	TAIL_BATCH_COPY, /* a batch does, and its Sync was not sent or will be ignored */
	TAIL_UNCLEAR, /* who could say what is answered next? */
};

static bool is_copy_end(uint8_t type)
{
	return type == PQ_COPY_DONE || type == PQ_COPY_FAIL;
}

/* Does ReadyForQuery answer it? */
static bool is_whole_request(uint8_t type)
{
	return type == PQ_QUERY || type == PQ_FUNCTION_CALL || type == PQ_SYNC;
}

/* What a ring of requests consists of; what follows a COPY's end is not looked into. */
struct census {
	uint32_t copy_end; /* where the first one is; as many as all: nowhere */
	uint32_t syncs; /* before that */
	uint8_t first, last;
	uint8_t last_request; /* that is no end of a COPY */
};

static struct census count_requests(const struct requests *requests)
{
	struct census census = {.copy_end = requests->count};

	for (uint32_t i = 0; i < requests->count; i++) {
		const uint8_t type = requests_at(requests, i)->type;

		census.first = i == 0 ? type : census.first;
		census.last = type;
		if (!is_copy_end(type))
			census.last_request = type;
		else if (census.copy_end == requests->count)
			census.copy_end = i;
		if (type == PQ_SYNC && census.copy_end == requests->count)
			census.syncs++;
	}
	return census;
}

/*
 * Protocol: "Message Flow", COPY: a Sync before the end of the data is not answered; anything else
 * before that is an error, and one that hides what it was.
 */
static bool is_plain_copy(const struct census *census)
{
	return census->first == PQ_QUERY
		? census->copy_end == 1
		: census->first == PQ_EXECUTE && census->copy_end == 1 + census->syncs;
}

/* In a COPY that waits for data: have all of them been sent, and what behind them? */
static enum tail tail_of_copy(const struct server_link *server, const struct census *census)
{
	if (!is_plain_copy(census))
		return TAIL_UNCLEAR;
	if (census->copy_end == server->requests.count)
		return census->first == PQ_QUERY ? TAIL_COPY : TAIL_BATCH_COPY;
	if (is_whole_request(census->last) ||
		(is_copy_end(census->last) && census->last_request == PQ_QUERY))
		return TAIL_ENDED;
	return TAIL_OPEN;
}

static enum tail tail_of(const struct server_link *server)
{
	const struct census census = count_requests(&server->requests);

	if (server->copy)
		return tail_of_copy(server, &census);
	if (server->requests.count == 0) {
		if (server->transaction_status != 0)
			return TAIL_ENDED;
		return server->request_error == REQUEST_ERROR_UNTIL_SYNC ? TAIL_FAILED
									 : TAIL_OPEN;
	}
	if (is_whole_request(census.last) || census.last_request == PQ_QUERY)
		return TAIL_ENDED;
	/* Whether that Sync will be answered depends on there being a COPY. */
	return census.last_request == PQ_SYNC ? TAIL_UNCLEAR : TAIL_OPEN;
}

/* --- what it is sent ---------------------------------------------------------------------- */

/* Protocol: "Message Flow", COPY and Extended Query. Of these each has a row in what is owed. */
static bool add_copy_fail(struct server_link *server, struct buffer *out)
{
	const size_t mark = writer_begin(out, PQ_COPY_FAIL);

	writer_string(out, "the client has gone");
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
 * End what its client left open. A Sync alone would commit a batch, so a ROLLBACK goes before it:
 * where the batch has failed, the server says nothing of either before the Sync.
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

/* Does it run something of its client's? */
static bool is_busy(const struct server_link *server)
{
	return !requests_is_empty(&server->requests) && !server_is_syncing(server) &&
		server->task != SERVER_TASK_OWN_QUERY;
}

/* One that somebody else has sent, or is about to, will do. */
static void ask_for_cancel(struct server_link *server)
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
	ask_for_cancel(server);
}

/*
 * Too much for an answer that nobody wants: without its client PostgreSQL would end it too. Where it
 * stops now the server waits, since we do not read on.
 */
static void halt(struct server_link *server)
{
	if (!server->cancel_key) {
		give_up(server);
		return;
	}
	server->draining.polite = false;
	stream_pause(&server->link.stream);
	ask_for_cancel(server);
}

static void read_on(struct server_link *server)
{
	server->draining.canceled = true;
	server->draining.bytes = 0;
	stream_resume(&server->link.stream);
}

/* --- from step to step -------------------------------------------------------------------- */

/* Has it answered everything, and is nothing half-said? */
static bool is_quiet(const struct server_link *server)
{
	return server->transaction_status != 0 && requests_is_empty(&server->requests) &&
		!server->copy && !server_is_syncing(server) && server->link.remaining == 0 &&
		server->link.held_length == 0 && !stream_is_blocked(&server->link.stream);
}

/* A batch has failed, and the Query that was to end it is skipped with it. */
static bool waits_for_sync(const struct server_link *server)
{
	return server->request_error == REQUEST_ERROR_UNTIL_SYNC &&
		requests_is_empty(&server->requests) && server->link.remaining == 0;
}

/* As clean as any. In session mode its reset query has to succeed: see own_query_error(). */
static void give_back(struct server_link *server)
{
	link_log(&server->link, LEVEL_DEBUG, "drained after its client had gone");
	server->drained = true;
	server->unnamed = 0; /* a Query of ours ends it */
	return_to_pool(server);
	server->drained = server->link.state == SERVER_RESETTING;
}

/* A cancel request on its way would hit what comes next. */
static void finish(struct server_link *server)
{
	draining_withdraw_cancel(server);
	cancel_queue_drop(server);
	if (server->cancels > 0)
		return;
	if (server->transaction_status == 'I')
		give_back(server);
	else
		own_query_send(server, "ROLLBACK");
}

void draining_proceed(struct server_link *server, size_t length)
{
	struct draining *draining = &server->draining;

	draining->bytes += length < BYTES_AFTER ? (uint32_t)length : BYTES_AFTER;
	if (server->dirty || server->link.remaining > BYTES_AFTER)
		give_up(server);
	else if (is_quiet(server))
		finish(server);
	else if (waits_for_sync(server) && !end_tail(server))
		give_up(server);
	else if (draining->canceled && draining->bytes > BYTES_AFTER)
		give_up(server);
	else if (!draining->canceled && draining->bytes > BYTES_BEFORE)
		halt(server);
}

void draining_own_query_done(struct server_link *server)
{
	const bool was_syncing = server_is_syncing(server);

	server_set_task(server, SERVER_TASK_NONE);
	if (was_syncing)
		draining_proceed(server, 0);
	else if (server_is_clean(server))
		give_back(server);
	else
		give_up(server);
}

void draining_cancel_done(struct server_link *server)
{
	read_on(server);
	if (is_quiet(server))
		finish(server);
	else if (server->draining.cancel == DRAINING_CANCEL_AGAIN)
		ask_for_cancel(server);
	/* Else its answer is on its way; if not, draining_inspect() asks again. */
}

/* --- the beginning ------------------------------------------------------------------------ */

/* Who rests, or is handed over, waits for nobody that has no client. */
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
		ask_for_cancel(server);
	return end_tail(server);
}

static void begin(struct server_link *server, bool politely)
{
	counters_unclean(server, uncleanness(server));
	if (!may_drain(server, politely)) {
		give_up(server);
		return;
	}
	server->draining = (struct draining){
		.since = loop_now(server->link.stream.loop),
		.polite = politely,
	};
	server_enter_last(server, SERVER_DRAINING);
	if (!server_is_syncing(server) && !draining_start(server)) {
		give_up(server);
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
		begin(server, politely);
}

/* --- its time ----------------------------------------------------------------------------- */

void draining_inspect(struct server_link *server, usec_t now)
{
	struct draining *draining = &server->draining;
	const usec_t set = server->link.pool->registry->process->settings->cancel_wait_timeout;
	const usec_t limit = GRACE + (set > 0 ? set : LONGEST);

	if (draining->polite && now - draining->since > GRACE)
		draining->polite = false;
	if (now - draining->since > limit)
		give_up(server);
	else if (!draining->polite && is_busy(server))
		ask_for_cancel(server);
}
