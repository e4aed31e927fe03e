/* SPDX-License-Identifier: ISC */
/*
 * First messages of every kind, at each of several workers: wherever a connection arrives, the client
 * and the servers receive the same bytes, the same is counted, and the client ends up at its home.
 */
#include "session/link/derivation.h"
#include "session/login/client_accept.h"
#include "session/login/client_login.h"
#include "session/login/relocation.h"
#include "support/fakes/fake_login.h"
#include "support/simulation/sim_random.h"
#include "wire/message.h"
#include "wire/peer_question.h"
#include "wire/startup.h"
#include "wire/writer.h"

/* RFC 7677 section 3: password "pencil". */
#define PENCIL                                                                                      \
	"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:" \
	"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

enum {
	WORKERS = 3,
	STEPS_MOST = 4,
	SPLITS = 4, /* ways to split what a client sends */
	MUTATIONS = 200,
};

/* What a client sends: each step is sent when everything before has been answered. */
struct talk {
	struct buffer steps[STEPS_MOST];
	unsigned count;
};

static const char *settings; /* of this test */
static bool wants_target; /* there is a client with a query, which requests cancel */
static struct endpoint *target;

static void start(void)
{
	char config[1000];

	snprintf(config, sizeof(config),
		"[databases]\n"
		"third = host=/tmp\n"
		"other = host=/tmp\n"
		"db = host=/tmp\n"
		"forced = host=/tmp user=carol\n"
		"[pgbouncer]\n"
		"admin_users = boss\n"
		"log_pooler_errors = 0\n"
		"max_client_conn_per_address = 10\n"
		"%s",
		settings);
	fake_workers = WORKERS;
	fake_start(config);
	fake_user("alice", "secret");
	fake_user("boss", "secret");
	fake_user("scram", PENCIL);
	fake_pool("db", "alice");
	fake_pool("other", "alice");
}

static int start_with(const char *some)
{
	settings = some;
	wants_target = false;
	start();
	return 0;
}

static int start_trust(void **state)
{
	(void)state;
	return start_with("auth_type = trust\npeer_id = 7\n");
}

static int start_automatic(void **state)
{
	(void)state;
	return start_with("auth_type = trust\n[databases]\n* = host=/tmp\n");
}

static int start_plain(void **state)
{
	(void)state;
	return start_with("auth_type = plain\n");
}

static int start_md5(void **state)
{
	(void)state;
	return start_with("auth_type = md5\n");
}

static int start_scram(void **state)
{
	(void)state;
	return start_with("auth_type = scram-sha-256\n");
}

static int start_behind_proxies(void **state)
{
	(void)state;
	return start_with("auth_type = trust\nproxy_protocol = required\n"
			  "proxy_networks = 192.0.2.0/24\n");
}

/* A client with a query at the home of its database; always with the same key. */
static void add_target(void)
{
	struct pool *pool = fake_pool("db", "alice");

	target = fake_client(pool);
	fake_server(pool);
	send_query(target, "select 1");
	assert_state(target, CLIENT_PAIRED);
}

/* Each connection comes to a process of its own, so that the one before does not matter. */
static void start_anew(void)
{
	fake_end(NULL);
	start();
	if (wants_target)
		add_target();
}

/* --- what was said and done --------------------------------------------------------------- */

