/* SPDX-License-Identifier: ISC */
#include "session/rules/server_answers.h"

#include "session/notify/unlisten.h"
#include "session/parameters/followed.h"
#include "session/rules/restore.h"
#include "session/state/changes.h"
#include "session/state/functions.h"
#include "session/state/pins.h"
#include "session/statements/replay.h"
#include "wire/report.h"
#include "wire/suspicion.h"

/* As judge_answer(), when it is not simply a forwarded answer to the oldest request. */
static __attribute__((noinline)) enum verdict judge_other_answer(
	struct relay_run *run, uint8_t type)
{
	struct server_link *server = run->server;
	const struct request *first = requests_first(&server->requests);
	enum verdict verdict = RELAY_PASS;

	/* Only ReadyForQuery ends a simple Query. */
	if (!first || first->type == PQ_QUERY)
		return RELAY_PASS;
	first = server_answers_first(server);
	if (!first || first->type != type)
		return RELAY_PASS;
	/* Our own answer precedes this message. */
	if (request_is(first, REQUEST_ANSWER)) {
		statement_answers_insert(run);
		return RELAY_AGAIN;
	}
	verdict = request_is(first, REQUEST_SWALLOW) ? RELAY_DROP : RELAY_PASS;
	if (first->action & REQUEST_NOTED)
		statements_done(server);
	requests_drop(&server->requests);
	return server_answers_add_own(run, verdict);
}

/* Judge a message that answers a request of this type. Inlined, since each answer has several. */
__attribute__((always_inline)) static inline enum verdict judge_answer(
	struct relay_run *run, uint8_t type)
{
	struct server_link *server = run->server;
	const struct request *first = requests_first(&server->requests);

	if (!first || first->type != type || first->action != REQUEST_FORWARD)
		return judge_other_answer(run, type);
	requests_drop(&server->requests);
	return server_answers_add_own(run, RELAY_PASS);
}

enum verdict server_answers_parse_complete(struct relay_run *run)
{
	return judge_answer(run, PQ_PARSE);
}

enum verdict server_answers_bind_complete(struct relay_run *run)
{
	return judge_answer(run, PQ_BIND);
}

enum verdict server_answers_close_complete(struct relay_run *run)
{
	return judge_answer(run, PQ_CLOSE);
}

/*
 * Describe of a statement is answered by two messages, and the error of an outdated plan comes
 * between them. If the batch will be replayed for that error, the first message is dropped too.
 */
enum verdict server_answers_parameter_description(struct relay_run *run)
{
	const uint8_t *behind = run->at + run->frame.total;
	struct report report;
	struct frame next;

	/* Long messages, and messages before a long error, are passed on as they arrive. */
	if (!run->whole || run->frame.total > RELAY_WHOLE_MAX / 2 || !replay_may_begin(run))
		return RELAY_PASS;
	switch (frame_peek(behind, (size_t)(run->end - behind), run->max_message, &next)) {
	case FRAME_WHOLE:
		report_parse(frame_body(behind), frame_body_size(&next), &report);
		return next.type == PQ_ERROR_RESPONSE && replay_is_stale(&report) ? RELAY_DROP
										  : RELAY_PASS;
	case FRAME_PARTIAL:
		return next.type == PQ_ERROR_RESPONSE && next.total <= RELAY_WHOLE_MAX / 2
			? RELAY_MORE
			: RELAY_PASS;
	case FRAME_SHORT:
		return RELAY_MORE;
	case FRAME_MALFORMED:
		break;
	}
	return RELAY_PASS;
}

/* RowDescription and NoData answer Describe. */
enum verdict server_answers_description(struct relay_run *run)
{
	return judge_answer(run, PQ_DESCRIBE);
}

/* EmptyQueryResponse and PortalSuspended answer Execute. */
enum verdict server_answers_executed(struct relay_run *run)
{
	return judge_answer(run, PQ_EXECUTE);
}

/* Answer the DEALLOCATE instead of its substitute. ReadyForQuery ends it if it was a Query. */
static enum verdict answer_deallocate(struct relay_run *run)
{
	static const char message[] = "C\0\0\0\017DEALLOCATE";
	struct server_link *server = run->server;

	relay_insert(run, message, sizeof(message));
	if (requests_first(&server->requests)->type == PQ_QUERY)
		return RELAY_DROP;
	statements_done(server);
	requests_drop(&server->requests);
	return server_answers_add_own(run, RELAY_DROP);
}

