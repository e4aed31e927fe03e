/* SPDX-License-Identifier: ISC */
/* Users who stand in no file: what is asked, every answer, every end, and how many at a time. */
#include "daemon/janitor.h"
#include "session/auth/exchange.h"
#include "session/login/drop_silent_logins.h"
#include "session/lookup/auth_query.h"
#include "session/pool/lookup.h"
#include "session/work/control.h"
#include "support/fakes/fake_login.h"
#include "support/postgres/fake_postgres.h"
#include "wire/message.h"
#include "wire/startup.h"
#include "wire/writer.h"

static struct pool *asking; /* where users of `db` are looked up */

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
	asking = fake_pool("db", "asker");
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

static struct actor *come_to(const char *database, const char *user)
{
	struct actor *client = fake_accept(-1);

	say_startup(client, PROTOCOL_3_0, "user", user, "database", database, NULL);
	return client;
}

static struct actor *come(const char *user)
{
	/* Known to its pool beforehand, so that nobody has to wait for the welcome. */
	fake_pool("db", user);
	return come_to("db", user);
}

static void write_value(struct buffer *out, const char *value)
{
	writer_int32(out, value ? (uint32_t)strlen(value) : UINT32_MAX);
	if (value)
		writer_bytes(out, value, strlen(value));
}

static void write_row(struct buffer *out, const char *name, const char *secret)
{
	const size_t mark = writer_begin(out, PQ_DATA_ROW);

	writer_int16(out, 2);
	write_value(out, name);
	write_value(out, secret);
	writer_end(out, mark);
}

static void write_start(struct buffer *out)
{
	buffer_init(out);
	letters_write(out, SERVER_SPEAKS, "12");
	letters_write_description(out, 2);
}

static void answer_nobody(struct actor *server)
{
	struct buffer out;

	write_start(&out);
	letters_write(&out, SERVER_SPEAKS, "CZ");
	say_buffer(server, &out);
}

static void answer(struct actor *server, const char *name, const char *secret)
{
	struct buffer out;

	write_start(&out);
	write_row(&out, name, secret);
	letters_write(&out, SERVER_SPEAKS, "CZ");
	say_buffer(server, &out);
}

/* The server that was launched last lets us in. */
static void let_in(struct actor *server)
{
	assert_non_null(server);
	fake_connected(server, 0);
	assert_heard(server, "^");
	say(server, "RKZ");
}

/* The server was asked for this user: nothing else is pending on it. */
static void assert_asked(struct actor *server, const char *user)
{
	assert_heard(server, "PBDES");
	assert_state(server, SERVER_LOOKING_UP);
	assert_string_equal(actor_server(server)->lookup->user, user);
}

#define assert_config_error(client) assert_told(client, "08P01", "bouncer config error")

static const struct user *known(const char *name)
{
	return registry_find_user(&fake_registry, name);
}

/* --- what is asked ------------------------------------------------------------------------ */

/* A name or a text inside of what the server was sent. */
static void assert_sent(const struct actor *server, const char *text)
{
	size_t length;
	const uint8_t *sent = scripted_output(server->script, &length);

	if (!memmem(sent, length, text, strlen(text)))
		fail_msg("'%s' was not sent", text);
}

static void test_a_user_in_no_file_is_looked_up(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice");

	(void)state;
	assert_state(client, CLIENT_LOOKING_UP);
	assert_asked(server, "alice");
	assert_sent(server, "select asked");
	assert_heard(client, "");
	answer(server, "alice", "secret");
	assert_heard(client, "RKZ");
	assert_state(client, CLIENT_IDLE);
	assert_state(server, SERVER_IDLE);
	assert_string_equal(actor_client(client)->user->name, "alice");
	assert_int_equal(known("alice")->clients, 1);
	assert_string_equal(
		pool_secret(registry_find_pool(actor_client(client)->database, known("alice"))),
		"secret");
	assert_true(fake_logged("login attempt: db=db user=alice"));
}

static void test_the_question_is_one_parameter_of_no_type_in_five_messages(void **state)
{
	static const char question[] = "P\0\0\0\x14\0select asked\0\0\0"
				       "B\0\0\0\x15\0\0\0\0\0\1\0\0\0\5alice\0\0"
				       "D\0\0\0\6P\0"
				       "E\0\0\0\x9\0\0\0\0\0"
				       "S\0\0\0\4";
	struct actor *server = fake_server(asking);
	size_t length;

	(void)state;
	come("alice");
	assert_memory_equal(
		scripted_output(server->script, &length), question, sizeof(question) - 1);
	assert_int_equal(length, sizeof(question) - 1);
}

static void test_users_in_the_file_are_not_looked_up(void **state)
{
	struct actor *server = fake_server(asking), *client = come("filed");

	(void)state;
	assert_heard(server, "");
	assert_heard(client, "RKZ");
}

static void test_without_an_auth_user_nobody_is_looked_up(void **state)
{
	struct actor *server = fake_server(asking);

	(void)state;
	fake_set("auth_user", "");
	assert_told(come_to("db", "alice"), "28000", "\"trust\" authentication failed");
	assert_heard(server, "");
}

static void test_an_entry_has_its_own_user_query_and_place(void **state)
{
	struct actor *server = fake_server(fake_pool("users", "owner"));
	struct actor *client = come_to("own", "alice");

	(void)state;
	assert_asked(server, "alice");
	assert_sent(server, "select own");
	answer(server, "alice", "secret");
	assert_state(client, CLIENT_WELCOMING);
}

