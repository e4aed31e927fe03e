/* SPDX-License-Identifier: ISC */
/* Judges the messages of clients, with and without a server. */
#include <string.h>

#include "model/state/custom_names.h"
#include "model/state/watched_text.h"
#include "session/notify/listen_command.h"
#include "session/notify/unlisten.h"
#include "session/pool/pairing.h"
#include "session/relay/pair.h"
#include "session/relay/query_clocks.h"
#include "session/relay/relay_rules.h"
#include "session/rules/restore.h"
#include "session/serving/unsent_query.h"
#include "session/state/changes.h"
#include "session/state/refusal.h"
#include "session/statements/prepare.h"
#include "session/statements/sql_statements.h"
#include "session/statements/statements.h"
#include "session/statements/suspect.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/suspicion.h"

/*
 * Judge a message that is answered. Protocol: "Message Flow", Extended Query and Simple Query.
 */
static enum verdict judge_request(struct relay_run *run)
{
	struct server_link *server = run->server;

	/* A message that the server will skip gets no entry in the ring, which may be full. */
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

/*
 * May the first letter of the text begin DEALLOCATE, DISCARD or PREPARE, or a comment or white space
 * before it? Or is the letter missing?
 */
static inline bool may_concern_statements(const struct relay_run *run)
{
	const uint32_t letters = 1u << ('d' & 31) | 1u << ('p' & 31);
	const uint8_t *text = run->at + FRAME_HEADER_SIZE;

	return text >= run->end || *text <= '/' || letters >> (*text & 31) & 1;
}

/*
 * A Query or FunctionCall ends the batch before it, and is no part of one: see
 * statements/replay.
 */
static void end_batch(struct relay_run *run)
{
	run->batch = run->last_batch = run->at + run->frame.total;
}

/* The end of what has arrived of the message. */
static inline const uint8_t *end_of_text(const struct relay_run *run)
{
	const uint8_t *end = run->at + run->frame.total;

	return end < run->end ? end : run->end;
}

static inline bool may_change_session(const struct relay_run *run, const uint8_t *text)
{
	return !run->whole || suspicion_may_be_in(text, run->at + run->frame.total);
}

/* It would leave what cannot follow the client. A text that fails ends the unnamed statement too. */
static enum verdict refuse_text(struct relay_run *run)
{
	if (run->frame.type == PQ_QUERY)
		end_batch(run);
	run->server->unnamed = 0;
	prepare_set_unnamed(run->client, NULL);
	return refusal_send(run);
}

/* Judge a text whose words may change the session, or what it calls may: these topics. */
static __attribute__((noinline)) enum verdict judge_words(struct relay_run *run,
	const uint8_t *text, enum verdict (*judge)(struct relay_run *run),
	session_topics called)
{
	const size_t length = (size_t)(end_of_text(run) - text);
	const struct suspicion_names names = custom_names_of(run->client);
	session_topics topics;
	bool known = false;
	enum verdict verdict;

	restore_note_text(run, (const char *)text, length);
	if (run->server->link.pool->session_state == SESSION_STATE_IGNORE)
		return judge(run);
	/* Words behind what has arrived would be missed. */
	if (!run->whole && run->frame.total <= RELAY_WHOLE_MAX && !prepare_is_crowded(run))
		return RELAY_MORE;
	if (refusal_concerns(run, (const char *)text, length) && !prepare_is_skipped(run))
		return refuse_text(run);
	if (run->client->listener)
		unlisten_note_text(run->client, (const char *)text, length);
	topics = called | suspicion_of_text((const char *)text, length, !run->whole, &names);
	if (run->whole && run->frame.type == PQ_QUERY)
		known = changes_note_text(run, (const char *)text, length);
	verdict = judge(run);
	if (verdict == RELAY_PASS || verdict == RELAY_DROP)
		run->server->suspected |= topics;
	if (verdict == RELAY_PASS && known)
		requests_mark_last(&run->server->requests, REQUEST_KNOWN);
	return verdict;
}

/* Returns the text of a Parse behind its name; NULL if the name has no end in what has arrived. */
static inline const uint8_t *text_of_parse(const struct relay_run *run)
{
	const uint8_t *name = run->at + FRAME_HEADER_SIZE, *end = end_of_text(run);
	const uint8_t *nul = name < end ? memchr(name, 0, (size_t)(end - name)) : NULL;

	return nul ? nul + 1 : NULL;
}

static enum verdict judge_tracked_parse(struct relay_run *run)
{
	const uint8_t *text = text_of_parse(run);

