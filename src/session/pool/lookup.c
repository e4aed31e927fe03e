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

static struct lookup *find(const struct pool *pool, const struct lookup_kind *kind,
	const void *subject, const char *user)
{
	struct key key = {.kind = kind, .subject = subject};
	const size_t length = key_length(user);
	struct lookup *found = NULL;

	memcpy(key.user, user, strlen(user));
	HASH_FIND_BYHASHVALUE(by_key, pool->lookups_by_key, &key, length,
		hash_key(pool, &key, length), found);
	return found;
}

/* When out of memory, other logins do not find the look-up, and make their own. */
static void add_to_table(struct lookup *lookup)
{
	struct pool *pool = lookup->pool;
	const size_t length = key_length(lookup->user);

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

static struct lookup *create(struct pool *pool, const struct lookup_kind *kind,
	const void *subject, const char *user)
{
	const size_t length = strlen(user);
	struct lookup *lookup = calloc(1, sizeof(*lookup) + length + 1);

	if (!lookup)
		return NULL;
	TAILQ_INIT(&lookup->logins);
	lookup->pool = pool;
	lookup->kind = kind;
	lookup->subject = kind->ref ? kind->ref(subject) : subject;
	lookup->since = loop_now(pool->registry->loop);
	memcpy(lookup->user, user, length + 1);
	lookup->queued = true;
	TAILQ_INSERT_TAIL(&pool->lookups, lookup, in_queue);
	pool->lookups_waiting++;
	add_to_table(lookup);
	return lookup;
}

bool lookup_join(struct client_link *client, struct pool *pool, const struct lookup_kind *kind,
	const void *subject, const char *user)
{
	struct login *login = client->login;
	struct lookup *lookup = find(pool, kind, subject, user);

	if (!lookup)
		lookup = create(pool, kind, subject, user);
	if (!lookup)
		return false;
	TAILQ_INSERT_TAIL(&lookup->logins, login, in_lookup);
	login->lookup = lookup;
	login->queued_at = loop_now(pool->registry->loop);
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
	struct login *login;

	CHECK(lookup->queued);
	leave_queue(lookup);
	pool->lookups_running++;
	lookup->server = server;
	lookup->started = now;
	server->lookup = lookup;
	TAILQ_FOREACH (login, &lookup->logins, in_lookup) {
		login->queued += now - login->queued_at;
		login->queued_at = 0;
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
	struct login *login;

	detach_server(lookup);
	lookup->answered = false;
	lookup->queued = true;
	TAILQ_INSERT_HEAD(&pool->lookups, lookup, in_queue);
	pool->lookups_waiting++;
	TAILQ_FOREACH (login, &lookup->logins, in_lookup)
		login->queued_at = loop_now(pool->registry->loop);
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

static void detach_login(struct lookup *lookup, struct login *login)
{
	TAILQ_REMOVE(&lookup->logins, login, in_lookup);
	login->lookup = NULL;
	lookup->pool->looking_up--;
}

struct login *lookup_take_login(struct lookup *lookup)
{
	struct login *login = TAILQ_FIRST(&lookup->logins);

	if (login)
		detach_login(lookup, login);
	else
		free_lookup(lookup);
	return login;
}

struct server_link *lookup_remove_login(struct login *login)
{
	struct lookup *lookup = login->lookup;
	struct server_link *server = NULL;

	if (!lookup)
		return NULL;
	detach_login(lookup, login);
	/* A look-up that has ended is freed by lookup_take_login(). */
	if (!TAILQ_EMPTY(&lookup->logins) || (!lookup->queued && !lookup->server))
		return NULL;
	server = lookup->server;
	lookup_end(lookup);
	free_lookup(lookup);
	return server;
}
