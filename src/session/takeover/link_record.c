/* SPDX-License-Identifier: ISC */
#include "session/takeover/link_record.h"

#include <stdio.h>
#include <string.h>

#include "model/state/custom_names.h"
#include "net/stream_backlog.h"
#include "session/link/login.h"
#include "session/notify/listening_takeover.h"
#include "session/relay/relay_rules.h"
#include "session/takeover/parameter_record.h"

/* Never change a number, nor reuse one of a tag that is not used any more. */
enum link_tag {
	TAG_HANDLE = 1,
	TAG_PEER = 2,
	TAG_ID = 3,
	TAG_STATE = 4,
	TAG_DATABASE = 5,
	TAG_USER = 6,
	TAG_POOL_USER = 7,
	TAG_FAMILY = 8,
	TAG_PORT = 9,
	TAG_ADDRESS = 10,
	TAG_AGE = 11,
	TAG_QUIET = 12,
	TAG_QUERY_AGE = 13,
	TAG_TRANSACTION_AGE = 14,
	TAG_WAIT_AGE = 15,
	TAG_REMAINING = 16,
	TAG_FLAGS = 17,
	TAG_PROTOCOL = 18,
	TAG_KEY = 19,
	TAG_HELD = 20,
	TAG_BACKLOG = 21,
	TAG_REQUESTS = 22,
	TAG_WHERE = 23,
	TAG_HOST = 24,
	TAG_STATUS = 25,
	TAG_PARAMETERS = 26,
	TAG_CLOSE_CAUSE = 27,
	TAG_TARGET = 28,
	TAG_REPLICATION = 29,
	TAG_OPTIONS = 30,
	TAG_FOLLOWED = 31,
	/* 32 to 63: takeover/statement_record. */
	TAG_ASKED = 64,
	TAG_ASKED_FOLLOWED = 65,
	TAG_SUSPECTED = 66,
	TAG_PINS = 67,
	TAG_PINNED_AGE = 68,
	TAG_PINNED_BY = 69,
	TAG_CUSTOM_NAMES = 70,
	TAG_CHANNELS = 80,
	TAG_MESSAGES = 81,
	TAG_SESSION_STATE = 90,
	TAG_POOL_ROLE = 91,
	TAG_PROXY = 100,
};

/*
 * Prefix of the state's name in records of replication links. A version that does not know
 * replication finds no state of this name and leaves the link out, instead of treating it as an
 * ordinary one.
 */
static const char replication_prefix[] = "replication ";

/* --- writing ------------------------------------------------------------------------------ */

static uint64_t age_of(const struct link *link, usec_t since)
{
	const usec_t age = loop_now(link->stream.loop) - since;

	if (since == 0)
		return 0;
	return age > 0 ? (uint64_t)age : 1;
}

static uint64_t flag(bool set, enum link_record_flag flag)
{
	return set ? (uint64_t)flag : 0;
}

static uint64_t common_flags(const struct link *link)
{
	return flag(link->discarding, LINK_RECORD_DISCARDING) |
		flag(link->cut, LINK_RECORD_CUT) |
		flag(link->stream.paused, LINK_RECORD_PAUSED);
}

static void write_common(struct buffer *out, const struct link *link)
{
	const struct backlog *backlog = link->stream.backlog;

	tagged_number(out, TAG_HANDLE, link->id);
	tagged_number(out, TAG_PEER, link->peer ? link->peer->id : 0);
	tagged_number(out, TAG_ID, link->id);
	tagged_number(out, TAG_FAMILY, link->remote.family);
	tagged_number(out, TAG_PORT, link->remote.port);
	tagged_bytes(out, TAG_ADDRESS, link->remote.bytes, sizeof(link->remote.bytes));
	tagged_number(out, TAG_AGE, age_of(link, link->connect_time));
	tagged_number(out, TAG_QUIET, age_of(link, link->request_time));
	tagged_number(out, TAG_REMAINING, link->remaining);
	if (link->held_length)
		tagged_bytes(out, TAG_HELD, link->held, link->held_length);
	if (backlog)
		tagged_bytes(out, TAG_BACKLOG, backlog->bytes.data + backlog->sent,
			backlog->bytes.length - backlog->sent);
	if (link->parameters)
		parameter_record_write_set(out, TAG_PARAMETERS, TAG_FOLLOWED, link->parameters);
}

