/* SPDX-License-Identifier: ISC */
/* --listen and --to make a configuration that is safe unless the operator says otherwise. */
#include "setup/arguments.h"
#include "support/files/config_files.h"

static char why[400];

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The draft of these arguments; NULL with the reason in `why`. */
static struct draft *fill(const struct arguments *arguments)
{
	struct draft *draft = draft_new();

	why[0] = '\0';
	if (arguments_fill(draft, arguments, why, sizeof(why)))
		return draft;
	draft_free(draft);
	return NULL;
}

static struct draft *good(const struct arguments *arguments)
{
	struct draft *draft = fill(arguments);

	if (!draft)
		fail_msg("%s", why);
	return draft;
}

static void expect(const struct draft *draft, const char *name, const char *value)
{
	const char *found = draft_get(draft, name);

	if (!found || strcmp(found, value) != 0)
		fail_msg("%s is %s, not %s", name, found ? found : "not set", value);
}

static void test_one_server_gets_sensible_defaults(void **state)
{
	struct draft *draft = good(&(struct arguments){
		.to = "host=db user=app password='it''s' dbname=main port=5433"});

	(void)state;
	expect(draft, "listen_addr", "127.0.0.1");
	expect(draft, "listen_port", "6432");
	expect(draft, "unix_socket_dir", "");
	expect(draft, "auth_type", "scram-sha-256");
	expect(draft, "admin_users", "app");
	expect(draft, "pool_mode", "transaction");
	assert_string_equal(draft_key(draft, DRAFT_DATABASES, "main", "host"), "db");
	assert_string_equal(draft_key(draft, DRAFT_DATABASES, "main", "port"), "5433");
	assert_string_equal(draft_key(draft, DRAFT_DATABASES, "main", "password"), "it's");
	assert_string_equal(draft_user_secret(draft, "app"), "it's");
	draft_free(draft);
}

static void test_without_a_database_all_of_the_server_are_served(void **state)
{
	struct draft *draft = good(&(struct arguments){.to = "host=db user=app"});

	(void)state;
	assert_true(draft_has_entry(draft, DRAFT_DATABASES, "*"));
	assert_null(draft_entry(draft, DRAFT_DATABASES, 1));
	draft_free(draft);
}

static void test_a_url_means_the_same(void **state)
{
	struct draft *draft = good(&(struct arguments){
		.to = "postgresql://app:it%27s@[::1]:5433/main?sslmode=verify-full&connect_timeout=3"});

	(void)state;
	assert_string_equal(draft_key(draft, DRAFT_DATABASES, "main", "host"), "::1");
	assert_string_equal(draft_key(draft, DRAFT_DATABASES, "main", "password"), "it's");
	expect(draft, "server_tls_sslmode", "verify-full");
	expect(draft, "server_connect_timeout", "3");
	draft_free(draft);
}

