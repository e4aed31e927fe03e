/* SPDX-License-Identifier: ISC */
#include "session/adoption.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "model/client_group.h"
#include "session/adoption_facts.h"
#include "session/adoption_statements.h"
#include "session/auth/method.h"
#include "session/client_greeting.h"
#include "session/client_limits.h"
#include "session/client_session.h"
#include "session/ending.h"
#include "session/inventory.h"
#include "session/pairing.h"
#include "session/relay_rules.h"
#include "session/replication.h"
#include "session/server_session.h"
#include "session/statements.h"

/* A link that was adopted, by the handle that the other process had for it. */
struct entry {
	UT_hash_handle by_handle;
	uint64_t handle, peer;
	struct link *link;
	struct link_record_bytes backlog; /* lent, as the next */
	struct tagged_field operations; /* of a server: prepared statements, in flight */
};

struct adoption {
	struct registry *registry;
	struct entry *entries; /* uthash, in the order in which they came */
	struct adoption_statements *statements; /* until all have been joined */
};

struct adoption *adoption_new(struct registry *registry)
{
	struct adoption *adoption = calloc(1, sizeof(*adoption));

	if (!adoption)
		return NULL;
	adoption->registry = registry;
	adoption->statements = adoption_statements_new(registry);
	if (adoption->statements)
		return adoption;
	free(adoption);
	return NULL;
}

void adoption_free(struct adoption *adoption)
{
	struct entry *entry, *next;

	if (!adoption)
		return;
	HASH_ITER (by_handle, adoption->entries, entry, next) {
		HASH_DELETE(by_handle, adoption->entries, entry);
		free(entry);
	}
	adoption_statements_free(adoption->statements);
	free(adoption);
}

/* --- what both kinds have ----------------------------------------------------------------- */

static bool is_set(const struct link_record *record, enum link_record_flag flag)
{
	return record->flags & flag;
}

/* False: no memory, or it is not as it should be. */
static bool fill(struct registry *registry, struct link *link, const struct link_record *record)
{
	link->kind = record->kind;
	link->id = record->id ? record->id : ++registry->last_id;
	if (link->id > registry->last_id)
		registry->last_id = link->id;
	link->remote = record->remote;
	link->connect_time = adoption_facts_moment(registry, record->age ? record->age : 1);
	link->request_time = adoption_facts_moment(registry, record->quiet ? record->quiet : 1);
	link->discarding = is_set(record, LINK_RECORD_DISCARDING);
	link->cut = is_set(record, LINK_RECORD_CUT);
	link->remaining = (uint32_t)record->remaining;
	link->parameters = link_record_parameters(registry->parameters, &record->parameters);
	if (link->parameters && record->followed.length > 0)
		link->parameters =
			link_record_follow(registry->parameters, link->parameters, record);
	return record->remaining <= UINT32_MAX && link->parameters &&
		link_hold(link, record->held.at, record->held.length);
}

/* One that stands in no list yet. */
static void forget(struct link *link)
{
	stream_close(&link->stream);
	link_drop_held(link);
	parameters_unref(link->parameters);
}

static unsigned hash_of(const struct adoption *adoption, uint64_t handle)
{
	return (unsigned)keyed_hash_of(&adoption->registry->name_hash, &handle, sizeof(handle));
}

static struct entry *find(const struct adoption *adoption, uint64_t handle)
{
	struct entry *found;

	HASH_FIND_BYHASHVALUE(by_handle, adoption->entries, &handle, sizeof(handle),
		hash_of(adoption, handle), found);
	return found;
}

static bool remember(
	struct adoption *adoption, struct link *link, const struct link_record *record)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	const bool is_known = find(adoption, record->handle) != NULL;

	if (!entry)
		return false;
	entry->handle = record->handle;
	entry->peer = record->peer;
	entry->link = link;
	entry->backlog = record->backlog;
	entry->operations = record->statements.operations;
	if (!is_known)
		HASH_ADD_KEYPTR_BYHASHVALUE(by_handle, adoption->entries, &entry->handle,
			sizeof(entry->handle), hash_of(adoption, entry->handle), entry);
	if (is_known || !entry->by_handle.tbl) {
		free(entry);
		return false;
	}
	return true;
}

/* --- clients ------------------------------------------------------------------------------ */

/* CLIENT_STATES: there is none of that name that could be adopted. */
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

/* The client's own pool by our configuration, and the one in which it was. */
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
		record->pool_user ? record->pool_user : server_user->name);
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

