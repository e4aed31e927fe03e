/* SPDX-License-Identifier: ISC */
/*
 * Passwords that others judge, from the client's message to the end of its login. The judges are
 * the test's: they tell by the password itself, and wait at a gate while that is shut.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>

#include "session/auth/external_auth.h"
#include "session/auth/ldap_check.h"
#include "session/auth/pam_check.h"
#include "session/login/client_login.h"
#include "support/fakes/fake_login.h"
#include "support/files/config_files.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#define OPTIONS "ldapserver=h ldapprefix=cn="

/* What the reference's operators know as the size of the queue. */
enum { QUEUE_SIZE = 20 };

/* So many of the queue are being looked at, at most. */
enum { THREADS = 8 };

void __wrap_ldap_check(struct external_auth *request);
void __wrap_pam_check(struct external_auth *request);

/* --- the judges --------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static bool gate_is_shut;
static unsigned tickets; /* so many may pass the gate although it is shut */
static unsigned at_gate, asked;
static char last_user[200], last_prefix[64], last_remote[ADDRESS_TEXT_SIZE];
static size_t last_length;
static char order[4096]; /* the names in the order of being asked about, with blanks */

static void shut_gate(bool shut)
{
	pthread_mutex_lock(&lock);
	gate_is_shut = shut;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}

static void let_one_pass(void)
{
	pthread_mutex_lock(&lock);
	tickets++;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}

static void wait_at_gate(unsigned count)
{
	pthread_mutex_lock(&lock);
	while (at_gate < count)
		pthread_cond_wait(&moved, &lock);
	pthread_mutex_unlock(&lock);
}

static void judge(struct external_auth *request)
{
	pthread_mutex_lock(&lock);
	asked++;
	at_gate++;
	snprintf(last_user, sizeof(last_user), "%s", request->user);
	snprintf(last_prefix, sizeof(last_prefix), "%s",
		request->ldap.prefix ? request->ldap.prefix : "");
	snprintf(last_remote, sizeof(last_remote), "%s", request->remote);
	last_length = strlen(request->password);
	strncat(order, request->user, sizeof(order) - strlen(order) - 1);
	strncat(order, " ", sizeof(order) - strlen(order) - 1);
	pthread_cond_broadcast(&moved);
	while (gate_is_shut && tickets == 0)
		pthread_cond_wait(&moved, &lock);
	tickets -= tickets > 0;
	at_gate--;
	request->answer = strcmp(request->password, "wrong") == 0 ? EXTERNAL_AUTH_WRONG
		: strcmp(request->password, "broken") == 0	  ? EXTERNAL_AUTH_FAILED
								  : EXTERNAL_AUTH_RIGHT;
	snprintf(request->why, sizeof(request->why), "this is why");
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}

void __wrap_ldap_check(struct external_auth *request)
{
	judge(request);
}

/* PAM's modules want a wrong password to be told late; this one is no better with right ones. */
void __wrap_pam_check(struct external_auth *request)
{
	judge(request);
	request->delay = 2 * USEC_PER_SEC;
}

/* --- the stage ---------------------------------------------------------------------------- */

static bool is_built_in;

/* Without its library a method is no value for auth_type: tests then find no client to log in. */
static int start_with(bool built_in, const char *settings)
{
	char config[1000];

	is_built_in = built_in;
	snprintf(config, sizeof(config),
		"[databases]\n"
		"db = host=/tmp\n"
		"query = host=/tmp auth_user=asker\n"
		"forced = host=/tmp user=carol password=hers\n"
		"[users]\n"
		"limited = max_user_client_connections=1\n"
		"[pgbouncer]\n"
		"admin_users = boss\n"
		"stats_users = clerk\n"
		"client_login_timeout = 60\n"
		"%s",
		built_in ? settings : "");
	alarm(60);
	asked = tickets = 0;
	order[0] = '\0';
	fake_start(config);
	fake_user("known", "stored");
	return 0;
}

static int start_ldap(void **state)
{
	(void)state;
	return start_with(HAVE_LDAP, "auth_type = ldap\nauth_ldap_options = " OPTIONS "\n");
}

