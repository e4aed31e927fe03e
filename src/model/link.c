/* SPDX-License-Identifier: ISC */
#include "model/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/client_link.h"
#include "model/held.h"
#include "model/pool.h"
#include "model/registry.h"

enum {
	LINK_PREFIX_SIZE = 512,
	LINK_TEXT_SIZE = 1536,
	LINK_OWN_FACTS = 7,
};

const char *link_database_name(const struct link *link)
{
	const struct client_link *client = (const struct client_link *)link;

	if (link->pool && link->pool->database->peer_id > 0)
		return "(nodb)";
	if (link->pool)
		return link->pool->database->name;
	/* A client without a pool: counted_in_user means that its user is known. */
	if (link->kind == LINK_CLIENT && client->database && client->counted_in_user)
		return client->database->name;
	return "(nodb)";
}

const char *link_user_name(const struct link *link)
{
	const struct client_link *client = (const struct client_link *)link;

	if (link->kind == LINK_SERVER)
		return link->pool->database->peer_id > 0 ? "(nouser)" : link->pool->user->name;
	if (client->user)
		return client->user->name;
	return "(nouser)";
}

enum startup_replication link_replication(const struct link *link)
{
	return link->kind == LINK_CLIENT ? ((const struct client_link *)link)->replication
					 : ((const struct server_link *)link)->replication;
}

/* Write `db/user@address`, with the names escaped. */
static void write_place(const struct link *link, char *out, size_t size)
{
	char address[ADDRESS_TEXT_SIZE];
	char database[96], user[192];
	const char *name = link_database_name(link);

	if (link->pool && link->pool->database->peer_id > 0) {
		snprintf(out, size, "peer-%u@%s", link->pool->database->peer_id,
			address_text(&link->remote, address));
		return;
	}
	text_escape(database, sizeof(database), name, strlen(name));
	name = link_user_name(link);
	text_escape(user, sizeof(user), name, strlen(name));
	snprintf(out, size, "%s/%s@%s", database, user, address_text(&link->remote, address));
}

const char *link_prefix(const struct link *link, char *out, size_t size)
{
	const int length = snprintf(out, size,
		"%c-0x%llx: ", link->kind == LINK_CLIENT ? 'C' : 'S', link_handle(link));

	if ((size_t)length < size)
		write_place(link, out + length, size - (size_t)length);
	return out;
}

/* --- log lines ---------------------------------------------------------------------------- */

/* Prefix and facts of a log line, and the texts that they point to. */
struct description {
	char prefix[LINK_PREFIX_SIZE];
	char handle[32], host[ADDRESS_TEXT_SIZE];
	struct log_fact facts[LINK_OWN_FACTS + LINK_FACTS_MOST];
	struct log_subject subject;
};

static void add_fact(
	struct description *out, const char *name, const char *text, long long number)
{
	out->facts[out->subject.count++] = (struct log_fact){name, text, number};
}

static void add_own_facts(const struct link *link, struct description *out)
{
	const bool is_client = link->kind == LINK_CLIENT;

	snprintf(out->handle, sizeof(out->handle), "0x%llx", link_handle(link));
	address_host(&link->remote, out->host);
	add_fact(out, "side", is_client ? "client" : "server", 0);
	add_fact(out, "ptr", out->handle, 0);
	add_fact(out, "database", link_database_name(link), 0);
	add_fact(out, "user", link_user_name(link), 0);
	add_fact(out, "address", out->host, 0);
	add_fact(out, "port", NULL, link->remote.port);
	if (is_client && link->remote.family == AF_UNIX)
		add_fact(out, "peer_pid", NULL, link->remote.pid);
}

static const struct log_subject *describe(
	const struct link *link, const struct link_facts *more, struct description *out)
{
	link_prefix(link, out->prefix, sizeof(out->prefix));
	out->subject = (struct log_subject){.prefix = out->prefix,
		.facts = out->facts,
		.details = more ? more->details : NULL};
	if (log_has_facts) {
		add_own_facts(link, out);
		for (size_t i = 0; more && i < more->count; i++)
			out->facts[out->subject.count++] = more->facts[i];
	}
	return &out->subject;
}

/* Escape the whole text: much of it comes from clients and servers. */
__attribute__((format(printf, 2, 0))) static void format_escaped(
	char out[LINK_TEXT_SIZE], const char *format, va_list arguments)
{
	char text[LINK_TEXT_SIZE];

	vsnprintf(text, sizeof(text), format, arguments);
	text_escape(out, LINK_TEXT_SIZE, text, strlen(text));
}