	return text && may_change_session(run, text)
		? judge_words(run, text, statements_judge_parse, 0)
		: statements_judge_parse(run);
}

/* Functions that are called so have no tag. */
static void suspect_function(struct relay_run *run)
{
	struct server_link *server = run->server;
	struct reader reader;

	if (server->link.pool->session_state == SESSION_STATE_IGNORE)
		return;
	reader_init(&reader, run->at + FRAME_HEADER_SIZE,
		(size_t)(end_of_text(run) - (run->at + FRAME_HEADER_SIZE)));
	server->suspected |= suspicion_of_function(reader_int32(&reader));
}

static enum verdict judge_tracked_call(struct relay_run *run)
{
	end_batch(run);
	suspect_function(run);
	return judge_request(run);
}

static inline enum verdict judge_plain(struct relay_run *run)
{
	enum verdict verdict;

	if (link_registry(run->from)->process->settings->disable_pqexec)
		return refuse_query(run);
	/* Most clients that use Query use no prepared statements. */
	if (!run->client->statements && !run->client->unnamed && !may_concern_statements(run) &&
		!(run->server->statements && run->server->statements->in_flight > 0)) {
		end_batch(run);
		run->server->unnamed = 0;
		run->server->unnamed_passing = false;
		return judge_request(run);
	}
	verdict = statements_judge_query(run);
	if (verdict == RELAY_PASS || verdict == RELAY_DROP)
		end_batch(run);
	return verdict;
}

static enum verdict judge_plain_query(struct relay_run *run)
{
	return judge_plain(run);
}

static enum verdict judge_tracked_query(struct relay_run *run)
{
	const uint8_t *text = run->at + FRAME_HEADER_SIZE;

	return may_change_session(run, text) ? judge_words(run, text, judge_plain_query, 0)
					     : judge_plain(run);
}

/* --- where texts are watched -------------------------------------------------------------- */

static enum verdict judge_calls(struct relay_run *run, const uint8_t *text,
	enum verdict (*judge)(struct relay_run *run))
{
	const size_t length = (size_t)(end_of_text(run) - text);
	const session_topics called =
		watched_text_topics(run->server->link.pool, (const char *)text, length);

	return called || may_change_session(run, text) ||
			refusal_may_concern(run, (const char *)text, length)
		? judge_words(run, text, judge, called)
		: judge(run);
}

static enum verdict judge_watched_query(struct relay_run *run)
{
	return judge_calls(run, run->at + FRAME_HEADER_SIZE, judge_plain_query);
}

static enum verdict judge_watched_parse(struct relay_run *run)
{
	const uint8_t *text = text_of_parse(run);

	return text ? judge_calls(run, text, statements_judge_parse)
		    : statements_judge_parse(run);
}

/* The list may have changed since the Parse. */
static enum verdict judge_watched_bind(struct relay_run *run)
{
	suspect_bound(run, statements_find_bound(run));
	return statements_judge_bind(run);
}

/* --- the rest of the extended protocol ---------------------------------------------------- */

/* Returns true if the next Execute may deallocate a statement of the client. */
static inline bool deallocates(const struct relay_run *run)
{
	return run->client->statements && run->client->statements->deallocates;
}

/* The server handles messages after a Sync even if messages before it have failed. */
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

/* An Execute matters only if the portal may be a DEALLOCATE. */
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
 * The end of a COPY has an entry in the ring, since Syncs before it are not answered. If the
 * server owes no answer, the COPY has failed and its end is dropped.
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

/* A function of its own, since most clients get a server at once. */
static __attribute__((noinline)) enum verdict go_without(
	struct relay_run *run, enum pairing_result result)
{
	if (result == PAIRING_WAITING)
		return RELAY_HOLD;
	return result == PAIRING_FULL ? unsent_query_refuse(run, REASON_MAX_POOL_WAITERS)
				      : RELAY_STOP;
}

/* Get a server for an idle client. */
static enum verdict take_server(struct relay_run *run)
{
	const enum pairing_result result = pairing_take(run->client);

