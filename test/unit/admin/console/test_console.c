/* SPDX-License-Identifier: ISC */
/* The console as its client sees it: messages in and messages out, on a scripted stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admin/console/actions.h"
#include "admin/console/commands.h"
#include "admin/console/console.h"
#include "admin/console/topics.h"
#include "base/clock.h"
#include "model/link_walk.h"
#include "session/link/close.h"
#include "session/rules/life.h"
#include "session/serving/client_session.h"
#include "session/serving/control.h"
#include "support/fakes/scripted_stream.h"
#include "wire/frame.h"
#include "wire/reader.h"
#include "wire/writer.h"

static const char config_text[] = "[databases]\n"
				  "one = host=127.0.0.1\n"
				  "two = host=127.0.0.1,127.0.0.2 pool_mode=statement\n"
				  "[pgbouncer]\n"
				  "logfile =\n";

static struct loop loop;
static struct process process;
static struct registry registry;
static unsigned reloads, shutdowns;
static bool reload_works;

static bool fake_reload(struct registry *with, char *report, size_t size)
{
	assert_ptr_equal(with, &registry);
	snprintf(report, size, "%s", "");
	reloads++;
	return reload_works;
}

static bool fake_set(
	struct registry *with, const char *key, const char *value, char *why, size_t size)
{
	assert_ptr_equal(with, &registry);
	snprintf(why, size, "%s", "");
	return strcmp(key, "verbose") == 0 && strcmp(value, "0") == 0;
}

static void fake_shutdown(struct registry *with, enum shutdown_mode mode, bool now)
{
	assert_ptr_equal(with, &registry);
	assert_true(now == (mode == SHUTDOWN_NONE));
	shutdowns++;
}

static struct actions actions = {fake_reload, fake_set, fake_shutdown};

/* Time passes with each look at the clock only: no slice ends since the machine is busy. */
static usec_t now, each_look;

static usec_t fake_clock(void)
{
	return now += each_look;
}

/* --- consoles ----------------------------------------------------------------------------- */

enum { CONSOLES = 4 };

static struct console {
	struct client_link *client;
	struct script *script;
	size_t at; /* end of the output that was looked at */
} consoles[CONSOLES];

static unsigned console_count;

static int start(void **state)
{
	struct problems problems = {0};
	struct snapshot *config = snapshot_parse(
		"test.ini", config_text, sizeof(config_text) - 1, NULL, &problems);

	(void)state;
	now = USEC_PER_SEC;
	each_look = 0;
	clock_set_source(fake_clock);
	problems_free(&problems);
	assert_non_null(config);
	process = (struct process){
		.console = console_hooks,
		.actions = &actions,
		.version = "PgBouncer 1.26.1 (pgusher 9.9.9)",
	};
	assert_true(loop_init(&loop, &process.clock));
	process_init(&process, &loop.random, config);
	registry = (struct registry){0};
	life_attach(&registry);
	assert_true(registry_init(&registry, &process, &loop));
	console_count = reloads = shutdowns = 0;
	reload_works = true;
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < console_count; i++) {
		if (!scripted_is_closed(consoles[i].script))
			client_close_for(consoles[i].client, REASON_CLIENT_UNEXPECTED_EOF);
		scripted_free(consoles[i].script);
	}
	control_kill(&registry, NULL, false);
	loop_turn(&loop, false);
	assert_true(LIST_EMPTY(&registry.process->console_waits));
	registry_free(&registry);
	process_free(&process);
	loop_free(&loop);
	clock_set_source(NULL);
	return 0;
}

static struct console *open_console(bool admin)
{
	struct console *console = &consoles[console_count++];
	struct client_link *client = slab_take(&registry.clients);

	assert_non_null(client);
	console->script = scripted_open(&client->link.stream, &loop, &client_console_handlers);
	console->client = client;
	console->at = 0;
	client->link.kind = LINK_CLIENT;
	client->link.id = ++registry.process->last_id;
	link_walk_enroll(&registry, &client->link);
	client->link.connect_time = client->link.request_time = loop_now(&loop);
	TAILQ_INSERT_TAIL(&registry.logins, &client->link, place);
	registry.login_count++;
	limits_take_socket(&registry);
	client_enter(client, CLIENT_AUTHENTICATING);
	limits_take_user(client, registry.console_pool->user, true);
	limits_take_database(client, registry.console_pool->database, true);
	assert_true(cancel_keys_issue(&registry.process->cancel_keys, client, CANCEL_KEY_MIN,
		&registry.loop->random));
	client->link.pool = registry.console_pool;
	client->admin = admin;
	client_enter(client, CLIENT_CONSOLE);
	registry.process->console.begin(client);
	return console;
}

static void feed_query(struct console *console, const char *sql)
{
	struct buffer message = {0};

	writer_query(&message, sql);
	scripted_feed(console->script, message.data, message.length);
	buffer_free(&message);
}

static void turn(struct console *console)
{
	scripted_run(console->script);
	loop_turn(&loop, false);
}

/* The types of the messages that have come since the last look. */
static const char *new_types(struct console *console)
{
	static char types[4096];
	size_t length, count = 0;
	const uint8_t *output = scripted_output(console->script, &length);
	struct frame frame = {0};

	while (console->at < length) {
		assert_int_equal(
			frame_peek(output + console->at, length - console->at, 1 << 30, &frame),
			FRAME_WHOLE);
		assert_true(count + 1 < sizeof(types));
		types[count++] = (char)frame.type;
		console->at += frame.total;
	}
	types[count] = '\0';
	return types;
}

