/* SPDX-License-Identifier: ISC */
#include "session/takeover/adoption_servers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/host/host_items.h"
#include "model/pool_pins.h"
#include "model/statements_in_flight.h"
#include "session/notify/listening_takeover.h"
#include "session/relay/relay_rules.h"
#include "session/server/host_report.h"
#include "session/serving/server_session.h"
#include "session/takeover/adoption_facts.h"
#include "session/takeover/adoption_links.h"
#include "session/takeover/adoption_statements.h"

/* Return the state of this name, or SERVER_STATES when no server can be adopted in it. */
static enum server_state server_state_of(const char *name)
{
	static const enum server_state states[] = {SERVER_IDLE, SERVER_PAIRED, SERVER_STALE,
		SERVER_RESETTING, SERVER_CHECKING, SERVER_LISTENING};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(server_state_name(states[i]), name) == 0)
			return states[i];
	}
	return SERVER_STATES;
}

/* Is it a valid request action? A request that pgusher answers always has an operation. */
static bool is_action(uint8_t value)
{
	const uint8_t action = value & REQUEST_ACTION; /* all other bits are flags */

	return action <= REQUEST_STALE && (action != REQUEST_ANSWER || value & REQUEST_NOTED);
}

static bool take_requests(struct requests *requests, const struct tagged_span *pairs)
{
	for (size_t i = 0; i + 1 < pairs->length; i += 2) {
		if (!is_action(pairs->at[i + 1]) ||
			!requests_add(requests, pairs->at[i], pairs->at[i + 1]))
			return false;
	}
	return pairs->length % 2 == 0;
}

static bool take_server_key(struct server_link *server, const struct tagged_span *key)
{
	if (key->length == 0)
		return true;
	if (key->length < CANCEL_KEY_MIN || key->length > SERVER_KEY_MAX)
		return false;
	server->cancel_key = malloc(key->length);
	if (!server->cancel_key)
		return false;
	memcpy(server->cancel_key, key->at, key->length);
	server->cancel_key_length = (uint16_t)key->length;
	backends_add(server);
	/* Which clients have had it is not known. */
	server->others_until = loop_now(server->link.stream.loop);
	return true;
}

/* Set the address for cancel requests. */
static bool take_address(struct server_link *server, const struct tagged_span *where)
{
	server->where_length = sizeof(server->where);
	if (where->length == 0)
		return getpeername(server->link.stream.fd, (struct sockaddr *)&server->where,
			       &server->where_length) == 0;
	if (where->length > sizeof(server->where))
		return false;
	memcpy(&server->where, where->at, where->length);
	server->where_length = (socklen_t)where->length;
	return true;
}

static enum server_task task_of(enum server_state state, const struct link_record *record)
{
	if (link_record_is_set(record, LINK_RECORD_SETTING))
		return link_record_is_set(record, LINK_RECORD_GATHERED)
			? SERVER_TASK_SYNC_GATHERED
			: SERVER_TASK_SYNC_ALONE;
	if (state == SERVER_RESETTING || state == SERVER_CHECKING)
		return SERVER_TASK_OWN_QUERY;
	if (state != SERVER_PAIRED)
		return SERVER_TASK_NONE;
	if (link_record_is_set(record, LINK_RECORD_RESTORING))
		return SERVER_TASK_RESTORE;
	return link_record_is_set(record, LINK_RECORD_RESET) ? SERVER_TASK_WATCH_RESET
							     : SERVER_TASK_NONE;
}

static enum copy_mode copy_of(const struct link_record *record)
{
	if (!link_record_is_set(record, LINK_RECORD_COPYING_IN))
		return COPY_NONE;
	return link_record_is_set(record, LINK_RECORD_STREAMING) ? COPY_BOTH : COPY_IN;
}

static enum request_error error_of(const struct link_record *record)
{
	if (link_record_is_set(record, LINK_RECORD_SKIPPING))
		return REQUEST_ERROR_UNTIL_SYNC;
	return link_record_is_set(record, LINK_RECORD_REQUEST_FAILED)
		? REQUEST_ERROR_UNTIL_READY
		: REQUEST_ERROR_NONE;
}

/*
 * Has the server's database another host, name or port in this process's configuration? Then
 * the server is retired, as after a RELOAD.
 */
static bool has_moved(const struct server_link *server, const struct tagged_span *target)
{
	struct buffer configured = {0};
	bool moved;

	if (target->length == 0)
		return false;
	link_record_target(&configured, server->link.pool->database->config);
	moved = configured.length != target->length ||
		memcmp(configured.data, target->at, target->length) != 0;
	buffer_free(&configured);
	return moved;
}

/* The other process let stay in the session what this one would not know of. */
static bool is_unknown(const struct server_link *server, const struct link_record *record)
{
	return !server->replication &&
		record->knowledge < (uint64_t)pool_knows_sessions(server->link.pool);
}