	if (result != PAIRING_READY)
		return go_without(run, result);
	run->to = run->from->peer;
	run->server = server_of(run->to);
	run->in_flight = run->server->requests.count;
	return RELAY_AGAIN;
}

/* The first message of an idle client that needs a server. */
static enum verdict judge_first_request(struct relay_run *run)
{
	query_clocks_start(run->client);
	return take_server(run);
}

/* A LISTEN or UNLISTEN may need no server. */
static enum verdict judge_first_query(struct relay_run *run)
{
	if (listen_command_may_be(run)) {
		const enum verdict verdict = listen_command_judge(run);

		if (verdict != RELAY_PASS)
			return verdict;
	}
	return judge_first_request(run);
}

/*
 * Flush has no answer, so it gets no entry in the ring and starts no time limit. A Flush with a
 * body is refused: the server would send an error and skip messages up to a Sync, perhaps when
 * another client has the server.
 */
static enum verdict judge_flush(struct relay_run *run)
{
	return run->frame.total == FRAME_HEADER_SIZE ? RELAY_PASS : relay_refuse_header(run);
}

/* A client without a server has got all its answers: there is nothing to flush. */
static enum verdict judge_idle_flush(struct relay_run *run)
{
	return run->frame.total == FRAME_HEADER_SIZE ? RELAY_DROP : relay_refuse_header(run);
}

/* Close of a statement needs no server: it concerns the names of the client only. */
static enum verdict judge_first_close(struct relay_run *run)
{
	const enum verdict verdict = statements_judge_idle_close(run);

	return verdict == RELAY_PASS ? judge_first_request(run) : verdict;
}

/* CopyData, CopyDone and CopyFail of a COPY that has failed before. */
static enum verdict judge_late_copy(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

/* Wait until the server has answered everything, then judge by the usual rules. */
static enum verdict judge_after_deallocate(struct relay_run *run)
{
	if (!requests_is_empty(&run->server->requests)) {
		run->client->ring_full = true;
		return RELAY_HOLD;
	}
	client_set_step(run->client, CLIENT_STEP_NONE);
	return RELAY_AGAIN;
}

/* --- the tables --------------------------------------------------------------------------- */

/* In each table the first row is the default, which later initializers override. */
#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_idle_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_unknown_from_client),
	[PQ_QUERY] = {judge_first_query},
	[PQ_PARSE] = {judge_first_request},
	[PQ_BIND] = {judge_first_request},
	[PQ_DESCRIBE] = {judge_first_request},
	[PQ_EXECUTE] = {judge_first_request},
	[PQ_CLOSE] = {judge_first_close},
	[PQ_SYNC] = {judge_first_request},
	[PQ_FLUSH] = {judge_idle_flush, .at_once = true},
	[PQ_FUNCTION_CALL] = {judge_first_request},
	[PQ_COPY_DATA] = {judge_late_copy},
	[PQ_COPY_DONE] = {judge_late_copy},
	[PQ_COPY_FAIL] = {judge_late_copy},
	[PQ_TERMINATE] = {judge_terminate},
};

/* Rows that are the same for all paired clients. */
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

/* The same for clients with prepared statements that are tracked. */
#define TRACKED                                                                                \
	PAIRED, [PQ_FUNCTION_CALL] = {judge_tracked_call},                                     \
		[PQ_DESCRIBE] = {judge_tracked_describe},                                      \
		[PQ_EXECUTE] = {judge_tracked_execute}, [PQ_CLOSE] = {statements_judge_close}, \
		[PQ_SYNC] = {judge_tracked_sync, .keeps_batch = true}

const struct relay_rule relay_tracked_client[RELAY_TYPES] = {
	TRACKED,
	[PQ_QUERY] = {judge_tracked_query},
	[PQ_PARSE] = {judge_tracked_parse},
	[PQ_BIND] = {statements_judge_bind},
};

const struct relay_rule relay_watched_client[RELAY_TYPES] = {
	TRACKED,
	[PQ_QUERY] = {judge_watched_query},
	[PQ_PARSE] = {judge_watched_parse},
	[PQ_BIND] = {judge_watched_bind},
};

const struct relay_rule relay_forgetting_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_after_deallocate),
	[PQ_TERMINATE] = {judge_terminate},
};
