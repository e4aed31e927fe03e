/* SPDX-License-Identifier: ISC */
#include "session/parameters/parameter_sync.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "session/link/close.h"
#include "session/relay/own_query.h"
#include "session/relay/pair.h"
#include "session/relay/relay.h"
#include "session/relay/relay_rules.h"
#include "session/statements/not_executed.h"
#include "wire/message.h"
#include "wire/parameter_difference.h"
#include "wire/parameter_values.h"
#include "wire/row.h"
#include "wire/sql.h"
#include "wire/writer.h"

/* --- parameters of both after the SETs ---------------------------------------------------- */

void parameter_sync_log_spelling(const struct client_link *client, const struct parameters *set)
{
	const struct parameter_table *table = link_registry(&client->link)->parameters;

	if (!set || !log_enabled(LEVEL_DEBUG))
		return;
	for (unsigned i = 0; i < parameter_count(table); i++) {
		const char *before = parameters_get(client->link.parameters, i);
		const char *after = parameters_get(set, i);

		if (before && after && strcmp(before, after) != 0)
			link_log(&client->link, LEVEL_DEBUG,
				"varcache_set_canonical: setting %s to its canonical version %s -> %s",
				parameter_name(table, i), before, after);
	}
}

/* Note the client's followed parameters for the server. Returns false when out of memory. */
static bool take_followed(struct server_link *server, const struct client_link *client)
{
	struct parameter_table *table = link_registry(&server->link)->parameters;

	server->follows = parameters_has_followed(client->link.parameters);
	if (!server->follows && !parameters_has_followed(server->link.parameters))
		return true;
	return link_take_parameters(&server->link,
		parameters_follow(table, server->link.parameters, client->link.parameters));
}

/* What our SETs set on the server. */
static const struct parameters *wanted_of(
	const struct client_link *client, const struct server_link *server)
{
	return server->sync_target ? server->sync_target : client->link.parameters;
}

static void drop_target(struct server_link *server)
{
	parameters_unref(server->sync_target);
	server->sync_target = NULL;
}

bool parameter_sync_adopt(struct client_link *client, struct server_link *server)
{
	struct parameter_table *table = link_registry(&client->link)->parameters;
	struct parameters *set =
		parameters_adopt(table, wanted_of(client, server), server->link.parameters);

	drop_target(server);
	client->refused = false;
	parameter_sync_log_spelling(client, set);
	return link_take_parameters(&client->link, set) && take_followed(server, client);
}

/* --- SETs that may fail ------------------------------------------------------------------- */

/*
 * Does the set follow a parameter that cannot always be set to a valid value (for lack of
 * rights, or because of earlier commands in the session), or that may end our SETs?
 */
static bool has_risky_followed(const struct parameters *set)
{
	static const char *const names[] = {"role", "session_authorization", "temp_buffers",
		"statement_timeout", "lock_timeout", "transaction_timeout"};
	struct parameter_values values;
	bool found = false;

	if (!parameters_has_followed(set))
		return false;
	parameter_values_read(set, &values);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !found; i++)
		parameter_values_place(&values, names[i], &found);
	return found;
}

/* Does one of them act as another user than a new session of this server does? */
static bool has_other_user(const struct parameters *target, const struct server_link *server)
{
	const struct parameter_table *table = parameters_table(target);
	const unsigned index = (unsigned)parameter_index(table, "session_authorization");
	const struct parameters *welcome = server->link.pool->welcome;
	const char *wanted = parameters_get(target, index);
	const char *present = parameters_get(server->link.parameters, index);
	const char *usual = welcome ? parameters_get(welcome, index) : present;

	return usual &&
		((wanted && strcmp(wanted, usual) != 0) ||
			(present && strcmp(present, usual) != 0));
}

/*
 * Do the SETs begin with RESETs? connect_query is executed after these, and any SQL may be in
 * it.
 */
static bool runs_connect_query(const struct server_link *server, const struct buffer *sql)
{
	static const char reset[] = "RESET ";

	return own_query_connect_query(server) && sql->length >= sizeof(reset) - 1 &&
		memcmp(sql->data, reset, sizeof(reset) - 1) == 0;
}

/*
 * May the SETs fail although the values are valid? Text that is not ASCII is decoded before
 * BEGIN is executed.
 */
static bool may_fail(const struct client_link *client, const struct server_link *server,
	const struct buffer *sql)
{
	const struct parameters *target = wanted_of(client, server);

	return client->refused || server->sync_target || server->altered ||
		!text_is_ascii(sql->data, sql->length) || runs_connect_query(server, sql) ||
		has_other_user(target, server) || has_risky_followed(target) ||
		has_risky_followed(server->link.parameters);
}

/* --- writing the SETs --------------------------------------------------------------------- */

