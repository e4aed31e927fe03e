/* SPDX-License-Identifier: ISC */
/* Whole configurations: loaded, reloaded, changed by SET; all mistakes are reported at once. */
#include "config/snapshot.h"
#include "support/files/config_files.h"

static struct problems problems;

static struct snapshot *parse_after(const struct snapshot *previous, const char *text)
{
	problems_free(&problems);
	return snapshot_parse("f.ini", text, strlen(text), previous, &problems);
}

static struct snapshot *parse(const char *text)
{
	return parse_after(NULL, text);
}

/* Replace a snapshot by a reload, which must succeed. */
static struct snapshot *reload(struct snapshot *previous, const char *text)
{
	struct snapshot *next = parse_after(previous, text);

	assert_non_null(next);
	snapshot_unref(previous);
	return next;
}

static void test_smallest_file_has_all_defaults(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\n");

	(void)state;
	assert_non_null(snapshot);
	assert_int_equal(problems.count, 0);
	assert_int_equal(snapshot_settings(snapshot)->listen_port, 6432);
	assert_string_equal(snapshot_settings(snapshot)->conffile, "f.ini");
	assert_null(snapshot_database(snapshot, 0));
	assert_null(snapshot_find_database(snapshot, "x"));
	assert_null(snapshot_user(snapshot, 0));
	assert_null(snapshot_peer(snapshot, 0));
	assert_null(snapshot_template(snapshot));
	assert_null(snapshot_userlist(snapshot));
	snapshot_unref(snapshot);
}

static void test_both_names_of_the_main_section_are_accepted(void **state)
{
	struct snapshot *snapshot =
		parse("[pgusher]\nlisten_port=1\n[pgbouncer]\npool_mode=statement\n");

	(void)state;
	assert_int_equal(snapshot_settings(snapshot)->listen_port, 1);
	assert_int_equal(snapshot_settings(snapshot)->pool_mode, POOL_MODE_STATEMENT);
	snapshot_unref(snapshot);
	assert_null(parse("[databases]\na =\n"));
	assert_only_error(
		&problems, 0, "load_init_file: main section missing from config file");
	problems_free(&problems);
}

static void test_entries_are_found_and_listed_by_name(void **state)
{
	struct snapshot *snapshot = parse("[databases]\n"
					  "b = host=1\n"
					  "* = host=any\n"
					  "'A b' = host=2\n"
					  "[pgbouncer]\n"
					  "[databases]\n"
					  "b = host=3\n"
					  "[users]\n"
					  "u = pool_size=1\n"
					  "[peers]\n"
					  "2 = host=p\n");

	(void)state;
	assert_string_equal(snapshot_database(snapshot, 0)->name, "A b");
	assert_string_equal(snapshot_database(snapshot, 1)->name, "b");
	assert_null(snapshot_database(snapshot, 2));
	assert_string_equal(snapshot_find_database(snapshot, "b")->host, "3");
	assert_null(snapshot_find_database(snapshot, "B"));
	assert_null(snapshot_find_database(snapshot, "*"));
	assert_string_equal(snapshot_template(snapshot)->host, "any");
	assert_int_equal(snapshot_find_user(snapshot, "u")->pool_size, 1);
	assert_string_equal(snapshot_user(snapshot, 0)->name, "u");
	assert_int_equal(snapshot_peer(snapshot, 0)->id, 2);
	assert_int_equal(problems.count, 0);
	snapshot_unref(snapshot);
	problems_free(&problems);
}

static void test_later_values_win_and_a_repeated_section_continues(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\n"
					  "default_pool_size = 1\n"
					  "listen_port = 2\n"
					  "[pgbouncer]\n"
					  "default_pool_size = 3\n");

	(void)state;
	assert_int_equal(snapshot_settings(snapshot)->default_pool_size, 3);
	assert_int_equal(snapshot_settings(snapshot)->listen_port, 2);
	snapshot_unref(snapshot);
}

