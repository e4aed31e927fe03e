/* SPDX-License-Identifier: ISC */
#include "session/statements/replay.h"

#include <string.h>

#include "model/statements_in_flight.h"
#include "session/relay/relay_rules.h"
#include "wire/message.h"

/* --- the batch that is kept --------------------------------------------------------------- */

/*
 * How many requests the batch has that began in the middle of the run, by what stands before
 * it.
 */
static uint32_t count_back(const struct requests *requests, bool ended)
{
	uint32_t count = ended;

	while (count < requests->count) {
		const uint8_t type = requests_at(requests, requests->count - count - 1)->type;

		if (type == PQ_SYNC || type == PQ_QUERY || type == PQ_FUNCTION_CALL)
			break;
		count++;
	}
	return count;
}

/* Of the last requests, so many: how many answers of ours come first? */
static uint32_t count_ours(const struct requests *requests, uint32_t last)
{
	uint32_t ours = 0;

	while (ours < last &&
		request_is(
			requests_at(requests, requests->count - last + ours), REQUEST_ANSWER))
		ours++;
	return ours;
}

/*
 * May a batch that begins with the run, or in the middle of it, have to be said again? Behind
 * others that is not known before they have been answered: see take_ready() in server_rules.c.
 */
static bool is_worth_keeping(const struct relay_run *run, bool first, bool ended)
{
	if (run->is_replay || run->server->copy || (ended && !run->replayable))
		return false;
	return !first ||
		(run->status != READY_IN_TRANSACTION &&
			run->status != READY_FAILED_TRANSACTION);
}

/* So many requests are what the run has of the batch. */
static uint32_t count_requests(const struct relay_run *run, bool first, bool ended)
{
	const struct requests *requests = &run->server->requests;

	if (!first)
		return count_back(requests, ended);
	return requests->count > run->in_flight ? requests->count - run->in_flight : 0;
}

/* False: it is too long, or there is no memory. */
static bool append(struct server_link *server, const uint8_t *from, const uint8_t *until)
{
	const size_t length = (size_t)(until - from);

	if (server->kept.length + length > HEALING_KEPT_MAX)
		return false;
	if (buffer_append(&server->kept, from, length))
		return true;
	buffer_wipe(&server->kept);
	return false;
}

/* The run has all of the batch, or its beginning; NULL: it begins with the run. */
static bool begin_batch(struct relay_run *run, const uint8_t *from, bool ended)
{
	struct server_link *server = run->server;
	const bool first = from == NULL;
	uint32_t count;

	if (first)
		from = run->start;
	if (from >= run->at || !is_worth_keeping(run, first, ended))
		return false;
	count = count_requests(run, first, ended);
	server->kept_answers = count_ours(&server->requests, count);
	server->kept_requests = count - server->kept_answers;
	if (server->kept_requests == 0)
		return false;
	/* With all else that went with our SETs it is there already. */
	if (server_has_gathered(server))
		return first;
	buffer_clear(&server->kept);
	return append(server, from, run->at);
}

/* What came before is kept, and the run has more of it. */
static bool continue_batch(struct relay_run *run, const uint8_t *data)
{
	struct server_link *server = run->server;

	/* Answers come in order: if fewer are owed now, some of its own have come. */
	if (server->kept_requests == 0 || run->in_flight < server->kept_requests ||
		server->requests.count < run->in_flight || !append(server, data, run->at))
		return false;
	server->kept_requests += server->requests.count - run->in_flight;
	return true;
}

/*
 * Nearly always: the run is one whole batch, to a server that owes nothing. True: that was it.
 */
static bool keep_usual(struct relay_run *run)
{
	struct server_link *server = run->server;
	const size_t length = (size_t)(run->at - run->start);

	if (run->in_flight > 0 || run->status != READY_IDLE || run->at != run->batch ||
		run->last_batch || server->batch_open || run->is_replay ||
		length > server->kept.capacity || statements_are_due(server))
		return false;
	memcpy(server->kept.data, run->start, length);
	server->kept.length = length;
	server->kept_requests = server->requests.count;
	server->kept_answers = 0;
	return true;
}

static void keep_piece(struct relay_run *run, const uint8_t *data)
{
	struct server_link *server = run->server;
	const bool ended = run->batch == run->at;
	const uint8_t *from = ended ? run->last_batch : run->batch;
	const bool goes_on = server->batch_open && from == NULL;

	server->batch_open = !ended;
	if (!(goes_on ? continue_batch(run, data) : begin_batch(run, from, ended)))
		server->kept_requests = 0;
}

