/* SPDX-License-Identifier: ISC */
/*
 * auth_query: users that stand in no file. What is sent, every answer, every failure, and how
 * many queries run at a time.
 */
#include "daemon/janitor.h"
#include "session/auth/exchange.h"
#include "session/link/derivation.h"
#include "session/login/drop_silent_logins.h"
#include "session/lookup/auth_query.h"
#include "session/pool/lookup.h"
#include "session/serving/control.h"
#include "support/fakes/fake_auth_query.h"
#include "support/fakes/fake_login.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/startup.h"
#include "wire/writer.h"

static struct pool *lookup_pool; /* the pool in which users of `db` are looked up */

static void start_with(const char *settings)
{
	char config[1500];

	snprintf(config, sizeof(config),
		"[databases]\n"
		"db = host=/tmp pool_size=4\n"
		"own = host=/tmp auth_user=owner auth_query='select own' auth_dbname=users\n"
		"lost = host=/tmp auth_dbname=nowhere\n"
		"taboo = host=/tmp auth_dbname=pgbouncer\n"
		"users = host=/tmp connect_query='select ready'\n"
		"forced = host=/tmp user=carol\n"
		"capped = host=/tmp max_db_client_connections=1\n"
		"[users]\n"
		"listed = max_user_client_connections=1\n"
		"limited = max_user_client_connections=1\n"
		"[pgbouncer]\n"
		"pool_mode = transaction\n"
		"admin_users = boss\n"
		"auth_user = asker\n"
		"auth_query = select asked\n"
		"%s",
		settings);
	fake_start(config);
	fake_user("filed", "secret");
	fake_user("boss", "secret");
	fake_set("server_reset_query_always", "0");
	lookup_pool = fake_pool("db", "asker");
}

static int start_trust(void **state)
{
	(void)state;
	start_with("auth_type = trust\n");
	return 0;
}

static int start_plain(void **state)
{
	(void)state;
	start_with("auth_type = plain\n");
	return 0;
}

static int start_scram(void **state)
{
	(void)state;
	start_with("auth_type = scram-sha-256\nscram_iterations = 10\n");
	return 0;
}

static int start_with_template(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "* = host=/tmp\n"
		   "[pgbouncer]\n"
		   "auth_type = trust\n"
		   "auth_user = asker\n");
	return 0;
}

/* --- clients and answers ------------------------------------------------------------------ */

static struct endpoint *connect_to(const char *database, const char *user)
{
	struct endpoint *client = fake_accept(-1);

	send_startup(client, PROTOCOL_3_0, "user", user, "database", database, NULL);
	return client;
}

static struct endpoint *connect_as(const char *user)
{
	/*
	 * The pool exists beforehand, so that the client need not wait for the welcome message.
	 */
	fake_pool("db", user);
	return connect_to("db", user);
}

/* The server that was launched last accepts our login. */
static void accept_login(struct endpoint *server)
{
	assert_non_null(server);
	fake_connected(server, 0);
	assert_received(server, "^");
	send_letters(server, "RKZ");
}

/* The server was asked for this user, and nothing else is pending on it. */
static void assert_auth_query_for(struct endpoint *server, const char *user)
{
	assert_received(server, "PBDES");
	assert_state(server, SERVER_LOOKING_UP);
	assert_string_equal(endpoint_server(server)->lookup->user, user);
}

#define assert_config_error(client)                                                            \
	assert_closed_with_error(client, "08P01", "bouncer config error")

static const struct user *find_user(const char *name)
{
	return registry_find_user(&fake_registry, name);
}

/* --- what is sent ------------------------------------------------------------------------- */

/* The server was sent this name or text. */
static void assert_sent(const struct endpoint *server, const char *text)
{
	size_t length;
	const uint8_t *sent = scripted_output(server->script, &length);

	if (!memmem(sent, length, text, strlen(text)))
		fail_msg("'%s' was not sent", text);
}

