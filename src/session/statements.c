/* SPDX-License-Identifier: ISC */
#include "session/statements.h"

#include <string.h>

#include "session/query_clocks.h"
#include "session/relay_rules.h"
#include "wire/message.h"
#include "wire/sql.h"

enum {
	/* Of an unnamed statement no more than this is kept; a longer one passes by count. */
	UNNAMED_KEPT_MAX = 64 * 1024,
	/* A longer name is sent from where it is. */
	PORTAL_COPIED_MAX = 64,
	/* Close, Parse, the message itself, and one eviction. */
	REQUESTS_EACH = 4,
};

static struct statement_table *table_of(const struct relay_run *run)
{
	return &link_registry(run->from)->statements;
}

static const struct settings *settings_of(const struct relay_run *run)
{
	return link_registry(run->from)->settings;
}

/* --- passing requests on ------------------------------------------------------------------ */

/* Until the server has answered some. */
static enum verdict hold_back(struct relay_run *run)
{
	run->client->ring_full = true;
	return RELAY_HOLD;
}

static enum verdict out_of_memory(struct relay_run *run)
{
	return relay_fail(run, failure_of(REASON_NO_MEMORY));
}

/* What a server skips after an error needs no place in the ring. */
static bool is_skipped(const struct relay_run *run)
{
	return run->server->skipping;
}

static inline void add_request(struct relay_run *run, uint8_t type, unsigned action)
{
	requests_add(&run->server->requests, type, action);
	run->server->transaction_status = 0;
}

/* The message as it is, or with another front. There is room in the ring. */
static inline enum verdict pass_request(struct relay_run *run, unsigned action)
{
	add_request(run, run->frame.type, action);
	query_clocks_start(run->client);
	return RELAY_PASS;
}

/* An operation with its request, which is our own or has been sent. */
static void note(struct relay_run *run, uint8_t type, enum request_action action,
	const struct statement_operation *operation)
{
	add_request(run, type, action | REQUEST_NOTED);
	server_statements_push(run->server->statements, operation);
}

/* The server's book of statements, with room for what one message needs. */
static bool open_book(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (!server->statements)
		server->statements = server_statements_new();
	return server->statements &&
		server_statements_reserve(server->statements, REQUESTS_EACH);
}

static bool has_room(const struct relay_run *run)
{
	return requests_reserve(&run->server->requests, REQUESTS_EACH);
}

/*
 * A request that has to fail in its place: the server is asked about a statement that it cannot
 * have, and the client gets our words for the server's.
 */
static enum verdict refuse(struct relay_run *run, enum request_action action)
{
	const char *nowhere = table_of(run)->nowhere;
	uint8_t message[FRAME_HEADER_SIZE + 1 + STATEMENT_NAME_SIZE];
	const size_t length = strlen(nowhere) + 1;

	message[0] = PQ_DESCRIBE;
	memcpy(message + 1, (uint8_t[]){0, 0, 0, (uint8_t)(4 + 1 + length), 'S'}, 5);
	memcpy(message + 6, nowhere, length);
	relay_insert(run, message, 6 + length);
	add_request(run, run->frame.type, action);
	query_clocks_start(run->client);
	return RELAY_DROP;
}

/* --- names in messages -------------------------------------------------------------------- */

/* The text at this place of the body, as far as the message has come; NULL: its end has not. */
static const char *text_at(const struct relay_run *run, size_t offset, size_t *size)
{
	const uint8_t *body = run->at + FRAME_HEADER_SIZE;
	const size_t there = (size_t)(run->end - body);
	const size_t whole = run->frame.total - FRAME_HEADER_SIZE;
	const size_t length = there < whole ? there : whole;
	const uint8_t *end;

	if (offset >= length)
		return NULL;
	if (body[offset] == '\0') {
		*size = 1;
		return (const char *)body + offset;
	}
	end = memchr(body + offset, '\0', length - offset);
	if (!end)
		return NULL;
	*size = (size_t)(end - (body + offset)) + 1;
	return (const char *)body + offset;
}

/* A name whose end is not there: wait for it, or the message has none. */
static enum verdict no_name(struct relay_run *run, enum reason broken)
{
	return run->whole ? relay_fail(run, failure_of(broken)) : RELAY_MORE;
}

/* Are names tracked? Else they reach the server as they are. */
static bool tracks(const struct relay_run *run)
{
	return settings_of(run)->max_prepared_statements > 0;
}

