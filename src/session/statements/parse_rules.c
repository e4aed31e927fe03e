/* SPDX-License-Identifier: ISC */
/* The judge of Parse in transaction and statement mode. */
#include "session/statements/cached_unnamed.h"
#include "session/statements/prepare.h"
#include "session/statements/statements.h"

/* An unnamed statement above this length is kept only while half of the memory is free. */
enum { UNNAMED_SHORT = 64 * 1024 };

/*
 * Close the client, which prepares a name that is in use. Not called for a name of a batch that
 * may have failed: PostgreSQL would not have that statement either.
 */
static enum verdict name_in_use(struct relay_run *run, const struct client_statement *entry)
{
	link_log_repeated(run->from, LEVEL_ERROR,
		"prepared statement '%.64s' was already prepared", entry->name);
	return relay_fail(run, failure_of(REASON_PREPARED_STATEMENT_IN_USE));
}

/*
 * The server has the statement, so nothing is sent to it: pgusher answers the Parse in its
 * order.
 */
static enum verdict answer_parse(struct relay_run *run, struct client_statement *entry)
{
	entry->pending++;
	requests_add(&run->server->requests, PQ_PARSE, REQUEST_ANSWER | REQUEST_NOTED);
	server_statements_push(run->server->statements,
		&(struct statement_operation){.kind = STATEMENT_PREPARED, .client = entry});
	query_clocks_start(run->client);
	return RELAY_DROP;
}

/* Send the client's Parse to the server, under our name. */
static enum verdict pass_parse(struct relay_run *run, struct client_statement *entry)
{
	struct statement *statement = entry->statement;
	struct server_statement *there = prepare_make_room(run, statement);

	if (!there)
		return prepare_out_of_memory(run);
	entry->pending++;
	prepare_insert_parse(run, statement, statement->name, statement->name_size);
	prepare_note(run, PQ_PARSE, REQUEST_FORWARD,
		&(struct statement_operation){
			.kind = STATEMENT_PREPARE,
			.server = there,
			.client = entry,
		});
	prepare_evict(run, there);
	query_clocks_start(run->client);
	return RELAY_DROP;
}

/*
 * A client that prepares the same statement again wants a new plan. If it got the error of an
 * outdated plan before, other clients that remember the columns must get that error, too.
 */
static void renew(struct client_statements *statements, struct statement *statement)
{
	statement->generation++;
	statement->shape += statements->told;
	statements->told = false;
}

static enum verdict parse_as(
	struct relay_run *run, const char *name, struct statement *statement)
{
	const bool anew = run->client->statements &&
		client_statements_had(run->client->statements, statement);
	struct client_statement *entry;

	if (anew)
		renew(run->client->statements, statement);
	entry = prepare_name_statement(run, name, statement);
	if (!entry)
		return prepare_out_of_memory(run);
	statement->parses++;
	run->client->link.pool->stats.current.client_parses++;
	if (prepare_is_there(run, server_statements_find(run->server->statements, statement)))
		return answer_parse(run, entry);
	return pass_parse(run, entry);
}

static enum verdict parse_named(struct relay_run *run, const char *name, size_t name_size)
{
	const size_t most = run->frame.total - FRAME_HEADER_SIZE + sizeof(struct statement) +
		sizeof(struct client_statement);
	struct client_statement *known = prepare_find_name(run, name, name_size);
	struct statement *statement;
	enum verdict verdict;

	if (!prepare_has_room(run))
		return prepare_hold_back(run);
	if (!prepare_open_table(run))
		return prepare_out_of_memory(run);
	if (!prepare_is_affordable(run, most))
		return prepare_refuse(run, REQUEST_REFUSED);
	if (!run->whole)
		return prepare_is_crowded(run) ? prepare_out_of_memory(run) : RELAY_MORE;
	if (!statement_is_content(
		    name + name_size, run->frame.total - FRAME_HEADER_SIZE - name_size))
		return relay_fail(run, failure_of(REASON_BROKEN_PARSE_PACKET));
	if (prepare_was_answered(run))
		return RELAY_DROP;
	if (known && (known->confirmed || known->pending == 0))
		return name_in_use(run, known);
	if (known)
		client_statements_unlist(run->client->statements, known);
	statement = statement_open(prepare_table(run), name + name_size,
		run->frame.total - FRAME_HEADER_SIZE - name_size);
	if (!statement)
		return prepare_out_of_memory(run);
	run->replayable = true;
	verdict = parse_as(run, name, statement);
	statement_unref(statement);
	return verdict;
}

/* --- the unnamed statement ---------------------------------------------------------------- */

/*
 * May the client keep an unnamed statement of so many bytes? Long ones leave half of the memory
 * to named statements: without room a Parse of these fails, but an unnamed one does not.
 */
static bool may_keep(const struct relay_run *run, size_t bytes)
{
	const uint64_t most = (uint64_t)prepare_settings(run)->max_prepared_memory;
	const struct process *process = link_registry(run->from)->process;

	return prepare_is_affordable(run, bytes) &&
		(bytes <= UNNAMED_SHORT || most == 0 ||
			registry_statement_bytes(process) + bytes <= most / 2);
}

