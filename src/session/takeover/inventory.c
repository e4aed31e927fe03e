/* SPDX-License-Identifier: ISC */
#include "session/takeover/inventory.h"

#include <string.h>
#include <unistd.h>

#include "net/listener.h"
#include "session/notify/listening_takeover.h"
#include "session/takeover/count_record.h"
#include "session/takeover/link_record.h"
#include "session/takeover/parameter_record.h"

struct inventory {
	const struct registry *registry;
	inventory_function *take;
	void *context;
	struct buffer record; /* the present one */
	bool failed;
};

/* --- which links are taken over ----------------------------------------------------------- */

static bool is_plain(const struct link *link)
{
	return stream_is_open(&link->stream) && link->stream.fd >= 0 && !link->stream.tls;
}

static bool includes_client(const struct client_link *client)
{
	switch (client_state(client)) {
	case CLIENT_GREETING:
		return client->link.held_length == 0;
	case CLIENT_IDLE:
		/* The old process has the answer for it. */
		return client->step != CLIENT_STEP_ASKED;
	case CLIENT_WELCOMING:
	case CLIENT_WAITING:
	case CLIENT_LAUNCHING:
	case CLIENT_PAIRED:
		return true;
	case CLIENT_AUTHENTICATING:
	case CLIENT_LOOKING_UP:
	case CLIENT_CANCEL_WAITING:
	case CLIENT_CANCEL_SENT:
	case CLIENT_CONSOLE:
	case CLIENT_CLOSED:
	case CLIENT_STATES:
		break;
	}
	return false;
}

static bool includes_server(const struct server_link *server)
{
	const enum server_state state = server_state(server);

	if (state == SERVER_LISTENING)
		return listening_takeover_is_settled(server);
	return state == SERVER_IDLE || state == SERVER_PAIRED || state == SERVER_STALE ||
		state == SERVER_RESETTING || state == SERVER_CHECKING;
}

/* A batch that is being replayed is not written, so its client and server stay. */
static bool is_replaying(const struct link *link)
{
	const struct link *server = link->kind == LINK_SERVER ? link : link->peer;

	return server && ((const struct server_link *)server)->batch_progress == BATCH_FAILED;
}

bool inventory_includes(const struct link *link)
{
	if (!is_plain(link) || (link->peer && !is_plain(link->peer)) || is_replaying(link))
		return false;
	return link->kind == LINK_CLIENT ? includes_client((const struct client_link *)link)
					 : includes_server((const struct server_link *)link);
}

/* --- records ------------------------------------------------------------------------------ */

/* Pass the record on, and clear it for the next one. */
static void emit(struct inventory *inventory, int fd)
{
	if (inventory->record.failed)
		inventory->failed = true;
	if (!inventory->failed)
		inventory->failed =
			!inventory->take(inventory->context, &inventory->record, fd);
	buffer_clear(&inventory->record);
}

static uint64_t age_of(const struct registry *registry, usec_t since)
{
	return since == 0 ? 0 : (uint64_t)(loop_now(registry->loop) - since) + 1;
}

static void write_process(struct inventory *inventory)
{
	const struct registry *registry = inventory->registry;
	struct buffer *out = &inventory->record;
	const size_t mark = tagged_begin(out, INVENTORY_PROCESS);

	tagged_text(out, INVENTORY_VERSION_TEXT, registry->process->version);
	tagged_number(out, INVENTORY_LAST_ID, registry->process->last_id);
	tagged_number(out, INVENTORY_LAST_STATEMENT_ID, registry->process->last_statement_id);
	if (registry->process->settings->peer_id == 0)
		tagged_number(out, INVENTORY_PEER_ID, process_peer_id(registry->process));
	tagged_number(out, INVENTORY_PROCESS_ID, (uint64_t)getpid());
	tagged_number(out, INVENTORY_CLIENTS,
		registry->process->limits.admitted - registry->process->limits.consoles);
	tagged_number(out, INVENTORY_WATCHDOG, (uint64_t)registry->process->watchdog);
	tagged_number(out, INVENTORY_PAUSED, registry->process->operation == OPERATION_PAUSED);
	tagged_number(
		out, INVENTORY_STATS_NEWER_AGE, age_of(registry, registry->stats_newer_at));
	tagged_number(
		out, INVENTORY_STATS_OLDER_AGE, age_of(registry, registry->stats_older_at));
	count_record_write_process(out, INVENTORY_COUNTS, registry);
	tagged_end(out, mark);
	emit(inventory, -1);
}

