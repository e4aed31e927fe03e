/* SPDX-License-Identifier: ISC */
#include "session/takeover/adoption_clients.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/state/custom_names.h"
#include "model/statements_in_flight.h"
#include "model/statistics/client_group.h"
#include "session/link/client_limits.h"
#include "session/link/login.h"
#include "session/login/client_greeting.h"
#include "session/login/proxy_greeting.h"
#include "session/notify/listening_takeover.h"
#include "session/relay/pair.h"
#include "session/relay/relay_rules.h"
#include "session/serving/client_session.h"
#include "session/serving/replication.h"
#include "session/takeover/adoption_facts.h"
#include "session/takeover/adoption_links.h"
#include "session/takeover/adoption_statements.h"
#include "session/takeover/parameter_record.h"

/* Return the state of this name, or CLIENT_STATES when no client can be adopted in it. */
static enum client_state client_state_of(const char *name)
{
	static const enum client_state states[] = {CLIENT_GREETING, CLIENT_WELCOMING,
		CLIENT_IDLE, CLIENT_WAITING, CLIENT_LAUNCHING, CLIENT_PAIRED};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(client_state_name(states[i]), name) == 0)
			return states[i];
	}
	return CLIENT_STATES;
}

/*
 * Put the client into its pool of the other process. If it belongs to another pool by this
 * process's configuration, as after a RELOAD, the pool is marked. Returns false when there is
 * no such pool.
 */
static bool find_client_pool(struct client_link *client, const struct link_record *record)
{
	struct registry *registry = link_registry(&client->link);
	struct database *database = record->database
		? registry_open_database(registry, record->database, NULL)
		: NULL;
	struct user *user = database && !database->console && record->user
		? registry_open_user(registry, record->user)
		: NULL;
	struct user *server_user = user ? registry_server_user(registry, database, user) : NULL;

	if (!server_user)
		return false;
	limits_take_database(client, database, true);
	limits_take_user(client, user, true);
	client->link.pool = adoption_facts_pool(registry, record->database,
		record->pool_user ? record->pool_user : server_user->name, record->pool_role);
	if (client->link.pool && client->link.pool->user != server_user)
		client->link.pool->left_behind = true;
	return client->link.pool != NULL;
}

static bool take_replication(struct client_link *client, const struct link_record *record)
{
	const struct startup_login wanted = {
		.replication = record->replication, .options = record->options};

	return replication_want(client, &wanted);
}

static enum client_step step_of(enum client_state state, const struct link_record *record)
{
	if (state == CLIENT_PAIRED)
		return link_record_is_set(record, LINK_RECORD_FORGETTING)
			? CLIENT_STEP_FORGETTING
			: CLIENT_STEP_NONE;
	if (state == CLIENT_IDLE && link_record_is_set(record, LINK_RECORD_LISTENING))
		return CLIENT_STEP_LISTENING;
	return link_record_is_set(record, LINK_RECORD_SKIPPING) ? CLIENT_STEP_SKIPPING
								: CLIENT_STEP_NONE;
}

/*
 * Set the parameters of the client's startup message, if the record has them. Returns false
 * when out of memory.
 */
static bool take_asked(struct client_link *client, const struct link_record *record)
{
	if (!record->asked.at)
		return true;
	client->asked = parameter_record_read_set(link_registry(&client->link)->parameters,
		LINK_CLIENT, &record->asked, &record->asked_followed);
	return client->asked != NULL;
}

/* Those that cannot be noted may be unknown to the questions of this process: see TOPIC_UNREAD. */
static bool take_custom_names(struct client_link *client, const struct link_record *record)
{
	const struct tagged_span *names = &record->custom_names;
	size_t at = 0;

	while (at < names->length) {
		const char *name = (const char *)names->at + at;
		const size_t length = strnlen(name, names->length - at);

		if (!custom_names_note(client, name, length))
			return false;
		at += length + 1;
	}
	return true;
}

static bool fill_client(
	struct client_link *client, const struct link_record *record, enum client_state state)
{
	struct registry *registry = link_registry(&client->link);