static struct client_statement *find(const struct relay_run *run, const char *name, size_t size)
{
	struct client_statements *statements = run->client->statements;

	return statements ? client_statements_find(statements, name, size) : NULL;
}

/* --- preparing on the server -------------------------------------------------------------- */

static void put_header(uint8_t *out, uint8_t type, size_t length)
{
	out[0] = type;
	out[1] = (uint8_t)(length >> 24);
	out[2] = (uint8_t)(length >> 16);
	out[3] = (uint8_t)(length >> 8);
	out[4] = (uint8_t)length;
}

/* Parse of the statement under this name. */
static void insert_parse(struct relay_run *run, const struct statement *statement,
	const char *name, size_t name_size)
{
	uint8_t *front = relay_insert_room(run, FRAME_HEADER_SIZE + name_size);

	put_header(front, PQ_PARSE, 4 + name_size + statement->length);
	memcpy(front + FRAME_HEADER_SIZE, name, name_size);
	relay_insert_lent(run, statement->content, statement->length);
	run->client->link.pool->stats.current.server_parses++;
}

/* Describe or Close of a statement, by our name. */
static void insert_about_statement(
	struct relay_run *run, uint8_t type, const struct statement *statement)
{
	uint8_t *message = relay_insert_room(run, FRAME_HEADER_SIZE + 1 + statement->name_size);

	put_header(message, type, 4 + 1 + statement->name_size);
	message[FRAME_HEADER_SIZE] = 'S';
	memcpy(message + FRAME_HEADER_SIZE + 1, statement->name, statement->name_size);
}

static void insert_close(struct relay_run *run, struct server_statement *entry)
{
	insert_about_statement(run, PQ_CLOSE, entry->statement);
	entry->changes++;
	entry->batch = run->server->batch;
	note(run, PQ_CLOSE, REQUEST_SWALLOW,
		&(struct statement_operation){.kind = STATEMENT_CLOSE, .server = entry});
}

/*
 * Will what is in flight about it have been done when the next message is? Not if an error may
 * keep the server from it and not from that message, which is so behind the next Sync.
 */
static bool is_certain(const struct relay_run *run, const struct server_statement *entry)
{
	return entry->changes == 0 || entry->batch == run->server->batch;
}

/* Does the server have it, with a plan that is not out of date? */
static bool is_there(const struct relay_run *run, const struct server_statement *entry)
{
	return entry && entry->expected && is_certain(run, entry) &&
		entry->generation == entry->statement->generation;
}

/* It has to be closed before it can be prepared, unless it is certainly not there. */
static bool must_close(const struct relay_run *run, const struct server_statement *entry)
{
	return entry->expected || !is_certain(run, entry) ||
		(entry->changes == 0 && entry->present);
}

/* Close those used least recently, behind the Parse that makes them too many. */
static void evict(struct relay_run *run, const struct server_statement *newest)
{
	struct server_statements *statements = run->server->statements;
	const struct settings *settings = settings_of(run);
	struct server_statement *oldest;

	while ((statements->count > (uint32_t)settings->max_prepared_statements ||
		       (settings->max_prepared_bytes > 0 &&
			       statements->bytes > (uint64_t)settings->max_prepared_bytes)) &&
		(oldest = server_statements_oldest(statements)) != newest &&
		requests_reserve(&run->server->requests, REQUESTS_EACH) &&
		server_statements_reserve(statements, REQUESTS_EACH)) {
		server_statements_expect(statements, oldest, false);
		insert_close(run, oldest);
		run->client->link.pool->database->prepared.evictions++;
	}
}

/*
 * The entry of a statement that will be there when `prepare` has been done: closed before if need
 * be, and expected from now on. NULL: no memory.
 */
static struct server_statement *make_room(struct relay_run *run, struct statement *statement)
{
	struct server_statements *statements = run->server->statements;
	struct server_statement *entry = server_statements_open(statements, statement);

	if (!entry)
		return NULL;
	if (must_close(run, entry))
		insert_close(run, entry);
	server_statements_expect(statements, entry, true);
	entry->generation = statement->generation;
	entry->batch = run->server->batch;
	entry->changes++;
	return entry;
}