static void write_databases(struct inventory *inventory)
{
	struct buffer *out = &inventory->record;
	const struct database *database, *next;

	HASH_ITER (by_name, inventory->registry->process->directory.databases, database, next) {
		const size_t mark = tagged_begin(out, INVENTORY_DATABASE);

		tagged_text(out, INVENTORY_NAME, database->name);
		tagged_number(out, INVENTORY_PAUSED, database->paused);
		tagged_number(out, INVENTORY_DISABLED, database->disabled);
		count_record_write_database(out, INVENTORY_COUNTS, database);
		tagged_end(out, mark);
		emit(inventory, -1);
	}
}

static void write_client_key(struct buffer *out, const struct user_keys *keys)
{
	if (keys && keys->client_key_known)
		tagged_bytes(out, INVENTORY_CLIENT_KEY, keys->keys.client_key, SCRAM_KEY_SIZE);
}

static bool has_client_key(const struct user *user)
{
	return user->keys && user->keys->client_key_known;
}

/* Has the user of this name a client key in an earlier registry, too? It is written once. */
static bool is_written(const struct registry *registry, const char *name)
{
	for (unsigned i = 0; i < registry->number; i++) {
		struct registry *other = registry->process->registries[i];
		const struct user *user = NULL;
		const size_t length = strlen(name);
		const unsigned hash = (unsigned)keyed_hash_of(&other->name_hash, name, length);

		HASH_FIND_BYHASHVALUE(by_name, other->users, name, length, hash, user);
		if (user && has_client_key(user))
			return true;
	}
	return false;
}

/* Client keys, which clients have proved: they cannot be derived from the stored secrets. */
static void write_users(struct inventory *inventory, const struct registry *registry)
{
	struct buffer *out = &inventory->record;
	const struct user *user, *next;

	HASH_ITER (by_name, registry->users, user, next) {
		size_t mark;

		if (!has_client_key(user) || is_written(registry, user->name))
			continue;
		mark = tagged_begin(out, INVENTORY_USER);
		tagged_text(out, INVENTORY_NAME, user->name);
		write_client_key(out, user->keys);
		tagged_end(out, mark);
		emit(inventory, -1);
	}
}

static void write_totals(struct buffer *out, const struct totals *totals)
{
	const uint64_t numbers[] = {totals->assignments, totals->transactions, totals->queries,
		totals->received, totals->sent, totals->transaction_time, totals->query_time,
		totals->wait_time, totals->client_parses, totals->server_parses, totals->binds};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		writer_int64(out, numbers[i]);
}

static void write_stats(struct buffer *out, const struct stats *stats)
{
	struct buffer numbers = {0};

	write_totals(&numbers, &stats->current);
	write_totals(&numbers, &stats->newer);
	write_totals(&numbers, &stats->older);
	tagged_bytes(out, INVENTORY_STATS, numbers.data, numbers.length);
	buffer_clear(&numbers);
	writer_int64(&numbers, stats->current.client_logins);
	writer_int64(&numbers, stats->newer.client_logins);
	writer_int64(&numbers, stats->older.client_logins);
	tagged_bytes(out, INVENTORY_CLIENT_LOGINS, numbers.data, numbers.length);
	out->failed = out->failed || numbers.failed;
	buffer_free(&numbers);
}

static void write_pool(struct inventory *inventory, const struct pool *pool)
{
	struct buffer *out = &inventory->record;
	const struct credential *learned = pool->credential;
	const size_t mark = tagged_begin(out, INVENTORY_POOL);

	tagged_text(out, INVENTORY_NAME, pool->database->name);
	tagged_text(out, INVENTORY_USER_NAME, pool->user->name);
	tagged_text(out, INVENTORY_ROLE, target_session_name(pool->asked_role));
	write_stats(out, &pool->stats);
	count_record_write_pool(out, INVENTORY_COUNTS, pool);
	if (pool->auto_size > 0)
		tagged_number(out, INVENTORY_AUTO_SIZE, (uint64_t)pool->auto_size);
	tagged_number(out, INVENTORY_LIFETIME_CLOSE_AGE,
		age_of(pool->registry, pool->last_lifetime_close));
	if (learned) {
		tagged_text(out, INVENTORY_SECRET, learned->secret);
		tagged_number(out, INVENTORY_IS_PASSWORD, learned->is_password);
		write_client_key(out, learned->keys);
	}
	if (pool->welcome) {
		parameter_record_write(
			out, INVENTORY_WELCOME, pool->registry->parameters, pool->welcome);
		tagged_bytes(out, INVENTORY_WELCOME_HEAD, pool->welcome_head.data,
			pool->welcome_head.length);
	}
	tagged_end(out, mark);
	emit(inventory, -1);
}

