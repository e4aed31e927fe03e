/* SPDX-License-Identifier: ISC */
#include "session/statements/sql_statements.h"

#include "model/statements_in_flight.h"
#include "session/link/client_lexis.h"
#include "session/statements/carrier.h"
#include "session/statements/prepare.h"
#include "session/statements/suspect.h"
#include "wire/sql_scanner.h"

/* So many operations in flight for one name are counted. */
enum { PENDING_MAX = UINT16_MAX / 2 };

static const char *text_of(const struct relay_run *run)
{
	return (const char *)run->at + FRAME_HEADER_SIZE;
}

/* Returns the length of the text as far as it has arrived. */
static size_t length_of(const struct relay_run *run)
{
	const size_t there = (size_t)(run->end - run->at), whole = run->frame.total;

	return (there < whole ? there : whole) - FRAME_HEADER_SIZE;
}

/*
 * Is the Query at the end of all batches? Clients do not send one within a batch, where an error
 * may let the server skip it.
 */
static bool is_between_batches(const struct relay_run *run)
{
	const struct requests *requests = &run->server->requests;
	uint8_t last;

	if (requests_is_empty(requests))
		return run->server->transaction_status != 0;
	last = requests_at(requests, requests->count - 1)->type;
	return last == PQ_QUERY || last == PQ_SYNC || last == PQ_FUNCTION_CALL;
}

bool sql_statements_wait_for(struct relay_run *run, const char *name, enum verdict *verdict)
{
	if (!statements_undecided(run->server, name) || !is_between_batches(run))
		return false;
	*verdict = prepare_hold_back(run);
	return true;
}

/* --- the Query with our name -------------------------------------------------------------- */

/* Returns the number of characters, as an error's position counts them. */
static size_t count_characters(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += ((uint8_t)text[i] & 0xc0) != 0x80; /* UTF-8 */
	return count;
}

/* Pass the Query with this name in place of the client's. */
static enum verdict pass_renamed(struct relay_run *run, const struct session_command *command,
	const char *name, struct statement_operation operation)
{
	const char *text = text_of(run);
	const size_t length = command->name_end - command->name_begin;
	char quoted[STATEMENT_NAME_SIZE + 2];
	const size_t size = (size_t)snprintf(quoted, sizeof(quoted), "\"%s\"", name);

	operation.longer =
		(int16_t)(size - count_characters(text + command->name_begin, length));
	prepare_put_header(relay_insert_room(run, FRAME_HEADER_SIZE), PQ_QUERY,
		run->frame.total - 1 - length + size);
	if (command->name_begin > 0)
		relay_insert_lent(run, text, command->name_begin);
	relay_insert(run, quoted, size);
	relay_skip_front(run, FRAME_HEADER_SIZE + command->name_end);
	prepare_note(run, PQ_QUERY, REQUEST_FORWARD, &operation);
	/* That it was PREPARE is no news. */
	if (command->verb == SESSION_PREPARE)
		requests_mark_last(&run->server->requests, REQUEST_KNOWN);
	query_clocks_start(run->client);
	return RELAY_PASS;
}

/*
 * If the text begins with PREPARE and does not follow its client, statements behind it must not be
 * taken for those of the client before its tag has come.
 */
static void suspect_prepare(struct relay_run *run, const char *text, size_t length)
{
	struct sql_scanner scanner;

	sql_scanner_init(&scanner, text, length, false);
	if (sql_scanner_match(&scanner, "prepare") &&
		run->server->link.pool->session_state != SESSION_STATE_IGNORE)
		run->server->suspected |= TOPIC_STATEMENTS;
}

/* --- PREPARE ------------------------------------------------------------------------------ */

/* Returns the statement of the PREPARE, with a reference; NULL when out of memory. */
static struct statement *open_statement(
	const struct relay_run *run, const struct session_command *command)
{
	const struct parameters *wanted = run->client->link.parameters;
	const int index = parameter_index(parameters_table(wanted), "search_path");
	const char *text = text_of(run), *path;
	struct statement *statement = NULL;
	struct buffer content = {0};

	path = parameters_get_followed(wanted, "search_path");
	if (!path && index >= 0)
		path = parameters_get(wanted, (unsigned)index);
	statement_append_sql(&content, text + command->rest,
		strnlen(text, length_of(run)) - command->rest, path);
	if (!content.failed)
		statement = statement_open(prepare_table(run), content.data, content.length);
	buffer_free(&content);
	return statement;
}