static void test_the_global_place_is_used_by_all_others(void **state)
{
	struct actor *server = fake_server(fake_pool("users", "asker"));
	struct actor *here = fake_server(asking);

	(void)state;
	fake_set("auth_dbname", "users");
	come("alice");
	assert_asked(server, "alice");
	assert_heard(here, "");
}

static void test_a_place_that_does_not_exist_is_a_fault_of_the_configuration(void **state)
{
	(void)state;
	assert_config_error(come_to("lost", "alice"));
	assert_true(fake_logged("authentication database \"nowhere\" is not configured."));
}

static void test_the_console_is_no_place(void **state)
{
	static const char line[] =
		"cannot use the reserved \"pgbouncer\" database as an auth_dbname";

	(void)state;
	assert_config_error(come_to("taboo", "alice"));
	assert_true(fake_logged(line));
	assert_config_error(come_to("pgbouncer", "clerk"));
}

static void test_a_console_login_is_looked_up_at_the_global_place(void **state)
{
	struct actor *server = fake_server(fake_pool("users", "asker"));
	struct actor *client, *stranger;

	(void)state;
	fake_set("admin_users", "chief");
	fake_set("auth_dbname", "users");
	client = come_to("pgbouncer", "chief");
	answer(server, "chief", "secret");
	assert_state(client, CLIENT_CONSOLE);
	assert_true(actor_client(client)->admin);
	assert_false(actor_link(client)->stream.paused);
	stranger = come_to("pgbouncer", "alice");
	answer(server, "alice", "secret");
	assert_told(stranger, "08P01", "not allowed");
}

static void test_a_disabled_place_is_told_by_its_name(void **state)
{
	(void)state;
	registry_find_database(&fake_registry, "users")->disabled = true;
	assert_told(come_to("own", "alice"), "55000",
		"authentication database \"users\" is disabled");
}

static void test_a_place_is_made_from_the_template(void **state)
{
	struct actor *client = come_to("fresh", "alice"), *server = fake_launched();

	(void)state;
	assert_state(client, CLIENT_LOOKING_UP);
	assert_non_null(registry_find_database(&fake_registry, "fresh"));
	assert_true(fake_logged("registered new auto-database: fresh"));
	let_in(server);
	assert_asked(server, "alice");
}

static void test_an_unknown_database_is_told_by_the_ordinary_refusal(void **state)
{
	(void)state;
	assert_told(come_to("nothing", "alice"), "28000", "\"trust\" authentication failed");
}

static void test_a_name_that_no_database_can_have_is_not_looked_up(void **state)
{
	char name[80];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[64] = '\0';
	assert_told(come_to(name, "alice"), "28000", "\"trust\" authentication failed");
}

/* --- the answer --------------------------------------------------------------------------- */

static void test_the_name_in_the_answer_is_who_it_is(void **state)
{
	struct actor *server = fake_server(asking), *client;

	(void)state;
	fake_pool("db", "bob");
	client = come_to("db", "alice");
	answer(server, "bob", "secret");
	assert_heard(client, "RKZ");
	assert_string_equal(actor_client(client)->user->name, "bob");
	assert_string_equal(actor_link(client)->pool->user->name, "bob");
	assert_null(known("alice"));
	assert_int_equal(known("bob")->clients, 1);
}

static void test_a_long_name_is_cut(void **state)
{
	struct actor *server = fake_server(asking), *client = come_to("db", "alice");
	char name[201];

	(void)state;
	memset(name, 'n', 200);
	name[200] = '\0';
	answer(server, name, "secret");
	assert_int_equal(strlen(actor_client(client)->user->name), CLIENT_USER_NAME_MAX);
}

static void test_no_row_is_no_such_user(void **state)
{
	struct actor *server = fake_server(asking), *client = come_to("db", "ghost");

	(void)state;
	answer_nobody(server);
	assert_told(client, "28000", "no such user");
	assert_true(fake_logged("login failed: db=db user=ghost"));
	assert_null(known("ghost"));
	assert_state(server, SERVER_IDLE);
}

static void test_of_several_rows_the_last_one_counts(void **state)
{
	struct actor *server = fake_server(asking), *client;
	struct buffer out;

	(void)state;
	fake_pool("db", "bob");
	client = come_to("db", "alice");
	write_start(&out);
	write_row(&out, "eve", "first");
	write_row(&out, "bob", "last");
	letters_write(&out, SERVER_SPEAKS, "CZ");
	say_buffer(server, &out);
	assert_heard(client, "RKZ");
	assert_string_equal(actor_client(client)->user->name, "bob");
	assert_string_equal(pool_secret(actor_link(client)->pool), "last");
}

static void test_an_answer_may_come_byte_by_byte_with_notices_in_it(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice");
	struct buffer out;

	(void)state;
	buffer_init(&out);
	letters_write(&out, SERVER_SPEAKS, "N1SA2");
	letters_write_description(&out, 2);
	letters_write(&out, SERVER_SPEAKS, "N");
	write_row(&out, "alice", "secret");
	letters_write(&out, SERVER_SPEAKS, "SCNZ");
	for (size_t i = 0; i < out.length; i++) {
		assert_heard(client, "");
		say_bytes(server, out.data + i, 1);
	}
	buffer_free(&out);
	assert_heard(client, "RKZ");
	assert_state(server, SERVER_IDLE);
}