static void write_transaction(const struct buffer *sql, struct buffer *message)
{
	static const char begin[] = "BEGIN;", commit[] = "COMMIT";
	struct buffer whole = {0};

	buffer_append(&whole, begin, sizeof(begin) - 1);
	buffer_append(&whole, sql->data, sql->length);
	buffer_append(&whole, commit, sizeof(commit) - 1);
	writer_query_text(message, whole.data, whole.length);
	message->failed = message->failed || whole.failed;
	buffer_free(&whole);
}

/*
 * The server decodes a query with the client_encoding that is in force when the query begins.
 * So if the SETs are not ASCII, client_encoding is set by a Query of its own before.
 */
static void write_encoding(const struct client_link *client, struct server_link *server,
	const struct buffer *sql, struct buffer *message)
{
	const struct parameter_table *table = link_registry(&client->link)->parameters;
	const unsigned index = (unsigned)parameter_index(table, "client_encoding");
	const char *wanted = parameters_get(wanted_of(client, server), index);
	const char *present = parameters_get(server->link.parameters, index);
	struct buffer first = {0};

	if (!wanted || !present || strcasecmp(wanted, present) == 0 ||
		text_is_ascii(sql->data, sql->length))
		return;
	buffer_printf(&first, "SET client_encoding=");
	sql_append_literal(&first, wanted);
	writer_query_text(message, first.data, first.length);
	message->failed = message->failed || first.failed;
	buffer_free(&first);
	server->sync_queries++;
}

/*
 * Lift the time limits that the server has for another client, by a Query of its own: it is too
 * short to reach any of them, while the SETs may be long.
 */
static void lift_time_limits(struct server_link *server, struct buffer *message)
{
	struct parameter_values values;
	struct buffer sql = {0};

	if (!parameters_has_followed(server->link.parameters))
		return;
	parameter_values_read(server->link.parameters, &values);
	for (unsigned i = 0; i < values.count; i++) {
		if (parameter_is_time_limit(values.followed[i].name))
			buffer_printf(&sql, "SET %s=0;", values.followed[i].name);
	}
	if (sql.length > 0) {
		writer_query_text(message, sql.data, sql.length);
		server->sync_queries++;
	}
	message->failed = message->failed || sql.failed;
	buffer_free(&sql);
}

/*
 * The server's clients have run SETs of unknown parameters: ask for the time limits, so that
 * later SETs of ours can be sent with the messages of clients again. See
 * parameter_sync_take_limit().
 */
static void ask_for_limits(struct server_link *server, struct buffer *message)
{
	static const char sql[] = "SHOW statement_timeout;SHOW lock_timeout";

	writer_query_text(message, sql, sizeof(sql) - 1);
	server->sync_queries++;
	server->limits_asked = 2;
	server->altered = false;
}

void parameter_sync_take_limit(struct server_link *server, const uint8_t *row, size_t length)
{
	struct row_value value;

	if (server->limits_asked == 0)
		return;
	server->limits_asked--;
	if (row_read(row, length, &value, 1) != 1 || value.length != 1 || *value.data != '0')
		server->altered = true;
}