static void test_places_to_listen_at(void **state)
{
	const struct {
		const char *const *places;
		const char *address, *port, *folder;
	} cases[] = {
		{LIST("7000"), "127.0.0.1", "7000", ""},
		{LIST("localhost:7000"), "localhost", "7000", ""},
		{LIST("127.0.0.1"), "127.0.0.1", "6432", ""},
		{LIST("[::1]:7000"), "::1", "7000", ""},
		{LIST("[::1]"), "::1", "6432", ""},
		{LIST("[::1]:7000", "7000"), "::1,127.0.0.1", "7000", ""},
		{LIST("/run/pgusher"), NULL, "6432", "/run/pgusher"},
		{LIST("/run/pgusher", "7000"), "127.0.0.1", "7000", "/run/pgusher"},
		{LIST("@abstract"), NULL, "6432", "@abstract"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct draft *draft = good(&(struct arguments){
			.listen = cases[i].places, .to = "host=db user=app"});

		if (cases[i].address)
			expect(draft, "listen_addr", cases[i].address);
		else
			assert_null(draft_get(draft, "listen_addr"));
		expect(draft, "listen_port", cases[i].port);
		expect(draft, "unix_socket_dir", cases[i].folder);
		expect(draft, "auth_type", "any");
		draft_free(draft);
	}
}

static void expect_refused(const struct arguments *arguments, const char *reason)
{
	struct draft *draft = fill(arguments);

	if (draft || !strstr(why, reason))
		fail_msg("expected %s, got %s", reason, draft ? "a draft" : why);
}

static void test_no_open_door_towards_other_machines(void **state)
{
	static const char *const places[] = {"0.0.0.0:7000", ":7000", "*", "[::]:7000",
		"10.0.0.1", "db.example.com:7000", "[::ffff:127.0.0.1]"};

	(void)state;
	for (size_t i = 0; i < COUNT(places); i++) {
		struct draft *draft;

		expect_refused(&(struct arguments){.listen = LIST(places[i]),
				       .to = "host=db user=app"},
			"only local addresses are allowed");
		expect_refused(&(struct arguments){.listen = LIST("7000", places[i]),
				       .to = "host=db user=app"},
			"only local addresses are allowed");
		draft = good(&(struct arguments){.listen = LIST(places[i]),
			.to = "host=db user=app",
			.password = "secret"});
		expect(draft, "auth_type", "scram-sha-256");
		draft_free(draft);
	}
	expect_refused(
		&(struct arguments){.to = "host=db user=app", .presets = LIST("listen_addr=*")},
		"only local addresses are allowed");
}

static void test_mistakes_are_told_in_one_line(void **state)
{
	const struct {
		const char *const *listen;
		const char *to, *reason;
	} cases[] = {
		{LIST("0"), "host=db user=app", "--listen 0: allowed is PORT"},
		{LIST("65536"), "host=db user=app", "--listen 65536: allowed is PORT"},
		{LIST("::1:7000"), "host=db user=app", "allowed is PORT"},
		{LIST("[::1"), "host=db user=app", "allowed is PORT"},
		{LIST("a:x"), "host=db user=app", "allowed is PORT"},
		{LIST("a b:1"), "host=db user=app", "allowed is PORT"},
		{LIST(""), "host=db user=app", "allowed is PORT"},
		{LIST("a:1", "b:2"), "host=db user=app", "one port is for all"},
		{LIST("/a", "/b"), "host=db user=app", "one folder"},
		{NULL, "user=app", "it has no host"},
		{NULL, "host=db", "it has no user"},
		{NULL, "host=db user", "a connection string is key=value"},
		{NULL, "host=db user=app hots=x", "hots has no counterpart"},
		{NULL, "host=db user=app port=x", "port: invalid port"},
		{NULL, "host=db user=app sslmode=maybe", "sslmode: "},
		{NULL, "http://db", "begins with postgresql://"},
		{NULL, "postgres://u:p@w@db", "written %40"},
		{NULL, "host=db user=app dbname=pgbouncer", "reserved"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		expect_refused(
			&(struct arguments){.listen = cases[i].listen, .to = cases[i].to},
			cases[i].reason);
		assert_null(strchr(why, '\n'));
	}
	expect_refused(&(struct arguments){.to = "host=db user=app",
			       .presets = LIST("auth_ldap_options=ldapbindpasswd=x ")},
		"auth_ldap_options = ...: a value does not begin or end with a blank");
	expect_refused(&(struct arguments){.to = "host=db user=app", .presets = LIST("x")},
		"a preset is NAME=VALUE");
	expect_refused(
		&(struct arguments){.to = "host=db user=app", .presets = LIST("pool_mod=x")},
		"did you mean pool_mode?");
}

static void test_presets_and_variables_of_libpq_fill_in(void **state)
{
	struct draft *draft = good(&(struct arguments){.to = "host=db",
		.user = "bob",
		.password = "pw",
		.presets = LIST("pool_mode=session", "max_client_conn=7")});

	(void)state;
	expect(draft, "pool_mode", "session");
	expect(draft, "max_client_conn", "7");
	assert_string_equal(draft_user_secret(draft, "bob"), "pw");
	draft_free(draft);
	draft = good(&(struct arguments){
		.to = "host=db user=app password=own", .user = "bob", .password = "pw"});
	assert_string_equal(draft_user_secret(draft, "app"), "own");
	assert_int_equal(draft_user_count(draft), 1);
	draft_free(draft);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_server_gets_sensible_defaults),
		cmocka_unit_test(test_without_a_database_all_of_the_server_are_served),
		cmocka_unit_test(test_a_url_means_the_same),
		cmocka_unit_test(test_places_to_listen_at),
		cmocka_unit_test(test_no_open_door_towards_other_machines),
		cmocka_unit_test(test_mistakes_are_told_in_one_line),
		cmocka_unit_test(test_presets_and_variables_of_libpq_fill_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