static void note(struct buffer *record, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void note(struct buffer *record, const char *format, ...)
{
	char text[300];
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	assert_in_range(length, 0, sizeof(text) - 1);
	assert_true(buffer_append(record, text, (size_t)length));
}

static void note_output(struct buffer *record, const char *whose, const struct endpoint *of)
{
	size_t length;
	const uint8_t *output = scripted_output(of->script, &length);

	note(record, "\n%s, %zu bytes: ", whose, length);
	assert_true(buffer_append(record, output, length));
}

/* Keys are derived on another thread. */
static void wait_for_derivations(void)
{
	for (unsigned i = 0; i < WORKERS; i++) {
		const struct registry *registry = fake_registry_of(i);

		while (helper_pending(registry->derivations->helper) > 0 ||
			derivations_pending(registry) > 0)
			crew_turn(registry->loop, true);
	}
}

static void run_until_quiet(struct endpoint *client)
{
	for (unsigned i = 0; i < 4; i++) {
		scripted_run_all(client->script);
		fake_deliver();
		wait_for_derivations();
	}
}

/* Servers that were launched, for cancel requests or logins: what they are sent. */
static void note_servers(struct buffer *record)
{
	struct endpoint *server;

	while ((server = fake_launched()) != NULL) {
		fake_connected(server, 0);
		note_output(record, "server", server);
		disconnect(server);
	}
}

static void note_client(struct buffer *record, const struct endpoint *endpoint)
{
	const struct client_link *client;
	char remote[ADDRESS_TEXT_SIZE];
	usec_t now;

	note(record, "\nclients %u, admitted %u", fake_process.limits.clients,
		fake_process.limits.admitted);
	if (is_closed(endpoint)) {
		note(record, ", closed");
		return;
	}
	client = endpoint_client(endpoint);
	now = loop_now(client->link.stream.loop);
	note(record, ", %s", client_state_name(client_state(client)));
	/* Before it has said what it wants it may be anywhere. */
	if (client->link.state != CLIENT_GREETING)
		note(record, " at worker %u", link_registry(&client->link)->number);
	note(record, " from %s proxy %u held %u", address_text(&client->link.remote, remote),
		client->proxy, client->link.held_length);
	note(record, ", id %llu, age %lld, silent for %lld, to be closed in %lld",
		(unsigned long long)client->link.id,
		(long long)(now - client->link.connect_time),
		(long long)(now - client->link.request_time),
		(long long)(client->deadline.due > 0 ? client->deadline.due - now : 0));
	note(record, ", logins %u", link_registry(&client->link)->login_count);
	note(record, ", database %s, user %s, counted %u%u%u%u",
		client->database ? client->database->name : "-",
		client->user ? client->user->name : "-", client->counted_in_process,
		client->counted_in_database, client->counted_in_user,
		client->counted_by_address);
}

/* --- scenes ------------------------------------------------------------------------------- */

/* Split 0: everything at once; 1: byte by byte; others: drawn. */
static size_t draw_length(unsigned split, size_t left)
{
	const size_t length = split == 0 ? left : split == 1 ? 1 : 1 + sim_below(40);

	return length < left ? length : left;
}

static void say(struct endpoint *client, const struct buffer *bytes, unsigned split)
{
	size_t said = 0;

	while (said < bytes->length && !is_closed(client)) {
		const size_t length = draw_length(split, bytes->length - said);

		scripted_feed(client->script, bytes->data + said, length);
		said += length;
		run_until_quiet(client);
	}
}

static void end_connection(struct endpoint *client)
{
	if (!is_closed(client)) {
		scripted_end(client->script);
		run_until_quiet(client);
	}
	assert_closed(client);
	fake_forget(client);
}

/* Until a client that moves nowhere, and one that moves, have left nothing. */
static void assert_nothing_left(unsigned clients)
{
	unsigned links = 0;

	assert_int_equal(fake_process.limits.clients, clients);
	for (unsigned i = 0; i < WORKERS; i++) {
		const struct registry *registry = fake_registry_of(i);

		links += (unsigned)registry->clients.used;
		assert_int_equal(registry->login_count, 0);
		assert_int_equal(registry->helds.used, 0);
	}
	assert_int_equal(links, clients);
	if (clients == 0)
		assert_null(fake_process.sources.by_address);
}

static void record_talk(
	struct buffer *record, const struct talk *talk, unsigned arrives_at, unsigned split)
{
	struct endpoint *client;
	uint64_t handle;
	unsigned others;

	start_anew();
	others = fake_process.limits.clients;
	sim_random_state = split;
	fake_process.dealt = arrives_at;
	client = fake_accept(-1);
	assert_true(arrives_at == 0 || fake_is_in_mail(client));
	fake_deliver();
	fake_advance(USEC_PER_SEC);
	handle = handles_give(
		&fake_process.handles, &endpoint_link(client)->handle, endpoint_link(client));
	for (unsigned i = 0; i < talk->count; i++) {
		say(client, &talk->steps[i], split);
		note_output(record, "client", client);
	}
	/* What SHOW has named is not another client that has its place by now. */
	assert_true(handle != 0);
	assert_true(!handles_find(&fake_process.handles, handle) ||
		(!is_closed(client) &&
			handles_find(&fake_process.handles, handle) == endpoint_link(client)));
	note_client(record, client);
	note_servers(record);
	end_connection(client);
	assert_nothing_left(others);
}

static void compare(const struct buffer *first, const struct buffer *record, unsigned worker)
{
	if (record->length == first->length &&
		memcmp(record->data, first->data, first->length) == 0)
		return;
	print_error("at worker 0: %.*s\nat worker %u: %.*s\n", (int)first->length,
		(const char *)first->data, worker, (int)record->length,
		(const char *)record->data);
	fail_msg("a client is served differently");
}

/* Returns what was recorded first, for more tests of it; valid until the next call. */
static const char *compare_workers(const struct talk *talk, unsigned split)
{
	static struct buffer records[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++) {
		buffer_clear(&records[i]);
		record_talk(&records[i], talk, i, split);
		compare(&records[0], &records[i], i);
	}
	assert_true(buffer_append(&records[0], "", 1));
	/* Only for texts at the end. */
	return strrchr((const char *)records[0].data, '\n')
		? (const char *)memmem(records[0].data, records[0].length, "\nclients ",
			  strlen("\nclients "))
		: NULL;
}

static void free_talk(struct talk *talk)
{
	for (unsigned i = 0; i < STEPS_MOST; i++)
		buffer_free(&talk->steps[i]);
	*talk = (struct talk){0};
}

/* Checks all ways to split it. `expected` is a part of what is noted at the end; NULL: anything. */
static void check(struct talk *talk, const char *expected)
{
	for (unsigned split = 0; split < SPLITS; split++) {
		const char *noted = compare_workers(talk, split);

		assert_non_null(noted);
		if (expected && !strstr(noted, expected))
			fail_msg("no \"%s\" in \"%s\"", expected, noted);
	}
	free_talk(talk);
}

static struct buffer *add_step(struct talk *talk)
{
	assert_true(talk->count < STEPS_MOST);
	return &talk->steps[talk->count++];
}

static void write_login(struct buffer *out, uint32_t version, const char *user,
	const char *database, const char *name, const char *value)
{
	const size_t mark = startup_begin(out, version);

	writer_string(out, "user");
	writer_string(out, user);
	if (database) {
		writer_string(out, "database");
		writer_string(out, database);
	}
	if (name) {
		writer_string(out, name);
		writer_string(out, value);
	}
	startup_end(out, mark);
}

static void check_login(const char *user, const char *database, const char *expected)
{
	struct talk talk = {0};

	write_login(add_step(&talk), PROTOCOL_3_0, user, database, NULL, NULL);
	check(&talk, expected);
}

/* --- logins ------------------------------------------------------------------------------- */

/* The last database of a configuration is the first one's neighbour: all workers have one. */
static unsigned home_of(const char *database)
{
	return registry_find_database(&fake_registry, database)->registry->number;
}

static void test_a_client_goes_to_the_home_of_its_database(void **state)
{
	char expected[64];

	(void)state;
	assert_int_not_equal(home_of("db"), home_of("other"));
	snprintf(expected, sizeof(expected), "idle at worker %u", home_of("db"));
	check_login("alice", "db", expected);
	snprintf(expected, sizeof(expected), "idle at worker %u", home_of("other"));
	check_login("alice", "other", expected);
	check_login("alice", "forced", NULL);
	check_login("alice", "third", NULL);
}

static void test_unknown_names_are_refused_alike(void **state)
{
	(void)state;
	check_login("alice", "nowhere", "closed");
	check_login("alice", NULL, "closed");
	check_login("nobody", "db", NULL);
	check_login("", "db", "closed");
	check_login("alice", "", "closed");
}

static void test_the_console_is_at_worker_0(void **state)
{
	(void)state;
	check_login("boss", "pgbouncer", "console at worker 0");
	check_login("boss", "pgusher", "console at worker 0");
	check_login("alice", "pgbouncer", "closed");
	check_login("alice", "pgusher", "closed");
}

static void test_the_console_is_no_automatic_database(void **state)
{
	(void)state;
	check_login("boss", "pgusher", "console at worker 0");
	check_login("alice", "pgusher", "closed");
	check_login("alice", "anything", NULL);
	check_login("alice", NULL, NULL);
}

static void test_parameters_and_options_move_along(void **state)
{
	static const char *const pairs[][2] = {
		{"application_name", "a client"},
		{"options", "-c extra_float_digits=2 -c search_path=a,b"},
		{"options", "-c"},
		{"replication", "database"},
		{"replication", "true"},
		{"_pq_.unknown", "1"},
		{"user", "bob"},
		{"database", "other"},
		{"unknown", "value"},
		{"client_encoding", "nonsense"},
	};
	struct talk talk = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(pairs); i++) {
		write_login(
			add_step(&talk), PROTOCOL_3_0, "alice", "db", pairs[i][0], pairs[i][1]);
		check(&talk, NULL);
		write_login(add_step(&talk), 0x30002, "alice", "db", pairs[i][0], pairs[i][1]);
		check(&talk, NULL);
	}
}