static void test_comments_are_taken_behind_values_that_cannot_have_them(void **state)
{
	struct snapshot *snapshot = parse("[databases] ; those that clients see\n"
					  "a = host=h port=5 ; the main one\n"
					  "b = host=h password=x;y # another\n"
					  "[users]\n"
					  "u = pool_size=3 ; few\n"
					  "[pgbouncer]\n"
					  "listen_addr = 127.0.0.1, ::1 ; not *\n"
					  "listen_port = 6433; usual\n"
					  "pool_mode = transaction ; comment\n"
					  "default_pool_size = 7\t# each\n"
					  "query_timeout = 5min ; long\n"
					  "log_connections = 0 ; off\n"
					  "max_packet_size = 1MB ;\n"
					  "server_reset_query = SET a = 1; SET b = 2 ; c\n"
					  "login_notify_message = see #ops\n");
	const struct settings *settings;

	(void)state;
	assert_int_equal(problems.count, 0);
	assert_int_equal(snapshot_find_database(snapshot, "a")->port, 5);
	assert_string_equal(snapshot_find_database(snapshot, "b")->password, "x;y");
	assert_int_equal(snapshot_find_user(snapshot, "u")->pool_size, 3);
	settings = snapshot_settings(snapshot);
	assert_string_equal(settings->listen_addr, "127.0.0.1, ::1");
	assert_int_equal(settings->listen_port, 6433);
	assert_int_equal(settings->pool_mode, POOL_MODE_TRANSACTION);
	assert_int_equal(settings->default_pool_size, 7);
	assert_int_equal(settings->query_timeout, 300 * USEC_PER_SEC);
	assert_false(settings->log_connections);
	assert_int_equal(settings->max_packet_size, 1024 * 1024);
	assert_string_equal(settings->server_reset_query, "SET a = 1; SET b = 2 ; c");
	assert_string_equal(settings->login_notify_message, "see #ops");
	snapshot_unref(snapshot);
}

static void test_a_comment_that_may_be_part_of_the_value_gets_a_warning(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\n"
					  "admin_users = root ; and others\n"
					  "logfile = /a;b#c\n"
					  "job_name = ;none\n");

	(void)state;
	assert_non_null(snapshot);
	assert_int_equal(problems.errors, 0);
	assert_int_equal(problems.count, 2);
	assert_int_equal(problems.list[0].line, 2);
	assert_string_equal(problems.list[0].text,
		"admin_users: \"; and others\" is part of the value: write a comment on a line "
		"of its own");
	assert_int_equal(problems.list[1].line, 4);
	assert_string_equal(snapshot_settings(snapshot)->admin_users, "root ; and others");
	assert_string_equal(snapshot_settings(snapshot)->logfile, "/a;b#c");
	snapshot_unref(snapshot);
	assert_null(parse("[pgbouncer]\nlisten_port = ; usual\n"));
	assert_int_equal(problems.errors, 1);
	problems_free(&problems);
}

static void test_every_mistake_is_reported_with_its_line(void **state)
{
	static const struct {
		unsigned line;
		const char *text, *log, *generic;
	} wanted[] = {
		{2, "invalid value \"x\" for parameter listen_port: allowed is a whole number",
			"invalid value \"x\" for parameter listen_port in configuration (f.ini:2)",
			NULL},
		{3, "unknown parameter: pgbouncer/pool_mod: did you mean pool_mode?",
			"unknown parameter: pgbouncer/pool_mod",
			"invalid value \"session\" for parameter pool_mod in configuration "
			"(f.ini:3)"},
		{4, "syntax error", "syntax error in configuration (f.ini:4), stopping loading",
			NULL},
		{5, "invalid value \"peer\"",
			"invalid value \"peer\" for parameter auth_type in configuration (f.ini:5)",
			NULL},
		{6, "invalid section \"data\": allowed is databases",
			"invalid section \"data\" in configuration (f.ini:6)", NULL},
		{9, "app: unrecognized connection parameter: hots",
			"unrecognized connection parameter: hots",
			"invalid value \"hots=x\" for parameter app in configuration (f.ini:9)"},
		{10, "pgbouncer: database name \"pgbouncer\" is reserved",
			"database name \"pgbouncer\" is reserved", NULL},
		{12, "u: unrecognized user parameter: x", "unrecognized user parameter: x",
			NULL},
		{14, "x: ids of peers", "ids of peers must be a number", NULL},
	};

	(void)state;
	assert_null(parse("[pgbouncer]\n"
			  "listen_port = x\n"
			  "pool_mod = session\n"
			  "what is this\n"
			  "auth_type = peer\n"
			  "[data]\n"
			  "unread = value\n"
			  "[databases]\n"
			  "app = hots=x\n"
			  "pgbouncer = host=h\n"
			  "[users]\n"
			  "u = x=1\n"
			  "[peers]\n"
			  "x = host=h\n"));
	assert_int_equal(problems_errors(&problems), COUNT(wanted));
	for (size_t i = 0; i < COUNT(wanted); i++) {
		const struct problem *problem = problem_at(&problems, i);

		assert_int_equal(problem->line, wanted[i].line);
		assert_string_equal(problem->file, "f.ini");
		assert_contains(problem->text, wanted[i].text);
		assert_contains(problem->log[0], wanted[i].log);
		if (wanted[i].generic)
			assert_string_equal(problem->log[1], wanted[i].generic);
	}
	problems_free(&problems);
}

