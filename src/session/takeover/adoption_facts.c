/* SPDX-License-Identifier: ISC */
#include "session/takeover/adoption_facts.h"

#include <limits.h>
#include <string.h>

#include "session/pool/peer_discovery.h"
#include "session/takeover/count_record.h"
#include "session/takeover/inventory.h"
#include "session/takeover/parameter_record.h"
#include "wire/tagged.h"

usec_t adoption_facts_moment(const struct registry *registry, uint64_t age)
{
	const usec_t now = loop_now(registry->loop);

	if (age == 0)
		return 0;
	return age < (uint64_t)now ? now - (usec_t)age : 1;
}

struct registry *adoption_facts_home(struct registry *registry, const char *database_name)
{
	struct process *process = registry->process;
	struct registry *home = process->workers > 1 && database_name
		? directory_home_of(process, database_name)
		: NULL;

	return home ? home : registry;
}

struct pool *adoption_facts_pool(struct registry *registry, const char *database_name,
	const char *user_name, const char *role)
{
	enum target_session asked = TARGET_INHERIT;

	struct database *database =
		database_name ? registry_open_database(registry, database_name, NULL) : NULL;
	struct user *user = database && !database->console && user_name
		? registry_open_user(registry, user_name)
		: NULL;

	/* A word that only the other version knows is as none. */
	if (role && !target_session_of(role, &asked))
		asked = TARGET_INHERIT;
	return user ? registry_open_pool(registry, database, user, asked) : NULL;
}

/* The fields of all records but those of links. They point into the record. */
struct facts {
	const char *name, *user, *secret, *role;
	struct tagged_span client_key, welcome, head, stats, logins, counts;
	uint64_t last_id, last_statement, paused, disabled, is_password, newer_age, older_age,
		lifetime_age, peer_id, process_id, watchdog, auto_size, clients;
};

static bool read_facts(struct reader *reader, struct facts *out)
{
	struct tagged_field field;

	while (tagged_next(reader, &field)) {
		const struct tagged_span bytes = {field.bytes, field.length};

		switch ((enum inventory_tag)field.tag) {
		case INVENTORY_LAST_ID:
			out->last_id = tagged_to_number(&field);
			break;
		case INVENTORY_LAST_STATEMENT_ID:
			out->last_statement = tagged_to_number(&field);
			break;
		case INVENTORY_PEER_ID:
			out->peer_id = tagged_to_number(&field);
			break;
		case INVENTORY_PROCESS_ID:
			out->process_id = tagged_to_number(&field);
			break;
		case INVENTORY_CLIENTS:
			out->clients = tagged_to_number(&field);
			break;
		case INVENTORY_WATCHDOG:
			out->watchdog = tagged_to_number(&field);
			break;
		case INVENTORY_PAUSED:
			out->paused = tagged_to_number(&field);
			break;
		case INVENTORY_NAME:
			out->name = tagged_to_text(&field);
			break;
		case INVENTORY_DISABLED:
			out->disabled = tagged_to_number(&field);
			break;
		case INVENTORY_USER_NAME:
			out->user = tagged_to_text(&field);
			break;
		case INVENTORY_ROLE:
			out->role = tagged_to_text(&field);
			break;
		case INVENTORY_AUTO_SIZE:
			out->auto_size = tagged_to_number(&field);
			break;
		case INVENTORY_CLIENT_KEY:
			out->client_key = bytes;
			break;
		case INVENTORY_SECRET:
			out->secret = tagged_to_text(&field);
			break;
		case INVENTORY_IS_PASSWORD:
			out->is_password = tagged_to_number(&field);
			break;
		case INVENTORY_WELCOME:
			out->welcome = bytes;
			break;
		case INVENTORY_WELCOME_HEAD:
			out->head = bytes;
			break;
		case INVENTORY_STATS:
			out->stats = bytes;
			break;
		case INVENTORY_CLIENT_LOGINS:
			out->logins = bytes;
			break;
		case INVENTORY_COUNTS:
			out->counts = bytes;
			break;
		case INVENTORY_STATS_NEWER_AGE:
			out->newer_age = tagged_to_number(&field);
			break;
		case INVENTORY_STATS_OLDER_AGE:
			out->older_age = tagged_to_number(&field);
			break;
		case INVENTORY_LIFETIME_CLOSE_AGE:
			out->lifetime_age = tagged_to_number(&field);
			break;
		case INVENTORY_VERSION_TEXT:
		case INVENTORY_PATH:
		case INVENTORY_MANAGERS:
		case INVENTORY_STATEMENT_ID:
		case INVENTORY_CONTENT:
		case INVENTORY_GENERATION:
		case INVENTORY_PARSES:
		case INVENTORY_BINDS:
			break;
		}
	}
	return reader_done(reader);
}