static const struct relay_rule *rules_of_client(const struct link_record *record)
{
	return is_set(record, LINK_RECORD_SKIPPING) ? relay_skipping_client : relay_idle_client;
}

static bool fill_client(
	struct client_link *client, const struct link_record *record, enum client_state state)
{
	struct registry *registry = link_registry(&client->link);

	client->deadline.expire = client_limits_expire;
	client->query_start = adoption_facts_moment(registry, record->query_age);
	client->transaction_start = adoption_facts_moment(registry, record->transaction_age);
	client->wait_start = adoption_facts_moment(registry, record->wait_age);
	client->notified = is_set(record, LINK_RECORD_NOTIFIED);
	client->ring_full = is_set(record, LINK_RECORD_RING_FULL);
	client->link.rules = rules_of_client(record);
	if (state == CLIENT_GREETING)
		return true;
	if (!take_replication(client, record) ||
		(state == CLIENT_LAUNCHING && !client->replica))
		return false;
	if (state == CLIENT_WELCOMING) {
		client->login = calloc(1, sizeof(*client->login));
		if (!client->login)
			return false;
		client->login->version = (uint32_t)record->protocol;
	} else if (!cancel_keys_keep(&registry->cancel_keys, client, record->key.at,
			   record->key.length)) {
		return false;
	}
	return find_client_pool(client, record);
}

static void drop_client(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);

	cancel_keys_forget(&registry->cancel_keys, client);
	statements_client_gone(client);
	limits_give_client(client);
	limits_give_socket(registry);
	free(client->login);
	free(client->replica);
	forget(&client->link);
	slab_give(&registry->clients, client);
}

static void log_attempt(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);

	if (registry->settings->log_connections)
		link_log(&client->link, LEVEL_LOG,
			"login attempt: db=%s user=%s tls=no replication=no",
			client->database->name, client->user->name);
}

/* Nothing is read from those who wait, whatever we are told. */
static bool must_wait(enum client_state state)
{
	return state == CLIENT_WAITING || state == CLIENT_WELCOMING ||
		state == CLIENT_LAUNCHING;
}

static void adopt_client(struct adoption *adoption, const struct link_record *record, int fd)
{
	struct registry *registry = adoption->registry;
	const enum client_state state = client_state_of(record->state);
	struct client_link *client =
		state == CLIENT_STATES ? NULL : slab_take(&registry->clients);

	if (!client) {
		close(fd);
		return;
	}
	stream_open_detached(&client->link.stream, registry->loop, fd,
		state == CLIENT_GREETING ? &client_greeting_handlers : &client_session_handlers,
		is_set(record, LINK_RECORD_PAUSED) || must_wait(state));
	limits_take_socket(registry);
	if (!fill(registry, &client->link, record) || !fill_client(client, record, state) ||
		!adoption_statements_fill_client(
			adoption->statements, client, &record->statements) ||
		!remember(adoption, &client->link, record)) {
		drop_client(client);
		return;
	}
	if (state == CLIENT_PAIRED)
		client->link.rules = is_set(record, LINK_RECORD_FORGETTING)
			? relay_forgetting_client
			: pairing_client_rules(client);
	client_place(client, state);
	if (state != CLIENT_GREETING && state != CLIENT_WELCOMING)
		client_group_join(client);
	if (record->id == 0)
		log_attempt(client);
}

/* --- servers ------------------------------------------------------------------------------ */

static enum server_state server_state_of(const char *name)
{
	static const enum server_state states[] = {
		SERVER_IDLE, SERVER_PAIRED, SERVER_STALE, SERVER_RESETTING, SERVER_CHECKING};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(server_state_name(states[i]), name) == 0)
			return states[i];
	}
	return SERVER_STATES;
}

/* What is ours to answer always has an operation. */
static bool is_action(uint8_t told)
{
	const uint8_t action = told & REQUEST_ACTION;

	return (told & ~(REQUEST_ACTION | REQUEST_NOTED)) == 0 && action <= REQUEST_REFUSED &&
		(action != REQUEST_ANSWER || told & REQUEST_NOTED);
}

static bool take_requests(struct requests *requests, const struct link_record_bytes *pairs)
{
	for (size_t i = 0; i + 1 < pairs->length; i += 2) {
		if (!is_action(pairs->at[i + 1]) ||
			!requests_add(requests, pairs->at[i], pairs->at[i + 1]))
			return false;
	}
	return pairs->length % 2 == 0;
}