static void test_proxies_need_their_addresses(void **state)
{
	struct snapshot *snapshot;

	(void)state;
	assert_null(parse("[pgbouncer]\nproxy_protocol = optional\n"));
	assert_only_error(&problems, 0,
		"proxy_protocol: proxy_networks is empty, so a PROXY header would be taken from "
		"nowhere");
	assert_null(parse("[pgbouncer]\nproxy_protocol = required\nproxy_networks = ,\n"));
	snapshot = parse("[pgbouncer]\nproxy_networks = 0.0.0.0/0\n");
	assert_non_null(snapshot);
	assert_int_equal(problems.count, 0);
	/* Each client could claim any address. */
	snapshot = reload(snapshot,
		"[pgbouncer]\nproxy_protocol=required\nproxy_networks = unix 0.0.0.0/0 10.0.0.1\n");
	assert_int_equal(problems.warnings, 1);
	assert_int_equal(problems.count, 1);
	assert_null(parse_after(snapshot, "[pgbouncer]\nproxy_protocol = required\n"));
	snapshot = reload(snapshot,
		"[pgbouncer]\nproxy_protocol = required ; always\nproxy_networks = unix ; only\n");
	assert_int_equal(problems.count, 0);
	assert_string_equal(snapshot_settings(snapshot)->proxy_networks, "unix");
	snapshot_unref(snapshot);
	problems_free(&problems);
}

static void test_broken_template_is_a_warning_and_no_template(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\n[databases]\n* = port=0\n");

	(void)state;
	assert_non_null(snapshot);
	assert_null(snapshot_template(snapshot));
	assert_int_equal(problems.warnings, 1);
	snapshot_unref(snapshot);
	problems_free(&problems);
}

/* Otherwise a typing error would close every connection of the automatic databases. */
static void test_reload_with_a_broken_template_fails_if_there_was_a_valid_one(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\n[databases]\n* = host=h\n");

	(void)state;
	assert_null(parse_after(snapshot, "[pgbouncer]\n[databases]\n* = host=h port=0\n"));
	assert_only_error(&problems, 3, "invalid port: 0");
	snapshot = reload(snapshot, "[pgbouncer]\n");
	assert_null(snapshot_template(snapshot));
	snapshot = reload(snapshot, "[pgbouncer]\n[databases]\n* = port=0\n");
	assert_int_equal(problems.warnings, 1);
	snapshot_unref(snapshot);
	problems_free(&problems);
}

static void test_reload_restores_defaults_of_deleted_settings(void **state)
{
	struct snapshot *snapshot = parse("[databases]\na=\n* =\n[users]\nu=\n"
					  "[pgbouncer]\ndefault_pool_size = 5\n");

	(void)state;
	snapshot = reload(snapshot, "[pgbouncer]\n");
	assert_int_equal(snapshot_settings(snapshot)->default_pool_size, 20);
	assert_null(snapshot_find_database(snapshot, "a"));
	assert_null(snapshot_find_user(snapshot, "u"));
	assert_null(snapshot_template(snapshot));
	snapshot_unref(snapshot);
}

static void test_reload_keeps_settings_that_need_a_restart(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\nlisten_port = 1\nlisten_addr = a\n");

	(void)state;
	snapshot = reload(snapshot, "[pgbouncer]\nlisten_port = 2\nuser = nobody\n");
	assert_int_equal(problems.count, 0);
	assert_int_equal(snapshot_settings(snapshot)->listen_port, 1);
	assert_string_equal(snapshot_settings(snapshot)->listen_addr, "a");
	assert_null(snapshot_settings(snapshot)->user);
	assert_null(parse_after(snapshot, "[pgbouncer]\nlisten_port = x\n"));
	problems_free(&problems);
	snapshot_unref(snapshot);
}

