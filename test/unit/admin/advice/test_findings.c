/* SPDX-License-Identifier: ISC */
/* When a cause becomes advice and when it is over, the order of advice, and its bounds. */
#include "admin/advice/findings.h"
#include "support/fakes/fake_pool.h"

static struct findings findings;
static usec_t now;

static int start(void **state)
{
	(void)state;
	fake_start_pool("");
	now = USEC_PER_SEC;
	findings = (struct findings){0};
	findings_begin(&findings, now);
	findings_end(&findings);
	return 0;
}

/* A sample, so many seconds after the last one; the cause is there, or not. */
static struct advice *sample_after(unsigned seconds, enum advice_kind cause, bool is_there)
{
	struct advice *finding = NULL;

	now += seconds * USEC_PER_SEC;
	findings_begin(&findings, now);
	if (is_there)
		finding = findings_note(&findings, cause, &(struct finding_subject){0});
	findings_end(&findings);
	return finding;
}

static void pass(unsigned seconds, enum advice_kind cause, bool is_there)
{
	for (unsigned i = 0; i < seconds; i++)
		sample_after(1, cause, is_there);
}

/* pool_full appears after 30 seconds and goes after 10. */
static void test_cause_is_shown_when_it_has_held_and_goes_when_it_is_over(void **state)
{
	(void)state;
	pass(29, ADVICE_POOL_FULL, true);
	assert_int_equal(findings.shown_count, 0);
	pass(1, ADVICE_POOL_FULL, true);
	assert_int_equal(findings.shown_count, 1);
	assert_int_equal(now - findings.shown[0]->since, 29 * USEC_PER_SEC);
	pass(100, ADVICE_POOL_FULL, true);
	pass(9, ADVICE_POOL_FULL, false);
	assert_int_equal(findings.shown_count, 1);
	pass(1, ADVICE_POOL_FULL, false);
	assert_int_equal(findings.shown_count, 0);
	assert_int_equal(findings.count, 0);
}

static void test_cause_that_comes_and_goes_is_not_shown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		pass(2, ADVICE_POOL_FULL, true);
		pass(1, ADVICE_POOL_FULL, false);
		assert_int_equal(findings.shown_count, 0);
	}
}

static void test_advice_does_not_flicker(void **state)
{
	(void)state;
	pass(40, ADVICE_POOL_FULL, true);
	for (unsigned i = 0; i < 60; i++) {
		pass(1, ADVICE_POOL_FULL, false);
		pass(4, ADVICE_POOL_FULL, true);
		assert_int_equal(findings.shown_count, 1);
	}
	assert_int_equal(now - findings.shown[0]->since, 339 * USEC_PER_SEC);
}

/* The time between two samples is not known to have had the cause. */
static void test_late_sample_counts_for_little(void **state)
{
	(void)state;
	pass(5, ADVICE_POOL_FULL, true);
	sample_after(3600, ADVICE_POOL_FULL, true);
	assert_int_equal(findings.shown_count, 0);
	pass(30, ADVICE_POOL_FULL, true);
	sample_after(3600, ADVICE_POOL_FULL, false);
	assert_int_equal(findings.shown_count, 1);
}

static void test_most_severe_comes_first_and_then_the_oldest(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		now += USEC_PER_SEC;
		findings_begin(&findings, now);
		if (i > 10)
			findings_note(
				&findings, ADVICE_RESERVE_IN_USE, &(struct finding_subject){0});
		findings_note(&findings, ADVICE_LONG_TRANSACTION, &(struct finding_subject){0});
		findings_note(&findings, ADVICE_POOL_FULL, &(struct finding_subject){0});
		if (i > 20)
			findings_note(
				&findings, ADVICE_LOGIN_FAILING, &(struct finding_subject){0});
		findings_end(&findings);
	}
	assert_int_equal(findings.shown_count, 4);
	assert_int_equal(findings.shown[0]->kind, ADVICE_LOGIN_FAILING);
	assert_int_equal(findings.shown[1]->kind, ADVICE_POOL_FULL);
	assert_int_equal(findings.shown[2]->kind, ADVICE_RESERVE_IN_USE);
	assert_int_equal(findings.shown[3]->kind, ADVICE_LONG_TRANSACTION);
}

static void test_number_of_findings_is_bounded(void **state)
{
	static const char hosts[2 * FINDINGS_MOST];

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		now += USEC_PER_SEC;
		findings_begin(&findings, now);
		for (unsigned j = 0; j < COUNT(hosts); j++)
			findings_note(&findings, ADVICE_HOST_DOWN,
				&(struct finding_subject){.other = &hosts[j]});
		findings_end(&findings);
	}
	assert_int_equal(findings.count, FINDINGS_MOST);
	assert_int_equal(findings.shown_count, ADVICE_MOST);
}

