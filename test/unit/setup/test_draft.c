/* SPDX-License-Identifier: ISC */
/* A draft is read back as what was set, and takes nothing that an ini file could not hold. */
#include "config/snapshot.h"
#include "setup/draft.h"
#include "support/files/config_files.h"

static char why[256];

static void set(struct draft *draft, const char *name, const char *value)
{
	if (!draft_set(draft, name, value, why, sizeof(why)))
		fail_msg("%s = %s: %s", name, value, why);
}

static void put(struct draft *draft, const char *entry, const char *key, const char *value)
{
	if (!draft_put(draft, DRAFT_DATABASES, entry, key, value, why, sizeof(why)))
		fail_msg("%s: %s = %s: %s", entry, key, value, why);
}

/* The text of the ini file; valid until the next call. */
static const char *text_of(const struct draft *draft, enum draft_secrets secrets)
{
	static char text[4096];
	struct buffer out = {0};

	assert_true(draft_write(draft, secrets, &out));
	assert_true(out.length < sizeof(text));
	memcpy(text, out.data, out.length);
	text[out.length] = '\0';
	buffer_free(&out);
	return text;
}

static void test_sections_stand_in_order(void **state)
{
	struct draft *draft = draft_new();

	(void)state;
	set(draft, "listen_port", "6432");
	assert_true(draft_put(draft, DRAFT_PEERS, "1", "host", "/run", why, sizeof(why)));
	assert_true(
		draft_put(draft, DRAFT_USERS, "app", "pool_mode", "session", why, sizeof(why)));
	put(draft, "db", "host", "10.0.0.1");
	put(draft, "db", "port", "5433");
	assert_true(draft_add_entry(draft, DRAFT_DATABASES, "*", why, sizeof(why)));
	set(draft, "logfile", "");
	assert_string_equal(text_of(draft, DRAFT_SHOW_SECRETS),
		"[databases]\n"
		"db = host=10.0.0.1 port=5433\n"
		"* =\n"
		"\n"
		"[users]\n"
		"app = pool_mode=session\n"
		"\n"
		"[peers]\n"
		"1 = host=/run\n"
		"\n"
		"[pgbouncer]\n"
		"listen_port = 6432\n"
		"logfile =\n");
	draft_free(draft);
}

static void test_empty_draft_has_the_main_section_only(void **state)
{
	struct draft *draft = draft_new();

	(void)state;
	assert_string_equal(text_of(draft, DRAFT_SHOW_SECRETS), "[pgbouncer]\n");
	draft_free(draft);
}

static void test_value_set_again_replaces_the_former_in_its_place(void **state)
{
	struct draft *draft = draft_new();

	(void)state;
	set(draft, "listen_port", "1");
	set(draft, "pool_mode", "session");
	set(draft, "listen_port", "2");
	put(draft, "db", "host", "a");
	put(draft, "db", "user", "u");
	put(draft, "db", "host", "b");
	assert_string_equal(text_of(draft, DRAFT_SHOW_SECRETS),
		"[databases]\ndb = host=b user=u\n\n"
		"[pgbouncer]\nlisten_port = 2\npool_mode = session\n");
	assert_string_equal(draft_get(draft, "listen_port"), "2");
	assert_null(draft_get(draft, "logfile"));
	assert_string_equal(draft_key(draft, DRAFT_DATABASES, "db", "user"), "u");
	assert_null(draft_key(draft, DRAFT_DATABASES, "db", "port"));
	assert_null(draft_key(draft, DRAFT_DATABASES, "other", "port"));
	put(draft, "db", "user", "");
	assert_null(draft_key(draft, DRAFT_DATABASES, "db", "user"));
	draft_free(draft);
}

/* What is set is what the configuration has, whatever bytes it is made of. */
static void test_odd_texts_are_read_back(void **state)
{
	static const char *const texts[] = {"it's", "''", "a b", " a ", "a=b", "a;b #c", "#a",
		"a\\'", "\"x\"", "p\xc3\xa4ss", "a\tb", "'", "=", "%include x", "$1 {2} ,",
		"-"};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct draft *draft = draft_new();
		struct problems problems = {0};
		struct snapshot *snapshot;
		const char *text;

		put(draft, "odd name;[x] \xc3\xa4", "password", texts[i]);
		put(draft, "odd name;[x] \xc3\xa4", "user", texts[i]);
		put(draft, "odd name;[x] \xc3\xa4", "port", "7");
		text = text_of(draft, DRAFT_SHOW_SECRETS);
		snapshot = snapshot_parse("draft", text, strlen(text), NULL, &problems);
		assert_non_null(snapshot);
		assert_string_equal(
			snapshot_find_database(snapshot, "odd name;[x] \xc3\xa4")->password,
			texts[i]);
		assert_string_equal(
			snapshot_find_database(snapshot, "odd name;[x] \xc3\xa4")->user,
			texts[i]);
		assert_int_equal(
			snapshot_find_database(snapshot, "odd name;[x] \xc3\xa4")->port, 7);
		snapshot_unref(snapshot);
		problems_free(&problems);
		draft_free(draft);
	}
}

