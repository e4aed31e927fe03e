/* SPDX-License-Identifier: ISC */
/* Failures have the texts and SQLSTATEs that clients expect, cut to what fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/failure.h"

static void test_failure_has_text_and_sqlstate_of_its_row(void **state)
{
	struct failure failure = failure_of(REASON_QUERY_WAIT_TIMEOUT);

	(void)state;
	assert_int_equal(failure.reason, REASON_QUERY_WAIT_TIMEOUT);
	assert_string_equal(failure.text, "query_wait_timeout");
	assert_string_equal(failure.sqlstate, "57014");
}

static void test_argument_replaces_the_placeholder(void **state)
{
	(void)state;
	assert_string_equal(
		failure_of(REASON_NO_SUCH_DATABASE, "shop").text, "no such database: shop");
	assert_string_equal(failure_of(REASON_SERVER_LOGIN_FAILING, "connect failed").text,
		"server login has been failing, cached error: connect failed "
		"(server_login_retry)");
	/* Text from a peer is not used as a format. */
	assert_string_equal(
		failure_of(REASON_NO_SUCH_DATABASE, "%s%n").text, "no such database: %s%n");
}

static void test_text_is_cut_at_127_bytes(void **state)
{
	char name[300];
	struct failure failure;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	failure = failure_of(REASON_NO_SUCH_DATABASE, name);
	assert_int_equal(strlen(failure.text), 127);
	assert_memory_equal(failure.text, "no such database: xxx", 21);
	failure = failure_of(REASON_SERVER_LOGIN_FAILING, name);
	assert_int_equal(strlen(failure.text), 127);
}

static void test_cut_never_splits_a_character(void **state)
{
	/* 126 bytes, then a character of two bytes: only one of them would fit. */
	char text[FAILURE_TEXT_SIZE + 2];
	struct failure failure;

	(void)state;
	memset(text, 'x', 126);
	memcpy(text + 126, "\xc3\xa9z", 4);
	failure = failure_from_server(text, "28000");
	assert_int_equal(strlen(failure.text), 126);
}

static void test_server_error_is_passed_on(void **state)
{
	struct failure failure = failure_from_server("role \"x\" does not exist", "28000");

	(void)state;
	assert_int_equal(failure.reason, REASON_SERVER_ERROR);
	assert_string_equal(failure.text, "role \"x\" does not exist");
	assert_string_equal(failure.sqlstate, "28000");
}