static void assert_broken_by(const char *before, unsigned columns, const char *after)
{
	struct actor *server = fake_server(asking), *client = come_to("db", "alice");
	struct buffer out;

	buffer_init(&out);
	letters_write(&out, SERVER_SPEAKS, before);
	if (columns > 0)
		letters_write_description(&out, columns);
	letters_write(&out, SERVER_SPEAKS, after);
	say_buffer(server, &out);
	assert_config_error(client);
	assert_gone(server);
	assert_int_equal(asking->lookups_running, 0);
}

static void test_answers_to_another_question_close_the_server(void **state)
{
	(void)state;
	assert_broken_by("12", 1, "CZ");
	assert_broken_by("12", 3, "CZ");
	assert_broken_by("12", 2, "D"); /* of one column */
	assert_broken_by("12n", 0, "CZ"); /* no SELECT */
	assert_broken_by("12", 0, "CZ");
	assert_broken_by("12", 2, "Z"); /* cut */
	assert_broken_by("2", 0, "");
	assert_broken_by("1", 2, "");
	assert_broken_by("12", 2, "CC");
	assert_broken_by("12", 2, "C>"); /* left in a transaction */
	assert_broken_by("12", 2, "T");
	assert_broken_by("1G", 0, "");
	assert_broken_by("R", 0, "");
	assert_broken_by("Z", 0, "");
}

static void assert_row_breaks(const void *row, size_t length)
{
	struct actor *server = fake_server(asking), *client = come_to("db", "alice");
	struct buffer out;

	write_start(&out);
	writer_message(&out, PQ_DATA_ROW, row, length);
	say_buffer(server, &out);
	assert_config_error(client);
	assert_gone(server);
}

#define ASSERT_ROW_BREAKS(row) assert_row_breaks(row, sizeof(row) - 1)

static void test_rows_that_cannot_be_meant_close_the_server(void **state)
{
	(void)state;
	ASSERT_ROW_BREAKS("\0\2\xff\xff\xff\xff\0\0\0\1x"); /* no name */
	ASSERT_ROW_BREAKS("\0\2\0\0\0\0\0\0\0\1x"); /* an empty one */
	ASSERT_ROW_BREAKS("\0\2\0\0\0\1");
	ASSERT_ROW_BREAKS("\0\2\0\0\0\1a\x7f\xff\xff\xff");
	ASSERT_ROW_BREAKS("\0\2\0\0\0\2a\0\0\0\0\1x");
	ASSERT_ROW_BREAKS("\0\2\0\0\0\1a\0\0\0\2x\0");
	ASSERT_ROW_BREAKS("\0\3\0\0\0\1a\0\0\0\1x\0\0\0\1y");
	ASSERT_ROW_BREAKS("");
}

static void test_a_row_longer_than_any_secret_closes_the_server(void **state)
{
	struct actor *server = fake_server(asking), *client = come_to("db", "alice");
	struct buffer out;
	size_t mark;

	(void)state;
	write_start(&out);
	mark = writer_begin(&out, PQ_DATA_ROW);
	writer_int16(&out, 2);
	write_value(&out, "alice");
	writer_int32(&out, 1 << 20);
	memset(buffer_extend(&out, 1 << 20), 'x', 1 << 20);
	writer_end(&out, mark);
	/* It need not even come. */
	say_bytes(server, out.data, 1000);
	buffer_free(&out);
	assert_config_error(client);
	assert_gone(server);
}

static void test_a_long_secret_is_kept_whole(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice");
	char *secret = malloc(60001);

	(void)state;
	memset(secret, 's', 60000);
	secret[60000] = '\0';
	answer(server, "alice", secret);
	assert_heard(client, "RKZ");
	assert_string_equal(pool_secret(actor_link(client)->pool), secret);
	free(secret);
}

static void test_an_error_is_for_the_log_alone(void **state)
{
	struct actor *server = fake_server(asking), *client = come_to("db", "alice");

	(void)state;
	say_error(server, "42P01", "relation does not exist");
	assert_config_error(client);
	assert_gone(server);
	assert_true(fake_logged("S: error in auth_query: FATAL: relation does not exist"));
}

static void test_what_comes_behind_the_answer_makes_the_server_useless(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice");
	struct buffer out;

	(void)state;
	write_start(&out);
	write_row(&out, "alice", "secret");
	letters_write(&out, SERVER_SPEAKS, "CZD");
	say_buffer(server, &out);
	assert_heard(client, "RKZ");
	assert_gone(server);
}

/* --- secrets ------------------------------------------------------------------------------ */

static void test_the_secret_in_the_answer_is_the_one_that_is_right(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice");

	(void)state;
	answer(server, "alice", "secret");
	assert_heard(client, "R");
	say_password(client, "secret");
	assert_heard(client, "RKZ");
	client = come("alice");
	answer(server, "alice", "secret");
	assert_heard(client, "R");
	say_password(client, "sesame");
	assert_told(client, "28P01", "password authentication failed");
}

/* CVE-2025-2291: no word stands for "there is none". */
static void test_no_password_is_right_where_there_is_no_secret(void **state)
{
	static const char *const guesses[] = {"x", "NULL", "null", "alice", "md5", "\\N"};
	static const char *const secrets[] = {NULL, ""};
	struct actor *server = fake_server(asking);

	(void)state;
	for (size_t i = 0; i < COUNT(guesses) * COUNT(secrets); i++) {
		struct actor *client = come("alice");

		answer(server, "alice", secrets[i % 2]);
		assert_heard(client, "R");
		say_password(client, guesses[i / 2]);
		assert_told(client, "28P01", "password authentication failed");
	}
}

