/* SPDX-License-Identifier: ISC */
/*
 * Parts of the judges of statements/statements: pass a request on, read the name in a message,
 * and prepare a statement on the server before the message that needs it.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_PREPARE_H
#define PGUSHER_SESSION_STATEMENTS_PREPARE_H

#include <string.h>

#include "model/held.h"
#include "session/relay/query_clocks.h"
#include "session/relay/relay.h"
#include "wire/message.h"

enum {
	/*
	 * Maximum number of requests for one message: Close, Parse, the message itself, and one
	 * eviction.
	 */
	REQUESTS_EACH = 4,
	/* For a message that uses a statement prepared by SQL: see prepare_absent(). */
	REQUESTS_EACH_SQL = 12,
	/*
	 * Maximum number of bytes held for the name in a message; if it has no end until then
	 * the message is malformed.
	 */
	NAME_GATHERED_MAX = 4 * 1024 * 1024,
};

static inline struct statement_table *prepare_table(const struct relay_run *run)
{
	return &link_registry(run->from)->statements;
}

static inline const struct settings *prepare_settings(const struct relay_run *run)
{
	return link_registry(run->from)->process->settings;
}

/* The ring of requests is full: hold the message until the server has answered some. */
static inline enum verdict prepare_hold_back(struct relay_run *run)
{
	run->client->ring_full = true;
	return RELAY_HOLD;
}

static inline enum verdict prepare_out_of_memory(struct relay_run *run)
{
	return relay_fail(run, failure_of(REASON_NO_MEMORY));
}

/*
 * Returns whether the server skips the message after an error: it needs no place in the ring.
 */
static inline bool prepare_is_skipped(const struct relay_run *run)
{
	return run->server->request_error == REQUEST_ERROR_UNTIL_SYNC;
}

/*
 * Returns whether the message is part of a replay and was answered by pgusher before. To be
 * called once for each message: see statements/replay.
 */
static inline bool prepare_was_answered(struct relay_run *run)
{
	if (run->answered == 0)
		return false;
	run->answered--;
	return true;
}

static inline bool prepare_has_room(const struct relay_run *run)
{
	return requests_reserve(&run->server->requests, REQUESTS_EACH);
}

/* As prepare_has_room(), for a message that may use a statement prepared by SQL. */
static inline bool prepare_has_room_for_sql(const struct relay_run *run)
{
	return requests_reserve(&run->server->requests, REQUESTS_EACH_SQL);
}

static inline void prepare_add_request(struct relay_run *run, uint8_t type, unsigned action)
{
	requests_add(&run->server->requests, type, action);
	run->server->transaction_status = 0;
}

/* Pass the message, as it is or with another beginning. The ring must have room. */
static inline enum verdict prepare_pass_request(struct relay_run *run, unsigned action)
{
	prepare_add_request(run, run->frame.type, action);
	query_clocks_start(run->client);
	return RELAY_PASS;
}

/*
 * Returns whether memory is too short to hold a long message: many clients may send one at the
 * same time.
 */
static inline bool prepare_is_crowded(const struct relay_run *run)
{
	return run->end - run->at > RELAY_WHOLE_MAX &&
		held_is_crowded(link_registry(run->from));
}

/*
 * The end of a name has not arrived: returns the verdict that waits for it, or fails if the
 * message has none. `broken` is the reason of that failure.
 */
static inline enum verdict prepare_no_name(struct relay_run *run, enum reason broken)
{
	if (prepare_is_crowded(run))
		return prepare_out_of_memory(run);
	return run->whole || run->end - run->at >= NAME_GATHERED_MAX
		? relay_fail(run, failure_of(broken))
		: RELAY_MORE;
}

/*
 * Returns whether prepared statements are tracked. Else their names reach the server unchanged.
 */
static inline bool prepare_tracks(const struct relay_run *run)
{
	return prepare_settings(run)->max_prepared_statements > 0;
}

static inline struct client_statement *prepare_find_name(
	const struct relay_run *run, const char *name, size_t size)
{
	struct client_statements *statements = run->client->statements;

	return statements ? client_statements_find(statements, name, size) : NULL;
}

static inline void prepare_put_header(uint8_t *out, uint8_t type, size_t length)
{
	out[0] = type;
	out[1] = (uint8_t)(length >> 24);
	out[2] = (uint8_t)(length >> 16);
	out[3] = (uint8_t)(length >> 8);
	out[4] = (uint8_t)length;
}

/*
 * Returns whether the operations in flight for the statement are certain to be done before the
 * next message. They are not if an error may skip them but not that message, because a Sync is
 * between them.
 */
static inline bool prepare_is_certain(
	const struct relay_run *run, const struct server_statement *entry)
{
	return entry->changes == 0 || entry->batch == run->server->batch;
}

/*
 * Returns whether the server will have the statement for the next message, with a plan that is
 * not outdated.
 */
static inline bool prepare_is_there(
	const struct relay_run *run, const struct server_statement *entry)
{
	return entry && entry->expected && !run->server->forgetting &&
		prepare_is_certain(run, entry) &&
		entry->generation == entry->statement->generation;
}