static void test_missing_parts_of_a_server_error_are_replaced(void **state)
{
	static const char *const bad[] = {
		NULL, "", "2800", "280000", "28-00", "2800\n", "abcde"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_string_equal(failure_from_server("text", bad[i]).sqlstate, "08P01");
	assert_string_equal(failure_from_server(NULL, "57P03").sqlstate, "57P03");
	assert_true(strlen(failure_from_server(NULL, NULL).text) > 0);
	assert_true(strlen(failure_from_server("", NULL).text) > 0);
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	while ((text = strstr(text, part)) != NULL) {
		count++;
		text += strlen(part);
	}
	return count;
}

static void test_every_row_is_well_formed(void **state)
{
	(void)state;
	for (int i = 0; i < REASON_COUNT; i++) {
		enum reason reason = (enum reason)i;
		const char *sqlstate = reason_sqlstate(reason);
		const char *text = reason_text(reason);

		assert_true(strlen(text) > 0 && strlen(text) < FAILURE_TEXT_SIZE);
		assert_true(count_of(text, "%") <= 1);
		assert_int_equal(count_of(text, "%"), count_of(text, "%s"));
		assert_true(sqlstate[0] == '\0' || strlen(sqlstate) == 5);
		assert_int_equal(strspn(sqlstate, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
			strlen(sqlstate));
		assert_true(reason_level(reason) >= LEVEL_ERROR);
		assert_int_equal(reason_has_argument(reason), count_of(text, "%s"));
	}
}

/*
 * Protocol violations with a text of ours, where PostgreSQL would use another code: drivers
 * must recognize that the session is lost.
 */
static void test_codes_that_drivers_rely_on(void **state)
{
	(void)state;
	assert_string_equal(failure_of(REASON_IDLE_TRANSACTION_TIMEOUT).sqlstate, "08P01");
	assert_string_equal(failure_of(REASON_TRANSACTION_TIMEOUT).sqlstate, "08P01");
	assert_string_equal(
		failure_of(REASON_TRANSACTION_BLOCKS_NOT_ALLOWED).sqlstate, "08P01");
	assert_string_equal(failure_of(REASON_SERVER_CONN_CRASHED).sqlstate, "08006");
	assert_string_equal(failure_of(REASON_MAX_CLIENT_CONN).sqlstate, "53300");
	assert_string_equal(
		failure_of(REASON_PASSWORD_AUTHENTICATION_FAILED).sqlstate, "28P01");
	assert_string_equal(failure_of(REASON_CLIENT_CLOSE_REQUEST).sqlstate, "");
}

/*
 * Every text for which PostgreSQL has a specific code; all others are protocol violations,
 * 08P01.
 */
static const struct {
	const char *sqlstate, *text;
} codes[] = {
	{"28P01", "password authentication failed"},
	{"28P01", "SASL authentication failed"},
	{"28P01", "empty password returned by client"},
	{"28000", "\"trust\" authentication failed"},
	{"28000", "certificate authentication failed"},
	{"28000", "PAM authentication failed"},
	{"28000", "LDAP authentication failed"},
	{"28000", "auth_ldap_options is null"},
	{"28000", "ldap is not supported by this build"},
	{"28000", "unix socket login rejected"},
	{"28000", "login rejected"},
	{"28000", "no authentication method is found"},
	{"28000", "no such user"},
	{"28000", "SSL required"},
	{"28000", "no username supplied"},
	{"28000", "username too long"},
	{"28000", "server login failed: wrong password type"},
	{"28000",
		"server login failed: none of the server's SASL authentication mechanisms are supported"},
	{"28000", "server login failed: invalid server signature"},
	{"28000", "server login failed: the server demands too many SCRAM iterations"},
	{"3D000", "no such database: %s"},
	{"55000", "database \"%s\" is disabled"},
	{"55000", "authentication database \"%s\" is disabled"},
	{"53300", "no more connections allowed (max_client_conn)"},
	{"53300",
		"no more connections allowed (RLIMIT_NOFILE: the limit of %s open files is reached)"},
	{"53300", "client connections exceeded (max_client_conn_per_address)"},
	{"53300", "client connections exceeded (max_db_client_connections)"},
	{"53300", "client connections exceeded (max_user_client_connections)"},
	{"53300", "too many clients wait for a server (max_pool_waiters)"},
	{"53300",
		"no server connection is left to listen: at most half of those that a limit allows may do so"},
	{"53400", "too many notifications wait for the client (max_notify_backlog)"},
	{"54000", "too many channels"},
	{"0A000", "LISTEN is not allowed here (listen = error)"},
	{"57P03", "pooler is shutting down"},
	{"57P03", "client_login_timeout (server down)"},
	{"08004", "connection loop: host and port of the database lead back to this pooler"},
	{"57P01", "server shutting down"},
	{"57P01", "terminating connection due to administrator command"},
	{"57P01", "database removed"},
	{"57P01", "peer removed"},
	{"57P01", "admin forced disconnect"},
	{"57P01", "database configuration changed"},
	{"57P01", "suspend_timeout"},
	{"57P01", "pause mode"},
	{"57014", "canceling statement due to user request"},
	{"57014", "query_timeout"},
	{"57014", "query timeout"},
	{"57014", "query_wait_timeout"},
	{"57014", "client_login_timeout"},
	{"57P05", "client_idle_timeout"},
	{"08006", "no server has the role that target_session_attrs asks for"},
	{"08006", "host does not answer"},
	{"08006", "the server is not the primary any more"},
	{"08006", "server conn crashed?"},
	{"08006", "server connection closed"},
	{"08006", "server was lost before it told the session state of the client"},
	{"08006", "time limit of another client ended the setting of parameters"},
	{"08006", "server login has been failing, cached error: %s (server_login_retry)"},
	{"0A000", "old V2 protocol not supported"},
	{"0A000", "session state cannot follow its client (session_state = error)"},
	{"26000", "prepared statement did not exist"},
	{"53400", "too many prepared statements (max_prepared_memory)"},
	{"0A000", "cached plan must not change result type"},
	{"53200", "out of memory"},
	{"54000", "client has set more parameters than can follow it"},
	{"22023", "the server refused a setting of the client"},
};

static const char *code_of(const char *text)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (strcmp(codes[i].text, text) == 0)
			return codes[i].sqlstate;
	}
	return "08P01";
}

static void test_every_text_has_the_sqlstate_of_postgresql(void **state)
{
	(void)state;
	for (int i = 0; i < REASON_COUNT; i++) {
		const char *sqlstate = reason_sqlstate((enum reason)i);

		if (sqlstate[0] != '\0')
			assert_string_equal(sqlstate, code_of(reason_text((enum reason)i)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_text_has_the_sqlstate_of_postgresql),
		cmocka_unit_test(test_failure_has_text_and_sqlstate_of_its_row),
		cmocka_unit_test(test_argument_replaces_the_placeholder),
		cmocka_unit_test(test_text_is_cut_at_127_bytes),
		cmocka_unit_test(test_cut_never_splits_a_character),
		cmocka_unit_test(test_server_error_is_passed_on),
		cmocka_unit_test(test_missing_parts_of_a_server_error_are_replaced),
		cmocka_unit_test(test_every_row_is_well_formed),
		cmocka_unit_test(test_codes_that_drivers_rely_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
