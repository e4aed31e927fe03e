/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/ldap/ldap_options.h"

static struct ldap_options options;
static char why[256];

static bool parse(const char *text)
{
	ldap_options_free(&options);
	why[0] = '\0';
	return ldap_options_parse(text, &options, why, sizeof(why));
}

#define assert_refused(text, reason)                                                           \
	do {                                                                                   \
		assert_false(parse(text));                                                     \
		assert_string_equal(why, reason);                                              \
		assert_null(options.server);                                                   \
		assert_null(options.base);                                                     \
	} while (0)

static int tear_down(void **state)
{
	(void)state;
	ldap_options_free(&options);
	return 0;
}

/* --- items -------------------------------------------------------------------------------- */

static void test_items_are_separated_by_blanks_and_one_comma(void **state)
{
	static const char *const spellings[] = {
		"ldapserver=h ldapprefix=a ldapsuffix=b",
		"ldapserver=h,ldapprefix=a,ldapsuffix=b",
		"  ldapserver=h \t,  ldapprefix=a ,\nldapsuffix=b  ",
		"ldapserver=\"h\"ldapprefix=\"a\"ldapsuffix=\"b\"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		assert_true(parse(spellings[i]));
		assert_string_equal(options.server, "h");
		assert_string_equal(options.prefix, "a");
		assert_string_equal(options.suffix, "b");
	}
}

static void test_quotes_keep_blanks_commas_and_doubled_quotes(void **state)
{
	(void)state;
	assert_true(parse("ldapserver=\"h1  h2\" ldapprefix=\"a=\"\"b\"\",c\" "
			  "\"ldapsuffix\"=\",dc=x, dc=y\""));
	assert_string_equal(options.server, "h1  h2");
	assert_string_equal(options.prefix, "a=\"b\",c");
	assert_string_equal(options.suffix, ",dc=x, dc=y");
}

static void test_bare_value_may_contain_equals_signs(void **state)
{
	(void)state;
	assert_true(parse("ldapserver=h ldapbasedn=dc=example"));
	assert_string_equal(options.base, "dc=example");
}

static void test_comma_in_a_bare_value_ends_it(void **state)
{
	(void)state;
	assert_refused(
		"ldapserver=h ldapbasedn=dc=example,dc=net", "invalid LDAP option: \"dc\"");
}

static void test_parsing_ends_silently_at_a_malformed_item(void **state)
{
	static const char *const ends[] = {"rubbish", "=x", "ldapport=", "ldapport =1",
		"ldapport= 1", "ldapport=\"\"", "\"\"=1", ",,ldapport=1", "ldapport,=1"};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(text, sizeof(text), "ldapserver=h,ldapprefix=a, %s ldapport=77 bad=1",
			ends[i]);
		assert_true(parse(text));
		assert_string_equal(options.prefix, "a");
		assert_int_equal(options.port, 0);
	}
}

static void test_unfinished_quote_is_an_error(void **state)
{
	static const char reason[] = "LDAP options have a quote that does not end";

	(void)state;
	assert_refused("ldapserver=h ldapprefix=\"a", reason);
	assert_refused("ldapserver=h ldapprefix=\"a\"\"", reason);
	assert_refused("ldapserver=h ldapprefix=a \"", reason);
}

static void test_unknown_key_is_named(void **state)
{
	(void)state;
	assert_refused("ldapserver=h ldapprefix=a ldapcolour=red",
		"invalid LDAP option: \"ldapcolour\"");
	/* Keys are case-sensitive. */
	assert_refused("LDAPSERVER=h ldapprefix=a", "invalid LDAP option: \"LDAPSERVER\"");
}

static void test_last_of_repeated_keys_counts(void **state)
{
	(void)state;
	assert_true(parse("ldapserver=a ldapserver=b ldapprefix=x ldapport=1 ldapport=2"));
	assert_string_equal(options.server, "b");
	assert_int_equal(options.port, 2);
}

static void test_no_more_than_1023_bytes_are_parsed(void **state)
{
	char text[1200];

	(void)state;
	memset(text, ' ', sizeof(text));
	memcpy(text, "ldapserver=h ldapprefix=a", 25);
	memcpy(text + LDAP_OPTIONS_MAX - 10, "ldapport=78", 12);
	assert_true(parse(text));
	assert_int_equal(options.port, 7);
	memset(text, ' ', sizeof(text));
	memcpy(text, "ldapserver=h ldapprefix=a", 25);
	memcpy(text + LDAP_OPTIONS_MAX, " bad=1", 7);
	assert_true(parse(text));
}

/* --- values ------------------------------------------------------------------------------- */

