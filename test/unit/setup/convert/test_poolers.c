/* SPDX-License-Identifier: ISC */
/* What single lines of other poolers become, and what is said of those that become nothing. */
#include "base/buffer.h"
#include "setup/convert/own_file.h"
#include "setup/convert/poolers.h"
#include "support/files/config_files.h"

typedef bool converter(struct conversion *conversion, const char *text, size_t length);

struct example {
	const char *text;
	const char *line; /* of the ini, the rules, or the users, with its line end */
	const char *finding; /* NULL: there is none */
};

static void list_findings(struct problems *findings, struct buffer *out)
{
	const struct problem *finding = NULL;

	while ((finding = problems_next(findings, finding)) != NULL)
		buffer_printf(out, "%u: %s\n", finding->line, finding->text);
}

static void check(converter *pooler, const struct example *example)
{
	struct source source;
	struct draft *draft = draft_new();
	struct conversion conversion = {
		.source = &source, .draft = draft, .file = "/nowhere/f", .rules_path = "rules"};
	struct buffer made = {0}, findings = {0};

	source_init(&source);
	assert_true(pooler(&conversion, example->text, strlen(example->text)));
	assert_true(draft_write(draft, DRAFT_SHOW_SECRETS, &made));
	assert_true(draft_write_users(draft, DRAFT_SHOW_SECRETS, &made));
	buffer_append(&made, conversion.hba.data, conversion.hba.length);
	buffer_append(&made, "", 1);
	list_findings(draft_findings(draft), &findings);
	buffer_append(&findings, "", 1);
	if (example->line)
		assert_contains((char *)made.data, example->line);
	if (example->finding)
		assert_contains((char *)findings.data, example->finding);
	else if (findings.length > 1)
		fail_msg("%s\nhas findings: %s", example->text, (char *)findings.data);
	buffer_free(&made);
	buffer_free(&findings);
	buffer_free(&conversion.hba);
	buffer_free(&conversion.users_wanted);
	source_free(&source);
	draft_free(draft);
}

static void check_all(converter *pooler, const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(pooler, &examples[i]);
}

/* --- Odyssey ------------------------------------------------------------------------------ */

#define STORAGE "storage \"s\" { host \"h\" }\n"
#define USER(more)                                                                             \
	STORAGE "database \"d\" { user \"u\" { authentication \"md5\" password \"p\" "         \
		"storage \"s\" " more " } }\n"

