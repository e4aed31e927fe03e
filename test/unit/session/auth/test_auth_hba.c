/* SPDX-License-Identifier: ISC */
/*
 * Logins by the rules of an HBA file: which rule applies to a client, and which method it
 * selects.
 */
#include <netinet/in.h>
#include <pwd.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/stream.h"
#include "session/login/client_accept.h"
#include "support/fakes/fake_login.h"
#include "support/files/config_files.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/startup.h"
#include "wire/writer.h"

static char own_name[64]; /* name of the system user that runs the test */
static int pair[2]; /* a connected pair of Unix sockets, both held by this process */

static int start(void **state)
{
	const struct passwd *self = getpwuid(getuid());

	assert_int_equal(enter_folder(state), 0);
	assert_non_null(self);
	snprintf(own_name, sizeof(own_name), "%s", self->pw_name);
	return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}

static int end(void **state)
{
	fake_end(state);
	close(pair[0]);
	close(pair[1]);
	return leave_folder(state);
}

static void start_with(const char *rules, const char *maps)
{
	static const char config[] = "[databases]\n"
				     "db = host=/tmp\n"
				     "other = host=/tmp\n"
				     "alice = host=/tmp\n"
				     "[users]\n"
				     "unlisted = pool_mode=session\n"
				     "[pgbouncer]\n"
				     "auth_type = hba\n"
				     "auth_hba_file = hba\n"
				     "auth_ident_file = ident\n"
				     "scram_iterations = 10\n"
				     "admin_users = boss\n";

	write_file("hba", rules);
	write_file("ident", maps);
	fake_start(config);
	fake_user("alice", "secret");
	fake_user("empty", "");
	fake_user("boss", "secret");
	fake_user(own_name, "secret");
}

/* --- clients ------------------------------------------------------------------------------ */

/* A client on a Unix socket: the kernel reports this process as its peer. */
static struct endpoint *startup_unix(const char *user, const char *database)
{
	const struct sockaddr from = {.sa_family = AF_UNIX};
	struct endpoint *client;

	client_accept(&fake_registry, -1, &from, sizeof(from), true);
	client = fake_next_endpoint(NULL);
	endpoint_client(client)->link.stream.fd = pair[0];
	send_login(client, user, database);
	return client;
}

static void assert_logged_in(struct endpoint *client)
{
	assert_state(client, CLIENT_IDLE);
}

static void wait_for_names(void)
{
	while (helper_pending(fake_registry.system_users) > 0)
		fake_wait();
}

/* --- methods ------------------------------------------------------------------------------ */

static void test_rule_selects_its_method(void **state)
{
	static const struct {
		const char *user;
		enum authentication_request request;
	} cases[] = {
		{"password", AUTH_CLEARTEXT},
		{"md5", AUTH_MD5},
		{"scram", AUTH_SASL},
	};

	(void)state;
	start_with("host db password all password\n"
		   "host db md5 all md5\n"
		   "host db scram all scram-sha-256\n"
		   "host db trust all trust\n"
		   "host db reject all reject\n"
		   "host db cert all cert\n",
		"");
	for (size_t i = 0; i < COUNT(cases); i++) {
		fake_user(cases[i].user, "secret");
		received_request(startup(cases[i].user, "db"), cases[i].request, NULL);
	}
	fake_user("trust", "secret");
	fake_user("reject", "secret");
	fake_user("cert", "secret");
	assert_logged_in(startup("trust", "db"));
	assert_closed_with_error(startup("reject", "db"), "28000", "login rejected");
	assert_closed_with_error(
		startup("cert", "db"), "28000", "certificate authentication failed");
	assert_true(fake_logged("TLS connection required"));
	assert_closed_with_error(
		startup("alice", "db"), "28000", "no authentication method is found");
}

static void test_right_password_is_accepted_and_wrong_one_refused(void **state)
{
	struct endpoint *client;

	(void)state;
	start_with("host all all all password\n", "");
	client = startup("alice", "db");
	send_password(client, "secret");
	assert_logged_in(client);
	client = startup("alice", "db");
	assert_received(client, "R");
	send_password(client, "wrong");
	assert_closed_with_error(client, "28P01", "password authentication failed");
	client = startup("empty", "db");
	assert_received(client, "R");
	send_password(client, "");
	assert_closed_with_error(client, "28P01", "empty password returned by client");
}

static void test_first_matching_rule_applies(void **state)
{
	(void)state;
	start_with("host db alice 192.0.2.0/24 reject\n"
		   "host all alice 192.0.2.1/32 trust\n",
		"");
	assert_closed_with_error(startup("alice", "db"), "28000", "login rejected");
	assert_logged_in(startup("alice", "other"));
}

static void test_rules_match_the_database_name_of_the_startup_message(void **state)
{
	(void)state;
	start_with("host sameuser all all trust\n"
		   "host \"nowhere\" all all reject\n",
		"");
	assert_logged_in(startup("alice", "alice"));
	assert_closed_with_error(
		startup("alice", "db"), "28000", "no authentication method is found");
	/* The database need not exist: the rules are checked first. */
	assert_closed_with_error(startup("alice", "nowhere"), "28000", "login rejected");
}