static void test_who_has_no_secret_is_still_known(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice");

	(void)state;
	answer(server, "alice", NULL);
	assert_heard(client, "RKZ");
	assert_string_equal(pool_secret(actor_link(client)->pool), "");
}

static void test_an_early_password_waits_for_the_answer(void **state)
{
	struct actor *server = fake_server(asking), *client = fake_accept(-1);
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
	letters_write(&out, CLIENT_SPEAKS, "p");
	say_buffer(client, &out);
	assert_state(client, CLIENT_LOOKING_UP);
	answer(server, "alice", "secret");
	assert_heard(client, "RRKZ");
	assert_state(client, CLIENT_IDLE);
	assert_false(actor_link(client)->stream.paused);
}

static void test_a_query_behind_the_startup_is_answered_after_the_look_up(void **state)
{
	struct actor *server = fake_server(asking), *client = fake_accept(-1), *working;
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
	letters_write(&out, CLIENT_SPEAKS, "Q");
	say_buffer(client, &out);
	answer(server, "alice", "secret");
	assert_heard(working, "Q");
	say(working, "CZ");
	assert_heard(client, "RKZCZ");
}

static void test_a_secret_that_changed_replaces_the_old_one_and_its_keys(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice");
	struct pool *pool = fake_pool("db", "alice");
	struct credential *first;

	(void)state;
	answer(server, "alice", "secret");
	say_password(client, "secret");
	first = pool->credential;
	credential_keys(first)->client_key_known = true;
	client = come("alice");
	answer(server, "alice", "secret");
	assert_ptr_equal(pool->credential, first);
	say_password(client, "secret");
	assert_ptr_equal(pool->credential, first);
	/* Nobody has to have proved it. */
	client = come("alice");
	answer(server, "alice", "changed");
	assert_string_equal(pool_secret(pool), "changed");
	assert_null(pool_keys(pool));
}

static void test_a_forced_users_secret_is_not_the_clients(void **state)
{
	struct actor *server = fake_server(fake_pool("forced", "asker"));
	struct pool *pool = fake_pool("forced", "carol");
	struct actor *client = come_to("forced", "alice");

	(void)state;
	answer(server, "alice", "secret");
	assert_heard(client, "RKZ");
	assert_ptr_equal(actor_link(client)->pool, pool);
	assert_null(pool_secret(pool));
}

static void test_a_login_by_the_file_uses_the_file_again(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice");
	struct pool *pool = fake_pool("db", "alice");

	(void)state;
	answer(server, "alice", "fetched");
	assert_heard(client, "RKZ");
	fake_user("alice", "filed");
	assert_string_equal(pool_secret(pool), "fetched");
	client = come("alice");
	assert_heard(client, "RKZ");
	assert_string_equal(pool_secret(pool), "filed");
}

/* All to whom a secret was told together wait for one derivation, whoever asked for it. */
static void test_keys_of_a_plain_secret_are_derived_once(void **state)
{
	static const char first[] = "SCRAM-SHA-256\0\0\0\0\x0en,,n=,r=abcdef";
	struct actor *clients[3] = {come("alice"), come("alice"), come("alice")};
	struct actor *server = fake_launched();

	(void)state;
	fake_hold_up_helper();
	let_in(server);
	answer(server, "alice", "secret");
	for (int i = 0; i < 3; i++) {
		struct buffer out;

		assert_heard(clients[i], "R");
		buffer_init(&out);
		writer_password(&out, first, sizeof(first) - 1);
		say_buffer(clients[i], &out);
		assert_heard(clients[i], "R");
		assert_ptr_equal(exchange_keys(actor_client(clients[i])),
			exchange_keys(actor_client(clients[0])));
	}
	assert_int_equal(helper_pending(fake_registry.derivations), 2); /* one holds it up */
	leave(clients[0]);
	fake_wait_for_helper();
	for (int i = 1; i < 3; i++) {
		assert_true(exchange_keys(actor_client(clients[i]))->verifier_known);
		assert_false(actor_client(clients[i])->login->deriving);
	}
}

/* --- users, counted and forgotten --------------------------------------------------------- */

static void test_a_user_counts_by_the_name_in_the_answer(void **state)
{
	struct actor *server = fake_server(asking), *client, *another;

	(void)state;
	fake_pool("db", "limited");
	client = come_to("db", "one");
	answer(server, "limited", "secret");
	assert_heard(client, "RKZ");
	another = come_to("db", "two");
	assert_state(another, CLIENT_LOOKING_UP);
	answer(server, "limited", "secret");
	assert_told(
		another, "53300", "client connections exceeded (max_user_client_connections)");
	assert_int_equal(known("limited")->clients, 1);
}

static void test_a_user_with_an_entry_counts_from_the_start_and_once(void **state)
{
	struct actor *server = fake_server(asking), *client = come("listed");

	(void)state;
	assert_int_equal(known("listed")->clients, 1);
	assert_told(come("listed"), "53300",
		"client connections exceeded (max_user_client_connections)");
	answer(server, "listed", "secret");
	assert_heard(client, "RKZ");
	assert_int_equal(known("listed")->clients, 1);
	leave(client);
	assert_int_equal(known("listed")->clients, 0);
	client = come("listed");
	fake_pool("db", "alice");
	answer(server, "alice", "secret");
	assert_heard(client, "RKZ");
	assert_int_equal(known("listed")->clients, 0);
	assert_int_equal(known("alice")->clients, 1);
}

