/* SPDX-License-Identifier: ISC */
#include "model/registry.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "crypt/keyed_hash.h"
#include "model/peer.h"
#include "model/statistics/history.h"

/* Longest name, in bytes, of an automatic database. */
enum { DATABASE_NAME_MAX = 63 };

/* The console as a database: values without effect, which SHOW DATABASES lists. */
static const struct database_config console_config = {
	.name = "pgbouncer",
	.dbname = "pgbouncer",
	.user = "pgbouncer",
	.pool_size = 2,
	.min_pool_size = -1,
	.reserve_pool_size = -1,
	.pool_mode = POOL_MODE_STATEMENT,
	.query_wait_timeout = -1,
	.max_pool_waiters = -1,
};

static unsigned hash_name(struct registry *registry, const char *name)
{
	return (unsigned)keyed_hash_of(&registry->name_hash, name, strlen(name));
}

/* --- databases ---------------------------------------------------------------------------- */

static struct database *look_up_database(struct registry *registry, const char *name)
{
	struct database *found = directory_find(registry, name);

	if (found && found->registry == registry)
		registry->recent_database = found;
	return found;
}

struct database *registry_find_database(const struct registry *registry, const char *name)
{
	struct database *recent = registry->recent_database;

	/* The cast is for recent_database only; the result of later calls does not change. */
	return recent && strcmp(recent->name, name) == 0
		? recent
		: look_up_database((struct registry *)registry, name);
}

static struct database *add_database(
	struct registry *registry, const char *name, bool is_console)
{
	struct directory *directory = &registry->process->directory;
	const size_t length = strlen(name);
	struct database *database = calloc(1, sizeof(*database) + length + 1);

	if (!database)
		return NULL;
	memcpy(database->name, name, length + 1);
	database->registry = registry;
	database->console = is_console;
	TAILQ_INIT(&database->pools);
	database->functions.version = directory_next_functions(directory);
	cap_init(&database->cap, CAP_DATABASE);
	if (!directory_add(directory, database)) {
		free(database);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&registry->databases, database, in_registry);
	return database;
}

static bool open_forced_user(struct registry *registry, const char *name)
{
	struct user *user = registry_open_user(registry, name);

	if (user)
		user->forced = true;
	return user != NULL;
}

static struct database *add_automatic(struct registry *registry, const char *name)
{
	struct database_config *config;
	struct database *database;

	if (strlen(name) > DATABASE_NAME_MAX) {
		log_write_repeated(LEVEL_WARNING, NULL,
			&(struct log_likeness){.kind = "too long db name", .about = ""},
			"too long db name: %zu bytes", strlen(name));
		return NULL;
	}
	config = database_config_from_template(
		snapshot_template(registry->process->config), name);
	if (!config)
		return NULL;
	database = add_database(registry, name, false);
	if (!database) {
		database_config_free(config);
		return NULL;
	}
	database->config = database->own_config = config;
	/* Make the forced user now, as for configured databases; a failure is noticed later. */
	if (config->user)
		open_forced_user(registry, config->user);
	return database;
}

struct database *registry_open_database(struct registry *registry, const char *name, bool *made)
{
	struct database *database = registry_find_database(registry, name);

	if (made)
		*made = false;
	if (database)
		return database;
	/* The console is the first worker's. */
	if (strcmp(name, "pgusher") == 0)
		return registry->number == 0 ? registry->console_pool->database : NULL;
	if (!snapshot_template(registry->process->config))
		return NULL;
	database = add_automatic(registry, name);
	if (database && made)
		*made = true;
	return database;
}

static void free_database(struct database *database)
{
	if (database->own_config)
		database_config_free(database->own_config);
	counters_free(database->counters);
	session_functions_clear(&database->functions);
	free(database);
}

void registry_drop_database(struct database *database)
{
	struct registry *registry = database->registry;

	if (!database->gone) {
		directory_remove(&registry->process->directory, database);
		TAILQ_REMOVE(&registry->databases, database, in_registry);
	}
	if (registry->recent_database == database)
		registry->recent_database = NULL;
	database->gone = true;
	handles_take_back(&registry->process->handles, &database->handle, database);
	if (database->clients == 0 && TAILQ_EMPTY(&database->pools))
		free_database(database);
}

