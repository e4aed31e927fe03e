/* SPDX-License-Identifier: ISC */
#include "session/work/cancel_unsent.h"

#include "model/registry.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/pool/draining.h"
#include "session/relay/pair.h"
#include "session/relay/relay_rules.h"
#include "session/work/replication.h"
#include "wire/message.h"
#include "wire/writer.h"

static bool send_error(struct client_link *client)
{
	struct buffer message;

	buffer_init(&message);
	writer_error(&message, "ERROR", "57014", "canceling statement due to user request");
	return link_send(&client->link, &message);
}

static bool send_ready(struct client_link *client)
{
	struct buffer message;

	buffer_init(&message);
	writer_ready(&message, READY_IDLE);
	return link_send(&client->link, &message);
}

void cancel_unsent_answer(struct client_link *client)
{
	struct link *peer = client->link.peer;

	if (peer) {
		pair_unpair(peer);
		draining_client_unpaired(server_of(peer), true);
	} else if (client->link.state != CLIENT_IDLE) {
		replication_close_server(client);
		client_enter(client, CLIENT_IDLE);
	}
	client->query_start = client->transaction_start = 0;
	client_set_step(client, CLIENT_STEP_CANCELED);
	client_limits_start(client);
	if (send_error(client))
		relay_client_resume(client);
	else
		client_close_for(client, REASON_UNEXPECTED_EOF);
}

/* --- messages of the cancelled query ------------------------------------------------------ */

/*
 * Protocol: "Message Flow", Extended Query: after an error messages are skipped up to a Sync.
 */
static enum verdict judge_skipped(struct relay_run *run)
{
	client_set_step(run->client, CLIENT_STEP_SKIPPING);
	return RELAY_DROP;
}

/* The end of the query: a simple Query itself, the Sync of a batch. */
static enum verdict judge_end(struct relay_run *run)
{
	client_set_step(run->client, CLIENT_STEP_NONE);
	if (!send_ready(run->client))
		return relay_fail(run, failure_of(REASON_UNEXPECTED_EOF));
	return RELAY_DROP;
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

#define SKIPPED                                                                                \
	{                                                                                      \
		judge_skipped, .at_once = true                                                 \
	}

const struct relay_rule relay_canceled_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_otherwise),
	[PQ_QUERY] = {judge_end, .at_once = true},
	[PQ_FUNCTION_CALL] = {judge_end, .at_once = true},
	[PQ_SYNC] = {judge_end},
	[PQ_PARSE] = SKIPPED,
	[PQ_BIND] = SKIPPED,
	[PQ_DESCRIBE] = SKIPPED,
	[PQ_EXECUTE] = SKIPPED,
	[PQ_CLOSE] = SKIPPED,
	[PQ_FLUSH] = SKIPPED,
};

const struct relay_rule relay_skipping_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_otherwise),
	[PQ_QUERY] = SKIPPED,
	[PQ_FUNCTION_CALL] = SKIPPED,
	[PQ_SYNC] = {judge_end},
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