static void test_odyssey(void **state)
{
	static const struct example examples[] = {
		{USER(""), "d = host=h port=5432\n", NULL},
		{USER(""), "auth_type = md5\n", NULL},
		{USER(""), "\"u\" \"p\"\n", NULL},
		{USER("storage_db \"e\""), "d = host=h port=5432 dbname=e\n", NULL},
		{USER("storage_user \"v\" storage_password \"it's\""),
			"d = host=h port=5432 user=v password='it''s'\n", NULL},
		{USER("storage_user \"u\" storage_password \"p\""), "d = host=h port=5432\n",
			NULL},
		{USER("pool_timeout 1500 pool_ttl 5"), "query_wait_timeout=1500ms\n", NULL},
		{USER("pool_ttl 5"), "server_idle_timeout = 5\n", NULL},
		{USER("server_lifetime 0"), " server_lifetime=3650d\n",
			"2: server_lifetime: no limit"},
		{USER("pool_size 99999999999999999999"), NULL, "its value is not of the kind"},
		{USER("pool_size \"x\""), NULL, "2: pool_size: its value is not of the kind"},
		{USER("pool_discard no pool \"session\""), "server_reset_query =\n", NULL},
		{USER("auth_query \"SELECT %u\""), NULL, "2: auth_query: only $1"},
		{USER("role \"admin\""), NULL,
			"2: role: the console is the database pgbouncer"},
		{USER("pool_routing \"internal\""), NULL, "2: pool_routing: no pools"},
		{"storage \"s\" { host \"[::1]:5433,b:1:zone,c\" port 7 }\n"
		 "database \"d\" { user \"u\" { authentication \"none\" storage \"s\" } }",
			"d = host=::1,b,c port=5433,1,7\n", NULL},
		{STORAGE
			"database \"d\" { user default { authentication \"none\" storage \"s\" } }",
			"d = host=h port=5432\n", "2: user: a user that is not in auth_file"},
		{STORAGE
			"database default { user \"u\" { authentication \"md5\" storage \"s\" } }",
			"* = host=h port=5432\n", NULL},
		{"storage \"s\" { host \"h\" tls \"verify_full\" target_session_attrs "
		 "\"read-write\" }\ndatabase \"d\" { user \"u\" { authentication \"cert\" storage "
		 "\"s\" } }",
			"server_tls_sslmode = verify-full\n", NULL},
		{"storage \"s\" { host \"h\" tls \"maybe\" }", NULL, "1: tls: its value"},
		{"listen { host \"a\" port 1 }\nlisten { host \"b\" port 1 tls \"require\" }",
			"listen_addr = a,b\n", NULL},
		{"listen { host \"a\" port 1 }\nlisten { host \"b\" port 2 }",
			"listen_port = 1\n", "2: port: one process has one port"},
		{"client_max 7", "max_client_conn = 7\n", NULL},
		{"client_max 0", "max_client_conn = 10000\n", NULL},
		{"client_max \"many\"", NULL, "max_client_conn"},
		{"keepalive 0", "tcp_keepalive = 0\n", NULL},
		{"nodelay no", NULL, "1: nodelay: cannot be turned off"},
		{"nodelay yes", NULL, NULL},
		{"log_query yes", NULL, "1: log_query: no counterpart: "},
		{"log_query no", NULL, NULL},
		{"database \"d\" { user \"u\" { authentication \"md5\" storage \"x\" } }", NULL,
			"1: storage: there is no storage for it"},
		{STORAGE "database \"pgbouncer\" { user \"u\" { authentication \"md5\" storage "
			 "\"s\" } }",
			NULL, "reserved"},
	};

	(void)state;
	check_all(odyssey_convert, examples, COUNT(examples));
}

#define TWO(one, two)                                                                          \
	STORAGE "database \"d\" {\nuser \"u\" { authentication " one " storage \"s\" }\n"      \
		"user " two " storage \"s\" }\n}\n"