static void take_session_state(struct server_link *server, const struct link_record *record)
{
	server->suspected = record->suspected & (TOPICS_UNSEEN | TOPIC_LIBRARY);
	server->pins = record->pins & TOPICS_PINNING;
	/* Its open transaction may have changed functions: they are not read before its end. */
	if (server->suspected && record->status != 'I') {
		server->changes_functions = true;
		server->link.pool->database->functions.changing++;
	}
	if (!server->pins)
		return;
	server->pinned_since =
		adoption_facts_moment(link_registry(&server->link), record->pinned_age);
	server->pinned_by = record->pinned_by ? strdup(record->pinned_by) : NULL;
}

/* The list of hosts may be shorter now: then the server is retired. */
static void adopt_host(struct server_link *server)
{
	host_use(server, host_items_of_server(server));
	host_report_logged_in(server);
}

static bool fill_server(struct server_link *server, const struct link_record *record)
{
	const char status = (char)record->status;

	server->transaction_status = status;
	/*
	 * How much of its batch the client has sent is not in the record: assume that the Sync
	 * is still missing (see statements/replay).
	 */
	server->batch_progress = status == 0 ? BATCH_OPEN : BATCH_ENDED;
	server->host = (uint16_t)record->host;
	server->replication = record->replication;
	server->copy = copy_of(record);
	server->request_error = error_of(record);
	/* Not in the record: assume that the running parameter sync has followed parameters. */
	server->sync_followed = link_record_is_set(record, LINK_RECORD_SETTING);
	server->sync_reused = link_record_is_set(record, LINK_RECORD_SETTING);
	server->sync_resets = link_record_is_set(record, LINK_RECORD_SETTING);
	server->altered = link_record_is_set(record, LINK_RECORD_ALTERED);
	server->fresh = link_record_is_set(record, LINK_RECORD_FRESH);
	server->touched = link_record_is_set(record, LINK_RECORD_TOUCHED);
	server->follows = parameters_has_followed(server->link.parameters);
	server->close_needed = link_record_is_set(record, LINK_RECORD_CLOSE_NEEDED);
	server->dirty = link_record_is_set(record, LINK_RECORD_DIRTY);
	server->unnamed_passing = link_record_is_set(record, LINK_RECORD_UNNAMED_PASSING);
	server->awaits_bind = link_record_is_set(record, LINK_RECORD_AWAITS_BIND);
	server->close_cause = record->close_cause < SERVER_CLOSINGS
		? (enum server_closing)record->close_cause
		: SERVER_CLOSED_OTHER;
	take_session_state(server, record);
	adopt_host(server);
	if (has_moved(server, &record->target) || is_unknown(server, record))
		server_retire(server, SERVER_CLOSED_RELOAD);
	return (status == 0 || status == 'I' || status == 'T' || status == 'E') &&
		take_requests(&server->requests, &record->requests) &&
		take_server_key(server, &record->key) && take_address(server, &record->where);
}

static bool take_channels(
	struct server_link *server, enum server_state state, const struct tagged_span *channels)
{
	return state != SERVER_LISTENING ||
		listening_takeover_take_server(
			server, (const char *)channels->at, channels->length);
}

static void drop_server(struct server_link *server)
{
	struct registry *registry = link_registry(&server->link);

	listening_takeover_drop_server(server);
	requests_clear(&server->requests);
	statements_server_closed(server);
	host_use(server, NULL);
	backends_remove(server);
	free(server->cancel_key);
	free(server->pinned_by);
	adoption_links_drop(&server->link);
	slab_give(&registry->servers, server);
}

void adoption_servers_take(struct adoption *adoption, const struct link_record *record, int fd)
{
	struct registry *registry = adoption_facts_home(adoption->registry, record->database);
	const enum server_state state = server_state_of(record->state);
	struct pool *pool = state == SERVER_STATES
		? NULL
		: adoption_facts_pool(
			  registry, record->database, record->user, record->pool_role);
	struct server_link *server = pool ? slab_take(&registry->servers) : NULL;

	if (!server) {
		close(fd);
		return;
	}
	stream_open_detached(&server->link.stream, registry->loop, fd, &server_session_handlers,
		link_record_is_set(record, LINK_RECORD_PAUSED));
	server->link.pool = pool;
	if (!adoption_links_fill(registry, &server->link, record) ||
		!fill_server(server, record) ||
		!adoption_statements_fill_server(
			adoption->statements, server, &record->statements) ||
		!take_channels(server, state, &record->channels) ||
		!adoption_links_add(adoption, &server->link, record)) {
		drop_server(server);
		return;
	}
	cap_take_server(pool);
	if (server->pins)
		pool_pin(pool);
	server->task = task_of(state, record);
	server_place(server, state);
	server->restores = server->task == SERVER_TASK_WATCH_RESET;
}