static void test_user_in_no_file_is_looked_up(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice");

	(void)state;
	assert_state(client, CLIENT_LOOKING_UP);
	assert_auth_query_for(server, "alice");
	assert_sent(server, "select asked");
	assert_received(client, "");
	answer(server, "alice", "secret");
	assert_received(client, "RKZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_string_equal(endpoint_client(client)->user->name, "alice");
	assert_int_equal(find_user("alice")->clients, 1);
	assert_string_equal(pool_secret(registry_find_pool(endpoint_client(client)->database,
				    find_user("alice"), TARGET_INHERIT)),
		"secret");
	assert_true(fake_logged("login attempt: db=db user=alice"));
}

static void test_auth_query_is_sent_with_one_untyped_parameter(void **state)
{
	static const char question[] = "P\0\0\0\x14\0select asked\0\0\0"
				       "B\0\0\0\x15\0\0\0\0\0\1\0\0\0\5alice\0\0"
				       "D\0\0\0\6P\0"
				       "E\0\0\0\x9\0\0\0\0\0"
				       "S\0\0\0\4";
	struct endpoint *server = fake_server(lookup_pool);
	size_t length;

	(void)state;
	connect_as("alice");
	assert_memory_equal(
		scripted_output(server->script, &length), question, sizeof(question) - 1);
	assert_int_equal(length, sizeof(question) - 1);
}

static void test_user_in_the_file_is_not_looked_up(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("filed");

	(void)state;
	assert_received(server, "");
	assert_received(client, "RKZ");
}

static void test_no_user_is_looked_up_without_an_auth_user(void **state)
{
	struct endpoint *server = fake_server(lookup_pool);

	(void)state;
	fake_set("auth_user", "");
	assert_closed_with_error(
		connect_to("db", "alice"), "28000", "\"trust\" authentication failed");
	assert_received(server, "");
}

static void test_database_may_have_its_own_auth_user_query_and_auth_dbname(void **state)
{
	struct endpoint *server = fake_server(fake_pool("users", "owner"));
	struct endpoint *client = connect_to("own", "alice");

	(void)state;
	assert_auth_query_for(server, "alice");
	assert_sent(server, "select own");
	answer(server, "alice", "secret");
	assert_state(client, CLIENT_WELCOMING);
}

static void test_global_auth_dbname_applies_to_other_databases(void **state)
{
	struct endpoint *server = fake_server(fake_pool("users", "asker"));
	struct endpoint *here = fake_server(lookup_pool);

	(void)state;
	fake_set("auth_dbname", "users");
	connect_as("alice");
	assert_auth_query_for(server, "alice");
	assert_received(here, "");
}

static void test_unknown_auth_dbname_is_a_configuration_error(void **state)
{
	(void)state;
	assert_config_error(connect_to("lost", "alice"));
	assert_true(fake_logged("authentication database \"nowhere\" is not configured."));
}

static void test_console_database_is_refused_as_auth_dbname(void **state)
{
	static const char line[] =
		"cannot use the reserved \"pgbouncer\" database as an auth_dbname";

	(void)state;
	assert_config_error(connect_to("taboo", "alice"));
	assert_true(fake_logged(line));
	assert_config_error(connect_to("pgbouncer", "clerk"));
}

static void test_console_login_is_looked_up_in_the_global_auth_dbname(void **state)
{
	struct endpoint *server = fake_server(fake_pool("users", "asker"));
	struct endpoint *client, *stranger;

	(void)state;
	fake_set("admin_users", "chief");
	fake_set("auth_dbname", "users");
	client = connect_to("pgbouncer", "chief");
	answer(server, "chief", "secret");
	assert_state(client, CLIENT_CONSOLE);
	assert_true(endpoint_client(client)->admin);
	assert_false(endpoint_link(client)->stream.paused);
	stranger = connect_to("pgbouncer", "alice");
	answer(server, "alice", "secret");
	assert_closed_with_error(stranger, "08P01", "not allowed");
}

static void test_disabled_auth_dbname_is_reported_by_its_name(void **state)
{
	(void)state;
	registry_find_database(&fake_registry, "users")->disabled = true;
	assert_closed_with_error(connect_to("own", "alice"), "55000",
		"authentication database \"users\" is disabled");
}

static void test_auth_dbname_may_come_from_the_template(void **state)
{
	struct endpoint *client = connect_to("fresh", "alice"), *server = fake_launched();

	(void)state;
	assert_state(client, CLIENT_LOOKING_UP);
	assert_non_null(registry_find_database(&fake_registry, "fresh"));
	assert_true(fake_logged("registered new auto-database: fresh"));
	accept_login(server);
	assert_auth_query_for(server, "alice");
}

static void test_unknown_database_is_refused_without_a_look_up(void **state)
{
	(void)state;
	assert_closed_with_error(
		connect_to("nothing", "alice"), "28000", "\"trust\" authentication failed");
}

static void test_impossible_user_name_is_not_looked_up(void **state)
{
	char name[80];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[64] = '\0';
	assert_closed_with_error(
		connect_to(name, "alice"), "28000", "\"trust\" authentication failed");
}

/* --- the answer --------------------------------------------------------------------------- */

static void test_name_in_the_answer_becomes_the_user_of_the_client(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client;

	(void)state;
	fake_pool("db", "bob");
	client = connect_to("db", "alice");
	answer(server, "bob", "secret");
	assert_received(client, "RKZ");
	assert_string_equal(endpoint_client(client)->user->name, "bob");
	assert_string_equal(endpoint_link(client)->pool->user->name, "bob");
	assert_null(find_user("alice"));
	assert_int_equal(find_user("bob")->clients, 1);
}

static void test_long_name_in_the_answer_is_truncated(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_to("db", "alice");
	char name[201];

	(void)state;
	memset(name, 'n', 200);
	name[200] = '\0';
	answer(server, name, "secret");
	assert_int_equal(strlen(endpoint_client(client)->user->name), CLIENT_USER_NAME_MAX);
}

static void test_answer_without_a_row_means_no_such_user(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_to("db", "ghost");

	(void)state;
	answer_no_row(server);
	assert_closed_with_error(client, "28000", "no such user");
	assert_true(fake_logged("login failed: db=db user=ghost"));
	assert_null(find_user("ghost"));
	assert_state(server, SERVER_IDLE);
}

static void test_last_of_several_rows_is_used(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client;
	struct buffer out;

	(void)state;
	fake_pool("db", "bob");
	client = connect_to("db", "alice");
	write_row_description(&out);
	write_row(&out, "eve", "first");
	write_row(&out, "bob", "last");
	letters_write(&out, FROM_SERVER, "CZ");
	send_buffer(server, &out);
	assert_received(client, "RKZ");
	assert_string_equal(endpoint_client(client)->user->name, "bob");
	assert_string_equal(pool_secret(endpoint_link(client)->pool), "last");
}

static void test_answer_may_arrive_byte_by_byte_with_notices(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice");
	struct buffer out;

	(void)state;
	buffer_init(&out);
	letters_write(&out, FROM_SERVER, "N1SA2");
	letters_write_description(&out, 2);
	letters_write(&out, FROM_SERVER, "N");
	write_row(&out, "alice", "secret");
	letters_write(&out, FROM_SERVER, "SCNZ");
	for (size_t i = 0; i < out.length; i++) {
		assert_received(client, "");
		send_bytes(server, out.data + i, 1);
	}
	buffer_free(&out);
	assert_received(client, "RKZ");
	assert_state(server, SERVER_IDLE);
}

static void assert_answer_closes_server(const char *before, unsigned columns, const char *after)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_to("db", "alice");
	struct buffer out;

	buffer_init(&out);
	letters_write(&out, FROM_SERVER, before);
	if (columns > 0)
		letters_write_description(&out, columns);
	letters_write(&out, FROM_SERVER, after);
	send_buffer(server, &out);
	assert_config_error(client);
	assert_closed(server);
	assert_int_equal(lookup_pool->lookups_running, 0);
}