/* Have it on the server for the message at hand. False: no memory. */
static bool provide(struct relay_run *run, struct statement *statement)
{
	struct server_statements *statements = run->server->statements;
	struct prepared_counts *counts = &run->client->link.pool->database->prepared;
	struct server_statement *entry;

	if (statements) {
		entry = server_statements_find(statements, statement);
		if (is_there(run, entry)) {
			server_statements_touch(statements, entry);
			counts->hits++;
			return true;
		}
	}
	if (!open_book(run))
		return false;
	entry = make_room(run, statement);
	if (!entry)
		return false;
	insert_parse(run, statement, statement->name, statement->name_size);
	note(run, PQ_PARSE, REQUEST_SWALLOW,
		&(struct statement_operation){.kind = STATEMENT_PREPARE, .server = entry});
	counts->misses++;
	evict(run, entry);
	return true;
}

/* --- Parse -------------------------------------------------------------------------------- */

/* May the client have so many more bytes of statements? */
static bool is_affordable(const struct relay_run *run, size_t bytes)
{
	const uint64_t most = (uint64_t)settings_of(run)->max_prepared_memory;
	const struct client_statements *own = run->client->statements;

	return most == 0 ||
		(table_of(run)->bytes + bytes <= most &&
			(own ? own->bytes : 0) + bytes <= most / 4);
}

/*
 * A name that is in use. Behind the end of a batch that may have failed it can be had again: then
 * PostgreSQL would not have it either.
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
	struct server_statement *there = make_room(run, statement);

	if (!there)
		return out_of_memory(run);
	entry->pending++;
	insert_parse(run, statement, statement->name, statement->name_size);
	note(run, PQ_PARSE, REQUEST_FORWARD,
		&(struct statement_operation){
			.kind = STATEMENT_PREPARE,
			.server = there,
			.client = entry,
		});
	evict(run, there);
	query_clocks_start(run->client);
	return RELAY_DROP;
}

/* The client's name for the statement; NULL: no memory. */
static struct client_statement *name_statement(
	struct relay_run *run, const char *name, struct statement *statement)
{
	struct client_link *client = run->client;

	if (!client->statements)
		client->statements = client_statements_new(table_of(run));
	return client->statements ? client_statements_add(client->statements, name, statement)
				  : NULL;
}

/*
 * Whoever prepares the same again wants to have it planned again. If he has just been told that its
 * plan is out of date, others who remember its columns have to be told as well.
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
		return out_of_memory(run);
	statement->parses++;
	run->client->link.pool->stats.current.client_parses++;
	if (is_there(run, server_statements_find(run->server->statements, statement)))
		return answer_parse(run, entry);
	return pass_parse(run, entry);
}

static enum verdict parse_named(struct relay_run *run, const char *name, size_t name_size)
{
	const size_t most = run->frame.total - FRAME_HEADER_SIZE + sizeof(struct statement) +
		sizeof(struct client_statement);
	struct client_statement *known = find(run, name, name_size);
	struct statement *statement;
	enum verdict verdict;

	if (!has_room(run))
		return hold_back(run);
	if (!open_book(run))
		return out_of_memory(run);
	if (!is_affordable(run, most))
		return refuse(run, REQUEST_REFUSED);
	if (!run->whole)
		return RELAY_MORE;
	if (!statement_is_content(
		    name + name_size, run->frame.total - FRAME_HEADER_SIZE - name_size))
		return relay_fail(run, failure_of(REASON_BROKEN_PARSE_PACKET));
	/* Said again after it was answered: see statements_heal(). */
	if (known && run->repeats)
		return RELAY_DROP;
	if (known && (known->confirmed || known->pending == 0))
		return name_in_use(run, known);
	if (known)
		client_statements_unlist(run->client->statements, known);
	statement = statement_open(table_of(run), name + name_size,
		run->frame.total - FRAME_HEADER_SIZE - name_size);
	if (!statement)
		return out_of_memory(run);
	run->keeps = true;
	verdict = parse_as(run, name, statement);
	statement_unref(statement);
	return verdict;
}

/* --- the unnamed statement ---------------------------------------------------------------- */

/* From now on it is this one; its count is taken over. */
static void set_unnamed(struct client_link *client, struct statement *statement)
{
	statement_unref(client->unnamed);
	client->unnamed = statement;
}

/* It is too long to be kept, or there is no memory: good as long as nobody else has the server. */
static void do_not_keep(struct relay_run *run)
{
	set_unnamed(run->client, NULL);
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
		? statement_open(table_of(run), content, length)
		: NULL;
	if (!statement) {
		do_not_keep(run);
		return;
	}
	run->server->unnamed = statement->id;
	set_unnamed(client, statement);
}