static bool take_server_key(struct server_link *server, const struct link_record_bytes *key)
{
	if (key->length == 0)
		return true;
	if (key->length > SERVER_KEY_MAX)
		return false;
	server->cancel_key = malloc(key->length);
	if (!server->cancel_key)
		return false;
	memcpy(server->cancel_key, key->at, key->length);
	server->cancel_key_length = (uint16_t)key->length;
	return true;
}

/* Where a cancel request would have to go. */
static bool take_where(struct server_link *server, const struct link_record_bytes *where)
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

static const struct relay_rule *rules_of(const struct server_link *server)
{
	switch (server_state(server)) {
	case SERVER_PAIRED:
		return server->setting ? relay_setting_server : relay_paired_server;
	case SERVER_RESETTING:
	case SERVER_CHECKING:
		return relay_own_server;
	case SERVER_CONNECTING:
	case SERVER_AUTHENTICATING:
	case SERVER_PREPARING:
	case SERVER_IDLE:
	case SERVER_LOOKING_UP:
	case SERVER_DRAINING:
	case SERVER_HELD:
	case SERVER_STALE:
	case SERVER_CANCELING:
	case SERVER_CLOSED:
	case SERVER_STATES:
		break;
	}
	return relay_unused_server;
}

/* Has our configuration another place for its database? Then it is as after a RELOAD. */
static bool has_moved(const struct server_link *server, const struct link_record_bytes *told)
{
	struct buffer ours = {0};
	bool moved;

	if (told->length == 0)
		return false;
	link_record_target(&ours, server->link.pool->database->config);
	moved = ours.length != told->length || memcmp(ours.data, told->at, told->length) != 0;
	buffer_free(&ours);
	return moved;
}

static bool fill_server(struct server_link *server, const struct link_record *record)
{
	const char status = (char)record->status;

	server->transaction_status = status;
	server->host = (uint16_t)record->host;
	server->replication = record->replication;
	server->copying_in = is_set(record, LINK_RECORD_COPYING_IN);
	server->streaming = is_set(record, LINK_RECORD_STREAMING);
	server->request_failed = is_set(record, LINK_RECORD_REQUEST_FAILED);
	server->skipping = is_set(record, LINK_RECORD_SKIPPING);
	server->setting = is_set(record, LINK_RECORD_SETTING);
	server->fresh = is_set(record, LINK_RECORD_FRESH);
	server->touched = is_set(record, LINK_RECORD_TOUCHED);
	server->follows = parameters_has_followed(server->link.parameters);
	server->close_needed = is_set(record, LINK_RECORD_CLOSE_NEEDED);
	server->dirty = is_set(record, LINK_RECORD_DIRTY);
	server->reserve = is_set(record, LINK_RECORD_RESERVE);
	server->unnamed_passing = is_set(record, LINK_RECORD_UNNAMED_PASSING);
	server->close_cause = record->close_cause < SERVER_CLOSINGS
		? (enum server_closing)record->close_cause
		: SERVER_CLOSED_OTHER;
	if (has_moved(server, &record->target))
		server_retire(server, SERVER_CLOSED_RELOAD);
	return (status == 0 || status == 'I' || status == 'T' || status == 'E') &&
		take_requests(&server->requests, &record->requests) &&
		take_server_key(server, &record->key) && take_where(server, &record->where);
}

static void drop_server(struct server_link *server)
{
	struct registry *registry = link_registry(&server->link);

	requests_clear(&server->requests);
	statements_server_gone(server);
	free(server->cancel_key);
	forget(&server->link);
	slab_give(&registry->servers, server);
}

static void adopt_server(struct adoption *adoption, const struct link_record *record, int fd)
{
	struct registry *registry = adoption->registry;
	const enum server_state state = server_state_of(record->state);
	struct pool *pool = state == SERVER_STATES
		? NULL
		: adoption_facts_pool(registry, record->database, record->user);
	struct server_link *server = pool ? slab_take(&registry->servers) : NULL;

	if (!server) {
		close(fd);
		return;
	}
	stream_open_detached(&server->link.stream, registry->loop, fd, &server_session_handlers,
		is_set(record, LINK_RECORD_PAUSED));
	server->link.pool = pool;
	if (!fill(registry, &server->link, record) || !fill_server(server, record) ||
		!adoption_statements_fill_server(
			adoption->statements, server, &record->statements) ||
		!remember(adoption, &server->link, record)) {
		drop_server(server);
		return;
	}
	limits_take_server(pool);
	server_place(server, state);
	server->link.rules = rules_of(server);
}

