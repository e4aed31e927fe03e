/* SPDX-License-Identifier: ISC */
/*
 * Answers built over several turns: an object that exists all the time is shown exactly once,
 * whatever other objects are created, freed or moved meanwhile.
 */
#include "admin/console/topics.h"
#include "admin/show/clauses.h"
#include "admin/show/show_stream.h"
#include "model/statistics/pool_figures.h"
#include "session/link/close.h"
#include "support/fakes/fake_pool.h"
#include "wire/frame.h"
#include "wire/row.h"

enum { MANY = 700, ROWS_MOST = 4096 };

static struct pool *pool;
static struct endpoint *console, *clients[MANY];
static struct clauses clauses;
static struct buffer answer, rest;

/* One cell of each row that was sent. */
static char cells[ROWS_MOST][64];
static unsigned rows;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n* = host=/tmp\n"
		   "[pgbouncer]\npool_mode = transaction\nauth_type = trust\n"
		   "max_client_conn = 5000\n");
	pool = fake_pool("db", "alice");
	console = fake_client(fake_pool("another", "bob"));
	endpoint_client(console)->admin = true; /* sees the texts of statements */
	return 0;
}

static int end(void **state)
{
	buffer_free(&answer);
	buffer_free(&rest);
	assert_int_equal(fake_registry.process->show_streams, 0);
	assert_null(fake_registry.process->handles.slots);
	return fake_end(state);
}

static void add_clients(void)
{
	for (unsigned i = 0; i < MANY; i++)
		clients[i] = fake_client(pool);
}

static struct show_stream *ask(const char *name, const char *wanted)
{
	struct clause_fault fault;
	const struct topic *topic = topics_find(name, COMPAT_1_26_1);
	const struct show_request request = {
		.registry = &fake_registry,
		.client = endpoint_client(console),
		.text_length = strlen("SHOW"),
		.topic = topic,
		.options = {.clauses = wanted ? &clauses : NULL},
	};
	struct show_stream *show;

	if (wanted)
		assert_true(clauses_parse(
			wanted, topic->columns, topic->column_count, &clauses, &fault));
	show = show_stream_new(&request);
	assert_non_null(show);
	memset(&clauses, 0xee, sizeof(clauses)); /* the stream has a copy */
	return show;
}

/* Build one slice. Returns true if it was the last one. */
static bool build_slice(struct show_stream *show)
{
	buffer_free(&answer);
	return show_stream_continue(show, &answer);
}

/* Add the cells of this column in the last slice to `cells`. Returns how many there are. */
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

/* Build the rest of the answer and free it. Returns the number of slices. */
static unsigned build_all(struct show_stream *show, const char *column)
{
	unsigned slices = 0;
	bool is_last;

	do {
		is_last = build_slice(show);
		slices++;
		assert_true(read_column(show->topic, column) <= 3 * 256);
	} while (!is_last);
	assert_true(answer.length > 0 && answer.data[answer.length - 5] == 'S');
	show_stream_free(show);
	return slices;
}

static unsigned times_shown(uint64_t id)
{
	unsigned times = 0;

	for (unsigned i = 0; i < rows; i++)
		times += strtoull(cells[i], NULL, 10) == id;
	return times;
}

/* --- slices --------------------------------------------------------------------------------- */

static void test_few_rows_are_one_slice(void **state)
{
	struct show_stream *show = ask("CLIENTS", NULL);

	(void)state;
	rows = 0;
	assert_int_equal(build_all(show, "id"), 1);
	assert_int_equal(rows, 1);
}

static void test_slices_together_are_the_whole_answer(void **state)
{
	static const char *const topics[] = {"CLIENTS", "SOCKETS", "FDS"};

	(void)state;
	add_clients();
	for (unsigned i = 0; i < COUNT(topics); i++) {
		struct show_stream *show = ask(topics[i], NULL);
		unsigned slices = 0;
		bool is_last;

		buffer_free(&rest);
		do {
			is_last = build_slice(show);
			assert_true(buffer_append(&rest, answer.data, answer.length));
			slices++;
		} while (!is_last);
		show_stream_free(show);
		show = ask(topics[i], NULL);
		buffer_free(&answer);
		show_stream_finish(show, &answer);
		show_stream_free(show);
		assert_int_equal(answer.length, rest.length);
		assert_memory_equal(answer.data, rest.data, rest.length);
		assert_true(slices >= 3 || strcmp(topics[i], "FDS") == 0);
	}
}

