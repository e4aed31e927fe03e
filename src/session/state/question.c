/* SPDX-License-Identifier: ISC */
#include "session/state/question.h"

#include <string.h>

#include "model/registry.h"
#include "model/state/custom_names.h"
#include "session/link/close.h"
#include "session/notify/handoff.h"
#include "session/relay/pair.h"
#include "session/state/pins.h"
#include "session/state/question_query.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/sql.h"
#include "wire/writer.h"

/* How often a question may be ended by time limits and asked again. */
enum { QUESTIONS_MAX = 20 };

/* --- sending it --------------------------------------------------------------------------- */

/* Returns false if the server was closed, because nothing could be sent to it. */
static bool ask(struct server_link *server, const struct client_link *client)
{
	struct buffer message = {0};
	const bool good = question_query_write(server, client, &message);

	buffer_clear(&server->kept);
	server->times_out = server->too_large = false;
	server->transaction_status = 0;
	server->unnamed = 0;
	if (!good || !link_send(&server->link, &message)) {
		buffer_free(&message);
		server_close_for(
			server, good ? REASON_SERVER_CONNECTION_CLOSED : REASON_NO_MEMORY);
		return false;
	}
	server_set_task(server, SERVER_TASK_QUESTION);
	return true;
}

void question_begin(struct server_link *server, struct client_link *client)
{
	if (server->suspected & TOPIC_UNREAD)
		server->suspected |= TOPIC_SETTINGS;
	/* When nothing else pins it any more, its channels are handed over. */
	server->suspected |= server->pins & TOPIC_CHANNELS;
	server_enter(server, SERVER_ASKING);
	server->link.request_time = loop_now(server->link.stream.loop);
	server->asked_for = client;
	server->timed_out = 0;
	client->asking = server;
	client_set_step(client, CLIENT_STEP_ASKED);
	if (!ask(server, client))
		return;
	if (server->suspected & TOPIC_SETTINGS) {
		server->changes_known = false;
		buffer_free(&server->changes);
	}
}

/* --- settings ----------------------------------------------------------------------------- */

/* The rows of the answer: a letter, a name, a value, each with a NUL. */
struct row {
	char letter;
	const char *name, *value;
};

static bool next_row(const struct buffer *answer, size_t *at, struct row *row)
{
	if (*at >= answer->length)
		return false;
	row->letter = (char)answer->data[*at];
	row->name = (const char *)answer->data + *at + 2;
	row->value = row->name + strlen(row->name) + 1;
	*at = (size_t)((const uint8_t *)row->value - answer->data) + strlen(row->value) + 1;
	return true;
}

/* The limits that were lifted have no limit among the settings: these are their values. */
static void read_limits(const struct server_link *server, struct parameter_values *values)
{
	struct row row;
	size_t at = 0;

	while (next_row(&server->kept, &at, &row)) {
		bool present;
		unsigned place;

		if (row.letter != 'V')
			continue;
		place = parameter_values_place(values, row.name, &present);
		if (present)
			values->followed[place].value = row.value;
	}
}

/* Replace the followed values by those of the answer: all that servers do not report. */
static bool read_settings(const struct server_link *server, struct parameter_values *values)
{
	const struct parameter_table *table = link_registry(&server->link)->parameters;
	struct row row;
	size_t at = 0;

	values->count = 0;
	while (next_row(&server->kept, &at, &row)) {
		const int index = row.letter == 'S' ? parameter_index(table, row.name) : -1;

		/* PostgreSQL 18 lists parameters of a transaction as those of the session. */
		if (row.letter != 'S' || (index >= 0 && values->tracked[index]) ||
			!parameter_may_follow(row.name))
			continue;
		if (!parameter_values_follow(values, row.name, row.value))
			return false;
	}
	read_limits(server, values);
	return true;
}

/* What the client asked for at its start and has RESET since has that value again. */
static bool add_asked(const struct client_link *client, struct parameter_values *values)
{
	struct parameter_values asked;

	if (!client->asked)
		return true;
	parameter_values_read(client->asked, &asked);
	for (unsigned i = 0; i < asked.count; i++) {
		bool present;

		parameter_values_place(values, asked.followed[i].name, &present);
		if (!present &&
			!parameter_values_follow(
				values, asked.followed[i].name, asked.followed[i].value))
			return false;
	}
	return true;
}

/*
 * A custom setting is not in pg_settings, so that RESET leaves an empty value, which does not tell
 * whether the client has SET it.
 */
static void drop_empty_asked(const struct client_link *client, struct parameter_values *values)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < values->count; i++) {
		const struct followed each = values->followed[i];

		if (each.value[0] != '\0' || !strchr(each.name, '.') || !client->asked ||
			!parameters_get_followed(client->asked, each.name))
			values->followed[kept++] = each;
	}
	values->count = kept;
}

/* All were reset behind the answer, but for the identity, which RESET ALL does not change. */
static void drop_settings(struct parameter_values *values)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < values->count; i++) {
		for (unsigned k = 0; k < PARAMETER_IDENTITIES; k++) {
			if (strcmp(values->followed[i].name, parameter_identity[k]) == 0)
				values->followed[kept++] = values->followed[i];
		}
	}
	values->count = kept;
}

