/* SPDX-License-Identifier: ISC */
/* Entries of [users]. */
#include "config/user_config.h"
#include "support/files/config_files.h"

static const struct ini_place place = {.file = "f.ini", .line = 7};

static void test_empty_entry_inherits_everything(void **state)
{
	struct problems problems = {0};
	struct user_config *config = user_config_parse(&place, "some one", "", &problems);

	(void)state;
	assert_int_equal(problems.count, 0);
	assert_string_equal(config->name, "some one");
	assert_int_equal(config->pool_mode, POOL_MODE_INHERIT);
	assert_int_equal(config->pool_size, -1);
	assert_int_equal(config->reserve_pool_size, -1);
	assert_int_equal(config->max_user_connections, 0);
	assert_int_equal(config->query_timeout, 0);
	assert_int_equal(config->query_wait_timeout, -1);
	assert_int_equal(config->query_wait_timeout_action, WAIT_ACTION_INHERIT);
	assert_int_equal(config->max_pool_waiters, -1);
	user_config_free(config);
}

static void test_keys_fill_their_fields(void **state)
{
	struct problems problems = {0};
	struct user_config *config = user_config_parse(&place, "u",
		"pool_mode=session pool_size=auto reserve_pool_size=2 max_user_connections=3 "
		"query_timeout=4 idle_transaction_timeout=5 transaction_timeout=6 "
		"max_user_client_connections=7 client_idle_timeout=8 query_wait_timeout=0 "
		"max_pool_waiters=9 query_wait_timeout_action=disconnect",
		&problems);

	(void)state;
	assert_int_equal(problems.count, 0);
	assert_int_equal(config->pool_mode, POOL_MODE_SESSION);
	assert_int_equal(config->pool_size, POOL_SIZE_AUTO);
	assert_int_equal(config->reserve_pool_size, 2);
	assert_int_equal(config->max_user_connections, 3);
	assert_int_equal(config->query_timeout, 4 * USEC_PER_SEC);
	assert_int_equal(config->idle_transaction_timeout, 5 * USEC_PER_SEC);
	assert_int_equal(config->transaction_timeout, 6 * USEC_PER_SEC);
	assert_int_equal(config->max_user_client_connections, 7);
	assert_int_equal(config->client_idle_timeout, 8 * USEC_PER_SEC);
	assert_int_equal(config->query_wait_timeout, 0);
	assert_int_equal(config->query_wait_timeout_action, WAIT_ACTION_DISCONNECT);
	assert_int_equal(config->max_pool_waiters, 9);
	user_config_free(config);
}

static void test_mistakes_have_pgbouncers_texts(void **state)
{
	static const struct {
		const char *text, *log;
	} cases[] = {
		{"pool_size", "syntax error in user settings"},
		{"min_pool_size=1", "unrecognized user parameter: min_pool_size"},
		{"pool_mode=x", "invalid pool mode: x"},
		{"query_wait_timeout_action=x", "invalid query_wait_timeout_action: x"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct problems problems = {0};

		assert_null(user_config_parse(&place, "u", cases[i].text, &problems));
		assert_only_error(&problems, 7, cases[i].log);
		problems_free(&problems);
	}
}

static void test_names_have_at_most_127_bytes(void **state)
{
	struct problems problems = {0};
	char name[129];

	(void)state;
	memset(name, 'n', 128);
	name[128] = '\0';
	assert_null(user_config_parse(&place, name, "", &problems));
	assert_int_equal(problems.count, 1);
	user_config_free(user_config_parse(&place, name + 1, "", &problems));
	assert_int_equal(problems.count, 1);
	problems_free(&problems);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_entry_inherits_everything),
		cmocka_unit_test(test_keys_fill_their_fields),
		cmocka_unit_test(test_mistakes_have_pgbouncers_texts),
		cmocka_unit_test(test_names_have_at_most_127_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