static void test_unexpected_answers_close_the_server(void **state)
{
	(void)state;
	assert_answer_closes_server("12", 1, "CZ");
	assert_answer_closes_server("12", 3, "CZ");
	assert_answer_closes_server("12", 2, "D"); /* of one column */
	assert_answer_closes_server("12n", 0, "CZ"); /* no SELECT */
	assert_answer_closes_server("12", 0, "CZ");
	assert_answer_closes_server("12", 2, "Z"); /* cut */
	assert_answer_closes_server("2", 0, "");
	assert_answer_closes_server("1", 2, "");
	assert_answer_closes_server("12", 2, "CC");
	assert_answer_closes_server("12", 2, "C>"); /* left in a transaction */
	assert_answer_closes_server("12", 2, "T");
	assert_answer_closes_server("1G", 0, "");
	assert_answer_closes_server("R", 0, "");
	assert_answer_closes_server("Z", 0, "");
}

static void assert_row_closes_server(const void *row, size_t length)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_to("db", "alice");
	struct buffer out;

	write_row_description(&out);
	writer_message(&out, PQ_DATA_ROW, row, length);
	send_buffer(server, &out);
	assert_config_error(client);
	assert_closed(server);
}

#define ASSERT_ROW_CLOSES_SERVER(row) assert_row_closes_server(row, sizeof(row) - 1)

static void test_invalid_rows_close_the_server(void **state)
{
	(void)state;
	ASSERT_ROW_CLOSES_SERVER("\0\2\xff\xff\xff\xff\0\0\0\1x"); /* no name */
	ASSERT_ROW_CLOSES_SERVER("\0\2\0\0\0\0\0\0\0\1x"); /* an empty one */
	ASSERT_ROW_CLOSES_SERVER("\0\2\0\0\0\1");
	ASSERT_ROW_CLOSES_SERVER("\0\2\0\0\0\1a\x7f\xff\xff\xff");
	ASSERT_ROW_CLOSES_SERVER("\0\2\0\0\0\2a\0\0\0\0\1x");
	ASSERT_ROW_CLOSES_SERVER("\0\2\0\0\0\1a\0\0\0\2x\0");
	ASSERT_ROW_CLOSES_SERVER("\0\3\0\0\0\1a\0\0\0\1x\0\0\0\1y");
	ASSERT_ROW_CLOSES_SERVER("");
}

static void test_row_that_is_too_long_closes_the_server(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_to("db", "alice");
	struct buffer out;
	size_t mark;

	(void)state;
	write_row_description(&out);
	mark = writer_begin(&out, PQ_DATA_ROW);
	writer_int16(&out, 2);
	write_value(&out, "alice");
	writer_int32(&out, 1 << 20);
	memset(buffer_extend(&out, 1 << 20), 'x', 1 << 20);
	writer_end(&out, mark);
	/* The server is closed before all of the row has arrived. */
	send_bytes(server, out.data, 1000);
	buffer_free(&out);
	assert_config_error(client);
	assert_closed(server);
}

static void test_long_secret_is_not_truncated(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice");
	char *secret = malloc(60001);

	(void)state;
	memset(secret, 's', 60000);
	secret[60000] = '\0';
	answer(server, "alice", secret);
	assert_received(client, "RKZ");
	assert_string_equal(pool_secret(endpoint_link(client)->pool), secret);
	free(secret);
}

static void test_error_of_the_auth_query_is_logged_and_not_sent_to_the_client(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_to("db", "alice");

	(void)state;
	send_error(server, "42P01", "relation does not exist");
	assert_config_error(client);
	assert_closed(server);
	assert_true(fake_logged("S: error in auth_query: FATAL: relation does not exist"));
}

static void test_message_after_the_answer_closes_the_server(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice");
	struct buffer out;

	(void)state;
	write_row_description(&out);
	write_row(&out, "alice", "secret");
	letters_write(&out, FROM_SERVER, "CZD");
	send_buffer(server, &out);
	assert_received(client, "RKZ");
	assert_closed(server);
}

/* --- secrets ------------------------------------------------------------------------------ */

static void test_client_authenticates_with_the_secret_in_the_answer(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice");

	(void)state;
	answer(server, "alice", "secret");
	assert_received(client, "R");
	send_password(client, "secret");
	assert_received(client, "RKZ");
	client = connect_as("alice");
	answer(server, "alice", "secret");
	assert_received(client, "R");
	send_password(client, "sesame");
	assert_closed_with_error(client, "28P01", "password authentication failed");
}

/* CVE-2025-2291: no password is accepted for a user without a secret. */
static void test_every_password_is_refused_without_a_secret(void **state)
{
	static const char *const guesses[] = {"x", "NULL", "null", "alice", "md5", "\\N"};
	static const char *const secrets[] = {NULL, ""};
	struct endpoint *server = fake_server(lookup_pool);

	(void)state;
	for (size_t i = 0; i < COUNT(guesses) * COUNT(secrets); i++) {
		struct endpoint *client = connect_as("alice");

		answer(server, "alice", secrets[i % 2]);
		assert_received(client, "R");
		send_password(client, guesses[i / 2]);
		assert_closed_with_error(client, "28P01", "password authentication failed");
	}
}

static void test_user_without_a_secret_may_log_in_with_trust(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice");

	(void)state;
	answer(server, "alice", NULL);
	assert_received(client, "RKZ");
	assert_string_equal(pool_secret(endpoint_link(client)->pool), "");
}