static void adopt_process(struct registry *registry, const struct facts *facts)
{
	if (registry->process->watchdog == 0 && facts->watchdog <= INT64_MAX)
		registry->process->watchdog = (usec_t)facts->watchdog;
	if (facts->process_id <= INT_MAX)
		registry->process->old_process = (pid_t)facts->process_id;
	if (facts->clients <= UINT_MAX)
		registry->process->old_clients = (unsigned)facts->clients;
	if (facts->last_id > registry->process->last_id)
		registry->process->last_id = facts->last_id;
	statement_skip_ids(&registry->statements, facts->last_statement);
	peer_discovery_keep_id(registry, facts->peer_id);
	if (facts->paused)
		registry->process->operation = OPERATION_PAUSED;
	registry->process->operation_at = loop_now(registry->loop);
	registry->stats_newer_at = adoption_facts_moment(registry, facts->newer_age);
	registry->stats_older_at = adoption_facts_moment(registry, facts->older_age);
	count_record_add_process(registry, facts->counts.at, facts->counts.length);
}

/* The registry is the home of the database, also in the functions below. */
static void adopt_database(struct registry *registry, const struct facts *facts)
{
	struct database *database =
		facts->name ? registry_open_database(registry, facts->name, NULL) : NULL;

	if (!database)
		return;
	count_record_add_database(database, facts->counts.at, facts->counts.length);
	if (database->console)
		return;
	database->paused = facts->paused != 0;
	database->paused_at = loop_now(registry->loop);
	database->disabled = facts->disabled != 0;
}

/* Store a client key with the keys of a secret, if it belongs to this secret. */
static void take_client_key(struct user_keys *keys, const uint8_t *client_key)
{
	if (!keys || !keys->verifier_known ||
		!scram_secret_has_client_key(&keys->verifier, client_key))
		return;
	memcpy(keys->keys.client_key, client_key, SCRAM_KEY_SIZE);
	memcpy(keys->keys.stored_key, keys->verifier.stored_key, SCRAM_KEY_SIZE);
	memcpy(keys->keys.server_key, keys->verifier.server_key, SCRAM_KEY_SIZE);
	keys->client_key_known = true;
}

static const uint8_t *client_key_of(const struct facts *facts)
{
	return facts->client_key.length == SCRAM_KEY_SIZE ? facts->client_key.at : NULL;
}

static void adopt_user(struct registry *registry, const char *name, const uint8_t *client_key)
{
	struct user *user = name ? registry_find_user(registry, name) : NULL;

	if (user && user->secret && client_key)
		take_client_key(user_keys(user), client_key);
}

/* Any worker may need the key: it is of a user, whose databases have different homes. */
static void adopt_user_everywhere(
	const struct process *process, const char *name, const uint8_t *client_key)
{
	struct registry *each;

	EACH_REGISTRY (each, process)
		adopt_user(each, name, client_key);
}

static void adopt_credential(
	struct pool *pool, const char *secret, bool is_password, const uint8_t *client_key)
{
	struct credential *credential = credential_new(secret, strlen(secret));

	if (!credential)
		return;
	credential->is_password = is_password;
	if (client_key)
		take_client_key(credential_keys(credential), client_key);
	pool_set_credential(pool, credential);
	credential_unref(credential);
}

static uint64_t read_number(struct reader *reader)
{
	const uint64_t high = reader_int32(reader);

	return high << 32 | reader_int32(reader);
}