/* A field of the last ErrorResponse or NoticeResponse, or the tag of the last command. */
static const char *last_text(const struct console *console, uint8_t type, char field)
{
	size_t length, at = 0;
	const uint8_t *output = scripted_output(console->script, &length);
	const char *found = NULL;
	struct frame frame = {0};

	while (at < length) {
		struct reader reader;

		assert_int_equal(
			frame_peek(output + at, length - at, 1 << 30, &frame), FRAME_WHOLE);
		reader_init(&reader, frame_body(output + at), frame_body_size(&frame));
		at += frame.total;
		if (frame.type != type)
			continue;
		for (uint8_t code; (code = field ? reader_byte(&reader) : 1) != 0;) {
			const char *text = reader_string(&reader);

			if (!field || code == (uint8_t)field)
				found = text;
			if (!field)
				break;
		}
	}
	return found;
}

static const char *last_error(const struct console *console)
{
	return last_text(console, PQ_ERROR_RESPONSE, 'M');
}

static const char *last_tag(const struct console *console)
{
	return last_text(console, PQ_COMMAND_COMPLETE, 0);
}

static void ask(struct console *console, const char *sql)
{
	feed_query(console, sql);
	turn(console);
}

static void assert_refused(struct console *console, const char *sql, const char *text)
{
	new_types(console);
	ask(console, sql);
	assert_string_equal(new_types(console), "EZ");
	assert_string_equal(last_error(console), text);
}

static void assert_done(struct console *console, const char *sql, const char *tag)
{
	new_types(console);
	ask(console, sql);
	assert_string_equal(new_types(console), "CZ");
	assert_string_equal(last_tag(console), tag);
}

/* --- servers ------------------------------------------------------------------------------ */

static struct pool *pool_of(const char *database)
{
	return registry_open_pool(&registry, registry_find_database(&registry, database),
		registry_open_user(&registry, "alice"), TARGET_INHERIT);
}

/* A server in this list, without a connection. */
static struct server_link *add_server(
	struct pool *pool, enum server_state state, enum server_list list)
{
	struct server_link *server = slab_take(&registry.servers);

	assert_non_null(server);
	server->link.kind = LINK_SERVER;
	server->link.stream.loop = &loop;
	server->link.stream.fd = -1;
	server->link.id = ++registry.process->last_id;
	link_walk_enroll(&registry, &server->link);
	server->link.pool = pool;
	server->link.state = (uint8_t)state;
	TAILQ_INSERT_TAIL(&pool->servers[list], &server->link, place);
	pool->server_count[list]++;
	cap_take_server(pool);
	return server;
}

static struct server_link *add_busy_server(const char *database)
{
	return add_server(pool_of(database), SERVER_PAIRED, SERVERS_ACTIVE);
}

/* --- tests -------------------------------------------------------------------------------- */

static void test_welcome_has_its_parameters_in_order(void **state)
{
	struct console *console = open_console(true);
	size_t length;
	const char *output = (const char *)scripted_output(console->script, &length);

	(void)state;
	assert_string_equal(new_types(console), "RSSSSSSSKZ");
	assert_non_null(memmem(output, length, "server_version\0001.26.1/bouncer", 30));
}

static void test_commands_run_at_the_end_of_the_turn(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	new_types(console);
	feed_query(console, "SHOW VERSION");
	scripted_run(console->script);
	assert_string_equal(new_types(console), "");
	loop_turn(&loop, false);
	assert_string_equal(new_types(console), "TDCZ");
}

static void test_commands_of_one_write_are_answered_in_order(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	new_types(console);
	feed_query(console, "SHOW STATE");
	feed_query(console, "NONSENSE");
	feed_query(console, "RELOAD");
	turn(console);
	assert_string_equal(new_types(console), "TDDDCZEZCZ");
	assert_int_equal(reloads, 1);
}

static void test_commands_that_take_long_leave_turns_to_others(void **state)
{
	struct console *console = open_console(true), *other = open_console(true);

	(void)state;
	new_types(console);
	new_types(other);
	feed_query(console, "SHOW STATE");
	feed_query(console, "NONSENSE");
	feed_query(console, "RELOAD");
	each_look = 600; /* microseconds: the second command would begin after 1 ms */
	turn(console);
	assert_string_equal(new_types(console), "TDDDCZ");
	ask(other, "SHOW VERSION");
	assert_string_equal(new_types(other), "TDCZ");
	assert_string_equal(new_types(console), "EZ");
	assert_int_equal(reloads, 0);
	turn(console);
	assert_string_equal(new_types(console), "CZ");
	assert_int_equal(reloads, 1);
}

static void test_a_command_in_pieces_is_put_together(void **state)
{
	struct console *console = open_console(true);
	struct buffer message = {0};

	(void)state;
	new_types(console);
	writer_query(&message, "SHOW STATE");
	for (size_t i = 0; i < message.length; i++) {
		assert_string_equal(new_types(console), "");
		scripted_feed(console->script, message.data + i, 1);
		turn(console);
	}
	buffer_free(&message);
	assert_string_equal(new_types(console), "TDDDCZ");
}

static void test_what_came_with_the_login_is_run(void **state)
{
	static const char query[] = "Q\0\0\0\x0fSHOW STATE";
	struct console *console = open_console(true);

	(void)state;
	new_types(console);
	assert_true(link_hold(&console->client->link, query, sizeof(query)));
	loop_turn(&loop, false);
	assert_string_equal(new_types(console), "TDDDCZ");
	assert_null(console->client->link.held);
}