static void expect_refused_setting(const char *name, const char *value, const char *reason)
{
	struct draft *draft = draft_new();

	why[0] = '\0';
	if (draft_set(draft, name, value, why, sizeof(why)))
		fail_msg("%s = %s was taken", name, value);
	if (!strstr(why, reason))
		fail_msg("%s = %s: %s", name, value, why);
	assert_string_equal(text_of(draft, DRAFT_SHOW_SECRETS), "[pgbouncer]\n");
	draft_free(draft);
}

static void test_settings_that_a_file_could_not_hold_are_refused(void **state)
{
	(void)state;
	expect_refused_setting("listen_prot", "1", "did you mean listen_port?");
	expect_refused_setting("zzzzzzzzzzzz", "1", "no such setting");
	expect_refused_setting("listen_port", "none", "whole number");
	expect_refused_setting("pool_mode", "transactional", "transaction");
	expect_refused_setting("logfile", "a\nlisten_port = 1", "one line");
	expect_refused_setting("logfile", " a", "blank");
	expect_refused_setting("logfile", "a ", "blank");
	expect_refused_setting("client_tls_dheparams", "auto ; none", "comment");
}

static void expect_refused_key(
	const char *entry, const char *key, const char *value, const char *reason)
{
	struct draft *draft = draft_new();

	why[0] = '\0';
	if (draft_put(draft, DRAFT_DATABASES, entry, key, value, why, sizeof(why)))
		fail_msg("%s: %s = %s was taken", entry, key, value);
	if (!strstr(why, reason))
		fail_msg("%s: %s = %s: %s", entry, key, value, why);
	assert_false(draft_has_entry(draft, DRAFT_DATABASES, entry));
	assert_string_equal(text_of(draft, DRAFT_SHOW_SECRETS), "[pgbouncer]\n");
	draft_free(draft);
}

static void test_keys_that_a_file_could_not_hold_are_refused(void **state)
{
	(void)state;
	expect_refused_key("db", "hots", "x", "did you mean host?");
	expect_refused_key("db", "port", "0", "1 to 65535");
	expect_refused_key("db", "host", "a,,b", "empty item");
	expect_refused_key("db", "password", "a\nb", "one line");
	expect_refused_key("it's", "host", "a", "no quote");
	expect_refused_key("a\nb", "host", "a", "no line end");
	expect_refused_key("", "host", "a", "not empty");
	expect_refused_key("pgbouncer", "host", "a", "reserved");
}

static void test_refused_key_leaves_the_former_value(void **state)
{
	struct draft *draft = draft_new();

	(void)state;
	put(draft, "db", "port", "5433");
	assert_false(draft_put(draft, DRAFT_DATABASES, "db", "port", "x", why, sizeof(why)));
	assert_false(draft_put(draft, DRAFT_DATABASES, "db", "hots", "x", why, sizeof(why)));
	assert_string_equal(text_of(draft, DRAFT_SHOW_SECRETS),
		"[databases]\ndb = port=5433\n\n[pgbouncer]\n");
	draft_free(draft);
}

static void test_secrets_are_masked_for_printing(void **state)
{
	struct draft *draft = draft_new();
	const char *text;
	struct buffer users = {0};

	(void)state;
	put(draft, "db", "password", "secret 1");
	set(draft, "auth_ldap_options", "ldapserver=x ldapbindpasswd=secret2");
	set(draft, "auth_user", "app");
	assert_true(draft_add_user(draft, "a\"b", "secret\"3", why, sizeof(why)));
	text = text_of(draft, DRAFT_MASK_SECRETS);
	assert_null(strstr(text, "secret"));
	assert_non_null(strstr(text, "db = password=********\n"));
	assert_non_null(strstr(text, "auth_ldap_options = ********\n"));
	assert_non_null(strstr(text, "auth_user = app\n"));
	assert_true(draft_write_users(draft, DRAFT_MASK_SECRETS, &users));
	assert_true(draft_write_users(draft, DRAFT_SHOW_SECRETS, &users));
	assert_true(buffer_append(&users, "", 1));
	assert_string_equal(
		(char *)users.data, "\"a\"\"b\" \"********\"\n\"a\"\"b\" \"secret\"\"3\"\n");
	buffer_free(&users);
	draft_free(draft);
}