/* Custom settings that functions have set are the client's now: each later answer must have them. */
static void note_custom_names(const struct server_link *server, struct client_link *client)
{
	struct row row;
	size_t at = 0;

	while (next_row(&server->kept, &at, &row)) {
		if (row.letter == 'S' && row.value[0] != '\0' && strchr(row.name, '.'))
			custom_names_note(client, row.name, strlen(row.name));
	}
}

static bool take_settings(struct server_link *server, struct client_link *client)
{
	struct parameter_table *table = link_registry(&server->link)->parameters;
	struct parameter_values values, wanted;

	parameter_values_read(server->link.parameters, &values);
	if (!read_settings(server, &values))
		return false;
	if (client) {
		note_custom_names(server, client);
		parameter_values_read(client->link.parameters, &wanted);
		memcpy(wanted.followed, values.followed,
			values.count * sizeof(values.followed[0]));
		wanted.count = values.count;
		if (server->has_reset)
			drop_empty_asked(client, &wanted);
		if (!add_asked(client, &wanted) ||
			!link_take_parameters(
				&client->link, parameter_values_intern(table, &wanted)))
			return false;
	}
	if (server->suspected & TOPIC_UNREAD)
		drop_settings(&values);
	server->altered = false;
	return link_take_parameters(&server->link, parameter_values_intern(table, &values));
}

/* --- what pins ---------------------------------------------------------------------------- */

/* Returns the topics that the answer has, and the first name. */
static session_topics found_topics(const struct server_link *server, const char **name)
{
	session_topics found = 0;
	struct row row;
	size_t at = 0;

	*name = NULL;
	while (next_row(&server->kept, &at, &row)) {
		const session_topics topic = question_query_topic(row.letter);

		if (!topic || topic == TOPIC_SETTINGS)
			continue;
		found |= topic;
		*name = *name ? *name : row.name;
	}
	return found;
}

/* --- channels ----------------------------------------------------------------------------- */

/* If it only listens, the listening server of the pool does that in its place. */
static bool hand_over(
	struct server_link *server, struct client_link *client, session_topics found)
{
	const struct settings *settings = link_registry(&server->link)->process->settings;
	struct buffer names = {0};
	struct row row;
	size_t at = 0;
	bool handed;

	if (found != TOPIC_CHANNELS || settings->listen != LISTEN_SHARED)
		return false;
	while (next_row(&server->kept, &at, &row)) {
		if (row.letter == 'N')
			buffer_append(&names, row.name, strlen(row.name) + 1);
	}
	handed = names.length > 0 && !names.failed &&
		handoff_begin(server, client, (const char *)names.data, names.length);
	buffer_free(&names);
	if (handed)
		pins_clear(server);
	return handed;
}

/* What could not be refused when it was sent: inside a transaction, by the extended protocol. */
static bool is_refused(
	const struct server_link *server, struct client_link *client, session_topics found)
{
	const struct settings *settings = link_registry(&server->link)->process->settings;

	if (!(found & TOPIC_CHANNELS) || settings->listen != LISTEN_ERROR)
		return false;
	pins_warn_of_channels(client);
	return true;
}

/* --- the answer --------------------------------------------------------------------------- */

static struct client_link *release(struct server_link *server)
{
	struct client_link *client = server->asked_for;

	server->asked_for = NULL;
	if (!client)
		return NULL;
	client->asking = NULL;
	client_set_step(client, CLIENT_STEP_NONE);
	return client;
}

static enum question_result take_answer(struct server_link *server, struct client_link *client)
{
	const session_topics asked = (session_topics)server->suspected;
	session_topics found;
	const char *name;

	if (server->transaction_status == READY_IDLE && server->too_large)
		return QUESTION_TOO_LARGE;
	if (server->transaction_status != READY_IDLE || server->kept.failed)
		return QUESTION_FAILED;
	if ((asked & TOPIC_SETTINGS) && !take_settings(server, client))
		return QUESTION_TOO_LARGE;
	found = found_topics(server, &name) | (asked & ~TOPICS_ALL) |
		((session_topics)server->pins & ~asked);
	server->suspected = 0;
	server->has_reset = false;
	if (client && !is_refused(server, client, found)) {
		if (hand_over(server, client, found))
			return QUESTION_HANDED;
		if (pins_set(server, client, found, name))
			return found ? QUESTION_PINS : QUESTION_FREE;
		if (server->link.pool->session_state == SESSION_STATE_WARN)
			return QUESTION_FREE;
	}
	if (!found)
		return QUESTION_FREE;
	/* A reset does not end it. */
	server->suspected = found & TOPIC_LIBRARY;
	return QUESTION_RESET;
}

/* A time limit may be over before the first query has lifted it. */
static bool may_ask_again(const struct server_link *server)
{
	return server->asked_for && server->kept.failed && server->times_out &&
		server->timed_out < QUESTIONS_MAX;
}

enum question_result question_done(struct server_link *server)
{
	struct client_link *client = server->asked_for;
	enum question_result result;

	if (may_ask_again(server)) {
		server->timed_out++;
		buffer_free(&server->kept);
		ask(server, client);
		return QUESTION_AGAIN;
	}
	result = take_answer(server, client);
	buffer_free(&server->kept);
	if (result != QUESTION_FAILED)
		release(server);
	if (result == QUESTION_PINS)
		pair_again(client, server);
	return result;
}

struct client_link *question_server_closed(struct server_link *server)
{
	return release(server);
}