static void write_state(struct buffer *out, const struct link *link, const char *state)
{
	const enum startup_replication replication = link_replication(link);
	char text[64];

	snprintf(text, sizeof(text), "%s%s", replication ? replication_prefix : "", state);
	tagged_text(out, TAG_STATE, text);
	tagged_number(out, TAG_REPLICATION, replication);
}

/* Write a field of these bytes, and free them. */
static void write_list(struct buffer *out, enum link_tag tag, struct buffer *list)
{
	if (list->length > 0)
		tagged_bytes(out, tag, list->data, list->length);
	out->failed = out->failed || list->failed;
	buffer_free(list);
}

static void write_listener(struct buffer *out, const struct channel_listener *listener)
{
	struct buffer list = {0};

	channels_write_names(listener, &list);
	write_list(out, TAG_CHANNELS, &list);
	listening_takeover_write_messages(listener, &list);
	write_list(out, TAG_MESSAGES, &list);
}

static void write_listening_server(struct buffer *out, const struct server_link *server)
{
	struct buffer list = {0};

	listening_takeover_write_channels(server, &list);
	write_list(out, TAG_CHANNELS, &list);
}

static void write_client(struct buffer *out, const struct client_link *client)
{
	const struct link *link = &client->link;

	write_state(out, link, client_state_name(client_state(client)));
	if (client->replica)
		tagged_text(out, TAG_OPTIONS, client->replica->options);
	tagged_text(out, TAG_DATABASE, client->database ? client->database->name : NULL);
	tagged_text(out, TAG_USER, client->user ? client->user->name : NULL);
	tagged_text(out, TAG_POOL_USER, link->pool ? link->pool->user->name : NULL);
	if (link->pool)
		tagged_text(out, TAG_POOL_ROLE, target_session_name(link->pool->asked_role));
	tagged_number(out, TAG_QUERY_AGE, age_of(link, client->query_start));
	tagged_number(out, TAG_TRANSACTION_AGE, age_of(link, client->transaction_start));
	tagged_number(out, TAG_WAIT_AGE, age_of(link, client->wait_start));
	if (client_state(client) == CLIENT_WELCOMING)
		tagged_number(out, TAG_PROTOCOL, client->login->version);
	if (client->key_length)
		tagged_bytes(out, TAG_KEY, client->key, client->key_length);
	if (client->asked)
		parameter_record_write_set(out, TAG_ASKED, TAG_ASKED_FOLLOWED, client->asked);
	if (client->custom_names)
		tagged_bytes(out, TAG_CUSTOM_NAMES, client->custom_names,
			custom_names_size(client->custom_names));
	if (client->listener)
		write_listener(out, client->listener);
	if (client->proxy != PROXY_NONE)
		tagged_number(out, TAG_PROXY, client->proxy);
	statement_record_write_client(out, client);
	tagged_number(out, TAG_FLAGS,
		common_flags(link) | flag(client->notified, LINK_RECORD_NOTIFIED) |
			flag(client->step == CLIENT_STEP_SKIPPING, LINK_RECORD_SKIPPING) |
			flag(client->step == CLIENT_STEP_LISTENING, LINK_RECORD_LISTENING) |
			flag(client->step == CLIENT_STEP_FORGETTING, LINK_RECORD_FORGETTING) |
			flag(client->ring_full, LINK_RECORD_RING_FULL));
}

static void write_requests(struct buffer *out, const struct requests *requests)
{
	if (requests->count == 0)
		return;
	writer_int16(out, TAG_REQUESTS);
	writer_int32(out, 2 * requests->count);
	for (uint32_t i = 0; i < requests->count; i++) {
		const struct request *request = requests_at(requests, i);

		writer_byte(out, request->type);
		/* The other process does not have the words of the SET: it asks. */
		writer_byte(out, request->action & (uint8_t) ~(REQUEST_KNOWN | REQUEST_BARRED));
	}
}