static enum verdict parse_unnamed(struct relay_run *run, const char *name)
{
	struct client_link *client = run->client;

	if (!has_room(run))
		return hold_back(run);
	if (!run->whole && run->frame.total <= UNNAMED_KEPT_MAX)
		return RELAY_MORE;
	if (!run->whole) {
		do_not_keep(run);
		return pass_request(run, REQUEST_FORWARD);
	}
	/* The first that a server has to do cannot be skipped for the error of another. */
	if (requests_is_empty(&run->server->requests)) {
		keep_unnamed(run, name + 1);
		return pass_request(run, REQUEST_FORWARD);
	}
	if (!open_book(run))
		return out_of_memory(run);
	server_statements_push(run->server->statements,
		&(struct statement_operation){
			.kind = STATEMENT_UNNAMED,
			.before = client->unnamed ? statement_ref(client->unnamed) : NULL,
		});
	keep_unnamed(run, name + 1);
	return pass_request(run, REQUEST_FORWARD | REQUEST_NOTED);
}

enum verdict statements_judge_parse(struct relay_run *run)
{
	size_t size;
	const char *name;

	if (is_skipped(run))
		return RELAY_PASS;
	name = text_at(run, 0, &size);
	if (!name)
		return no_name(run, REASON_FAILED_TO_PARSE_PACKET);
	if (name[0] == '\0')
		return parse_unnamed(run, name);
	if (tracks(run))
		return parse_named(run, name, size);
	return has_room(run) ? pass_request(run, REQUEST_FORWARD) : hold_back(run);
}

/* --- Bind and Describe -------------------------------------------------------------------- */

/* The client has no such statement. */
static enum verdict unknown(struct relay_run *run, const char *name)
{
	link_log_repeated(run->from, LEVEL_ERROR, "prepared statement '%.64s' not found", name);
	return refuse(run, REQUEST_UNKNOWN);
}

/* Is what the server calls its unnamed statement the client's, whatever becomes of the rest? */
static bool has_unnamed(const struct relay_run *run)
{
	const struct server_link *server = run->server;

	if (server->unnamed_passing)
		return true;
	return run->client->unnamed && server->unnamed == run->client->unnamed->id &&
		(server->unnamed_batch == server->batch ||
			requests_is_empty(&server->requests));
}

static void provide_unnamed(struct relay_run *run)
{
	const struct statement *statement = run->client->unnamed;

	insert_parse(run, statement, "", 1);
	/* It is not counted: operators compare the counts with what they see on the server. */
	run->client->link.pool->stats.current.server_parses--;
	add_request(run, PQ_PARSE, REQUEST_SWALLOW);
	run->server->unnamed = statement->id;
	run->server->unnamed_batch = run->server->batch;
}

/* Bind or Describe of the unnamed statement. */
static enum verdict use_unnamed(struct relay_run *run)
{
	const struct server_link *server = run->server;
	const bool has = has_unnamed(run);

	/* Nearly always: it came with its Parse. */
	if (has && server->unnamed_batch == server->batch)
		return pass_request(run, REQUEST_FORWARD);
	if (!has && !run->client->unnamed)
		return refuse(run, REQUEST_UNKNOWN);
	if (!has)
		provide_unnamed(run);
	run->keeps = true;
	return pass_request(run, REQUEST_FORWARD);
}

/* Does the Bind come with a Describe of its portal? */
static bool is_described(const struct relay_run *run)
{
	const uint8_t *next = run->at + run->frame.total;

	return run->whole && run->end - next > FRAME_HEADER_SIZE && next[0] == PQ_DESCRIBE &&
		next[FRAME_HEADER_SIZE] == 'P';
}

/*
 * The columns are others than the client has been told. It would take rows for what they are not,
 * so it hears of it once, as the server tells who has an old plan there.
 */
static bool is_misled(const struct relay_run *run, struct client_statement *entry)
{
	entry->shape = entry->statement->shape;
	return run->frame.type == PQ_BIND && run->client->statements->remembers &&
		!is_described(run);
}

/* What the client means, which the server has from here on; NULL with the verdict. */
static const struct statement *resolve(
	struct relay_run *run, const char *name, size_t size, enum verdict *verdict)
{
	struct client_statement *entry = find(run, name, size);
	struct statement *statement;