static void test_hostssl_rule_does_not_match_without_tls(void **state)
{
	(void)state;
	start_with("hostssl db all all trust\n"
		   "hostnossl other all all trust\n"
		   "local all all trust\n",
		"");
	assert_closed_with_error(
		startup("alice", "db"), "28000", "no authentication method is found");
	assert_logged_in(startup("alice", "other"));
	assert_logged_in(startup_unix("alice", "db"));
}

static void test_physical_replication_matches_the_replication_keyword_only(void **state)
{
	struct endpoint *client;

	(void)state;
	start_with("host all all all trust\n"
		   "host replication alice all reject\n",
		"");
	fake_pool("db", "alice");
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "replication",
		"true", NULL);
	assert_closed_with_error(client, "28000", "login rejected");
	client = fake_accept(-1);
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "replication",
		"database", NULL);
	assert_logged_in(client);
}

static void test_no_rules_refuse_every_client(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\nauth_type = trust\n");
	fake_user("alice", "secret");
	fake_set("auth_type", "hba");
	assert_closed_with_error(
		startup("alice", "db"), "28000", "no authentication method is found");
}

/* --- unknown users ------------------------------------------------------------------------ */

static void test_unknown_user_is_refused_after_the_exchange_of_its_rule(void **state)
{
	static const struct {
		const char *database, *sqlstate, *text;
	} cases[] = {
		{"trusting", "28000", "\"trust\" authentication failed"},
		{"rejecting", "28000", "login rejected"},
		{"ruleless", "28000", "no authentication method is found"},
		{"certain", "28000", "certificate authentication failed"},
	};
	struct endpoint *client;

	(void)state;
	start_with("host trusting all all trust\n"
		   "host rejecting all all reject\n"
		   "host certain all all cert\n"
		   "host db all all password\n"
		   "host other all all md5\n"
		   "host alice all all scram-sha-256\n",
		"");
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_closed_with_error(
			startup("ghost", cases[i].database), cases[i].sqlstate, cases[i].text);
	assert_true(fake_logged("no such user: ghost"));
	client = startup("ghost", "db");
	received_request(client, AUTH_CLEARTEXT, NULL);
	send_password(client, "secret");
	assert_closed_with_error(client, "28P01", "password authentication failed");
	received_request(startup("ghost", "other"), AUTH_MD5, NULL);
	received_request(startup("unlisted", "alice"), AUTH_SASL, NULL);
}

/* --- the console -------------------------------------------------------------------------- */

static void test_console_rules_match_both_of_its_names(void **state)
{
	static const char *const names[] = {"pgbouncer", "pgusher"};

	(void)state;
	start_with("host pgbouncer boss all trust\n"
		   "host all all all reject\n",
		"");
	for (size_t i = 0; i < COUNT(names); i++) {
		struct endpoint *client = fake_accept(-1);

		send_startup(client, PROTOCOL_3_0, "user", "boss", "database", names[i], NULL);
		assert_state(client, CLIENT_CONSOLE);
	}
	assert_closed_with_error(startup("boss", "db"), "28000", "login rejected");
}

/* --- peer --------------------------------------------------------------------------------- */

static void test_peer_requires_the_name_of_the_system_user(void **state)
{
	struct endpoint *client;

	(void)state;
	start_with("local all all peer\n", "");
	client = startup_unix(own_name, "db");
	assert_state(client, CLIENT_AUTHENTICATING);
	wait_for_names();
	assert_logged_in(client);
	client = startup_unix("alice", "db");
	wait_for_names();
	assert_closed_with_error(client, "28000", "unix socket login rejected");
}

static void test_peer_map_lists_the_allowed_users(void **state)
{
	char maps[200];
	struct endpoint *client;

	(void)state;
	snprintf(maps, sizeof(maps), "m %s alice\nm another-user all\n", own_name);
	start_with("local all all peer map=m\n", maps);
	client = startup_unix("alice", "db");
	wait_for_names();
	assert_logged_in(client);
	client = startup_unix(own_name, "db");
	wait_for_names();
	assert_closed_with_error(client, "28000", "unix socket login rejected");
	assert_true(fake_logged("ident map m cannot be matched"));
}

static void test_mapped_user_must_exist(void **state)
{
	struct endpoint *client;
	char maps[200];

	(void)state;
	snprintf(maps, sizeof(maps), "m %s all\n", own_name);
	start_with("local all all peer map=m\n", maps);
	client = startup_unix("ghost", "db");
	assert_state(client,
		CLIENT_AUTHENTICATING); /* the answer takes as long as for known users */
	wait_for_names();
	assert_closed_with_error(client, "28000", "unix socket login rejected");
	client = startup_unix("empty", "db");
	wait_for_names();
	assert_logged_in(client);
}