static void write_session_state(struct buffer *out, const struct server_link *server)
{
	const session_topics suspected = (session_topics)(server->suspected |
		(server->changes_known ? TOPIC_SETTINGS : 0));

	tagged_number(out, TAG_SESSION_STATE, pool_knows_sessions(server->link.pool));
	if (suspected)
		tagged_number(out, TAG_SUSPECTED, suspected);
	if (!server->pins)
		return;
	tagged_number(out, TAG_PINS, server->pins);
	tagged_number(out, TAG_PINNED_AGE, age_of(&server->link, server->pinned_since));
	tagged_text(out, TAG_PINNED_BY, server->pinned_by);
}

void link_record_target(struct buffer *out, const struct database_config *config)
{
	writer_string(out, config->host ? config->host : "");
	writer_string(out, config->dbname ? config->dbname : "");
	writer_int32(out, (uint32_t)config->port);
	if (config->ports && strchr(config->ports, ','))
		writer_string(out, config->ports);
}

static void write_target(struct buffer *out, const struct database_config *config)
{
	struct buffer target = {0};

	link_record_target(&target, config);
	tagged_bytes(out, TAG_TARGET, target.data, target.length);
	out->failed = out->failed || target.failed;
	buffer_free(&target);
}

static void write_server(struct buffer *out, const struct server_link *server)
{
	write_state(out, &server->link, server_state_name(server_state(server)));
	tagged_text(out, TAG_DATABASE, server->link.pool->database->name);
	tagged_text(out, TAG_USER, server->link.pool->user->name);
	tagged_text(out, TAG_POOL_ROLE, target_session_name(server->link.pool->asked_role));
	if (server->cancel_key)
		tagged_bytes(out, TAG_KEY, server->cancel_key, server->cancel_key_length);
	write_requests(out, &server->requests);
	tagged_bytes(out, TAG_WHERE, &server->where, server->where_length);
	tagged_number(out, TAG_HOST, server->host);
	tagged_number(out, TAG_STATUS, (uint8_t)server->transaction_status);
	tagged_number(out, TAG_CLOSE_CAUSE, server->close_cause);
	write_target(out, server->link.pool->database->config);
	write_session_state(out, server);
	if (server->link.state == SERVER_LISTENING)
		write_listening_server(out, server);
	statement_record_write_server(out, server);
	tagged_number(out, TAG_FLAGS,
		common_flags(&server->link) |
			flag(server->copy != COPY_NONE, LINK_RECORD_COPYING_IN) |
			flag(server->copy == COPY_BOTH, LINK_RECORD_STREAMING) |
			flag(server->request_error != REQUEST_ERROR_NONE,
				LINK_RECORD_REQUEST_FAILED) |
			flag(server->request_error == REQUEST_ERROR_UNTIL_SYNC,
				LINK_RECORD_SKIPPING) |
			flag(server_is_syncing(server), LINK_RECORD_SETTING) |
			flag(server_has_gathered(server), LINK_RECORD_GATHERED) |
			flag(server->fresh, LINK_RECORD_FRESH) |
			flag(server->touched, LINK_RECORD_TOUCHED) |
			flag(server->close_needed, LINK_RECORD_CLOSE_NEEDED) |
			flag(server->dirty, LINK_RECORD_DIRTY) |
			flag(server->unnamed_passing, LINK_RECORD_UNNAMED_PASSING) |
			flag(server->awaits_bind, LINK_RECORD_AWAITS_BIND) |
			flag(server->altered || server->limits_asked > 0, LINK_RECORD_ALTERED) |
			flag(server->task == SERVER_TASK_WATCH_RESET, LINK_RECORD_RESET) |
			flag(server->task == SERVER_TASK_RESTORE, LINK_RECORD_RESTORING));
}

void link_record_write(struct buffer *out, uint8_t kind, const struct link *link)
{
	const size_t mark = tagged_begin(out, kind);

	write_common(out, link);
	if (link->kind == LINK_CLIENT)
		write_client(out, (const struct client_link *)link);
	else
		write_server(out, (const struct server_link *)link);
	tagged_end(out, mark);
}

/* --- reading ------------------------------------------------------------------------------ */

