/* SPDX-License-Identifier: ISC */
/* The HBA file: which lines are rules, and which rule matches a connection. */
#include <arpa/inet.h>
#include <sys/stat.h>

#include "config/hba.h"
#include "support/files/config_files.h"

static struct problems problems;
static struct ident *ident;
static struct hba *hba;

static void parse(const char *text)
{
	problems_free(&problems);
	hba_unref(hba);
	hba = hba_parse("hba", text, strlen(text), ident, &problems);
	assert_non_null(hba);
}

static int start(void **state)
{
	struct problems none = {0};

	(void)state;
	ident = ident_parse("ident", "m root alice\n", 13, &none);
	return ident ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	ident_unref(ident);
	problems_free(&problems);
	hba_unref(hba);
	hba = NULL;
	return 0;
}

/* Address of a client: "unix", or an IP address; a leading "+" means TLS. */
static struct address address_of_client(const char *from)
{
	struct address out = {.family = AF_UNIX};

	if (strcmp(from, "unix") == 0)
		return out;
	out.family = strchr(from, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(out.family, from, out.bytes), 1);
	return out;
}

static unsigned find(
	const char *from, const char *database, const char *user, bool physical_replication)
{
	const bool tls = from[0] == '+';
	const struct address address = address_of_client(from + tls);
	const struct hba_connection connection = {
		.address = &address,
		.tls = tls,
		.physical_replication = physical_replication,
		.database = database,
		.user = user,
	};
	const struct hba_rule *rule = hba_find(hba, &connection);

	return rule ? rule->line : 0;
}

/* The line of the rule that matches such a client; 0: none. */
static unsigned line_for(const char *from, const char *database, const char *user)
{
	return find(from, database, user, false);
}

/* The only line is skipped, with this text and the one that all bad lines get. */
static void assert_bad(const char *line, const char *text)
{
	const struct problem *problem;

	parse(line);
	assert_int_equal(problems.count, 1);
	problem = problem_at(&problems, 0);
	assert_int_equal(problem->severity, PROBLEM_SKIPPED);
	assert_int_equal(problem->line, 1);
	assert_string_equal(problem->file, "hba");
	assert_contains(problem->log[0], text);
	assert_string_equal(problem->log[1], "could not parse hba config line 1");
	assert_null(hba_rule_at(hba, 0));
	assert_int_equal(problems_errors(&problems), 0);
}

static void assert_good(const char *line)
{
	parse(line);
	if (problems.count > 0)
		fail_msg("%s: %s", line, problem_at(&problems, 0)->text);
	assert_non_null(hba_rule_at(hba, 0));
	assert_null(hba_rule_at(hba, 1));
}

/* --- connections -------------------------------------------------------------------------- */

