/* SPDX-License-Identifier: ISC */
/* The judges of Bind and Describe in transaction and statement mode. */
#include "model/statements_in_flight.h"
#include "session/notify/unlisten.h"
#include "session/relay/relay_rules.h"
#include "session/statements/cached_unnamed.h"
#include "session/statements/prepare.h"
#include "session/statements/sql_statements.h"
#include "session/statements/statements.h"
#include "session/statements/suspect.h"

/* Maximum size of a portal's name that is copied; a longer one is lent to the relay. */
enum { PORTAL_COPIED_MAX = 64 };

/* --- the unnamed statement, and unknown names --------------------------------------------- */

/* The client has no statement of this name, unless its server has: let its request fail. */
static enum verdict fail_unknown(struct relay_run *run, const char *name)
{
	if (prepare_may_be_there(run->server, name))
		return prepare_pass_request(run, REQUEST_FORWARD);
	link_log_repeated(run->from, LEVEL_ERROR, "prepared statement '%.64s' not found", name);
	return prepare_refuse(run, REQUEST_UNKNOWN);
}

/*
 * Will the server's unnamed statement be the client's for the next message, whether or not
 * requests in flight fail?
 */
static bool has_unnamed(const struct relay_run *run)
{
	const struct server_link *server = run->server;

	return run->client->unnamed && server->unnamed == run->client->unnamed->id &&
		(server->unnamed_batch == server->batch ||
			requests_is_empty(&server->requests));
}

static void prepare_unnamed(struct relay_run *run)
{
	const struct statement *statement = run->client->unnamed;

	prepare_insert_parse(run, statement, "", 1);
	/* It is not counted: the count is compared with the statements seen on the server. */
	run->client->link.pool->stats.current.server_parses--;
	prepare_add_request(run, PQ_PARSE, REQUEST_SWALLOW);
	run->server->unnamed = statement->id;
	run->server->unnamed_batch = run->server->batch;
}

/* A Bind or Describe of the unnamed statement, which only this server has. */
static enum verdict use_passing(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (run->frame.type == PQ_BIND)
		server->awaits_bind = false;
	if (server->unnamed_batch != server->batch)
		run->replayable = true;
	return prepare_pass_request(run, REQUEST_FORWARD);
}

/*
 * A Bind or Describe of the unnamed statement. values: where they begin in the body of the Bind; 0
 * for a Describe.
 */
static enum verdict use_unnamed(struct relay_run *run, size_t values)
{
	const struct server_link *server = run->server;
	enum verdict verdict;
	bool has;

	if (server->unnamed_passing)
		return use_passing(run);
	has = has_unnamed(run);
	if (run->client->unnamed && values > 0)
		suspect_bind(run, run->client->unnamed, values);
	/* The usual case: its Parse is in the same batch. */
	if (has && server->unnamed_batch == server->batch)
		return prepare_pass_request(run, REQUEST_FORWARD);
	if (!has && !run->client->unnamed)
		return prepare_refuse(run, REQUEST_UNKNOWN);
	if (!has && cached_unnamed_use(run, values, &verdict))
		return verdict;
	if (!has)
		prepare_unnamed(run);
	run->replayable = true;
	return prepare_pass_request(run, REQUEST_FORWARD);
}

/* --- a named statement -------------------------------------------------------------------- */

/* Is the Bind followed by a Describe of a portal? */
static bool is_described(const struct relay_run *run)
{
	const uint8_t *next = run->at + run->frame.total;

	return run->whole && run->end - next > FRAME_HEADER_SIZE && next[0] == PQ_DESCRIBE &&
		next[FRAME_HEADER_SIZE] == 'P';
}

/*
 * The columns have changed since the client last learnt them. Must it get an error? Yes, once,
 * if it would read the rows with the old columns; PostgreSQL sends this error for an outdated
 * plan.
 */
static bool needs_error(const struct relay_run *run, struct client_statement *entry)
{
	entry->shape = entry->statement->shape;
	return run->frame.type == PQ_BIND && run->client->statements->remembers &&
		!is_described(run);
}

/*
 * Prepare the statement on the server if it is not there. Returns NULL, with the verdict, if it
 * cannot be used. Inline: see bind_named().
 */