bool registry_apply_databases(struct registry *registry)
{
	const struct database_config *config;

	for (size_t i = 0; (config = snapshot_database(registry->process->config, i)) != NULL;
		i++) {
		struct database *database = registry_find_database(registry, config->name);

		if (!database)
			database =
				add_database(directory_choose_home(registry->process, config),
					config->name, false);
		if (!database ||
			(config->user && !open_forced_user(database->registry, config->user)))
			return false;
		if (database->own_config)
			database_config_free(database->own_config);
		database->own_config = NULL;
		database->config = config;
		database->idle_since = 0;
	}
	return true;
}

/* --- users -------------------------------------------------------------------------------- */

static struct user *add_user(struct registry *registry, const char *name)
{
	const size_t length = strlen(name);
	struct user *user = calloc(1, sizeof(*user) + length + 1);

	if (!user)
		return NULL;
	memcpy(user->name, name, length + 1);
	TAILQ_INIT(&user->pools);
	cap_init(&user->cap, CAP_USER);
	if (registry->process->workers_wanted > 1 &&
		!cap_join(&user->cap, registry, user->name)) {
		free(user);
		return NULL;
	}
	HASH_ADD_KEYPTR_BYHASHVALUE(
		by_name, registry->users, user->name, length, hash_name(registry, name), user);
	if (!user->by_name.tbl) {
		cap_end(&user->cap);
		free(user);
		return NULL;
	}
	registry->users_sorted = false;
	return user;
}

static void configure_user(const struct registry *registry, struct user *user)
{
	const struct snapshot *config = registry->process->config;
	const struct userlist *list = snapshot_userlist(config);

	user->config = snapshot_find_user(config, user->name);
	user_set_secret(user, list ? userlist_find(list, user->name) : NULL);
}

/*
 * The first registry has all users of the configuration, since SHOW USERS lists them; the others
 * make them when a client or a pool needs them. Returns NULL if there is none of this name, or when
 * out of memory.
 */
static struct user *make_configured(struct registry *registry, const char *name)
{
	const struct snapshot *config = registry->process->config;
	const struct userlist *list = snapshot_userlist(config);
	struct user *user;

	if (!snapshot_find_user(config, name) && !(list && userlist_find(list, name)))
		return NULL;
	user = add_user(registry, name);
	if (user)
		configure_user(registry, user);
	return user;
}

struct user *registry_known_user(const struct registry *registry, const char *name)
{
	struct user *found = NULL;
	/* The cast is for the state of the hash, which each use begins anew. */
	const unsigned hash = hash_name((struct registry *)registry, name);

	HASH_FIND_BYHASHVALUE(by_name, registry->users, name, strlen(name), hash, found);
	return found;
}

static struct user *look_up_user(struct registry *registry, const char *name)
{
	struct user *found = registry_known_user(registry, name);

	if (!found && registry->number > 0)
		found = make_configured(registry, name);
	if (found)
		registry->recent_user = found;
	return found;
}

struct user *registry_find_user(const struct registry *registry, const char *name)
{
	struct user *recent = registry->recent_user;

	return recent && strcmp(recent->name, name) == 0
		? recent
		: look_up_user((struct registry *)registry, name);
}

struct user *registry_open_user(struct registry *registry, const char *name)
{
	struct user *user = registry_find_user(registry, name);

	return user ? user : add_user(registry, name);
}

void registry_let_go_user(struct registry *registry, struct user *user)
{
	if (user_is_needed(user))
		return;
	HASH_DELETE(by_name, registry->users, user);
	if (registry->recent_user == user)
		registry->recent_user = NULL;
	cap_end(&user->cap);
	user_drop_keys(user);
	handles_take_back(&registry->process->handles, &user->handle, user);
	free(user);
}