static void test_several_answers_share_a_turn(void **state)
{
	struct show_stream *first, *second, *third;

	(void)state;
	add_clients();
	first = ask("CLIENTS", NULL);
	assert_false(build_slice(first)); /* it looks at all links first */
	rows = 0;
	assert_in_range(read_column(first->topic, "id"), 100, 255);
	second = ask("CLIENTS", NULL);
	third = ask("CLIENTS", NULL);
	assert_false(build_slice(second));
	assert_false(build_slice(second));
	assert_in_range(read_column(first->topic, "id"), 1, 85);
	show_stream_free(second);
	show_stream_free(third);
	assert_false(build_slice(first));
	assert_int_equal(read_column(first->topic, "id"), 256);
	show_stream_free(first); /* not complete */
}

static void test_a_limit_ends_an_answer_early(void **state)
{
	struct show_stream *show;

	(void)state;
	add_clients();
	show = ask("CLIENTS", "limit 20");
	rows = 0;
	assert_int_equal(build_all(show, "id"), 1);
	assert_int_equal(rows, 20);
}

static void test_order_by_sorts_all_rows(void **state)
{
	struct show_stream *show;

	(void)state;
	add_clients();
	show = ask("CLIENTS", "where database = db order by id desc limit 600");
	rows = 0;
	assert_true(build_all(show, "id") > 4);
	assert_int_equal(rows, 600);
	for (unsigned i = 0; i < rows; i++)
		assert_int_equal(
			strtoull(cells[i], NULL, 10), endpoint_link(clients[MANY - 1 - i])->id);
}

/* The order is the same for many links as for few: by pool, and in a pool waiting clients last. */
static void test_rows_of_many_links_are_in_the_order_of_pools_and_lists(void **state)
{
	struct pool *first = fake_pool("aaa", "alice");
	unsigned waiting = 0;

	(void)state;
	add_clients();
	for (unsigned i = 0; i < MANY; i += 3, waiting++)
		send_query(clients[i], "SELECT 1");
	for (unsigned i = 0; i < 5; i++)
		fake_client(first);
	rows = 0;
	build_all(ask("CLIENTS", NULL), "database");
	assert_int_equal(rows, MANY + 6);
	for (unsigned i = 0; i < rows; i++)
		assert_string_equal(cells[i], i < 5 ? "aaa" : i < 6 ? "another" : "db");
	rows = 0;
	build_all(ask("CLIENTS", NULL), "state");
	for (unsigned i = 0; i < rows; i++)
		assert_string_equal(cells[i],
			i < rows - waiting ? client_console_state(endpoint_client(console))
					   : "waiting");
	rows = 0;
	build_all(ask("SOCKETS", "where type = 'S'"), "state");
	assert_true(rows > 0); /* servers that are connecting */
	rows = 0;
	build_all(ask("SERVERS", NULL), "type");
	assert_true(rows > 0 && strcmp(cells[rows - 1], "S") == 0);
}

/* Long texts end a slice early. */
static void test_long_rows_are_few_in_a_slice(void **state)
{
	enum { STATEMENTS = 12, LENGTH = 100 * 1024 };
	char *content = calloc(1, LENGTH + 3);
	struct statement *statements[STATEMENTS];
	struct show_stream *show;
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
		show = ask("STATEMENTS", sorted ? "order by id" : NULL);
		rows = 0;
		do {
			is_last = build_slice(show);
			assert_true(answer.length < 400 * 1024);
			slices++;
			if (slices == 2 && !sorted)
				statement_unref(statements[STATEMENTS - 1]);
			fake_turn();
		} while (!is_last);
		show_stream_free(show);
		assert_true(slices >= 4);
	}
	for (unsigned i = 0; i < STATEMENTS - 1; i++)
		statement_unref(statements[i]);
}

/* An answer may be freed while its links are still being listed. */
static void test_an_answer_may_be_freed_at_any_time(void **state)
{
	(void)state;
	add_clients();
	for (unsigned slices = 0; slices < 9; slices++) {
		struct show_stream *show = ask("CLIENTS", "order by id");

		for (unsigned i = 0; i < slices; i++)
			build_slice(show);
		show_stream_free(show);
		assert_true(LIST_EMPTY(&fake_registry.walks));
	}
}

/* --- changes while an answer is built ------------------------------------------------------- */

static bool is_even(unsigned i)
{
	return i % 2 == 0;
}

