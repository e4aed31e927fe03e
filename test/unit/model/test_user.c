/* SPDX-License-Identifier: ISC */
/* The secret of a user, and how long keys derived from it stay valid. */
#include "support/fakes/fake_pool.h"

#define SCRAM_TEXT                                                                                  \
	"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:" \
	"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
#define MD5_TEXT "md5a7c4a2f1fd1d8a1c3bd7d3b8e1a9f3c2"

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "[users]\n"
		   "limited = max_user_connections=3 max_user_client_connections=4\n"
		   "[pgbouncer]\n"
		   "max_user_connections = 7\n"
		   "max_user_client_connections = 8\n");
	return 0;
}

static void test_kinds_of_secrets(void **state)
{
	(void)state;
	assert_int_equal(secret_kind(NULL), SECRET_NONE);
	assert_int_equal(secret_kind(""), SECRET_EMPTY);
	assert_int_equal(secret_kind("secret"), SECRET_PLAIN);
	assert_int_equal(secret_kind(MD5_TEXT), SECRET_MD5);
	assert_int_equal(secret_kind(SCRAM_TEXT), SECRET_SCRAM);
}

static void test_text_that_resembles_a_hash_is_a_password(void **state)
{
	(void)state;
	assert_int_equal(secret_kind("md5a7c4a2f1fd1d8a1c3bd7d3b8e1a9f3c"), SECRET_PLAIN);
	assert_int_equal(secret_kind(MD5_TEXT "0"), SECRET_PLAIN);
	assert_int_equal(secret_kind("md5A7C4A2F1FD1D8A1C3BD7D3B8E1A9F3C2"), SECRET_PLAIN);
	assert_int_equal(secret_kind("SCRAM-SHA-256$4096:AAAA$BBBB:CCCC"), SECRET_PLAIN);
	assert_int_equal(secret_kind(SCRAM_TEXT "x"), SECRET_PLAIN);
}

static void test_keys_of_a_scram_secret_are_parsed(void **state)
{
	struct user *user = fake_user("alice", SCRAM_TEXT);
	struct user_keys *keys = user_keys(user);

	(void)state;
	assert_non_null(keys);
	assert_true(keys->verifier_known);
	assert_int_equal(keys->verifier.iterations, 4096);
	assert_int_equal(keys->verifier.salt_length, 16);
	assert_false(keys->client_key_known);
	assert_ptr_equal(user_keys(user), keys);
}

static void test_keys_of_a_password_must_be_derived(void **state)
{
	struct user_keys *keys = user_keys(fake_user("alice", "secret"));

	(void)state;
	assert_non_null(keys);
	assert_false(keys->verifier_known);
	assert_int_equal(keys->verifier.salt_length, 0);
}

static void test_unchanged_secret_in_a_new_auth_file_keeps_its_keys(void **state)
{
	char again[] = "secret";
	struct user *user = fake_user("alice", "secret");
	struct user_keys *keys = user_keys(user);

	(void)state;
	user_set_secret(user, again);
	assert_ptr_equal(user->keys, keys);
	assert_ptr_equal(user->secret, again);
	user_set_secret(user, "secret");
}

static void test_changed_or_removed_secret_drops_the_keys(void **state)
{
	struct user *user = fake_user("alice", "secret");

	(void)state;
	user_keys(user);
	user_set_secret(user, "terces");
	assert_null(user->keys);
	user_keys(user);
	user_set_secret(user, NULL);
	assert_null(user->keys);
	assert_null(user->secret);
	user_keys(user);
	user_set_secret(user, NULL);
	assert_null(user->keys);
	user_drop_keys(user);
}

static void test_own_limits_override_the_settings(void **state)
{
	struct user *user = fake_user("alice", NULL);
	struct user *limited = registry_find_user(&fake_registry, "limited");

	(void)state;
	assert_non_null(limited);
	assert_int_equal(user_max_servers(user, fake_registry.process->settings), 7);
	assert_int_equal(user_max_clients(user, fake_registry.process->settings), 8);
	assert_int_equal(user_max_servers(limited, fake_registry.process->settings), 3);
	assert_int_equal(user_max_clients(limited, fake_registry.process->settings), 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(kinds_of_secrets),
		TEST(text_that_resembles_a_hash_is_a_password),
		TEST(keys_of_a_scram_secret_are_parsed),
		TEST(keys_of_a_password_must_be_derived),
		TEST(unchanged_secret_in_a_new_auth_file_keeps_its_keys),
		TEST(changed_or_removed_secret_drops_the_keys),
		TEST(own_limits_override_the_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
