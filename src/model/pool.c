/* SPDX-License-Identifier: ISC */
#include "model/pool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/registry.h"
#include "wire/pin_causes.h"

static int configured_size(const struct pool *pool)
{
	const struct user_config *user = pool->user->config;

	if (user && user->pool_size != POOL_SIZE_INHERIT)
		return user->pool_size;
	return database_configured_size(pool->database, pool->registry->process->settings);
}

bool pool_sizes_itself(const struct pool *pool)
{
	return configured_size(pool) == POOL_SIZE_AUTO;
}

int pool_size(const struct pool *pool)
{
	const int size = configured_size(pool);

	if (size != POOL_SIZE_AUTO)
		return size;
	return pool->auto_size > 0 ? pool->auto_size : SIZING_LEAST;
}

int pool_reserve_size(const struct pool *pool)
{
	const struct user_config *user = pool->user->config;

	if (user && user->reserve_pool_size >= 0)
		return user->reserve_pool_size;
	return database_reserve_pool_size(pool->database, pool->registry->process->settings);
}

int pool_min_size(const struct pool *pool)
{
	return database_min_pool_size(pool->database, pool->registry->process->settings);
}

static unsigned weight_of(const struct pool *pool)
{
	const struct user_config *user = pool->user->config;
	const int weight = user && user->pool_weight > 0 ? user->pool_weight
							 : pool->database->config->pool_weight;

	return weight > 0 ? (unsigned)weight : 1;
}

int pool_max_waiters(const struct pool *pool)
{
	const struct user_config *user = pool->user->config;

	if (user && user->max_pool_waiters >= 0)
		return user->max_pool_waiters;
	if (pool->database->config->max_pool_waiters >= 0)
		return pool->database->config->max_pool_waiters;
	return pool->registry->process->settings->max_pool_waiters;
}

static enum pool_mode mode_of(const struct pool *pool)
{
	const struct user_config *user = pool->user->config;

	if (pool->database->console)
		return POOL_MODE_STATEMENT;
	if (user && user->pool_mode != POOL_MODE_INHERIT)
		return user->pool_mode;
	if (pool->database->config->pool_mode != POOL_MODE_INHERIT)
		return pool->database->config->pool_mode;
	return pool->registry->process->settings->pool_mode;
}

enum target_session pool_target_session(const struct pool *pool)
{
	return pool->asked_role != TARGET_INHERIT
		? pool->asked_role
		: database_target_session(pool->database, pool->registry->process->settings);
}

enum session_state pool_configured_session_state(const struct pool *pool)
{
	const struct user_config *user = pool->user->config;

	if (user && user->session_state != SESSION_STATE_INHERIT)
		return user->session_state;
	if (pool->database->config->session_state != SESSION_STATE_INHERIT)
		return pool->database->config->session_state;
	return pool->registry->process->settings->session_state;
}

static enum session_state session_state_of_pool(const struct pool *pool)
{
	if (pool->mode == POOL_MODE_SESSION || pool->database->console)
		return SESSION_STATE_IGNORE;
	return pool_configured_session_state(pool);
}

enum session_knowledge pool_knows_sessions(const struct pool *pool)
{
	switch (pool->session_state) {
	case SESSION_STATE_IGNORE:
		return SESSIONS_UNKNOWN;
	case SESSION_STATE_WARN:
		return SESSIONS_SET;
	case SESSION_STATE_INHERIT:
	case SESSION_STATE_ERROR:
	case SESSION_STATE_FOLLOW:
		break;
	}
	return pool_watches_sequences(pool) ? SESSIONS_BARE : SESSIONS_KNOWN;
}

/* The sessions of replication are never used again, and no client runs in those that listen. */
static void retire_unknown(struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		if (!server_of(link)->replication && !server_of(link)->listens &&
			!server_of(link)->watches)
			server_retire(server_of(link), SERVER_CLOSED_RELOAD);
	}
}

bool pool_watches_functions(const struct pool *pool)
{
	return pool->session_state != SESSION_STATE_IGNORE &&
		pool->registry->process->settings->session_functions_refresh > 0;
}

void pool_choose_rules(struct pool *pool)
{
	const bool calls = pool_watches_functions(pool) &&
		session_functions_are_watched(&pool->database->functions);
	const bool watched = calls || pool_watches_sequences(pool) ||
		pool->session_state == SESSION_STATE_ERROR;

	pool->pairing = (uint8_t)(watched ? CLIENT_WATCHED : (int)pool->mode);
}