static void test_peer_requires_a_unix_socket(void **state)
{
	(void)state;
	start_with("host all all all peer\n", "");
	assert_closed_with_error(
		startup(own_name, "db"), "28000", "unix socket login rejected");
}

static void test_peer_with_an_unknown_uid_is_refused(void **state)
{
	struct endpoint *client;

	(void)state;
	start_with("local all all peer map=m\n", "m /. all\n");
	client = fake_accept(-1);
	endpoint_client(client)->link.remote = (struct address){.family = AF_UNIX};
	send_login(client, "alice", "db");
	wait_for_names();
	assert_closed_with_error(client, "28000", "unix socket login rejected");
	assert_true(fake_logged("no system user has the uid 4294967295"));
}

/* --- waiting for the name of a system user ------------------------------------------------ */

static sem_t block;

static void wait_for_block(struct helper_job *job)
{
	(void)job;
	while (sem_wait(&block) != 0)
		;
}

static void ignore_job(struct helper_job *job)
{
	(void)job;
}

static void block_name_lookups(struct helper_job *job)
{
	*job = (struct helper_job){.work = wait_for_block, .done = ignore_job};
	sem_init(&block, 0, 0);
	assert_true(helper_submit(fake_registry.system_users, job));
}

static void test_client_may_disconnect_or_be_dropped_while_its_name_is_looked_up(void **state)
{
	static struct helper_job job;
	struct endpoint *disconnected, *speaking, *empty, *good;

	(void)state;
	start_with("local all all peer\n", "");
	block_name_lookups(&job);
	disconnected = startup_unix(own_name, "db");
	speaking = startup_unix(own_name, "db");
	empty = startup_unix(own_name, "db");
	good = startup_unix(own_name, "db");
	disconnect(disconnected);
	send_password(speaking, "secret"); /* the client was not asked for a password */
	assert_closed_silently(speaking);
	send_password(empty, "");
	assert_closed_silently(empty);
	sem_post(&block);
	wait_for_names();
	assert_closed(disconnected);
	assert_logged_in(good);
}

static void test_logins_beyond_the_queue_of_name_lookups_are_refused(void **state)
{
	static struct helper_job job;
	struct endpoint *client;

	(void)state;
	start_with("local all all peer\n", "");
	block_name_lookups(&job);
	for (int i = 0; i < 15; i++)
		startup_unix(own_name, "db");
	client = startup_unix(own_name, "db");
	assert_closed_with_error(client, "28000", "unix socket login rejected");
	assert_true(fake_logged("too many logins wait for the names of system users"));
	sem_post(&block);
	wait_for_names();
}

/* Logins in progress keep the rule that they matched, with its map. */
static void test_reload_does_not_change_the_rule_of_a_login_in_progress(void **state)
{
	static const char text[] = "[databases]\ndb = host=/tmp\n"
				   "[pgbouncer]\nauth_type = hba\nauth_hba_file = hba\n"
				   "auth_ident_file = ident\n";
	static struct helper_job job;
	struct problems problems = {0};
	struct snapshot *next;
	struct endpoint *client;
	char maps[200];

	(void)state;
	snprintf(maps, sizeof(maps), "m %s alice\n", own_name);
	start_with("local all all peer map=m\n", maps);
	block_name_lookups(&job);
	client = startup_unix("alice", "db");
	write_file("ident", "m another-user alice\n");
	next = snapshot_parse(
		"t", text, sizeof(text) - 1, fake_registry.process->config, &problems);
	assert_non_null(next);
	problems_free(&problems);
	snapshot_unref(fake_registry.process->config);
	fake_registry.process->config = next;
	fake_registry.process->settings = snapshot_settings(next);
	assert_true(registry_apply_databases(&fake_registry));
	sem_post(&block);
	wait_for_names();
	assert_logged_in(client);
	client = startup_unix("alice", "db");
	wait_for_names();
	assert_closed_with_error(client, "28000", "unix socket login rejected");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
		TEST(test_rule_selects_its_method),
		TEST(test_right_password_is_accepted_and_wrong_one_refused),
		TEST(test_first_matching_rule_applies),
		TEST(test_rules_match_the_database_name_of_the_startup_message),
		TEST(test_hostssl_rule_does_not_match_without_tls),
		TEST(test_physical_replication_matches_the_replication_keyword_only),
		TEST(test_no_rules_refuse_every_client),
		TEST(test_unknown_user_is_refused_after_the_exchange_of_its_rule),
		TEST(test_console_rules_match_both_of_its_names),
		TEST(test_peer_requires_the_name_of_the_system_user),
		TEST(test_peer_map_lists_the_allowed_users),
		TEST(test_mapped_user_must_exist),
		TEST(test_peer_requires_a_unix_socket),
		TEST(test_peer_with_an_unknown_uid_is_refused),
		TEST(test_client_may_disconnect_or_be_dropped_while_its_name_is_looked_up),
		TEST(test_logins_beyond_the_queue_of_name_lookups_are_refused),
		TEST(test_reload_does_not_change_the_rule_of_a_login_in_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