static void test_early_password_waits_for_the_answer(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = fake_accept(-1);
	struct buffer out;
	size_t mark;

	(void)state;
	fake_pool("db", "alice");
	buffer_init(&out);
	mark = startup_begin(&out, PROTOCOL_3_0);
	writer_string(&out, "user");
	writer_string(&out, "alice");
	writer_string(&out, "database");
	writer_string(&out, "db");
	startup_end(&out, mark);
	letters_write(&out, FROM_CLIENT, "p");
	send_buffer(client, &out);
	assert_state(client, CLIENT_LOOKING_UP);
	answer(server, "alice", "secret");
	assert_received(client, "RRKZ");
	assert_state(client, CLIENT_IDLE);
	assert_false(endpoint_link(client)->stream.paused);
}

static void test_query_pipelined_with_the_startup_is_run_after_the_look_up(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = fake_accept(-1), *working;
	struct buffer out;
	size_t mark;

	(void)state;
	working = fake_server(fake_pool("db", "alice"));
	buffer_init(&out);
	mark = startup_begin(&out, PROTOCOL_3_0);
	writer_string(&out, "user");
	writer_string(&out, "alice");
	writer_string(&out, "database");
	writer_string(&out, "db");
	startup_end(&out, mark);
	letters_write(&out, FROM_CLIENT, "Q");
	send_buffer(client, &out);
	answer(server, "alice", "secret");
	assert_received(working, "Q");
	send_letters(working, "CZ");
	assert_received(client, "RKZCZ");
}

static void test_changed_secret_replaces_the_old_one_and_its_keys(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice");
	struct pool *pool = fake_pool("db", "alice");
	struct credential *first;

	(void)state;
	answer(server, "alice", "secret");
	send_password(client, "secret");
	first = pool->credential;
	credential_keys(first)->client_key_known = true;
	client = connect_as("alice");
	answer(server, "alice", "secret");
	assert_ptr_equal(pool->credential, first);
	send_password(client, "secret");
	assert_ptr_equal(pool->credential, first);
	/* The new secret is stored before any client has authenticated with it. */
	client = connect_as("alice");
	answer(server, "alice", "changed");
	assert_string_equal(pool_secret(pool), "changed");
	assert_null(pool_keys(pool));
}

static void test_secret_of_the_client_is_not_used_for_a_forced_user(void **state)
{
	struct endpoint *server = fake_server(fake_pool("forced", "asker"));
	struct pool *pool = fake_pool("forced", "carol");
	struct endpoint *client = connect_to("forced", "alice");

	(void)state;
	answer(server, "alice", "secret");
	assert_received(client, "RKZ");
	assert_ptr_equal(endpoint_link(client)->pool, pool);
	assert_null(pool_secret(pool));
}

static void test_secret_of_the_file_replaces_the_one_of_the_auth_query(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice");
	struct pool *pool = fake_pool("db", "alice");

	(void)state;
	answer(server, "alice", "fetched");
	assert_received(client, "RKZ");
	fake_user("alice", "filed");
	assert_string_equal(pool_secret(pool), "fetched");
	client = connect_as("alice");
	assert_received(client, "RKZ");
	assert_string_equal(pool_secret(pool), "filed");
}

/*
 * All clients that share a secret share one derivation of its keys, whichever client started
 * it.
 */
static void test_keys_of_a_plain_secret_are_derived_once(void **state)
{
	static const char first[] = "SCRAM-SHA-256\0\0\0\0\x0en,,n=,r=abcdef";
	struct endpoint *clients[3] = {
		connect_as("alice"), connect_as("alice"), connect_as("alice")};
	struct endpoint *server = fake_launched();

	(void)state;
	fake_block_helper();
	accept_login(server);
	answer(server, "alice", "secret");
	for (int i = 0; i < 3; i++) {
		struct buffer out;

		assert_received(clients[i], "R");
		buffer_init(&out);
		writer_password(&out, first, sizeof(first) - 1);
		send_buffer(clients[i], &out);
		assert_received(clients[i], "R");
		assert_ptr_equal(exchange_keys(endpoint_client(clients[i])),
			exchange_keys(endpoint_client(clients[0])));
	}
	assert_int_equal(derivations_pending(&fake_registry), 1);
	disconnect(clients[0]);
	fake_wait_for_helper();
	for (int i = 1; i < 3; i++) {
		assert_true(exchange_keys(endpoint_client(clients[i]))->verifier_known);
		assert_null(endpoint_client(clients[i])->login->awaited);
	}
}

/* --- counts of users ---------------------------------------------------------------------- */

static void test_client_is_counted_for_the_name_in_the_answer(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client, *another;

	(void)state;
	fake_pool("db", "limited");
	client = connect_to("db", "one");
	answer(server, "limited", "secret");
	assert_received(client, "RKZ");
	another = connect_to("db", "two");
	assert_state(another, CLIENT_LOOKING_UP);
	answer(server, "limited", "secret");
	assert_closed_with_error(
		another, "53300", "client connections exceeded (max_user_client_connections)");
	assert_int_equal(find_user("limited")->clients, 1);
}

static void test_client_of_a_configured_user_is_counted_once(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("listed");

	(void)state;
	assert_int_equal(find_user("listed")->clients, 1);
	assert_closed_with_error(connect_as("listed"), "53300",
		"client connections exceeded (max_user_client_connections)");
	answer(server, "listed", "secret");
	assert_received(client, "RKZ");
	assert_int_equal(find_user("listed")->clients, 1);
	disconnect(client);
	assert_int_equal(find_user("listed")->clients, 0);
	client = connect_as("listed");
	fake_pool("db", "alice");
	answer(server, "alice", "secret");
	assert_received(client, "RKZ");
	assert_int_equal(find_user("listed")->clients, 0);
	assert_int_equal(find_user("alice")->clients, 1);
}