static int start_ldap_nowhere(void **state)
{
	(void)state;
	return start_with(HAVE_LDAP, "auth_type = ldap\n");
}

static int start_ldap_with_template(void **state)
{
	(void)state;
	return start_with(HAVE_LDAP,
		"auth_type = ldap\nauth_ldap_options = " OPTIONS "\n"
		"[databases]\n* = host=/tmp auth_user=asker\n");
}

static int start_pam(void **state)
{
	(void)state;
	return start_with(HAVE_PAM, "auth_type = pam\n");
}

static int start_hba(void **state)
{
	assert_int_equal(enter_folder(state), 0);
	write_file("hba",
		"host all rule all ldap ldapserver=h ldapprefix=rule=\n"
		"host all all all password\n");
	return start_with(HAVE_LDAP,
		"auth_type = hba\nauth_hba_file = hba\nauth_ldap_options = " OPTIONS "\n");
}

/* Nobody who was left behind may meet the next test. */
static unsigned count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;

	assert_non_null(tasks);
	for (const struct dirent *task; (task = readdir(tasks)) != NULL;)
		count += task->d_name[0] != '.';
	closedir(tasks);
	return count;
}

/* Threads that were left behind at work must not be taken for those of the next test. */
static int end(void **state)
{
	shut_gate(false);
	fake_end(state);
	while (count_threads() > 1)
		sched_yield();
	return 0;
}

static int end_hba(void **state)
{
	end(state);
	return leave_folder(state);
}

/* --- clients ------------------------------------------------------------------------------ */

static struct actor *come(const char *user, const char *database)
{
	struct actor *client;

	if (!is_built_in)
		skip();
	client = fake_accept(-1);
	say_startup(client, PROTOCOL_3_0, "user", user, "database", database, NULL);
	return client;
}

static void assert_asked_for_password(struct actor *client)
{
	size_t length;

	heard_request(client, AUTH_CLEARTEXT, &length);
	assert_int_equal(length, 0);
}

/* A client that has sent its password. */
static struct actor *log_in(const char *user, const char *database, const char *password)
{
	struct actor *client = come(user, database);

	assert_asked_for_password(client);
	say_password(client, password);
	return client;
}

static void wait_for_answer(struct actor *client)
{
	while (!is_gone(client) && actor_client(client)->link.state == CLIENT_AUTHENTICATING &&
		actor_client(client)->login->external_auth &&
		actor_client(client)->login->external_auth->state != EXTERNAL_AUTH_HELD)
		fake_wait();
}

static void assert_let_in(struct actor *client)
{
	wait_for_answer(client);
	assert_false(is_gone(client));
	assert_state(client, CLIENT_WELCOMING);
}

static void assert_refused(struct actor *client, const char *text)
{
	wait_for_answer(client);
	assert_told(client, "28000", text);
}

static void assert_nothing_left(void)
{
	fake_turn();
	assert_int_equal(fake_registry.process->limits.clients, 0);
	assert_int_equal(fake_registry.login_count, 0);
}

#define LDAP_FAILED "LDAP authentication failed"
#define PAM_FAILED "PAM authentication failed"

/* --- right and wrong ---------------------------------------------------------------------- */

static void test_a_right_password_makes_a_user(void **state)
{
	struct actor *client = log_in("somebody", "db", "secret");
	struct pool *pool;

	(void)state;
	assert_let_in(client);
	assert_string_equal(last_user, "somebody");
	assert_int_equal(last_length, 6);
	pool = actor_link(client)->pool;
	assert_string_equal(pool->user->name, "somebody");
	assert_int_equal(pool->user->clients, 1);
	assert_null(pool->user->secret);
	assert_string_equal(pool_secret(pool), "secret");
	assert_false(fake_logged("no such user"));
}

static void test_a_wrong_password_leaves_no_trace(void **state)
{
	struct actor *client = log_in("somebody", "db", "wrong");

	(void)state;
	assert_refused(client, LDAP_FAILED);
	assert_true(fake_logged("LOG C-"));
	assert_true(fake_logged("LDAP authentication: this is why"));
	assert_null(registry_find_user(&fake_registry, "somebody"));
	assert_nothing_left();
}

