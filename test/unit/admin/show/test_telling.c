/* SPDX-License-Identifier: ISC */
/*
 * Answers built over several turns: everybody who is there all the time is told of exactly once,
 * whoever comes, goes and moves meanwhile.
 */
#include "admin/console/topics.h"
#include "admin/show/clauses.h"
#include "admin/show/telling.h"
#include "session/link/close.h"
#include "support/fake_pool.h"
#include "wire/frame.h"
#include "wire/row.h"

enum { MANY = 700, ROWS_MOST = 4096 };

static struct pool *pool;
static struct actor *asker, *clients[MANY];
static struct clauses clauses;
static struct buffer answer, rest;

/* What has been told, row by row. */
static char cells[ROWS_MOST][64];
static unsigned rows;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n* = host=/tmp\n"
		   "[pgbouncer]\npool_mode = transaction\nauth_type = trust\n"
		   "max_client_conn = 5000\n");
	pool = fake_pool("db", "alice");
	asker = fake_client(fake_pool("another", "bob"));
	return 0;
}

static int end(void **state)
{
	buffer_free(&answer);
	buffer_free(&rest);
	assert_int_equal(fake_registry.process->tellings, 0);
	assert_null(fake_registry.process->handles.slots);
	return fake_end(state);
}

static void add_clients(void)
{
	for (unsigned i = 0; i < MANY; i++)
		clients[i] = fake_client(pool);
}

static struct telling *ask(const char *topic, const char *wanted)
{
	struct clause_fault fault;
	struct command_call call = {
		.registry = &fake_registry,
		.client = actor_client(asker),
		.text = "SHOW",
		.topic = topics_find(topic),
		.wish = {.clauses = wanted ? &clauses : NULL},
	};
	struct telling *telling;

	if (wanted)
		assert_true(clauses_parse(wanted, call.topic->columns, call.topic->column_count,
			&clauses, &fault));
	telling = telling_new(&call);
	assert_non_null(telling);
	memset(&clauses, 0xee, sizeof(clauses)); /* it has its own */
	return telling;
}

/* One slice: true if it was the last. */
static bool go_on(struct telling *telling)
{
	buffer_free(&answer);
	return telling_go_on(telling, &answer);
}

/* The cells of this column in what was just told. */
static unsigned read_column(const struct topic *topic, const char *column)
{
	struct row_value row[RESULT_COLUMNS_MAX];
	struct frame frame = {0};
	unsigned place = 0, found = 0;

	while (strcmp(topic->columns[place].name, column) != 0)
		place++;
	for (size_t at = 0; at < answer.length; at += frame.total) {
		assert_int_equal(
			frame_peek(answer.data + at, answer.length - at, 1 << 20, &frame),
			FRAME_WHOLE);
		if (frame.type != 'D')
			continue;
		assert_int_equal(row_read(frame_body(answer.data + at), frame_body_size(&frame),
					 row, RESULT_COLUMNS_MAX),
			topic->column_count);
		assert_true(rows < ROWS_MOST && row[place].length < sizeof(cells[0]));
		memcpy(cells[rows], row[place].data, row[place].length);
		cells[rows++][row[place].length] = '\0';
		found++;
	}
	return found;
}

/* Everything from here to the end; how many slices that took. */
static unsigned tell_all(struct telling *telling, const char *column)
{
	unsigned slices = 0;
	bool is_last;

	do {
		is_last = go_on(telling);
		slices++;
		assert_true(read_column(telling->topic, column) <= 3 * 256);
	} while (!is_last);
	assert_true(answer.length > 0 && answer.data[answer.length - 5] == 'S');
	telling_free(telling);
	return slices;
}

static unsigned times_told(uint64_t id)
{
	unsigned times = 0;

	for (unsigned i = 0; i < rows; i++)
		times += strtoull(cells[i], NULL, 10) == id;
	return times;
}

/* --- slices --------------------------------------------------------------------------------- */