static void test_requests_for_encryption_come_before(void **state)
{
	static const uint32_t codes[] = {80877103, 80877104};
	struct talk talk = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(codes); i++) {
		for (unsigned follows = 0; follows < 2; follows++) {
			struct buffer *request = add_step(&talk);

			writer_int32(request, 8);
			writer_int32(request, codes[i]);
			/* Bytes right behind it are refused. */
			write_login(follows ? request : add_step(&talk), PROTOCOL_3_0, "alice",
				"db", NULL, NULL);
			check(&talk, NULL);
		}
	}
}

static void test_queries_behind_the_startup_message(void **state)
{
	struct talk talk = {0};
	struct buffer *all = add_step(&talk);

	(void)state;
	write_login(all, PROTOCOL_3_0, "alice", "db", NULL, NULL);
	writer_query(all, "select 1");
	check(&talk, NULL);
	write_login(add_step(&talk), PROTOCOL_3_0, "alice", "db", NULL, NULL);
	write_login(&talk.steps[0], PROTOCOL_3_0, "alice", "other", NULL, NULL);
	check(&talk, NULL);
}

/* --- passwords ---------------------------------------------------------------------------- */

static void check_password(const char *user, const char *password, bool pipelined)
{
	struct talk talk = {0};
	struct buffer *out = add_step(&talk);

	write_login(out, PROTOCOL_3_0, user, "db", NULL, NULL);
	writer_password(pipelined ? out : add_step(&talk), password, strlen(password) + 1);
	check(&talk, NULL);
}