/* Does max_prepared_memory allow so many more bytes of statements to the client? */
bool prepare_is_affordable(const struct relay_run *run, size_t bytes);

/* Add the client's name for the statement. Returns NULL when out of memory. */
struct client_statement *prepare_name_statement(
	struct relay_run *run, const char *name, struct statement *statement);

/* From this message on the client has no unnamed statement. */
void prepare_drop_unnamed(struct relay_run *run);

/* Replace the client's unnamed statement; takes over the reference. NULL: it has none. */
static inline void prepare_set_unnamed(struct client_link *client, struct statement *statement)
{
	statement_unref(client->unnamed);
	client->unnamed = statement;
}

/*
 * Add a request in flight with an operation on prepared statements. The message is sent by the
 * caller. There must be room for both: prepare_has_room(), prepare_open_table().
 */
void prepare_note(struct relay_run *run, uint8_t type, enum request_action action,
	const struct statement_operation *operation);

/*
 * Make the server's set of statements if there is none, with room for the operations of one
 * message. Returns false when out of memory.
 */
bool prepare_open_table(struct relay_run *run);

/*
 * Let a request fail in its order: the server is sent a Describe of a statement that does not
 * exist, and its error is replaced by ours according to `action`. Returns the verdict.
 */
enum verdict prepare_refuse(struct relay_run *run, enum request_action action);

/* May the server, which stays with the client, have a statement of this name of the client? */
bool prepare_may_be_there(const struct server_link *server, const char *name);

/*
 * Read the name of the statement in a Describe or Close; valid as long as the message is. Returns
 * false, with the verdict, if it is incomplete, or malformed: then the client is closed for `broken`.
 */
bool prepare_read_subject(
	struct relay_run *run, enum reason broken, const char **out, enum verdict *verdict);

/* As prepare_text_at(), for any text but the empty one. */
const char *prepare_long_text_at(const struct relay_run *run, size_t offset, size_t *size);

/*
 * Returns the text at this offset of the body, and its size with the NUL; NULL if its end has
 * not arrived.
 */
static inline const char *prepare_text_at(
	const struct relay_run *run, size_t offset, size_t *size)
{
	const uint8_t *text = run->at + FRAME_HEADER_SIZE + offset;

	if (text >= run->end || *text != '\0' || FRAME_HEADER_SIZE + offset >= run->frame.total)
		return prepare_long_text_at(run, offset, size);
	*size = 1;
	return (const char *)text;
}

/*
 * Replace the beginning of the Bind, up to the end of the statement's name, by copies of several
 * pieces: the portal's name, which is lent, and `size` bytes of another name of a statement.
 */
void prepare_replace_name(struct relay_run *run, const char *portal, size_t portal_size,
	const char *name, size_t name_size, size_t size);

/* Insert a Parse of the statement under this name. */
void prepare_insert_parse(struct relay_run *run, const struct statement *statement,
	const char *name, size_t name_size);

/* Insert a Describe or Close of a statement, under our name. */
void prepare_insert_about(
	struct relay_run *run, uint8_t type, const struct statement *statement);

/*
 * The Query that is sent to the server in place of a client's DEALLOCATE of a tracked name: it
 * does nothing, is allowed wherever DEALLOCATE is, and returns no rows either. Its answer is
 * replaced: see rules/server_rules.c.
 */
#define PREPARE_STAND_IN "UNLISTEN pgusher"

/*
 * Returns whether this query is one DEALLOCATE of a name that the client has. The name is
 * appended to `name` then, with its NUL.
 */
bool prepare_deallocates(
	const struct relay_run *run, const char *text, size_t length, struct buffer *name);

/* Returns whether this query deallocates all statements of the server. */
bool prepare_forgets_all(const struct relay_run *run, const char *text, size_t length);

/*
 * Close the least recently used statements while the server has more than the settings allow.
 * To be called after the Parse of `newest`, which is not closed.
 */
void prepare_evict(struct relay_run *run, const struct server_statement *newest);

/*
 * Returns the server's entry of a statement that is about to be prepared; it is expected from
 * now on. A Close is inserted before if the server may have the statement. Returns NULL when
 * out of memory.
 */
struct server_statement *prepare_make_room(struct relay_run *run, struct statement *statement);

/* As prepare_if_absent(), for a statement that the server did not use last. */
bool prepare_absent(struct relay_run *run, struct statement *statement);

/*
 * Prepare the statement on the server before the current message, if it is not there. Returns
 * false when out of memory.
 */
static inline bool prepare_if_absent(struct relay_run *run, struct statement *statement)
{
	const struct server_statements *statements = run->server->statements;
	const struct server_statement *recent =
		statements ? TAILQ_FIRST(&statements->recency) : NULL;

	if (!recent || recent->statement != statement || !prepare_is_there(run, recent))
		return prepare_absent(run, statement);
	run->client->link.pool->database->prepared.hits++;
	return true;
}

/*
 * As prepare_if_absent(), before a Query: if the statement cannot be prepared the server runs the
 * Query nevertheless, which fails, too (see server_statements_spoil_next()).
 */
bool prepare_before_query(struct relay_run *run, struct statement *statement);

#endif