__attribute__((format(printf, 4, 0))) static void log_about(const struct link *link,
	enum log_level level, const struct link_facts *facts, const char *format,
	va_list arguments)
{
	struct description description;
	char text[LINK_TEXT_SIZE];

	if (!log_enabled(level))
		return;
	format_escaped(text, format, arguments);
	log_write_about(level, describe(link, facts, &description), "%s", text);
}

void link_log(const struct link *link, enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_about(link, level, NULL, format, arguments);
	va_end(arguments);
}

void link_log_facts(const struct link *link, enum log_level level,
	const struct link_facts *facts, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_about(link, level, facts, format, arguments);
	va_end(arguments);
}

/* Write the subject of repeated lines: the address of a client, or the server of a pool. */
static void write_subject(const struct link *link, char out[LINK_PREFIX_SIZE])
{
	if (link->kind == LINK_CLIENT)
		address_host(&link->remote, out);
	else
		write_place(link, out, LINK_PREFIX_SIZE);
}

__attribute__((format(printf, 5, 0))) static void log_alike(const struct link *link,
	enum log_level level, const char *kind, int at_most, const char *format,
	va_list arguments)
{
	struct description description;
	char text[LINK_TEXT_SIZE], subject[LINK_PREFIX_SIZE];

	if (!log_enabled(level))
		return;
	format_escaped(text, format, arguments);
	write_subject(link, subject);
	log_write_repeated(level, describe(link, NULL, &description),
		&(struct log_likeness){.kind = kind, .about = subject, .at_most = at_most},
		"%s", text);
}

void link_log_repeated(const struct link *link, enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_alike(link, level, format, 0, format, arguments);
	va_end(arguments);
}

void link_log_kind(const struct link *link, enum log_level level, const char *kind, int at_most,
	const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_alike(link, level, kind, at_most, format, arguments);
	va_end(arguments);
}

/* --- held bytes --------------------------------------------------------------------------- */

bool held_is_crowded(const struct registry *registry)
{
	const struct process *process = registry->process;
	const uint64_t most = (uint64_t)process->settings->max_prepared_memory;
	const struct registry *each;
	uint64_t sum = 0;

	if (most == 0)
		return false;
	/* Other workers may change these counts meanwhile. */
	EACH_REGISTRY (each, process)
		sum += SHARED_GET(each->held_bytes);
	return sum + registry_statement_bytes(process) > most;
}

/* Returns NULL when out of memory. */
static uint8_t *held_take(struct registry *registry, uint32_t capacity)
{
	uint8_t *bytes =
		capacity == HELD_SMALL ? slab_take(&registry->helds) : malloc(capacity);

	if (bytes && capacity != HELD_SMALL)
		SHARED_OWN(registry->held_bytes, capacity);
	return bytes;
}

bool link_take_parameters(struct link *link, struct parameters *set)
{
	if (!set)
		return false;
	parameters_unref(link->parameters);
	link->parameters = set;
	return true;
}

bool link_make_room(struct link *link, size_t length)
{
	struct registry *registry = link_registry(link);
	const size_t wanted = link->held_length + length;
	uint32_t capacity = HELD_SMALL;
	uint8_t *bytes;

	if (wanted > link->held_capacity) {
		if (wanted > HELD_MAX)
			return false;
		while (capacity < wanted)
			capacity *= 2;
		bytes = held_take(registry, capacity);
		if (!bytes)
			return false;
		if (link->held_length)
			memcpy(bytes, link->held, link->held_length);
		held_free(registry, link->held, link->held_capacity);
		link->held = bytes;
		link->held_capacity = capacity;
	}
	return true;
}

bool link_hold(struct link *link, const void *data, size_t length)
{
	if (!link_make_room(link, length))
		return false;
	if (length)
		memcpy(link->held + link->held_length, data, length);
	link->held_length += (uint32_t)length;
	return true;
}

void held_free(struct registry *registry, uint8_t *bytes, uint32_t capacity)
{
	if (!bytes)
		return;
	if (capacity == HELD_SMALL) {
		slab_give(&registry->helds, bytes);
		return;
	}
	SHARED_OWN(registry->held_bytes, -(size_t)capacity);
	free(bytes);
}

void link_drop_held(struct link *link)
{
	held_free(link_registry(link), link->held, link->held_capacity);
	link->held = NULL;
	link->held_length = link->held_capacity = 0;
}

bool link_send(struct link *link, struct buffer *message)
{
	const bool sent = !message->failed &&
		stream_send_bytes(&link->stream, message->data, message->length) !=
			STREAM_SENT_NOT;

	buffer_free(message);
	return sent;
}

bool link_set_parameter(struct link *link, unsigned index, const char *value)
{
	struct registry *registry = link_registry(link);

	return link_take_parameters(
		link, parameters_with(registry->parameters, link->parameters, index, value));
}
