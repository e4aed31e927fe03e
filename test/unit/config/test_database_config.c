/* SPDX-License-Identifier: ISC */
/* Entries of [databases]: the meaning of their keys, and the reports of mistakes. */
#include "config/database_config.h"
#include "config/entry.h"
#include "support/files/config_files.h"

static const struct ini_place place = {.file = "f.ini", .line = 7};

static struct database_config *parse(
	const char *name, const char *text, struct problems *problems)
{
	*problems = (struct problems){0};
	return database_config_parse(&place, name, text, false, problems);
}

static struct database_config *parse_good(const char *name, const char *text)
{
	struct problems problems;
	struct database_config *config = parse(name, text, &problems);

	if (problems.count > 0)
		fail_msg("%s: %s", text, problems.list[0].text);
	assert_non_null(config);
	return config;
}

static void test_empty_entry_inherits_everything(void **state)
{
	struct database_config *config = parse_good("app", "");

	(void)state;
	assert_string_equal(config->name, "app");
	assert_string_equal(config->dbname, "app");
	assert_null(config->host);
	assert_null(config->user);
	assert_int_equal(config->port, 5432);
	assert_int_equal(config->pool_size, -1);
	assert_int_equal(config->min_pool_size, -1);
	assert_int_equal(config->reserve_pool_size, -1);
	assert_int_equal(config->pool_mode, POOL_MODE_INHERIT);
	assert_int_equal(config->max_db_connections, 0);
	assert_int_equal(config->server_lifetime, 0);
	assert_int_equal(config->query_wait_timeout, -1);
	assert_int_equal(config->query_wait_timeout_action, WAIT_ACTION_INHERIT);
	assert_int_equal(config->max_pool_waiters, -1);
	assert_int_equal(config->load_balance_hosts, LOAD_BALANCE_INHERIT);
	database_config_free(config);
}

static void test_keys_fill_their_fields(void **state)
{
	struct database_config *config = parse_good("app",
		"host=/run/pg port=5433 dbname=real user=u password='it''s' pool_size=5 "
		"min_pool_size=1 reserve_pool=2 pool_mode=Statement max_db_connections=9 "
		"max_db_client_connections=8 server_lifetime=60 query_wait_timeout=0 "
		"connect_query='set x = 1; set y = ''z''' client_encoding=UTF8 datestyle=ISO "
		"timezone=UTC application_name=pool max_pool_waiters=0 "
		"query_wait_timeout_action=Error");

	(void)state;
	assert_string_equal(config->host, "/run/pg");
	assert_int_equal(config->port, 5433);
	assert_string_equal(config->dbname, "real");
	assert_string_equal(config->user, "u");
	assert_string_equal(config->password, "it's");
	assert_int_equal(config->pool_size, 5);
	assert_int_equal(config->min_pool_size, 1);
	assert_int_equal(config->reserve_pool_size, 2);
	assert_int_equal(config->pool_mode, POOL_MODE_STATEMENT);
	assert_int_equal(config->max_db_connections, 9);
	assert_int_equal(config->max_db_client_connections, 8);
	assert_int_equal(config->server_lifetime, 60 * USEC_PER_SEC);
	assert_int_equal(config->query_wait_timeout, 0);
	assert_int_equal(config->query_wait_timeout_action, WAIT_ACTION_ERROR);
	assert_int_equal(config->max_pool_waiters, 0);
	assert_string_equal(config->connect_query, "set x = 1; set y = 'z'");
	assert_string_equal(config->client_encoding, "UTF8");
	assert_string_equal(config->datestyle, "ISO");
	assert_string_equal(config->timezone, "UTC");
	assert_string_equal(config->application_name, "pool");
	database_config_free(config);
}