static void test_unknown_names_leave_no_users_allocated(void **state)
{
	struct endpoint *server = fake_server(lookup_pool);
	const unsigned users = registry_count_users(&fake_registry);
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		struct endpoint *client;

		snprintf(name, sizeof(name), "user%u", i);
		client = connect_to("db", name);
		answer(server, name, "secret");
		assert_received(client, "R");
		assert_non_null(find_user(name));
		disconnect(client);
		assert_null(find_user(name));
	}
	assert_int_equal(registry_count_users(&fake_registry), users);
	assert_int_equal(lookup_pool->looking_up, 0);
}

/* --- how many at a time ------------------------------------------------------------------- */

static void test_logins_of_one_turn_share_a_query(void **state)
{
	struct endpoint *clients[3], *other, *server;

	(void)state;
	for (int i = 0; i < 3; i++)
		clients[i] = connect_as("alice");
	other = connect_as("bob");
	assert_int_equal(lookup_pool->lookups_waiting, 2);
	assert_int_equal(lookup_pool->looking_up, 4);
	server = fake_launched();
	accept_login(server);
	assert_auth_query_for(server, "alice");
	answer(server, "alice", "secret");
	for (int i = 0; i < 3; i++)
		assert_received(clients[i], "RKZ");
	assert_auth_query_for(server, "bob");
	answer(server, "bob", "secret");
	assert_received(other, "RKZ");
	assert_int_equal(find_user("alice")->clients, 3);
}

/*
 * A query that has been sent may not see a user created since, so a later login sends a new
 * one.
 */
static void test_later_login_sends_a_new_query(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = connect_as("alice"),
			*later;

	(void)state;
	assert_auth_query_for(server, "alice");
	later = connect_as("alice");
	answer(server, "alice", "secret");
	assert_received(client, "RKZ");
	assert_received(later, "");
	assert_auth_query_for(server, "alice");
	answer(server, "alice", "secret");
	assert_received(later, "RKZ");
}

static void test_same_name_for_another_database_sends_another_query(void **state)
{
	struct endpoint *one, *two, *server;
	struct pool *pool = fake_pool("users", "asker");

	(void)state;
	fake_set("auth_dbname", "users");
	one = connect_to("db", "alice");
	two = connect_to("forced", "alice");
	assert_state(one, CLIENT_LOOKING_UP);
	assert_state(two, CLIENT_LOOKING_UP);
	server = fake_launched();
	accept_login(server);
	assert_received(server, "Q"); /* its connect_query */
	send_letters(server, "CZ");
	assert_ptr_equal(endpoint_link(server)->pool, pool);
	assert_auth_query_for(server, "alice");
	answer_no_row(server);
	assert_closed_with_error(one, "28000", "no such user");
	assert_state(two, CLIENT_LOOKING_UP);
}

static void test_look_ups_use_at_most_a_quarter_of_the_pool(void **state)
{
	struct endpoint *servers[3] = {
		fake_server(lookup_pool), fake_server(lookup_pool), fake_server(lookup_pool)};
	struct endpoint *worker = fake_client(lookup_pool);

	(void)state;
	connect_as("alice");
	connect_as("bob");
	connect_as("eve");
	assert_int_equal(lookup_pool->lookups_running, 1);
	assert_int_equal(lookup_pool->lookups_waiting, 2);
	/* Clients may still use the other servers. */
	send_letters(worker, "Q");
	assert_state(worker, CLIENT_PAIRED);
	assert_state(servers[0], SERVER_IDLE);
	assert_null(fake_launched());
}

static void test_number_of_look_ups_is_at_least_one_and_at_most_eight(void **state)
{
	struct pool *pool = fake_pool("users", "asker");

	(void)state;
	pool->lookups_waiting = 100;
	fake_set("default_pool_size", "1");
	assert_int_equal(pool_startable_lookups(pool), 1);
	fake_set("default_pool_size", "20");
	assert_int_equal(pool_startable_lookups(pool), 5);
	fake_set("default_pool_size", "0");
	assert_int_equal(pool_startable_lookups(pool), 8);
	pool->lookups_running = 8;
	assert_int_equal(pool_startable_lookups(pool), 0);
	pool->lookups_running = 9;
	assert_int_equal(pool_startable_lookups(pool), 0);
	assert_int_equal(pool_wanted_servers(pool), 0);
	pool->lookups_waiting = pool->lookups_running = 0;
}

static void test_longest_waiting_login_is_served_first(void **state)
{
	struct endpoint *first = fake_client(lookup_pool), *last = fake_client(lookup_pool),
			*server;

	(void)state;
	fake_set("query_wait_timeout", "0");
	send_letters(first, "Q");
	fake_advance(USEC_PER_SEC);
	connect_as("alice");
	fake_advance(USEC_PER_SEC);
	send_letters(last, "Q");
	server = fake_launched();
	accept_login(server);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_received(first, "CZ");
	assert_string_equal(endpoint_server(server)->lookup->user, "alice");
	assert_received(server, "QPBDES");
	send_letters(server, "CZ");
	answer(server, "alice", "secret");
	assert_state(last, CLIENT_PAIRED);
}

static void test_look_up_launches_a_server(void **state)
{
	struct endpoint *client = connect_as("alice"), *server = fake_launched();

	(void)state;
	assert_non_null(server);
	assert_ptr_equal(endpoint_link(server)->pool, lookup_pool);
	accept_login(server);
	assert_auth_query_for(server, "alice");
	answer(server, "alice", "secret");
	assert_received(client, "RKZ");
}

/* --- servers that clients have used ------------------------------------------------------- */

static struct endpoint *server_used_by_a_client(struct pool *pool)
{
	struct endpoint *server = fake_server(pool), *client = fake_client(pool);

	send_letters(client, "Q");
	send_letters(server, "CZ");
	read_letters(server);
	assert_state(server, SERVER_IDLE);
	assert_true(endpoint_server(server)->touched);
	return server;
}