static void test_a_judge_in_trouble_is_a_warning(void **state)
{
	struct actor *client = log_in("somebody", "db", "broken");

	(void)state;
	assert_refused(client, LDAP_FAILED);
	assert_true(fake_logged("WARNING C-"));
	assert_true(fake_logged("LDAP authentication: this is why"));
	assert_nothing_left();
}

static void test_stored_secrets_play_no_role(void **state)
{
	struct actor *client = log_in("known", "db", "other");

	(void)state;
	assert_let_in(client);
	assert_string_equal(pool_secret(actor_link(client)->pool), "other");
	client = log_in("known", "db", "wrong");
	assert_refused(client, LDAP_FAILED);
}

static void test_pam_is_told_where_the_client_is(void **state)
{
	struct actor *client;

	(void)state;
	client = log_in("somebody", "db", "secret");
	assert_let_in(client);
	assert_string_equal(last_remote, "192.0.2.1");
	assert_string_equal(pool_secret(actor_link(client)->pool), "secret");
}

static void test_a_wrong_password_is_told_when_pam_wants(void **state)
{
	struct actor *client, *other;

	(void)state;
	client = log_in("somebody", "db", "wrong");
	wait_for_answer(client);
	fake_advance(USEC_PER_SEC);
	assert_heard(client, "");
	/* Nobody else waits for it: the thread is free. */
	other = log_in("somebody", "db", "secret");
	assert_let_in(other);
	fake_advance(USEC_PER_SEC + WHEEL_TICK);
	assert_told(client, "28000", PAM_FAILED);
	/* Who leaves before that is not waited for. */
	client = log_in("somebody", "db", "wrong");
	wait_for_answer(client);
	leave(client);
	assert_gone(client);
	fake_advance(3 * USEC_PER_SEC);
}

/* --- messages ----------------------------------------------------------------------------- */

static void test_a_second_password_while_the_first_is_looked_at_is_refused(void **state)
{
	struct actor *client;

	(void)state;
	shut_gate(true);
	client = log_in("somebody", "db", "secret");
	wait_at_gate(1);
	say_password(client, "secret");
	assert_told(client, "28000", LDAP_FAILED);
	shut_gate(false);
}

static void test_passwords_of_every_length_are_looked_at_but_too_long_ones(void **state)
{
	static char password[CLIENT_PASSWORD_MAX + 2];

	(void)state;
	memset(password, 'x', CLIENT_PASSWORD_MAX + 1);
	assert_refused(log_in("somebody", "db", password), LDAP_FAILED);
	assert_int_equal(asked, 0);
	password[CLIENT_PASSWORD_MAX] = '\0';
	assert_let_in(log_in("somebody", "db", password));
	assert_int_equal(last_length, CLIENT_PASSWORD_MAX);
}

static void test_what_is_no_password_is_not_looked_at(void **state)
{
	static const char *const bodies[] = {"p\0\0\0\x07"
					     "abc",
		"p\0\0\0\x08"
		"a\0b"};
	struct actor *client = log_in("somebody", "db", "");

	(void)state;
	assert_told(client, "28P01", "empty password returned by client");
	for (size_t i = 0; i < COUNT(bodies); i++) {
		client = come("somebody", "db");
		assert_asked_for_password(client);
		say_bytes(client, bodies[i], i == 0 ? 8 : 9);
		assert_told(client, "28000", LDAP_FAILED);
	}
	assert_int_equal(asked, 0);
}

/* --- options ------------------------------------------------------------------------------ */

static void test_without_options_nobody_is_asked_for_a_password(void **state)
{
	struct actor *client = come("somebody", "db");

	(void)state;
	assert_told(client, "28000", "auth_ldap_options is null");
}

static void test_options_are_those_in_force_when_the_password_comes(void **state)
{
	struct actor *client = come("somebody", "db");

	(void)state;
	assert_asked_for_password(client);
	fake_set("auth_ldap_options", "ldapserver=h ldapprefix=uid=");
	say_password(client, "secret");
	assert_let_in(client);
	assert_string_equal(last_prefix, "uid=");
}

