/* SPDX-License-Identifier: ISC */
/* What the messages of clients mean: to one that has a server, and to one that has none. */
#include "session/pool/pairing.h"
#include "session/relay/pair.h"
#include "session/relay/query_clocks.h"
#include "session/relay/relay_rules.h"
#include "session/statements/statements.h"
#include "wire/message.h"

/* Protocol: "Message Flow", Extended Query and Simple Query: every one of these is answered. */
static enum verdict judge_request(struct relay_run *run)
{
	struct server_link *server = run->server;

	/* What is skipped needs no place in the ring, which might not have enough of them. */
	if (server->request_error != REQUEST_ERROR_UNTIL_SYNC || run->frame.type == PQ_SYNC) {
		if (!requests_add(&server->requests, run->frame.type, REQUEST_FORWARD)) {
			run->client->ring_full = true;
			return RELAY_HOLD;
		}
		if (server->request_error == REQUEST_ERROR_UNTIL_SYNC)
			server->request_error = REQUEST_ERROR_UNTIL_READY;
	}
	server->transaction_status = 0;
	query_clocks_start(run->client);
	return RELAY_PASS;
}

static enum verdict refuse_query(struct relay_run *run)
{
	link_log_repeated(run->from, LEVEL_ERROR, "client used \"Query\" packet type");
	return relay_fail(run, failure_of(REASON_PQEXEC_DISALLOWED));
}

static enum verdict judge_query(struct relay_run *run)
{
	if (link_registry(run->from)->process->settings->disable_pqexec)
		return refuse_query(run);
	return judge_request(run);
}

/* Could it be a DEALLOCATE, DISCARD, or one of these behind a comment or white space? */
static inline bool may_forget(const struct relay_run *run)
{
	const uint8_t *text = run->at + FRAME_HEADER_SIZE;

	return text < run->end && ((*text | 0x20) == 'd' || *text <= '/');
}

/* It is the end of what was said before, and nothing of a batch itself: see session/statements/replay. */
static void end_batch(struct relay_run *run)
{
	run->batch = run->last_batch = run->at + run->frame.total;
}

static enum verdict judge_tracked_call(struct relay_run *run)
{
	end_batch(run);
	return judge_request(run);
}

static enum verdict judge_tracked_query(struct relay_run *run)
{
	if (link_registry(run->from)->process->settings->disable_pqexec)
		return refuse_query(run);
	end_batch(run);
	/* Most who say Query say nothing else. */
	if (!run->client->statements && !run->client->unnamed && !may_forget(run) &&
		!(run->server->statements && run->server->statements->in_flight > 0)) {
		run->server->unnamed = 0;
		run->server->unnamed_passing = false;
		return judge_request(run);
	}
	return statements_judge_query(run);
}

/* Will its next Execute end a name of the client's? */
static inline bool deallocates(const struct relay_run *run)
{
	return run->client->statements && run->client->statements->deallocates;
}

/* What comes behind a Sync is done whatever became of the messages before it. */
static enum verdict judge_tracked_sync(struct relay_run *run)
{
	const enum verdict verdict = judge_request(run);

	if (verdict != RELAY_PASS)
		return verdict;
	run->server->batch++;
	run->last_batch = run->batch;
	run->batch = run->at + run->frame.total;
	if (run->server->forgetting)
		client_set_step(run->client, CLIENT_STEP_FORGETTING);
	run->server->forgetting = false;
	if (deallocates(run))
		client_statements_will_deallocate(run->client->statements, NULL);
	return verdict;
}

/* Nearly always it means nothing to us, and neither does the portal that is described before. */
static enum verdict judge_tracked_execute(struct relay_run *run)
{
	return deallocates(run) ? statements_judge_execute(run) : judge_request(run);
}

static enum verdict judge_tracked_describe(struct relay_run *run)
{
	if (!statements_is_about_portal(run))
		return statements_judge_describe(run);
	if (run->client->statements)
		run->client->statements->remembers = true;
	return judge_request(run);
}

/*
 * The end of a COPY has an entry of its own: Syncs before it are not answered. What comes when
 * the server owes nothing is the tail of a COPY that has failed: nobody waits for it.
 */
static enum verdict judge_copy_end(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (!server->copy && requests_is_empty(&server->requests))
		return RELAY_DROP;
	if (!requests_add(&server->requests, run->frame.type, REQUEST_FORWARD)) {
		run->client->ring_full = true;
		return RELAY_HOLD;
	}
	return RELAY_PASS;
}

static enum verdict judge_terminate(struct relay_run *run)
{
	return relay_fail(run, failure_of(REASON_CLIENT_CLOSE_REQUEST));
}

static enum verdict judge_unknown_from_client(struct relay_run *run)
{
	link_log_repeated(run->from, LEVEL_ERROR, "unknown pkt from client: %u/0x%x",
		run->frame.type, run->frame.type);
	return relay_fail(run, failure_of(REASON_UNKNOWN_PKT));
}