static void test_numbers_mean_the_same_as_in_pgbouncer(void **state)
{
	static const struct {
		const char *text;
		int pool_size, limit;
		usec_t lifetime, wait;
	} cases[] = {
		{"pool_size=010", 10, 0, 0, -1},
		{"pool_size=0", 0, 0, 0, -1},
		{"pool_size=auto", POOL_SIZE_AUTO, 0, 0, -1},
		{"pool_size=AUTO host_cores=3", POOL_SIZE_AUTO, 0, 0, -1},
		{"pool_size=-1", -1, 0, 0, -1},
		{"max_db_connections=-1", -1, 0, 0, -1},
		{"server_lifetime=1.5", -1, 0, USEC_PER_SEC, -1},
		{"server_lifetime=0.5", -1, 0, 0, -1},
		{"server_lifetime=500ms", -1, 0, USEC_PER_SEC / 2, -1},
		{"server_lifetime=5min", -1, 0, 300 * USEC_PER_SEC, -1},
		{"server_lifetime=-1", -1, 0, 0, -1},
		{"query_wait_timeout=-1", -1, 0, 0, -1},
		{"query_wait_timeout=7", -1, 0, 0, 7 * USEC_PER_SEC},
		{"pool_size=1 pool_size=2", 2, 0, 0, -1},
		{"reserve_pool_size=1 reserve_pool=2 pool_size=3", 3, 0, 0, -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct database_config *config = parse_good("app", cases[i].text);

		assert_int_equal(config->pool_size, cases[i].pool_size);
		assert_int_equal(config->max_db_connections, cases[i].limit);
		assert_int_equal(config->server_lifetime, cases[i].lifetime);
		assert_int_equal(config->query_wait_timeout, cases[i].wait);
		database_config_free(config);
	}
}

static void test_mistakes_are_reported_with_place_and_value(void **state)
{
	static const struct {
		const char *name, *text, *log;
	} cases[] = {
		{"app", "host", "syntax error in connection string"},
		{"app", "host=", "syntax error in connection string"},
		{"app", "hots=x", "unrecognized connection parameter: hots"},
		{"app", "port=0", "invalid port: 0"},
		{"app", "port=x", "invalid port: x"},
		{"app", "port=65536", "invalid port: 65536"},
		{"app", "pool_mode=x", "invalid pool mode: x"},
		{"app", "load_balance_hosts=x", "invalid load_balance_hosts: x"},
		{"app", "pool_size=abc", "invalid pool_size: abc"},
		{"app", "pool_size=5x", "invalid pool_size: 5x"},
		{"app", "pool_size=-2", "invalid pool_size: -2"},
		{"app", "pool_size=autos", "invalid pool_size: autos"},
		{"app", "min_pool_size=auto", "invalid min_pool_size: auto"},
		{"app", "host_cores=all", "invalid host_cores: all"},
		{"app", "pool_size=-5", "invalid pool_size: -5"},
		{"app", "reserve_pool_size=-2", "invalid reserve_pool_size: -2"},
		{"app", "max_db_connections=-2", "invalid max_db_connections: -2"},
		{"app", "server_lifetime=-3", "invalid server_lifetime: -3"},
		{"app", "query_wait_timeout=-2", "invalid query_wait_timeout: -2"},
		{"app", "port=-1", "invalid port: -1"},
		{"app", "server_lifetime=soon", "invalid server_lifetime: soon"},
		{"app", "host=a,,b", "empty item in host list: a,,b"},
		{"app", "host=a,", "empty item in host list: a,"},
		{"pgbouncer", "", "database name \"pgbouncer\" is reserved"},
		{"", "", "a database name has 1 to 63 bytes"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct problems problems;
		char generic[200];

		assert_null(parse(cases[i].name, cases[i].text, &problems));
		assert_only_error(&problems, 7, cases[i].log);
		snprintf(generic, sizeof(generic),
			"invalid value \"%s\" for parameter %s in configuration (f.ini:7)",
			cases[i].text, cases[i].name);
		assert_string_equal(problem_at(&problems, 0)->log[1], generic);
		problems_free(&problems);
	}
}

/* `count` hosts of `length` bytes each. */
static char *host_list(unsigned count, size_t length)
{
	const size_t size = strlen("host=") + count * (length + 1);
	char *text = malloc(size);

	assert_non_null(text);
	memset(text, 'h', size);
	memcpy(text, "host=", strlen("host="));
	for (unsigned i = 1; i < count; i++)
		text[strlen("host=") + i * (length + 1) - 1] = ',';
	text[size - 1] = '\0';
	return text;
}

static void test_number_and_length_of_hosts_are_limited(void **state)
{
	static const struct {
		unsigned count;
		size_t length;
		const char *problem; /* NULL: no problem */
	} cases[] = {
		{1, 255, NULL},
		{256, 255, NULL},
		{1, 256, "app: invalid host: one of 256 bytes: allowed are 255"},
		{2, 100000, "app: invalid host: one of 100000 bytes: allowed are 255"},
		{257, 1, "app: invalid host: 257 hosts are too many: allowed are 256"},
		{70000, 9, "app: invalid host: 70000 hosts are too many: allowed are 256"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *text = host_list(cases[i].count, cases[i].length);
		struct problems problems;
		struct database_config *config = parse("app", text, &problems);

		if (cases[i].problem) {
			assert_null(config);
			assert_string_equal(problem_at(&problems, 0)->text, cases[i].problem);
			assert_in_range(strlen(problem_at(&problems, 0)->log[1]), 1, 400);
		} else {
			assert_int_equal(database_config_hosts(config), cases[i].count);
		}
		database_config_free(config);
		problems_free(&problems);
		free(text);
	}
}

static void test_every_mistake_of_an_entry_is_reported(void **state)
{
	struct problems problems;

	(void)state;
	assert_null(parse("app", "port=0 hots=x pool_mode=y", &problems));
	assert_int_equal(problems.count, 3);
	assert_non_null(problem_at(&problems, 0)->log[1]);
	assert_null(problem_at(&problems, 1)->log[1]);
	problems_free(&problems);
}

static void test_unknown_keys_get_a_hint_that_is_not_logged(void **state)
{
	static const struct {
		const char *text, *problem, *logged;
	} cases[] = {
		{"hots=x", "app: unrecognized connection parameter: hots: did you mean host?",
			"unrecognized connection parameter: hots"},
		{"sslmode=x",
			"app: unrecognized connection parameter: sslmode: allowed is "
			"application_name, ",
			"unrecognized connection parameter: sslmode"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct problems problems;

		assert_null(parse("app", cases[i].text, &problems));
		assert_contains(problem_at(&problems, 0)->text, cases[i].problem);
		assert_string_equal(problem_at(&problems, 0)->log[0], cases[i].logged);
		problems_free(&problems);
	}
}

static void test_passwords_are_not_shown(void **state)
{
	struct problems problems;

	(void)state;
	assert_null(parse("app", "port=0 PassWord=hidden host", &problems));
	assert_true(problems.count >= 1);
	for (size_t i = 0; i < problems.count; i++) {
		const struct problem *problem = problem_at(&problems, i);

		assert_null(strstr(problem->text, "hidden"));
		assert_null(strstr(problem->log[0], "hidden"));
		assert_true(!problem->log[1] || !strstr(problem->log[1], "hidden"));
	}
	problems_free(&problems);
}

static void test_names_have_at_most_63_bytes(void **state)
{
	struct problems problems;
	char name[65];

	(void)state;
	memset(name, 'n', 64);
	name[64] = '\0';
	assert_null(parse(name, "", &problems));
	assert_int_equal(problems.count, 1);
	problems_free(&problems);
	database_config_free(parse_good(name + 1, ""));
}

static void test_of_a_repeated_key_the_last_counts(void **state)
{
	struct problems problems;
	struct database_config *config = parse("app",
		"auth_user=a auth_user=b host=a,b load_balance_hosts=disable", &problems);

	(void)state;
	assert_non_null(config);
	assert_int_equal(problems.warnings, 0);
	assert_string_equal(config->host, "a,b");
	assert_int_equal(config->load_balance_hosts, LOAD_BALANCE_DISABLE);
	assert_string_equal(config->auth_user, "b");
	problems_free(&problems);
	database_config_free(config);
}

static void test_template_makes_automatic_databases(void **state)
{
	struct database_config *model = parse_good("*", "host=h password=x");
	struct database_config *made = database_config_from_template(model, "new");
	struct database_config *other;

	(void)state;
	assert_null(model->dbname);
	database_config_free(model);
	assert_string_equal(made->name, "new");
	assert_string_equal(made->dbname, "new");
	assert_string_equal(made->host, "h");
	assert_string_equal(made->password, "x");
	database_config_free(made);

	model = parse_good("*", "dbname=fixed");
	other = database_config_from_template(model, "new");
	assert_string_equal(other->dbname, "fixed");
	database_config_free(other);
	database_config_free(model);
	assert_null(database_config_from_template(NULL, "new"));
}

static void test_mistakes_in_a_template_are_warnings(void **state)
{
	struct problems problems = {0};

	(void)state;
	assert_null(database_config_parse(&place, "*", "port=0", true, &problems));
	assert_int_equal(problems_errors(&problems), 0);
	assert_int_equal(problems.warnings, 1);
	problems_free(&problems);
}

static void test_changes_of_the_target_are_detected(void **state)
{
	static const struct {
		const char *text;
		bool same;
	} cases[] = {
		{"host=h user=u", true},
		{"host=h user=u dbname=app", true},
		{"host=h user=u password=p pool_size=9 pool_mode=session timezone=UTC", true},
		{"host=h user=u auth_user=x application_name=y client_encoding=z", true},
		{"host=h user=u query_wait_timeout=3 server_lifetime=3", true},
		{"host=i user=u", false},
		{"user=u", false},
		{"host=h user=v", false},
		{"host=h", false},
		{"host=h user=u port=1", false},
		{"host=h user=u dbname=x", false},
		{"host=h user=u connect_query=x", false},
		{"host=h user=u auth_query=x", false},
		{"host=h user=u auth_dbname=x", false},
		{"host=h user=u load_balance_hosts=disable", false},
	};
	struct database_config *before = parse_good("app", "host=h user=u");

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct problems problems;
		struct database_config *after = parse("app", cases[i].text, &problems);

		assert_int_equal(problems_errors(&problems), 0);
		assert_int_equal(database_config_same_target(before, after), cases[i].same);
		database_config_free(after);
		problems_free(&problems);
	}
	database_config_free(before);
}

static void test_changes_of_any_key_are_detected(void **state)
{
	static const char *const others[] = {"host=i", "host=h port=7", "host=h pool_size=9",
		"host=h pool_mode=session", "host=h timezone=UTC", "host=h password=p",
		"host=h query_wait_timeout=3", "host=h session_state=ignore",
		"host=h load_balance_hosts=disable", "host=h max_standby_lag=3s",
		"host=h target_session_attrs=primary", "host=h max_db_connections=3",
		"host=h query_wait_timeout_action=error"};
	struct database_config *before = parse_good("app", "host=h");
	struct database_config *same = parse_good("app", "host=h");

	(void)state;
	assert_true(entry_same(database_config_grammar(), before, same));
	for (size_t i = 0; i < COUNT(others); i++) {
		struct database_config *after = parse_good("app", others[i]);

		assert_false(entry_same(database_config_grammar(), before, after));
		database_config_free(after);
	}
	database_config_free(before);
	database_config_free(same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_entry_inherits_everything),
		cmocka_unit_test(test_keys_fill_their_fields),
		cmocka_unit_test(test_numbers_mean_the_same_as_in_pgbouncer),
		cmocka_unit_test(test_mistakes_are_reported_with_place_and_value),
		cmocka_unit_test(test_number_and_length_of_hosts_are_limited),
		cmocka_unit_test(test_every_mistake_of_an_entry_is_reported),
		cmocka_unit_test(test_unknown_keys_get_a_hint_that_is_not_logged),
		cmocka_unit_test(test_passwords_are_not_shown),
		cmocka_unit_test(test_names_have_at_most_63_bytes),
		cmocka_unit_test(test_of_a_repeated_key_the_last_counts),
		cmocka_unit_test(test_template_makes_automatic_databases),
		cmocka_unit_test(test_mistakes_in_a_template_are_warnings),
		cmocka_unit_test(test_changes_of_the_target_are_detected),
		cmocka_unit_test(test_changes_of_any_key_are_detected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