static void test_server_used_by_a_client_is_reset_before_a_look_up(void **state)
{
	struct endpoint *server = server_used_by_a_client(lookup_pool),
			*client = connect_as("alice");

	(void)state;
	assert_received(server, "QPBDES");
	assert_sent(server, "DISCARD ALL");
	send_letters(server, "SCZ");
	assert_false(endpoint_server(server)->touched);
	answer(server, "alice", "secret");
	assert_received(client, "RKZ");
	/* The session is still clean for the next query. */
	connect_as("bob");
	assert_auth_query_for(server, "bob");
}

static void test_reset_before_a_look_up_repeats_the_connect_query(void **state)
{
	struct endpoint *server = server_used_by_a_client(fake_pool("users", "owner"));
	struct endpoint *client = connect_to("own", "alice");

	(void)state;
	assert_received(server, "QQPBDES");
	assert_sent(server, "select ready");
	send_letters(server, "CZ");
	assert_true(endpoint_server(server)->touched);
	send_letters(server, "TDCZ");
	assert_false(endpoint_server(server)->touched);
	answer(server, "alice", "secret");
	assert_state(client, CLIENT_WELCOMING);
}

static void test_server_whose_reset_fails_is_closed_and_another_is_asked(void **state)
{
	struct endpoint *good = fake_server(lookup_pool),
			*bad = server_used_by_a_client(lookup_pool);
	struct endpoint *client = connect_as("alice");

	(void)state;
	assert_received(bad, "QPBDES");
	send_letters(bad, "E");
	assert_closed(bad);
	assert_auth_query_for(good, "alice");
	answer(good, "alice", "secret");
	assert_received(client, "RKZ");
}

static void test_server_left_in_a_transaction_by_its_reset_is_replaced(void **state)
{
	struct endpoint *good = fake_server(lookup_pool),
			*bad = server_used_by_a_client(lookup_pool);

	(void)state;
	connect_as("alice");
	send_letters(bad, "C>");
	assert_closed(bad);
	assert_auth_query_for(good, "alice");
}

/* Finding F41: no startup parameter of the client is set on the server of the auth_query. */
static void test_startup_parameters_of_the_client_are_not_set(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client = fake_accept(-1);

	(void)state;
	fake_pool("db", "alice");
	send_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "TimeZone",
		"Mars", "application_name", "'; drop table x; --", NULL);
	assert_auth_query_for(server, "alice");
	answer(server, "alice", "secret");
	assert_received(server, "");
}

static void test_server_of_a_session_pool_is_reset_after_a_look_up(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	fake_set("pool_mode", "session");
	server = fake_server(lookup_pool);
	client = connect_as("alice");
	read_letters(server);
	answer(server, "alice", "secret");
	assert_received(client, "RKZ");
	assert_state(server, SERVER_RESETTING);
	assert_received(server, "Q");
	send_letters(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

/* --- closing ------------------------------------------------------------------------------ */

static void test_server_is_closed_when_the_last_login_of_its_query_disconnects(void **state)
{
	struct endpoint *clients[2] = {connect_as("alice"), connect_as("alice")},
			*server = fake_launched();

	(void)state;
	accept_login(server);
	assert_auth_query_for(server, "alice");
	disconnect(clients[0]);
	assert_state(server, SERVER_LOOKING_UP);
	disconnect(clients[1]);
	assert_received(server, "X");
	assert_closed(server);
	assert_int_equal(lookup_pool->looking_up, 0);
}

static void test_look_up_in_the_queue_ends_with_its_client(void **state)
{
	struct endpoint *client = connect_as("alice");

	(void)state;
	break_connection(client);
	assert_closed(client);
	assert_int_equal(lookup_pool->lookups_waiting, 0);
	assert_true(TAILQ_EMPTY(&lookup_pool->lookups));
}

static void test_idle_server_that_was_closed_is_replaced(void **state)
{
	struct endpoint *other = fake_server(lookup_pool), *dead = fake_server(lookup_pool),
			*client;

	(void)state;
	fake_advance(USEC_PER_SEC);
	client = connect_as("alice");
	assert_auth_query_for(dead, "alice");
	disconnect(dead);
	assert_auth_query_for(other, "alice");
	send_error(other, "57P01", "terminating connection due to administrator command");
	assert_state(client, CLIENT_LOOKING_UP);
	other = fake_launched();
	accept_login(other);
	answer(other, "alice", "secret");
	assert_received(client, "RKZ");
}

static void test_server_closed_within_its_answer_fails_the_login(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client;

	(void)state;
	fake_advance(USEC_PER_SEC);
	client = connect_to("db", "alice");
	send_letters(server, "1");
	disconnect(server);
	assert_config_error(client);
}

static void test_new_server_closed_by_the_query_fails_the_login(void **state)
{
	struct endpoint *client = connect_to("db", "alice"), *server = fake_launched();

	(void)state;
	accept_login(server);
	assert_auth_query_for(server, "alice");
	disconnect(server);
	assert_config_error(client);
}

static void test_blocked_server_is_replaced(void **state)
{
	struct endpoint *other = fake_server(lookup_pool), *broken = fake_server(lookup_pool);

	(void)state;
	fake_advance(USEC_PER_SEC);
	scripted_break(broken->script);
	connect_as("alice");
	assert_closed(broken);
	assert_auth_query_for(other, "alice");
}

static void test_waiting_logins_receive_the_login_error_of_the_server(void **state)
{
	struct endpoint *client = connect_as("alice"), *server = fake_launched(), *next;

	(void)state;
	fake_connected(server, 0);
	send_error(server, "28000", "role \"asker\" does not exist");
	assert_closed_with_error(client, "28000", "role \"asker\" does not exist");
	next = connect_as("alice");
	assert_closed_with_error(next, "08006",
		"server login has been failing, cached error: role \"asker\" does not exist "
		"(server_login_retry)");
}

static void test_waiting_logins_survive_a_server_that_is_starting_up(void **state)
{
	struct endpoint *client = connect_as("alice"), *server = fake_launched();

	(void)state;
	fake_connected(server, 0);
	send_error(server, "57P03", "the database system is starting up");
	assert_state(client, CLIENT_LOOKING_UP);
}

static void test_look_up_in_the_queue_has_the_timeouts_of_waiting_clients(void **state)
{
	struct endpoint *client;

	(void)state;
	fake_set("client_login_timeout", "1");
	fake_set("query_wait_timeout", "5");
	client = connect_to("db", "alice");
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "query_wait_timeout");
	fake_set("query_timeout", "2");
	client = connect_to("db", "alice");
	fake_advance(3 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "query_timeout");
}

static void test_running_look_up_is_limited_by_client_login_timeout(void **state)
{
	struct endpoint *server, *client;

	(void)state;
	fake_set("client_login_timeout", "5");
	fake_set("query_wait_timeout", "1");
	server = fake_server(lookup_pool);
	client = connect_to("db", "alice");
	assert_auth_query_for(server, "alice");
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "client_login_timeout");
	assert_closed(server);
}

