/* SPDX-License-Identifier: ISC */
/* Databases, users and pools by name: look-up, making, sorting, dropping. */
#include <time.h>
#include <unistd.h>

#include "support/fakes/fake_pool.h"

static const char with_template[] = "[databases]\n"
				    "zoo = host=/tmp\n"
				    "app = host=/tmp user=carol\n"
				    "* = host=/srv user=dora pool_size=3\n"
				    "[users]\n"
				    "alice = pool_size=1\n"
				    "[pgbouncer]\n";

static const char without_template[] = "[databases]\n"
				       "zoo = host=/tmp\n"
				       "[pgbouncer]\n";

static int start(void **state)
{
	(void)state;
	fake_start(with_template);
	return 0;
}

static int start_without_template(void **state)
{
	(void)state;
	fake_start(without_template);
	return 0;
}

static struct database *open_database(const char *name)
{
	return registry_open_database(&fake_registry, name, NULL);
}

/* The configuration of a reload. */
static void reload(const char *text)
{
	struct problems problems = {0};
	struct snapshot *config = snapshot_parse(
		"test.ini", text, strlen(text), fake_registry.process->config, &problems);
	struct snapshot *old = fake_registry.process->config;

	problems_free(&problems);
	assert_non_null(config);
	fake_registry.process->config = config;
	fake_registry.process->settings = snapshot_settings(config);
	assert_true(registry_apply_databases(&fake_registry));
	assert_true(registry_apply_users(&fake_registry));
	snapshot_unref(old);
}

/* --- look-ups ----------------------------------------------------------------------------- */

static void test_configured_objects_exist_from_the_start(void **state)
{
	(void)state;
	assert_string_equal(
		registry_find_database(&fake_registry, "zoo")->config->host, "/tmp");
	assert_string_equal(registry_find_database(&fake_registry, "app")->name, "app");
	assert_int_equal(registry_find_user(&fake_registry, "alice")->config->pool_size, 1);
	/* A forced user too, so that SHOW lists it. */
	assert_non_null(registry_find_user(&fake_registry, "carol"));
	assert_null(registry_find_user(&fake_registry, "carol")->config);
	assert_int_equal(registry_count_databases(&fake_registry), 3);
	assert_int_equal(registry_count_users(&fake_registry), 3);
	assert_int_equal(registry_count_pools(&fake_registry), 1);
}

static void test_names_are_compared_exactly(void **state)
{
	(void)state;
	assert_null(registry_find_database(&fake_registry, "Zoo"));
	assert_null(registry_find_database(&fake_registry, "zo"));
	assert_null(registry_find_database(&fake_registry, "zoo "));
	assert_null(registry_find_database(&fake_registry, ""));
	assert_null(registry_find_user(&fake_registry, "ALICE"));
	assert_null(registry_find_user(&fake_registry, ""));
}

static void test_the_console_has_two_names(void **state)
{
	struct database *console = fake_registry.console_pool->database;

	(void)state;
	assert_true(console->console);
	assert_ptr_equal(open_database("pgbouncer"), console);
	assert_ptr_equal(open_database("pgusher"), console);
	assert_string_equal(console->name, "pgbouncer");
}

static void test_database_with_the_second_name_of_the_console_replaces_it(void **state)
{
	struct database *database;

	(void)state;
	fake_start("[databases]\npgusher = host=/tmp\n[pgbouncer]\n");
	database = open_database("pgusher");
	assert_non_null(database);
	assert_false(database->console);
	assert_true(open_database("pgbouncer")->console);
}

static void test_a_user_is_made_once(void **state)
{
	struct user *user = registry_open_user(&fake_registry, "bob");

	(void)state;
	assert_non_null(user);
	assert_null(user->secret);
	assert_null(user->config);
	assert_ptr_equal(registry_open_user(&fake_registry, "bob"), user);
	assert_ptr_equal(registry_find_user(&fake_registry, "bob"), user);
}

static void test_thousands_of_names_are_found(void **state)
{
	char name[32];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "user%d", i);
		assert_non_null(registry_open_user(&fake_registry, name));
	}
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "user%d", i);
		assert_string_equal(registry_find_user(&fake_registry, name)->name, name);
	}
	assert_int_equal(registry_count_users(&fake_registry), 5003);
}

/* --- automatic databases ------------------------------------------------------------------ */

