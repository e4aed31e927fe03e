/* SPDX-License-Identifier: ISC */
/* In which order the hosts of a list are tried: by their role, whether they answer, and the balance. */
#include "model/host/host_items.h"
#include "session/server/host_choice.h"
#include "session/server/host_fit.h"
#include "support/fakes/fake_pool.h"

static struct pool *pool;

static void start_with(const char *keys)
{
	char config[400];

	snprintf(config, sizeof(config),
		"[databases]\ndb = host=/a,/b,/c %s\n[pgbouncer]\npool_mode = transaction\n",
		keys);
	fake_start(config);
	pool = fake_pool("db", "alice");
}

static struct host *host_at(unsigned n)
{
	const struct host_item item = host_items_nth(pool, n);

	return hosts_open(&fake_registry.hosts, &item, NULL);
}

/*
 * Set what is known of each host by a letter: p primary, s standby, r primary that is read-only by
 * default, o primary that was superseded, l standby that lags, u unknown; a capital: it is dead.
 */
static void know(const char *letters)
{
	for (unsigned n = 0; n < 3; n++) {
		const char letter = (char)(letters[n] | 0x20);
		struct host *host = host_at(n);

		host->role = letter == 'u'		 ? HOST_ROLE_UNKNOWN
			: letter == 's' || letter == 'l' ? HOST_ROLE_STANDBY
							 : HOST_ROLE_PRIMARY;
		host->read_only = letter == 'r';
		host->superseded = letter == 'o';
		host->progress = (struct host_progress){.known = true,
			.behind = letter == 'l' ? 1000 : 0,
			.told_at = loop_now(&fake_loop)};
		host_answered(host, 0);
		if (letters[n] < 'a')
			host_failed(host, "down", loop_now(&fake_loop), &fake_loop.random);
	}
}

/* The order in which one login tries the hosts, as letters of their folders. */
static const char *order(void)
{
	static char text[4];
	struct host_choice choice = {0};
	int index;
	unsigned count = 0;

	pool->next_host = 0;
	while ((index = host_choice_next(&choice, pool)) >= 0)
		text[count++] = (char)('a' + index);
	text[count] = '\0';
	return text;
}

static void assert_order(const char *letters, const char *expected)
{
	know(letters);
	assert_string_equal(order(), expected);
}

static void test_hosts_of_the_role_come_first(void **state)
{
	static const struct {
		const char *target, *hosts, *order;
	} rows[] = {
		{"any", "sps", "abc"},
		{"primary", "sps", "bca"},
		{"primary", "sus", "bca"},
		{"primary", "opu", "bca"},
		{"primary", "rss", "abc"},
		{"read-write", "rps", "bca"},
		{"read-only", "prs", "bca"},
		{"standby", "psu", "bca"},
		{"standby", "pls", "cab"},
		{"prefer-standby", "psp", "bca"},
		/* One that is too far behind is worse than one of the other role. */
		{"prefer-standby", "lps", "cba"},
		{"prefer-standby", "lpl", "bca"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char keys[100];

		snprintf(keys, sizeof(keys), "target_session_attrs=%s max_standby_lag=100B",
			rows[i].target);
		start_with(keys);
		assert_order(rows[i].hosts, rows[i].order);
		fake_end(NULL);
	}
	start_with("");
}

static void test_dead_hosts_come_last(void **state)
{
	(void)state;
	start_with("target_session_attrs=primary");
	assert_order("Psu", "cba");
	assert_order("PSU", "acb");
}

static void test_dead_host_is_tried_by_one_login_only(void **state)
{
	struct host_choice choice = {0};

	(void)state;
	start_with("");
	know("Ppp");
	host_at(0)->prober = (struct server_link *)pool; /* any */
	assert_string_equal(order(), "bc");
	host_at(0)->prober = NULL;
	/* Nor if another host has answered. */
	choice.answered = true;
	pool->next_host = 0;
	assert_int_equal(host_choice_next(&choice, pool), 1);
	assert_int_equal(host_choice_next(&choice, pool), 2);
	assert_int_equal(host_choice_next(&choice, pool), -1);
}

static void test_dead_host_is_as_others_when_its_pause_is_over(void **state)
{
	(void)state;
	start_with("");
	know("Ppp");
	assert_string_equal(order(), "bca");
	fake_advance(2 * USEC_PER_SEC);
	assert_string_equal(order(), "abc");
}

static void test_least_connections_chooses_among_equals_only(void **state)
{
	(void)state;
	start_with("load_balance_hosts=least-connections target_session_attrs=standby");
	know("pss");
	host_at(0)->servers = 0;
	host_at(1)->servers = 5;
	host_at(2)->servers = 2;
	assert_string_equal(order(), "cba");
	for (unsigned n = 0; n < 3; n++)
		host_at(n)->servers = 0;
}

static void test_host_of_another_system_is_the_last(void **state)
{
	(void)state;
	start_with("target_session_attrs=primary");
	know("pps");
	pool->database->system = 1;
	host_at(0)->system = 2;
	host_at(1)->system = 1;
	assert_int_equal(host_fit_of(pool, host_at(0)), HOST_IS_FOREIGN);
	assert_string_equal(order(), "bca");
	fake_set("host_identity_check", "0");
	assert_string_equal(order(), "abc");
}

static void test_lag_that_was_told_long_ago_does_not_count(void **state)
{
	(void)state;
	start_with("target_session_attrs=standby max_standby_lag=100B");
	know("lpp");
	assert_int_equal(host_fit_of(pool, host_at(0)), HOST_DOES_NOT_FIT);
	fake_advance(61 * USEC_PER_SEC);
	assert_int_equal(host_fit_of(pool, host_at(0)), HOST_FITS);
}

/* setting: max_standby_lag databases.max_standby_lag */
static void test_time_limits_the_lag_too(void **state)
{
	(void)state;
	start_with("target_session_attrs=standby max_standby_lag=2s");
	know("lss");
	host_at(0)->progress.replay_age = USEC_PER_SEC;
	assert_int_equal(host_fit_of(pool, host_at(0)), HOST_FITS);
	host_at(0)->progress.replay_age = 3 * USEC_PER_SEC;
	assert_int_equal(host_fit_of(pool, host_at(0)), HOST_DOES_NOT_FIT);
	/* It has all there is: the primary is idle. */
	host_at(0)->progress.behind = 0;
	assert_int_equal(host_fit_of(pool, host_at(0)), HOST_FITS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(test_##name, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(hosts_of_the_role_come_first),
		TEST(dead_hosts_come_last),
		TEST(dead_host_is_tried_by_one_login_only),
		TEST(dead_host_is_as_others_when_its_pause_is_over),
		TEST(least_connections_chooses_among_equals_only),
		TEST(host_of_another_system_is_the_last),
		TEST(lag_that_was_told_long_ago_does_not_count),
		TEST(time_limits_the_lag_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