static void test_odyssey_users_that_differ(void **state)
{
	static const struct example examples[] = {
		{TWO("\"md5\"", "\"v\" { authentication \"md5\""), "auth_type = md5\n", NULL},
		{TWO("\"md5\"", "\"v\" { authentication \"block\""), "auth_type = hba\n", NULL},
		{TWO("\"md5\"", "\"v\" { authentication \"block\""),
			"host \"d\" \"u\" all md5\nlocal \"d\" \"v\" reject\n", NULL},
		/* The nearest rule is first, whatever the order of the file. */
		{TWO("\"md5\" pool_size 3", "default { authentication \"clear_text\""),
			"host \"d\" \"u\" all md5\nlocal \"d\" all password\n", NULL},
		{TWO("\"md5\" pool_size 3", "default { authentication \"md5\" pool_size 4"),
			"d = host=h port=5432 pool_size=4\n", NULL},
		{TWO("\"md5\" pool_size 3", "default { authentication \"md5\" pool_size 4"),
			"u = pool_size=3\n", NULL},
		{TWO("\"md5\"", "\"v\" hostssl \"10.0.0.0/8\" { authentication \"md5\""),
			"hostssl \"d\" \"v\" 10.0.0.0/8 md5\n", NULL},
		{TWO("\"md5\" storage_user \"x\"", "\"v\" { authentication \"md5\""), NULL,
			"3: storage_user: a database has one server user"},
		{TWO("\"md5\" password \"1\"",
			 "\"u\" \"::1/128\" { authentication \"md5\" "
			 "password \"2\""),
			NULL, "4: user: user u has another password in another line"},
		{TWO("\"clear_text\" auth_pam_service \"x\"", "\"v\" { authentication \"md5\""),
			NULL, "3: auth_pam_service: the service of PAM is pgbouncer"},
		{TWO("\"clear_text\" auth_pam_service \"pgbouncer\"",
			 "\"v\" { authentication \"md5\""),
			NULL, "3: user: no rule for it: pam counts for all users or for none"},
		{TWO("\"ldap\"", "\"v\" { authentication \"md5\""),
			"host \"d\" \"u\" all reject\n",
			"3: authentication: no known authentication: this user is refused"},
		/* What is not understood of a rule never makes it wider. */
		{TWO("\"md5\"", "\"v\" \"localhost\" { authentication \"md5\""),
			"host \"d\" \"v\" all reject\n",
			"4: user: localhost is not known behind a user: this user is refused"},
		{TWO("\"md5\"",
			 "\"v\" \"::/0 md5\nhost all all all trust #\" { authentication "
			 "\"md5\""),
			"md5\nlocal \"d\" \"v\" reject\nhost \"d\" \"v\" all reject\n",
			"4: user: ::/0 md5\\x0ahost all all all trust # is not known"},
		{"ldap_endpoint \"l\" { \"x\nhost all all all trust #\" \"y\" ldapserver "
		 "\"z\" }\nstorage \"s\" { host \"h\" }\ndatabase \"d\" { user \"u\" { "
		 "authentication \"clear_text\" ldap_endpoint_name \"l\" storage \"s\" }\n"
		 "user \"v\" { authentication \"md5\" storage \"s\" } }",
			"host \"d\" \"u\" all ldap ldapserver=\"z\"\n", "unknown: "},
		{"ldap_endpoint \"l\" { ldapserver \"x y\" ldapport 389 ldapbindpasswd \"z\" }\n"
		 "storage \"s\" { host \"h\" }\ndatabase \"d\" { user default { authentication "
		 "\"clear_text\" ldap_endpoint_name \"l\" storage \"s\" } }",
			"auth_ldap_options = ldapserver=\"x y\" ldapport=\"389\" "
			"ldapbindpasswd=\"z\"\n",
			NULL},
	};

	(void)state;
	check_all(odyssey_convert, examples, COUNT(examples));
}

/* --- PgCat -------------------------------------------------------------------------------- */

#define POOL(user, pool)                                                                       \
	"[pools.d]\n" pool "[pools.d.users.0]\nusername = 'u'\npassword = 'p'\n" user          \
	"[pools.d.shards.0]\ndatabase = 'd'\nservers = [['h', 5433, 'primary']]\n"