static void test_options_of_an_hba_rule_are_its_own(void **state)
{
	struct actor *client = log_in("rule", "db", "secret");

	(void)state;
	assert_let_in(client);
	assert_string_equal(last_prefix, "rule=");
	assert_false(fake_logged("no such user"));
	/* Who comes under another rule is one of our own users. */
	client = come("somebody", "db");
	assert_heard(client, "R");
	assert_true(fake_logged("no such user: somebody"));
	say_password(client, "secret");
	assert_told(client, "28P01", "password authentication failed");
	assert_int_equal(asked, 1);
}

static void test_the_console_under_an_hba_rule_is_for_those_who_are_listed(void **state)
{
	struct actor *client = come("rule", "pgbouncer");

	(void)state;
	assert_told(client, "08P01", "not allowed");
}

static void test_wrong_options_refuse_every_login_and_are_logged(void **state)
{
	(void)state;
	fake_set("auth_ldap_options", "ldapserver=h ldapprefix=a ldapcolour=red");
	assert_refused(log_in("somebody", "db", "secret"), LDAP_FAILED);
	assert_true(fake_logged("invalid LDAP option: \"ldapcolour\""));
	assert_int_equal(asked, 0);
	assert_nothing_left();
}

static void test_options_that_are_too_long_are_cut_and_that_is_said(void **state)
{
	char options[1100];

	(void)state;
	memset(options, ' ', sizeof(options));
	memcpy(options, OPTIONS, strlen(OPTIONS));
	memcpy(options + sizeof(options) - 7, "bad=1", 6);
	fake_set("auth_ldap_options", options);
	assert_let_in(log_in("somebody", "db", "secret"));
	assert_true(fake_logged("LDAP options are longer than 1023 bytes"));
}

/* --- users and databases ------------------------------------------------------------------ */

static void test_a_database_with_an_auth_user_is_a_contradiction(void **state)
{
	struct actor *client = come("somebody", "query");

	(void)state;
	assert_told(client, "08P01", "bouncer config error");
	assert_true(fake_logged("LDAP can't be used together with database authentication"));
	assert_nothing_left();
}

static void test_so_is_a_template_with_one(void **state)
{
	struct actor *client = come("somebody", "automatic");

	(void)state;
	assert_told(client, "08P01", "bouncer config error");
	client = log_in("somebody", "db", "secret");
	assert_let_in(client);
}

static void test_and_so_it_is_with_pam(void **state)
{
	struct actor *client;

	(void)state;
	client = come("somebody", "query");
	assert_told(client, "08P01", "bouncer config error");
	assert_true(fake_logged("PAM can't be used together with database authentication"));
}

static void test_the_console_is_for_those_who_are_listed(void **state)
{
	struct actor *client = come("somebody", "pgbouncer");

	(void)state;
	assert_told(client, "08P01", "not allowed");
	client = log_in("clerk", "pgbouncer", "secret");
	wait_for_answer(client);
	assert_state(client, CLIENT_CONSOLE);
	assert_false(actor_client(client)->admin);
	client = log_in("boss", "pgbouncer", "secret");
	wait_for_answer(client);
	assert_state(client, CLIENT_CONSOLE);
	assert_true(actor_client(client)->admin);
	client = log_in("boss", "pgbouncer", "wrong");
	assert_refused(client, LDAP_FAILED);
}

static void test_a_forced_user_keeps_its_own_password(void **state)
{
	struct actor *client = log_in("somebody", "forced", "secret");

	(void)state;
	assert_let_in(client);
	assert_string_equal(actor_link(client)->pool->user->name, "carol");
	assert_null(pool_secret(actor_link(client)->pool));
	assert_string_equal(actor_client(client)->user->name, "somebody");
}

static void test_listed_users_are_counted_from_the_start(void **state)
{
	struct actor *first, *second;

	(void)state;
	first = come("limited", "db");
	assert_asked_for_password(first);
	second = come("limited", "db");
	assert_told(
		second, "53300", "client connections exceeded (max_user_client_connections)");
	say_password(first, "secret");
	assert_let_in(first);
}