static void test_ports_are_1_to_65535(void **state)
{
	static const char *const bad[] = {
		"0", "65536", "x", "389x", "-1", "0x185", "99999999999999999999"};
	char text[100], reason[100];

	(void)state;
	assert_true(parse("ldapserver=h ldapprefix=a ldapport=65535"));
	assert_int_equal(options.port, 65535);
	assert_true(parse("ldapserver=h ldapprefix=a ldapport=0389"));
	assert_int_equal(options.port, 389);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "ldapserver=h ldapprefix=a ldapport=%s", bad[i]);
		snprintf(reason, sizeof(reason), "invalid LDAP port number: \"%s\"", bad[i]);
		assert_refused(text, reason);
	}
}

static void test_schemes_are_ldap_and_ldaps(void **state)
{
	(void)state;
	assert_true(parse("ldapserver=h ldapprefix=a"));
	assert_false(options.ldaps);
	assert_true(parse("ldapserver=h ldapprefix=a ldapscheme=ldaps"));
	assert_true(options.ldaps);
	assert_true(parse("ldapserver=h ldapprefix=a ldapscheme=ldaps ldapscheme=ldap"));
	assert_false(options.ldaps);
	assert_refused(
		"ldapserver=h ldapprefix=a ldapscheme=ldapi", "invalid LDAP scheme: \"ldapi\"");
}

static void test_only_1_asks_for_start_tls(void **state)
{
	(void)state;
	assert_true(parse("ldapserver=h ldapprefix=a ldaptls=1"));
	assert_true(options.start_tls);
	assert_true(parse("ldapserver=h ldapprefix=a ldaptls=1 ldaptls=yes"));
	assert_false(options.start_tls);
}

/* --- modes -------------------------------------------------------------------------------- */

static void test_prefix_or_suffix_make_a_simple_bind(void **state)
{
	(void)state;
	assert_true(parse("ldapserver=h ldapprefix=a"));
	assert_false(ldap_options_is_search(&options));
	assert_true(parse("ldapserver=h ldapsuffix=@b"));
	assert_false(ldap_options_is_search(&options));
	assert_true(parse("ldapserver=h ldapbasedn=b"));
	assert_true(ldap_options_is_search(&options));
}

static void test_options_of_both_modes_are_refused(void **state)
{
	static const char *const searches[] = {"ldapbasedn=b", "ldapbinddn=b",
		"ldapbindpasswd=b", "ldapsearchattribute=b", "ldapsearchfilter=b",
		"ldapurl=ldap://h/b"};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(searches) / sizeof(searches[0]); i++) {
		snprintf(text, sizeof(text), "ldapserver=h ldapprefix=a %s", searches[i]);
		assert_refused(text, "LDAP options have both a prefix or suffix and a search");
		snprintf(text, sizeof(text), "ldapserver=h %s ldapsuffix=a", searches[i]);
		assert_refused(text, "LDAP options have both a prefix or suffix and a search");
	}
	/* So is a URL that only names a server. */
	assert_true(parse("ldapurl=ldap://h ldapprefix=a"));
}

static void test_options_without_a_mode_are_refused(void **state)
{
	static const char reason[] =
		"LDAP options have neither ldapprefix, ldapsuffix nor ldapbasedn";

	(void)state;
	assert_refused("", reason);
	assert_refused("ldapserver=h ldapport=5", reason);
}

static void test_search_needs_a_base(void **state)
{
	(void)state;
	assert_refused("ldapserver=h ldapsearchattribute=cn",
		"LDAP options for a search lack ldapbasedn");
}

static void test_attribute_and_filter_exclude_each_other(void **state)
{
	static const char reason[] = "LDAP options have both an attribute and a filter";

	(void)state;
	assert_refused(
		"ldapserver=h ldapbasedn=b ldapsearchattribute=cn ldapsearchfilter=(a=b)",
		reason);
	assert_refused("ldapurl=ldap://h/b?cn?\?(a=b)", reason);
	assert_refused("ldapurl=ldap://h/b?cn ldapsearchfilter=(a=b)", reason);
}

static void test_start_tls_within_ldaps_is_refused_whatever_the_port(void **state)
{
	static const char reason[] = "LDAP options ask for ldaps and for StartTLS";

	(void)state;
	assert_refused("ldapserver=h ldapprefix=a ldaptls=1 ldapscheme=ldaps", reason);
	assert_refused(
		"ldapserver=h ldapprefix=a ldapport=389 ldaptls=1 ldapscheme=ldaps", reason);
	assert_refused("ldapurl=ldaps://h/b ldaptls=1", reason);
}

static void test_without_server_the_base_names_the_dns_domain(void **state)
{
	(void)state;
	assert_true(parse("ldapbasedn=\"dc=example,dc=net\""));
	assert_null(options.server);
	assert_refused("ldapprefix=a", "LDAP options lack ldapserver");
}

/* --- URLs --------------------------------------------------------------------------------- */