static void test_every_topic_fills_its_columns(void **state)
{
	struct console *console = open_console(true);
	const struct topic *topic;
	const char *purpose;
	char sql[64];

	(void)state;
	for (unsigned i = 0; topics_get(i, &topic, &purpose); i++) {
		const char *types;
		size_t count;

		if (topic->column_count == 0)
			continue;
		new_types(console);
		snprintf(sql, sizeof(sql), "SHOW %s", topic->name);
		ask(console, sql);
		types = new_types(console);
		count = strspn(types + 1, "D");
		assert_int_equal(types[0], 'T');
		assert_string_equal(types + 1 + count, "CZ");
		assert_string_equal(last_tag(console), "SHOW");
	}
}

static void assert_starts_with(const char *text, const char *start)
{
	assert_non_null(text);
	assert_true(strlen(text) > strlen(start));
	assert_memory_equal(text, start, strlen(start));
}

static void test_help_is_made_of_the_tables(void **state)
{
	struct console *console = open_console(false);

	(void)state;
	new_types(console);
	ask(console, "SHOW HELP;");
	assert_string_equal(new_types(console), "NCZ");
	assert_string_equal(last_text(console, PQ_NOTICE_RESPONSE, 'M'), "Console usage");
	assert_starts_with(last_text(console, PQ_NOTICE_RESPONSE, 'D'),
		"\n\tSHOW HELP|CONFIG|DATABASES|POOLS|CLIENTS|SERVERS|USERS|VERSION"
		"\n\tSHOW PEERS|PEER_POOLS"
		"\n\tSHOW FDS|SOCKETS|ACTIVE_SOCKETS|LISTS|MEM|STATE"
		"\n\tSHOW DNS_HOSTS|DNS_ZONES"
		"\n\tSHOW STATS|STATS_TOTALS|STATS_AVERAGES|TOTALS"
		"\n\tSET key = arg"
		"\n\tRELOAD"
		"\n\tPAUSE [<db>]"
		"\n\tRESUME [<db>]"
		"\n\tDISABLE <db>"
		"\n\tENABLE <db>"
		"\n\tRECONNECT [<db>]"
		"\n\tKILL [<db>]"
		"\n\tKILL_CLIENT <client_id>"
		"\n\tSUSPEND"
		"\n\tSHUTDOWN"
		"\n\tSHUTDOWN WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS"
		"\n\tWAIT_CLOSE [<db>]"
		"\n\tSHOW ");
}

static void test_help_has_the_purpose_of_each_topic_and_command(void **state)
{
	struct console *console = open_console(false);
	const struct topic *topic;
	const char *purpose, *detail;
	char line[192];

	(void)state;
	ask(console, "SHOW HELP");
	detail = last_text(console, PQ_NOTICE_RESPONSE, 'D');
	for (unsigned i = 0; topics_get(i, &topic, &purpose); i++) {
		snprintf(line, sizeof(line), "\n\tSHOW %s: ", topic->name);
		assert_non_null(strstr(detail, line));
		assert_non_null(purpose);
		assert_non_null(strstr(strstr(detail, line), purpose));
	}
	for (const struct command *command = commands; command->word; command++) {
		for (unsigned i = 0; i < COMMAND_HELP_LINES && command->help[i].usage; i++) {
			snprintf(line, sizeof(line), "\n\t%s: ", command->help[i].usage);
			assert_non_null(strstr(detail, line));
			assert_non_null(command->help[i].purpose);
		}
	}
}

static void test_show_commands_lists_topics_and_commands(void **state)
{
	struct console *console = open_console(false);
	size_t lines = 0;
	const struct topic *topic;
	const char *purpose, *types;

	(void)state;
	while (topics_get((unsigned)lines, &topic, &purpose))
		lines++;
	for (const struct command *command = commands; command->word; command++) {
		for (unsigned i = 0; i < COMMAND_HELP_LINES && command->help[i].usage; i++)
			lines++;
	}
	new_types(console);
	ask(console, "SHOW COMMANDS");
	types = new_types(console);
	assert_int_equal(strlen(types), lines + 3);
	assert_int_equal(strspn(types + 1, "D"), lines);
}

static void test_drivers_parameters_are_faked(void **state)
{
	struct console *console = open_console(false);

	(void)state;
	new_types(console);
	ask(console, "SHOW DateStyle");
	assert_string_equal(new_types(console), "TDCZ");
	ask(console, "SET timezone TO 'Mars'");
	assert_string_equal(new_types(console), "NCZ");
	assert_string_equal(last_text(console, PQ_NOTICE_RESPONSE, 'M'), "SET ignored");
	assert_string_equal(last_tag(console), "SET");
}

static void test_rights_are_checked(void **state)
{
	static const char *const forbidden[] = {"RELOAD", "PAUSE", "PAUSE nowhere", "RESUME",
		"DISABLE one", "DISABLE", "ENABLE one", "RECONNECT", "KILL", "KILL_CLIENT 1",
		"KILL_CLIENT", "SHUTDOWN", "SHUTDOWN WAIT_FOR_SERVERS", "WAIT_CLOSE",
		"SET verbose = 0", "SET nothing = 0"};
	struct console *console = open_console(false);

	(void)state;
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		assert_refused(console, forbidden[i], "admin access needed");
	assert_refused(console, "RELOAD x", "invalid command 'RELOAD x', use SHOW HELP;");
	assert_refused(console, "SHUTDOWN x", "invalid command 'SHUTDOWN x', use SHOW HELP;");
	assert_int_equal(reloads + shutdowns, 0);
}