static void test_pgcat(void **state)
{
	static const struct example examples[] = {
		{POOL("", ""), "d = host=h port=5433\n", NULL},
		{POOL("", ""), "pool_mode = transaction\n", NULL},
		{POOL("", ""), "auth_type = md5\n", NULL},
		{POOL("auth_type = 'trust'\n", ""), "auth_type = trust\n", NULL},
		{POOL("auth_type = 'jwt'\n", ""), NULL, "5: auth_type: no such way to log in"},
		{POOL("server_username = 'v'\nserver_password = 'q r'\n", ""),
			" user=v password='q r'\n", NULL},
		{POOL("server_username = 'u'\nserver_password = 'p'\n", ""),
			"d = host=h port=5433\n", NULL},
		{POOL("pool_mode = 'session'\n", "pool_mode = 'transaction'\n"),
			"d = host=h port=5433 pool_mode=session\n", NULL},
		{POOL("", "pool_mode = 'session'\n"),
			"d = host=h port=5433 pool_mode=session\n", NULL},
		{POOL("pool_mode = 'other'\n", ""), NULL, "5: pool_mode: not possible as"},
		{POOL("", "default_role = 'primary'\n"), "target_session_attrs=read-write\n",
			NULL},
		{POOL("", "default_role = 'replica'\n"), "target_session_attrs=standby\n",
			NULL},
		{POOL("", "default_role = 'replica'\nprimary_reads_enabled = true\n"),
			"target_session_attrs=prefer-standby\n", NULL},
		{POOL("", "query_parser_read_write_splitting = true\n"),
			"d_ro = target_session_attrs=standby host=h port=5433 dbname=d\n",
			"2: query_parser_read_write_splitting: reads are not told from writes"},
		{POOL("",
			 "auth_query = \"SELECT a FROM b WHERE c='$1'\"\nauth_query_user = 'x'\n"),
			"auth_query='SELECT a FROM b WHERE c=$1' auth_user=x\n", NULL},
		{POOL("", "default_shard = 'random'\n"), NULL,
			"2: default_shard: no counterpart"},
		{"[general]\nserver_tls = true\nverify_server_certificate = true\n",
			"server_tls_sslmode = verify-full\n", NULL},
		{"[general]\nserver_tls = false\n", "server_tls_sslmode = disable\n", NULL},
		{"[general]\ntls_certificate = '/c'\ntls_private_key = '/k'\n",
			"client_tls_sslmode = allow\n", NULL},
		{"[general]\nprepared_statements = false\n", "max_prepared_statements = 0\n",
			NULL},
		{"[general]\nprepared_statements_cache_size = 0\n", "[pgbouncer]\n", NULL},
		{"[general]\nprepared_statements_cache_size = 9\n",
			"max_prepared_statements = 9\n", NULL},
		{"[general]\n", "listen_addr = 0.0.0.0\nlisten_port = 5432\n", NULL},
		{POOL("statement_timeout = 0\n", ""), "d = host=h port=5433\n", NULL},
		{POOL("statement_timeout = 9000\n", ""), "u = query_timeout=9\n",
			"5: statement_timeout: query_timeout ends the client"},
		{"[general]\nidle_timeout = 1500\n", "server_idle_timeout = 1500ms\n", NULL},
		{"[general]\nport = 70000\n", NULL, "2: port: not possible as listen_port: "},
		{"[general]\nhost = ['a']\n", NULL, "2: host: its value is not of the kind"},
		{"[general]\nhost = \"a\\nb\"\n", NULL, "2: host: not possible as listen_addr"},
		{"[general]\nserver_lifetime = 0\n", "server_lifetime = 3650d\n",
			"2: server_lifetime"},
		{"[pools.d]\n", NULL, "1: d: it has no servers"},
		{"pools = 1\ngeneral = []\n", "[pgbouncer]\n", "1: pools: a pool is a table"},
		{"pools = [ {users = [{username = 'u'}]} ]\n", "[pgbouncer]\n",
			"1: pools: a pool is a table"},
		{"[[pools]]\nx = 1\n", "[pgbouncer]\n", "1: pools: a pool is a table"},
	};

	(void)state;
	check_all(pgcat_convert, examples, COUNT(examples));
}

#define LOGIN(pool, number, name, more)                                                        \
	"[pools." pool ".users." number "]\nusername = '" name "'\npassword = 'p'\n" more

static void test_pgcat_users_that_differ(void **state)
{
	static const struct example examples[] = {
		/* Users of one pool get no other one. */
		{LOGIN("a", "0", "u", "") LOGIN("b", "0", "v", ""), "auth_type = hba\n",
			"no servers"},
		{LOGIN("a", "0", "u", "") LOGIN("b", "0", "v", ""),
			"local \"a\" \"u\" md5\nhost \"a\" \"u\" all md5\nlocal \"b\" \"v\" md5\n",
			"no servers"},
		{LOGIN("a", "0", "u", "") LOGIN("b", "0", "u", ""), "auth_type = md5\n",
			"no servers"},
		{LOGIN("a", "0", "u", "pool_size = 1\n")
				LOGIN("a", "1", "v", "pool_size = 2\n"),
			"\n[users]\nv = pool_size=2\n", "no servers"},
		{LOGIN("a", "0", "x", "") LOGIN("a", "1", "v", "pool_size = 2\n") LOGIN(
			 "b", "0", "x", "") LOGIN("b", "1", "v", "pool_size = 3\n"),
			NULL, "7: pool_size: user v has another one in database b"},
		{LOGIN("a", "0", "u", "server_username = 'x'\n") LOGIN("a", "1", "v", ""), NULL,
			"4: server_username: a database has one server user"},
		{LOGIN("a", "0", "u", "idle_timeout = 1000\n")
				LOGIN("a", "1", "v", "idle_timeout = 2000\n"),
			"server_idle_timeout = 1\n",
			"8: idle_timeout: server_idle_timeout counts"},
	};

	(void)state;
	check_all(pgcat_convert, examples, COUNT(examples));
}