static void test_unknown_database_is_made_from_the_template(void **state)
{
	struct database *database;
	bool made = false;

	(void)state;
	database = registry_open_database(&fake_registry, "new", &made);
	assert_non_null(database);
	assert_true(made);
	assert_string_equal(database->name, "new");
	assert_string_equal(database->config->dbname, "new");
	assert_string_equal(database->config->host, "/srv");
	assert_int_equal(database->config->pool_size, 3);
	assert_ptr_equal(database->own_config, database->config);
	/* The user that it forces exists from then on. */
	assert_non_null(registry_find_user(&fake_registry, "dora"));
	assert_ptr_equal(registry_open_database(&fake_registry, "new", &made), database);
	assert_false(made);
}

static void test_a_configured_database_is_not_made(void **state)
{
	bool made = true;

	(void)state;
	assert_null(registry_open_database(&fake_registry, "zoo", &made)->own_config);
	assert_false(made);
}

static void test_without_a_template_no_database_is_made(void **state)
{
	bool made = true;

	(void)state;
	assert_null(registry_open_database(&fake_registry, "new", &made));
	assert_false(made);
	assert_true(open_database("pgusher")->console);
}

static void test_too_long_database_name_is_refused(void **state)
{
	char name[65];

	(void)state;
	memset(name, 'x', sizeof(name));
	name[64] = '\0';
	assert_null(open_database(name));
	name[63] = '\0';
	assert_non_null(open_database(name));
}

static void test_automatic_database_becomes_a_configured_one(void **state)
{
	struct database *database = open_database("new");

	(void)state;
	database->idle_since = 5;
	reload("[databases]\nnew = host=/tmp dbname=other\n* = host=/srv\n[pgbouncer]\n");
	assert_ptr_equal(open_database("new"), database);
	assert_null(database->own_config);
	assert_string_equal(database->config->dbname, "other");
	assert_int_equal(database->idle_since, 0);
}

/* --- users of a reload -------------------------------------------------------------------- */

static void test_removed_entry_has_no_effect(void **state)
{
	struct user *user = registry_find_user(&fake_registry, "alice");

	(void)state;
	reload("[databases]\n[users]\nbob = pool_size=2\n[pgbouncer]\n");
	assert_null(user->config);
	assert_int_equal(registry_find_user(&fake_registry, "bob")->config->pool_size, 2);
}

static void test_users_without_a_file_have_no_secret(void **state)
{
	struct user *user = fake_user("alice", "secret");

	(void)state;
	user_keys(user);
	assert_true(registry_apply_users(&fake_registry));
	assert_null(user->secret);
	assert_null(user->keys);
}

/* Start with an auth_file that has this text. */
static void start_with_list(const char *list)
{
	char path[] = "/tmp/pgusher-test.XXXXXX", config[200];
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, list, strlen(list)), strlen(list));
	close(fd);
	snprintf(config, sizeof(config),
		"[databases]\n[users]\nalice = pool_size=1\n[pgbouncer]\nauth_file = %s\n",
		path);
	fake_start(config);
	unlink(path);
}

static void test_users_have_the_secrets_of_the_file(void **state)
{
	(void)state;
	start_with_list("\"alice\" \"one\"\n\"erik\" \"two\"\n");
	assert_string_equal(registry_find_user(&fake_registry, "alice")->secret, "one");
	assert_string_equal(registry_find_user(&fake_registry, "erik")->secret, "two");
	assert_int_equal(registry_find_user(&fake_registry, "alice")->config->pool_size, 1);
	assert_null(registry_find_user(&fake_registry, "pgbouncer")->secret);
	assert_false(fake_registry.process->has_scram_secrets);
}

static void test_scram_secrets_of_the_file_are_noticed(void **state)
{
	(void)state;
	start_with_list("\"alice\" \"one\"\n\"erik\" \"SCRAM-SHA-256$1:eA==$"
			"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
			"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n");
	assert_true(fake_registry.process->has_scram_secrets);
}

/* --- floods of names ---------------------------------------------------------------------- */

/* Make the next name that uthash's own hash, which is public, puts into the same bucket. */
static void next_colliding_name(unsigned *number, char name[16])
{
	unsigned hash;

	do {
		snprintf(name, 16, "name%u", (*number)++);
		HASH_JEN(name, strlen(name), hash);
	} while ((hash & 0x3ff) != 0);
}