void replay_keep(struct relay_run *run, const uint8_t *data)
{
	struct server_link *server = run->server;

	/* Nothing has been passed on, or not to this server. */
	if (!server || run->at == data)
		return;
	if (run->from->rules != relay_tracked_client)
		server->kept_requests = 0;
	else if (!keep_usual(run))
		keep_piece(run, data);
}

/* --- plans out of date -------------------------------------------------------------------- */

/*
 * The text is translated, the routine is not; other causes of the same code are the client's.
 */
bool replay_is_stale(const struct report *report)
{
	return report_is(report, "0A000") && report->routine &&
		strcmp(report->routine, "RevalidateCachedQuery") == 0;
}

/*
 * The plan that the oldest request uses is not to be used again. What has made it so has done
 * the same to others: no plan that the server has is believed, there or anywhere else, and each
 * is made anew when it is next wanted.
 */
static void distrust(struct server_link *server)
{
	server->unnamed = 0;
	if (server->statements)
		server_statements_distrust(server->statements);
}

/*
 * Somebody has prepared another statement under our name, in SQL: it is there, and is no plan
 * of ours, so it will be closed before ours is prepared.
 */
static bool discredit_name(struct server_link *server)
{
	const struct statement_operation *operation =
		server->statements ? server_statements_next(server->statements) : NULL;

	if (!operation || operation->kind != STATEMENT_PREPARE)
		return false;
	operation->server->present = true;
	operation->server->generation = operation->server->statement->generation - 1;
	return true;
}

/* Does the server not have what we took it to have, through no fault of this request's? */
static bool discredit(struct server_link *server, const struct report *report)
{
	const struct request *first = requests_first(&server->requests);

	if (first && first->type == PQ_PARSE && (first->action & REQUEST_NOTED) &&
		report_is(report, "42P05"))
		return discredit_name(server);
	if (!first || first->action != REQUEST_FORWARD ||
		(first->type != PQ_BIND && first->type != PQ_DESCRIBE))
		return false;
	/* Or somebody has deallocated it in a way that we did not see. */
	if (!replay_is_stale(report) && !report_is(report, "26000"))
		return false;
	distrust(server);
	return true;
}

bool replay_may_begin(const struct relay_run *run)
{
	const struct server_link *server = run->server;

	/* Nothing of the batch has been answered, and nothing has been sent behind it. */
	return server->kept_requests > 0 && server->requests.count == server->kept_requests &&
		run->client && run->client->link.remaining == 0;
}

/*
 * Whoever has asked for columns before, and does not ask with this Bind, would take the rows
 * for what they are not: he has to be told.
 */
static bool has_to_be_told(const struct relay_run *run)
{
	const struct requests *requests = &run->server->requests;
	const struct client_statements *known = run->client ? run->client->statements : NULL;

	return requests_first(requests)->type == PQ_BIND && (!known || known->remembers) &&
		(requests->count < 2 || requests_at(requests, 1)->type != PQ_DESCRIBE);
}

/*
 * What is said again ends here for the server, which skips up to a Sync: the rest, which its
 * client has not said yet, comes behind what is said again. False: the server takes nothing.
 */
static bool end_batch(struct server_link *server)
{
	static const uint8_t sync[] = {PQ_SYNC, 0, 0, 0, 4};

	if (!requests_add(&server->requests, PQ_SYNC, REQUEST_FORWARD) ||
		stream_send_bytes(&server->link.stream, sync, sizeof(sync)) == STREAM_SENT_NOT)
		return false;
	server->batch++;
	server->batch_open = false;
	return true;
}

bool replay_begin(struct relay_run *run, const struct report *report)
{
	struct server_link *server = run->server;
	const bool stale = replay_is_stale(report);

	if (!run->whole || !discredit(server, report))
		return false;
	if (!replay_may_begin(run) || (stale && has_to_be_told(run))) {
		if (run->client && run->client->statements)
			run->client->statements->told = stale;
		return false;
	}
	if (server->batch_open && !end_batch(server))
		return false;
	requests_drop_until(&server->requests, PQ_SYNC);
	statements_lost(server);
	requests_swallow_first(&server->requests);
	server->replaying = true;
	stream_pause(&run->client->link.stream);
	return true;
}