static void test_time_in_the_queue_does_not_count_for_client_login_timeout(void **state)
{
	struct endpoint *client, *server;

	(void)state;
	fake_set("client_login_timeout", "5");
	client = connect_as("alice");
	fake_advance(20 * USEC_PER_SEC);
	server = fake_launched();
	accept_login(server);
	assert_auth_query_for(server, "alice");
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_closed_with_error(client, "57014", "client_login_timeout");
}

static void test_query_timeout_is_the_only_other_limit_of_a_look_up(void **state)
{
	struct janitor janitor;
	struct endpoint *server, *client;

	(void)state;
	fake_set("transaction_timeout", "1");
	fake_set("idle_transaction_timeout", "1");
	fake_set("query_timeout", "3");
	server = fake_server(lookup_pool);
	client = connect_to("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	fake_advance(2 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	janitor_stop(&janitor);
	assert_closed(server);
	assert_config_error(client);
	assert_true(fake_logged("closing because: query timeout"));
}

static void test_look_ups_wait_while_the_database_is_paused(void **state)
{
	struct endpoint *server = fake_server(lookup_pool), *client;

	(void)state;
	lookup_pool->database->paused = true;
	client = connect_as("alice");
	assert_state(client, CLIENT_LOOKING_UP);
	assert_received(server, "");
	control_resume(&fake_registry, lookup_pool->database);
	fake_turn();
	assert_auth_query_for(server, "alice");
	assert_false(control_pause_is_done(&fake_registry, lookup_pool->database));
	answer(server, "alice", "secret");
	assert_received(client, "RKZ");
}

static void test_kill_closes_all_logins_looked_up_in_the_database(void **state)
{
	struct endpoint *server = fake_server(fake_pool("users", "owner"));
	struct endpoint *running, *queued;
	struct database *users = registry_find_database(&fake_registry, "users");

	(void)state;
	fake_set("default_pool_size", "1");
	running = connect_to("own", "alice");
	queued = connect_to("own", "bob");
	assert_auth_query_for(server, "alice");
	control_kill(&fake_registry, users, true);
	fake_turn();
	assert_config_error(running);
	assert_closed_with_error(queued, "57P01", "database removed");
	assert_closed(server);
}

static void test_kill_client_closes_a_login_that_is_looked_up(void **state)
{
	struct endpoint *client = connect_as("alice");

	(void)state;
	assert_true(control_kill_client(&fake_registry, endpoint_link(client)->id));
	fake_turn();
	assert_closed_with_error(client, "57P01", "admin forced disconnect");
}

static void test_shutdown_wait_for_servers_refuses_look_ups(void **state)
{
	struct janitor janitor;
	struct endpoint *client = connect_to("db", "alice");

	(void)state;
	fake_registry.process->shutdown = SHUTDOWN_WAIT_FOR_SERVERS;
	assert_closed_with_error(connect_to("db", "bob"), "57P01", "server shutting down");
	janitor_start(&janitor, &fake_registry, NULL);
	fake_advance(USEC_PER_SEC);
	janitor_stop(&janitor);
	assert_closed_with_error(client, "57P01", "server shutting down");
	fake_registry.process->shutdown = SHUTDOWN_NONE;
}

static void test_pool_with_a_look_up_is_not_idle(void **state)
{
	struct janitor janitor;
	struct endpoint *client;

	(void)state;
	fake_set("pool_idle_timeout", "1");
	fake_set("query_wait_timeout", "0");
	lookup_pool->database->paused = true;
	client = connect_to("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	fake_advance(5 * USEC_PER_SEC);
	janitor_stop(&janitor);
	assert_state(client, CLIENT_LOOKING_UP);
	assert_non_null(
		registry_find_pool(lookup_pool->database, find_user("asker"), TARGET_INHERIT));
}

/* The login does not wait for its client, so it is not dropped as silent. */
static void test_login_that_is_looked_up_is_not_dropped_as_silent(void **state)
{
	struct endpoint *client = connect_to("db", "alice");

	(void)state;
	fake_advance(10 * USEC_PER_SEC);
	assert_false(
		drop_silent_logins_one(&fake_registry, NULL, CLIENT_REJECTED_MAX_CLIENT_CONN));
	assert_state(client, CLIENT_LOOKING_UP);
}

static void test_reserve_pool_is_used_for_look_ups(void **state)
{
	struct endpoint *busy = fake_client(lookup_pool);

	(void)state;
	fake_set("reserve_pool_size", "1");
	fake_set("reserve_pool_timeout", "2");
	for (int i = 0; i < 4; i++)
		fake_server(lookup_pool);
	send_letters(busy, "Q");
	for (int i = 0; i < 3; i++)
		send_letters(fake_client(lookup_pool), "Q");
	connect_as("alice");
	fake_advance(USEC_PER_SEC);
	pool_needs_work(lookup_pool);
	fake_turn();
	assert_null(fake_launched());
	fake_advance(2 * USEC_PER_SEC);
	pool_needs_work(lookup_pool);
	fake_turn();
	assert_non_null(fake_launched());
	assert_true(fake_logged("taking connection from reserve_pool"));
}

static void test_server_is_checked_before_a_look_up(void **state)
{
	struct endpoint *server = fake_server(lookup_pool);

	(void)state;
	server_enter(endpoint_server(server), SERVER_STALE);
	fake_advance(60 * USEC_PER_SEC);
	connect_as("alice");
	assert_state(server, SERVER_CHECKING);
	assert_received(server, "Q");
	send_letters(server, "TDCZ");
	assert_auth_query_for(server, "alice");
}

int main(void)
{
#define TRUST(name) cmocka_unit_test_setup_teardown(test_##name, start_trust, fake_end)
#define PLAIN(name) cmocka_unit_test_setup_teardown(test_##name, start_plain, fake_end)
#define SCRAM(name) cmocka_unit_test_setup_teardown(test_##name, start_scram, fake_end)
	const struct CMUnitTest tests[] = {
		TRUST(user_in_no_file_is_looked_up),
		TRUST(auth_query_is_sent_with_one_untyped_parameter),
		TRUST(user_in_the_file_is_not_looked_up),
		TRUST(no_user_is_looked_up_without_an_auth_user),
		TRUST(database_may_have_its_own_auth_user_query_and_auth_dbname),
		TRUST(global_auth_dbname_applies_to_other_databases),
		TRUST(unknown_auth_dbname_is_a_configuration_error),
		TRUST(console_database_is_refused_as_auth_dbname),
		TRUST(console_login_is_looked_up_in_the_global_auth_dbname),
		TRUST(disabled_auth_dbname_is_reported_by_its_name),
		cmocka_unit_test_setup_teardown(test_auth_dbname_may_come_from_the_template,
			start_with_template, fake_end),
		TRUST(unknown_database_is_refused_without_a_look_up),
		cmocka_unit_test_setup_teardown(test_impossible_user_name_is_not_looked_up,
			start_with_template, fake_end),
		TRUST(name_in_the_answer_becomes_the_user_of_the_client),
		TRUST(long_name_in_the_answer_is_truncated),
		TRUST(answer_without_a_row_means_no_such_user),
		TRUST(last_of_several_rows_is_used),
		TRUST(answer_may_arrive_byte_by_byte_with_notices),
		TRUST(unexpected_answers_close_the_server),
		TRUST(invalid_rows_close_the_server),
		TRUST(row_that_is_too_long_closes_the_server),
		TRUST(long_secret_is_not_truncated),
		TRUST(error_of_the_auth_query_is_logged_and_not_sent_to_the_client),
		TRUST(message_after_the_answer_closes_the_server),
		PLAIN(client_authenticates_with_the_secret_in_the_answer),
		PLAIN(every_password_is_refused_without_a_secret),
		TRUST(user_without_a_secret_may_log_in_with_trust),
		PLAIN(early_password_waits_for_the_answer),
		TRUST(query_pipelined_with_the_startup_is_run_after_the_look_up),
		PLAIN(changed_secret_replaces_the_old_one_and_its_keys),
		TRUST(secret_of_the_client_is_not_used_for_a_forced_user),
		TRUST(secret_of_the_file_replaces_the_one_of_the_auth_query),
		SCRAM(keys_of_a_plain_secret_are_derived_once),
		TRUST(client_is_counted_for_the_name_in_the_answer),
		TRUST(client_of_a_configured_user_is_counted_once),
		PLAIN(unknown_names_leave_no_users_allocated),
		TRUST(logins_of_one_turn_share_a_query),
		TRUST(later_login_sends_a_new_query),
		TRUST(same_name_for_another_database_sends_another_query),
		TRUST(look_ups_use_at_most_a_quarter_of_the_pool),
		TRUST(number_of_look_ups_is_at_least_one_and_at_most_eight),
		TRUST(longest_waiting_login_is_served_first),
		TRUST(look_up_launches_a_server),
		TRUST(server_used_by_a_client_is_reset_before_a_look_up),
		TRUST(reset_before_a_look_up_repeats_the_connect_query),
		TRUST(server_whose_reset_fails_is_closed_and_another_is_asked),
		TRUST(server_left_in_a_transaction_by_its_reset_is_replaced),
		TRUST(startup_parameters_of_the_client_are_not_set),
		TRUST(server_of_a_session_pool_is_reset_after_a_look_up),
		TRUST(server_is_closed_when_the_last_login_of_its_query_disconnects),
		TRUST(look_up_in_the_queue_ends_with_its_client),
		TRUST(idle_server_that_was_closed_is_replaced),
		TRUST(server_closed_within_its_answer_fails_the_login),
		TRUST(new_server_closed_by_the_query_fails_the_login),
		TRUST(blocked_server_is_replaced),
		TRUST(waiting_logins_receive_the_login_error_of_the_server),
		TRUST(waiting_logins_survive_a_server_that_is_starting_up),
		TRUST(look_up_in_the_queue_has_the_timeouts_of_waiting_clients),
		TRUST(running_look_up_is_limited_by_client_login_timeout),
		TRUST(time_in_the_queue_does_not_count_for_client_login_timeout),
		TRUST(query_timeout_is_the_only_other_limit_of_a_look_up),
		TRUST(look_ups_wait_while_the_database_is_paused),
		TRUST(kill_closes_all_logins_looked_up_in_the_database),
		TRUST(kill_client_closes_a_login_that_is_looked_up),
		TRUST(shutdown_wait_for_servers_refuses_look_ups),
		TRUST(pool_with_a_look_up_is_not_idle),
		TRUST(login_that_is_looked_up_is_not_dropped_as_silent),
		TRUST(reserve_pool_is_used_for_look_ups),
		TRUST(server_is_checked_before_a_look_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