/*
 * Have the server run the PREPARE as this statement, which is new to the client. It always does,
 * even if it has that statement: the text may have become invalid.
 */
static enum verdict prepare_as(struct relay_run *run, const struct session_command *command,
	struct statement *statement)
{
	struct client_statement *entry =
		prepare_name_statement(run, (const char *)command->name.data, statement);
	struct server_statement *there = entry ? prepare_make_room(run, statement) : NULL;

	if (!there)
		return prepare_out_of_memory(run);
	prepare_evict(run, there);
	entry->pending++;
	statement->parses++;
	run->client->link.pool->stats.current.client_parses++;
	run->client->link.pool->stats.current.server_parses++;
	return pass_renamed(run, command, statement->name,
		(struct statement_operation){
			.kind = STATEMENT_PREPARE, .server = there, .client = entry});
}

static enum verdict prepare_new(struct relay_run *run, const struct session_command *command)
{
	struct statement *statement = open_statement(run, command);
	enum verdict verdict;

	if (!statement)
		return prepare_out_of_memory(run);
	verdict = prepare_as(run, command, statement);
	statement_unref(statement);
	return verdict;
}

/* The client has that name: the PREPARE is to fail, unless it fails for another reason. */
static enum verdict prepare_again(struct relay_run *run, const struct session_command *command,
	struct client_statement *entry)
{
	carrier_insert_namesake(run);
	entry->pending++;
	return pass_renamed(run, command, prepare_table(run)->carrier,
		(struct statement_operation){.kind = STATEMENT_EXECUTE, .client = entry});
}

/*
 * May the names that the client prepares by SQL follow it? Not while the server may have some that
 * cannot: one of them may be the same.
 */
static bool may_follow(const struct server_link *server)
{
	return server->link.pool->session_state != SESSION_STATE_IGNORE &&
		!((server->pins | server->suspected) & TOPIC_STATEMENTS);
}

static bool judge_prepare(
	struct relay_run *run, const struct session_command *command, enum verdict *verdict)
{
	struct client_statement *entry =
		prepare_find_name(run, (const char *)command->name.data, command->name.length);

	if (sql_statements_wait_for(run, (const char *)command->name.data, verdict))
		return true;
	if ((!entry && !may_follow(run->server)) ||
		!prepare_is_affordable(run, run->frame.total + sizeof(struct statement))) {
		suspect_prepare(run, text_of(run), length_of(run));
		return false;
	}
	prepare_drop_unnamed(run);
	*verdict = entry ? prepare_again(run, command, entry) : prepare_new(run, command);
	return true;
}

/* --- EXECUTE ------------------------------------------------------------------------------ */

static bool judge_execute(
	struct relay_run *run, const struct session_command *command, enum verdict *verdict)
{
	struct client_statement *entry =
		prepare_find_name(run, (const char *)command->name.data, command->name.length);

	/* The server says that there is no such statement, or has it itself. */
	if (!entry)
		return sql_statements_wait_for(run, (const char *)command->name.data, verdict);
	if (entry->pending >= PENDING_MAX) {
		*verdict = prepare_hold_back(run);
		return true;
	}
	prepare_drop_unnamed(run);
	suspect_execute(run, entry->statement, text_of(run) + command->rest,
		length_of(run) - command->rest);
	entry->statement->binds++;
	if (!prepare_before_query(run, entry->statement)) {
		*verdict = prepare_out_of_memory(run);
		return true;
	}
	entry->pending++;
	*verdict = pass_renamed(run, command, entry->statement->name,
		(struct statement_operation){.kind = STATEMENT_EXECUTE, .client = entry});
	return true;
}

/* --- several statements at once ----------------------------------------------------------- */

