/* SPDX-License-Identifier: ISC */
/* Entries of [peers]. */
#include "config/peer_config.h"
#include "support/files/config_files.h"

static const struct ini_place place = {.file = "f.ini", .line = 7};

static void test_peer_has_number_host_and_port(void **state)
{
	struct problems problems = {0};
	struct peer_config *config = peer_config_parse(&place, "007", "host=h", &problems);

	(void)state;
	assert_int_equal(problems.count, 0);
	assert_int_equal(config->id, 7);
	assert_string_equal(config->name, "7");
	assert_string_equal(config->host, "h");
	assert_int_equal(config->port, 6432);
	assert_int_equal(config->pool_size, -1);
	peer_config_free(config);
	config = peer_config_parse(&place, "65535", "host=/run port=1 pool_size=2", &problems);
	assert_int_equal(config->id, 65535);
	assert_int_equal(config->port, 1);
	assert_int_equal(config->pool_size, 2);
	peer_config_free(config);
}

static void test_mistakes_have_pgbouncers_texts(void **state)
{
	static const char numbers[] =
		"ids of peers must be a number larger than 0 and at most 65536";
	static const struct {
		const char *id, *text, *log;
	} cases[] = {
		{"0", "host=h", numbers},
		{"-1", "host=h", numbers},
		{"x", "host=h", numbers},
		{"", "host=h", numbers},
		{"65536", "host=h", numbers},
		{"99999999999999999999", "host=h", numbers},
		{"1", "port=5", "host was not provided for peer 1"},
		{"1", "host=h user=u", "unrecognized connection parameter: user"},
		{"1", "host", "syntax error in connection string"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct problems problems = {0};

		assert_null(peer_config_parse(&place, cases[i].id, cases[i].text, &problems));
		assert_only_error(&problems, 7, cases[i].log);
		problems_free(&problems);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peer_has_number_host_and_port),
		cmocka_unit_test(test_mistakes_have_pgbouncers_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