static void test_names_that_collide_in_uthash_do_not_collide(void **state)
{
	const UT_hash_table *table;
	unsigned number = 0;
	char name[16];

	(void)state;
	for (int i = 0; i < 2000; i++) {
		next_colliding_name(&number, name);
		assert_non_null(registry_open_user(&fake_registry, name));
	}
	table = fake_registry.users->by_name.tbl;
	assert_false(table->noexpand);
	for (unsigned i = 0; i < table->num_buckets; i++)
		assert_in_range(table->buckets[i].count, 0, 30);
	next_colliding_name(&number, name);
	assert_null(registry_find_user(&fake_registry, name));
}

/* --- pools -------------------------------------------------------------------------------- */

static void test_pool_is_made_once_for_each_pair(void **state)
{
	struct pool *pool = fake_pool("zoo", "alice");

	(void)state;
	assert_ptr_equal(fake_pool("zoo", "alice"), pool);
	assert_ptr_not_equal(fake_pool("zoo", "bob"), pool);
	assert_ptr_not_equal(fake_pool("app", "alice"), pool);
	assert_ptr_equal(registry_find_pool(pool->database, pool->user, TARGET_INHERIT), pool);
	assert_int_equal(registry_count_pools(&fake_registry), 4);
	assert_null(registry_find_pool(
		pool->database, registry_open_user(&fake_registry, "nobody"), TARGET_INHERIT));
}

static void test_server_user_is_the_forced_user_or_the_clients(void **state)
{
	struct user *user = registry_find_user(&fake_registry, "alice");

	(void)state;
	assert_ptr_equal(
		registry_server_user(&fake_registry, open_database("zoo"), user), user);
	assert_string_equal(
		registry_server_user(&fake_registry, open_database("app"), user)->name,
		"carol");
	assert_string_equal(
		registry_server_user(&fake_registry, open_database("new"), user)->name, "dora");
}

static void test_dropped_pool_is_removed_everywhere(void **state)
{
	struct pool *pool = fake_pool("zoo", "alice");
	struct database *database = pool->database;
	struct user *user = pool->user;

	(void)state;
	pool_needs_work(pool);
	registry_drop_pool(pool);
	assert_null(registry_find_pool(database, user, TARGET_INHERIT));
	assert_true(TAILQ_EMPTY(&database->pools));
	assert_true(TAILQ_EMPTY(&user->pools));
	assert_true(TAILQ_EMPTY(&fake_registry.work));
	assert_int_equal(registry_count_pools(&fake_registry), 1);
	fake_turn();
}

static bool is_known(const char *name)
{
	return registry_find_user(&fake_registry, name) != NULL;
}

static void test_unconfigured_user_is_freed_with_its_last_client_and_pool(void **state)
{
	struct endpoint *client = fake_client(fake_pool("db", "passing"));
	struct pool *pool = fake_pool("db", "passing");

	(void)state;
	registry_drop_pool(fake_pool("other", "passing"));
	disconnect(client);
	assert_true(is_known("passing"));
	registry_drop_pool(pool);
	assert_false(is_known("passing"));
}

/* Each worker has users of its own: only that of the pool's worker is freed. */
static void test_user_of_a_pool_is_freed_at_its_worker(void **state)
{
	struct registry *home;
	struct pool *pool;

	(void)state;
	fake_workers = 2;
	fake_start(with_template);
	pool = fake_pool("app", "passing");
	home = pool->registry;
	assert_int_equal(home->number, 1);
	assert_non_null(registry_open_user(&fake_registry, "passing"));
	registry_drop_pool(pool);
	assert_null(registry_find_user(home, "passing"));
	assert_true(is_known("passing"));
	registry_let_go_user(&fake_registry, registry_find_user(&fake_registry, "passing"));
}

static void test_configured_user_is_kept(void **state)
{
	(void)state;
	fake_user("secretive", "secret");
	registry_let_go_user(&fake_registry, registry_find_user(&fake_registry, "secretive"));
	assert_true(is_known("secretive"));
	registry_let_go_user(&fake_registry, registry_find_user(&fake_registry, "alice"));
	assert_true(is_known("alice"));
	registry_drop_pool(fake_pool("forced", "carol"));
	assert_true(is_known("carol"));
}

