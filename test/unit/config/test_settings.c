/* SPDX-License-Identifier: ISC */
/* Settings: defaults, what each kind of value takes and refuses, SHOW CONFIG, the sample file. */
#include "config/database_config.h"
#include "config/entry.h"
#include "config/peer_config.h"
#include "config/settings.h"
#include "config/user_config.h"
#include "support/files/config_files.h"

static char why[256];

static int set_up(void **state)
{
	static struct settings settings;

	*state = &settings;
	return settings_defaults(&settings) ? 0 : -1;
}

static int tear_down(void **state)
{
	settings_free(*state);
	return 0;
}

static bool set(struct settings *settings, const char *name, const char *value)
{
	memset(why, 0, sizeof(why));
	return settings_set(settings, name, value, why, sizeof(why));
}

static const char *shown(const struct settings *settings, const char *name)
{
	static char text[32];

	return settings_render(settings_find(name), settings, text, sizeof(text));
}

static void test_rows_are_in_byte_order_and_found_by_name(void **state)
{
	size_t count;
	const struct setting_row *rows = settings_rows(&count);

	(void)state;
	assert_true(count > 100);
	for (size_t i = 0; i < count; i++) {
		assert_true(i == 0 || strcmp(rows[i - 1].name, rows[i].name) < 0);
		assert_ptr_equal(settings_find(rows[i].name), &rows[i]);
		assert_true(strlen(rows[i].doc) > 0);
	}
	assert_null(settings_find("service_name"));
	assert_null(settings_find("POOL_MODE"));
	assert_null(settings_find(""));
}

static void test_defaults_are_pgbouncers(void **state)
{
	const struct settings *settings = *state;

	assert_int_equal(settings->listen_port, 6432);
	assert_int_equal(settings->unix_socket_mode, 0777);
	assert_int_equal(settings->pool_mode, POOL_MODE_SESSION);
	assert_int_equal(settings->auth_type, AUTH_TYPE_MD5);
	assert_int_equal(settings->server_tls_sslmode, TLS_MODE_PREFER);
	assert_int_equal(settings->server_lifetime, 3600 * USEC_PER_SEC);
	assert_int_equal(settings->max_packet_size, 2147483647);
	assert_int_equal(settings->query_wait_notify, 5);
	assert_true(settings->tcp_keepalive);
	assert_string_equal(settings->server_check_query, "<empty>");
	assert_string_equal(settings->listen_addr, "");
	assert_null(settings->auth_file);
	assert_null(settings->user);
}

static void test_default_texts_equal_the_shown_values(void **state)
{
	size_t count;
	const struct setting_row *rows = settings_rows(&count);
	const char *text;

	for (size_t i = 0; i < count; i++) {
		text = shown(*state, rows[i].name);
		if (strcmp(rows[i].name, "unix_socket_mode") == 0)
			assert_string_equal(text, "511");
		else if (strcmp(rows[i].name, "verbose") == 0)
			assert_string_equal(text, "0");
		else if (!rows[i].default_text)
			assert_null(text);
		else
			assert_string_equal(text, rows[i].default_text);
	}
}