static void test_passwords_behind_the_startup_message(void **state)
{
	static const char *const users[] = {"alice", "scram", "nobody"};
	static const char *const passwords[] = {
		"secret", "pencil", "", "md5cafecafecafecafecafecafecafecafe"};

	(void)state;
	for (size_t i = 0; i < COUNT(users); i++) {
		/* It has until the end of client_login_timeout. */
		check_login(users[i], "db", NULL);
		for (size_t j = 0; j < COUNT(passwords); j++) {
			check_password(users[i], passwords[j], false);
			check_password(users[i], passwords[j], true);
		}
	}
}

/* The first StartupMessage counts: a client that logs in does not move any more. */
static void test_a_second_startup_message_moves_no_client(void **state)
{
	struct talk talk = {0};

	(void)state;
	write_login(add_step(&talk), PROTOCOL_3_0, "alice", "db", NULL, NULL);
	write_login(add_step(&talk), PROTOCOL_3_0, "alice", "other", NULL, NULL);
	check(&talk, "closed");
}

/* --- cancel requests and peers ------------------------------------------------------------ */

static void prepare_target(uint8_t key[STARTUP_KEY_MAX], size_t *length)
{
	const struct client_link *client;

	wants_target = true;
	start_anew();
	client = endpoint_client(target);
	*length = client->key_length;
	memcpy(key, client->key, client->key_length);
}