static void test_the_type_selects_connections(void **state)
{
	static const struct {
		const char *type, *address;
		bool local, plain, tls;
	} cases[] = {
		{"local", "", true, false, false},
		{"host", "all", false, true, true},
		{"hostssl", "all", false, false, true},
		{"hostnossl", "all", false, true, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char line[64];

		snprintf(line, sizeof(line), "%s all all %s trust", cases[i].type,
			cases[i].address);
		assert_good(line);
		assert_int_equal(line_for("unix", "d", "u"), cases[i].local);
		assert_int_equal(line_for("192.0.2.1", "d", "u"), cases[i].plain);
		assert_int_equal(line_for("+192.0.2.1", "d", "u"), cases[i].tls);
		assert_int_equal(line_for("::1", "d", "u"), cases[i].plain);
	}
}

static void test_the_first_matching_rule_decides(void **state)
{
	(void)state;
	parse("# one\n"
	      "host app alice 10.0.0.0/8 md5\n"
	      "host app all 10.1.0.0 255.255.0.0 reject\n"
	      "\n"
	      "host all bob ::1/128 trust\n"
	      "host all all all password");
	assert_int_equal(problems.count, 0);
	assert_int_equal(line_for("10.1.2.3", "app", "alice"), 2);
	assert_int_equal(line_for("10.1.2.3", "app", "bob"), 3);
	assert_int_equal(line_for("10.2.2.3", "app", "bob"), 6);
	assert_int_equal(line_for("10.1.2.3", "other", "alice"), 6);
	assert_int_equal(line_for("::1", "other", "bob"), 5);
	assert_int_equal(line_for("::2", "other", "bob"), 6);
	assert_int_equal(line_for("unix", "app", "alice"), 0);
	assert_int_equal(hba_rule_at(hba, 1)->method, HBA_REJECT);
}

static void test_without_rules_nothing_matches(void **state)
{
	(void)state;
	parse("");
	assert_int_equal(line_for("unix", "d", "u"), 0);
	hba_unref(hba);
	hba = NULL;
	assert_int_equal(line_for("unix", "d", "u"), 0);
}

static void test_an_address_with_bits_outside_of_its_mask_never_matches(void **state)
{
	(void)state;
	parse("host all all 127.0.0.1/8 trust\n"
	      "host all all ::1 ffff:: trust\n");
	assert_int_equal(problems.warnings, 2);
	assert_int_equal(problems.skipped, 0);
	assert_string_equal(problem_at(&problems, 0)->log[0],
		"address does not match mask in hba line #1: 127.0.0.1 / 255.0.0.0");
	assert_string_equal(problem_at(&problems, 1)->log[0],
		"address does not match mask in hba line #2: ::1 / ffff::");
	assert_non_null(hba_rule_at(hba, 1));
	assert_int_equal(line_for("127.0.0.1", "d", "u"), 0);
	assert_int_equal(line_for("::1", "d", "u"), 0);
}

/* --- names -------------------------------------------------------------------------------- */

static void test_names_are_listed_bare_or_quoted(void **state)
{
	(void)state;
	assert_good("local a,\"b c\" , d \"x\"\"y\",z,\"\" trust");
	assert_int_equal(line_for("unix", "a", "z"), 1);
	assert_int_equal(line_for("unix", "b c", "x\"y"), 1);
	assert_int_equal(line_for("unix", "d", "z"), 1);
	assert_int_equal(line_for("unix", "b", "z"), 0);
	assert_int_equal(line_for("unix", "A", "z"), 0);
	assert_int_equal(line_for("unix", "a,\"b c\"", "z"), 0);
	assert_int_equal(line_for("unix", "a", "y"), 0);
}

static void test_keywords_are_bare_and_lower_case(void **state)
{
	(void)state;
	assert_good("local \"all\" all trust");
	assert_int_equal(line_for("unix", "d", "u"), 0);
	assert_int_equal(line_for("unix", "all", "u"), 1);
	assert_good("local all \"all\" trust");
	assert_int_equal(line_for("unix", "d", "u"), 0);
	assert_int_equal(line_for("unix", "d", "all"), 1);
	assert_good("local ALL all trust");
	assert_int_equal(line_for("unix", "d", "u"), 0);
	assert_int_equal(line_for("unix", "ALL", "u"), 1);
	assert_good("local \"@x\" \"+x\",\"samerole\",/x trust");
	assert_int_equal(line_for("unix", "@x", "+x"), 1);
	assert_int_equal(line_for("unix", "@x", "samerole"), 1);
	assert_int_equal(line_for("unix", "@x", "/x"), 1);
	assert_int_equal(line_for("unix", "@x", "x"), 0);
}

static void test_sameuser_matches_a_database_named_like_the_user(void **state)
{
	(void)state;
	assert_good("local sameuser,extra all trust");
	assert_int_equal(line_for("unix", "u", "u"), 1);
	assert_int_equal(line_for("unix", "d", "u"), 0);
	assert_int_equal(line_for("unix", "extra", "u"), 1);
	assert_good("local \"sameuser\" all trust");
	assert_int_equal(line_for("unix", "u", "u"), 0);
	assert_int_equal(line_for("unix", "sameuser", "u"), 1);
	assert_good("local all sameuser trust");
	assert_int_equal(line_for("unix", "u", "u"), 1);
	assert_int_equal(line_for("unix", "d", "u"), 0);
}

static void test_physical_replication_has_a_keyword_of_its_own(void **state)
{
	(void)state;
	assert_good("local all,d all trust");
	assert_int_equal(find("unix", "d", "u", true), 0);
	assert_good("local replication,x u trust");
	assert_int_equal(find("unix", "d", "u", true), 1);
	assert_int_equal(find("unix", "d", "other", true), 0);
	assert_int_equal(line_for("unix", "d", "u"), 0);
	assert_int_equal(line_for("unix", "replication", "u"), 0);
	assert_int_equal(line_for("unix", "x", "u"), 1);
	assert_good("local \"replication\" all trust");
	assert_int_equal(find("unix", "replication", "u", true), 0);
	assert_int_equal(line_for("unix", "replication", "u"), 1);
	assert_good("local replication,d replication trust");
	assert_int_equal(find("unix", "d", "u", true), 1);
	assert_int_equal(line_for("unix", "d", "u"), 0);
	assert_int_equal(line_for("unix", "d", "replication"), 0);
}

static void test_every_name_of_a_large_list_is_found(void **state)
{
	char *text = malloc(200000), name[16];
	size_t used = 0;

	(void)state;
	used += (size_t)sprintf(text, "local all ");
	for (unsigned i = 0; i < 5000; i++)
		used += (size_t)sprintf(text + used, "%su%u", i ? "," : "", (i * 7919) % 5000);
	sprintf(text + used, " trust\n");
	assert_good(text);
	for (unsigned i = 0; i < 5000; i++) {
		sprintf(name, "u%u", i);
		assert_int_equal(line_for("unix", "d", name), 1);
	}
	assert_int_equal(line_for("unix", "d", "u5000"), 0);
	free(text);
}

/* --- @file -------------------------------------------------------------------------------- */

static void test_names_may_come_from_files(void **state)
{
	(void)state;
	write_file("one", "\n  # comment\na, \"b b\"\n\t\n@two , sameuser # x\n");
	write_file("two", "c\n");
	assert_good("local x,@one,y u trust");
	assert_int_equal(line_for("unix", "x", "u"), 1);
	assert_int_equal(line_for("unix", "y", "u"), 1);
	assert_int_equal(line_for("unix", "a", "u"), 1);
	assert_int_equal(line_for("unix", "b b", "u"), 1);
	assert_int_equal(line_for("unix", "c", "u"), 1);
	assert_int_equal(line_for("unix", "u", "u"), 1);
	assert_int_equal(line_for("unix", "one", "u"), 0);
	assert_int_equal(line_for("unix", "d", "u"), 0);
	write_file("empty", "\n#\n");
	assert_good("local @empty u trust");
	assert_int_equal(line_for("unix", "", "u"), 0);
}

static void test_files_are_relative_to_the_including_file(void **state)
{
	struct problems none = {0};
	char path[128], text[256];

	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	write_file("sub/hba", "local @names all trust\n");
	write_file("sub/names", "@more\n");
	write_file("sub/more", "a\n");
	write_file("more", "b\n");
	hba_unref(hba);
	hba = hba_load("sub/hba", NULL, &none);
	assert_int_equal(none.count, 0);
	assert_int_equal(line_for("unix", "a", "u"), 1);
	assert_int_equal(line_for("unix", "b", "u"), 0);
	assert_non_null(getcwd(path, sizeof(path)));
	snprintf(text, sizeof(text), "local @%s/more all trust\n", path);
	write_file("sub/hba", text);
	hba_unref(hba);
	hba = hba_load("sub/hba", NULL, &none);
	assert_int_equal(line_for("unix", "b", "u"), 1);
	unlink("sub/hba");
	unlink("sub/names");
	unlink("sub/more");
	assert_int_equal(rmdir("sub"), 0);
}

static void test_bad_files_make_the_line_bad(void **state)
{
	(void)state;
	assert_bad("local @missing all trust",
		"hba line 1: database: could not open @missing: No such file or directory");
	assert_bad("local all @ trust", "hba line 1: user: @ without the name of a file");
	assert_bad("local all @\"x\" trust", "hba line 1: user: @ without");
	write_file("names", "a\nb c\n");
	assert_bad("local @names all trust", "names:2: names are separated by commas");
	write_file("names", "a,\n");
	assert_bad("local @names all trust", "database: a name is missing");
	write_file("names", "+a\n");
	assert_bad("local @names all trust", "+a: groups are not supported");
	write_file("names", "\"a\n");
	assert_bad("local @names all trust", "a quote is not closed");
}

static void test_nesting_of_files_is_limited(void **state)
{
	char name[8], text[16];

	(void)state;
	write_file("loop", "@loop\n");
	assert_bad("local @loop all trust", "nested too deep");
	for (unsigned i = 0; i < HBA_NESTING_LIMIT; i++) {
		sprintf(name, "n%u", i);
		sprintf(text, i + 1 < HBA_NESTING_LIMIT ? "@n%u" : "end%u", i + 1);
		write_file(name, text);
	}
	assert_good("local @n0 all trust");
	write_file("n9", "@names");
	write_file("names", "a");
	assert_bad("local @n0 all trust", "nested too deep");
}

/* Each level includes the next one twenty times: reading all of it would not end. */
static void test_the_number_of_files_is_limited(void **state)
{
	char name[8];

	(void)state;
	for (unsigned i = 0; i < HBA_NESTING_LIMIT; i++) {
		char text[512] = "";

		for (unsigned j = 0; j < 20 && i + 1 < HBA_NESTING_LIMIT; j++)
			sprintf(text + strlen(text), "@n%u\n", i + 1);
		sprintf(name, "n%u", i);
		write_file(name, text);
	}
	assert_bad("local @n0 all trust", "or too many");
}

/* --- the rest of a line ------------------------------------------------------------------- */

static void test_every_method_has_its_keyword(void **state)
{
	static const struct {
		const char *word;
		enum hba_method method;
	} cases[] = {
		{"trust", HBA_TRUST},
		{"reject", HBA_REJECT},
		{"md5", HBA_MD5},
		{"password", HBA_PASSWORD},
		{"peer", HBA_PEER},
		{"cert", HBA_CERT},
		{"scram-sha-256", HBA_SCRAM_SHA_256},
		{"ldap", HBA_LDAP},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char line[64];

		snprintf(line, sizeof(line), "host all all all %s", cases[i].word);
		assert_good(line);
		assert_int_equal(hba_rule_at(hba, 0)->method, cases[i].method);
		assert_string_equal(hba_method_name(cases[i].method), cases[i].word);
	}
}

static void test_a_map_must_exist(void **state)
{
	(void)state;
	assert_good("local all all peer map=m # comment");
	assert_int_equal(hba_rule_at(hba, 0)->map.count, 1);
	assert_good("local all all trust map=m");
	assert_good("local all all peer");
	assert_int_equal(hba_rule_at(hba, 0)->map.count, 0);
	assert_bad("local all all trust map=n",
		"hba line 1: Ident map n is not found in ident config file");
	assert_bad("local all all peer foo",
		"hba line 1: Ident map foo is malformed. It is not in map=value format.");
	assert_bad("local all all peer map=", "Ident map map= is malformed.");
	assert_bad("local all all peer MAP=m", "Ident map MAP=m is malformed.");
	assert_bad("local all all peer map = m", "Ident map map is malformed.");
	assert_bad("local all all peer \"map=m\"", "Ident map map=m is malformed.");
	assert_bad("local all all peer map=m x", "hba line 1: unsupported parameters");
	assert_bad("local all all peer map=m,", "hba line 1: unsupported parameters");
	assert_bad("local all all peer ,", "is malformed");
	assert_bad("local all all peer map=m \"", "unsupported parameters");
}

static void test_ldap_takes_the_rest_of_the_line_verbatim(void **state)
{
	(void)state;
	assert_good(
		"host all all all ldap  ldapserver=\"a b\",ldapbindpasswd=x#y map=n \t\r\n");
	assert_string_equal(
		hba_rule_at(hba, 0)->options, "ldapserver=\"a b\",ldapbindpasswd=x#y map=n");
	assert_good("host all all all ldap");
	assert_string_equal(hba_rule_at(hba, 0)->options, "");
	assert_good("host all all all trust");
	assert_null(hba_rule_at(hba, 0)->options);
}

static void test_a_map_outlives_its_ident_file(void **state)
{
	(void)state;
	assert_good("local all all peer map=m");
	ident_unref(ident);
	ident = NULL;
	assert_true(ident_map_allows(&hba_rule_at(hba, 0)->map, "root", "alice"));
}

static void test_bad_lines_are_skipped_and_reported(void **state)
{
	static const struct {
		const char *line, *text;
	} cases[] = {
		{"hostgssenc all all all trust", "hba line 1: unknown type"},
		{"hostnogssenc all all all trust", "hba line 1: unknown type"},
		{"include x", "hba line 1: unknown type"},
		{"include_dir x", "hba line 1: unknown type"},
		{"HOST all all all trust", "hba line 1: unknown type"},
		{"\"host\" all all all trust", "hba line 1: unknown type"},
		{",", "hba line 1: unknown type"},
		{"local", "hba line 1: database: a name is missing"},
		{"local all", "hba line 1: user: a name is missing"},
		{"local ,all all trust", "a name is missing"},
		{"local a,,b all trust", "a name is missing"},
		{"local \"a all trust", "a quote is not closed"},
		{"local samerole all trust", "samerole is not supported"},
		{"local all samegroup trust", "samegroup is not supported"},
		{"local all +admins trust", "+admins: groups are not supported"},
		{"local all all", "hba line 1: unsupported method: buf="},
		{"local all all plain", "hba line 1: unsupported method: buf=plain"},
		{"local all all pam", "hba line 1: unsupported method: buf=pam"},
		{"local all all any", "hba line 1: unsupported method: buf=any"},
		{"local all all ident", "hba line 1: unsupported method: buf=ident"},
		{"local all all gss", "hba line 1: unsupported method: buf=gss"},
		{"local all all TRUST", "hba line 1: unsupported method: buf=TRUST"},
		{"local all all \"trust\"", "hba line 1: unsupported method: buf=trust"},
		{"local all all all trust", "hba line 1: unsupported method: buf=all"},
		{"host all all", "hba line 1: bad address"},
		{"host all all trust", "hba line 1: bad address"},
		{"host all all \"all\" trust", "hba line 1: bad address"},
		{"host all all ALL trust", "hba line 1: bad address"},
		{"host all all 127.0.0.1 trust", "hba line 1: bad address"},
		{"host all all \"127.0.0.1/32\" trust", "hba line 1: bad address"},
		{"host all all 127.0.0.1/33 trust", "hba line 1: bad address"},
		{"host all all 127.0.0.1 \"255.0.0.0\" trust", "hba line 1: bad address"},
		{"host all all 127.0.0.1 ffff:: trust", "hba line 1: bad address"},
		{"host all all localhost trust", "hba line 1: bad address"},
		{"host all all .example.com trust", "hba line 1: bad address"},
		{"host all all samehost trust", "hba line 1: bad address"},
		{"host all all samenet trust", "hba line 1: bad address"},
		{"host all all 0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000 a trust",
			"hba line 1: bad address"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_bad(cases[i].line, cases[i].text);
}

static void test_rules_around_a_bad_line_are_used(void **state)
{
	(void)state;
	parse("local a all trust\nlocal b all rejekt\nlocal c all trust\n");
	assert_int_equal(problems.skipped, 1);
	assert_string_equal(
		problem_at(&problems, 0)->log[1], "could not parse hba config line 2");
	assert_contains(problem_at(&problems, 0)->text, "allowed is cert, ldap, md5");
	assert_int_equal(line_for("unix", "a", "u"), 1);
	assert_int_equal(line_for("unix", "b", "u"), 0);
	assert_int_equal(line_for("unix", "c", "u"), 3);
}

static void test_a_missing_file_leaves_no_rules(void **state)
{
	struct problems found = {0};

	(void)state;
	hba_unref(hba);
	hba = hba_load("missing", NULL, &found);
	assert_non_null(hba);
	assert_null(hba_rule_at(hba, 0));
	assert_int_equal(found.skipped, 1);
	assert_string_equal(found.list[0].log[0],
		"could not open hba config file missing: No such file or directory");
	problems_free(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
		TEST(test_the_type_selects_connections),
		TEST(test_the_first_matching_rule_decides),
		TEST(test_without_rules_nothing_matches),
		TEST(test_an_address_with_bits_outside_of_its_mask_never_matches),
		TEST(test_names_are_listed_bare_or_quoted),
		TEST(test_keywords_are_bare_and_lower_case),
		TEST(test_sameuser_matches_a_database_named_like_the_user),
		TEST(test_physical_replication_has_a_keyword_of_its_own),
		TEST(test_every_name_of_a_large_list_is_found),
		TEST(test_names_may_come_from_files),
		TEST(test_files_are_relative_to_the_including_file),
		TEST(test_bad_files_make_the_line_bad),
		TEST(test_nesting_of_files_is_limited),
		TEST(test_the_number_of_files_is_limited),
		TEST(test_every_method_has_its_keyword),
		TEST(test_a_map_must_exist),
		TEST(test_ldap_takes_the_rest_of_the_line_verbatim),
		TEST(test_a_map_outlives_its_ident_file),
		TEST(test_bad_lines_are_skipped_and_reported),
		TEST(test_rules_around_a_bad_line_are_used),
		TEST(test_a_missing_file_leaves_no_rules),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