/* Our SETs begin with the RESETs, and a name has no semicolon. */
static uint16_t count_resets(const struct server_link *server, const struct buffer *sql)
{
	static const char reset[] = "RESET ";
	const uint8_t *at = sql->data, *end = sql->data + sql->length;
	uint16_t count = runs_connect_query(server, sql);

	while (at && (size_t)(end - at) > sizeof(reset) &&
		memcmp(at, reset, sizeof(reset) - 1) == 0) {
		count++;
		at = memchr(at, ';', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	return count;
}

/* Write the SETs to server->kept, where the client's messages are kept after they were sent. */
static enum sync_need write_sets(
	const struct client_link *client, struct server_link *server, const struct buffer *sql)
{
	struct buffer *message = &server->kept;

	link_log(&server->link, LEVEL_DEBUG, "varcache_apply: %.*s", (int)sql->length,
		(const char *)sql->data);
	buffer_clear(message);
	server->kept_requests = 0;
	server->sync_queries = 1;
	server->sync_reused = server->touched;
	server->sync_canceled = false;
	server->sync_resets = count_resets(server, sql);
	server->limits_asked = 0;
	server->sync_alone = may_fail(client, server, sql);
	if (server->sync_alone) {
		lift_time_limits(server, message);
		if (server->altered)
			ask_for_limits(server, message);
		write_encoding(client, server, sql, message);
		writer_query_text(message, sql->data, sql->length);
	} else {
		write_transaction(sql, message);
	}
	if (!message->failed)
		return SYNC_NEEDED;
	buffer_free(message);
	return SYNC_NO_MEMORY;
}

static enum sync_need prepare(struct client_link *client, struct server_link *server)
{
	const struct session_start start = {
		own_query_connect_query(server), server->link.pool->welcome};
	enum sync_need need = SYNC_NOT_NEEDED;
	struct buffer sql;
	int count;

	buffer_init(&sql);
	count = parameters_difference(
		wanted_of(client, server), server->link.parameters, &start, &sql);
	if (count > 0)
		need = write_sets(client, server, &sql);
	else if (count < 0 && !sql.failed)
		need = SYNC_IMPOSSIBLE;
	else if (count < 0 || !parameter_sync_adopt(client, server))
		need = SYNC_NO_MEMORY;
	buffer_free(&sql);
	return need;
}

enum sync_need parameter_sync_prepare(struct client_link *client, struct server_link *server)
{
	drop_target(server);
	server->sync_refused = false;
	return prepare(client, server);
}

/* --- before the client's first message ---------------------------------------------------- */

/* Are the client's messages too long to be kept? */
static bool is_too_long_to_keep(const struct relay_run *run)
{
	return run->end - run->start > RELAY_KEPT_MAX;
}

/*
 * Add our Queries to the requests in flight, of which there are none, so the ring has room.
 * Returns false when out of memory.
 */
static bool add_requests(struct server_link *server)
{
	while (server->sync_queries > 0) {
		if (!requests_add(&server->requests, PQ_QUERY, REQUEST_SWALLOW))
			return false;
		server->sync_queries--;
	}
	return true;
}

/* The judge of all messages of a client before our SETs were sent to its server. */
static enum verdict judge_before_sync(struct relay_run *run)
{
	struct server_link *server = run->server;
	const bool alone = server->sync_alone || is_too_long_to_keep(run) ||
		!not_executed_is_certain(
			run->client, run->start, (size_t)(run->end - run->start));

	if (!add_requests(server))
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	relay_insert_lent(run, server->kept.data, server->kept.length);
	server->sync_followed = parameters_has_followed(run->from->parameters) ||
		parameters_has_followed(server->link.parameters);
	server->transaction_status = 0;
	server->unnamed = 0;
	server_set_task(server, alone ? SERVER_TASK_SYNC_ALONE : SERVER_TASK_SYNC_GATHERED);
	client_set_step(run->client, CLIENT_STEP_NONE);
	if (alone)
		return RELAY_HOLD;
	run->hold = true; /* the messages of this run pass */
	run->in_flight = server->requests.count;
	return RELAY_AGAIN;
}

/* --- the end of the SETs ------------------------------------------------------------------ */

void parameter_sync_done(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);

	server_set_task(server, SERVER_TASK_NONE);
	if (!parameter_sync_adopt(client, server)) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	if (server->dirty) {
		/*
		 * It sent something unrequested after our SETs: the client's messages can go to
		 * another.
		 */
		pair_unpair(&server->link);
		server_close_for(server, REASON_IDLE_SERVER_GOT_DIRTY);
	}
	relay_client_resume(client);
}

void parameter_sync_take_back(struct server_link *server)
{
	struct link *client = server->link.peer;
	struct buffer *kept = &server->kept;

	if (!server_has_gathered(server) || !client)
		return;
	/* The first message of the client has not arrived completely. */
	if (kept->length == 0 && server->requests.count == 1) {
		server_set_task(server, SERVER_TASK_SYNC_ALONE);
		return;
	}
	if (kept->length == 0 || !buffer_append(kept, client->held, client->held_length))
		return;
	link_drop_held(client);
	if (!link_hold(client, kept->data, kept->length))
		return;
	client->remaining = 0;
	client->discarding = false;
	server_set_task(server, SERVER_TASK_SYNC_ALONE);
}

/* --- the server refuses a SET ------------------------------------------------------------- */

bool parameter_sync_doubt(struct client_link *client, struct server_link *server)
{
	struct parameter_table *table = link_registry(&server->link)->parameters;

	server->follows = false;
	return link_take_parameters(&server->link,
		parameters_doubt_both(
			table, server->link.parameters, wanted_of(client, server)));
}

/* Send the SETs that were prepared. The client is not read meanwhile. */
static bool send_alone(struct server_link *server)
{
	struct buffer message = server->kept;

	server->kept = (struct buffer){0};
	if (!add_requests(server)) {
		buffer_free(&message);
		return false;
	}
	server->transaction_status = 0;
	server->sync_followed = true;
	server_set_task(server, SERVER_TASK_SYNC_ALONE);
	return link_send(&server->link, &message);
}

bool parameter_sync_again(
	struct client_link *client, struct server_link *server, struct parameters *target)
{
	enum sync_need need;

	drop_target(server);
	server->sync_refused = false;
	server->sync_target = target;
	need = prepare(client, server);
	if (need == SYNC_NOT_NEEDED)
		parameter_sync_done(server);
	return need == SYNC_NOT_NEEDED || (need == SYNC_NEEDED && send_alone(server));
}

/* --- the table ---------------------------------------------------------------------------- */

const struct relay_rule relay_differing_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_before_sync),
};