static void test_dropped_database_is_freed_with_its_last_client(void **state)
{
	struct database *database = open_database("new");
	struct client_link client = {.link.stream.loop = &fake_loop};

	(void)state;
	limits_take_database(&client, database, false);
	registry_drop_database(database);
	assert_true(database->gone);
	assert_null(registry_find_database(&fake_registry, "new"));
	/* The name can be used again. */
	assert_ptr_not_equal(open_database("new"), database);
	limits_give_client(&client);
	assert_false(open_database("new")->gone);
}

static void test_dropped_database_without_clients_is_freed_at_once(void **state)
{
	(void)state;
	registry_drop_database(open_database("new"));
	registry_drop_database(open_database("zoo"));
	assert_int_equal(registry_count_databases(&fake_registry), 2);
}

/* --- order -------------------------------------------------------------------------------- */

static void assert_sorted(void)
{
	const struct database *database, *next_database;
	const struct user *user, *next_user;
	const struct pool *pool;
	const char *before = "";

	for (database = fake_process.directory.databases; database; database = next_database) {
		next_database = database->by_name.next;
		assert_true(strcmp(before, database->name) < 0);
		before = database->name;
	}
	before = "";
	for (user = fake_registry.users; user; user = next_user) {
		next_user = user->by_name.next;
		assert_true(strcmp(before, user->name) < 0);
		before = user->name;
	}
	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		const struct pool *next = TAILQ_NEXT(pool, in_directory);
		int order;

		if (!next)
			break;
		order = strcmp(pool->database->name, next->database->name);
		assert_true(order < 0 ||
			(order == 0 && strcmp(pool->user->name, next->user->name) < 0));
	}
}

static void test_sorting_orders_all_by_name(void **state)
{
	(void)state;
	fake_pool("zoo", "bob");
	fake_pool("m\xc3\xa4h", "alice");
	fake_pool("Zoo", "alice");
	fake_pool("app", "carol");
	fake_pool("zoo", "alice");
	fake_pool("zoo", "al");
	registry_sort(&fake_registry);
	assert_sorted();
	assert_int_equal(registry_count_pools(&fake_registry), 7);
	/* They are still found by name, and the next sort includes new ones. */
	assert_non_null(registry_find_database(&fake_registry, "m\xc3\xa4h"));
	fake_pool("aaa", "aaa");
	registry_sort(&fake_registry);
	assert_sorted();
	registry_drop_pool(fake_pool("zoo", "al"));
	registry_sort(&fake_registry);
	assert_sorted();
	assert_int_equal(registry_count_pools(&fake_registry), 7);
}

/*
 * Hundreds of unsorted names, many with the same beginning, while others are added and removed.
 */
static void test_sorting_compares_whole_names_and_keeps_all(void **state)
{
	enum { MANY = 400 };
	const unsigned others = registry_count_databases(&fake_registry);
	struct database *database;
	unsigned found = 0;
	char name[64];

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "a_name_as_long_as_they_come_%u", i * 7919 % MANY);
		fake_pool(name, name);
	}
	registry_sort(&fake_registry);
	assert_sorted();
	for (unsigned i = 0; i < MANY; i += 2) {
		snprintf(name, sizeof(name), "a_name_as_long_as_they_come_%u", i);
		database = registry_find_database(&fake_registry, name);
		registry_drop_pool(TAILQ_FIRST(&database->pools));
		registry_drop_database(database);
	}
	fake_pool("a_name", "a_name");
	registry_sort(&fake_registry);
	assert_sorted();
	for (database = fake_process.directory.databases; database;
		database = database->by_name.next)
		found += strncmp(database->name, "a_name_as", 9) == 0;
	assert_int_equal(found, MANY / 2);
	assert_int_equal(registry_count_databases(&fake_registry), others + MANY / 2 + 1);
}

/* --- chosen names ------------------------------------------------------------------------- */

/* Returns the length of the longest chain of a table. */
static unsigned longest_chain(const UT_hash_table *table)
{
	unsigned longest = 0;

	for (unsigned i = 0; i < table->num_buckets; i++) {
		if (table->buckets[i].count > longest)
			longest = table->buckets[i].count;
	}
	return longest;
}

/* Make the next name that a table without a secret key would put into the same bucket. */
static void choose_name(unsigned *counter, char *name, size_t size)
{
	unsigned hash;

	do {
		snprintf(name, size, "n%u", (*counter)++);
		HASH_JEN(name, strlen(name), hash);
	} while ((hash & 0xfff) != 0);
}

