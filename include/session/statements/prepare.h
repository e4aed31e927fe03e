/* SPDX-License-Identifier: ISC */
/*
 * What the judges of session/statements/statements are made of: passing a request on, reading
 * the name in a message, and having a statement on the server before the message that needs it.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_PREPARE_H
#define PGUSHER_SESSION_STATEMENTS_PREPARE_H

#include <string.h>

#include "model/held.h"
#include "session/relay/query_clocks.h"
#include "session/relay/relay.h"
#include "wire/message.h"

enum {
	/* Requests of one message: Close, Parse, the message itself, and one eviction. */
	REQUESTS_EACH = 4,
	/* So much of a message is gathered for the name in it: one without an end is broken. */
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

/* Until the server has answered some. */
static inline enum verdict prepare_hold_back(struct relay_run *run)
{
	run->client->ring_full = true;
	return RELAY_HOLD;
}

static inline enum verdict prepare_out_of_memory(struct relay_run *run)
{
	return relay_fail(run, failure_of(REASON_NO_MEMORY));
}

/* What a server skips after an error needs no place in the ring. */
static inline bool prepare_is_skipped(const struct relay_run *run)
{
	return run->server->request_error == REQUEST_ERROR_UNTIL_SYNC;
}

/* Is the message said again after we had answered it? See session/statements/replay. */
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

static inline void prepare_add_request(struct relay_run *run, uint8_t type, unsigned action)
{
	requests_add(&run->server->requests, type, action);
	run->server->transaction_status = 0;
}

/* The message as it is, or with another front. There is room in the ring. */
static inline enum verdict prepare_pass_request(struct relay_run *run, unsigned action)
{
	prepare_add_request(run, run->frame.type, action);
	query_clocks_start(run->client);
	return RELAY_PASS;
}

/* Is there no memory to wait for the rest of a long message? Many may be at it at once. */
static inline bool prepare_is_crowded(const struct relay_run *run)
{
	return run->end - run->at > RELAY_WHOLE_MAX &&
		held_is_crowded(link_registry(run->from));
}

/* A name whose end is not there: wait for it, or the message has none. */
static inline enum verdict prepare_no_name(struct relay_run *run, enum reason broken)
{
	if (prepare_is_crowded(run))
		return prepare_out_of_memory(run);
	return run->whole || run->end - run->at >= NAME_GATHERED_MAX
		? relay_fail(run, failure_of(broken))
		: RELAY_MORE;
}

/* Are names tracked? Else they reach the server as they are. */
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
 * Will what is in flight about it have been done when the next message is? Not if an error may
 * keep the server from it and not from that message, which is so behind the next Sync.
 */
static inline bool prepare_is_certain(
	const struct relay_run *run, const struct server_statement *entry)
{
	return entry->changes == 0 || entry->batch == run->server->batch;
}

/* Does the server have it, with a plan that is not out of date? */
static inline bool prepare_is_there(
	const struct relay_run *run, const struct server_statement *entry)
{
	return entry && entry->expected && !run->server->forgetting &&
		prepare_is_certain(run, entry) &&
		entry->generation == entry->statement->generation;
}

/* From now on it is this one; its count is taken over. */
static inline void prepare_set_unnamed(struct client_link *client, struct statement *statement)
{
	statement_unref(client->unnamed);
	client->unnamed = statement;
}

/* An operation with its request, which is our own or has been sent. */
void prepare_note(struct relay_run *run, uint8_t type, enum request_action action,
	const struct statement_operation *operation);

/* The server's book of statements, with room for what one message needs. */
bool prepare_open_table(struct relay_run *run);

/*
 * A request that has to fail in its place: the server is asked about a statement that it cannot
 * have, and the client gets our words for the server's.
 */
enum verdict prepare_refuse(struct relay_run *run, enum request_action action);

/* As prepare_text_at(), where it is not empty. */
const char *prepare_long_text_at(const struct relay_run *run, size_t offset, size_t *size);

/* The text at this place of the body, as far as the message has come; NULL: its end has not. */
static inline const char *prepare_text_at(
	const struct relay_run *run, size_t offset, size_t *size)
{
	const uint8_t *text = run->at + FRAME_HEADER_SIZE + offset;

	if (text >= run->end || *text != '\0' || FRAME_HEADER_SIZE + offset >= run->frame.total)
		return prepare_long_text_at(run, offset, size);
	*size = 1;
	return (const char *)text;
}

/* Parse of the statement under this name. */
void prepare_insert_parse(struct relay_run *run, const struct statement *statement,
	const char *name, size_t name_size);

/* Describe or Close of a statement, by our name. */
void prepare_insert_about(
	struct relay_run *run, uint8_t type, const struct statement *statement);

/*
 * What the server is asked for a DEALLOCATE of a name that only we know: it does nothing, is
 * allowed where that is, and has no rows either. Its answer is replaced, see server_rules.c.
 */
#define PREPARE_STAND_IN "UNLISTEN pgusher"

/*
 * Is this query one DEALLOCATE of a name that the client has? Then it is appended to `name`,
 * with its NUL.
 */
bool prepare_deallocates(
	const struct relay_run *run, const char *text, size_t length, struct buffer *name);

/* Will nothing be left on the server when this query has been done? */
bool prepare_forgets_all(const struct relay_run *run, const char *text, size_t length);

/* Close those used least recently, behind the Parse that makes them too many. */
void prepare_evict(struct relay_run *run, const struct server_statement *newest);

/*
 * The entry of a statement that will be there when `prepare` has been done: closed before if
 * need be, and expected from now on. NULL: no memory.
 */
struct server_statement *prepare_make_room(struct relay_run *run, struct statement *statement);

/* As prepare_if_absent(), where it is not what the server used last. */
bool prepare_absent(struct relay_run *run, struct statement *statement);

/* Have it on the server for the message at hand. False: no memory. */
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

#endif