static void write_listeners(struct inventory *inventory)
{
	struct buffer *out = &inventory->record;
	const struct listeners *set = inventory->registry->process->listeners;
	const struct listener *listener = NULL;

	while (set && (listener = listeners_next(set, listener)) != NULL) {
		const size_t mark = tagged_begin(out, INVENTORY_LISTENER);

		if (listener->is_unix)
			tagged_text(out, INVENTORY_PATH, listener->path);
		if (listener->is_passed)
			tagged_number(out, INVENTORY_MANAGERS, INVENTORY_MANAGERS_CLIENTS);
		tagged_end(out, mark);
		emit(inventory, listener->fd);
	}
}

void inventory_metrics(struct buffer *out)
{
	const size_t mark = tagged_begin(out, INVENTORY_LISTENER);

	tagged_number(out, INVENTORY_MANAGERS, INVENTORY_MANAGERS_METRICS);
	tagged_end(out, mark);
}

unsigned inventory_managers_of(const void *body, size_t length)
{
	struct tagged_field field;
	struct reader reader;

	reader_init(&reader, (const uint8_t *)body + 1, length - 1);
	while (tagged_next(&reader, &field)) {
		if (field.tag == INVENTORY_MANAGERS)
			return (unsigned)tagged_to_number(&field);
	}
	return 0;
}

/*
 * Each statement once, however many links use it. Several workers may have the same text, each with a
 * number of its own or, after a takeover, with the same one.
 */
static void write_statements(struct inventory *inventory, const struct registry *registry)
{
	struct buffer *out = &inventory->record;
	const struct statement *statement, *next;

	HASH_ITER (by_content, registry->statements.by_content, statement, next) {
		size_t mark;

		if (statement->holders == 0 || inventory->failed)
			continue;
		mark = tagged_begin(out, INVENTORY_STATEMENT);
		tagged_number(out, INVENTORY_STATEMENT_ID, statement->id);
		tagged_bytes(out, INVENTORY_CONTENT, statement->content, statement->length);
		tagged_number(out, INVENTORY_GENERATION, statement->generation);
		tagged_number(out, INVENTORY_PARSES, statement->parses);
		tagged_number(out, INVENTORY_BINDS, statement->binds);
		tagged_end(out, mark);
		emit(inventory, -1);
	}
}

static void write_links(
	struct inventory *inventory, const struct link_list *list, enum inventory_kind kind)
{
	const struct link *link;

	TAILQ_FOREACH (link, list, place) {
		if (!inventory_includes(link) || inventory->failed)
			continue;
		link_record_write(&inventory->record, (uint8_t)kind, link);
		emit(inventory, link->stream.fd);
	}
}

static void write_links_of(struct inventory *inventory, const struct pool *pool)
{
	write_links(inventory, &pool->clients, INVENTORY_CLIENT);
	write_links(inventory, &pool->waiting, INVENTORY_CLIENT);
	write_links(inventory, &pool->welcoming, INVENTORY_CLIENT);
	for (unsigned i = 0; i < SERVER_LISTS; i++)
		write_links(inventory, &pool->servers[i], INVENTORY_SERVER);
}

bool inventory_write(const struct registry *registry, inventory_function *take, void *context)
{
	struct inventory inventory = {.registry = registry, .take = take, .context = context};
	const struct registry *each;
	const struct pool *pool;

	buffer_init_secret(&inventory.record);
	write_process(&inventory);
	write_databases(&inventory);
	EACH_REGISTRY (each, registry->process)
		write_users(&inventory, each);
	write_listeners(&inventory);
	EACH_REGISTRY (each, registry->process)
		write_statements(&inventory, each);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		write_pool(&inventory, pool);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (!pool->database->console)
			write_links_of(&inventory, pool);
	}
	EACH_REGISTRY (each, registry->process)
		write_links(&inventory, &each->logins, INVENTORY_CLIENT);
	buffer_wipe(&inventory.record);
	return !inventory.failed;
}