static void test_names_that_collide_without_a_key_do_not_collide(void **state)
{
	unsigned counter = 0;
	char name[20];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		choose_name(&counter, name, sizeof(name));
		assert_non_null(registry_open_user(&fake_registry, name));
		assert_non_null(open_database(name));
	}
	assert_in_range(longest_chain(fake_registry.users->by_name.tbl), 1, 40);
	assert_in_range(longest_chain(fake_process.directory.databases->by_name.tbl), 1, 40);
}

static void test_look_up_among_a_hundred_thousand_names_is_fast(void **state)
{
	char name[20];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_non_null(registry_open_user(&fake_registry, name));
		assert_non_null(open_database(name));
	}
	assert_in_range(longest_chain(fake_registry.users->by_name.tbl), 1, 40);
	assert_in_range(longest_chain(fake_process.directory.databases->by_name.tbl), 1, 40);
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_string_equal(registry_find_user(&fake_registry, name)->name, name);
		assert_string_equal(registry_find_database(&fake_registry, name)->name, name);
	}
}

/* Drop all but the console's, so that fake_end() has few to handle. */
static void drop_pools(void)
{
	struct pool *pool, *next;

	TAILQ_FOREACH_SAFE (pool, &fake_process.directory.pools, in_directory, next) {
		if (pool != fake_registry.console_pool)
			registry_drop_pool(pool);
	}
}

/* This would take minutes if a look-up visited all pools of the user or of the database. */
static void test_look_up_among_a_hundred_thousand_pools_is_fast(void **state)
{
	struct database *zoo = registry_find_database(&fake_registry, "zoo");
	struct user *alice = registry_find_user(&fake_registry, "alice");
	const clock_t begun = clock();
	char name[20];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct database *database;
		struct user *user;

		snprintf(name, sizeof(name), "n%d", i);
		database = open_database(name);
		user = registry_open_user(&fake_registry, name);
		assert_non_null(
			registry_open_pool(&fake_registry, database, alice, TARGET_INHERIT));
		assert_non_null(registry_open_pool(&fake_registry, zoo, user, TARGET_INHERIT));
		assert_non_null(registry_find_pool(database, alice, TARGET_INHERIT));
		assert_non_null(registry_find_pool(zoo, user, TARGET_INHERIT));
		assert_null(registry_find_pool(database, user, TARGET_INHERIT));
	}
	assert_true(clock() - begun < 10 * CLOCKS_PER_SEC);
	drop_pools();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(configured_objects_exist_from_the_start),
		TEST(names_are_compared_exactly),
		TEST(the_console_has_two_names),
		cmocka_unit_test_teardown(
			test_database_with_the_second_name_of_the_console_replaces_it,
			fake_end),
		TEST(a_user_is_made_once),
		TEST(thousands_of_names_are_found),
		TEST(unknown_database_is_made_from_the_template),
		TEST(a_configured_database_is_not_made),
		cmocka_unit_test_setup_teardown(test_without_a_template_no_database_is_made,
			start_without_template, fake_end),
		TEST(too_long_database_name_is_refused),
		TEST(automatic_database_becomes_a_configured_one),
		TEST(removed_entry_has_no_effect),
		TEST(users_without_a_file_have_no_secret),
		cmocka_unit_test_teardown(test_users_have_the_secrets_of_the_file, fake_end),
		cmocka_unit_test_teardown(test_scram_secrets_of_the_file_are_noticed, fake_end),
		TEST(names_that_collide_in_uthash_do_not_collide),
		TEST(pool_is_made_once_for_each_pair),
		TEST(server_user_is_the_forced_user_or_the_clients),
		TEST(dropped_pool_is_removed_everywhere),
		TEST(unconfigured_user_is_freed_with_its_last_client_and_pool),
		cmocka_unit_test_teardown(test_user_of_a_pool_is_freed_at_its_worker, fake_end),
		TEST(configured_user_is_kept),
		TEST(dropped_database_is_freed_with_its_last_client),
		TEST(dropped_database_without_clients_is_freed_at_once),
		TEST(sorting_orders_all_by_name),
		TEST(sorting_compares_whole_names_and_keeps_all),
		TEST(names_that_collide_without_a_key_do_not_collide),
		TEST(look_up_among_a_hundred_thousand_names_is_fast),
		TEST(look_up_among_a_hundred_thousand_pools_is_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