static void test_reload_keeps_settings_without_a_default(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\nauth_user = a\nverbose = 2\n"
					  "conffile = other.ini\nauth_dbname = d\n");

	(void)state;
	snapshot = reload(snapshot, "[pgbouncer]\nauth_dbname = e\n");
	assert_string_equal(snapshot_settings(snapshot)->auth_user, "a");
	assert_string_equal(snapshot_settings(snapshot)->auth_dbname, "e");
	assert_string_equal(snapshot_settings(snapshot)->conffile, "other.ini");
	assert_int_equal(snapshot_settings(snapshot)->verbose, 2);
	snapshot_unref(snapshot);
	problems_free(&problems);
}

static void test_failed_reload_changes_nothing(void **state)
{
	struct snapshot *snapshot =
		parse("[databases]\na = host=h\n[pgbouncer]\nverbose = 1\n");

	(void)state;
	assert_null(parse_after(snapshot, "[databases]\nb =\n[pgbouncer]\nverbose = x\n"));
	assert_string_equal(snapshot_find_database(snapshot, "a")->host, "h");
	assert_int_equal(snapshot_settings(snapshot)->verbose, 1);
	snapshot_unref(snapshot);
	problems_free(&problems);
}

static void test_start_has_the_verbosity_of_the_command_line(void **state)
{
	struct snapshot *snapshot;

	(void)state;
	problems_free(&problems);
	write_file("a.ini", "[pgbouncer]\n");
	snapshot = snapshot_start("a.ini", &(struct presets){.verbose = 2}, &problems);
	assert_int_equal(snapshot_settings(snapshot)->verbose, 2);
	snapshot_unref(snapshot);
	write_file("a.ini", "[pgbouncer]\nverbose = 1\n");
	snapshot = snapshot_start("a.ini", &(struct presets){.verbose = 2}, &problems);
	assert_int_equal(snapshot_settings(snapshot)->verbose, 1);
	snapshot_unref(snapshot);
	assert_null(snapshot_start("b.ini", &(struct presets){.verbose = 2}, &problems));
	assert_only_error(&problems, 0, "could not load file \"b.ini\"");
	problems_free(&problems);
}

static void test_the_file_overrides_presets(void **state)
{
	const char *const assignments[] = {"pkt_buf=8192", "job_name=a=b", NULL};
	const struct presets presets = {.settings = assignments};
	struct snapshot *snapshot, *next;

	(void)state;
	problems_free(&problems);
	write_file("a.ini", "[pgbouncer]\njob_name = mine\n");
	snapshot = snapshot_start("a.ini", &presets, &problems);
	assert_int_equal(snapshot_settings(snapshot)->pkt_buf, 8192);
	assert_string_equal(snapshot_settings(snapshot)->job_name, "mine");
	/* The presets apply at a reload too. */
	write_file("a.ini", "[pgbouncer]\n");
	next = snapshot_load("a.ini", snapshot, &problems);
	assert_int_equal(snapshot_settings(next)->pkt_buf, 8192);
	snapshot_unref(snapshot);
	snapshot_unref(next);
	problems_free(&problems);
}

static void test_bad_presets_are_reported(void **state)
{
	const char *const assignments[] = {"pkt_buf", NULL};
	const struct presets presets = {.settings = assignments};

	(void)state;
	problems_free(&problems);
	write_file("a.ini", "[pgbouncer]\n");
	assert_null(snapshot_start("a.ini", &presets, &problems));
	assert_only_error(&problems, 0, "pkt_buf: a preset is NAME=VALUE");
	problems_free(&problems);
}

