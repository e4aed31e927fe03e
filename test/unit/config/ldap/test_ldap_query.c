/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/ldap/ldap_query.h"

static struct ldap_options options;

static void parse(const char *text)
{
	char why[256];

	ldap_options_free(&options);
	assert_true(ldap_options_parse(text, &options, why, sizeof(why)));
}

static int tear_down(void **state)
{
	(void)state;
	ldap_options_free(&options);
	return 0;
}

/* Check a returned text, and free it. */
#define assert_made(made, expected)                                                            \
	do {                                                                                   \
		char *const text = (made);                                                     \
                                                                                               \
		assert_non_null(text);                                                         \
		assert_string_equal(text, expected);                                           \
		free(text);                                                                    \
	} while (0)

static void test_names_with_filter_syntax_are_refused(void **state)
{
	static const char *const bad[] = {
		"*", "a*", "(a", "a)", "a\\2a", "a/b", "a)(uid=*", "\\"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(ldap_query_allows(bad[i]));
	assert_true(ldap_query_allows("alice"));
	assert_true(ldap_query_allows("o'neil, \"x\"=&|!<>~#+;@$username"));
}

static void test_filter_compares_the_attribute_with_the_name(void **state)
{
	(void)state;
	parse("ldapserver=h ldapbasedn=b");
	assert_made(ldap_query_filter(&options, "alice"), "(uid=alice)");
	parse("ldapserver=h ldapbasedn=b ldapsearchattribute=sAMAccountName");
	assert_made(ldap_query_filter(&options, "alice"), "(sAMAccountName=alice)");
}

static void test_every_placeholder_becomes_the_name(void **state)
{
	(void)state;
	parse("ldapserver=h ldapbasedn=b "
	      "ldapsearchfilter=(|(uid=$username)(mail=$username@x)(cn=$user))");
	assert_made(ldap_query_filter(&options, "al"), "(|(uid=al)(mail=al@x)(cn=$user))");
	/* A name that looks like a placeholder is not replaced again. */
	parse("ldapserver=h ldapbasedn=b ldapsearchfilter=cn=$username");
	assert_made(ldap_query_filter(&options, "$username"), "cn=$username");
}

static void test_filter_without_placeholder_is_unchanged(void **state)
{
	(void)state;
	parse("ldapserver=h ldapbasedn=b ldapsearchfilter=(cn=fixed)");
	assert_made(ldap_query_filter(&options, "alice"), "(cn=fixed)");
}

static void test_non_ascii_bytes_are_escaped_in_filters(void **state)
{
	(void)state;
	parse("ldapserver=h ldapbasedn=b");
	assert_made(ldap_query_filter(&options, "j\xc3\xb6rg"), "(uid=j\\c3\\b6rg)");
	assert_made(ldap_query_filter(&options, "\x01\xff\x7f"), "(uid=\\01\\ff\\7f)");
	/* Even a name that ldap_query_allows() refuses cannot change the filter. */
	assert_made(ldap_query_filter(&options, "*)(\\"), "(uid=\\2a\\29\\28\\5c)");
}

static void test_dn_is_prefix_name_suffix(void **state)
{
	(void)state;
	parse("ldapserver=h ldapprefix=\"cn=\" ldapsuffix=\", dc=x\"");
	assert_made(ldap_query_dn(&options, "alice"), "cn=alice, dc=x");
	parse("ldapserver=h ldapsuffix=@example.net");
	assert_made(ldap_query_dn(&options, "alice"), "alice@example.net");
	parse("ldapserver=h ldapprefix=EXAMPLE\\");
	assert_made(ldap_query_dn(&options, "alice"), "EXAMPLE\\alice");
}

static void test_ports_follow_the_scheme_unless_given(void **state)
{
	(void)state;
	parse("ldapserver=h ldapprefix=a");
	assert_made(ldap_query_uris(&options, NULL), "ldap://h:389");
	parse("ldapserver=h ldapprefix=a ldapscheme=ldaps");
	assert_made(ldap_query_uris(&options, NULL), "ldaps://h:636");
	parse("ldapserver=h ldapprefix=a ldapscheme=ldaps ldapport=77");
	assert_made(ldap_query_uris(&options, NULL), "ldaps://h:77");
}

static void test_each_of_several_hosts_is_a_uri(void **state)
{
	(void)state;
	parse("ldapserver=\" one  two ::1 [::2] \" ldapport=77 ldapprefix=a");
	assert_made(ldap_query_uris(&options, NULL),
		"ldap://one:77 ldap://two:77 ldap://[::1]:77 ldap://[::2]:77");
}

static void test_hosts_from_dns_have_their_own_ports(void **state)
{
	(void)state;
	parse("ldapbasedn=\"dc=x\" ldapport=77");
	assert_made(ldap_query_uris(&options, "one:389 two:1389"),
		"ldap://one:389 ldap://two:1389");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_names_with_filter_syntax_are_refused),
		TEST(test_filter_compares_the_attribute_with_the_name),
		TEST(test_every_placeholder_becomes_the_name),
		TEST(test_filter_without_placeholder_is_unchanged),
		TEST(test_non_ascii_bytes_are_escaped_in_filters),
		TEST(test_dn_is_prefix_name_suffix),
		TEST(test_ports_follow_the_scheme_unless_given),
		TEST(test_each_of_several_hosts_is_a_uri),
		TEST(test_hosts_from_dns_have_their_own_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