static void test_a_thousand_names_leave_nothing_behind(void **state)
{
	struct actor *server = fake_server(asking);
	const unsigned users = registry_count_users(&fake_registry);
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		struct actor *client;

		snprintf(name, sizeof(name), "user%u", i);
		client = come_to("db", name);
		answer(server, name, "secret");
		assert_heard(client, "R");
		assert_non_null(known(name));
		leave(client);
		assert_null(known(name));
	}
	assert_int_equal(registry_count_users(&fake_registry), users);
	assert_int_equal(asking->looking_up, 0);
}

/* --- how many at a time ------------------------------------------------------------------- */

static void test_logins_of_one_turn_share_what_they_ask(void **state)
{
	struct actor *clients[3], *other, *server;

	(void)state;
	for (int i = 0; i < 3; i++)
		clients[i] = come("alice");
	other = come("bob");
	assert_int_equal(asking->lookups_waiting, 2);
	assert_int_equal(asking->looking_up, 4);
	server = fake_launched();
	let_in(server);
	assert_asked(server, "alice");
	answer(server, "alice", "secret");
	for (int i = 0; i < 3; i++)
		assert_heard(clients[i], "RKZ");
	assert_asked(server, "bob");
	answer(server, "bob", "secret");
	assert_heard(other, "RKZ");
	assert_int_equal(known("alice")->clients, 3);
}

/* "For every login": a query that has been sent may have seen less than who comes now should. */
static void test_who_comes_later_is_looked_up_anew(void **state)
{
	struct actor *server = fake_server(asking), *client = come("alice"), *later;

	(void)state;
	assert_asked(server, "alice");
	later = come("alice");
	answer(server, "alice", "secret");
	assert_heard(client, "RKZ");
	assert_heard(later, "");
	assert_asked(server, "alice");
	answer(server, "alice", "secret");
	assert_heard(later, "RKZ");
}

static void test_the_same_name_for_another_database_is_another_question(void **state)
{
	struct actor *one, *two, *server;
	struct pool *pool = fake_pool("users", "asker");

	(void)state;
	fake_set("auth_dbname", "users");
	one = come_to("db", "alice");
	two = come_to("forced", "alice");
	assert_state(one, CLIENT_LOOKING_UP);
	assert_state(two, CLIENT_LOOKING_UP);
	server = fake_launched();
	let_in(server);
	assert_heard(server, "Q"); /* its connect_query */
	say(server, "CZ");
	assert_ptr_equal(actor_link(server)->pool, pool);
	assert_asked(server, "alice");
	answer_nobody(server);
	assert_told(one, "28000", "no such user");
	assert_state(two, CLIENT_LOOKING_UP);
}

static void test_look_ups_have_a_quarter_of_the_pool(void **state)
{
	struct actor *servers[3] = {
		fake_server(asking), fake_server(asking), fake_server(asking)};
	struct actor *worker = fake_client(asking);

	(void)state;
	come("alice");
	come("bob");
	come("eve");
	assert_int_equal(asking->lookups_running, 1);
	assert_int_equal(asking->lookups_waiting, 2);
	/* The others are not kept from clients. */
	say(worker, "Q");
	assert_state(worker, CLIENT_PAIRED);
	assert_state(servers[0], SERVER_IDLE);
	assert_null(fake_launched());
}

static void test_a_small_pool_can_look_up_too_and_a_boundless_one_eight_times(void **state)
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

static void test_who_has_waited_longer_is_served_first(void **state)
{
	struct actor *first = fake_client(asking), *last = fake_client(asking), *server;

	(void)state;
	fake_set("query_wait_timeout", "0");
	say(first, "Q");
	fake_advance(USEC_PER_SEC);
	come("alice");
	fake_advance(USEC_PER_SEC);
	say(last, "Q");
	server = fake_launched();
	let_in(server);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_heard(first, "CZ");
	assert_string_equal(actor_server(server)->lookup->user, "alice");
	assert_heard(server, "QPBDES");
	say(server, "CZ");
	answer(server, "alice", "secret");
	assert_state(last, CLIENT_PAIRED);
}

static void test_a_look_up_opens_a_server_of_its_own(void **state)
{
	struct actor *client = come("alice"), *server = fake_launched();

	(void)state;
	assert_non_null(server);
	assert_ptr_equal(actor_link(server)->pool, asking);
	let_in(server);
	assert_asked(server, "alice");
	answer(server, "alice", "secret");
	assert_heard(client, "RKZ");
}

/* --- servers that clients had ------------------------------------------------------------- */

static struct actor *touched_server(struct pool *pool)
{
	struct actor *server = fake_server(pool), *client = fake_client(pool);

	say(client, "Q");
	say(server, "CZ");
	hear(server);
	assert_state(server, SERVER_IDLE);
	assert_true(actor_server(server)->touched);
	return server;
}

static void test_a_server_that_a_client_had_is_made_new_first(void **state)
{
	struct actor *server = touched_server(asking), *client = come("alice");

	(void)state;
	assert_heard(server, "QPBDES");
	assert_sent(server, "DISCARD ALL");
	say(server, "SCZ");
	assert_false(actor_server(server)->touched);
	answer(server, "alice", "secret");
	assert_heard(client, "RKZ");
	/* It is still so for the next. */
	come("bob");
	assert_asked(server, "bob");
}

static void test_making_it_new_repeats_what_each_connection_begins_with(void **state)
{
	struct actor *server = touched_server(fake_pool("users", "owner"));
	struct actor *client = come_to("own", "alice");

	(void)state;
	assert_heard(server, "QQPBDES");
	assert_sent(server, "select ready");
	say(server, "CZ");
	assert_true(actor_server(server)->touched);
	say(server, "TDCZ");
	assert_false(actor_server(server)->touched);
	answer(server, "alice", "secret");
	assert_state(client, CLIENT_WELCOMING);
}