/*
 * The unnamed statement is too long to be kept, or memory is short: only this server has it. So
 * the server stays with the client until a Bind has come, maybe behind a Sync.
 */
static void discard_unnamed(struct relay_run *run)
{
	struct server_link *server = run->server;

	prepare_set_unnamed(run->client, NULL);
	server->unnamed = 0;
	server->unnamed_passing = true;
	server->awaits_bind = true;
}

/* Keep the unnamed statement of this Parse for the client. */
static void keep_unnamed(struct relay_run *run, const char *content)
{
	struct client_link *client = run->client;
	const size_t length = run->frame.total - FRAME_HEADER_SIZE - 1;
	struct statement *statement;

	run->server->unnamed_passing = false;
	run->server->unnamed_batch = run->server->batch;
	/* Most clients send the same statement repeatedly. */
	if (client->unnamed && statement_is(client->unnamed, content, length)) {
		run->server->unnamed = client->unnamed->id;
		return;
	}
	statement = may_keep(run, length) ? statement_open(prepare_table(run), content, length)
					  : NULL;
	if (!statement) {
		discard_unnamed(run);
		return;
	}
	run->server->unnamed = statement->id;
	prepare_set_unnamed(client, statement);
}

/*
 * The client has prepared a DEALLOCATE of a tracked name as its unnamed statement: prepare
 * another statement in its place on the server, for the Execute that is expected next.
 */
static void insert_substitute(struct relay_run *run)
{
	static const char content[] = "\0" PREPARE_STAND_IN "\0\0";
	uint8_t *message = relay_insert_room(run, FRAME_HEADER_SIZE + sizeof(content));

	prepare_put_header(message, PQ_PARSE, 4 + sizeof(content));
	memcpy(message + FRAME_HEADER_SIZE, content, sizeof(content));
	run->server->unnamed = 0;
	run->server->unnamed_passing = true;
}

/*
 * Check the text of an unnamed statement for DEALLOCATE. *is_tracked is set if it is of a
 * tracked name. Returns false when out of memory.
 */
static bool note_deallocate(struct relay_run *run, const char *text, bool *is_tracked)
{
	struct client_statements *statements = run->client->statements;
	struct buffer name;
	bool good = true;

	*is_tracked = false;
	if (prepare_forgets_all(run, text, strlen(text)))
		run->server->forgetting = true;
	if (!statements)
		return true;
	buffer_init(&name);
	*is_tracked = prepare_deallocates(run, text, strlen(text), &name);
	good = client_statements_will_deallocate(
		statements, *is_tracked ? (const char *)name.data : NULL);
	buffer_free(&name);
	return good;
}

static enum verdict parse_unnamed(struct relay_run *run, const char *name)
{
	const size_t length = run->frame.total - FRAME_HEADER_SIZE - 1;
	struct client_link *client = run->client;
	unsigned action = REQUEST_FORWARD;
	bool is_tracked = false;
	enum verdict verdict;

	if (!prepare_has_room(run))
		return prepare_hold_back(run);
	if (!run->whole && may_keep(run, run->frame.total) && !prepare_is_crowded(run))
		return RELAY_MORE;
	if (!run->whole) {
		discard_unnamed(run);
		return prepare_pass_request(run, REQUEST_FORWARD);
	}
	if (statement_is_content(name + 1, length)) {
		if (!note_deallocate(run, name + 1, &is_tracked))
			return prepare_out_of_memory(run);
		if (cached_unnamed_parse(run, name + 1, length, &verdict))
			return verdict;
	}
	/*
	 * Without requests in flight there is no error that could let the server skip this
	 * Parse.
	 */
	if (!requests_is_empty(&run->server->requests)) {
		if (!prepare_open_table(run))
			return prepare_out_of_memory(run);
		server_statements_push(run->server->statements,
			&(struct statement_operation){
				.kind = STATEMENT_UNNAMED,
				.batch = run->server->batch,
				.before =
					client->unnamed ? statement_ref(client->unnamed) : NULL,
			});
		action |= REQUEST_NOTED;
	}
	keep_unnamed(run, name + 1);
	if (!is_tracked)
		return prepare_pass_request(run, action);
	insert_substitute(run);
	prepare_pass_request(run, action);
	return RELAY_DROP;
}

enum verdict statements_judge_parse(struct relay_run *run)
{
	size_t size;
	const char *name;

	if (prepare_is_skipped(run))
		return RELAY_PASS;
	name = prepare_text_at(run, 0, &size);
	if (!name)
		return prepare_no_name(run, REASON_FAILED_TO_PARSE_PACKET);
	if (name[0] == '\0')
		return parse_unnamed(run, name);
	if (prepare_tracks(run))
		return parse_named(run, name, size);
	return prepare_has_room(run) ? prepare_pass_request(run, REQUEST_FORWARD)
				     : prepare_hold_back(run);
}