/* --- pgagroal ----------------------------------------------------------------------------- */

#define MAIN_SECTION(more) "[pgagroal]\n" more "\n[one]\nhost = h\n"

static void test_pgagroal(void **state)
{
	static const struct example examples[] = {
		{MAIN_SECTION(""), "* = host=h port=5432\n", NULL},
		{MAIN_SECTION("idle_timeout = 10m"), "server_idle_timeout = 10min\n", NULL},
		{MAIN_SECTION("idle_timeout = 2W"), "server_idle_timeout = 14d\n", NULL},
		{MAIN_SECTION("idle_timeout = 600"), "server_idle_timeout = 600\n", NULL},
		{MAIN_SECTION("idle_timeout = 0"), "server_idle_timeout = 0\n", NULL},
		{MAIN_SECTION("idle_timeout = 5y"), NULL, "2: idle_timeout: its value"},
		{MAIN_SECTION("max_connection_age = 0"), "server_lifetime = 3650d\n",
			"2: max_connection_age: no limit"},
		{MAIN_SECTION("port = 1 # why"), "listen_port = 1\n", NULL},
		{MAIN_SECTION("unix_socket_dir = \"/run/x/\""), "unix_socket_dir = /run/x\n",
			NULL},
		{MAIN_SECTION("pipeline = performance"), "pool_mode = session\n",
			"2: pipeline: becomes pool_mode = session"},
		{MAIN_SECTION("pipeline = transaction"), "pool_mode = transaction\n", NULL},
		{MAIN_SECTION("pipeline = turbo"), NULL, "2: pipeline: unknown"},
		{MAIN_SECTION("log_type = syslog"), "syslog = 1\n", NULL},
		{MAIN_SECTION("log_type = file\nlog_path = /l"), "logfile = /l\n", NULL},
		{MAIN_SECTION("log_level = debug5"), "verbose = 2\n", NULL},
		{MAIN_SECTION("log_level = warn"), NULL, "2: log_level: no counterpart"},
		{MAIN_SECTION("tls = on\ntls_cert_file = /c"), "client_tls_sslmode = allow\n",
			NULL},
		{MAIN_SECTION("metrics = 1"), "metrics_port = 1\n", "2: metrics: other names"},
		{MAIN_SECTION("max_connections = 9"), "default_pool_size = 9\n",
			"2: max_connections"},
		{MAIN_SECTION("failover = on") "[two]\nhost = i\nport = 1\nprimary = on\n",
			"* = host=i,h port=1,5432 target_session_attrs=read-write\n", NULL},
		{MAIN_SECTION("") "tls = on\ntls_ca_file = /a\n",
			"server_tls_sslmode = verify-ca\n", NULL},
		{"[pgagroal]\n[one]\n", NULL, "2: one: a server needs a host"},
	};

	(void)state;
	check_all(pgagroal_convert, examples, COUNT(examples));
}

static bool convert_in_folder(struct conversion *conversion, const char *text, size_t length)
{
	conversion->file = "pgagroal.conf";
	return pgagroal_convert(conversion, text, length);
}

static void test_pgagroal_files_beside(void **state)
{
	static const struct example examples[] = {
		{MAIN_SECTION(""), "d = host=h port=5432 pool_size=5 min_pool_size=1\n",
			"1: the password of user u is encrypted"},
		{MAIN_SECTION(""),
			"e = host=h port=5432 dbname=d pool_size=5 min_pool_size=1\n",
			"2: a line is DATABASE USER MAX_SIZE"},
		{MAIN_SECTION(""), "local all all md5\nhost all all all md5\n",
			"2: a rule is TYPE DATABASE USER ADDRESS METHOD"},
		{MAIN_SECTION(""), "hostssl \"d\" \"u\" ::1/128 reject\n",
			"3: no such method: gss; users it is for are refused"},
	};

	(void)state;
	write_file("pgagroal_databases.conf", "d=e u 5 2 1 # why\nd u\n");
	write_file("pgagroal_hba.conf",
		"host all all all all\nhost all\nhostssl d u ::1/128 gss\n");
	write_file("pgagroal_users.conf", "u:QUFB\nbad\n");
	check_all(convert_in_folder, examples, COUNT(examples));
}

