/* SPDX-License-Identifier: ISC */
/* Connect strings are split as in PgBouncer. */
#include "config/connstr.h"
#include "support/files/config_files.h"

/* All pairs as `key=[value]`, concatenated, and the result that ended the walk. */
static enum connstr_result walk_all(const char *text, char *out, size_t size)
{
	struct connstr walk;
	enum connstr_result result;
	char *copy = strdup(text);
	size_t length = 0;

	out[0] = '\0';
	connstr_init(&walk, copy);
	while ((result = connstr_next(&walk)) == CONNSTR_PAIR)
		length += (size_t)snprintf(
			out + length, size - length, "%s=[%s]", walk.key, walk.value);
	free(copy);
	return result;
}

static void test_pairs_are_split(void **state)
{
	static const struct {
		const char *text, *pairs;
	} cases[] = {
		{"", ""},
		{"   ", ""},
		{"host=a port=5", "host=[a]port=[5]"},
		{"  host = a   port =5 ", "host=[a]port=[5]"},
		{"host=x\tport=5", "host=[x\tport=5]"},
		{"password='it''s' user=u", "password=[it's]user=[u]"},
		{"connect_query='set a = ''b'''", "connect_query=[set a = 'b']"},
		{"a='x\\' b=y", "a=[x\\]b=[y]"},
		{"a=x'y b=z", "a=[x'y]b=[z]"},
		{"a=1 a=2", "a=[1]a=[2]"},
		{"a='x',b=y", "a=[x]b=[y]"},
		{"host= port=5", "host=[port=5]"},
		{"a==b", "a=[=b]"},
		{"host=a port=5 ; the main one", "host=[a]port=[5]"},
		{"host=a # port=5", "host=[a]"},
		{"password='a ; b' user=c;d ;e=f", "password=[a ; b]user=[c;d]"},
		{"; nothing", ""},
	};
	char out[200];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(walk_all(cases[i].text, out, sizeof(out)), CONNSTR_END);
		assert_string_equal(out, cases[i].pairs);
	}
}

static void test_other_text_is_malformed(void **state)
{
	static const char *const cases[] = {"host", "host ", "=x", " = x",
		"host=", "host= ", "password=''", "a='x", "a='x''", "a=b c", "a='x' ='y'"};
	char out[200];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(walk_all(cases[i], out, sizeof(out)), CONNSTR_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs_are_split),
		cmocka_unit_test(test_other_text_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