static void test_other_users_are_counted_when_they_are_known(void **state)
{
	struct actor *first, *second;

	(void)state;
	fake_set("max_user_client_connections", "1");
	/* Neither is somebody yet. */
	first = come("somebody", "db");
	second = come("somebody", "db");
	assert_asked_for_password(first);
	assert_asked_for_password(second);
	say_password(first, "secret");
	assert_let_in(first);
	say_password(second, "secret");
	wait_for_answer(second);
	assert_told(
		second, "53300", "client connections exceeded (max_user_client_connections)");
	/* Now the name is known beforehand. */
	second = come("somebody", "db");
	assert_told(
		second, "53300", "client connections exceeded (max_user_client_connections)");
	assert_int_equal(actor_client(first)->user->clients, 1);
}

static void test_what_was_typed_is_a_plain_password_to_servers(void **state)
{
	static const char typed[] = "md5aaaaaaaabbbbbbbbccccccccdddddddd";
	struct actor *client = log_in("somebody", "db", typed), *server;
	struct buffer message;
	size_t length;

	(void)state;
	assert_let_in(client);
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	assert_heard(server, "^");
	buffer_init(&message);
	writer_authentication(&message, AUTH_CLEARTEXT, NULL, 0);
	say_buffer(server, &message);
	assert_heard(server, "p");
	assert_string_equal((const char *)heard_body(server, &length), typed);
}

/* --- the queue ---------------------------------------------------------------------------- */

static struct actor *crowd[QUEUE_SIZE];

/* Fill the queue: the first of them are being looked at. */
static void fill_queue(void)
{
	char name[16];

	shut_gate(true);
	for (unsigned i = 0; i < QUEUE_SIZE; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		crowd[i] = log_in(name, "db", "secret");
	}
	assert_false(fake_logged("queue is full"));
}

static void test_a_full_queue_makes_others_wait_in_order(void **state)
{
	struct actor *late[3];
	char name[16];

	(void)state;
	fill_queue();
	for (unsigned i = 0; i < COUNT(late); i++) {
		snprintf(name, sizeof(name), "late%u", i);
		late[i] = log_in(name, "db", "secret");
		assert_int_equal(actor_client(late[i])->login->external_auth->state,
			EXTERNAL_AUTH_WAITS);
	}
	assert_true(fake_logged("WARNING LDAP queue is full, waiting"));
	/* A place for one becomes free, and the first of them gets it. */
	for (unsigned i = 0; i < COUNT(late); i++) {
		assert_int_equal(actor_client(late[i])->login->external_auth->state,
			EXTERNAL_AUTH_WAITS);
		let_one_pass();
		while (actor_client(late[i])->login->external_auth->state ==
			EXTERNAL_AUTH_WAITS)
			fake_wait();
	}
	shut_gate(false);
	for (unsigned i = 0; i < COUNT(late); i++)
		assert_let_in(late[i]);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		assert_let_in(crowd[i]);
	assert_int_equal(asked, QUEUE_SIZE + 3);
}

static unsigned lines_about_the_queue(void)
{
	return fake_logged_times("LDAP queue is full, waiting");
}

static void test_a_full_queue_is_told_once_for_as_long_as_it_lasts(void **state)
{
	struct actor *late[2];

	(void)state;
	fill_queue();
	late[0] = log_in("late0", "db", "secret");
	late[1] = log_in("late1", "db", "secret");
	assert_int_equal(lines_about_the_queue(), 1);
	shut_gate(false);
	assert_let_in(late[0]);
	assert_let_in(late[1]);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		assert_let_in(crowd[i]);
	shut_gate(true);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		crowd[i] = log_in("again", "db", "secret");
	assert_int_equal(lines_about_the_queue(), 1);
	late[0] = log_in("late0", "db", "secret");
	assert_int_equal(lines_about_the_queue(), 2);
	shut_gate(false);
	assert_let_in(late[0]);
}

static void test_those_who_leave_are_not_asked_about(void **state)
{
	struct actor *late;

	(void)state;
	fill_queue();
	late = log_in("late", "db", "secret");
	/* A thread that has one in its hands but is not there yet could come last. */
	wait_at_gate(THREADS);
	leave(late);
	assert_gone(late);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		leave(crowd[i]);
	assert_nothing_left();
	shut_gate(false);
	late = log_in("next", "db", "secret");
	assert_let_in(late);
	assert_null(strstr(order, "late"));
	assert_int_equal(asked, THREADS + 1);
	assert_string_equal(last_user, "next");
}