struct user *registry_server_user(
	struct registry *registry, const struct database *database, struct user *client_user)
{
	return database->config->user ? registry_open_user(registry, database->config->user)
				      : client_user;
}

bool registry_apply_users(struct registry *registry)
{
	const struct userlist *list = snapshot_userlist(registry->process->config);
	const struct user_config *config;
	const char *name, *secret;
	struct user *user, *next;

	HASH_ITER (by_name, registry->users, user, next)
		configure_user(registry, user);
	if (registry->number > 0)
		return true;
	for (size_t i = 0; list && userlist_entry(list, i, &name, &secret); i++) {
		user = registry_open_user(registry, name);
		if (!user)
			return false;
		user_set_secret(user, secret);
		registry->process->has_scram_secrets |= secret_kind(secret) == SECRET_SCRAM;
	}
	for (size_t i = 0; (config = snapshot_user(registry->process->config, i)) != NULL;
		i++) {
		user = registry_open_user(registry, config->name);
		if (!user)
			return false;
		user->config = config;
	}
	return true;
}

/* --- pools -------------------------------------------------------------------------------- */

struct pool *registry_find_pool(const struct database *database, const struct user *user,
	enum target_session asked_role)
{
	struct pool *of_user = TAILQ_FIRST(&user->pools);
	struct pool *of_database = TAILQ_FIRST(&database->pools);

	/*
	 * The pool is in both lists. Clients can make either of them long, where they choose
	 * the names. Walking both at once takes the time of the shorter list.
	 */
	while (of_user && of_database) {
		if (of_user->database == database && of_user->asked_role == asked_role)
			return of_user;
		if (of_database->user == user && of_database->asked_role == asked_role)
			return of_database;
		of_user = TAILQ_NEXT(of_user, in_user);
		of_database = TAILQ_NEXT(of_database, in_database);
	}
	return NULL;
}

struct pool *registry_open_pool(struct registry *registry, struct database *database,
	struct user *user, enum target_session asked_role)
{
	struct pool *pool = registry_find_pool(database, user, asked_role);

	if (pool)
		return pool;
	pool = pool_new(registry, database, user, asked_role);
	if (!pool)
		return NULL;
	TAILQ_INSERT_TAIL(&registry->pools, pool, in_registry);
	directory_add_pool(&registry->process->directory, pool);
	descriptors_add_pool(pool);
	return pool;
}

void registry_drop_pool(struct pool *pool)
{
	struct registry *registry = pool->registry;
	struct user *user = pool->user;

	/* A client that logs in has no pool yet, except while it looks something up there. */
	CHECK(!pool_has_clients(pool));
	if (pool->has_work)
		TAILQ_REMOVE(&registry->work, pool, in_work);
	TAILQ_REMOVE(&registry->pools, pool, in_registry);
	directory_remove_pool(&registry->process->directory, pool);
	history_forget_pool(pool);
	pool_free(pool);
	registry_let_go_user(registry, user);
}

/* --- hosts -------------------------------------------------------------------------------- */

void registry_ask_host(struct registry *registry, struct host *host)
{
	if (!host || !host->watched || host->ask_now || !registry->host_watch.expire)
		return;
	host->ask_now = true;
	wheel_set_exact(
		&registry->loop->wheel, &registry->host_watch, loop_now(registry->loop));
}

/* --- numbers --------------------------------------------------------------------------- */

unsigned registry_count_users(const struct registry *registry)
{
	return HASH_CNT(by_name, registry->users);
}

unsigned registry_count_databases(const struct registry *registry)
{
	return directory_count_databases(&registry->process->directory);
}

unsigned registry_count_pools(const struct registry *registry)
{
	return registry->process->directory.pool_count;
}

uint64_t registry_statement_bytes(const struct process *process)
{
	const struct registry *each;
	uint64_t sum = 0;

	EACH_REGISTRY (each, process)
		sum += SHARED_GET(each->statements.bytes);
	return sum;
}

/* --- making and freeing ------------------------------------------------------------------- */