static void test_few_rows_are_one_slice(void **state)
{
	struct telling *telling = ask("CLIENTS", NULL);

	(void)state;
	rows = 0;
	assert_int_equal(tell_all(telling, "id"), 1);
	assert_int_equal(rows, 1);
}

static void test_many_rows_are_slices_of_what_would_have_been_one(void **state)
{
	static const char *const topics[] = {"CLIENTS", "SOCKETS", "FDS"};

	(void)state;
	add_clients();
	for (unsigned i = 0; i < COUNT(topics); i++) {
		struct telling *telling = ask(topics[i], NULL);
		unsigned slices = 0;
		bool is_last;

		buffer_free(&rest);
		do {
			is_last = go_on(telling);
			assert_true(buffer_append(&rest, answer.data, answer.length));
			slices++;
		} while (!is_last);
		telling_free(telling);
		telling = ask(topics[i], NULL);
		buffer_free(&answer);
		telling_finish(telling, &answer);
		telling_free(telling);
		assert_int_equal(answer.length, rest.length);
		assert_memory_equal(answer.data, rest.data, rest.length);
		assert_true(slices >= 3 || strcmp(topics[i], "FDS") == 0);
	}
}

static void test_several_answers_share_a_turn(void **state)
{
	struct telling *first, *second, *third;

	(void)state;
	add_clients();
	first = ask("CLIENTS", NULL);
	assert_false(go_on(first)); /* looks at all of them first */
	rows = 0;
	assert_in_range(read_column(first->topic, "id"), 100, 255);
	second = ask("CLIENTS", NULL);
	third = ask("CLIENTS", NULL);
	assert_false(go_on(second));
	assert_false(go_on(second));
	assert_in_range(read_column(first->topic, "id"), 1, 85);
	telling_free(second);
	telling_free(third);
	assert_false(go_on(first));
	assert_int_equal(read_column(first->topic, "id"), 256);
	telling_free(first); /* in the middle */
}

static void test_a_limit_ends_it_early(void **state)
{
	struct telling *telling;

	(void)state;
	add_clients();
	telling = ask("CLIENTS", "limit 20");
	rows = 0;
	assert_int_equal(tell_all(telling, "id"), 1);
	assert_int_equal(rows, 20);
}

static void test_order_is_that_of_all_rows(void **state)
{
	struct telling *telling;

	(void)state;
	add_clients();
	telling = ask("CLIENTS", "where database = db order by id desc limit 600");
	rows = 0;
	assert_true(tell_all(telling, "id") > 4);
	assert_int_equal(rows, 600);
	for (unsigned i = 0; i < rows; i++)
		assert_int_equal(
			strtoull(cells[i], NULL, 10), actor_link(clients[MANY - 1 - i])->id);
}

/* Of many links as of few: pool by pool, and in each those who wait behind those who do not. */
static void test_rows_of_many_stand_pool_by_pool_and_list_by_list(void **state)
{
	struct pool *first = fake_pool("aaa", "alice");
	unsigned waiting = 0;

	(void)state;
	add_clients();
	for (unsigned i = 0; i < MANY; i += 3, waiting++)
		say_query(clients[i], "SELECT 1");
	for (unsigned i = 0; i < 5; i++)
		fake_client(first);
	rows = 0;
	tell_all(ask("CLIENTS", NULL), "database");
	assert_int_equal(rows, MANY + 6);
	for (unsigned i = 0; i < rows; i++)
		assert_string_equal(cells[i], i < 5 ? "aaa" : i < 6 ? "another" : "db");
	rows = 0;
	tell_all(ask("CLIENTS", NULL), "state");
	for (unsigned i = 0; i < rows; i++)
		assert_string_equal(cells[i],
			i < rows - waiting ? client_console_state(actor_client(asker))
					   : "waiting");
	rows = 0;
	tell_all(ask("SOCKETS", "where type = 'S'"), "state");
	assert_true(rows > 0); /* that are on their way */
	rows = 0;
	tell_all(ask("SERVERS", NULL), "type");
	assert_true(rows > 0 && strcmp(cells[rows - 1], "S") == 0);
}