static void test_url_sets_all_its_parts(void **state)
{
	(void)state;
	assert_true(parse("ldapurl=\"ldaps://h.example:1636/dc=example,dc=net?mail,cn?ONE\""));
	assert_true(options.ldaps);
	assert_string_equal(options.server, "h.example");
	assert_int_equal(options.port, 1636);
	assert_string_equal(options.base, "dc=example,dc=net");
	assert_string_equal(options.attribute, "mail");
	assert_int_equal(options.scope, LDAP_SCOPE_OF_ONE_LEVEL);
	assert_null(options.filter);
	assert_true(parse("ldapurl=ldap://h/b??base?(&(uid=$username)(x=y))"));
	assert_false(options.ldaps);
	assert_int_equal(options.port, 0);
	assert_int_equal(options.scope, LDAP_SCOPE_OF_BASE);
	assert_null(options.attribute);
	assert_string_equal(options.filter, "(&(uid=$username)(x=y))");
}

static void test_trailing_parts_of_a_url_may_be_missing(void **state)
{
	static const char *const spellings[] = {"LDAP://h/b", "ldap://h/b?", "ldap://h/b??",
		"ldap://h/b???", "ldap://h/b????", "ldap://h/b??sub", "ldap://h/b????x-none"};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		snprintf(text, sizeof(text), "ldapurl=%s", spellings[i]);
		assert_true(parse(text));
		assert_string_equal(options.server, "h");
		assert_string_equal(options.base, "b");
		assert_int_equal(options.scope, LDAP_SCOPE_OF_SUBTREE);
		assert_null(options.attribute);
		assert_null(options.filter);
	}
}

static void test_url_decodes_percent_signs(void **state)
{
	(void)state;
	assert_true(parse("ldapurl=ldap://h/dc%3Dx%2cdc=y%20z??sub?(cn=a%3fb)"));
	assert_string_equal(options.base, "dc=x,dc=y z");
	assert_string_equal(options.filter, "(cn=a?b)");
}

static void test_url_of_an_address(void **state)
{
	(void)state;
	assert_true(parse("ldapurl=ldap://[::1]:1389/b"));
	assert_string_equal(options.server, "[::1]");
	assert_int_equal(options.port, 1389);
	assert_true(parse("ldapurl=ldap://[::1]/b"));
	assert_string_equal(options.server, "[::1]");
}

static void test_url_without_host_keeps_the_server(void **state)
{
	(void)state;
	assert_true(parse("ldapurl=ldap:///dc=x"));
	assert_null(options.server);
	assert_true(parse("ldapserver=h ldapport=5 ldapurl=ldap:///dc=x"));
	assert_string_equal(options.server, "h");
	assert_int_equal(options.port, 0);
}

static void test_malformed_urls_are_refused(void **state)
{
	static const char *const bad[] = {"http://h/b", "ldap:/h", "ldapi://h/b", "h/b",
		"ldap://h:0/b", "ldap://h:65536/b", "ldap://h:/b", "ldap://h:x/b",
		"ldap://h:1:2/b", "ldap://h/b?a?tree", "ldap://h/b%", "ldap://h/b%2",
		"ldap://h/b%zz", "ldap://h/b%00", "ldap://h?b", "ldap://h/b???\?!x",
		"ldap://h/b????a,%21x", "ldap://h%20i/b"};
	char text[200], reason[200];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "ldapurl=\"%s\"", bad[i]);
		snprintf(reason, sizeof(reason), "invalid LDAP URL: \"%s\"", bad[i]);
		assert_refused(text, reason);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_items_are_separated_by_blanks_and_one_comma),
		TEST(test_quotes_keep_blanks_commas_and_doubled_quotes),
		TEST(test_bare_value_may_contain_equals_signs),
		TEST(test_comma_in_a_bare_value_ends_it),
		TEST(test_parsing_ends_silently_at_a_malformed_item),
		TEST(test_unfinished_quote_is_an_error),
		TEST(test_unknown_key_is_named),
		TEST(test_last_of_repeated_keys_counts),
		TEST(test_no_more_than_1023_bytes_are_parsed),
		TEST(test_ports_are_1_to_65535),
		TEST(test_schemes_are_ldap_and_ldaps),
		TEST(test_only_1_asks_for_start_tls),
		TEST(test_prefix_or_suffix_make_a_simple_bind),
		TEST(test_options_of_both_modes_are_refused),
		TEST(test_options_without_a_mode_are_refused),
		TEST(test_search_needs_a_base),
		TEST(test_attribute_and_filter_exclude_each_other),
		TEST(test_start_tls_within_ldaps_is_refused_whatever_the_port),
		TEST(test_without_server_the_base_names_the_dns_domain),
		TEST(test_url_sets_all_its_parts),
		TEST(test_trailing_parts_of_a_url_may_be_missing),
		TEST(test_url_decodes_percent_signs),
		TEST(test_url_of_an_address),
		TEST(test_url_without_host_keeps_the_server),
		TEST(test_malformed_urls_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