static void test_users_are_read_back(void **state)
{
	struct draft *draft = draft_new();
	struct problems problems = {0};
	struct buffer text = {0};
	struct userlist *list;
	static char long_name[200];

	(void)state;
	memset(long_name, 'x', sizeof(long_name) - 1);
	assert_true(draft_add_user(draft, "al\"ice", "old", why, sizeof(why)));
	assert_true(draft_add_user(draft, "bob", "", why, sizeof(why)));
	assert_true(draft_add_user(draft, "al\"ice", "p\"w ; # '", why, sizeof(why)));
	assert_false(draft_add_user(draft, "x", "a\nb", why, sizeof(why)));
	assert_false(draft_add_user(draft, long_name, "a", why, sizeof(why)));
	assert_int_equal(draft_user_count(draft), 2);
	assert_true(draft_write_users(draft, DRAFT_SHOW_SECRETS, &text));
	list = userlist_parse("users", (char *)text.data, text.length, NULL, &problems);
	assert_string_equal(userlist_find(list, "al\"ice"), "p\"w ; # '");
	assert_string_equal(userlist_find(list, "bob"), "");
	assert_int_equal(problems.count, 0);
	userlist_unref(list);
	buffer_free(&text);
	draft_free(draft);
}

static void test_remarks_are_comments_above_what_they_are_about(void **state)
{
	struct draft *draft = draft_new();

	(void)state;
	assert_true(draft_title(draft, "made of nothing\n[databases]\n\nend"));
	assert_true(draft_remark(draft, DRAFT_DATABASES, NULL, "all of them"));
	assert_true(draft_remark(draft, DRAFT_DATABASES, "db", "first"));
	assert_true(draft_remark(draft, DRAFT_DATABASES, "db", "second\r\nthird"));
	assert_true(draft_remark(draft, DRAFT_DATABASES, "absent", "never made"));
	assert_true(draft_remark(draft, DRAFT_MAIN, "listen_port", "where clients connect"));
	put(draft, "db", "port", "1");
	set(draft, "listen_port", "1");
	assert_string_equal(text_of(draft, DRAFT_SHOW_SECRETS),
		"; made of nothing\n; [databases]\n;\n; end\n"
		"\n[databases]\n; all of them\n; first\n; second\n; third\ndb = port=1\n"
		"\n[pgbouncer]\n; where clients connect\nlisten_port = 1\n");
	assert_null(draft_entry(draft, DRAFT_DATABASES, 1));
	assert_string_equal(draft_entry(draft, DRAFT_DATABASES, 0), "db");
	draft_free(draft);
}

static void test_check_reads_the_draft_as_a_start_does(void **state)
{
	struct draft *draft = draft_new();
	struct problems problems = {0};

	(void)state;
	put(draft, "db", "host", "a");
	assert_true(draft_check(draft, "draft", &problems));
	assert_int_equal(problems.count, 0);
	set(draft, "proxy_protocol", "required");
	set(draft, "proxy_networks", "");
	assert_false(draft_check(draft, "draft", &problems));
	assert_non_null(strstr(problems.list[0].text, "proxy_networks is empty"));
	problems_free(&problems);
	problems_add(draft_findings(draft), PROBLEM_WARNING, "other.toml", 3, "no counterpart");
	assert_int_equal(draft_findings(draft)->count, 1);
	draft_free(draft);
	draft_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections_stand_in_order),
		cmocka_unit_test(test_empty_draft_has_the_main_section_only),
		cmocka_unit_test(test_value_set_again_replaces_the_former_in_its_place),
		cmocka_unit_test(test_odd_texts_are_read_back),
		cmocka_unit_test(test_settings_that_a_file_could_not_hold_are_refused),
		cmocka_unit_test(test_keys_that_a_file_could_not_hold_are_refused),
		cmocka_unit_test(test_refused_key_leaves_the_former_value),
		cmocka_unit_test(test_secrets_are_masked_for_printing),
		cmocka_unit_test(test_users_are_read_back),
		cmocka_unit_test(test_remarks_are_comments_above_what_they_are_about),
		cmocka_unit_test(test_check_reads_the_draft_as_a_start_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