/* The command of a request with an operation on prepared statements has ended. */
static __attribute__((noinline)) enum verdict judge_noted(
	struct relay_run *run, const struct statement_operation *operation)
{
	const struct request *first = requests_first(&run->server->requests);

	if (operation->spoilt)
		return RELAY_DROP;
	/* The server has run the substitute for it: see statements/statements. */
	if (operation->kind == STATEMENT_DEALLOCATE && request_is(first, REQUEST_FORWARD))
		return answer_deallocate(run);
	return server_answers_executed(run);
}

/* May this be a tag that note_command() handles? */
static inline bool may_change_session(const struct relay_run *run)
{
	return run->whole && run->frame.total > FRAME_HEADER_SIZE + 2 &&
		suspicion_may_be_tag(run->at + FRAME_HEADER_SIZE);
}

/* Does the server run a statement whose effect on the session is known? */
static bool runs_known(const struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	return first && first->action & REQUEST_KNOWN;
}

/* Is the server asked for what its client changes? Else only tags tell that it may differ. */
static bool is_asked(const struct server_link *server)
{
	return server->link.pool->session_state != SESSION_STATE_IGNORE && !server->replication;
}

static void suspect(struct server_link *server, const struct relay_run *run)
{
	size_t length;
	const char *tag = (const char *)relay_body(run, &length);

	if (runs_known(server) || strnlen(tag, length) == length)
		return;
	if (functions_note_tag(server, tag))
		server->suspected |= TOPICS_ALL;
	server->suspected |= suspicion_of_tag(tag, (session_topics)server->pins);
}

/* The server may have other settings than those that are known. */
static void note_altered(struct server_link *server, const struct relay_run *run)
{
	if (relay_has_tag(run, "SET")) {
		server->altered = true;
		server->altered_by = run->client ? run->client->query_start : 0;
	} else if (relay_has_tag(run, "DISCARD ALL")) {
		server->altered = false;
	}
}

static void note_unlisten(const struct relay_run *run)
{
	size_t length;
	const char *tag = (const char *)relay_body(run, &length);

	if (run->client && strnlen(tag, length) < length)
		unlisten_note_tag(run->server, run->client, tag);
}

/* Returns false when out of memory. */
static bool follow_command(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (is_asked(server) && relay_has_tag(run, "DISCARD ALL")) {
		if (!followed_note_discard(server, run->client))
			return false;
		changes_doubt(server);
	}
	restore_note_command(run);
	if (server->changes_known && relay_has_tag(run, "ROLLBACK"))
		changes_doubt(server);
	note_unlisten(run);
	if (relay_has_tag(run, "RESET"))
		server->has_reset = true;
	if (relay_has_tag(run, "DISCARD SEQUENCES") || relay_has_tag(run, "DISCARD ALL"))
		pins_end_sequences(server);
	if (is_asked(server))
		suspect(server, run);
	else if (server->follows && !followed_note_command(run))
		return false;
	else
		note_altered(server, run);
	if (relay_forgets_all(run))
		statements_forget_all(server, run->client);
	return true;
}

/*
 * Handle a command that changes parameters or statements: RELAY_PASS, unless it fails. A function of its
 * own, since most commands change neither.
 */
static __attribute__((noinline)) enum verdict note_command(struct relay_run *run)
{
	return follow_command(run) ? RELAY_PASS : relay_fail(run, failure_of(REASON_NO_MEMORY));
}

enum verdict server_answers_command_complete(struct relay_run *run)
{
	struct server_link *server = run->server;
	const struct statement_operation *operation;

	if (may_change_session(run) || server->changes_known || server->owes_messages) {
		const enum verdict verdict = note_command(run);

		if (verdict != RELAY_PASS)
			return verdict;
	}
	operation = statements_oldest(server);
	if (operation)
		return judge_noted(run, operation);
	if (!server->copy)
		return judge_answer(run, PQ_EXECUTE);
	requests_end_copy(&server->requests, PQ_COPY_DONE, PQ_COPY_DONE);
	server->copy = COPY_NONE;
	return server_answers_add_own(run, RELAY_PASS);
}

enum verdict server_answers_copy_in(struct relay_run *run)
{
	run->server->copy = COPY_IN;
	return RELAY_PASS;
}