static void test_users_are_shared_until_their_file_changes(void **state)
{
	static const char text[] = "[pgbouncer]\nauth_file = users\n";
	struct snapshot *snapshot, *next;

	(void)state;
	write_file("users", "\"a\" \"1\"\n");
	snapshot = parse(text);
	assert_string_equal(userlist_find(snapshot_userlist(snapshot), "a"), "1");
	next = parse_after(snapshot, text);
	assert_ptr_equal(snapshot_userlist(next), snapshot_userlist(snapshot));
	snapshot_unref(snapshot);

	write_file("users", "\"b\" \"22\"\n");
	next = reload(next, text);
	assert_null(userlist_find(snapshot_userlist(next), "a"));
	assert_string_equal(userlist_find(snapshot_userlist(next), "b"), "22");

	/* The setting has no default: deleting its line keeps the value. */
	next = reload(next, "[pgbouncer]\n");
	assert_non_null(userlist_find(snapshot_userlist(next), "b"));
	next = reload(next, "[pgbouncer]\nauth_type = any\n");
	assert_non_null(userlist_find(snapshot_userlist(next), "b"));
	next = reload(next, "[pgbouncer]\nauth_file =\n");
	assert_null(snapshot_userlist(next));
	snapshot_unref(next);
}

static void test_missing_user_list_is_only_a_warning(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\nauth_file = none\n");

	(void)state;
	assert_non_null(snapshot);
	assert_int_equal(problems.warnings, 1);
	assert_null(snapshot_userlist(snapshot));
	snapshot_unref(snapshot);
	snapshot = parse("[pgbouncer]\nauth_file = none\nauth_type = any\n");
	assert_int_equal(problems.count, 0);
	snapshot_unref(snapshot);
}

static void test_set_changes_one_setting_and_shares_the_rest(void **state)
{
	struct snapshot *snapshot =
		parse("[databases]\na = host=h\n[pgbouncer]\nadmin_users = x\n");
	struct snapshot *changed;
	char why[200];

	(void)state;
	changed = snapshot_with_setting(snapshot, "default_pool_size", "7", why, sizeof(why));
	assert_string_equal(why, "");
	assert_int_equal(snapshot_settings(changed)->default_pool_size, 7);
	assert_int_equal(snapshot_settings(snapshot)->default_pool_size, 20);
	assert_ptr_equal(
		snapshot_find_database(changed, "a"), snapshot_find_database(snapshot, "a"));
	snapshot_unref(snapshot);
	assert_string_equal(snapshot_find_database(changed, "a")->host, "h");
	assert_string_equal(snapshot_settings(changed)->admin_users, "x");
	snapshot_unref(changed);
}

static void test_set_checks_values_as_the_file_does(void **state)
{
	struct snapshot *snapshot = parse("[pgbouncer]\n");
	struct snapshot *changed;
	char why[200];

	(void)state;
	assert_null(snapshot_with_setting(snapshot, "nothing", "7", why, sizeof(why)));
	assert_contains(why, "no such setting");
	assert_null(snapshot_with_setting(snapshot, "pool_mode", "x", why, sizeof(why)));
	assert_contains(why, "allowed is");
	assert_null(snapshot_with_setting(
		snapshot, "client_tls_sslmode", "required", why, sizeof(why)));
	assert_null(snapshot_with_setting(snapshot, "listen_port", "x", why, sizeof(why)));

	changed = snapshot_with_setting(snapshot, "listen_port", "7", why, sizeof(why));
	assert_int_equal(snapshot_settings(changed)->listen_port, 6432);
	assert_contains(why, "restart");
	snapshot_unref(changed);
	changed = snapshot_with_setting(
		snapshot, "startup_parameters", "follow", why, sizeof(why));
	assert_int_equal(snapshot_settings(changed)->startup_parameters, STARTUP_FOLLOW);
	snapshot_unref(changed);
	snapshot_unref(snapshot);
}

static void test_snapshot_is_freed_with_its_last_reference(void **state)
{
	struct snapshot *snapshot = parse("[databases]\na = host=h\n[pgbouncer]\n");

	(void)state;
	assert_ptr_equal(snapshot_ref(snapshot), snapshot);
	snapshot_unref(snapshot);
	assert_string_equal(snapshot_find_database(snapshot, "a")->host, "h");
	snapshot_unref(snapshot);
	snapshot_unref(NULL);
}