static void test_arguments_are_checked(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	assert_refused(console, "DISABLE", "a database is required");
	assert_refused(console, "ENABLE", "a database is required");
	assert_refused(console, "PAUSE nowhere", "no such database: nowhere");
	assert_refused(console, "PAUSE \"\"", "no such database: ");
	assert_refused(console, "PAUSE ONE", "no such database: ONE");
	assert_refused(console, "PAUSE pgbouncer", "cannot pause admin db: pgbouncer");
	assert_refused(console, "KILL pgusher", "cannot kill admin db: pgbouncer");
	assert_refused(console, "DISABLE pgbouncer", "cannot disable admin db: pgbouncer");
	assert_refused(console, "ENABLE pgbouncer", "cannot enable admin db: pgbouncer");
	assert_refused(console, "RECONNECT pgbouncer", "cannot reconnect admin db: pgbouncer");
	assert_refused(console, "WAIT_CLOSE pgbouncer", "cannot wait in admin db: pgbouncer");
	assert_refused(console, "RESUME", "pooler is not paused/suspended");
	assert_refused(console, "RESUME one", "database one is not paused");
	assert_refused(console, "KILL_CLIENT", "invalid client pointer supplied");
	assert_refused(console, "KILL_CLIENT 0x1", "invalid client pointer supplied");
	assert_refused(console, "KILL_CLIENT 999", "client not found");
	assert_refused(console, "SET nothing = 1", "SET failed");
	assert_refused(console, "abcdefghijklmnop", "bad arguments");
	assert_done(console, "set verbose = 0", "SET verbose=0");
	assert_done(console, "disable one", "DISABLE");
	assert_true(registry_find_database(&registry, "one")->disabled);
	assert_done(console, "Enable one;", "ENABLE");
	assert_false(registry_find_database(&registry, "one")->disabled);
}

static void test_a_long_command_is_cut_in_its_error(void **state)
{
	struct console *console = open_console(true);
	char sql[100000];

	(void)state;
	memset(sql, 'x', sizeof(sql));
	memcpy(sql, "SHOW - ", 7);
	sql[sizeof(sql) - 1] = '\0';
	new_types(console);
	feed_query(console, sql);
	turn(console);
	turn(console);
	assert_string_equal(new_types(console), "EZ");
	assert_true(strlen(last_error(console)) < 1024);
	assert_non_null(strstr(last_error(console), "', use SHOW HELP;"));
	assert_done(console, "RELOAD", "RELOAD");
}

static void test_failed_reload_has_a_sqlstate_of_its_own(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	reload_works = false;
	assert_refused(console, "RELOAD", "RELOAD failed, see logs for additional details");
	assert_string_equal(last_text(console, PQ_ERROR_RESPONSE, 'C'), "F0000");
}

static void test_pause_waits_until_all_is_quiet(void **state)
{
	struct console *console = open_console(true);
	struct server_link *server = add_busy_server("one");

	(void)state;
	add_server(server->link.pool, SERVER_IDLE, SERVERS_IDLE);
	new_types(console);
	ask(console, "PAUSE");
	assert_string_equal(new_types(console), "");
	assert_int_equal(registry.process->operation, OPERATION_PAUSED);
	assert_int_equal(server->link.pool->server_count[SERVERS_IDLE], 0);
	assert_refused(console, "PAUSE", "already suspended/paused");
	assert_refused(console, "PAUSE one", "already suspended/paused");
	assert_refused(console, "KILL", "already suspended/paused");
	console_tick(&registry);
	assert_string_equal(new_types(console), "");
	server_close_for(server, REASON_PAUSE_MODE);
	console_tick(&registry);
	assert_string_equal(new_types(console), "CZ");
	assert_string_equal(last_tag(console), "PAUSE");
	console_tick(&registry);
	assert_string_equal(new_types(console), "");
	assert_done(console, "RESUME", "RESUME");
}

static void test_pause_of_a_database_leaves_the_others(void **state)
{
	struct console *console = open_console(true);
	struct server_link *one = add_busy_server("one"), *two = add_busy_server("two");
	struct pool *other = two->link.pool;

	(void)state;
	add_server(other, SERVER_IDLE, SERVERS_IDLE);
	new_types(console);
	ask(console, "PAUSE one");
	assert_string_equal(new_types(console), "");
	assert_true(registry_find_database(&registry, "one")->paused);
	assert_int_equal(other->server_count[SERVERS_IDLE], 1);
	server_close_for(one, REASON_PAUSE_MODE);
	console_tick(&registry);
	assert_string_equal(new_types(console), "CZ");
	assert_done(console, "RESUME one", "RESUME");
}

static void test_resume_ends_a_waiting_pause(void **state)
{
	struct console *waiting = open_console(true), *other = open_console(true);
	struct server_link *server = add_busy_server("one");

	(void)state;
	new_types(waiting);
	ask(waiting, "PAUSE");
	assert_string_equal(new_types(waiting), "");
	assert_done(other, "RESUME", "RESUME");
	assert_string_equal(new_types(waiting), "EZ");
	/* The console does not wait for the next pause. */
	assert_done(waiting, "RECONNECT", "RECONNECT");
	ask(other, "PAUSE");
	server_close_for(server, REASON_PAUSE_MODE);
	console_tick(&registry);
	assert_string_equal(new_types(waiting), "");
	assert_string_equal(last_tag(other), "PAUSE");
	assert_done(other, "RESUME", "RESUME");
}

static void test_pause_and_resume_of_one_client_are_answered_in_order(void **state)
{
	struct console *console = open_console(true);
	struct server_link *server = add_busy_server("one");

	(void)state;
	new_types(console);
	feed_query(console, "PAUSE");
	feed_query(console, "RESUME");
	turn(console);
	assert_string_equal(new_types(console), "EZCZ");
	assert_string_equal(last_tag(console), "RESUME");
	server_close_for(server, REASON_PAUSE_MODE);
}