/* Have a server for an idle client. */
static enum verdict take_server(struct relay_run *run)
{
	switch (pairing_take(run->client)) {
	case PAIRING_READY:
		run->to = run->from->peer;
		run->server = server_of(run->to);
		run->in_flight = run->server->requests.count;
		return RELAY_AGAIN;
	case PAIRING_WAITING:
		return RELAY_HOLD;
	case PAIRING_CLOSED:
		break;
	}
	return RELAY_STOP;
}

/* The first message of an idle client: now it needs a server. */
static enum verdict judge_first_request(struct relay_run *run)
{
	query_clocks_start(run->client);
	return take_server(run);
}

/*
 * Flush is answered by nothing: so it has no place in the ring and starts no clock. With a body it
 * would be answered by an error and by silence, which might come when somebody else has the server.
 */
static enum verdict judge_flush(struct relay_run *run)
{
	return run->frame.total == FRAME_HEADER_SIZE ? RELAY_PASS : relay_refuse_header(run);
}

static enum verdict judge_first_flush(struct relay_run *run)
{
	return run->frame.total == FRAME_HEADER_SIZE ? take_server(run)
						     : relay_refuse_header(run);
}

/* Close of a statement needs no server, since no server knows of it. */
static enum verdict judge_first_close(struct relay_run *run)
{
	const enum verdict verdict = statements_judge_idle_close(run);

	return verdict == RELAY_PASS ? judge_first_request(run) : verdict;
}

/* CopyData, CopyDone and CopyFail of a COPY that failed long ago. */
static enum verdict judge_late_copy(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

/* Not before the server has answered, and then as ever. */
static enum verdict judge_behind_forgetting(struct relay_run *run)
{
	if (!requests_is_empty(&run->server->requests)) {
		run->client->ring_full = true;
		return RELAY_HOLD;
	}
	client_set_step(run->client, CLIENT_STEP_NONE);
	return RELAY_AGAIN;
}

/* --- the tables --------------------------------------------------------------------------- */

/*
 * Each table says first what all types mean and then which of them mean something else, so the
 * later initializer of the same element is the one that is meant.
 */
#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_idle_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_unknown_from_client),
	[PQ_QUERY] = {judge_first_request},
	[PQ_PARSE] = {judge_first_request},
	[PQ_BIND] = {judge_first_request},
	[PQ_DESCRIBE] = {judge_first_request},
	[PQ_EXECUTE] = {judge_first_request},
	[PQ_CLOSE] = {judge_first_close},
	[PQ_SYNC] = {judge_first_request},
	[PQ_FLUSH] = {judge_first_flush, .at_once = true},
	[PQ_FUNCTION_CALL] = {judge_first_request},
	[PQ_COPY_DATA] = {judge_late_copy},
	[PQ_COPY_DONE] = {judge_late_copy},
	[PQ_COPY_FAIL] = {judge_late_copy},
	[PQ_TERMINATE] = {judge_terminate},
};

/* What means the same from every client that is paired. */
#define PAIRED                                                                                 \
	RELAY_EVERY(judge_unknown_from_client),                                                \
		[PQ_FUNCTION_CALL] = {judge_request},                                          \
		[PQ_FLUSH] = {judge_flush, .at_once = true}, [PQ_COPY_DATA] = RELAY_PASSES,    \
		[PQ_COPY_DONE] = {judge_copy_end}, [PQ_COPY_FAIL] = {judge_copy_end},          \
		[PQ_TERMINATE] = {judge_terminate}

const struct relay_rule relay_paired_client[RELAY_TYPES] = {
	PAIRED,
	[PQ_QUERY] = {judge_query},
	[PQ_PARSE] = {judge_request},
	[PQ_BIND] = {judge_request},
	[PQ_DESCRIBE] = {judge_request},
	[PQ_EXECUTE] = {judge_request},
	[PQ_CLOSE] = {judge_request},
	[PQ_SYNC] = {judge_request},
};

const struct relay_rule relay_tracked_client[RELAY_TYPES] = {
	PAIRED,
	[PQ_QUERY] = {judge_tracked_query},
	[PQ_FUNCTION_CALL] = {judge_tracked_call},
	[PQ_PARSE] = {statements_judge_parse},
	[PQ_BIND] = {statements_judge_bind},
	[PQ_DESCRIBE] = {judge_tracked_describe},
	[PQ_EXECUTE] = {judge_tracked_execute},
	[PQ_CLOSE] = {statements_judge_close},
	[PQ_SYNC] = {judge_tracked_sync},
};

const struct relay_rule relay_forgetting_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_behind_forgetting),
	[PQ_TERMINATE] = {judge_terminate},
};