static inline const struct statement *have_on_server(struct relay_run *run,
	struct client_statement *entry, bool binds, enum verdict *verdict)
{
	struct statement *statement = entry->statement;

	if (entry->shape != statement->shape && needs_error(run, entry)) {
		*verdict = prepare_refuse(run, REQUEST_STALE);
		return NULL;
	}
	statement->binds += binds;
	if (prepare_if_absent(run, statement))
		return statement;
	*verdict = prepare_out_of_memory(run);
	return NULL;
}

_Static_assert(
	(int)STATEMENT_NAME_SIZE <= (int)RELAY_SPARE, "a name is copied with all of its array");

/*
 * Replace the beginning of the Bind, up to the statement's name. This function and those that
 * it calls are the additional cost of a prepared transaction, so they are inlined into one.
 */
__attribute__((always_inline)) static inline enum verdict bind_named(struct relay_run *run,
	const char *portal, size_t portal_size, struct client_statement *entry,
	size_t name_size)
{
	enum verdict verdict = RELAY_STOP;
	const struct statement *statement = have_on_server(run, entry, true, &verdict);
	uint8_t *front;
	size_t total;

	if (!statement)
		return verdict;
	suspect_bind(run, statement, portal_size + name_size);
	total = run->frame.total - name_size + statement->name_size;
	if (portal_size <= PORTAL_COPIED_MAX) {
		front = relay_replace_front(run, FRAME_HEADER_SIZE + portal_size + name_size,
			FRAME_HEADER_SIZE + portal_size + statement->name_size);
		prepare_put_header(front, PQ_BIND, total - 1);
		/* Usually the unnamed portal: avoid a call for a single byte. */
		if (portal_size == 1)
			front[FRAME_HEADER_SIZE] = '\0';
		else
			memcpy(front + FRAME_HEADER_SIZE, portal, portal_size);
		/* The size is constant, so that this is no call either. */
		memcpy(front + FRAME_HEADER_SIZE + portal_size, statement->name,
			sizeof(statement->name));
	} else {
		prepare_replace_name(run, portal, portal_size, statement->name, name_size,
			statement->name_size);
	}
	run->client->link.pool->stats.current.binds++;
	run->replayable = true;
	return prepare_pass_request(run, REQUEST_FORWARD);
}

/* --- Bind --------------------------------------------------------------------------------- */

/*
 * Returns true, with the verdict, if the Bind is of this statement and that names another one.
 * statement may be NULL.
 */
static bool binds_carrier(struct relay_run *run, const struct statement *statement,
	const char *portal, size_t portal_size, size_t name_size, enum verdict *verdict)
{
	const char *carrier = prepare_table(run)->carrier;

	*verdict = RELAY_PASS;
	if (!statement || !statement->may_name ||
		!sql_statements_carry(run, statement, verdict))
		return false;
	if (*verdict != RELAY_PASS)
		return true;
	prepare_replace_name(run, portal, portal_size, carrier, name_size, strlen(carrier) + 1);
	*verdict = prepare_pass_request(run, REQUEST_FORWARD);
	return true;
}

/* A Bind of another statement than the last one used. */
static enum verdict bind_other(struct relay_run *run, const char *portal, size_t portal_size)
{
	struct client_statement *entry;
	enum verdict verdict;
	size_t name_size;
	const char *name = prepare_text_at(run, portal_size, &name_size);

	if (!name)
		return prepare_no_name(run, REASON_BROKEN_BIND_PACKET);
	if (name[0] == '\0')
		return binds_carrier(run, run->client->unnamed, portal, portal_size, name_size,
			       &verdict)
			? verdict
			: use_unnamed(run, portal_size + 1);
	if (!prepare_tracks(run))
		return prepare_pass_request(run, REQUEST_FORWARD);
	entry = prepare_find_name(run, name, name_size);
	if (entry && entry->statement->may_unlisten)
		unlisten_note_text(run->client, (const char *)entry->statement->content,
			entry->statement->length);
	if (entry &&
		binds_carrier(run, entry->statement, portal, portal_size, name_size, &verdict))
		return verdict;
	return entry ? bind_named(run, portal, portal_size, entry, name_size)
		     : fail_unknown(run, name);
}