static void test_ten_thousand_databases_are_sorted_and_found(void **state)
{
	enum { DATABASES = 10000 };
	char *text = malloc(DATABASES * 40 + 20);
	char *at = text + sprintf(text, "[pgbouncer]\n[databases]\n");
	struct snapshot *snapshot;
	char name[20];

	(void)state;
	for (unsigned i = 0; i < DATABASES; i++)
		at += sprintf(at, "d%u = port=%u\n", i * 7919 % DATABASES, i + 1);
	snapshot = parse(text);
	free(text);
	assert_non_null(snapshot);
	for (unsigned i = 0; i < DATABASES; i++) {
		snprintf(name, sizeof(name), "d%u", i * 7919 % DATABASES);
		assert_int_equal(snapshot_find_database(snapshot, name)->port, i + 1);
	}
	for (unsigned i = 1; i < DATABASES; i++)
		assert_true(strcmp(snapshot_database(snapshot, i - 1)->name,
				    snapshot_database(snapshot, i)->name) < 0);
	assert_null(snapshot_database(snapshot, DATABASES));
	snapshot_unref(snapshot);
}

/* Number of rules; -1: no rule set. */
static int rules_of(const struct snapshot *snapshot)
{
	const struct hba *hba = snapshot_hba(snapshot);
	int count = 0;

	while (hba_rule_at(hba, (size_t)count))
		count++;
	return hba ? count : -1;
}

#define HBA "[pgbouncer]\nauth_type = hba\nauth_hba_file = h\n"

static void test_rules_are_read_at_each_load_with_their_type(void **state)
{
	struct snapshot *snapshot;

	(void)state;
	write_file("h", "local all all peer map=m\n");
	write_file("i", "m a b\n");
	snapshot = parse("[pgbouncer]\nauth_hba_file = h\nauth_ident_file = i\n");
	assert_int_equal(rules_of(snapshot), -1);
	snapshot = reload(snapshot, HBA "auth_ident_file = i\n");
	assert_int_equal(rules_of(snapshot), 1);
	assert_int_equal(problems.count, 0);
	/* Same length, within the same second: rules are read without checking for a change. */
	write_file("h", "local all bob peer map=m\n");
	write_file("i", "m c d\n");
	snapshot = reload(snapshot, HBA "auth_ident_file = i\n");
	assert_int_equal(hba_rule_at(snapshot_hba(snapshot), 0)->users.count, 1);
	assert_true(ident_map_allows(&hba_rule_at(snapshot_hba(snapshot), 0)->map, "c", "d"));
	snapshot = reload(snapshot, "[pgbouncer]\nauth_type = md5\nauth_hba_file = h\n");
	assert_int_equal(rules_of(snapshot), -1);
	snapshot_unref(snapshot);
}

static void test_set_keeps_the_rules_without_reading_them(void **state)
{
	struct snapshot *snapshot, *other, *back;
	char why[256];

	(void)state;
	write_file("h", "local all all trust\n");
	snapshot = parse("[pgbouncer]\nauth_hba_file = h\n");
	other = snapshot_with_setting(snapshot, "auth_type", "hba", why, sizeof(why));
	assert_int_equal(rules_of(other), -1);
	snapshot_unref(other);
	snapshot = reload(snapshot, HBA);
	other = snapshot_with_setting(snapshot, "auth_type", "md5", why, sizeof(why));
	back = snapshot_with_setting(other, "auth_type", "hba", why, sizeof(why));
	snapshot_unref(snapshot);
	snapshot_unref(other);
	assert_int_equal(rules_of(back), 1);
	snapshot_unref(back);
}

static void test_missing_rules_match_nothing_and_are_reported(void **state)
{
	struct snapshot *snapshot;

	(void)state;
	write_file("h", "local all all trust\nlocal all all rejekt\n");
	snapshot = parse(HBA "auth_ident_file = nowhere\n");
	assert_int_equal(rules_of(snapshot), 1);
	assert_int_equal(problems.skipped, 2);
	assert_contains(problem_at(&problems, 0)->log[0],
		"could not open ident config file nowhere: No such file");
	assert_contains(problem_at(&problems, 1)->log[1], "could not parse hba config line 2");
	unlink("h");
	snapshot = reload(snapshot, HBA);
	assert_int_equal(rules_of(snapshot), 0);
	assert_contains(
		problem_at(&problems, 1)->log[0], "could not open hba config file h: No such");
	snapshot = reload(snapshot, "[pgbouncer]\nauth_type = hba\n");
	assert_int_equal(rules_of(snapshot), 0);
	assert_contains(problem_at(&problems, 1)->log[0], "could not open hba config file :");
	snapshot_unref(snapshot);
	problems_free(&problems);
}