	if (!entry) {
		*verdict = unknown(run, name);
		return NULL;
	}
	statement = entry->statement;
	if (entry->shape != statement->shape && is_misled(run, entry)) {
		*verdict = refuse(run, REQUEST_STALE);
		return NULL;
	}
	statement->binds += run->frame.type == PQ_BIND;
	if (provide(run, statement))
		return statement;
	*verdict = out_of_memory(run);
	return NULL;
}

/* The front of the Bind, up to the statement's name, becomes one of ours. */
static enum verdict bind_named(
	struct relay_run *run, const char *portal, size_t portal_size, size_t name_size)
{
	enum verdict verdict = RELAY_STOP;
	const struct statement *statement =
		resolve(run, portal + portal_size, name_size, &verdict);
	uint8_t *front;
	size_t total;

	if (!statement)
		return verdict;
	total = run->frame.total - name_size + statement->name_size;
	if (portal_size <= PORTAL_COPIED_MAX) {
		front = relay_insert_room(
			run, FRAME_HEADER_SIZE + portal_size + statement->name_size);
		put_header(front, PQ_BIND, total - 1);
		memcpy(front + FRAME_HEADER_SIZE, portal, portal_size);
		memcpy(front + FRAME_HEADER_SIZE + portal_size, statement->name,
			statement->name_size);
	} else {
		put_header(relay_insert_room(run, FRAME_HEADER_SIZE), PQ_BIND, total - 1);
		relay_insert_lent(run, portal, portal_size);
		relay_insert(run, statement->name, statement->name_size);
	}
	relay_skip_front(run, FRAME_HEADER_SIZE + portal_size + name_size);
	run->client->link.pool->stats.current.binds++;
	run->keeps = true;
	return pass_request(run, REQUEST_FORWARD);
}

enum verdict statements_judge_bind(struct relay_run *run)
{
	size_t portal_size, name_size;
	const char *portal, *name;

	if (is_skipped(run))
		return RELAY_PASS;
	if (!has_room(run))
		return hold_back(run);
	portal = text_at(run, 0, &portal_size);
	name = portal ? text_at(run, portal_size, &name_size) : NULL;
	if (!name)
		return no_name(run, REASON_BROKEN_BIND_PACKET);
	if (name[0] == '\0')
		return use_unnamed(run);
	if (!tracks(run))
		return pass_request(run, REQUEST_FORWARD);
	return bind_named(run, portal, portal_size, name_size);
}

/* Portals are none of our business. */
static bool is_about_portal(const struct relay_run *run)
{
	return run->frame.total > FRAME_HEADER_SIZE && run->end > run->at + FRAME_HEADER_SIZE &&
		run->at[FRAME_HEADER_SIZE] != 'S';
}

/* The name of the statement that Describe or Close is about. False with the verdict. */
static bool read_subject(
	struct relay_run *run, enum reason broken, const char **out, enum verdict *verdict)
{
	size_t size;

	if (!run->whole) {
		*verdict = RELAY_MORE;
		return false;
	}
	*out = text_at(run, 1, &size);
	if (!*out || run->frame.total != FRAME_HEADER_SIZE + 1 + size) {
		*verdict = relay_fail(run, failure_of(broken));
		return false;
	}
	return true;
}

enum verdict statements_judge_describe(struct relay_run *run)
{
	enum verdict verdict = RELAY_STOP;
	const struct statement *statement;
	const char *name;

	if (is_skipped(run))
		return RELAY_PASS;
	if (!has_room(run))
		return hold_back(run);
	if (run->client->statements)
		run->client->statements->remembers = true;
	if (is_about_portal(run))
		return pass_request(run, REQUEST_FORWARD);
	if (!read_subject(run, REASON_BROKEN_DESCRIBE_PACKET, &name, &verdict))
		return verdict;
	if (name[0] == '\0')
		return use_unnamed(run);
	if (!tracks(run))
		return pass_request(run, REQUEST_FORWARD);
	statement = resolve(run, name, strlen(name) + 1, &verdict);
	if (!statement)
		return verdict;
	insert_about_statement(run, PQ_DESCRIBE, statement);
	run->keeps = true;
	pass_request(run, REQUEST_FORWARD);
	return RELAY_DROP;
}

/* --- Close -------------------------------------------------------------------------------- */