enum { HANDED_OVER_MAX = 16, HAND_OVER_READ_MAX = 64 * 1024 };

static bool is_in_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || (uint8_t)c >= 0x80;
}

/* Consume a word behind which a statement is named, and the name. */
static bool read_named(struct sql_scanner *scanner, struct buffer *name)
{
	enum sql_token token;

	if (sql_scanner_match(scanner, "deallocate"))
		sql_scanner_match(scanner, "prepare");
	else if (!sql_scanner_match(scanner, "execute") &&
		!sql_scanner_match(scanner, "prepare"))
		return false;
	token = sql_scanner_next(scanner, name);
	return token == SQL_WORD || token == SQL_NAME;
}

/*
 * Returns the next statement of the client that the text names at or behind *at, anywhere in it:
 * SQL in strings and comments may be run, or not. NULL: there is none.
 */
static struct client_statement *next_named(
	const struct relay_run *run, const char **at, const char *end, struct buffer *name)
{
	const char *begin = text_of(run);

	for (; *at < end; (*at)++) {
		const char letter = (char)(**at | 0x20);
		struct client_statement *entry;
		struct sql_scanner scanner;

		if ((letter != 'e' && letter != 'p' && letter != 'd') ||
			(*at > begin && is_in_name((*at)[-1])))
			continue;
		sql_scanner_init(&scanner, *at, (size_t)(end - *at), false);
		if (!read_named(&scanner, name))
			continue;
		entry = prepare_find_name(run, (const char *)name->data, name->length);
		if (!entry)
			continue;
		(*at)++;
		return entry;
	}
	return NULL;
}

/* Insert what makes the client's name one of the server. */
static void hand_over(struct relay_run *run, struct client_statement *entry)
{
	if (!statement_is_sql(entry->statement))
		return;
	entry->pending++;
	client_statements_unlist(run->client->statements, entry);
	if (carrier_insert_as(run, entry))
		run->server->suspected |= TOPIC_STATEMENTS;
	else
		client_statements_settle(run->client->statements, entry);
}

/* Returns how many names there are to hand over. Sets *undecided if requests in flight decide. */
static unsigned count_named(const struct relay_run *run, const char *end, bool *undecided)
{
	const char *at = text_of(run);
	const struct client_statement *entry;
	struct buffer name = {0};
	unsigned count = 0;

	*undecided = false;
	while (count < HANDED_OVER_MAX && (entry = next_named(run, &at, end, &name)) != NULL) {
		*undecided |= !entry->confirmed;
		count++;
	}
	buffer_free(&name);
	return count;
}

static void hand_over_named(struct relay_run *run, const char *end, unsigned count)
{
	const uint32_t before = run->server->requests.count;
	const char *at = text_of(run);
	struct client_statement *entry;
	struct buffer name = {0};

	while (count-- > 0 && (entry = next_named(run, &at, end, &name)) != NULL) {
		if (prepare_open_table(run))
			hand_over(run, entry);
	}
	buffer_free(&name);
	if (run->server->requests.count != before)
		carrier_insert_sync(run);
}

bool sql_statements_hand_over(struct relay_run *run)
{
	const size_t length = length_of(run);
	const char *end =
		text_of(run) + (length < HAND_OVER_READ_MAX ? length : HAND_OVER_READ_MAX);
	bool undecided;
	unsigned count;

	if (!is_between_batches(run))
		return true;
	count = count_named(run, end, &undecided);
	if (count == 0)
		return true;
	if (undecided || !requests_reserve(&run->server->requests, count * REQUESTS_EACH_SQL))
		return false;
	hand_over_named(run, end, count);
	return true;
}

/* --- in the extended protocol ------------------------------------------------------------- */

/* Returns the name that the statement's text uses or makes, if the client has it. */
static struct client_statement *find_named(const struct relay_run *run,
	const struct statement *statement, struct session_command *command)
{
	const char *text = statement_text(statement);
	const enum session_verb verb =
		session_command_read(text, strlen(text), client_lexis(run->client), command);

	return verb == SESSION_EXECUTE || verb == SESSION_PREPARE
		? prepare_find_name(run, (const char *)command->name.data, command->name.length)
		: NULL;
}

