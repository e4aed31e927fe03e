/* SPDX-License-Identifier: ISC */
#include "session/pool/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "crypt/keyed_hash.h"

/* --- the table by question ---------------------------------------------------------------- */

struct key {
	const struct lookup_kind *kind;
	const void *subject;
	char user[CLIENT_USER_NAME_MAX + 1];
};

static size_t key_length(const char *user)
{
	return offsetof(struct key, user) + strlen(user);
}

static unsigned hash_key(const struct pool *pool, const void *key, size_t length)
{
	return (unsigned)keyed_hash_of(&pool->registry->name_hash, key, length);
}

static struct lookup *find_key(const struct pool *pool, const void *key, size_t length)
{
	struct lookup *found = NULL;

	HASH_FIND_BYHASHVALUE(
		by_key, pool->lookups_by_key, key, length, hash_key(pool, key, length), found);
	return found;
}

/* For questions without a text. */
static struct lookup *find(const struct pool *pool, const struct lookup_question *question)
{
	struct key key = {.kind = question->kind, .subject = question->subject};

	memcpy(key.user, question->user, strlen(question->user));
	return find_key(pool, &key, key_length(question->user));
}

/* When out of memory, other askers do not find the look-up, and make their own. */
static void add_to_table(struct lookup *lookup)
{
	struct pool *pool = lookup->pool;
	const size_t length = lookup->key_length;

	HASH_ADD_KEYPTR_BYHASHVALUE(by_key, pool->lookups_by_key, &lookup->kind, length,
		hash_key(pool, &lookup->kind, length), lookup);
}

static void remove_from_table(struct lookup *lookup)
{
	if (lookup->by_key.tbl)
		HASH_DELETE(by_key, lookup->pool->lookups_by_key, lookup);
	lookup->by_key.tbl = NULL;
}

/* --- the queue ---------------------------------------------------------------------------- */

static void leave_queue(struct lookup *lookup)
{
	struct pool *pool = lookup->pool;

	remove_from_table(lookup);
	TAILQ_REMOVE(&pool->lookups, lookup, in_queue);
	pool->lookups_waiting--;
	pool_need_has_changed(pool);
	lookup->queued = false;
}

static struct lookup *create(struct pool *pool, const struct lookup_question *question)
{
	const size_t length = strlen(question->user);
	const size_t behind = question->text ? 1 + strlen(question->text) : 0;
	struct lookup *lookup = calloc(1, sizeof(*lookup) + length + behind + 1);

	if (!lookup)
		return NULL;
	TAILQ_INIT(&lookup->askers);
	lookup->pool = pool;
	lookup->kind = question->kind;
	lookup->subject = question->subject;
	lookup->key_length = key_length(question->user) + behind;
	lookup->since = loop_now(pool->registry->loop);
	memcpy(lookup->user, question->user, length + 1);
	if (behind > 0)
		lookup->text = memcpy(lookup->user + length + 1, question->text, behind);
	return lookup;
}

static void enqueue(struct lookup *lookup)
{
	struct pool *pool = lookup->pool;

	if (lookup->kind->ref)
		lookup->subject = lookup->kind->ref(lookup->subject);
	lookup->queued = true;
	TAILQ_INSERT_TAIL(&pool->lookups, lookup, in_queue);
	pool->lookups_waiting++;
	add_to_table(lookup);
}

/* Returns a queued look-up with this question, or a new one; NULL when out of memory. */
static struct lookup *find_or_create(struct pool *pool, const struct lookup_question *question)
{
	struct lookup *found = question->text ? NULL : find(pool, question), *created;

	if (found)
		return found;
	created = create(pool, question);
	if (!created)
		return NULL;
	/* A text may be long: its key is made with the look-up. */
	if (question->text)
		found = find_key(pool, &created->kind, created->key_length);
	if (!found) {
		enqueue(created);
		return created;
	}
	free(created);
	return found;
}

bool lookup_join(struct asker *asker, struct pool *pool, const struct lookup_question *question)
{
	struct lookup *lookup = find_or_create(pool, question);

	if (!lookup)
		return false;
	TAILQ_INSERT_TAIL(&lookup->askers, asker, in_lookup);
	asker->lookup = lookup;
	asker->queued_at = loop_now(pool->registry->loop);
	pool->looking_up++;
	return true;
}

struct lookup *lookup_next(const struct pool *pool)
{
	return pool_startable_lookups(pool) > 0 ? TAILQ_FIRST(&pool->lookups) : NULL;
}

/* --- start and end ------------------------------------------------------------------------ */

void lookup_start(struct lookup *lookup, struct server_link *server)
{
	struct pool *pool = lookup->pool;
	const usec_t now = loop_now(pool->registry->loop);
	struct asker *asker;

	CHECK(lookup->queued);
	leave_queue(lookup);
	pool->lookups_running++;
	lookup->server = server;
	lookup->started = now;
	server->lookup = lookup;
	TAILQ_FOREACH (asker, &lookup->askers, in_lookup) {
		asker->queued += now - asker->queued_at;
		asker->queued_at = 0;
	}
}

static void detach_server(struct lookup *lookup)
{
	lookup->pool->lookups_running--;
	lookup->server->lookup = NULL;
	lookup->server = NULL;
}

void lookup_requeue(struct lookup *lookup)
{
	struct pool *pool = lookup->pool;
	struct asker *asker;

	detach_server(lookup);
	lookup->answered = false;
	lookup->queued = true;
	TAILQ_INSERT_HEAD(&pool->lookups, lookup, in_queue);
	pool->lookups_waiting++;
	TAILQ_FOREACH (asker, &lookup->askers, in_lookup)
		asker->queued_at = loop_now(pool->registry->loop);
}

void lookup_end(struct lookup *lookup)
{
	if (lookup->queued)
		leave_queue(lookup);
	else if (lookup->server)
		detach_server(lookup);
}

static void free_lookup(struct lookup *lookup)
{
	credential_unref(lookup->credential);
	parameters_unref(lookup->canonical);
	if (lookup->kind->unref)
		lookup->kind->unref(lookup->subject);
	free(lookup);
}

static void detach_asker(struct lookup *lookup, struct asker *asker)
{
	TAILQ_REMOVE(&lookup->askers, asker, in_lookup);
	asker->lookup = NULL;
	lookup->pool->looking_up--;
}

struct asker *lookup_take_asker(struct lookup *lookup)
{
	struct asker *asker = TAILQ_FIRST(&lookup->askers);

	if (asker)
		detach_asker(lookup, asker);
	else
		free_lookup(lookup);
	return asker;
}

struct server_link *lookup_remove_asker(struct asker *asker)
{
	struct lookup *lookup = asker->lookup;
	struct server_link *server = NULL;

	if (!lookup)
		return NULL;
	detach_asker(lookup, asker);
	/* A look-up that has ended is freed by lookup_take_asker(). */
	if (!TAILQ_EMPTY(&lookup->askers) || (!lookup->queued && !lookup->server))
		return NULL;
	server = lookup->server;
	lookup_end(lookup);
	free_lookup(lookup);
	return server;
}