/* --- pgbouncer.ini ------------------------------------------------------------------------ */

static void check_own(const char *text, bool masked, const char *expected, const char *finding)
{
	struct problems findings = {0};
	struct buffer out = {0}, list = {0};

	assert_true(own_file_convert("f.ini", text, strlen(text), masked, &out, &findings));
	buffer_append(&out, "", 1);
	list_findings(&findings, &list);
	buffer_append(&list, "", 1);
	assert_string_equal((char *)out.data, expected);
	if (finding)
		assert_contains((char *)list.data, finding);
	else
		assert_int_equal(findings.count, 0);
	buffer_free(&out);
	buffer_free(&list);
	problems_free(&findings);
}

static void test_pgbouncer_ini_stays_as_it_is(void **state)
{
	(void)state;
	check_own("; why\n[pgbouncer]\n\nlisten_port = 1 \n", false,
		"; why\n[pgbouncer]\n\nlisten_port = 1 \n", NULL);
	check_own("[pgbouncer]\npool_size = 5\nno_such = 1", false,
		"[pgbouncer]\n; pool_size = 5\n; no_such = 1\n",
		"2: pool_size: obsolete here: a key of the lines in [databases]; "
		"default_pool_size is for all\n3: not possible here: unknown parameter");
	check_own("[primary]\na = 1\n\n[pgbouncer]\nlisten_port = 1\n", false,
		"; [primary]\n; a = 1\n; \n[pgbouncer]\nlisten_port = 1\n",
		"1: not possible here: ");
	check_own("[databases]\na = host\n[pgbouncer]\n", false,
		"[databases]\n; a = host\n[pgbouncer]\n", "2: not possible here: ");
	check_own("[pgbouncer]\npool_mode = transaction\n", false,
		"[pgbouncer]\npool_mode = transaction\n", "2: pool_mode: a client's settings");
	check_own("[pgbouncer]\npool_mode = session\n", false,
		"[pgbouncer]\npool_mode = session\n", NULL);
}

static void test_passwords_are_masked(void **state)
{
	(void)state;
	check_own("[databases]\na = password=x host=h\nb = password = 'x '' y' port=1\n"
		  "[pgbouncer]\nauth_ldap_options = ldapbindpasswd=\"x\" ldapserver=h\n",
		true,
		"[databases]\na = password=******** host=h\nb = password = ******** port=1\n"
		"[pgbouncer]\nauth_ldap_options = ldapbindpasswd=******** ldapserver=h\n",
		NULL);
	check_own("[databases]\na = password='x\n[pgbouncer]\n", true,
		"[databases]\n; a = password=********\n[pgbouncer]\n", "2: not possible");
	/* A mistake in the line shows nothing more. */
	check_own("[databases]\na = password='it's me' host=h\nb = PASSWORD=x Passwd = y\n"
		  "[pgbouncer]\n",
		true,
		"[databases]\n; a = password=********\n"
		"; b = PASSWORD=******** Passwd = ********\n[pgbouncer]\n",
		"2: not possible");
	check_own("; password\n[pgbouncer]\n", true, "; password\n[pgbouncer]\n", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_odyssey),
		cmocka_unit_test(test_odyssey_users_that_differ),
		cmocka_unit_test(test_pgcat),
		cmocka_unit_test(test_pgcat_users_that_differ),
		cmocka_unit_test(test_pgagroal),
		cmocka_unit_test_setup_teardown(
			test_pgagroal_files_beside, enter_folder, leave_folder),
		cmocka_unit_test(test_pgbouncer_ini_stays_as_it_is),
		cmocka_unit_test(test_passwords_are_masked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