static void test_an_answer_for_one_who_left_reaches_nobody(void **state)
{
	struct actor *client, *other;

	(void)state;
	shut_gate(true);
	client = log_in("somebody", "db", "secret");
	wait_at_gate(1);
	vanish(client);
	assert_gone(client);
	other = log_in("another", "db", "wrong");
	shut_gate(false);
	assert_refused(other, LDAP_FAILED);
	assert_null(registry_find_user(&fake_registry, "somebody"));
	assert_nothing_left();
}

static void test_the_wait_ends_with_the_time_for_logins(void **state)
{
	struct actor *late;

	(void)state;
	fill_queue();
	late = log_in("late", "db", "secret");
	fake_advance(59 * USEC_PER_SEC);
	assert_heard(late, "");
	fake_advance(USEC_PER_SEC + WHEEL_TICK);
	assert_told(late, "57014", "client_login_timeout");
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		assert_told(crowd[i], "57014", "client_login_timeout");
	shut_gate(false);
}

static void test_each_judge_has_a_queue_of_its_own(void **state)
{
	struct actor *client;

	(void)state;
	if (!HAVE_PAM)
		skip();
	fill_queue();
	fake_set("auth_type", "pam");
	client = log_in("somebody", "db", "secret");
	assert_int_equal(
		actor_client(client)->login->external_auth->state, EXTERNAL_AUTH_ASKED);
	assert_false(fake_logged("queue is full"));
	shut_gate(false);
	assert_let_in(client);
}

int main(void)
{
#define LDAP(name) cmocka_unit_test_setup_teardown(name, start_ldap, end)
#define PAM(name) cmocka_unit_test_setup_teardown(name, start_pam, end)
#define HBA(name) cmocka_unit_test_setup_teardown(name, start_hba, end_hba)
#define WITH(start, name) cmocka_unit_test_setup_teardown(name, start, end)
	const struct CMUnitTest tests[] = {
		LDAP(test_a_right_password_makes_a_user),
		LDAP(test_a_wrong_password_leaves_no_trace),
		LDAP(test_a_judge_in_trouble_is_a_warning),
		LDAP(test_stored_secrets_play_no_role),
		PAM(test_pam_is_told_where_the_client_is),
		PAM(test_a_wrong_password_is_told_when_pam_wants),
		LDAP(test_a_second_password_while_the_first_is_looked_at_is_refused),
		LDAP(test_passwords_of_every_length_are_looked_at_but_too_long_ones),
		LDAP(test_what_is_no_password_is_not_looked_at),
		WITH(start_ldap_nowhere, test_without_options_nobody_is_asked_for_a_password),
		LDAP(test_options_are_those_in_force_when_the_password_comes),
		HBA(test_options_of_an_hba_rule_are_its_own),
		HBA(test_the_console_under_an_hba_rule_is_for_those_who_are_listed),
		LDAP(test_wrong_options_refuse_every_login_and_are_logged),
		LDAP(test_options_that_are_too_long_are_cut_and_that_is_said),
		LDAP(test_a_database_with_an_auth_user_is_a_contradiction),
		WITH(start_ldap_with_template, test_so_is_a_template_with_one),
		PAM(test_and_so_it_is_with_pam),
		LDAP(test_the_console_is_for_those_who_are_listed),
		LDAP(test_a_forced_user_keeps_its_own_password),
		LDAP(test_listed_users_are_counted_from_the_start),
		LDAP(test_other_users_are_counted_when_they_are_known),
		LDAP(test_what_was_typed_is_a_plain_password_to_servers),
		LDAP(test_a_full_queue_makes_others_wait_in_order),
		LDAP(test_a_full_queue_is_told_once_for_as_long_as_it_lasts),
		LDAP(test_those_who_leave_are_not_asked_about),
		LDAP(test_an_answer_for_one_who_left_reaches_nobody),
		LDAP(test_the_wait_ends_with_the_time_for_logins),
		LDAP(test_each_judge_has_a_queue_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