static void test_one_that_cannot_be_made_new_is_closed_and_another_asked(void **state)
{
	struct actor *good = fake_server(asking), *bad = touched_server(asking);
	struct actor *client = come("alice");

	(void)state;
	assert_heard(bad, "QPBDES");
	say(bad, "E");
	assert_gone(bad);
	assert_asked(good, "alice");
	answer(good, "alice", "secret");
	assert_heard(client, "RKZ");
}

static void test_one_that_is_not_idle_after_it_is_closed_and_another_asked(void **state)
{
	struct actor *good = fake_server(asking), *bad = touched_server(asking);

	(void)state;
	come("alice");
	say(bad, "C>");
	assert_gone(bad);
	assert_asked(good, "alice");
}

/* F41: whatever the client asks for, its parameters are its own. */
static void test_no_parameter_of_the_client_is_set(void **state)
{
	struct actor *server = fake_server(asking), *client = fake_accept(-1);

	(void)state;
	fake_pool("db", "alice");
	say_startup(client, PROTOCOL_3_0, "user", "alice", "database", "db", "TimeZone", "Mars",
		"application_name", "'; drop table x; --", NULL);
	assert_asked(server, "alice");
	answer(server, "alice", "secret");
	assert_heard(server, "");
}

static void test_a_session_pool_resets_the_server_afterwards(void **state)
{
	struct actor *server, *client;

	(void)state;
	fake_set("pool_mode", "session");
	server = fake_server(asking);
	client = come("alice");
	hear(server);
	answer(server, "alice", "secret");
	assert_heard(client, "RKZ");
	assert_state(server, SERVER_RESETTING);
	assert_heard(server, "Q");
	say(server, "CZ");
	assert_state(server, SERVER_IDLE);
}

/* --- ends --------------------------------------------------------------------------------- */

static void test_the_server_goes_with_the_last_who_wants_to_know(void **state)
{
	struct actor *clients[2] = {come("alice"), come("alice")}, *server = fake_launched();

	(void)state;
	let_in(server);
	assert_asked(server, "alice");
	leave(clients[0]);
	assert_state(server, SERVER_LOOKING_UP);
	leave(clients[1]);
	assert_heard(server, "X");
	assert_gone(server);
	assert_int_equal(asking->looking_up, 0);
}

static void test_who_leaves_the_queue_takes_its_question_along(void **state)
{
	struct actor *client = come("alice");

	(void)state;
	vanish(client);
	assert_gone(client);
	assert_int_equal(asking->lookups_waiting, 0);
	assert_true(TAILQ_EMPTY(&asking->lookups));
}

static void test_a_server_that_was_dead_already_is_replaced_unnoticed(void **state)
{
	struct actor *other = fake_server(asking), *dead = fake_server(asking), *client;

	(void)state;
	fake_advance(USEC_PER_SEC);
	client = come("alice");
	assert_asked(dead, "alice");
	leave(dead);
	assert_asked(other, "alice");
	say_error(other, "57P01", "terminating connection due to administrator command");
	assert_state(client, CLIENT_LOOKING_UP);
	other = fake_launched();
	let_in(other);
	answer(other, "alice", "secret");
	assert_heard(client, "RKZ");
}

static void test_a_server_that_dies_in_its_answer_is_not_asked_again(void **state)
{
	struct actor *server = fake_server(asking), *client;

	(void)state;
	fake_advance(USEC_PER_SEC);
	client = come_to("db", "alice");
	say(server, "1");
	leave(server);
	assert_config_error(client);
}

static void test_a_new_server_that_dies_of_the_question_is_not_asked_again(void **state)
{
	struct actor *client = come_to("db", "alice"), *server = fake_launched();

	(void)state;
	let_in(server);
	assert_asked(server, "alice");
	leave(server);
	assert_config_error(client);
}

static void test_a_server_that_takes_nothing_is_replaced(void **state)
{
	struct actor *other = fake_server(asking), *broken = fake_server(asking);

	(void)state;
	fake_advance(USEC_PER_SEC);
	scripted_break(broken->script);
	come("alice");
	assert_gone(broken);
	assert_asked(other, "alice");
}

static void test_those_who_wait_hear_why_the_server_let_nobody_in(void **state)
{
	struct actor *client = come("alice"), *server = fake_launched(), *next;

	(void)state;
	fake_connected(server, 0);
	say_error(server, "28000", "role \"asker\" does not exist");
	assert_told(client, "28000", "role \"asker\" does not exist");
	next = come("alice");
	assert_told(next, "08006",
		"server login has been failing, cached error: role \"asker\" does not exist "
		"(server_login_retry)");
}

static void test_those_who_wait_survive_a_server_that_is_starting_up(void **state)
{
	struct actor *client = come("alice"), *server = fake_launched();

	(void)state;
	fake_connected(server, 0);
	say_error(server, "57P03", "the database system is starting up");
	assert_state(client, CLIENT_LOOKING_UP);
}

static void test_the_queue_has_the_limits_of_waiting_clients(void **state)
{
	struct actor *client;

	(void)state;
	fake_set("client_login_timeout", "1");
	fake_set("query_wait_timeout", "5");
	client = come_to("db", "alice");
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_told(client, "57014", "query_wait_timeout");
	fake_set("query_timeout", "2");
	client = come_to("db", "alice");
	fake_advance(3 * USEC_PER_SEC);
	assert_told(client, "57014", "query_timeout");
}