static void read_totals(struct reader *reader, struct totals *totals)
{
	uint64_t *const numbers[] = {&totals->assignments, &totals->transactions,
		&totals->queries, &totals->received, &totals->sent, &totals->transaction_time,
		&totals->query_time, &totals->wait_time, &totals->client_parses,
		&totals->server_parses, &totals->binds};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		*numbers[i] = read_number(reader);
}

static void adopt_stats(struct stats *stats, const struct tagged_span *bytes)
{
	struct stats adopted = {0};
	struct reader reader;

	reader_init(&reader, bytes->at, bytes->length);
	read_totals(&reader, &adopted.current);
	read_totals(&reader, &adopted.newer);
	read_totals(&reader, &adopted.older);
	if (reader_done(&reader))
		stats_add(stats, &adopted);
}

/* An old process of an earlier version has not counted them. */
static void adopt_logins(struct stats *stats, const struct tagged_span *bytes)
{
	struct stats adopted = {0};
	struct reader reader;

	reader_init(&reader, bytes->at, bytes->length);
	adopted.current.client_logins = read_number(&reader);
	adopted.newer.client_logins = read_number(&reader);
	adopted.older.client_logins = read_number(&reader);
	if (reader_done(&reader))
		stats_add(stats, &adopted);
}

static void adopt_welcome(struct pool *pool, const struct facts *facts)
{
	if (pool->welcome || facts->head.length == 0)
		return;
	buffer_clear(&pool->welcome_head);
	if (!buffer_append(&pool->welcome_head, facts->head.at, facts->head.length)) {
		buffer_free(&pool->welcome_head);
		return;
	}
	pool->welcome = parameter_record_read(pool->registry->parameters, &facts->welcome);
}

static void adopt_pool(struct registry *registry, const struct facts *facts)
{
	struct pool *pool;

	if (facts->name && strcmp(facts->name, registry->console_pool->database->name) == 0)
		pool = registry->console_pool;
	else
		pool = adoption_facts_pool(registry, facts->name, facts->user, facts->role);
	if (!pool)
		return;
	adopt_stats(&pool->stats, &facts->stats);
	adopt_logins(&pool->stats, &facts->logins);
	count_record_add_pool(pool, facts->counts.at, facts->counts.length);
	/* Until its servers are asked anew: else those beyond the least size would be closed. */
	if (pool->sizing && facts->auto_size <= INT_MAX)
		pool->auto_size = (int)facts->auto_size;
	pool->last_lifetime_close = adoption_facts_moment(registry, facts->lifetime_age);
	if (facts->secret)
		adopt_credential(pool, facts->secret, facts->is_password, client_key_of(facts));
	adopt_welcome(pool, facts);
}

void adoption_facts_secret(struct registry *registry, const char *database, const char *user,
	const char *secret, const uint8_t client_key[SCRAM_KEY_SIZE])
{
	struct registry *home = adoption_facts_home(registry, database);
	const struct user *known = registry_find_user(home, user);
	struct pool *pool;

	if (!secret || (known && known->secret)) {
		adopt_user(home, user, client_key);
		return;
	}
	pool = adoption_facts_pool(home, database, user, NULL);
	if (pool && !pool->credential && !pool->database->config->user)
		adopt_credential(pool, secret, false, client_key);
}

bool adoption_facts_take(struct registry *registry, uint8_t kind, struct reader *reader)
{
	struct facts facts = {0};

	if (!read_facts(reader, &facts))
		return false;
	switch (kind) {
	case INVENTORY_PROCESS:
		adopt_process(registry, &facts);
		break;
	case INVENTORY_DATABASE:
		adopt_database(adoption_facts_home(registry, facts.name), &facts);
		break;
	case INVENTORY_USER:
		adopt_user_everywhere(registry->process, facts.name, client_key_of(&facts));
		break;
	case INVENTORY_POOL:
		adopt_pool(adoption_facts_home(registry, facts.name), &facts);
		break;
	default: /* a kind of a later version */
		break;
	}
	return true;
}