/* Returns the statement named after the portal if the client has used it last; else NULL. */
static inline struct client_statement *find_repeated(
	const struct relay_run *run, const char *portal, size_t portal_size)
{
	const struct client_statements *statements = run->client->statements;
	const uint8_t *name = (const uint8_t *)portal + portal_size;

	if (!statements || !run->whole || !prepare_tracks(run))
		return NULL;
	return client_statements_repeated(
		statements, name, (size_t)(run->at + run->frame.total - name));
}

struct statement *statements_find_bound(const struct relay_run *run)
{
	const struct client_statement *entry;
	size_t portal_size, name_size;
	const char *portal = prepare_text_at(run, 0, &portal_size), *name;

	name = portal ? prepare_text_at(run, portal_size, &name_size) : NULL;
	if (!name)
		return NULL;
	if (name[0] == '\0')
		return run->client->unnamed;
	entry = prepare_find_name(run, name, name_size);
	return entry ? entry->statement : NULL;
}

enum verdict statements_judge_bind(struct relay_run *run)
{
	struct client_statement *entry;
	size_t portal_size;
	const char *portal;

	if (prepare_is_skipped(run))
		return RELAY_PASS;
	if (!prepare_has_room(run))
		return prepare_hold_back(run);
	portal = prepare_text_at(run, 0, &portal_size);
	if (!portal)
		return prepare_no_name(run, REASON_BROKEN_BIND_PACKET);
	entry = find_repeated(run, portal, portal_size);
	return entry ? bind_named(run, portal, portal_size, entry,
			       run->client->statements->recent_size)
		     : bind_other(run, portal, portal_size);
}

/* --- Describe ----------------------------------------------------------------------------- */

/*
 * Returns true, with the verdict, if the Describe is of this statement and that names another one.
 * statement may be NULL.
 */
static bool describes_carrier(
	struct relay_run *run, const struct statement *statement, enum verdict *verdict)
{
	const char *carrier = prepare_table(run)->carrier;
	uint8_t message[FRAME_HEADER_SIZE + 1 + STATEMENT_NAME_SIZE];
	const size_t size = strlen(carrier) + 1;

	*verdict = RELAY_PASS;
	if (!statement || !statement->may_name ||
		!sql_statements_carry(run, statement, verdict))
		return false;
	if (*verdict != RELAY_PASS)
		return true;
	prepare_put_header(message, PQ_DESCRIBE, 4 + 1 + size);
	message[FRAME_HEADER_SIZE] = 'S';
	memcpy(message + FRAME_HEADER_SIZE + 1, carrier, size);
	relay_insert(run, message, FRAME_HEADER_SIZE + 1 + size);
	prepare_pass_request(run, REQUEST_FORWARD);
	*verdict = RELAY_DROP;
	return true;
}

enum verdict statements_judge_describe(struct relay_run *run)
{
	enum verdict verdict = RELAY_STOP;
	const struct statement *statement;
	struct client_statement *entry;
	const char *name;

	if (prepare_is_skipped(run))
		return RELAY_PASS;
	if (!prepare_has_room(run))
		return prepare_hold_back(run);
	if (run->client->statements)
		run->client->statements->remembers = true;
	if (!prepare_read_subject(run, REASON_BROKEN_DESCRIBE_PACKET, &name, &verdict))
		return verdict;
	if (name[0] == '\0')
		return describes_carrier(run, run->client->unnamed, &verdict)
			? verdict
			: use_unnamed(run, 0);
	if (!prepare_tracks(run))
		return prepare_pass_request(run, REQUEST_FORWARD);
	entry = prepare_find_name(run, name, strlen(name) + 1);
	if (!entry)
		return fail_unknown(run, name);
	if (describes_carrier(run, entry->statement, &verdict))
		return verdict;
	statement = have_on_server(run, entry, false, &verdict);
	if (!statement)
		return verdict;
	prepare_insert_about(run, PQ_DESCRIBE, statement);
	run->replayable = true;
	prepare_pass_request(run, REQUEST_FORWARD);
	return RELAY_DROP;
}
