/* SPDX-License-Identifier: ISC */
/* What Parse means in transaction and statement mode. */
#include "session/statements/prepare.h"
#include "session/statements/statements.h"

/* Of an unnamed statement no more than this is kept; a longer one passes by count. */
enum { UNNAMED_KEPT_MAX = 64 * 1024 };

/* May the client have so many more bytes of statements? */
static bool is_affordable(const struct relay_run *run, size_t bytes)
{
	const uint64_t most = (uint64_t)prepare_settings(run)->max_prepared_memory;
	const struct client_statements *own = run->client->statements;

	return most == 0 ||
		(prepare_table(run)->bytes + bytes <= most &&
			(own ? own->bytes : 0) + bytes <= most / 4);
}

/*
 * A name that is in use. Behind the end of a batch that may have failed it can be had again:
 * then PostgreSQL would not have it either.
 */
static enum verdict name_in_use(struct relay_run *run, const struct client_statement *entry)
{
	link_log_repeated(run->from, LEVEL_ERROR,
		"prepared statement '%.64s' was already prepared", entry->name);
	return relay_fail(run, failure_of(REASON_PREPARED_STATEMENT_IN_USE));
}

/* Nothing has to be sent: the client is told when it is its turn. */
static enum verdict answer_parse(struct relay_run *run, struct client_statement *entry)
{
	entry->pending++;
	requests_add(&run->server->requests, PQ_PARSE, REQUEST_ANSWER | REQUEST_NOTED);
	server_statements_push(run->server->statements,
		&(struct statement_operation){.kind = STATEMENT_PREPARED, .client = entry});
	query_clocks_start(run->client);
	return RELAY_DROP;
}

/* The client's own Parse goes to the server, under our name. */
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

/* The client's name for the statement; NULL: no memory. */
static struct client_statement *name_statement(
	struct relay_run *run, const char *name, struct statement *statement)
{
	struct client_link *client = run->client;

	if (!client->statements)
		client->statements = client_statements_new(prepare_table(run));
	return client->statements ? client_statements_add(client->statements, name, statement)
				  : NULL;
}

/*
 * Whoever prepares the same again wants to have it planned again. If he has just been told that
 * its plan is out of date, others who remember its columns have to be told as well.
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
	entry = name_statement(run, name, statement);
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
	if (!is_affordable(run, most))
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
 * It is too long to be kept, or there is no memory: good as long as nobody else has the server.
 */
static void do_not_keep(struct relay_run *run)
{
	prepare_set_unnamed(run->client, NULL);
	run->server->unnamed = 0;
	run->server->unnamed_passing = true;
}

/* Keep what the client calls its unnamed statement now. */
static void keep_unnamed(struct relay_run *run, const char *content)
{
	struct client_link *client = run->client;
	const size_t length = run->frame.total - FRAME_HEADER_SIZE - 1;
	struct statement *statement;

	run->server->unnamed_passing = false;
	run->server->unnamed_batch = run->server->batch;
	/* Most clients say the same again and again. */
	if (client->unnamed && statement_is(client->unnamed, content, length)) {
		run->server->unnamed = client->unnamed->id;
		return;
	}
	statement = length <= UNNAMED_KEPT_MAX && is_affordable(run, length)
		? statement_open(prepare_table(run), content, length)
		: NULL;
	if (!statement) {
		do_not_keep(run);
		return;
	}
	run->server->unnamed = statement->id;
	prepare_set_unnamed(client, statement);
}

/*
 * A DEALLOCATE of a name that we know: it is the client's unnamed statement, but for the
 * Execute that is to follow the server has another one.
 */
static void stand_in(struct relay_run *run)
{
	static const char content[] = "\0" PREPARE_STAND_IN "\0\0";
	uint8_t *message = relay_insert_room(run, FRAME_HEADER_SIZE + sizeof(content));

	prepare_put_header(message, PQ_PARSE, 4 + sizeof(content));
	memcpy(message + FRAME_HEADER_SIZE, content, sizeof(content));
	run->server->unnamed = 0;
	run->server->unnamed_passing = true;
}

/* False: no memory. */
static bool note_deallocate(struct relay_run *run, const char *text, bool *stands)
{
	struct client_statements *statements = run->client->statements;
	struct buffer name;
	bool good = true;

	*stands = false;
	if (prepare_forgets_all(run, text, strlen(text)))
		run->server->forgetting = true;
	if (!statements)
		return true;
	buffer_init(&name);
	*stands = prepare_deallocates(run, text, strlen(text), &name);
	good = client_statements_will_deallocate(
		statements, *stands ? (const char *)name.data : NULL);
	buffer_free(&name);
	return good;
}

static enum verdict parse_unnamed(struct relay_run *run, const char *name)
{
	struct client_link *client = run->client;
	unsigned action = REQUEST_FORWARD;
	bool stands;

	if (!prepare_has_room(run))
		return prepare_hold_back(run);
	if (!run->whole && run->frame.total <= UNNAMED_KEPT_MAX)
		return RELAY_MORE;
	if (!run->whole) {
		do_not_keep(run);
		return prepare_pass_request(run, REQUEST_FORWARD);
	}
	if (!statement_is_content(name + 1, run->frame.total - FRAME_HEADER_SIZE - 1))
		stands = false;
	else if (!note_deallocate(run, name + 1, &stands))
		return prepare_out_of_memory(run);
	/* The first that a server has to do cannot be skipped for the error of another. */
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
	if (!stands)
		return prepare_pass_request(run, action);
	stand_in(run);
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