/* Parts of texts that are long are no reason to build all of them at once. */
static void test_long_rows_are_few_in_a_slice(void **state)
{
	enum { STATEMENTS = 12, LENGTH = 100 * 1024 };
	char *content = calloc(1, LENGTH + 3);
	struct statement *statements[STATEMENTS];
	struct telling *telling;
	unsigned slices = 0;
	bool is_last;

	(void)state;
	memset(content, 'x', LENGTH);
	for (unsigned i = 0; i < STATEMENTS; i++) {
		content[0] = (char)('a' + i);
		statements[i] = statement_open(&fake_registry.statements, content, LENGTH + 3);
		statements[i]->names = 1;
	}
	free(content);
	for (unsigned sorted = 0; sorted < 2; sorted++, slices = 0) {
		telling = ask("STATEMENTS", sorted ? "order by id" : NULL);
		rows = 0;
		do {
			is_last = go_on(telling);
			assert_true(answer.length < 400 * 1024);
			slices++;
			if (slices == 2 && !sorted)
				statement_unref(statements[STATEMENTS - 1]);
			fake_turn();
		} while (!is_last);
		telling_free(telling);
		assert_true(slices >= 4);
	}
	for (unsigned i = 0; i < STATEMENTS - 1; i++)
		statement_unref(statements[i]);
}

/* An answer may end while its links are still being looked at. */
static void test_it_may_end_at_any_time(void **state)
{
	(void)state;
	add_clients();
	for (unsigned slices = 0; slices < 9; slices++) {
		struct telling *telling = ask("CLIENTS", "order by id");

		for (unsigned i = 0; i < slices; i++)
			go_on(telling);
		telling_free(telling);
		assert_true(LIST_EMPTY(&fake_registry.walks));
	}
}

/* --- what happens meanwhile ----------------------------------------------------------------- */

static bool is_even(unsigned i)
{
	return i % 2 == 0;
}

static void test_everybody_who_stays_is_told_of_once(void **state)
{
	struct telling *telling;
	unsigned slices = 0;
	uint64_t ids[MANY], last;
	bool is_last;

	(void)state;
	add_clients();
	last = fake_registry.process->last_id;
	for (unsigned i = 0; i < MANY; i++)
		ids[i] = actor_link(clients[i])->id;
	telling = ask("CLIENTS", NULL);
	rows = 0;
	do {
		is_last = go_on(telling);
		read_column(telling->topic, "id");
		/* Some go, some come, some wait for a server and so stand in another list. */
		for (unsigned i = slices * 200; i < slices * 200 + 200 && i < MANY; i++) {
			if (is_even(i))
				client_close_for(actor_client(clients[MANY - 1 - i]),
					REASON_CLIENT_UNEXPECTED_EOF);
			else
				say_query(clients[MANY - 1 - i], "SELECT 1");
		}
		fake_client(pool);
		fake_turn();
		slices++;
	} while (!is_last);
	telling_free(telling);
	assert_true(slices >= 3);
	for (unsigned i = 0; i < MANY; i++) {
		if (is_even(MANY - 1 - i))
			assert_in_range(times_told(ids[i]), 0, 1);
		else
			assert_int_equal(times_told(ids[i]), 1);
	}
	for (unsigned i = 0; i < rows; i++)
		assert_true(strtoull(cells[i], NULL, 10) <= last);
	/* The last ones went before their turn came. */
	assert_int_equal(times_told(ids[MANY - 1]), 0);
}