static enum verdict carry(struct relay_run *run, const struct statement *statement,
	const struct session_command *command, struct statement *named)
{
	if (!prepare_has_room_for_sql(run))
		return prepare_hold_back(run);
	if (!prepare_if_absent(run, named))
		return prepare_out_of_memory(run);
	suspect_execute(run, named, statement_text(statement) + command->rest,
		strlen(statement_text(statement)) - command->rest);
	carrier_insert_renamed(
		run, statement, command->name_begin, command->name_end, named->name);
	return RELAY_PASS;
}

bool sql_statements_carry(
	struct relay_run *run, const struct statement *statement, enum verdict *verdict)
{
	struct client_statement *entry;
	struct session_command command;

	session_command_init(&command);
	entry = find_named(run, statement, &command);
	if (entry)
		*verdict = carry(run, statement, &command, entry->statement);
	else
		suspect_prepare(
			run, statement_text(statement), strlen(statement_text(statement)));
	session_command_free(&command);
	return entry != NULL;
}

/* --- any Query ---------------------------------------------------------------------------- */

/*
 * Is there enough of a text, which is not whole, to know its first word? Of longer white space and
 * comments before it than the beginning of any message that is held, no.
 */
static bool has_beginning(const struct relay_run *run, struct sql_scanner *scanner)
{
	sql_scanner_skip_white(scanner);
	return scanner->end - scanner->at > (ptrdiff_t)sizeof("PREPARE") ||
		run->end - run->at >= run->hold_max ||
		memchr(text_of(run), '\0', length_of(run));
}

/*
 * Read the text, which is not whole. Returns false if it has to wait for more: a PREPARE must be
 * whole, of an EXECUTE there must be enough to find the name.
 */
static bool read_beginning(const struct relay_run *run, struct session_command *command)
{
	struct session_lexis lexis = client_lexis(run->client);
	struct sql_scanner scanner;

	sql_scanner_init(&scanner, text_of(run), length_of(run), lexis.escapes);
	if (!has_beginning(run, &scanner))
		return false;
	if (sql_scanner_match(&scanner, "prepare"))
		return prepare_is_crowded(run) || !prepare_is_affordable(run, run->frame.total);
	if (!run->client->statements ||
		!(sql_scanner_match(&scanner, "execute") ||
			sql_scanner_match(&scanner, "explain") ||
			sql_scanner_match(&scanner, "create")))
		return true;
	lexis.partial = true;
	return session_command_read(text_of(run), length_of(run), lexis, command) ==
		SESSION_EXECUTE ||
		run->end - run->at > RELAY_WHOLE_MAX;
}

/* Returns false if the text has to wait for more of it. */
static bool read_text(const struct relay_run *run, struct session_command *command)
{
	if (!run->whole)
		return read_beginning(run, command);
	session_command_read(text_of(run), length_of(run), client_lexis(run->client), command);
	return true;
}

static bool judge_command(
	struct relay_run *run, const struct session_command *command, enum verdict *verdict)
{
	if ((command->verb != SESSION_PREPARE && command->verb != SESSION_EXECUTE) ||
		!is_between_batches(run)) {
		suspect_prepare(run, text_of(run), length_of(run));
		return false;
	}
	if (!prepare_has_room_for_sql(run)) {
		*verdict = prepare_hold_back(run);
		return true;
	}
	if (!prepare_open_table(run)) {
		*verdict = prepare_out_of_memory(run);
		return true;
	}
	return command->verb == SESSION_PREPARE ? judge_prepare(run, command, verdict)
						: judge_execute(run, command, verdict);
}

bool sql_statements_judge(struct relay_run *run, enum verdict *verdict)
{
	struct session_command command;
	bool judged = true;

	if (!prepare_tracks(run))
		return false;
	session_command_init(&command);
	if (read_text(run, &command))
		judged = judge_command(run, &command, verdict);
	else
		*verdict = RELAY_MORE;
	session_command_free(&command);
	return judged;
}
