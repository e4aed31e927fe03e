/* SPDX-License-Identifier: ISC */
/*
 * Passwords that LDAP or PAM check, from the client's message to the end of its login. The
 * tests replace the two check functions: the password itself selects the result, and a closed
 * gate holds the checks up.
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

/* The queue size that operators of the reference know. */
enum { QUEUE_SIZE = 20 };

/* At most this number of the queue is checked at a time. */
enum { THREADS = 8 };

void __wrap_ldap_check(struct external_auth *request);
void __wrap_pam_check(struct external_auth *request);

/* --- the replaced check functions --------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static bool gate_is_closed;
static unsigned tickets; /* this number of checks may pass the closed gate */
static unsigned at_gate, checked;
static char last_user[200], last_prefix[64], last_remote[ADDRESS_TEXT_SIZE];
static size_t last_length;
static char order[4096]; /* the user names in the order of their checks, separated by blanks */

static void set_gate_closed(bool shut)
{
	pthread_mutex_lock(&lock);
	gate_is_closed = shut;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}

static void let_one_check_pass(void)
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

static void check_password(struct external_auth *request)
{
	pthread_mutex_lock(&lock);
	checked++;
	at_gate++;
	snprintf(last_user, sizeof(last_user), "%s", request->user);
	snprintf(last_prefix, sizeof(last_prefix), "%s",
		request->ldap.prefix ? request->ldap.prefix : "");
	snprintf(last_remote, sizeof(last_remote), "%s", request->remote);
	last_length = strlen(request->password);
	strncat(order, request->user, sizeof(order) - strlen(order) - 1);
	strncat(order, " ", sizeof(order) - strlen(order) - 1);
	pthread_cond_broadcast(&moved);
	while (gate_is_closed && tickets == 0)
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
	check_password(request);
}

/* PAM modules ask for a delay after a wrong password; this one asks for it always. */
void __wrap_pam_check(struct external_auth *request)
{
	check_password(request);
	request->delay = 2 * USEC_PER_SEC;
}

/* --- fixtures ----------------------------------------------------------------------------- */

static bool is_built_in;

/* Without its library a method is no value of auth_type: the tests are skipped then. */
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
	checked = tickets = 0;
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