/* The request finds its query, wherever it arrives: a server gets the key of the server that runs it. */
static void test_a_cancel_request_finds_its_query(void **state)
{
	struct talk talk = {0};
	uint8_t key[STARTUP_KEY_MAX];
	static struct buffer record;
	size_t length;

	(void)state;
	prepare_target(key, &length);
	startup_write_cancel(add_step(&talk), key, length);
	for (unsigned i = 0; i < WORKERS; i++) {
		const struct server_link *runs;

		buffer_clear(&record);
		record_talk(&record, &talk, i, 0);
		runs = server_of(endpoint_link(target)->peer);
		if (!memmem(record.data, record.length, runs->cancel_key,
			    runs->cancel_key_length))
			fail_msg("a request that arrives at worker %u cancels nothing", i);
	}
	check(&talk, NULL);
	buffer_free(&record);
}

static void test_cancel_requests_that_find_nothing(void **state)
{
	struct talk talk = {0};
	uint8_t key[STARTUP_KEY_MAX] = {1, 2, 3, 4};
	size_t length;

	(void)state;
	for (length = 0; length <= STARTUP_KEY_MAX; length += 4) {
		startup_write_cancel(add_step(&talk), key, length);
		check(&talk, NULL);
	}
	prepare_target(key, &length);
	for (size_t i = 0; i < length; i++) {
		key[i] ^= 1;
		startup_write_cancel(add_step(&talk), key, length);
		compare_workers(&talk, 0);
		free_talk(&talk);
		key[i] ^= 1;
	}
	/* With bytes behind it, and behind a StartupMessage. */
	startup_write_cancel(add_step(&talk), key, length);
	writer_query(&talk.steps[0], "select 1");
	check(&talk, NULL);
	write_login(add_step(&talk), PROTOCOL_3_0, "alice", "db", NULL, NULL);
	startup_write_cancel(&talk.steps[0], key, length);
	check(&talk, NULL);
}

static void test_questions_of_peers(void **state)
{
	const uint8_t nonce[PEER_NONCE_SIZE] = {9, 8, 7};
	struct talk talk = {0};

	(void)state;
	peer_question_write(add_step(&talk), nonce);
	check(&talk, NULL);
	write_login(add_step(&talk), PROTOCOL_3_0, "alice", "db", NULL, NULL);
	peer_question_write(&talk.steps[0], nonce);
	check(&talk, NULL);
}

/* --- what is no message ------------------------------------------------------------------- */

static void test_impossible_lengths_and_versions(void **state)
{
	static const uint32_t lengths[] = {0, 1, 4, 7, 8, 9, 16, 65535, 65536, 0xffffffff};
	static const uint32_t versions[] = {
		0, 0x10000, 0x20000, 0x30000, 0x30001, 0x3ffff, 0x40000, 80877101, 0xffffffff};
	struct talk talk = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		for (size_t j = 0; j < COUNT(versions); j++) {
			struct buffer *out = add_step(&talk);

			writer_int32(out, lengths[i]);
			writer_int32(out, versions[j]);
			writer_string(out, "user");
			compare_workers(&talk, 0);
			compare_workers(&talk, 1);
			free_talk(&talk);
		}
	}
}

