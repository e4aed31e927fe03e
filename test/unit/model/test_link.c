/* SPDX-License-Identifier: ISC */
/* The bytes that a link holds, and its prefix in the log. */
#include "model/held.h"
#include "support/fakes/fake_pool.h"

static struct link *link;
static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n");
	pool = fake_pool("db", "alice");
	link = endpoint_link(fake_client(pool));
	return 0;
}

/* --- held bytes --------------------------------------------------------------------------- */

static void test_held_bytes_are_appended(void **state)
{
	(void)state;
	assert_true(link_hold(link, "abc", 3));
	assert_true(link_hold(link, "defg", 4));
	assert_int_equal(link->held_length, 7);
	assert_memory_equal(link->held, "abcdefg", 7);
	link_drop_held(link);
	assert_int_equal(link->held_length, 0);
	assert_null(link->held);
}

static void test_holding_no_bytes_succeeds(void **state)
{
	(void)state;
	assert_true(link_hold(link, NULL, 0));
	assert_int_equal(link->held_length, 0);
	link_drop_held(link);
	link_drop_held(link);
}

static void test_few_bytes_are_in_the_slab(void **state)
{
	static const uint8_t bytes[HELD_SMALL];

	(void)state;
	assert_true(link_hold(link, bytes, 1));
	assert_int_equal(fake_registry.helds.used, 1);
	assert_int_equal(link->held_capacity, HELD_SMALL);
	assert_true(link_hold(link, bytes, HELD_SMALL - 1));
	assert_int_equal(fake_registry.helds.used, 1);
	assert_true(link_hold(link, bytes, 1));
	assert_int_equal(fake_registry.helds.used, 0);
	assert_int_equal(link->held_length, HELD_SMALL + 1);
	link_drop_held(link);
}

static void test_many_bytes_keep_their_order(void **state)
{
	enum { ALL = 300000 };
	uint8_t bytes[97];
	size_t all = 0;

	(void)state;
	while (all < ALL) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)((all + i) * 31 >> 3);
		assert_true(link_hold(link, bytes, sizeof(bytes)));
		all += sizeof(bytes);
	}
	assert_int_equal(link->held_length, all);
	for (size_t i = 0; i < all; i++)
		assert_int_equal(link->held[i], (uint8_t)(i * 31 >> 3));
	assert_true(link->held_capacity < 2 * all);
	link_drop_held(link);
}

static void test_held_bytes_are_limited(void **state)
{
	uint8_t *bytes = calloc(1, HELD_MAX);

	(void)state;
	assert_true(link_hold(link, bytes, HELD_MAX));
	assert_false(link_hold(link, bytes, 1));
	assert_int_equal(link->held_length, HELD_MAX);
	link_drop_held(link);
	assert_true(link_hold(link, bytes, 1));
	assert_false(link_hold(link, bytes, HELD_MAX));
	assert_int_equal(link->held_length, 1);
	link_drop_held(link);
	free(bytes);
}

static void test_closed_link_holds_no_bytes(void **state)
{
	struct endpoint *other = fake_client(pool);

	(void)state;
	assert_true(link_hold(endpoint_link(other), "abc", 3));
	disconnect(other);
	assert_int_equal(fake_registry.helds.used, 0);
}

/* --- names -------------------------------------------------------------------------------- */

static void assert_prefix(const struct link *of, const char *expected)
{
	char prefix[512];

	assert_string_equal(link_prefix(of, prefix, sizeof(prefix)), expected);
}

static void test_prefix_has_pool_and_user(void **state)
{
	char expected[128];

	(void)state;
	link->remote = (struct address){.family = AF_UNIX, .pid = 5, .port = 6432};
	assert_string_equal(link_database_name(link), "db");
	assert_string_equal(link_user_name(link), "alice");
	snprintf(expected, sizeof(expected), "C-0x%llx: db/alice@unix(5):6432",
		link_handle(link));
	assert_prefix(link, expected);
}

static void test_prefix_of_a_server_has_the_user_of_its_pool(void **state)
{
	struct link *server = endpoint_link(fake_server(pool));
	char expected[128];

	(void)state;
	server->remote = (struct address){.family = AF_UNIX, .port = 5432};
	assert_string_equal(link_database_name(server), "db");
	assert_string_equal(link_user_name(server), "alice");
	snprintf(expected, sizeof(expected), "S-0x%llx: db/alice@unix:5432",
		link_handle(server));
	assert_prefix(server, expected);
}

static void test_prefix_without_a_login_has_placeholders(void **state)
{
	struct client_link *client = endpoint_client(fake_accept(-1));
	char expected[128];

	(void)state;
	snprintf(expected, sizeof(expected), "C-0x%llx: (nodb)/(nouser)@192.0.2.1:50000",
		link_handle(&client->link));
	assert_prefix(&client->link, expected);
	/* The database is shown only if the user is known. */
	client->database = pool->database;
	assert_string_equal(link_database_name(&client->link), "(nodb)");
	client->user = pool->user;
	client->counted_in_user = true;
	assert_string_equal(link_database_name(&client->link), "db");
	assert_string_equal(link_user_name(&client->link), "alice");
	client->database = NULL;
	client->user = NULL;
	client->counted_in_user = false;
}

static void test_names_in_a_prefix_are_escaped(void **state)
{
	struct client_link *client = endpoint_client(fake_accept(-1));
	struct user *user = registry_open_user(&fake_registry, "a\nFATAL b\x1b[2J");
	char prefix[512];

	(void)state;
	client->user = user;
	link_prefix(&client->link, prefix, sizeof(prefix));
	assert_null(strchr(prefix, '\n'));
	assert_null(strchr(prefix, 0x1b));
	assert_non_null(strstr(prefix, "FATAL b\\x1b[2J@192.0.2.1:50000"));
	client->user = NULL;
}

static void test_prefix_is_cut_to_its_buffer(void **state)
{
	char prefix[12];

	(void)state;
	link_prefix(link, prefix, sizeof(prefix));
	assert_int_equal(strlen(prefix), sizeof(prefix) - 1);
}

static void test_handles_are_never_reused(void **state)
{
	struct link *other = endpoint_link(fake_client(pool));

	(void)state;
	assert_true(link_handle(link) != link_handle(other));
	assert_true(other->id > link->id);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(held_bytes_are_appended),
		TEST(holding_no_bytes_succeeds),
		TEST(few_bytes_are_in_the_slab),
		TEST(many_bytes_keep_their_order),
		TEST(held_bytes_are_limited),
		TEST(closed_link_holds_no_bytes),
		TEST(prefix_has_pool_and_user),
		TEST(prefix_of_a_server_has_the_user_of_its_pool),
		TEST(prefix_without_a_login_has_placeholders),
		TEST(names_in_a_prefix_are_escaped),
		TEST(prefix_is_cut_to_its_buffer),
		TEST(handles_are_never_reused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