void adoption_link(struct adoption *adoption, const struct link_record *record, int fd)
{
	if (fd < 0)
		return;
	if (record->kind == LINK_CLIENT)
		adopt_client(adoption, record, fd);
	else
		adopt_server(adoption, record, fd);
}

void adoption_secret(struct adoption *adoption, const char *database, const char *user,
	const char *secret, const uint8_t client_key[SCRAM_KEY_SIZE])
{
	adoption_facts_secret(adoption->registry, database, user, secret, client_key);
}

bool adoption_record(
	struct adoption *adoption, uint8_t kind, const void *fields, size_t length, int fd)
{
	struct link_record record;
	struct reader reader;
	bool good;

	reader_init(&reader, fields, length);
	if (kind != INVENTORY_CLIENT && kind != INVENTORY_SERVER) {
		if (fd >= 0)
			close(fd);
		if (kind == INVENTORY_STATEMENT)
			return adoption_statements_take(adoption->statements, &reader);
		return adoption_facts_take(adoption->registry, kind, &reader);
	}
	good = fd >= 0 &&
		link_record_read(
			&reader, kind == INVENTORY_CLIENT ? LINK_CLIENT : LINK_SERVER, &record);
	if (good)
		adoption_link(adoption, &record, fd);
	else if (fd >= 0)
		close(fd);
	return good;
}

/* --- joining ------------------------------------------------------------------------------ */

static bool is_paired(const struct link *link)
{
	return link->state ==
		(link->kind == LINK_CLIENT ? (uint8_t)CLIENT_PAIRED : (uint8_t)SERVER_PAIRED);
}

/* Do both name each other, and are they what they should be? */
static bool fit(const struct entry *entry, const struct entry *other)
{
	return other && other->peer == entry->handle && is_paired(entry->link) &&
		is_paired(other->link) && entry->link->kind != other->link->kind &&
		entry->link->pool == other->link->pool &&
		link_replication(entry->link) == link_replication(other->link);
}

static void leave_out(struct adoption *adoption, struct entry *entry)
{
	HASH_DELETE(by_handle, adoption->entries, entry);
	if (entry->link->kind == LINK_CLIENT)
		client_close_for(client_of(entry->link), REASON_DISKO_OVER);
	else
		server_close_for(server_of(entry->link), REASON_DISKO_OVER);
	free(entry);
}

/* What is in flight needs both: without it neither can go on. */
static void join_operations(struct adoption *adoption, struct entry *entry)
{
	struct server_link *server = server_of(entry->link);
	struct link *peer = entry->link->peer;

	if (adoption_statements_fill_operations(
		    adoption->statements, server, &entry->operations))
		return;
	if (peer) {
		statements_part(server, client_of(peer));
		peer->peer = entry->link->peer = NULL;
	} else {
		entry->peer = entry->handle; /* it has none: so it is left out */
	}
}

void adoption_join(struct adoption *adoption)
{
	struct entry *entry, *next;

	HASH_ITER (by_handle, adoption->entries, entry, next) {
		struct entry *other = entry->peer ? find(adoption, entry->peer) : NULL;

		if (!entry->peer && !is_paired(entry->link))
			continue;
		if (fit(entry, other))
			entry->link->peer = other->link;
	}
	HASH_ITER (by_handle, adoption->entries, entry, next) {
		if (entry->link->kind == LINK_SERVER)
			join_operations(adoption, entry);
	}
	/* Only now, since leaving one out must not leave its peer with half a pair. */
	HASH_ITER (by_handle, adoption->entries, entry, next) {
		if ((entry->peer || is_paired(entry->link)) && !entry->link->peer)
			leave_out(adoption, entry);
	}
	adoption_statements_free(adoption->statements);
	adoption->statements = NULL;
}

/* --- waking ------------------------------------------------------------------------------- */

static void wake(struct entry *entry)
{
	struct link *link = entry->link;

	if (link->kind == LINK_CLIENT && link->state == CLIENT_CLOSED)
		return;
	if (link->kind == LINK_SERVER && link->state == SERVER_CLOSED)
		return;
	if (!stream_owe(&link->stream, entry->backlog.at, entry->backlog.length))
		log_write(LEVEL_ERROR, "no memory for what a connection is owed");
	stream_attach(&link->stream);
	if (link->kind == LINK_CLIENT)
		client_limits_start(client_of(link));
	if (link->pool)
		pool_needs_work(link->pool);
}

void adoption_wake(struct adoption *adoption)
{
	struct entry *entry, *next;

	HASH_ITER (by_handle, adoption->entries, entry, next)
		wake(entry);
}