/* A RELOAD is a reason to ask again. Out of memory: its servers are not asked. */
static void reconfigure_sizing(struct pool *pool)
{
	if (!pool_sizes_itself(pool)) {
		free(pool->sizing);
		pool->sizing = NULL;
		pool->auto_size = 0;
		return;
	}
	if (!pool->sizing)
		pool->sizing = calloc(1, sizeof(*pool->sizing));
	if (pool->sizing)
		pool->sizing->due = true;
	SHARED_SET(pool->registry->process->sizes_pools, true);
}

void pool_reconfigure(struct pool *pool)
{
	const enum session_knowledge known = pool_knows_sessions(pool);
	const struct settings *settings = pool->registry->process->settings;
	const int least = pool_min_size(pool);
	const usec_t lifetime = database_server_lifetime(pool->database, settings);

	pool->mode = mode_of(pool);
	pool->session_state = session_state_of_pool(pool);
	pin_causes_read(settings->pin_causes, &pool->pin_causes);
	/* What is known of texts may have been found by other settings. */
	pool->database->functions.version =
		directory_next_functions(&pool->registry->process->directory);
	if (pool_knows_sessions(pool) > known)
		retire_unknown(pool);
	pool_choose_rules(pool);
	reconfigure_sizing(pool);
	pool->lifetime_least = lifetime - lifetime / 10;
	if (pool->wait.cap)
		pool_needs_work(pool);
	cap_configure_pool(pool, least > 0 ? (unsigned)least : 0, weight_of(pool));
}

const char *pool_secret(const struct pool *pool)
{
	return pool->credential ? pool->credential->secret : pool->user->secret;
}

const struct user_keys *pool_keys(const struct pool *pool)
{
	return pool->credential ? pool->credential->keys : pool->user->keys;
}

void pool_set_credential(struct pool *pool, struct credential *credential)
{
	struct credential *old = pool->credential;

	pool->credential = credential ? credential_ref(credential) : NULL;
	credential_unref(old);
}

bool pool_is_forced(const struct pool *pool)
{
	const char *forced = pool->database->config->user;

	return forced && strcmp(forced, pool->user->name) == 0;
}

bool pool_has_clients(const struct pool *pool)
{
	return !TAILQ_EMPTY(&pool->clients) || !TAILQ_EMPTY(&pool->waiting) ||
		!TAILQ_EMPTY(&pool->welcoming) || pool->looking_up > 0;
}

unsigned pool_servers(const struct pool *pool)
{
	unsigned all = 0;

	for (unsigned i = 0; i < SERVERS_LISTENING; i++)
		all += pool->server_count[i];
	return all - pool->watch_logins;
}

unsigned pool_logins(const struct pool *pool)
{
	return pool->server_count[SERVERS_LOGIN] - pool->watch_logins;
}

bool pool_has_servers(const struct pool *pool)
{
	return pool_servers(pool) + pool->server_count[SERVERS_LISTENING] +
		pool->server_count[SERVERS_WATCHING] + pool->watch_logins >
		0;
}

unsigned pool_connected_servers(const struct pool *pool)
{
	return pool_servers(pool) - pool_logins(pool) -
		pool->server_count[SERVERS_ACTIVE_CANCEL];
}

/*
 * Returns how many look-ups may run at the same time: a quarter of the pool size, if it has
 * one.
 */
static unsigned lookups_allowed(const struct pool *pool)
{
	enum { LOOKUPS_OF_UNLIMITED_POOL = 8 };
	const int size = pool_size(pool);

	if (size <= 0)
		return LOOKUPS_OF_UNLIMITED_POOL;
	return size < 4 ? 1 : (unsigned)size / 4;
}

unsigned pool_share_of_lookups(const struct pool *pool)
{
	const unsigned allowed = lookups_allowed(pool);
	const unsigned left =
		allowed > pool->lookups_running ? allowed - pool->lookups_running : 0;

	return pool->lookups_waiting < left ? pool->lookups_waiting : left;
}

void pool_forget_welcome(struct pool *pool)
{
	parameters_unref(pool->welcome);
	parameters_unref(pool->welcome_asked);
	parameters_unref(pool->welcome_given);
	parameters_unref(pool->welcome_kept);
	pool->welcome = pool->welcome_asked = pool->welcome_given = NULL;
	pool->welcome_kept = NULL;
	buffer_free(&pool->welcome_head);
	buffer_free(&pool->welcome_made);
	checked_parameters_clear(&pool->checked);
}