static void test_pause_stays_when_its_console_closes(void **state)
{
	struct console *console = open_console(true);
	struct server_link *server = add_busy_server("one");

	(void)state;
	ask(console, "PAUSE");
	scripted_end(console->script);
	scripted_run(console->script);
	assert_true(scripted_is_closed(console->script));
	assert_true(LIST_EMPTY(&registry.process->console_waits));
	assert_int_equal(registry.process->operation, OPERATION_PAUSED);
	loop_turn(&loop, false);
	console_tick(&registry);
	server_close_for(server, REASON_PAUSE_MODE);
	control_resume(&registry, NULL);
}

static void test_cancel_resumes_and_ends_the_wait(void **state)
{
	struct console *console = open_console(true);
	struct server_link *server = add_busy_server("one");

	(void)state;
	ask(console, "PAUSE");
	new_types(console);
	registry.process->console.canceled(console->client);
	assert_string_equal(new_types(console), "EZ");
	assert_int_equal(registry.process->operation, OPERATION_RUNNING);
	registry.process->console.canceled(console->client);
	assert_string_equal(new_types(console), "");
	server_close_for(server, REASON_PAUSE_MODE);
}

static void test_wait_close_waits_for_marked_servers_only(void **state)
{
	struct console *console = open_console(true);
	struct server_link *server = add_busy_server("one");

	(void)state;
	assert_done(console, "WAIT_CLOSE", "WAIT_CLOSE");
	assert_done(console, "RECONNECT one", "RECONNECT");
	assert_true(server->close_needed);
	assert_done(console, "WAIT_CLOSE two", "WAIT_CLOSE");
	ask(console, "WAIT_CLOSE one");
	assert_string_equal(new_types(console), "");
	server_close_for(server, REASON_CLOSE_NEEDED);
	console_tick(&registry);
	assert_string_equal(new_types(console), "CZ");
	assert_string_equal(last_tag(console), "WAIT_CLOSE");
}

static void test_unanswered_commands_are_capped(void **state)
{
	struct console *console = open_console(true);
	struct server_link *server = add_busy_server("one");

	(void)state;
	control_reconnect(&registry, NULL);
	for (int i = 0; i < 16; i++)
		ask(console, "WAIT_CLOSE");
	assert_refused(console, "WAIT_CLOSE", "no mem");
	server_close_for(server, REASON_CLOSE_NEEDED);
	console_tick(&registry);
	assert_string_equal(new_types(console), "CZCZCZCZCZCZCZCZCZCZCZCZCZCZCZCZ");
}

static void test_kill_drops_pools_and_pauses(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	add_busy_server("one");
	add_busy_server("two");
	assert_done(console, "KILL one", "KILL");
	assert_true(registry_find_database(&registry, "one")->paused);
	assert_false(registry_find_database(&registry, "two")->paused);
	assert_int_equal(registry_count_pools(&registry), 2);
	assert_done(console, "KILL", "KILL");
	assert_true(registry_find_database(&registry, "two")->paused);
	assert_int_equal(registry_count_pools(&registry), 1);
	assert_refused(console, "RESUME", "pooler is not paused/suspended");
	assert_done(console, "RESUME one", "RESUME");
}

static void test_kill_client_may_close_its_own_console(void **state)
{
	struct console *console = open_console(true), *other = open_console(true);

	(void)state;
	assert_done(console, "KILL_CLIENT 2", "KILL_CLIENT");
	assert_true(scripted_is_closed(other->script));
	assert_string_equal(last_error(other), "admin forced disconnect");
	feed_query(console, "KILL_CLIENT 1");
	feed_query(console, "SHOW STATE");
	turn(console);
	assert_true(scripted_is_closed(console->script));
	assert_string_equal(new_types(console), "E");
}

/* Ids have 64 bits; the column is an int4 that never shows 0 or less. */
static void test_large_ids_are_shown_and_killed_as_positive_int4(void **state)
{
	struct console *console = open_console(true), *other;

	(void)state;
	console->client->link.id = UINT64_C(1) << 31;
	assert_int_equal(link_number(&console->client->link), 1);
	console->client->link.id = INT32_MAX;
	assert_int_equal(link_number(&console->client->link), INT32_MAX);
	other = open_console(true);
	other->client->link.id = (UINT64_C(5) << 32) + 77;
	assert_int_equal(link_number(&other->client->link), 87);
	assert_refused(console, "KILL_CLIENT 21474836557", "client not found");
	assert_done(console, "KILL_CLIENT 87", "KILL_CLIENT");
	assert_true(scripted_is_closed(other->script));
}

static void test_plain_shutdown_is_not_answered(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	assert_done(console, "SHUTDOWN WAIT_FOR_CLIENTS", "SHUTDOWN");
	feed_query(console, "SHUTDOWN");
	feed_query(console, "SHOW STATE");
	turn(console);
	assert_string_equal(new_types(console), "");
	assert_int_equal(shutdowns, 2);
}