static void read_address(struct address *remote, const struct tagged_field *field)
{
	if (field->length == sizeof(remote->bytes))
		memcpy(remote->bytes, field->bytes, sizeof(remote->bytes));
}

static void read_field(struct link_record *out, const struct tagged_field *field)
{
	const struct tagged_span bytes = {field->bytes, field->length};

	switch ((enum link_tag)field->tag) {
#define NUMBER(tag, member)                                                                    \
	case tag:                                                                              \
		out->member = tagged_to_number(field);                                         \
		break;
#define TEXT(tag, member)                                                                      \
	case tag:                                                                              \
		out->member = tagged_to_text(field);                                           \
		break;
#define BYTES(tag, member)                                                                     \
	case tag:                                                                              \
		out->member = bytes;                                                           \
		break;
		NUMBER(TAG_HANDLE, handle)
		NUMBER(TAG_PEER, peer)
		NUMBER(TAG_ID, id)
		TEXT(TAG_STATE, state)
		TEXT(TAG_OPTIONS, options)
		TEXT(TAG_DATABASE, database)
		TEXT(TAG_USER, user)
		TEXT(TAG_POOL_USER, pool_user)
		TEXT(TAG_POOL_ROLE, pool_role)
		NUMBER(TAG_AGE, age)
		NUMBER(TAG_QUIET, quiet)
		NUMBER(TAG_QUERY_AGE, query_age)
		NUMBER(TAG_TRANSACTION_AGE, transaction_age)
		NUMBER(TAG_WAIT_AGE, wait_age)
		NUMBER(TAG_REMAINING, remaining)
		NUMBER(TAG_FLAGS, flags)
		NUMBER(TAG_PROTOCOL, protocol)
		BYTES(TAG_KEY, key)
		BYTES(TAG_HELD, held)
		BYTES(TAG_BACKLOG, backlog)
		BYTES(TAG_REQUESTS, requests)
		BYTES(TAG_WHERE, where)
		NUMBER(TAG_HOST, host)
		NUMBER(TAG_STATUS, status)
		BYTES(TAG_PARAMETERS, parameters)
		BYTES(TAG_FOLLOWED, followed)
		BYTES(TAG_ASKED, asked)
		BYTES(TAG_ASKED_FOLLOWED, asked_followed)
		BYTES(TAG_CHANNELS, channels)
		BYTES(TAG_MESSAGES, messages)
		NUMBER(TAG_CLOSE_CAUSE, close_cause)
		BYTES(TAG_TARGET, target)
		NUMBER(TAG_SUSPECTED, suspected)
		NUMBER(TAG_PINS, pins)
		NUMBER(TAG_PINNED_AGE, pinned_age)
		TEXT(TAG_PINNED_BY, pinned_by)
		BYTES(TAG_CUSTOM_NAMES, custom_names)
		NUMBER(TAG_SESSION_STATE, knowledge)
		NUMBER(TAG_PROXY, proxy)
#undef NUMBER
#undef TEXT
#undef BYTES
	case TAG_REPLICATION:
		out->replication = (enum startup_replication)tagged_to_number(field);
		break;
	case TAG_FAMILY:
		out->remote.family = (uint8_t)tagged_to_number(field);
		break;
	case TAG_PORT:
		out->remote.port = (uint16_t)tagged_to_number(field);
		break;
	case TAG_ADDRESS:
		read_address(&out->remote, field);
		break;
	}
}

/* The state's prefix and TAG_REPLICATION must agree on whether the link is for replication. */
static bool read_state(struct link_record *out)
{
	const size_t length = sizeof(replication_prefix) - 1;
	const bool is_marked = strncmp(out->state, replication_prefix, length) == 0;

	if (is_marked)
		out->state += length;
	return out->replication <= REPLICATION_PHYSICAL &&
		is_marked == (out->replication != REPLICATION_NONE);
}

bool link_record_read(struct reader *reader, enum link_kind kind, struct link_record *out)
{
	struct tagged_field field;

	*out = (struct link_record){.kind = kind};
	while (tagged_next(reader, &field)) {
		if (!statement_record_read(&out->statements, &field))
			read_field(out, &field);
	}
	return reader_done(reader) && out->handle != 0 && out->state && read_state(out);
}