static void test_a_query_that_hangs_has_the_limit_of_a_login(void **state)
{
	struct actor *server, *client;

	(void)state;
	fake_set("client_login_timeout", "5");
	fake_set("query_wait_timeout", "1");
	server = fake_server(asking);
	client = come_to("db", "alice");
	assert_asked(server, "alice");
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_told(client, "57014", "client_login_timeout");
	assert_gone(server);
}

static void test_time_in_the_queue_is_no_time_of_the_login(void **state)
{
	struct actor *client, *server;

	(void)state;
	fake_set("client_login_timeout", "5");
	client = come("alice");
	fake_advance(20 * USEC_PER_SEC);
	server = fake_launched();
	let_in(server);
	assert_asked(server, "alice");
	fake_advance(4 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	assert_told(client, "57014", "client_login_timeout");
}

static void test_query_timeout_ends_the_query_and_no_other_limit_does(void **state)
{
	struct janitor janitor;
	struct actor *server, *client;

	(void)state;
	fake_set("transaction_timeout", "1");
	fake_set("idle_transaction_timeout", "1");
	fake_set("query_timeout", "3");
	server = fake_server(asking);
	client = come_to("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	fake_advance(2 * USEC_PER_SEC);
	assert_state(client, CLIENT_LOOKING_UP);
	fake_advance(2 * USEC_PER_SEC);
	janitor_stop(&janitor);
	assert_gone(server);
	assert_config_error(client);
	assert_true(fake_logged("closing because: query timeout"));
}

static void test_a_pause_holds_up_the_queue(void **state)
{
	struct actor *server = fake_server(asking), *client;

	(void)state;
	asking->database->paused = true;
	client = come("alice");
	assert_state(client, CLIENT_LOOKING_UP);
	assert_heard(server, "");
	control_resume(&fake_registry, asking->database);
	fake_turn();
	assert_asked(server, "alice");
	assert_false(control_is_quiet(&fake_registry, asking->database));
	answer(server, "alice", "secret");
	assert_heard(client, "RKZ");
}

static void test_kill_ends_all_who_ask_there(void **state)
{
	struct actor *server = fake_server(fake_pool("users", "owner"));
	struct actor *running, *queued;
	struct database *users = registry_find_database(&fake_registry, "users");

	(void)state;
	fake_set("default_pool_size", "1");
	running = come_to("own", "alice");
	queued = come_to("own", "bob");
	assert_asked(server, "alice");
	control_kill(&fake_registry, users, true);
	fake_turn();
	assert_config_error(running);
	assert_told(queued, "57P01", "database removed");
	assert_gone(server);
}

static void test_one_of_them_can_be_killed(void **state)
{
	struct actor *client = come("alice");

	(void)state;
	assert_true(control_kill_client(&fake_registry, actor_link(client)->id));
	fake_turn();
	assert_told(client, "57P01", "admin forced disconnect");
}

static void test_a_shutdown_for_servers_lets_nobody_ask(void **state)
{
	struct janitor janitor;
	struct actor *client = come_to("db", "alice");

	(void)state;
	fake_registry.process->shutdown = SHUTDOWN_WAIT_FOR_SERVERS;
	assert_told(come_to("db", "bob"), "57P01", "server shutting down");
	janitor_start(&janitor, &fake_registry, NULL);
	fake_advance(USEC_PER_SEC);
	janitor_stop(&janitor);
	assert_told(client, "57P01", "server shutting down");
	fake_registry.process->shutdown = SHUTDOWN_NONE;
}

static void test_a_pool_that_is_asked_in_is_not_idle(void **state)
{
	struct janitor janitor;
	struct actor *client;

	(void)state;
	fake_set("pool_idle_timeout", "1");
	fake_set("query_wait_timeout", "0");
	asking->database->paused = true;
	client = come_to("db", "alice");
	janitor_start(&janitor, &fake_registry, NULL);
	fake_advance(5 * USEC_PER_SEC);
	janitor_stop(&janitor);
	assert_state(client, CLIENT_LOOKING_UP);
	assert_non_null(registry_find_pool(asking->database, known("asker")));
}

/* It is not the client for whom the login waits. */
static void test_who_is_looked_up_makes_no_room_for_others(void **state)
{
	struct actor *client = come_to("db", "alice");

	(void)state;
	fake_advance(10 * USEC_PER_SEC);
	assert_false(
		drop_silent_logins_one(&fake_registry, NULL, CLIENT_REJECTED_MAX_CLIENT_CONN));
	assert_state(client, CLIENT_LOOKING_UP);
}

static void test_the_reserve_is_for_look_ups_too(void **state)
{
	struct actor *busy = fake_client(asking);

	(void)state;
	fake_set("reserve_pool_size", "1");
	fake_set("reserve_pool_timeout", "2");
	for (int i = 0; i < 4; i++)
		fake_server(asking);
	say(busy, "Q");
	for (int i = 0; i < 3; i++)
		say(fake_client(asking), "Q");
	come("alice");
	fake_advance(USEC_PER_SEC);
	pool_needs_work(asking);
	fake_turn();
	assert_null(fake_launched());
	fake_advance(2 * USEC_PER_SEC);
	pool_needs_work(asking);
	fake_turn();
	assert_non_null(fake_launched());
	assert_true(fake_logged("taking connection from reserve_pool"));
}

static void test_a_server_that_has_to_be_checked_is_checked_for_a_look_up(void **state)
{
	struct actor *server = fake_server(asking);

	(void)state;
	server_enter(actor_server(server), SERVER_STALE);
	fake_advance(60 * USEC_PER_SEC);
	come("alice");
	assert_state(server, SERVER_CHECKING);
	assert_heard(server, "Q");
	say(server, "TDCZ");
	assert_asked(server, "alice");
}

int main(void)
{
#define TRUST(name) cmocka_unit_test_setup_teardown(test_##name, start_trust, fake_end)
#define PLAIN(name) cmocka_unit_test_setup_teardown(test_##name, start_plain, fake_end)
#define SCRAM(name) cmocka_unit_test_setup_teardown(test_##name, start_scram, fake_end)
	const struct CMUnitTest tests[] = {
		TRUST(a_user_in_no_file_is_looked_up),
		TRUST(the_question_is_one_parameter_of_no_type_in_five_messages),
		TRUST(users_in_the_file_are_not_looked_up),
		TRUST(without_an_auth_user_nobody_is_looked_up),
		TRUST(an_entry_has_its_own_user_query_and_place),
		TRUST(the_global_place_is_used_by_all_others),
		TRUST(a_place_that_does_not_exist_is_a_fault_of_the_configuration),
		TRUST(the_console_is_no_place),
		TRUST(a_console_login_is_looked_up_at_the_global_place),
		TRUST(a_disabled_place_is_told_by_its_name),
		cmocka_unit_test_setup_teardown(
			test_a_place_is_made_from_the_template, start_with_template, fake_end),
		TRUST(an_unknown_database_is_told_by_the_ordinary_refusal),
		cmocka_unit_test_setup_teardown(
			test_a_name_that_no_database_can_have_is_not_looked_up,
			start_with_template, fake_end),
		TRUST(the_name_in_the_answer_is_who_it_is),
		TRUST(a_long_name_is_cut),
		TRUST(no_row_is_no_such_user),
		TRUST(of_several_rows_the_last_one_counts),
		TRUST(an_answer_may_come_byte_by_byte_with_notices_in_it),
		TRUST(answers_to_another_question_close_the_server),
		TRUST(rows_that_cannot_be_meant_close_the_server),
		TRUST(a_row_longer_than_any_secret_closes_the_server),
		TRUST(a_long_secret_is_kept_whole),
		TRUST(an_error_is_for_the_log_alone),
		TRUST(what_comes_behind_the_answer_makes_the_server_useless),
		PLAIN(the_secret_in_the_answer_is_the_one_that_is_right),
		PLAIN(no_password_is_right_where_there_is_no_secret),
		TRUST(who_has_no_secret_is_still_known),
		PLAIN(an_early_password_waits_for_the_answer),
		TRUST(a_query_behind_the_startup_is_answered_after_the_look_up),
		PLAIN(a_secret_that_changed_replaces_the_old_one_and_its_keys),
		TRUST(a_forced_users_secret_is_not_the_clients),
		TRUST(a_login_by_the_file_uses_the_file_again),
		SCRAM(keys_of_a_plain_secret_are_derived_once),
		TRUST(a_user_counts_by_the_name_in_the_answer),
		TRUST(a_user_with_an_entry_counts_from_the_start_and_once),
		PLAIN(a_thousand_names_leave_nothing_behind),
		TRUST(logins_of_one_turn_share_what_they_ask),
		TRUST(who_comes_later_is_looked_up_anew),
		TRUST(the_same_name_for_another_database_is_another_question),
		TRUST(look_ups_have_a_quarter_of_the_pool),
		TRUST(a_small_pool_can_look_up_too_and_a_boundless_one_eight_times),
		TRUST(who_has_waited_longer_is_served_first),
		TRUST(a_look_up_opens_a_server_of_its_own),
		TRUST(a_server_that_a_client_had_is_made_new_first),
		TRUST(making_it_new_repeats_what_each_connection_begins_with),
		TRUST(one_that_cannot_be_made_new_is_closed_and_another_asked),
		TRUST(one_that_is_not_idle_after_it_is_closed_and_another_asked),
		TRUST(no_parameter_of_the_client_is_set),
		TRUST(a_session_pool_resets_the_server_afterwards),
		TRUST(the_server_goes_with_the_last_who_wants_to_know),
		TRUST(who_leaves_the_queue_takes_its_question_along),
		TRUST(a_server_that_was_dead_already_is_replaced_unnoticed),
		TRUST(a_server_that_dies_in_its_answer_is_not_asked_again),
		TRUST(a_new_server_that_dies_of_the_question_is_not_asked_again),
		TRUST(a_server_that_takes_nothing_is_replaced),
		TRUST(those_who_wait_hear_why_the_server_let_nobody_in),
		TRUST(those_who_wait_survive_a_server_that_is_starting_up),
		TRUST(the_queue_has_the_limits_of_waiting_clients),
		TRUST(a_query_that_hangs_has_the_limit_of_a_login),
		TRUST(time_in_the_queue_is_no_time_of_the_login),
		TRUST(query_timeout_ends_the_query_and_no_other_limit_does),
		TRUST(a_pause_holds_up_the_queue),
		TRUST(kill_ends_all_who_ask_there),
		TRUST(one_of_them_can_be_killed),
		TRUST(a_shutdown_for_servers_lets_nobody_ask),
		TRUST(a_pool_that_is_asked_in_is_not_idle),
		TRUST(who_is_looked_up_makes_no_room_for_others),
		TRUST(the_reserve_is_for_look_ups_too),
		TRUST(a_server_that_has_to_be_checked_is_checked_for_a_look_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