static bool make_console(struct registry *registry)
{
	struct database *database = add_database(registry, console_config.name, true);
	struct user *user = registry_open_user(registry, console_config.user);

	if (!database || !user)
		return false;
	database->config = &console_config;
	registry->console_pool = registry_open_pool(registry, database, user, TARGET_INHERIT);
	return registry->console_pool != NULL;
}

/* What all registries share is made with the first. */
static bool init_shared(struct process *process, struct random *random)
{
	return directory_init(&process->directory, random) && sources_init(process, random) &&
		(process->workers_wanted < 2 || tallies_init(process, random));
}

bool registry_init(struct registry *registry, struct process *process, struct loop *loop)
{
	const unsigned number = process->workers;
	uint8_t key[KEYED_HASH_KEY_SIZE];

	CHECK(number < WORKERS_MOST);
	process->registries[process->workers++] = registry;
	registry->number = number;
	registry->process = process;
	registry->loop = loop;
	loop->owner = registry;
	TAILQ_INIT(&registry->databases);
	TAILQ_INIT(&registry->pools);
	TAILQ_INIT(&registry->work);
	TAILQ_INIT(&registry->caps_due);
	cap_init(&registry->server_cap, CAP_PROCESS);
	TAILQ_INIT(&registry->links);
	TAILQ_INIT(&registry->hosts);
	TAILQ_INIT(&registry->logins);
	slab_init(&registry->clients, "client_cache", sizeof(struct client_link));
	slab_init(&registry->servers, "server_cache", sizeof(struct server_link));
	slab_init(&registry->helds, "held_cache", HELD_SMALL);
	random_fill(&loop->random, key, sizeof(key));
	registry->parameters =
		parameter_table_new(registry->process->settings->track_extra_parameters);
	statement_table_init(
		&registry->statements, loop, &registry->name_hash, &process->last_statement_id);
	registry->statements.handles = &registry->process->handles;
	registry->stats_newer_at = registry->stats_older_at = loop_now(loop);
	registry->made_at = loop_now(loop);
	registry->hosts.last = &process->last_host;
	registry->counters.last_reload = clock_wall();
	if (!keyed_hash_init(&registry->name_hash, key) || !registry->parameters)
		return false;
	if (number == 0 && !init_shared(process, &loop->random))
		return false;
	if (process->workers_wanted > 1 && !cap_join(&registry->server_cap, registry, NULL))
		return false;
	if (number > 0)
		registry->console_pool = process->registries[0]->console_pool;
	else if (!make_console(registry))
		return false;
	/* The databases find their homes when all registries are made. */
	return (process->workers < process->workers_wanted ||
		       registry_apply_databases(process->registries[0])) &&
		registry_apply_users(registry);
}

void registry_free(struct registry *registry)
{
	struct database *database;
	struct user *user, *next_user;
	struct peer *peer;
	struct pool *pool;

	/* Peers belong to the first registry, which is freed last. */
	while (registry->number == 0 && (peer = TAILQ_FIRST(&registry->process->peers)) != NULL)
		peer_free(registry, peer);
	if (registry->number == 0)
		history_stop(registry);
	while ((pool = TAILQ_FIRST(&registry->pools)) != NULL)
		registry_drop_pool(pool);
	while ((database = TAILQ_FIRST(&registry->databases)) != NULL) {
		TAILQ_REMOVE(&registry->databases, database, in_registry);
		directory_remove(&registry->process->directory, database);
		free_database(database);
	}
	HASH_ITER (by_name, registry->users, user, next_user) {
		HASH_DELETE(by_name, registry->users, user);
		cap_end(&user->cap);
		user_drop_keys(user);
		free(user);
	}
	hosts_free(&registry->hosts);
	statement_table_free(&registry->statements);
	keyed_hash_free(&registry->name_hash);
	cap_end(&registry->server_cap);
	if (--registry->process->workers == 0) {
		tallies_free(registry->process);
		sources_free(registry->process);
		directory_free(&registry->process->directory);
	}
	parameter_table_free(registry->parameters);
	slab_destroy(&registry->clients);
	slab_destroy(&registry->servers);
	slab_destroy(&registry->helds);
}
