/* SPDX-License-Identifier: ISC */
#include "session/statements/statements.h"

#include "model/statements_in_flight.h"
#include "session/relay/relay_rules.h"
#include "session/statements/prepare.h"
#include "session/statements/sql_statements.h"
#include "wire/sql.h"

/* --- Close -------------------------------------------------------------------------------- */

/*
 * Remove the client's name at once; it is listed again if an error prevents the Close. Returns
 * NULL if there is no such name.
 */
static struct client_statement *unlist_name(struct client_link *client, const char *name)
{
	struct client_statement *entry = client->statements
		? client_statements_find(client->statements, name, strlen(name) + 1)
		: NULL;

	if (entry) {
		entry->pending++;
		client_statements_note_closed(client->statements, entry->statement);
		client_statements_unlist(client->statements, entry);
	}
	return entry;
}

enum verdict statements_judge_close(struct relay_run *run)
{
	enum verdict verdict = RELAY_STOP;
	const char *name;

	if (prepare_is_skipped(run))
		return RELAY_PASS;
	if (!prepare_has_room(run))
		return prepare_hold_back(run);
	if (statements_is_about_portal(run))
		return prepare_pass_request(run, REQUEST_FORWARD);
	if (!prepare_read_subject(run, REASON_BROKEN_CLOSE_PACKET, &name, &verdict))
		return verdict;
	if (name[0] == '\0')
		prepare_drop_unnamed(run);
	if (name[0] == '\0' || !prepare_tracks(run))
		return prepare_pass_request(run, REQUEST_FORWARD);
	if (prepare_may_be_there(run->server, name) &&
		!prepare_find_name(run, name, strlen(name) + 1)) {
		run->server->suspected |= TOPIC_STATEMENTS;
		return prepare_pass_request(run, REQUEST_FORWARD);
	}
	if (!prepare_open_table(run))
		return prepare_out_of_memory(run);
	if (prepare_was_answered(run))
		return RELAY_DROP;
	requests_add(&run->server->requests, PQ_CLOSE, REQUEST_ANSWER | REQUEST_NOTED);
	server_statements_push(run->server->statements,
		&(struct statement_operation){
			.kind = STATEMENT_CLOSED,
			.client = unlist_name(run->client, name),
		});
	return RELAY_DROP;
}

enum verdict statements_judge_idle_close(struct relay_run *run)
{
	static const uint8_t close_complete[] = {PQ_CLOSE_COMPLETE, 0, 0, 0, 4};
	enum verdict verdict = RELAY_STOP;
	struct client_link *client = run->client;
	struct client_statement *entry;
	const char *name;

	if (!prepare_tracks(run) || client_mode(client) == POOL_MODE_SESSION)
		return RELAY_PASS;
	if (statements_is_about_portal(run))
		return RELAY_PASS;
	if (!prepare_read_subject(run, REASON_BROKEN_CLOSE_PACKET, &name, &verdict))
		return verdict;
	if (name[0] == '\0')
		return RELAY_PASS;
	entry = unlist_name(client, name);
	if (entry)
		client_statements_settle(client->statements, entry);
	switch (stream_send_bytes(
		&client->link.stream, close_complete, sizeof(close_complete))) {
	case STREAM_SENT_ALL:
		break;
	case STREAM_SENT_LATER:
		stream_pause(&client->link.stream);
		break;
	case STREAM_SENT_NOT:
		return relay_fail(run, failure_of(REASON_UNEXPECTED_EOF));
	}
	/* A run that is repeated with another server must begin after this message. */
	run->start = run->at + run->frame.total;
	return RELAY_DROP;
}

/* --- DEALLOCATE --------------------------------------------------------------------------- */

/* A DEALLOCATE of a tracked name: the server gets a Query without effect in its place. */
static enum verdict deallocate(struct relay_run *run, const char *name)
{
	uint8_t message[FRAME_HEADER_SIZE + sizeof(PREPARE_STAND_IN)];

	if (!prepare_open_table(run))
		return prepare_out_of_memory(run);
	prepare_drop_unnamed(run);
	prepare_put_header(message, PQ_QUERY, 4 + sizeof(PREPARE_STAND_IN));
	memcpy(message + FRAME_HEADER_SIZE, PREPARE_STAND_IN, sizeof(PREPARE_STAND_IN));
	relay_insert(run, message, sizeof(message));
	prepare_note(run, PQ_QUERY, REQUEST_FORWARD,
		&(struct statement_operation){
			.kind = STATEMENT_DEALLOCATE,
			.client = unlist_name(run->client, name),
		});
	query_clocks_start(run->client);
	return RELAY_DROP;
}

/* Returns true, with the verdict, if the Query is a DEALLOCATE of a tracked name. */
static bool is_deallocate(struct relay_run *run, enum verdict *verdict)
{
	struct buffer name;
	bool known;

	buffer_init(&name);
	known = run->whole &&
		prepare_deallocates(run, (const char *)run->at + FRAME_HEADER_SIZE,
			run->frame.total - FRAME_HEADER_SIZE, &name);
	if (name.length > 0 && sql_statements_wait_for(run, (const char *)name.data, verdict))
		known = true;
	else if (known)
		*verdict = deallocate(run, (const char *)name.data);
	buffer_free(&name);
	return known;
}

/* The Execute of a DEALLOCATE that came as a Parse: see parse_rules.c. */
static enum verdict execute_deallocate(struct relay_run *run)
{
	struct client_statements *statements = run->client->statements;

	if (!prepare_open_table(run))
		return prepare_out_of_memory(run);
	prepare_note(run, PQ_EXECUTE, REQUEST_FORWARD,
		&(struct statement_operation){
			.kind = STATEMENT_DEALLOCATE,
			.client = unlist_name(run->client, statements->deallocates),
		});
	client_statements_will_deallocate(statements, NULL);
	query_clocks_start(run->client);
	return RELAY_PASS;
}

enum verdict statements_judge_execute(struct relay_run *run)
{
	if (prepare_is_skipped(run))
		return RELAY_PASS;
	if (!prepare_has_room(run))
		return prepare_hold_back(run);
	if (run->whole && run->frame.total > FRAME_HEADER_SIZE &&
		run->at[FRAME_HEADER_SIZE] == '\0')
		return execute_deallocate(run);
	return prepare_pass_request(run, REQUEST_FORWARD);
}

/* --- simple queries ----------------------------------------------------------------------- */

enum verdict statements_judge_query(struct relay_run *run)
{
	enum verdict verdict = RELAY_STOP;

	if (prepare_is_skipped(run))
		return RELAY_PASS;
	if (!prepare_has_room(run))
		return prepare_hold_back(run);
	if (sql_statements_may_be_in(run) && sql_statements_judge(run, &verdict))
		return verdict;
	if (run->client->statements && is_deallocate(run, &verdict))
		return verdict;
	if (run->client->statements && run->client->statements->by_sql &&
		!sql_statements_hand_over(run))
		return prepare_hold_back(run);
	prepare_drop_unnamed(run);
	if (run->whole &&
		prepare_forgets_all(run, (const char *)run->at + FRAME_HEADER_SIZE,
			run->frame.total - FRAME_HEADER_SIZE))
		client_set_step(run->client, CLIENT_STEP_FORGETTING);
	return prepare_pass_request(run, REQUEST_FORWARD);
}