/* `db` is at home at worker 1, `forced` at worker 0, which has the queue. */
static int start_ldap_with_workers(void **state)
{
	fake_workers = 2;
	return start_ldap(state);
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

/* Threads of a test must have ended before the next test. */
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

/* Waits until no thread of this test is left. */
static int end(void **state)
{
	set_gate_closed(false);
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

static struct endpoint *connect_as(const char *user, const char *database)
{
	struct endpoint *client;

	if (!is_built_in)
		skip();
	client = fake_accept(-1);
	fake_deliver();
	send_startup(client, PROTOCOL_3_0, "user", user, "database", database, NULL);
	fake_deliver();
	return client;
}

static void assert_asked_for_password(struct endpoint *client)
{
	size_t length;

	received_request(client, AUTH_CLEARTEXT, &length);
	assert_int_equal(length, 0);
}

/* A client that has sent its password. */
static struct endpoint *log_in(const char *user, const char *database, const char *password)
{
	struct endpoint *client = connect_as(user, database);

	assert_asked_for_password(client);
	send_password(client, password);
	return client;
}

static void wait_for_answer(struct endpoint *client)
{
	while (!is_closed(client) &&
		endpoint_client(client)->link.state == CLIENT_AUTHENTICATING &&
		endpoint_client(client)->login->external_auth &&
		endpoint_client(client)->login->external_auth->state != EXTERNAL_AUTH_DELAYED)
		fake_wait();
}

static void assert_accepted(struct endpoint *client)
{
	wait_for_answer(client);
	assert_false(is_closed(client));
	assert_state(client, CLIENT_WELCOMING);
}

static void assert_refused(struct endpoint *client, const char *text)
{
	wait_for_answer(client);
	assert_closed_with_error(client, "28000", text);
}

static void assert_nothing_left(void)
{
	fake_turn();
	assert_int_equal(fake_registry.process->limits.clients, 0);
	assert_int_equal(fake_registry.login_count, 0);
}

#define LDAP_FAILED "LDAP authentication failed"
#define PAM_FAILED "PAM authentication failed"

/* --- right and wrong passwords ------------------------------------------------------------ */

static void test_right_password_creates_the_user(void **state)
{
	struct endpoint *client = log_in("external", "db", "secret");
	struct pool *pool;

	(void)state;
	assert_accepted(client);
	assert_string_equal(last_user, "external");
	assert_int_equal(last_length, 6);
	pool = endpoint_link(client)->pool;
	assert_string_equal(pool->user->name, "external");
	assert_int_equal(pool->user->clients, 1);
	assert_null(pool->user->secret);
	assert_string_equal(pool_secret(pool), "secret");
	assert_false(fake_logged("no such user"));
}

static void test_wrong_password_creates_no_user(void **state)
{
	struct endpoint *client = log_in("external", "db", "wrong");

	(void)state;
	assert_refused(client, LDAP_FAILED);
	assert_true(fake_logged("LOG C-"));
	assert_true(fake_logged("LDAP authentication: this is why"));
	assert_null(registry_find_user(&fake_registry, "external"));
	assert_nothing_left();
}

static void test_failed_check_is_logged_as_a_warning(void **state)
{
	struct endpoint *client = log_in("external", "db", "broken");

	(void)state;
	assert_refused(client, LDAP_FAILED);
	assert_true(fake_logged("WARNING C-"));
	assert_true(fake_logged("LDAP authentication: this is why"));
	assert_nothing_left();
}

static void test_stored_secret_is_not_used(void **state)
{
	struct endpoint *client = log_in("known", "db", "other");

	(void)state;
	assert_accepted(client);
	assert_string_equal(pool_secret(endpoint_link(client)->pool), "other");
	client = log_in("known", "db", "wrong");
	assert_refused(client, LDAP_FAILED);
}

static void test_pam_receives_the_address_of_the_client(void **state)
{
	struct endpoint *client;

	(void)state;
	client = log_in("external", "db", "secret");
	assert_accepted(client);
	assert_string_equal(last_remote, "192.0.2.1");
	assert_string_equal(pool_secret(endpoint_link(client)->pool), "secret");
}

static void test_wrong_password_is_reported_after_the_delay_of_pam(void **state)
{
	struct endpoint *client, *other;

	(void)state;
	client = log_in("external", "db", "wrong");
	wait_for_answer(client);
	fake_advance(USEC_PER_SEC);
	assert_received(client, "");
	/* The delay does not occupy a thread. */
	other = log_in("external", "db", "secret");
	assert_accepted(other);
	fake_advance(USEC_PER_SEC + WHEEL_TICK);
	assert_closed_with_error(client, "28000", PAM_FAILED);
	/* A client that disconnects during the delay is closed at once. */
	client = log_in("external", "db", "wrong");
	wait_for_answer(client);
	disconnect(client);
	assert_closed(client);
	fake_advance(3 * USEC_PER_SEC);
}

/* --- messages ----------------------------------------------------------------------------- */

static void test_second_password_during_the_check_is_refused(void **state)
{
	struct endpoint *client;

	(void)state;
	set_gate_closed(true);
	client = log_in("external", "db", "secret");
	wait_at_gate(1);
	send_password(client, "secret");
	assert_closed_with_error(client, "28000", LDAP_FAILED);
	set_gate_closed(false);
}

static void test_password_that_is_too_long_is_refused_without_a_check(void **state)
{
	static char password[CLIENT_PASSWORD_MAX + 2];

	(void)state;
	memset(password, 'x', CLIENT_PASSWORD_MAX + 1);
	assert_refused(log_in("external", "db", password), LDAP_FAILED);
	assert_int_equal(checked, 0);
	password[CLIENT_PASSWORD_MAX] = '\0';
	assert_accepted(log_in("external", "db", password));
	assert_int_equal(last_length, CLIENT_PASSWORD_MAX);
}

static void test_malformed_password_is_refused_without_a_check(void **state)
{
	static const char *const bodies[] = {"p\0\0\0\x07"
					     "abc",
		"p\0\0\0\x08"
		"a\0b"};
	struct endpoint *client = log_in("external", "db", "");

	(void)state;
	assert_closed_with_error(client, "28P01", "empty password returned by client");
	for (size_t i = 0; i < COUNT(bodies); i++) {
		client = connect_as("external", "db");
		assert_asked_for_password(client);
		send_bytes(client, bodies[i], i == 0 ? 8 : 9);
		assert_closed_with_error(client, "28000", LDAP_FAILED);
	}
	assert_int_equal(checked, 0);
}

/* --- options ------------------------------------------------------------------------------ */

static void test_login_without_ldap_options_is_refused(void **state)
{
	struct endpoint *client = connect_as("external", "db");

	(void)state;
	assert_closed_with_error(client, "28000", "auth_ldap_options is null");
}

static void test_options_in_force_when_the_password_arrives_are_used(void **state)
{
	struct endpoint *client = connect_as("external", "db");

	(void)state;
	assert_asked_for_password(client);
	fake_set("auth_ldap_options", "ldapserver=h ldapprefix=uid=");
	send_password(client, "secret");
	assert_accepted(client);
	assert_string_equal(last_prefix, "uid=");
}

static void test_hba_rule_has_its_own_options(void **state)
{
	struct endpoint *client = log_in("rule", "db", "secret");

	(void)state;
	assert_accepted(client);
	assert_string_equal(last_prefix, "rule=");
	assert_false(fake_logged("no such user"));
	/* A client of another rule is one of the configured users. */
	client = connect_as("external", "db");
	assert_received(client, "R");
	assert_true(fake_logged("no such user: external"));
	send_password(client, "secret");
	assert_closed_with_error(client, "28P01", "password authentication failed");
	assert_int_equal(checked, 1);
}

static void test_console_under_an_hba_rule_requires_a_listed_user(void **state)
{
	struct endpoint *client = connect_as("rule", "pgbouncer");

	(void)state;
	assert_closed_with_error(client, "08P01", "not allowed");
}

static void test_invalid_options_are_logged_and_refuse_every_login(void **state)
{
	(void)state;
	fake_set("auth_ldap_options", "ldapserver=h ldapprefix=a ldapcolour=red");
	assert_refused(log_in("external", "db", "secret"), LDAP_FAILED);
	assert_true(fake_logged("invalid LDAP option: \"ldapcolour\""));
	assert_int_equal(checked, 0);
	assert_nothing_left();
}

static void test_options_that_are_too_long_are_truncated_with_a_log_line(void **state)
{
	char options[1100];

	(void)state;
	memset(options, ' ', sizeof(options));
	memcpy(options, OPTIONS, strlen(OPTIONS));
	memcpy(options + sizeof(options) - 7, "bad=1", 6);
	fake_set("auth_ldap_options", options);
	assert_accepted(log_in("external", "db", "secret"));
	assert_true(fake_logged("LDAP options are longer than 1023 bytes"));
}

/* --- users and databases ------------------------------------------------------------------ */

static void test_ldap_refuses_a_database_with_an_auth_user(void **state)
{
	struct endpoint *client = connect_as("external", "query");

	(void)state;
	assert_closed_with_error(client, "08P01", "bouncer config error");
	assert_true(fake_logged("LDAP can't be used together with database authentication"));
	assert_nothing_left();
}

static void test_ldap_refuses_a_template_with_an_auth_user(void **state)
{
	struct endpoint *client = connect_as("external", "automatic");

	(void)state;
	assert_closed_with_error(client, "08P01", "bouncer config error");
	client = log_in("external", "db", "secret");
	assert_accepted(client);
}

static void test_pam_refuses_a_database_with_an_auth_user(void **state)
{
	struct endpoint *client;

	(void)state;
	client = connect_as("external", "query");
	assert_closed_with_error(client, "08P01", "bouncer config error");
	assert_true(fake_logged("PAM can't be used together with database authentication"));
}

static void test_console_requires_a_listed_user(void **state)
{
	struct endpoint *client = connect_as("external", "pgbouncer");

	(void)state;
	assert_closed_with_error(client, "08P01", "not allowed");
	client = log_in("clerk", "pgbouncer", "secret");
	wait_for_answer(client);
	assert_state(client, CLIENT_CONSOLE);
	assert_false(endpoint_client(client)->admin);
	client = log_in("boss", "pgbouncer", "secret");
	wait_for_answer(client);
	assert_state(client, CLIENT_CONSOLE);
	assert_true(endpoint_client(client)->admin);
	client = log_in("boss", "pgbouncer", "wrong");
	assert_refused(client, LDAP_FAILED);
}

static void test_forced_user_keeps_its_own_password(void **state)
{
	struct endpoint *client = log_in("external", "forced", "secret");

	(void)state;
	assert_accepted(client);
	assert_string_equal(endpoint_link(client)->pool->user->name, "carol");
	assert_null(pool_secret(endpoint_link(client)->pool));
	assert_string_equal(endpoint_client(client)->user->name, "external");
}

static void test_configured_user_is_counted_from_the_startup_message_on(void **state)
{
	struct endpoint *first, *second;

	(void)state;
	first = connect_as("limited", "db");
	assert_asked_for_password(first);
	second = connect_as("limited", "db");
	assert_closed_with_error(
		second, "53300", "client connections exceeded (max_user_client_connections)");
	send_password(first, "secret");
	assert_accepted(first);
}

static void test_other_users_are_counted_after_the_check(void **state)
{
	struct endpoint *first, *second;

	(void)state;
	fake_set("max_user_client_connections", "1");
	/* Neither user exists yet. */
	first = connect_as("external", "db");
	second = connect_as("external", "db");
	assert_asked_for_password(first);
	assert_asked_for_password(second);
	send_password(first, "secret");
	assert_accepted(first);
	send_password(second, "secret");
	wait_for_answer(second);
	assert_closed_with_error(
		second, "53300", "client connections exceeded (max_user_client_connections)");
	/* The name is known now. */
	second = connect_as("external", "db");
	assert_closed_with_error(
		second, "53300", "client connections exceeded (max_user_client_connections)");
	assert_int_equal(endpoint_client(first)->user->clients, 1);
}

static void test_checked_password_is_used_for_the_server_login(void **state)
{
	static const char typed[] = "md5aaaaaaaabbbbbbbbccccccccdddddddd";
	struct endpoint *client = log_in("external", "db", typed), *server;
	struct buffer message;
	size_t length;

	(void)state;
	assert_accepted(client);
	server = fake_launched();
	assert_non_null(server);
	fake_connected(server, 0);
	assert_received(server, "^");
	buffer_init(&message);
	writer_authentication(&message, AUTH_CLEARTEXT, NULL, 0);
	send_buffer(server, &message);
	assert_received(server, "p");
	assert_string_equal((const char *)received_body(server, &length), typed);
}

/* --- the queue ---------------------------------------------------------------------------- */

static struct endpoint *queued[QUEUE_SIZE];

/* Fills the queue: the first of its logins are being checked. */
static void fill_queue(void)
{
	char name[16];

	set_gate_closed(true);
	for (unsigned i = 0; i < QUEUE_SIZE; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		queued[i] = log_in(name, "db", "secret");
	}
	assert_false(fake_logged("queue is full"));
}

static void test_logins_beyond_the_queue_wait_in_order(void **state)
{
	struct endpoint *late[3];
	char name[16];

	(void)state;
	fill_queue();
	for (unsigned i = 0; i < COUNT(late); i++) {
		snprintf(name, sizeof(name), "late%u", i);
		late[i] = log_in(name, "db", "secret");
		assert_int_equal(endpoint_client(late[i])->login->external_auth->state,
			EXTERNAL_AUTH_WAITING);
	}
	assert_true(fake_logged("WARNING LDAP queue is full, waiting"));
	/* A place becomes free, and the first waiting login gets it. */
	for (unsigned i = 0; i < COUNT(late); i++) {
		assert_int_equal(endpoint_client(late[i])->login->external_auth->state,
			EXTERNAL_AUTH_WAITING);
		let_one_check_pass();
		while (endpoint_client(late[i])->login->external_auth->state ==
			EXTERNAL_AUTH_WAITING)
			fake_wait();
	}
	set_gate_closed(false);
	for (unsigned i = 0; i < COUNT(late); i++)
		assert_accepted(late[i]);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		assert_accepted(queued[i]);
	assert_int_equal(checked, QUEUE_SIZE + 3);
}

static unsigned lines_about_the_queue(void)
{
	return fake_log_count("LDAP queue is full, waiting");
}

static void test_full_queue_is_logged_once(void **state)
{
	struct endpoint *late[2];

	(void)state;
	fill_queue();
	late[0] = log_in("late0", "db", "secret");
	late[1] = log_in("late1", "db", "secret");
	assert_int_equal(lines_about_the_queue(), 1);
	set_gate_closed(false);
	assert_accepted(late[0]);
	assert_accepted(late[1]);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		assert_accepted(queued[i]);
	set_gate_closed(true);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		queued[i] = log_in("again", "db", "secret");
	assert_int_equal(lines_about_the_queue(), 1);
	late[0] = log_in("late0", "db", "secret");
	assert_int_equal(lines_about_the_queue(), 2);
	set_gate_closed(false);
	assert_accepted(late[0]);
}

static void test_disconnected_clients_are_not_checked(void **state)
{
	struct endpoint *late;

	(void)state;
	fill_queue();
	late = log_in("late", "db", "secret");
	/* A login that a thread has taken, but not checked yet, could be checked last. */
	wait_at_gate(THREADS);
	disconnect(late);
	assert_closed(late);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		disconnect(queued[i]);
	assert_nothing_left();
	set_gate_closed(false);
	late = log_in("next", "db", "secret");
	assert_accepted(late);
	assert_null(strstr(order, "late"));
	assert_int_equal(checked, THREADS + 1);
	assert_string_equal(last_user, "next");
}

static void test_result_for_a_disconnected_client_is_dropped(void **state)
{
	struct endpoint *client, *other;

	(void)state;
	set_gate_closed(true);
	client = log_in("external", "db", "secret");
	wait_at_gate(1);
	break_connection(client);
	assert_closed(client);
	other = log_in("another", "db", "wrong");
	set_gate_closed(false);
	assert_refused(other, LDAP_FAILED);
	assert_null(registry_find_user(&fake_registry, "external"));
	assert_nothing_left();
}

static void test_client_login_timeout_limits_the_wait(void **state)
{
	struct endpoint *late;

	(void)state;
	fill_queue();
	late = log_in("late", "db", "secret");
	fake_advance(59 * USEC_PER_SEC);
	assert_received(late, "");
	fake_advance(USEC_PER_SEC + WHEEL_TICK);
	assert_closed_with_error(late, "57014", "client_login_timeout");
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		assert_closed_with_error(queued[i], "57014", "client_login_timeout");
	set_gate_closed(false);
}

static void test_ldap_and_pam_have_separate_queues(void **state)
{
	struct endpoint *client;

	(void)state;
	if (!HAVE_PAM)
		skip();
	fill_queue();
	fake_set("auth_type", "pam");
	client = log_in("external", "db", "secret");
	assert_int_equal(
		endpoint_client(client)->login->external_auth->state, EXTERNAL_AUTH_SUBMITTED);
	assert_false(fake_logged("queue is full"));
	set_gate_closed(false);
	assert_accepted(client);
}

/* --- several workers ---------------------------------------------------------------------- */

static void fill_queue_from_all_workers(void)
{
	char name[16];

	set_gate_closed(true);
	for (unsigned i = 0; i < QUEUE_SIZE; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		queued[i] = log_in(name, i % 2 ? "db" : "forced", "secret");
	}
	fake_deliver();
	assert_false(fake_logged("queue is full"));
}

/* As assert_accepted(): the answer comes to the first worker, and then by mail. */
static void assert_accepted_by_mail(struct endpoint *client)
{
	while (!is_closed(client) &&
		endpoint_client(client)->link.state == CLIENT_AUTHENTICATING) {
		sched_yield();
		fake_deliver();
	}
	assert_false(is_closed(client));
	assert_state(client, CLIENT_WELCOMING);
}

static void test_queue_holds_for_all_workers(void **state)
{
	struct endpoint *late;

	(void)state;
	fill_queue_from_all_workers();
	late = log_in("late", "db", "secret");
	fake_deliver();
	assert_int_equal(link_registry(endpoint_link(late))->number, 1);
	assert_true(fake_logged("WARNING LDAP queue is full, waiting"));
	assert_null(fake_registry_of(1)->ldap);
	wait_at_gate(THREADS);
	set_gate_closed(false);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		assert_accepted_by_mail(queued[i]);
	assert_accepted_by_mail(late);
	assert_int_equal(checked, QUEUE_SIZE + 1);
}

static void test_clients_of_all_workers_that_leave_are_not_checked(void **state)
{
	struct endpoint *late, *next;

	(void)state;
	fill_queue_from_all_workers();
	late = log_in("late", "db", "secret");
	fake_deliver();
	wait_at_gate(THREADS);
	disconnect(late);
	for (unsigned i = 0; i < QUEUE_SIZE; i++)
		disconnect(queued[i]);
	fake_deliver();
	assert_closed(late);
	set_gate_closed(false);
	next = log_in("next", "db", "secret");
	assert_accepted_by_mail(next);
	assert_null(strstr(order, "late"));
	assert_int_equal(checked, THREADS + 1);
}

static void test_client_of_another_worker_may_leave_while_its_answer_is_in_the_mail(
	void **state)
{
	struct endpoint *client, *next;

	(void)state;
	client = log_in("external", "db", "secret");
	/* The mail is in the box of worker 1, which has no turn before the client goes. */
	while (!fake_registry.ldap ||
		endpoint_client(client)->login->external_auth->answer != EXTERNAL_AUTH_RIGHT)
		loop_turn(&fake_loop, true);
	scripted_end(client->script);
	scripted_run_all(client->script);
	assert_closed(client);
	fake_deliver();
	next = log_in("next", "db", "secret");
	assert_accepted_by_mail(next);
}

int main(void)
{
#define LDAP(name) cmocka_unit_test_setup_teardown(name, start_ldap, end)
#define PAM(name) cmocka_unit_test_setup_teardown(name, start_pam, end)
#define HBA(name) cmocka_unit_test_setup_teardown(name, start_hba, end_hba)
#define WITH(start, name) cmocka_unit_test_setup_teardown(name, start, end)
	const struct CMUnitTest tests[] = {
		WITH(start_ldap_with_workers, test_queue_holds_for_all_workers),
		WITH(start_ldap_with_workers,
			test_clients_of_all_workers_that_leave_are_not_checked),
		WITH(start_ldap_with_workers,
			test_client_of_another_worker_may_leave_while_its_answer_is_in_the_mail),
		LDAP(test_right_password_creates_the_user),
		LDAP(test_wrong_password_creates_no_user),
		LDAP(test_failed_check_is_logged_as_a_warning),
		LDAP(test_stored_secret_is_not_used),
		PAM(test_pam_receives_the_address_of_the_client),
		PAM(test_wrong_password_is_reported_after_the_delay_of_pam),
		LDAP(test_second_password_during_the_check_is_refused),
		LDAP(test_password_that_is_too_long_is_refused_without_a_check),
		LDAP(test_malformed_password_is_refused_without_a_check),
		WITH(start_ldap_nowhere, test_login_without_ldap_options_is_refused),
		LDAP(test_options_in_force_when_the_password_arrives_are_used),
		HBA(test_hba_rule_has_its_own_options),
		HBA(test_console_under_an_hba_rule_requires_a_listed_user),
		LDAP(test_invalid_options_are_logged_and_refuse_every_login),
		LDAP(test_options_that_are_too_long_are_truncated_with_a_log_line),
		LDAP(test_ldap_refuses_a_database_with_an_auth_user),
		WITH(start_ldap_with_template, test_ldap_refuses_a_template_with_an_auth_user),
		PAM(test_pam_refuses_a_database_with_an_auth_user),
		LDAP(test_console_requires_a_listed_user),
		LDAP(test_forced_user_keeps_its_own_password),
		LDAP(test_configured_user_is_counted_from_the_startup_message_on),
		LDAP(test_other_users_are_counted_after_the_check),
		LDAP(test_checked_password_is_used_for_the_server_login),
		LDAP(test_logins_beyond_the_queue_wait_in_order),
		LDAP(test_full_queue_is_logged_once),
		LDAP(test_disconnected_clients_are_not_checked),
		LDAP(test_result_for_a_disconnected_client_is_dropped),
		LDAP(test_client_login_timeout_limits_the_wait),
		LDAP(test_ldap_and_pam_have_separate_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