	client->deadline.expire = client_limits_expire;
	client->query_start = adoption_facts_moment(registry, record->query_age);
	client->transaction_start = adoption_facts_moment(registry, record->transaction_age);
	client->wait_start = adoption_facts_moment(registry, record->wait_age);
	client->notified = link_record_is_set(record, LINK_RECORD_NOTIFIED);
	client->ring_full = link_record_is_set(record, LINK_RECORD_RING_FULL);
	client->step = step_of(state, record);
	if (record->proxy > PROXY_RELAYED)
		return false;
	client->proxy = (enum client_proxy)record->proxy;
	if (state == CLIENT_GREETING)
		return true;
	if (!take_replication(client, record) || !take_asked(client, record) ||
		!take_custom_names(client, record) ||
		(state == CLIENT_LAUNCHING && !client->replica))
		return false;
	if (state == CLIENT_WELCOMING) {
		client->login = calloc(1, sizeof(*client->login));
		if (!client->login)
			return false;
		client->login->client = client;
		client->login->version = (uint32_t)record->protocol;
		client->login->counted = true; /* by the old process */
	} else if (!cancel_keys_keep(&registry->process->cancel_keys, client, record->key.at,
			   record->key.length)) {
		return false;
	}
	return find_client_pool(client, record);
}

static void drop_client(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);

	cancel_keys_forget(&registry->process->cancel_keys, client);
	statements_client_closed(client);
	custom_names_free(client);
	limits_give_client(client);
	limits_give_socket(registry);
	sources_give(client);
	free(client->login);
	free(client->replica);
	parameters_unref(client->asked);
	adoption_links_drop(&client->link);
	slab_give(&registry->clients, client);
}

static void log_attempt(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);

	if (registry->process->settings->log_connections)
		link_log(&client->link, LEVEL_LOG,
			"login attempt: db=%s user=%s tls=no replication=no",
			client->database->name, client->user->name);
}

/* Clients in these states are not read from, even if their records lack LINK_RECORD_PAUSED. */
static bool is_waiting(enum client_state state)
{
	return state == CLIENT_WAITING || state == CLIENT_WELCOMING ||
		state == CLIENT_LAUNCHING;
}

/* What it listens on, if that can be kept. The LISTEN that it holds is judged again. */
static void take_channels(struct client_link *client, const struct link_record *record)
{
	const bool waits = client->step == CLIENT_STEP_LISTENING;

	if (!client->link.pool ||
		(record->channels.length == 0 && record->messages.length == 0 && !waits))
		return;
	if (!listening_takeover_take_client(client, (const char *)record->channels.at,
		    record->channels.length, record->messages.at, record->messages.length))
		log_write(LEVEL_ERROR, "a client that was taken over does not listen any more");
	if (waits && client->listener) {
		client->listener->resuming = true;
		channels_place(client->listener, LISTENER_READY);
	}
}

/* A client may still send its PROXY header, even if the new process expects none. */
static const struct stream_handlers *handlers_of(
	const struct link_record *record, enum client_state state)
{
	if (state != CLIENT_GREETING)
		return &client_session_handlers;
	return record->proxy == PROXY_NONE ? &client_greeting_handlers
					   : &proxy_greeting_handlers;
}

void adoption_clients_take(struct adoption *adoption, const struct link_record *record, int fd)
{
	struct registry *registry = adoption_facts_home(adoption->registry, record->database);
	const enum client_state state = client_state_of(record->state);
	struct client_link *client =
		state == CLIENT_STATES ? NULL : slab_take(&registry->clients);

	if (!client) {
		close(fd);
		return;
	}
	stream_open_detached(&client->link.stream, registry->loop, fd,
		handlers_of(record, state),
		link_record_is_set(record, LINK_RECORD_PAUSED) || is_waiting(state));
	limits_take_socket(registry);
	/* A client without a StartupMessage is admitted by its login. */
	if (state != CLIENT_GREETING)
		limits_admit_client(client, false);
	if (!adoption_links_fill(registry, &client->link, record) ||
		!fill_client(client, record, state) ||
		!adoption_statements_fill_client(
			adoption->statements, client, &record->statements) ||
		!adoption_links_add(adoption, &client->link, record)) {
		drop_client(client);
		return;
	}
	sources_take(client);
	client_place(client, state);
	take_channels(client, record);
	if (state != CLIENT_GREETING && state != CLIENT_WELCOMING)
		client_group_join(client);
	if (record->id == 0)
		log_attempt(client);
}