void pool_retire_servers(struct pool *pool, enum server_closing cause)
{
	struct pool_walk walk = pool_walk_servers(pool);
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL)
		server_retire(server_of(link), cause);
}

void pool_mark_close_needed(struct pool *pool, enum server_closing cause)
{
	pool_retire_servers(pool, cause);
	pool_forget_welcome(pool);
}

unsigned pool_reserve_in_use(const struct pool *pool)
{
	const int size = pool_size(pool);
	const unsigned servers = pool_connected_servers(pool);

	return size > 0 && servers > (unsigned)size ? servers - (unsigned)size : 0;
}

void pool_needs_work(struct pool *pool)
{
	OWN_LOOP(pool->registry->loop);
	if (pool->has_work)
		return;
	pool->has_work = true;
	TAILQ_INSERT_TAIL(&pool->registry->work, pool, in_work);
	loop_defer_work(
		pool->registry->loop, &pool->registry->work_task, pool->registry->do_work);
}

/* --- walks -------------------------------------------------------------------------------- */

/* The lists of a walk: those of servers, then those of clients. */
enum { CLIENT_LISTS = 4, ALL_LISTS = SERVER_LISTS + CLIENT_LISTS };

static const struct link_list *list_of(const struct pool *pool, unsigned list)
{
	const struct link_list *const clients[CLIENT_LISTS] = {
		&pool->clients, &pool->waiting, &pool->welcoming, &pool->cancels};

	return list < SERVER_LISTS ? &pool->servers[list] : clients[list - SERVER_LISTS];
}

struct pool_walk pool_walk_clients(const struct pool *pool)
{
	return (struct pool_walk){.pool = pool, .list = SERVER_LISTS, .end = ALL_LISTS};
}

struct pool_walk pool_walk_servers(const struct pool *pool)
{
	return (struct pool_walk){.pool = pool, .list = 0, .end = SERVER_LISTS};
}

struct pool_walk pool_walk_links(const struct pool *pool)
{
	return (struct pool_walk){.pool = pool, .list = 0, .end = ALL_LISTS};
}

struct link *pool_walk_next(struct pool_walk *walk)
{
	struct link *link;

	while (!walk->next && walk->list < walk->end)
		walk->next = TAILQ_FIRST(list_of(walk->pool, walk->list++));
	link = walk->next;
	if (link)
		walk->next = TAILQ_NEXT(link, place);
	return link;
}

/* --- making and freeing ------------------------------------------------------------------- */

/* Returns false when out of memory. */
static bool set_label(struct pool *pool)
{
	if (pool->asked_role == TARGET_INHERIT) {
		pool->label = pool->database->name;
		return true;
	}
	return asprintf(&pool->label, "%s:%s", pool->database->name,
		       target_session_name(pool->asked_role)) >= 0;
}

struct pool *pool_new(struct registry *registry, struct database *database, struct user *user,
	enum target_session asked_role)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->database = database;
	pool->asked_role = asked_role;
	if (!set_label(pool)) {
		free(pool);
		return NULL;
	}
	pool->registry = registry;
	pool->number = SHARED_NEXT(registry->process->directory.last_pool);
	pool->user = user;
	TAILQ_INIT(&pool->clients);
	TAILQ_INIT(&pool->waiting);
	TAILQ_INIT(&pool->welcoming);
	TAILQ_INIT(&pool->lookups);
	TAILQ_INIT(&pool->cancels);
	for (unsigned i = 0; i < SERVER_LISTS; i++)
		TAILQ_INIT(&pool->servers[i]);
	pool_reconfigure(pool);
	pool->last_used = pool->last_client = loop_now(registry->loop);
	TAILQ_INSERT_TAIL(&database->pools, pool, in_database);
	TAILQ_INSERT_TAIL(&user->pools, pool, in_user);
	return pool;
}

void pool_drop_counts(struct pool *pool)
{
	free(pool->latency);
	free(pool->errors);
	pool->latency = NULL;
	pool->errors = NULL;
}

void pool_free(struct pool *pool)
{
	cap_forget_pool(pool);
	TAILQ_REMOVE(&pool->database->pools, pool, in_database);
	TAILQ_REMOVE(&pool->user->pools, pool, in_user);
	pool_forget_welcome(pool);
	pool_set_credential(pool, NULL);
	pool_drop_counts(pool);
	free(pool->sizing);
	wheel_remove(&pool->registry->loop->wheel, &pool->reserve_due);
	handles_take_back(&pool->registry->process->handles, &pool->handle, pool);
	if (pool->asked_role != TARGET_INHERIT)
		free(pool->label);
	free(pool);
}