/* A client may send so much at most: a StartupMessage, and what is behind it. */
static void test_large_messages(void **state)
{
	static char value[CLIENT_LOGIN_MESSAGE_MAX + 100];
	struct talk talk = {0};
	struct buffer *out;

	(void)state;
	for (size_t size = CLIENT_LOGIN_MESSAGE_MAX - 70; size < sizeof(value) - 1; size += 7) {
		memset(value, 'x', size);
		value[size] = '\0';
		out = add_step(&talk);
		write_login(out, PROTOCOL_3_0, "alice", "db", "application_name", value);
		compare_workers(&talk, 0);
		free_talk(&talk);
		out = add_step(&talk);
		write_login(out, PROTOCOL_3_0, "alice", "db", NULL, NULL);
		writer_query(out, value);
		compare_workers(&talk, 0);
		free_talk(&talk);
	}
}

/* A good login in which a few bytes are others, or are missing, or too many. */
static void mutate(struct buffer *out)
{
	for (unsigned i = 1 + sim_below(3); i > 0; i--) {
		const unsigned at = sim_below((unsigned)out->length);

		switch (sim_below(4)) {
		case 0:
			out->data[at] = (uint8_t)sim_draw();
			break;
		case 1:
			out->data[at] ^= (uint8_t)(1u << sim_below(8));
			break;
		case 2:
			out->length = at + 1;
			break;
		default:
			writer_string(out, "behind");
		}
	}
}

static void test_damaged_messages(void **state)
{
	static const char *const databases[] = {"db", "other", "nowhere", "pgbouncer"};
	struct talk talk = {0};
	uint8_t key[STARTUP_KEY_MAX];
	size_t length;

	(void)state;
	prepare_target(key, &length);
	for (unsigned seed = 1; seed <= MUTATIONS; seed++) {
		struct buffer *out = add_step(&talk);

		sim_random_state = seed;
		if (sim_chance(20))
			startup_write_cancel(out, key, length);
		else
			write_login(out, PROTOCOL_3_0, "alice",
				databases[sim_below(COUNT(databases))], "application_name",
				"x");
		mutate(out);
		compare_workers(&talk, sim_chance(50) ? 0 : 2 + seed);
		free_talk(&talk);
	}
}

/* --- PROXY headers ------------------------------------------------------------------------ */

static void test_proxy_headers_come_before(void **state)
{
	static const char *const lines[] = {
		"PROXY TCP4 10.1.2.3 192.0.2.9 4660 6432\r\n",
		"PROXY UNKNOWN\r\n",
		"PROXY TCP4 nonsense\r\n",
		"",
		"PROXY TCP4 10.1.2.3 192.0.2.9 4660 6432\r\n"
		"PROXY TCP4 10.1.2.4 192.0.2.9 4660 6432\r\n",
	};
	struct talk talk = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct buffer *out = add_step(&talk);

		assert_true(buffer_append(out, lines[i], strlen(lines[i])));
		write_login(out, PROTOCOL_3_0, "alice", "db", NULL, NULL);
		check(&talk, i == 0 ? "from 10.1.2.3:4660" : NULL);
	}
}

int main(void)
{
#define TEST(name, start) cmocka_unit_test_setup_teardown(name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(test_a_client_goes_to_the_home_of_its_database, start_trust),
		TEST(test_unknown_names_are_refused_alike, start_trust),
		TEST(test_the_console_is_at_worker_0, start_trust),
		TEST(test_the_console_is_no_automatic_database, start_automatic),
		TEST(test_parameters_and_options_move_along, start_trust),
		TEST(test_requests_for_encryption_come_before, start_trust),
		TEST(test_queries_behind_the_startup_message, start_trust),
		TEST(test_passwords_behind_the_startup_message, start_plain),
		TEST(test_passwords_behind_the_startup_message, start_md5),
		TEST(test_passwords_behind_the_startup_message, start_scram),
		TEST(test_a_second_startup_message_moves_no_client, start_plain),
		TEST(test_a_cancel_request_finds_its_query, start_trust),
		TEST(test_cancel_requests_that_find_nothing, start_trust),
		TEST(test_questions_of_peers, start_trust),
		TEST(test_impossible_lengths_and_versions, start_trust),
		TEST(test_large_messages, start_trust),
		TEST(test_damaged_messages, start_trust),
		TEST(test_proxy_headers_come_before, start_behind_proxies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