/* So many of one cause about a pool. */
static void note_many(enum advice_kind cause, struct pool *pool)
{
	static const char places[2 * FINDINGS_MOST];

	for (unsigned i = 0; i < COUNT(places); i++)
		findings_note(&findings, cause,
			&(struct finding_subject){.pool = pool, .other = &places[i]});
}

static void test_more_severe_findings_take_the_places_of_others(void **state)
{
	struct pool *pool = fake_pool("db", "alice");

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		now += USEC_PER_SEC;
		findings_begin(&findings, now);
		note_many(ADVICE_POOL_FULL, pool);
		if (i > 0) {
			assert_non_null(findings_note(&findings, ADVICE_LOGIN_FAILING,
				&(struct finding_subject){.pool = pool}));
			assert_null(findings_note(&findings, ADVICE_LONG_TRANSACTION,
				&(struct finding_subject){.pool = pool}));
		}
		findings_end(&findings);
		assert_int_equal(findings.count, FINDINGS_MOST - FINDINGS_MOST / 4);
	}
	assert_int_equal(findings.shown[0]->kind, ADVICE_LOGIN_FAILING);
	assert_int_equal(now - findings.shown[1]->since, 39 * USEC_PER_SEC);
}

/* Clients can make many pools: what is wrong with them does not hide what is not about one. */
static void test_places_for_what_is_not_about_a_pool(void **state)
{
	struct pool *pool = fake_pool("db", "alice");
	bool is_shown = false;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		now += USEC_PER_SEC;
		findings_begin(&findings, now);
		note_many(ADVICE_LOGIN_FAILING, pool);
		assert_non_null(findings_note(&findings, ADVICE_HOST_DOWN,
			&(struct finding_subject){.other = state}));
		findings_end(&findings);
	}
	for (unsigned i = 0; i < findings.shown_count; i++)
		is_shown |= findings.shown[i]->kind == ADVICE_HOST_DOWN;
	assert_true(is_shown);
	assert_int_equal(findings.shown_count, ADVICE_MOST - ADVICE_MOST / 4 + 1);
}

static void test_average_follows_slowly(void **state)
{
	struct advice *finding;

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		finding = sample_after(1, ADVICE_POOL_FULL, true);
		finding_average(finding, 3, i % 2);
	}
	assert_in_range(finding->figures[3], 440, 560);
	for (unsigned i = 0; i < 60; i++) {
		finding = sample_after(1, ADVICE_POOL_FULL, true);
		finding_average(finding, 3, 5);
	}
	assert_in_range(finding->figures[3], 4900, 5000);
}

static void test_names_are_printable(void **state)
{
	struct advice finding;
	char long_name[1000];

	(void)state;
	finding_set_name(&finding, "a\033[31m\n\xff<b>");
	assert_string_equal(finding.name, "a\\x1b[31m\\x0a\\xff<b>");
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	finding_set_name(&finding, long_name);
	assert_int_equal(strlen(finding.name), FINDING_NAME_SIZE - 1);
	finding_set_name(&finding, NULL);
	assert_string_equal(finding.name, "");
}

static void assert_time(usec_t time, const char *expected)
{
	struct buffer out = {0};

	finding_write_time(&out, time);
	buffer_append(&out, "", 1);
	assert_string_equal((const char *)out.data, expected);
	buffer_free(&out);
}

static void test_times_are_in_words(void **state)
{
	(void)state;
	assert_time(350 * USEC_PER_MSEC, "350 ms");
	assert_time(4200 * USEC_PER_MSEC, "4.2 s");
	assert_time(34 * USEC_PER_SEC, "34 s");
	assert_time(12 * 60 * USEC_PER_SEC, "12 minutes");
	assert_time(5 * 3600 * USEC_PER_SEC, "5 hours");
	assert_time(9 * 86400 * USEC_PER_SEC, "9 days");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(cause_is_shown_when_it_has_held_and_goes_when_it_is_over),
		TEST(cause_that_comes_and_goes_is_not_shown),
		TEST(advice_does_not_flicker),
		TEST(late_sample_counts_for_little),
		TEST(most_severe_comes_first_and_then_the_oldest),
		TEST(number_of_findings_is_bounded),
		TEST(more_severe_findings_take_the_places_of_others),
		TEST(places_for_what_is_not_about_a_pool),
		TEST(average_follows_slowly),
		TEST(names_are_printable),
		TEST(times_are_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