static void test_clients_that_stay_are_shown_once(void **state)
{
	struct show_stream *show;
	unsigned slices = 0;
	uint64_t ids[MANY], last;
	bool is_last;

	(void)state;
	add_clients();
	last = fake_registry.process->last_id;
	for (unsigned i = 0; i < MANY; i++)
		ids[i] = endpoint_link(clients[i])->id;
	show = ask("CLIENTS", NULL);
	rows = 0;
	do {
		is_last = build_slice(show);
		read_column(show->topic, "id");
		/* Some disconnect, one connects, some begin to wait and so change the list. */
		for (unsigned i = slices * 200; i < slices * 200 + 200 && i < MANY; i++) {
			if (is_even(i))
				client_close_for(endpoint_client(clients[MANY - 1 - i]),
					REASON_CLIENT_UNEXPECTED_EOF);
			else
				send_query(clients[MANY - 1 - i], "SELECT 1");
		}
		fake_client(pool);
		fake_turn();
		slices++;
	} while (!is_last);
	show_stream_free(show);
	assert_true(slices >= 3);
	for (unsigned i = 0; i < MANY; i++) {
		if (is_even(MANY - 1 - i))
			assert_in_range(times_shown(ids[i]), 0, 1);
		else
			assert_int_equal(times_shown(ids[i]), 1);
	}
	for (unsigned i = 0; i < rows; i++)
		assert_true(strtoull(cells[i], NULL, 10) <= last);
	/* The last clients disconnected before their rows were built. */
	assert_int_equal(times_shown(ids[MANY - 1]), 0);
}

/* However long it takes to list the links, links that are new since the start are left out. */
static void test_new_links_are_left_out(void **state)
{
	struct show_stream *others[40], *show;
	uint64_t last;
	bool is_last;

	(void)state;
	add_clients();
	for (unsigned i = 0; i < COUNT(others); i++)
		others[i] = ask("CLIENTS", NULL);
	last = fake_registry.process->last_id;
	show = ask("CLIENTS", NULL);
	rows = 0;
	do {
		is_last = build_slice(show);
		read_column(show->topic, "id");
		fake_client(pool);
	} while (!is_last);
	show_stream_free(show);
	for (unsigned i = 0; i < COUNT(others); i++)
		show_stream_free(others[i]);
	assert_int_equal(rows, MANY + 1);
	for (unsigned i = 0; i < rows; i++)
		assert_true(strtoull(cells[i], NULL, 10) <= last);
}

/* A client has a row during the lookup of its user, but not when its login continues. */
static void test_a_link_that_left_the_lists_is_left_out(void **state)
{
	struct show_stream *show;
	struct link *link;

	(void)state;
	add_clients();
	link = endpoint_link(clients[MANY - 1]);
	show = ask("CLIENTS", NULL);
	assert_false(build_slice(show));
	rows = 0;
	link->state = CLIENT_AUTHENTICATING;
	build_all(show, "id");
	link->state = CLIENT_IDLE;
	assert_int_equal(times_shown(link->id), 0);
	assert_int_equal(times_shown(endpoint_link(clients[MANY - 2])->id), 1);
}

static void test_pools_and_databases_may_be_freed(void **state)
{
	enum { POOLS = 600 };
	struct show_stream *by_pool, *by_database, *times;
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
	assert_false(build_slice(by_pool));
	assert_false(build_slice(by_database));
	assert_false(build_slice(times));
	rows = 0;
	for (unsigned i = 500; i < POOLS; i++) {
		snprintf(name, sizeof(name), "auto%03u", i);
		database = registry_find_database(&fake_registry, name);
		registry_drop_pool(TAILQ_FIRST(&database->pools));
		registry_drop_database(database);
	}
	build_all(by_pool, "database");
	build_all(by_database, "database");
	build_all(times, "database");
	assert_true(rows > 1000);
	for (unsigned i = 0; i < rows; i++)
		assert_true(
			strncmp(cells[i], "auto", 4) != 0 || strcmp(cells[i], "auto500") < 0);
}

static void test_users_may_be_freed(void **state)
{
	struct show_stream *show;
	struct user *user;
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "user%03u", i);
		fake_user(name, "secret");
	}
	show = ask("USERS", NULL);
	assert_false(build_slice(show));
	rows = 0;
	for (unsigned i = 500; i < 600; i++) {
		snprintf(name, sizeof(name), "user%03u", i);
		user = registry_find_user(&fake_registry, name);
		user_set_secret(user, NULL);
		registry_let_go_user(&fake_registry, user);
	}
	build_all(show, "name");
	assert_string_equal(cells[rows - 1], "user499");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_few_rows_are_one_slice),
		TEST(test_slices_together_are_the_whole_answer),
		TEST(test_several_answers_share_a_turn),
		TEST(test_a_limit_ends_an_answer_early),
		TEST(test_order_by_sorts_all_rows),
		TEST(test_rows_of_many_links_are_in_the_order_of_pools_and_lists),
		TEST(test_long_rows_are_few_in_a_slice),
		TEST(test_an_answer_may_be_freed_at_any_time),
		TEST(test_clients_that_stay_are_shown_once),
		TEST(test_new_links_are_left_out),
		TEST(test_a_link_that_left_the_lists_is_left_out),
		TEST(test_pools_and_databases_may_be_freed),
		TEST(test_users_may_be_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