static void test_messages_that_are_no_commands_are_refused(void **state)
{
	static const struct {
		const char *message;
		size_t length;
		const char *text;
	} cases[] = {
		{"F\0\0\0\x08\0\0\0", 8, "unsupported packet type for admin console: 70"},
		{"d\0\0\0\x05x", 6, "unsupported packet type for admin console: 100"},
		{"c\0\0\0\x04", 5, "unsupported packet type for admin console: 99"},
		{"f\0\0\0\x05", 6, "unsupported packet type for admin console: 102"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct console *console = open_console(true);
		size_t length;
		const char *output;

		new_types(console);
		scripted_feed(console->script, cases[i].message, cases[i].length);
		feed_query(console, "SHOW STATE");
		turn(console);
		assert_string_equal(new_types(console), "EZE");
		output = (const char *)scripted_output(console->script, &length);
		assert_non_null(memmem(output, length, cases[i].text, strlen(cases[i].text)));
		assert_string_equal(last_error(console), "bad packet");
		assert_true(scripted_is_closed(console->script));
	}
}

static void feed_bytes(struct console *console, const char *bytes, size_t length)
{
	scripted_feed(console->script, bytes, length);
}

#define FEED(console, bytes) feed_bytes(console, bytes, sizeof(bytes) - 1)

/* Parse, Bind, Describe and Execute of SHOW STATE as unnamed statement and portal. */
#define SHOW_STATE                                                                             \
	"P\0\0\0\x12\0SHOW STATE\0\0\0"                                                        \
	"B\0\0\0\x0c\0\0\0\0\0\0\0\0"                                                          \
	"D\0\0\0\x06P\0"                                                                       \
	"E\0\0\0\x09\0\0\0\0\0"
#define SYNC "S\0\0\0\x04"

static void test_the_extended_protocol_is_answered(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	new_types(console);
	FEED(console, SHOW_STATE);
	turn(console);
	assert_string_equal(new_types(console), "12TDDDC"); /* needs no Flush */
	FEED(console, SYNC SHOW_STATE SYNC);
	feed_query(console, "SHOW VERSION");
	turn(console);
	assert_string_equal(new_types(console), "Z12TDDDCZTDCZ");
}

static void test_an_error_of_the_extended_protocol_skips_queries_too(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	new_types(console);
	FEED(console,
		"E\0\0\0\x0a"
		"x\0\0\0\0\0" SHOW_STATE);
	feed_query(console, "SHOW STATE");
	FEED(console, SYNC);
	feed_query(console, "SHOW VERSION");
	turn(console);
	assert_string_equal(new_types(console), "EZTDCZ");
	assert_string_equal(last_error(console), "portal \"x\" does not exist");
}

/* Memory of statements and portals is freed with the session. */
static void test_a_console_with_statements_may_close(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	FEED(console,
		SHOW_STATE "E\0\0\0\x09\0\0\0\0\1"
			   "X\0\0\0\x04");
	turn(console);
	assert_true(scripted_is_closed(console->script));
}

static void test_bad_messages_close_the_console(void **state)
{
	static const struct {
		const char *message;
		size_t length;
		const char *text; /* NULL: none is sent */
	} cases[] = {
		{"X\0\0\0\x04", 5, NULL},
		{"y\0\0\0\xff", 5, "unknown pkt"},
		{"Q\0\0\0\x03", 5, "bad packet header: '5100000003'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct console *console = open_console(true);

		new_types(console);
		scripted_feed(console->script, cases[i].message, cases[i].length);
		turn(console);
		assert_true(scripted_is_closed(console->script));
		assert_string_equal(new_types(console), cases[i].text ? "E" : "");
		if (cases[i].text)
			assert_string_equal(last_error(console), cases[i].text);
	}
}

static void test_a_query_without_its_nul_or_too_long_closes(void **state)
{
	struct console *console = open_console(true), *other = open_console(true);

	(void)state;
	scripted_feed(console->script, "Q\0\0\0\x0eSHOW STATE", 15);
	turn(console);
	assert_string_equal(last_error(console), "incomplete pkt");
	scripted_feed(other->script, "Q\0\x10\0\x10SHOW", 9);
	turn(other);
	assert_string_equal(last_error(other), "incomplete pkt");
}

/* --- long answers ------------------------------------------------------------------------- */

enum { MANY_SERVERS = 700 };

static void add_many_servers(void)
{
	for (unsigned i = 0; i < MANY_SERVERS; i++)
		add_busy_server("one");
}

static unsigned count_rows(const char *types)
{
	unsigned count = 0;

	for (; *types; types++)
		count += *types == 'D';
	return count;
}

/* Turns until no more messages come: the last messages, turns and, returned, the rows. */
static unsigned read_all(struct console *console, char *last, unsigned *turns)
{
	unsigned count = 0, silent = 0;
	const char *types;

	/* While rows are sorted, turns have no messages; while a portal is suspended, none has. */
	for (*turns = 0; silent < 30; ++*turns) {
		loop_turn(&loop, false);
		types = new_types(console);
		count += count_rows(types);
		silent = *types ? 0 : silent + 1;
		if (*types)
			snprintf(last, 8, "%s",
				types + (strlen(types) > 4 ? strlen(types) - 4 : 0));
	}
	return count;
}

static void test_a_long_answer_leaves_turns_to_others(void **state)
{
	struct console *console = open_console(true), *other = open_console(true);
	unsigned turns;
	char last[8];

	(void)state;
	add_many_servers();
	new_types(console);
	new_types(other);
	feed_query(console, "SHOW SERVERS");
	feed_query(console, "SHOW VERSION");
	turn(console);
	assert_in_range(count_rows(new_types(console)), 1, 256);
	ask(other, "SHOW VERSION");
	assert_string_equal(new_types(other), "TDCZ");
	assert_in_range(registry.process->show_streams, 1, 1);
	assert_in_range(read_all(console, last, &turns), MANY_SERVERS - 512, MANY_SERVERS);
	/* The next command is answered after the long answer. */
	assert_string_equal(last, "TDCZ");
	assert_int_equal(registry.process->show_streams, 0);
}

static void test_an_ordered_answer_is_complete(void **state)
{
	struct console *console = open_console(true);
	unsigned turns;
	char last[8];

	(void)state;
	add_many_servers();
	new_types(console);
	ask(console, "SHOW SERVERS ORDER BY id DESC LIMIT 650");
	assert_int_equal(read_all(console, last, &turns), 650);
	assert_true(turns > 5);
	assert_string_equal(last, "DDCZ");
}

static void test_a_console_may_close_in_the_middle_of_an_answer(void **state)
{
	struct console *console = open_console(true), *other = open_console(true);

	(void)state;
	add_many_servers();
	ask(console, "SHOW SERVERS");
	FEED(other,
		"P\0\0\0\x14\0SHOW SERVERS\0\0\0"
		"B\0\0\0\x0c\0\0\0\0\0\0\0\0"
		"E\0\0\0\x09\0\0\0\0\0");
	turn(other);
	assert_int_equal(registry.process->show_streams, 2);
	client_close_for(console->client, REASON_CLIENT_UNEXPECTED_EOF);
	client_close_for(other->client, REASON_CLIENT_UNEXPECTED_EOF);
	loop_turn(&loop, false);
	assert_int_equal(registry.process->show_streams, 0);
}

static void test_a_client_that_closed_its_side_gets_the_rest_of_the_answer(void **state)
{
	struct console *console = open_console(true);
	unsigned turns;
	char last[8];

	(void)state;
	add_many_servers();
	new_types(console);
	ask(console, "SHOW SERVERS");
	scripted_end(console->script);
	scripted_run(console->script);
	assert_int_equal(read_all(console, last, &turns), MANY_SERVERS);
	assert_string_equal(last, "DDCZ");
	assert_true(scripted_is_closed(console->script));
}

static void test_an_answer_stops_while_its_client_does_not_read(void **state)
{
	struct console *console = open_console(true);
	unsigned turns;
	size_t before;
	char last[8];

	(void)state;
	add_many_servers();
	new_types(console);
	scripted_allow(console->script, 10);
	ask(console, "SHOW SERVERS");
	before = stream_backlog_length(&console->client->link.stream);
	assert_true(before > 0);
	for (int i = 0; i < 10; i++)
		turn(console);
	assert_int_equal(stream_backlog_length(&console->client->link.stream), before);
	assert_int_equal(registry.process->show_streams, 1);
	scripted_allow(console->script, SCRIPTED_ANY);
	assert_int_equal(read_all(console, last, &turns), MANY_SERVERS);
	assert_string_equal(last, "DDCZ");
}

static void test_portals_build_no_more_rows_than_are_asked_for(void **state)
{
	struct console *console = open_console(true);
	const char *types;
	unsigned turns;
	char last[8];

	(void)state;
	add_many_servers();
	new_types(console);
	FEED(console,
		"P\0\0\0\x14\0SHOW SERVERS\0\0\0"
		"B\0\0\0\x0c\0\0\0\0\0\0\0\0"
		"E\0\0\0\x09\0\0\0\0\x04"); /* four */
	turn(console);
	assert_string_equal(new_types(console), "12DDDDs");
	FEED(console, "E\0\0\0\x09\0\0\0\x02\x58"); /* 600 */
	turn(console);
	types = new_types(console);
	assert_in_range(count_rows(types), 1, 599);
	assert_int_equal(count_rows(types) + read_all(console, last, &turns), 600);
	assert_string_equal(last, "DDDs");
	FEED(console, "E\0\0\0\x09\0\0\0\0\0" SYNC); /* all */
	turn(console);
	assert_int_equal(read_all(console, last, &turns), MANY_SERVERS - 604);
	assert_string_equal(last, "DDCZ");
	assert_int_equal(registry.process->show_streams, 0);
}

static void test_a_portal_with_rows_to_come_may_be_closed(void **state)
{
	struct console *console = open_console(true);

	(void)state;
	add_many_servers();
	new_types(console);
	FEED(console,
		"P\0\0\0\x14\0SHOW SERVERS\0\0\0"
		"B\0\0\0\x0c\0\0\0\0\0\0\0\0"
		"E\0\0\0\x09\0\0\0\0\x02"
		"C\0\0\0\x06P\0" SYNC);
	turn(console);
	assert_string_equal(new_types(console), "12DDs3Z");
	assert_int_equal(registry.process->show_streams, 0);
}

/* During a takeover connections are frozen: the answer continues if the takeover fails. */
static void test_an_answer_waits_while_connections_are_frozen(void **state)
{
	struct console *console = open_console(true);
	unsigned turns;
	char last[8];

	(void)state;
	add_many_servers();
	new_types(console);
	feed_query(console, "SHOW SERVERS");
	scripted_run(console->script);
	registry.process->still = true;
	console->client->link.stream.frozen = true;
	for (int i = 0; i < 10; i++)
		loop_turn(&loop, false);
	assert_string_equal(new_types(console), "");
	registry.process->still = false;
	console->client->link.stream.frozen = false;
	console_resume(&registry);
	loop_turn(&loop, false);
	new_types(console);
	registry.process->still = true;
	console->client->link.stream.frozen = true;
	for (int i = 0; i < 10; i++)
		loop_turn(&loop, false);
	assert_string_equal(new_types(console), "");
	registry.process->still = false;
	console->client->link.stream.frozen = false;
	console_resume(&registry);
	assert_in_range(read_all(console, last, &turns), 1, MANY_SERVERS - 1);
	assert_string_equal(last, "DDCZ");
}

/* A late answer to a waiting command never comes in the middle of another answer. */
static void test_a_wait_is_answered_after_the_current_answer(void **state)
{
	struct console *console = open_console(true);
	unsigned turns;
	char last[8];

	(void)state;
	add_many_servers();
	new_types(console);
	ask(console, "PAUSE one");
	ask(console, "SHOW SERVERS");
	assert_in_range(count_rows(new_types(console)), 1, 256);
	control_resume(&registry, NULL);
	control_resume(&registry, registry_find_database(&registry, "one"));
	console_tick(&registry);
	assert_string_equal(new_types(console), "");
	assert_in_range(read_all(console, last, &turns), 1, MANY_SERVERS - 1);
	assert_string_equal(last, "CZEZ");
	assert_string_equal(last_error(console), "PAUSE was ended by RESUME");
	/* The same for a wait that is canceled. */
	ask(console, "WAIT_CLOSE one");
	new_types(console);
	ask(console, "RECONNECT one");
	ask(console, "WAIT_CLOSE one");
	ask(console, "SHOW SERVERS");
	registry.process->console.canceled(console->client);
	assert_in_range(read_all(console, last, &turns), 1, MANY_SERVERS);
	assert_string_equal(last, "CZEZ");
	assert_string_equal(last_error(console), "canceled");
}

static bool console_has_input(const struct console *console)
{
	return scripted_unread(console->script) > 0 ||
		stream_is_blocked(&console->client->link.stream) || loop.late.first != NULL;
}

static void test_a_console_that_does_not_read_is_not_read(void **state)
{
	struct console *console = open_console(true);
	size_t before;

	(void)state;
	new_types(console);
	scripted_allow(console->script, 10);
	for (int i = 0; i < 1000; i++)
		feed_query(console, "SHOW CONFIG");
	turn(console);
	before = stream_backlog_length(&console->client->link.stream);
	assert_true(before > 0);
	for (int i = 0; i < 10; i++)
		turn(console);
	assert_int_equal(stream_backlog_length(&console->client->link.stream), before);
	scripted_allow(console->script, SCRIPTED_ANY);
	for (int i = 0; i < 5000 && console_has_input(console); i++)
		turn(console);
	assert_false(stream_is_blocked(&console->client->link.stream));
	scripted_forget_output(console->script);
	console->at = 0;
	assert_done(console, "RELOAD", "RELOAD");
}

static void test_the_first_command_counts_as_a_query_and_a_transaction(void **state)
{
	struct console *console = open_console(true);
	const struct totals *totals = &registry.console_pool->stats.current;

	(void)state;
	assert_int_equal(totals->queries, 0);
	ask(console, "SHOW STATE");
	ask(console, "SHOW STATE");
	assert_int_equal(totals->queries, 1);
	assert_int_equal(totals->transactions, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_welcome_has_its_parameters_in_order),
		TEST(test_commands_run_at_the_end_of_the_turn),
		TEST(test_commands_of_one_write_are_answered_in_order),
		TEST(test_commands_that_take_long_leave_turns_to_others),
		TEST(test_a_command_in_pieces_is_put_together),
		TEST(test_what_came_with_the_login_is_run),
		TEST(test_every_topic_fills_its_columns),
		TEST(test_help_is_made_of_the_tables),
		TEST(test_help_has_the_purpose_of_each_topic_and_command),
		TEST(test_show_commands_lists_topics_and_commands),
		TEST(test_drivers_parameters_are_faked),
		TEST(test_rights_are_checked),
		TEST(test_arguments_are_checked),
		TEST(test_a_long_command_is_cut_in_its_error),
		TEST(test_failed_reload_has_a_sqlstate_of_its_own),
		TEST(test_pause_waits_until_all_is_quiet),
		TEST(test_pause_of_a_database_leaves_the_others),
		TEST(test_resume_ends_a_waiting_pause),
		TEST(test_pause_and_resume_of_one_client_are_answered_in_order),
		TEST(test_pause_stays_when_its_console_closes),
		TEST(test_cancel_resumes_and_ends_the_wait),
		TEST(test_wait_close_waits_for_marked_servers_only),
		TEST(test_unanswered_commands_are_capped),
		TEST(test_kill_drops_pools_and_pauses),
		TEST(test_kill_client_may_close_its_own_console),
		TEST(test_large_ids_are_shown_and_killed_as_positive_int4),
		TEST(test_plain_shutdown_is_not_answered),
		TEST(test_messages_that_are_no_commands_are_refused),
		TEST(test_the_extended_protocol_is_answered),
		TEST(test_an_error_of_the_extended_protocol_skips_queries_too),
		TEST(test_a_console_with_statements_may_close),
		TEST(test_bad_messages_close_the_console),
		TEST(test_a_query_without_its_nul_or_too_long_closes),
		TEST(test_a_long_answer_leaves_turns_to_others),
		TEST(test_an_ordered_answer_is_complete),
		TEST(test_a_console_may_close_in_the_middle_of_an_answer),
		TEST(test_a_client_that_closed_its_side_gets_the_rest_of_the_answer),
		TEST(test_an_answer_stops_while_its_client_does_not_read),
		TEST(test_portals_build_no_more_rows_than_are_asked_for),
		TEST(test_a_portal_with_rows_to_come_may_be_closed),
		TEST(test_an_answer_waits_while_connections_are_frozen),
		TEST(test_a_wait_is_answered_after_the_current_answer),
		TEST(test_a_console_that_does_not_read_is_not_read),
		TEST(test_the_first_command_counts_as_a_query_and_a_transaction),
	};

	log_configure(&(struct log_options){0}); /* no log: the tests do not read it */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