/* However long it takes to look at all connections: those who come meanwhile are left out. */
static void test_newcomers_do_not_lengthen_an_answer(void **state)
{
	struct telling *others[40], *telling;
	uint64_t last;
	bool is_last;

	(void)state;
	add_clients();
	for (unsigned i = 0; i < COUNT(others); i++)
		others[i] = ask("CLIENTS", NULL);
	last = fake_registry.process->last_id;
	telling = ask("CLIENTS", NULL);
	rows = 0;
	do {
		is_last = go_on(telling);
		read_column(telling->topic, "id");
		fake_client(pool);
	} while (!is_last);
	telling_free(telling);
	for (unsigned i = 0; i < COUNT(others); i++)
		telling_free(others[i]);
	assert_int_equal(rows, MANY + 1);
	for (unsigned i = 0; i < rows; i++)
		assert_true(strtoull(cells[i], NULL, 10) <= last);
}

/* A login that asks a server who its user is stands among the clients, but not when it goes on. */
static void test_who_is_none_of_them_any_more_is_left_out(void **state)
{
	struct telling *telling;
	struct link *link;

	(void)state;
	add_clients();
	link = actor_link(clients[MANY - 1]);
	telling = ask("CLIENTS", NULL);
	assert_false(go_on(telling));
	rows = 0;
	link->state = CLIENT_AUTHENTICATING;
	tell_all(telling, "id");
	link->state = CLIENT_IDLE;
	assert_int_equal(times_told(link->id), 0);
	assert_int_equal(times_told(actor_link(clients[MANY - 2])->id), 1);
}

static void test_pools_and_databases_may_go(void **state)
{
	enum { POOLS = 600 };
	struct telling *by_pool, *by_database, *times;
	struct database *database;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < POOLS; i++) {
		snprintf(name, sizeof(name), "auto%03u", i);
		pool_open_latency(fake_pool(name, "alice"));
	}
	by_pool = ask("POOLS", NULL);
	by_database = ask("STATS", NULL);
	times = ask("STATS_LATENCY", NULL);
	assert_false(go_on(by_pool));
	assert_false(go_on(by_database));
	assert_false(go_on(times));
	rows = 0;
	for (unsigned i = 500; i < POOLS; i++) {
		snprintf(name, sizeof(name), "auto%03u", i);
		database = registry_find_database(&fake_registry, name);
		registry_drop_pool(&fake_registry, TAILQ_FIRST(&database->pools));
		registry_drop_database(&fake_registry, database);
	}
	tell_all(by_pool, "database");
	tell_all(by_database, "database");
	tell_all(times, "database");
	assert_true(rows > 1000);
	for (unsigned i = 0; i < rows; i++)
		assert_true(
			strncmp(cells[i], "auto", 4) != 0 || strcmp(cells[i], "auto500") < 0);
}

static void test_users_may_go(void **state)
{
	struct telling *telling;
	struct user *user;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "user%03u", i);
		fake_user(name, "secret");
	}
	telling = ask("USERS", NULL);
	assert_false(go_on(telling));
	rows = 0;
	for (unsigned i = 500; i < 600; i++) {
		snprintf(name, sizeof(name), "user%03u", i);
		user = registry_find_user(&fake_registry, name);
		user_set_secret(user, NULL);
		registry_let_go_user(&fake_registry, user);
	}
	tell_all(telling, "name");
	assert_string_equal(cells[rows - 1], "user499");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_few_rows_are_one_slice),
		TEST(test_many_rows_are_slices_of_what_would_have_been_one),
		TEST(test_several_answers_share_a_turn),
		TEST(test_a_limit_ends_it_early),
		TEST(test_order_is_that_of_all_rows),
		TEST(test_rows_of_many_stand_pool_by_pool_and_list_by_list),
		TEST(test_long_rows_are_few_in_a_slice),
		TEST(test_it_may_end_at_any_time),
		TEST(test_everybody_who_stays_is_told_of_once),
		TEST(test_newcomers_do_not_lengthen_an_answer),
		TEST(test_who_is_none_of_them_any_more_is_left_out),
		TEST(test_pools_and_databases_may_go),
		TEST(test_users_may_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