static void test_values_are_parsed_by_their_kind(void **state)
{
	static const struct {
		const char *name, *value, *shown;
	} cases[] = {
		{"listen_port", "0x10", "16"},
		{"listen_port", "010", "8"},
		{"unix_socket_mode", "777", "777"},
		{"unix_socket_mode", "0700", "448"},
		{"listen_backlog", "-1", "-1"},
		{"max_db_connections", "-1", "0"},
		{"default_pool_size", "+7", "7"},
		{"metrics_port", "on", "9127"},
		{"metrics_port", "Off", "0"},
		{"metrics_port", "8080", "8080"},
		{"log_stats", "0", "0"},
		{"log_stats", "7", "1"},
		{"log_stats", "-1", "1"},
		{"pkt_buf", "64kB", "65536"},
		{"tcp_socket_buffer", "-1", "0"},
		{"default_pool_size", "-1", "0"},
		{"default_pool_size", "Auto", "auto"},
		{"max_client_conn", "0", "0"},
		{"max_packet_size", "1GB", "1073741824"},
		{"max_packet_size", "4294967295", "4294967295"},
		{"query_timeout", "0.5", "0.5"},
		{"query_timeout", "1.5e1", "15"},
		{"query_timeout", "5min", "300"},
		{"query_timeout", "250ms", "0.25"},
		{"query_timeout", "1.2345678", "1.23457"},
		{"stats_period", "010", "8"},
		{"stats_period", "2min", "120"},
		{"query_wait_notify", "-1", "0"},
		{"tcp_keepidle", "1h", "3600"},
		{"tcp_user_timeout", "1500", "1500"},
		{"tcp_user_timeout", "30s", "30000"},
		{"pool_mode", "TransAction", "transaction"},
		{"auth_type", "SCRAM-SHA-256", "scram-sha-256"},
		{"client_tls_sslmode", "disable", "disable"},
		{"client_tls_sslmode", "Verify-CA", "verify-ca"},
		{"server_tls_negotiation", "direct", "direct"},
		{"server_tls_sslmode", "disable", "disable"},
		{"startup_parameters", "strict", "strict"},
		{"admin_users", "a, b", "a, b"},
		{"server_reset_query", "", ""},
		{"auth_dbname", "x", "x"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (!set(*state, cases[i].name, cases[i].value))
			fail_msg("%s = %s: %s", cases[i].name, cases[i].value, why);
		assert_string_equal(shown(*state, cases[i].name), cases[i].shown);
	}
}

static void test_other_values_are_refused_and_change_nothing(void **state)
{
	static const struct {
		const char *name, *value, *why;
	} cases[] = {
		{"listen_port", "", "allowed is a whole number from 0 to 65535"},
		{"listen_port", "65536", "allowed is a whole number from 0 to 65535"},
		{"listen_port", "6432 ; x", "allowed is a whole number"},
		{"max_client_conn", "9999999999", "allowed is a whole number"},
		{"max_client_conn", "1.0", "allowed is a whole number"},
		{"default_pool_size", "-3", "at least 0, or -1, which is read as 0"},
		{"default_pool_size", "atuo", "did you mean auto?"},
		{"default_pool_size", "-2", "at least 0"},
		{"auto_pool_max", "3", "at least 4"},
		{"max_db_connections", "-2", "at least 0"},
		{"max_client_conn", "-1", "at least 0"},
		{"max_prepared_memory", "-1", "at least 0"},
		{"verbose", "-1", "at least 0"},
		{"listen_backlog", "-2", "at least -1"},
		{"listen_port", "-1", "from 0 to 65535"},
		{"unix_socket_mode", "-1", "from 0"},
		{"tcp_socket_buffer", "-5", "at least 0"},
		{"tcp_keepidle", "-2", "at least 0"},
		{"tcp_user_timeout", "-2", "at least 0"},
		{"query_wait_notify", "-3", "at least 0"},
		{"max_packet_size", "-1", "at least 64"},
		{"max_packet_size", "0", "at least 64"},
		{"stats_period", "-1", "at least 1"},
		{"pkt_buf", "-1", "at least 1"},
		{"scram_iterations", "0", "from 1 to 1000000"},
		{"scram_iterations", "1000001", "from 1 to 1000000"},
		{"per_address_exempt", "localhost", "allowed is addresses and networks"},
		{"per_address_exempt", "::1, 10.0.0.1/8", "allowed is addresses and networks"},
		{"per_address_exempt", "10.0.0.0/33", "allowed is addresses and networks"},
		{"per_address_exempt", "unix", "allowed is addresses and networks"},
		{"proxy_networks", "unix, localhost", "and the word unix"},
		{"proxy_networks", "10.0.0.1/8", "and the word unix"},
		{"proxy_networks", "Unix", "and the word unix"},
		{"proxy_protocol", "1", "allowed is off, optional, required"},
		{"log_stats", "yes", "allowed is 1 (on) or 0 (off)"},
		{"pkt_buf", "0", "at least 1"},
		{"pkt_buf", "3GB", "allowed is a number of bytes"},
		{"pkt_buf", "5s", "allowed is a number of bytes"},
		{"max_packet_size", "5GB", "allowed is a number of bytes"},
		{"query_timeout", "", "allowed is a number of seconds"},
		{"query_timeout", "-1", "allowed is a number of seconds"},
		{"query_timeout", "10 parsecs", "allowed is a number of seconds"},
		{"query_timeout", "64kB", "allowed is a number of seconds"},
		{"stats_period", "0", "at least 1"},
		{"stats_period", "1.5", "allowed is a whole number"},
		{"stats_period", "1e1", "allowed is a whole number"},
		{"stats_period", "500ms", "allowed is a whole number"},
		{"tcp_user_timeout", "10us", "allowed is a whole number"},
		{"pool_mode", "session ; x", "allowed is session, transaction, statement"},
		{"pool_mode", "inherit", "allowed is session, transaction, statement"},
		{"auth_type", "peer", "allowed is any, trust, plain, md5, scram-sha-256"},
		{"auth_dbname", "pgbouncer",
			"cannot use the reserved \"pgbouncer\" database as an auth_dbname"},
		{"service_name", "x", "there is no such setting"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *before = NULL;
		bool known = settings_find(cases[i].name) != NULL;

		if (known && shown(*state, cases[i].name))
			before = strdup(shown(*state, cases[i].name));
		assert_false(set(*state, cases[i].name, cases[i].value));
		assert_contains(why, cases[i].why);
		if (before)
			assert_string_equal(shown(*state, cases[i].name), before);
		free(before);
	}
}

static void test_methods_not_built_in_are_unknown(void **state)
{
	assert_int_equal(set(*state, "auth_type", "LDAP"), HAVE_LDAP);
	assert_int_equal(set(*state, "auth_type", "pam"), HAVE_PAM);
	assert_false(set(*state, "auth_type", "nothing"));
	assert_int_equal(strstr(why, ", ldap") != NULL, HAVE_LDAP);
	assert_int_equal(strstr(why, ", pam") != NULL, HAVE_PAM);
}

static void test_settings_that_need_a_restart_are_not_changeable(void **state)
{
	static const char *const fixed[] = {"compat_version", "cpu_affinity", "disable_pqexec",
		"job_name", "listen_addr", "listen_backlog", "listen_port", "pidfile",
		"pkt_buf", "resolv_conf", "so_reuseport", "track_extra_parameters",
		"unix_socket_dir", "unix_socket_group", "unix_socket_mode", "user", "workers"};
	size_t count, found = 0;
	const struct setting_row *rows = settings_rows(&count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		found += !settings_is_changeable(&rows[i]);
	assert_int_equal(found, COUNT(fixed));
	for (size_t i = 0; i < COUNT(fixed); i++)
		assert_false(settings_is_changeable(settings_find(fixed[i])));
}

static void test_copy_has_its_own_texts(void **state)
{
	struct settings copy;
	struct settings *settings = *state;

	assert_true(set(settings, "admin_users", "a"));
	assert_true(settings_copy(&copy, settings));
	assert_true(set(settings, "admin_users", "b"));
	assert_string_equal(copy.admin_users, "a");
	assert_null(copy.auth_file);
	assert_true(settings_copy_one(&copy, settings, settings_find("admin_users")));
	assert_string_equal(copy.admin_users, "b");
	settings_free(&copy);
	assert_null(copy.admin_users);
}

static void test_every_setting_about_tls_is_in_a_tls_group(void **state)
{
	size_t count;
	const struct setting_row *rows = settings_rows(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const bool named = strstr(rows[i].name, "_tls_") ||
			strstr(rows[i].name, "_tls13_") ||
			strcmp(rows[i].name, "metrics_tls") == 0;
		const bool grouped = rows[i].group == SETTING_GROUP_TLS ||
			rows[i].group == SETTING_GROUP_SERVER_TLS;

		assert_int_equal(named, grouped);
	}
}

static void test_differences_are_found_by_group(void **state)
{
	static const struct {
		const char *name, *value;
		enum setting_group group;
	} cases[] = {
		{"log_repeats", "7", SETTING_GROUP_LOG},
		{"logfile", "/log", SETTING_GROUP_LOG},
		{"tcp_keepalive", "0", SETTING_GROUP_TCP},
		{"client_tls_sslmode", "allow", SETTING_GROUP_TLS},
		{"server_tls13_ciphers", "x", SETTING_GROUP_TLS},
		{"server_tls_negotiation", "direct", SETTING_GROUP_SERVER_TLS},
		{"pool_mode", "statement", SETTING_GROUP_NONE},
	};
	struct settings changed;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_true(settings_copy(&changed, *state));
		assert_true(set(&changed, cases[i].name, cases[i].value));
		for (enum setting_group group = SETTING_GROUP_NONE;
			group <= SETTING_GROUP_SERVER_TLS; group++)
			assert_int_equal(settings_group_differs(*state, &changed, group),
				group == cases[i].group);
		settings_free(&changed);
	}
}

static void test_differences_are_listed_by_name(void **state)
{
	struct settings changed;
	size_t at = 0;

	assert_true(settings_copy(&changed, *state));
	assert_null(settings_next_difference(*state, &changed, &at));
	assert_true(set(&changed, "verbose", "2"));
	assert_true(set(&changed, "auth_query", "SELECT 1"));
	at = 0;
	assert_string_equal(settings_next_difference(*state, &changed, &at), "auth_query");
	assert_string_equal(settings_next_difference(*state, &changed, &at), "verbose");
	assert_null(settings_next_difference(*state, &changed, &at));
	settings_free(&changed);
}

static void test_misspelt_names_get_the_nearest_name(void **state)
{
	(void)state;
	assert_string_equal(settings_nearest("pool_mod"), "pool_mode");
	assert_string_equal(settings_nearest("listenport"), "listen_port");
	assert_string_equal(settings_nearest("max_client_con"), "max_client_conn");
	assert_string_equal(settings_nearest("Pool_mode"), "pool_mode");
	assert_null(settings_nearest("service_name"));
	assert_null(settings_nearest(""));
	assert_null(settings_nearest(
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
}

/*
 * Check a line `;name = default` or `name = value` of the sample. Returns true for a setting.
 */
static bool check_sample_line(struct settings *settings, char *line)
{
	const bool is_default = line[0] == ';';
	char *name = line + is_default;
	char *equals = strstr(name, " =");
	const struct setting_row *row;

	if (!equals)
		return false;
	line[strcspn(line, "\n")] = '\0';
	*equals = '\0';
	row = settings_find(name);
	if (!row)
		return false;
	equals += equals[2] == ' ' ? 3 : 2;
	if (is_default && row->default_text)
		assert_string_equal(equals, row->default_text);
	if (!is_default)
		assert_true(set(settings, name, equals));
	return true;
}

static FILE *open_sample(void)
{
	const char *top = getenv("srcdir");
	char path[1000];
	FILE *file;

	snprintf(path, sizeof(path), "%s/etc/pgusher.ini", top ? top : ".");
	file = fopen(path, "r");
	assert_non_null(file);
	return file;
}

static void read_sample(char *sample, size_t size)
{
	FILE *file = open_sample();

	sample[fread(sample, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void test_sample_file_has_every_setting_with_its_default(void **state)
{
	FILE *file = open_sample();
	size_t count, found = 0;
	char line[1000];

	while (fgets(line, sizeof(line), file))
		found += check_sample_line(*state, line);
	fclose(file);
	settings_rows(&count);
	assert_int_equal(found, count);
}

/* The sample has the word, between blanks, commas or the ends of a line. */
static void assert_sample_names(const char *sample, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = sample; (at = strstr(at, word)) != NULL; at += length) {
		if (strchr(" \n;,", at[-1]) && strchr(" \n,:", at[length]))
			return;
	}
	fail_msg("etc/pgusher.ini does not have %s", word);
}

/* How many words the list behind the next `Keys:` has, up to an empty line of the comment. */
static size_t count_keys(const char **sample)
{
	const char *at = strstr(*sample, "Keys:");
	size_t count = 0;

	assert_non_null(at);
	at += strlen("Keys:");
	for (; *at && strncmp(at, "\n;\n", 3) != 0 && strncmp(at, "\n\n", 2) != 0; at++)
		count += strchr(" \n;", at[-1]) && !strchr(" \n;", at[0]);
	*sample = at;
	return count;
}

static void test_sample_file_names_each_key_once(void **state)
{
	char sample[64 * 1024];
	const char *at = sample;

	(void)state;
	read_sample(sample, sizeof(sample));
	/* The test below finds each of them; only reserve_pool, the older name, is left out. */
	assert_int_equal(count_keys(&at), database_config_grammar()->key_count - 1);
	assert_int_equal(count_keys(&at), user_config_grammar()->key_count);
}

static void test_sample_file_names_every_key_and_method(void **state)
{
	const struct entry_grammar *grammars[] = {
		database_config_grammar(), user_config_grammar()};
	char sample[64 * 1024];

	(void)state;
	read_sample(sample, sizeof(sample));
	for (size_t i = 0; i < COUNT(grammars); i++) {
		for (size_t j = 0; j < grammars[i]->key_count; j++) {
			const char *name = grammars[i]->keys[j].name;

			if (strcmp(name, "reserve_pool") != 0) /* the older name */
				assert_sample_names(sample, name);
		}
	}
	for (unsigned type = AUTH_TYPE_ANY; type <= AUTH_TYPE_PAM; type++)
		assert_sample_names(sample, auth_type_name(type));
}

#define WITH_DEFAULTS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static void assert_has_description(const char *name, const char *doc)
{
	if (!doc || strlen(doc) < 10 || doc[strlen(doc) - 1] != '.')
		fail_msg("%s has no description for the manual page", name);
}

static void assert_described(const struct entry_grammar *grammar)
{
	for (size_t i = 0; i < grammar->key_count; i++) {
		assert_has_description(grammar->keys[i].name, grammar->keys[i].doc);
		assert_true(strlen(entry_allowed(&grammar->keys[i])) > 0);
	}
}

static void test_every_setting_and_key_is_described(void **state)
{
	size_t count;
	const struct setting_row *rows = settings_rows(&count);
	char allowed[256];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_has_description(rows[i].name, rows[i].doc);
		settings_allowed(&rows[i], allowed, sizeof(allowed));
		assert_true(strlen(allowed) > 0 && strlen(allowed) < sizeof(allowed) - 1);
	}
	assert_described(database_config_grammar());
	assert_described(user_config_grammar());
	assert_described(peer_config_grammar());
}

static void test_allowed_values_are_described(void **state)
{
	static const struct {
		const char *name, *allowed;
	} cases[] = {
		{"default_pool_size",
			"auto, or a whole number, at least 0, or -1, which is read as 0"},
		{"max_db_connections", "a whole number, at least 0, or -1, which is read as 0"},
		{"listen_port", "a whole number from 0 to 65535"},
		{"scram_iterations", "a whole number from 1 to 1000000"},
		{"log_stats", "1 (on) or 0 (off)"},
		{"pool_mode", "session, transaction, statement"},
		{"pkt_buf", "a number of bytes, or one with B, kB, MB or GB, at least 1"},
		{"query_timeout", "a number of seconds, or one with us, ms, s, min, h or d"},
		{"tcp_user_timeout",
			"a whole number of milliseconds, or a time with ms, s, min, h or d, "
			"at least 0, or -1, which is read as 0"},
	};
	char allowed[256];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		settings_allowed(settings_find(cases[i].name), allowed, sizeof(allowed));
		assert_string_equal(allowed, cases[i].allowed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_setting_and_key_is_described),
		cmocka_unit_test(test_allowed_values_are_described),
		cmocka_unit_test(test_rows_are_in_byte_order_and_found_by_name),
		WITH_DEFAULTS(test_defaults_are_pgbouncers),
		WITH_DEFAULTS(test_default_texts_equal_the_shown_values),
		WITH_DEFAULTS(test_values_are_parsed_by_their_kind),
		WITH_DEFAULTS(test_other_values_are_refused_and_change_nothing),
		WITH_DEFAULTS(test_methods_not_built_in_are_unknown),
		cmocka_unit_test(test_settings_that_need_a_restart_are_not_changeable),
		WITH_DEFAULTS(test_copy_has_its_own_texts),
		cmocka_unit_test(test_every_setting_about_tls_is_in_a_tls_group),
		WITH_DEFAULTS(test_differences_are_found_by_group),
		WITH_DEFAULTS(test_differences_are_listed_by_name),
		cmocka_unit_test(test_misspelt_names_get_the_nearest_name),
		WITH_DEFAULTS(test_sample_file_has_every_setting_with_its_default),
		cmocka_unit_test(test_sample_file_names_every_key_and_method),
		cmocka_unit_test(test_sample_file_names_each_key_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