/* The client's name is gone at once, and back if an error keeps the Close from being done. */
static struct client_statement *take_name(struct client_link *client, const char *name)
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

	if (is_skipped(run))
		return RELAY_PASS;
	if (!has_room(run))
		return hold_back(run);
	if (is_about_portal(run))
		return pass_request(run, REQUEST_FORWARD);
	if (!read_subject(run, REASON_BROKEN_CLOSE_PACKET, &name, &verdict))
		return verdict;
	if (name[0] == '\0') {
		set_unnamed(run->client, NULL);
		run->server->unnamed = 0;
		run->server->unnamed_passing = false;
	}
	if (name[0] == '\0' || !tracks(run))
		return pass_request(run, REQUEST_FORWARD);
	if (!open_book(run))
		return out_of_memory(run);
	requests_add(&run->server->requests, PQ_CLOSE, REQUEST_ANSWER | REQUEST_NOTED);
	server_statements_push(run->server->statements,
		&(struct statement_operation){
			.kind = STATEMENT_CLOSED,
			.client = take_name(run->client, name),
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

	if (!tracks(run) || client_mode(client) == POOL_MODE_SESSION)
		return RELAY_PASS;
	if (is_about_portal(run))
		return RELAY_PASS;
	if (!read_subject(run, REASON_BROKEN_CLOSE_PACKET, &name, &verdict))
		return verdict;
	if (name[0] == '\0')
		return RELAY_PASS;
	entry = take_name(client, name);
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
	/* What comes behind it may have to be said to another server, but not this. */
	run->start = run->at + run->frame.total;
	return RELAY_DROP;
}

/* --- simple queries ----------------------------------------------------------------------- */

/* DEALLOCATE of a name that we know: nothing is done on the server, which answers for us. */
static enum verdict deallocate(struct relay_run *run, const char *name)
{
	static const char nothing[] = "SELECT WHERE false";
	uint8_t message[FRAME_HEADER_SIZE + sizeof(nothing)];

	if (!open_book(run))
		return out_of_memory(run);
	put_header(message, PQ_QUERY, 4 + sizeof(nothing));
	memcpy(message + FRAME_HEADER_SIZE, nothing, sizeof(nothing));
	relay_insert(run, message, sizeof(message));
	note(run, PQ_QUERY, REQUEST_FORWARD,
		&(struct statement_operation){
			.kind = STATEMENT_DEALLOCATE,
			.client = take_name(run->client, name),
		});
	query_clocks_start(run->client);
	return RELAY_DROP;
}

/* True, with the verdict: it was one of those. */
static bool is_deallocate(struct relay_run *run, enum verdict *verdict)
{
	const uint8_t *text = run->at + FRAME_HEADER_SIZE;
	struct buffer name;
	bool known;

	if (!run->whole || run->frame.total <= FRAME_HEADER_SIZE || (text[0] | 0x20) != 'd' ||
		!tracks(run))
		return false;
	buffer_init(&name);
	known = sql_deallocated_name(
			(const char *)text, run->frame.total - FRAME_HEADER_SIZE, &name) &&
		find(run, (const char *)name.data, name.length);
	if (known)
		*verdict = deallocate(run, (const char *)name.data);
	buffer_free(&name);
	return known;
}

/* Will nothing be left on the server? Most queries are told apart by their first letter. */
static bool forgets_all(const struct relay_run *run)
{
	const char *text = (const char *)run->at + FRAME_HEADER_SIZE;

	return run->whole && run->frame.total > FRAME_HEADER_SIZE &&
		((text[0] | 0x20) == 'd' || text[0] <= '/') && tracks(run) &&
		sql_forgets_statements(text, run->frame.total - FRAME_HEADER_SIZE);
}

enum verdict statements_judge_query(struct relay_run *run)
{
	struct server_link *server = run->server;
	enum verdict verdict = RELAY_STOP;

	if (is_skipped(run))
		return RELAY_PASS;
	if (!has_room(run))
		return hold_back(run);
	server->unnamed = 0;
	server->unnamed_passing = false;
	if (run->client->unnamed)
		set_unnamed(run->client, NULL);
	if (run->client->statements && is_deallocate(run, &verdict))
		return verdict;
	if (forgets_all(run))
		run->from->rules = relay_forgetting_client;
	return pass_request(run, REQUEST_FORWARD);
}
