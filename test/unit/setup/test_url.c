/* SPDX-License-Identifier: ISC */
/* Connection URLs are split as libpq does, and refused where readers would differ. */
#include "setup/url.h"
#include "support/files/config_files.h"

/* All pairs as `key=[value]`, concatenated; or the reason why there are none. */
static const char *parts_of(const char *url)
{
	static char out[1000];
	struct pairs pairs = {0};
	size_t length = 0;
	char why[200];

	out[0] = '\0';
	if (!url_parse(url, &pairs, why, sizeof(why)))
		snprintf(out, sizeof(out), "refused: %s", why);
	else
		for (size_t i = 0; i < pairs.count; i++)
			length += (size_t)snprintf(out + length, sizeof(out) - length,
				"%s=[%s]", pairs.at[i].key, pairs.at[i].value);
	pairs_free(&pairs);
	return out;
}

static void test_parts_are_split_and_decoded(void **state)
{
	static const struct {
		const char *url, *parts;
	} cases[] = {
		{"postgresql://", ""},
		{"postgres://db", "host=[db]"},
		{"postgresql://db:5433/app", "host=[db]port=[5433]dbname=[app]"},
		{"postgres://u@db", "user=[u]host=[db]"},
		{"postgres://u:p@db/", "user=[u]password=[p]host=[db]"},
		{"postgres://u:@db/", "user=[u]host=[db]"},
		{"postgres://:5433/app", "port=[5433]dbname=[app]"},
		{"postgres://u:p%40%2f%3A%25%20%27@db/a%20b",
			"user=[u]password=[p@/:% ']host=[db]dbname=[a b]"},
		{"postgres://u:a:b#c&d=e@db/x",
			"user=[u]password=[a:b#c&d=e]host=[db]dbname=[x]"},
		{"postgres://%C3%A4:p\xc3\xb6@db/x",
			"user=[\xc3\xa4]password=[p\xc3\xb6]host=[db]dbname=[x]"},
		{"postgres://u@[::1]:6/x", "user=[u]host=[::1]port=[6]dbname=[x]"},
		{"postgres://[fe80::1%25eth0]/x", "host=[fe80::1%eth0]dbname=[x]"},
		{"postgres://[2001:db8::1]", "host=[2001:db8::1]"},
		{"postgres://%2Fvar%2Frun%2Fpostgresql/x",
			"host=[/var/run/postgresql]dbname=[x]"},
		{"postgres://%2Frun:6/x", "host=[/run]port=[6]dbname=[x]"},
		{"postgres:///x?host=/run&port=7", "dbname=[x]host=[/run]port=[7]"},
		{"postgres://a,b:6,[::1]:7/x", "host=[a,b,::1]port=[,6,7]dbname=[x]"},
		{"postgres://a,b/x", "host=[a,b]dbname=[x]"},
		{"postgres://db?sslmode=require", "host=[db]sslmode=[require]"},
		{"postgres://db/x?&sslmode=require&&a%20b=c%3Dd&e=",
			"host=[db]dbname=[x]sslmode=[require]a b=[c=d]"},
		{"postgres://db/x?application_name=a+b@c",
			"host=[db]dbname=[x]application_name=[a+b@c]"},
		{"postgres://db/x/y", "host=[db]dbname=[x/y]"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(parts_of(cases[i].url), cases[i].parts);
}

static void test_urls_that_readers_differ_about_are_refused(void **state)
{
	static const struct {
		const char *url, *reason;
	} cases[] = {
		{"mysql://db", "begins with postgresql://"},
		{"Postgres://db", "in small letters"},
		{"postgres:db", "begins with"},
		{"postgres://u:p@ss@db/x", "written %40"},
		{"postgres://u:p/w@db/x", "written %2F"},
		{"postgres://u:p?w@db/x", "written %3F"},
		{"postgres://u:100%@db", "written %25"},
		{"postgres://u:%4@db", "written %25"},
		{"postgres://u:%zz@db", "written %25"},
		{"postgres://u:a%00b@db", "%00"},
		{"postgres://[::1/x", "ends with ]"},
		{"postgres://[]/x", "no address"},
		{"postgres://[::1]5432/x", ":PORT or nothing"},
		{"postgres://::1:5432/x", "between [ and ]"},
		{"postgres://db/x?sslmode", "KEY=VALUE"},
		{"postgres://db/x?=y", "KEY=VALUE"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *parts = parts_of(cases[i].url);

		if (strncmp(parts, "refused: ", 9) != 0 || !strstr(parts, cases[i].reason))
			fail_msg("%s: %s", cases[i].url, parts);
		/* No reason shows what may be a password. */
		assert_null(strstr(parts, "p@ss"));
		assert_null(strstr(parts, "p/w"));
		assert_null(strstr(parts, "100"));
	}
}

static void test_a_url_is_known_by_its_scheme(void **state)
{
	(void)state;
	assert_true(url_is_one("postgres://x"));
	assert_true(url_is_one("postgresql://"));
	assert_false(url_is_one("postgresqls://x"));
	assert_false(url_is_one("host=x"));
	assert_false(url_is_one(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_are_split_and_decoded),
		cmocka_unit_test(test_urls_that_readers_differ_about_are_refused),
		cmocka_unit_test(test_a_url_is_known_by_its_scheme),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