/* The setting has no default, so a file without it keeps the maps. */
static void test_maps_are_kept_while_their_file_is_not_named(void **state)
{
	struct snapshot *snapshot;

	(void)state;
	write_file("h", "local all all peer map=m\n");
	write_file("i", "m a b\n");
	snapshot = parse(HBA "auth_ident_file = i\n");
	snapshot = reload(snapshot, HBA);
	assert_int_equal(rules_of(snapshot), 1);
	unlink("i");
	snapshot = reload(snapshot, HBA "auth_ident_file =\n");
	assert_int_equal(rules_of(snapshot), 1);
	assert_int_equal(problems.count, 0);
	snapshot = reload(snapshot, HBA "auth_ident_file = i\n");
	assert_int_equal(rules_of(snapshot), 0);
	assert_contains(problem_at(&problems, 1)->log[0], "Ident map m is not found");
	snapshot_unref(snapshot);
	problems_free(&problems);
}

static void test_sample_files_load_without_a_problem(void **state)
{
	const char *top = getenv("srcdir");
	struct snapshot *snapshot;
	char back[1000];

	(void)state;
	problems_free(&problems);
	assert_non_null(getcwd(back, sizeof(back)));
	assert_int_equal(chdir(top ? top : "."), 0);
	assert_int_equal(chdir("etc"), 0);
	snapshot = snapshot_start("pgusher.ini", &(struct presets){.verbose = 0}, &problems);
	assert_int_equal(chdir(back), 0);
	if (problems.count > 0)
		fail_msg("%s", problems.list[0].text);
	assert_non_null(snapshot);
	assert_int_equal(snapshot_settings(snapshot)->auth_type, AUTH_TYPE_SCRAM_SHA_256);
	snapshot_unref(snapshot);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/*
		 * Must be first: the tests in a directory of their own change the working
		 * directory.
		 */
		cmocka_unit_test(test_sample_files_load_without_a_problem),
		cmocka_unit_test(test_smallest_file_has_all_defaults),
		cmocka_unit_test(test_both_names_of_the_main_section_are_accepted),
		cmocka_unit_test(test_entries_are_found_and_listed_by_name),
		cmocka_unit_test(test_later_values_win_and_a_repeated_section_continues),
		cmocka_unit_test(test_comments_are_taken_behind_values_that_cannot_have_them),
		cmocka_unit_test(test_a_comment_that_may_be_part_of_the_value_gets_a_warning),
		cmocka_unit_test(test_every_mistake_is_reported_with_its_line),
		cmocka_unit_test(test_proxies_need_their_addresses),
		cmocka_unit_test(test_broken_template_is_a_warning_and_no_template),
		cmocka_unit_test(
			test_reload_with_a_broken_template_fails_if_there_was_a_valid_one),
		cmocka_unit_test(test_reload_restores_defaults_of_deleted_settings),
		cmocka_unit_test(test_reload_keeps_settings_that_need_a_restart),
		cmocka_unit_test(test_reload_keeps_settings_without_a_default),
		cmocka_unit_test(test_failed_reload_changes_nothing),
		IN_FOLDER(test_start_has_the_verbosity_of_the_command_line),
		IN_FOLDER(test_the_file_overrides_presets),
		IN_FOLDER(test_bad_presets_are_reported),
		IN_FOLDER(test_users_are_shared_until_their_file_changes),
		IN_FOLDER(test_missing_user_list_is_only_a_warning),
		IN_FOLDER(test_rules_are_read_at_each_load_with_their_type),
		IN_FOLDER(test_set_keeps_the_rules_without_reading_them),
		IN_FOLDER(test_missing_rules_match_nothing_and_are_reported),
		IN_FOLDER(test_maps_are_kept_while_their_file_is_not_named),
		cmocka_unit_test(test_set_changes_one_setting_and_shares_the_rest),
		cmocka_unit_test(test_set_checks_values_as_the_file_does),
		cmocka_unit_test(test_snapshot_is_freed_with_its_last_reference),
		cmocka_unit_test(test_ten_thousand_databases_are_sorted_and_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
