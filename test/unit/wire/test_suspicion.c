/* SPDX-License-Identifier: ISC */
/* Which texts and tags raise which suspicions, and which raise none. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/suspicion.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- a page that ends where nothing can be read ------------------------------------------- */

static uint8_t *page_end;
static size_t page_size;

static int map_page(void **state)
{
	uint8_t *pages;

	(void)state;
	page_size = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (pages == MAP_FAILED || mprotect(pages + page_size, page_size, PROT_NONE) != 0)
		return -1;
	page_end = pages + page_size;
	return 0;
}

static int unmap_page(void **state)
{
	(void)state;
	return munmap(page_end - page_size, 2 * page_size);
}

/* The first look at a text of this size, NUL included, at the very end of the page. */
static bool may_be_in(const void *text, size_t size)
{
	memcpy(page_end - size, text, size);
	return suspicion_may_be_in(page_end - size, page_end);
}

/* --- names -------------------------------------------------------------------------------- */

static char noted[1000];
static bool refuses_names;

/* Keeps the first word behind blanks and quotes, up to another quote. */
static bool note(void *argument, const char *text, size_t length)
{
	size_t start = 0, end;

	assert_ptr_equal(argument, noted);
	while (start < length && strchr(" '\"", text[start]))
		start++;
	for (end = start; end < length && !strchr(" ='", text[end]); end++)
		;
	snprintf(noted + strlen(noted), sizeof(noted) - strlen(noted), "%.*s;",
		(int)(end - start), text + start);
	return !refuses_names;
}

static session_topics topics_of(const char *text)
{
	const struct suspicion_names names = {note, noted};

	noted[0] = '\0';
	return suspicion_of_text(text, strlen(text), false, &names);
}

/* --- texts -------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	session_topics topics;
	const char *names;
} suspicious[] = {
	{"SELECT set_config('app.tenant', 'x', false)", TOPIC_SETTINGS, "app.tenant;"},
	{"SELECT pg_catalog.SET_CONFIG('app.tenant', $1, false)", TOPIC_SETTINGS,
		"app.tenant;"},
	{"SELECT \"set_config\"('app.tenant', $1, false)", TOPIC_SETTINGS, "app.tenant;"},
	{"SELECT set_config /* a */ ( -- b\n 'app.tenant', $1, true)", TOPIC_SETTINGS,
		"app.tenant;"},
	{"SELECT set_config('a.b', 'x', false), set_config('c.d', 'y', false)", TOPIC_SETTINGS,
		"a.b;c.d;"},
	{"DO $$ BEGIN PERFORM set_config('a.b', 'x', false); END $$", TOPIC_SETTINGS, "a.b;"},
	{"SELECT pg_advisory_lock(1)", TOPIC_LOCKS, ""},
	{"SELECT pg_try_advisory_lock(1, 2)", TOPIC_LOCKS, ""},
	{"SELECT PG_ADVISORY_LOCK_SHARED(1)", TOPIC_LOCKS, ""},
	{"SELECT pg_advisory_unlock_all()", TOPIC_LOCKS, ""},
	{"CREATE TEMP TABLE t (a int)", TOPIC_TEMPORARY, ""},
	{"create  temporary\ttable t AS SELECT 1", TOPIC_TEMPORARY, ""},
	{"CREATE LOCAL TEMP TABLE t AS SELECT 1", TOPIC_TEMPORARY, ""},
	{"CREATE /* a */ TEMP TABLE t AS SELECT 1", TOPIC_TEMPORARY, ""},
	{"CREATE -- a\n TEMP TABLE t AS SELECT 1", TOPIC_TEMPORARY, ""},
	{"CREATE -- a\r\n\r\n\tTEMP TABLE t AS SELECT 1", TOPIC_TEMPORARY, ""},
	{"SELECT 1 INTO -- a\n TEMP t", TOPIC_TEMPORARY, ""},
	{"CREATE OR REPLACE TEMP VIEW t AS SELECT 1", TOPIC_TEMPORARY, ""},
	{"SELECT 1 INTO TEMP t", TOPIC_TEMPORARY, ""},
	{"SELECT 1 INTO TEMPORARY TABLE t", TOPIC_TEMPORARY, ""},
	{"SELECT 1 AS a INTO pg_temp.t", TOPIC_TEMPORARY, ""},
	{"INSERT INTO pg_temp_3.t VALUES (1)", TOPIC_TEMPORARY, ""},
	{"UPDATE pg_settings SET setting = 'x' WHERE name = 'a'", TOPICS_ALL, ""},
	{"update Pg_Catalog.PG_SETTINGS set setting = 'x'", TOPICS_ALL, ""},
	{"EXPLAIN ANALYZE UPDATE pg_settings SET setting = 'x'", TOPICS_ALL, ""},
	{"WITH a AS (SELECT 1) UPDATE pg_settings SET setting = 'x'", TOPICS_ALL, ""},
	{"SELECT U&\"\\0073et_config\"('a.b', 'x', false)", TOPICS_UNSEEN, ""},
};

static void test_words_raise_their_topics_and_name_custom_settings(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(suspicious); i++) {
		const char *text = suspicious[i].text;
		const session_topics topics = topics_of(text);

		if ((topics & suspicious[i].topics) != suspicious[i].topics ||
			!strstr(noted, suspicious[i].names))
			fail_msg("%s: %x, %s", text, topics, noted);
		if (!may_be_in(text, strlen(text) + 1))
			fail_msg("%s is not looked at", text);
	}
}

/* A text that begins as SET does is always looked at. */
static void test_names_behind_set_are_noted(void **state)
{
	(void)state;
	assert_int_equal(topics_of("SET app.tenant = 'x'"), 0);
	assert_string_equal(noted, "app.tenant;");
	assert_int_equal(topics_of("SELECT 1; set session \"app\".x TO 1"), 0);
	assert_string_equal(noted, "app\".x;");
	topics_of("BEGIN;SET/**/app.tenant='x';SET b.c=1;COMMIT");
	assert_string_equal(noted, "app.tenant;b.c;");
	topics_of("SELECT reset, setting, offset FROM sets");
	assert_string_equal(noted, "");
	assert_true(may_be_in("SET a.b=1", sizeof("SET a.b=1")));
	assert_true(may_be_in(" set a.b=1", sizeof(" set a.b=1")));
	assert_true(may_be_in("/* a */SET a.b=1", sizeof("/* a */SET a.b=1")));
	assert_true(may_be_in("-- a\nSET a.b=1", sizeof("-- a\nSET a.b=1")));
	assert_true(may_be_in("(SET", sizeof("(SET")));
	assert_true(may_be_in("SELECT;SET a.b=1", sizeof("SELECT;SET a.b=1")));
}

static void test_names_that_are_not_written_whole_make_all_settings_unread(void **state)
{
	static const char *const hidden[] = {
		"SELECT set_config('app.' || 'tenant', 'x', false)",
		"SELECT set_config(n, 'x', false) FROM t",
		"SELECT set_config(E'app\\x2etenant', 'x', false)",
		"SELECT set_config($$app.tenant$$, 'x', false)",
		"SELECT set_config('app.'\n'tenant', 'x', false)",
		"SELECT set_config($1 || 'x', 'x', false)",
		"SELECT set_config('app.tenant",
		"SELECT set_config($",
		"SET app . tenant = 'x'",
		"SET app./**/tenant = 'x'",
	};
	static const char *const whole[] = {
		"SELECT set_config('app.tenant', 'x', false)",
		"SELECT set_config ( 'app.tenant' /* a */ , 'x', false)",
		"SELECT set_config('app.tenant'::text, 'x', false)",
		"SELECT set_config($1, $2, false)",
		"SELECT set_config($12 :: varchar, $2, false)",
		"SET \"app\".\"tenant\" = 'x'",
		"SET app.tenant TO 'x'",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(hidden); i++) {
		if (!(topics_of(hidden[i]) & TOPIC_UNREAD))
			fail_msg("%s", hidden[i]);
	}
	for (size_t i = 0; i < COUNT(whole); i++) {
		if (topics_of(whole[i]) & TOPIC_UNREAD)
			fail_msg("%s", whole[i]);
	}
}

static void test_names_that_cannot_be_noted_make_all_settings_unread(void **state)
{
	(void)state;
	refuses_names = true;
	assert_true(topics_of("SELECT set_config('a.b', 'x', false)") & TOPIC_UNREAD);
	assert_true(topics_of("SET a.b = 'x'") & TOPIC_UNREAD);
	assert_false(topics_of("SELECT 1") & TOPIC_UNREAD);
	refuses_names = false;
	assert_int_equal(suspicion_of_text("SET a.b = 'x'", 13, false, NULL), 0);
}

static void test_plain_texts_raise_nothing(void **state)
{
	static const char *const texts[] = {
		"SELECT 1",
		"SELECT 1;",
		"INSERT INTO accounts VALUES ($1, $2)",
		"UPDATE accounts SET balance = balance + 1 WHERE id = 7",
		"SELECT abalance FROM pgbench_accounts WHERE aid = 12345",
		"UPDATE my_settings SET setting_pg = 'pg_setting', _settings = 1",
		"SELECT temperature, temps FROM weather",
		"SELECT pg_advisory_xact_lock(1)",
		"CREATE TABLE t (temp int)",
		"CREATE TABLE t (a int, -- a\n b int,\n temp int)",
		"SELECT a - 1,\ntemp FROM weather",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (topics_of(texts[i]) != 0)
			fail_msg("%s: %x", texts[i], topics_of(texts[i]));
	}
	/* Of these not even the words are read. */
	for (size_t i = 0; i < 5; i++)
		assert_false(may_be_in(texts[i], strlen(texts[i]) + 1));
}

static void test_what_cannot_be_read_raises_everything(void **state)
{
	const size_t size = SUSPICION_TEXT_MAX + 100;
	char *text = malloc(size);

	(void)state;
	assert_int_equal(suspicion_of_text("SELECT", 6, true, NULL), TOPICS_UNSEEN);
	memset(text, 'x', size);
	assert_int_equal(suspicion_of_text(text, SUSPICION_TEXT_MAX, false, NULL), 0);
	assert_int_equal(
		suspicion_of_text(text, SUSPICION_TEXT_MAX + 1, false, NULL), TOPICS_UNSEEN);
	free(text);
}

/* Each prefix of each text stands before an unreadable page. */
static void test_no_byte_behind_a_text_is_read(void **state)
{
	const struct suspicion_names names = {note, noted};

	(void)state;
	for (size_t i = 0; i < COUNT(suspicious); i++) {
		for (size_t length = 0; length <= strlen(suspicious[i].text); length++) {
			char *text = (char *)page_end - length;

			memcpy(text, suspicious[i].text, length);
			noted[0] = '\0';
			suspicion_of_text(text, length, false, &names);
			suspicion_may_be_in((const uint8_t *)text, page_end);
		}
	}
}

/* --- the first look and a slow one -------------------------------------------------------- */

static bool is_pair(const uint8_t *at, char first, char second)
{
	return tolower(at[0]) == first && tolower(at[1]) == second;
}

/* Is there one of the signs that may not be missed, in a text with its NUL? */
static bool has_sign(const uint8_t *text, size_t size)
{
	const bool has_room = size >= sizeof("set_config()");

	if (size >= 6 && strncasecmp((const char *)text, "set", 3) == 0)
		return true;
	/* A semicolon at the end, before the NUL, ends the only statement. */
	for (size_t i = 0; i + 2 < size; i++) {
		if (text[i] == ';' && size >= sizeof("SELECT;SET a.b=1"))
			return true;
		if (has_room && size >= 18 &&
			(is_pair(text + i, '_', 'c') || is_pair(text + i, 'd', 'v') ||
				is_pair(text + i, 'm', 'p')))
			return true;
	}
	return false;
}

static uint64_t random_state = 1;

static unsigned draw(unsigned bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)((random_state >> 33) % bound);
}

/* Letters of the signs are frequent in some texts and rare in others. */
static size_t draw_text(uint8_t *text)
{
	static const char letters[] = "_cCdDvVmMpP;";
	const size_t length = 3 + draw(draw(2) ? 20 : 200);
	const unsigned rare = draw(2) ? 400 : 12;

	for (size_t i = 0; i < length; i++) {
		text[i] = draw(2) ? 'a' : 'g';
		if (draw(rare) == 0)
			text[i] = (uint8_t)letters[draw(sizeof(letters) - 1)];
	}
	/* Not as comments and SET begin. */
	text[0] = 'z';
	text[length] = '\0';
	return length + 1;
}

static void test_the_first_look_misses_no_sign(void **state)
{
	uint8_t text[300];
	unsigned found = 0, plain = 0;

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		const size_t size = draw_text(text);
		const bool sign = has_sign(text, size), looked_at = may_be_in(text, size);

		if (sign && !looked_at)
			fail_msg("\"%s\" is missed", text);
		found += sign;
		plain += !looked_at;
	}
	assert_true(found > 10000 && plain > 10000);
}

/* Each place in texts of each length. */
static void test_each_sign_is_found_at_each_place(void **state)
{
	static const char *const signs[] = {";x", "_c", "_C", "dv", "DV", "mp", "mP", "Mp"};
	uint8_t text[140];

	(void)state;
	for (size_t length = 17; length < sizeof(text); length++) {
		memset(text, 'a', length);
		text[length] = '\0';
		assert_false(may_be_in(text, length + 1));
		for (size_t at = 0; at + 2 < length; at++) {
			for (size_t i = 0; i < COUNT(signs); i++) {
				memset(text, 'a', length);
				memcpy(text + at, signs[i], 2);
				if (!may_be_in(text, length + 1))
					fail_msg("%s at %zu of %zu", signs[i], at, length);
			}
		}
	}
	/* What ends the text ends its only statement. */
	memset(text, 'a', 50);
	memcpy(text + 49, ";", 2);
	assert_false(may_be_in(text, 51));
}

/* --- tags --------------------------------------------------------------------------------- */

static const struct {
	const char *tag;
	session_topics topics, when_pinned;
} tags[] = {
	{"SET", TOPIC_SETTINGS, TOPIC_SETTINGS},
	{"RESET", TOPIC_SETTINGS, TOPIC_SETTINGS},
	{"DO", TOPICS_UNSEEN, TOPICS_UNSEEN},
	{"CALL", TOPICS_UNSEEN, TOPICS_UNSEEN},
	{"LOAD", TOPIC_LIBRARY, TOPIC_LIBRARY},
	{"LISTEN", TOPIC_CHANNELS, TOPIC_CHANNELS},
	{"UNLISTEN", 0, TOPIC_CHANNELS},
	{"PREPARE", TOPIC_STATEMENTS, TOPIC_STATEMENTS},
	{"DEALLOCATE", 0, TOPIC_STATEMENTS},
	{"DEALLOCATE ALL", 0, TOPIC_STATEMENTS},
	{"DECLARE CURSOR", TOPIC_CURSORS, TOPIC_CURSORS},
	{"CLOSE CURSOR", 0, TOPIC_CURSORS},
	{"CREATE TABLE", TOPIC_TEMPORARY, TOPIC_TEMPORARY},
	{"CREATE VIEW", TOPIC_TEMPORARY, TOPIC_TEMPORARY},
	{"CREATE FUNCTION", TOPIC_TEMPORARY, TOPIC_TEMPORARY},
	{"DROP TABLE", 0, TOPIC_TEMPORARY},
	{"DISCARD TEMP", 0, TOPIC_TEMPORARY},
	{"DISCARD ALL", 0, TOPICS_PINNING & ~(TOPIC_LIBRARY | TOPIC_SEQUENCES)},
};

static void test_tags_raise_their_topics(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(tags); i++) {
		const char *tag = tags[i].tag;

		assert_true(suspicion_may_be_tag((const uint8_t *)tag));
		assert_int_equal(suspicion_of_tag(tag, 0) & tags[i].topics, tags[i].topics);
		assert_int_equal(suspicion_of_tag(tag, TOPICS_PINNING) & tags[i].when_pinned,
			tags[i].when_pinned);
	}
}

static void test_tags_of_plain_statements_raise_nothing(void **state)
{
	static const char *const plain[] = {"SELECT 1", "INSERT 0 1", "UPDATE 10", "DELETE 0",
		"BEGIN", "COMMIT", "ROLLBACK", "FETCH 5", "COPY 10", "MERGE 2", "SHOW",
		"EXPLAIN", "SAVEPOINT", "RELEASE", "NOTIFY", "START TRANSACTION", "ALTER TABLE",
		"TRUNCATE TABLE", "SET CONSTRAINTS", "LOCK TABLE", ""};

	(void)state;
	for (size_t i = 0; i < COUNT(plain); i++) {
		assert_int_equal(suspicion_of_tag(plain[i], 0), 0);
		assert_int_equal(suspicion_of_tag(plain[i], TOPICS_PINNING), 0);
	}
}

static const struct {
	const char *text;
	session_topics topics;
} staying[] = {
	{"PREPARE p AS SELECT 1", TOPIC_STATEMENTS},
	{"SELECT 1; /* a */ prepare p AS SELECT 1", TOPIC_STATEMENTS},
	{"PREPARE transaction AS SELECT 1", TOPIC_STATEMENTS},
	{"PREPARE", TOPIC_STATEMENTS},
	{"PREPARE TRANSACTION 'a'", 0},
	{"prepare/**/transaction E'a'", 0},
	{"SELECT prepare, 'PREPARE p AS SELECT 1'", 0},
	{"PREPARED", 0},
	{"EXECUTE p", 0},
	{"DECLARE c CURSOR WITH HOLD FOR SELECT 1", TOPIC_CURSORS},
	{"DECLARE c CURSOR WITH/* a */HOLD FOR SELECT 1", TOPIC_CURSORS},
	{"DECLARE c CURSOR WITH -- a\nHOLD FOR SELECT 1", TOPIC_CURSORS},
	{"DECLARE c CURSOR WITHOUT HOLD FOR SELECT 1", 0},
	{"CREATE OR REPLACE TEMP VIEW t AS SELECT 1", TOPIC_TEMPORARY},
	{"LOAD 'x'; LISTEN c", TOPIC_LIBRARY | TOPIC_CHANNELS},
	{"INSERT INTO t SELECT nextval('s')", 0},
};

static void test_statements_that_stay_are_told_by_their_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(staying); i++) {
		const char *text = staying[i].text;

		if (suspicion_of_staying(text, strlen(text)) != staying[i].topics)
			fail_msg("%s", text);
	}
}

static void test_functions_other_than_those_of_large_objects_raise_everything(void **state)
{
	(void)state;
	assert_int_equal(suspicion_of_function(952), 0); /* lo_open */
	assert_int_equal(suspicion_of_function(954), 0); /* loread */
	assert_int_equal(suspicion_of_function(2078), TOPICS_UNSEEN); /* set_config */
	assert_int_equal(suspicion_of_function(2880), TOPICS_UNSEEN); /* pg_advisory_lock */
	assert_int_equal(suspicion_of_function(0), TOPICS_UNSEEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_raise_their_topics_and_name_custom_settings),
		cmocka_unit_test(test_names_behind_set_are_noted),
		cmocka_unit_test(
			test_names_that_are_not_written_whole_make_all_settings_unread),
		cmocka_unit_test(test_names_that_cannot_be_noted_make_all_settings_unread),
		cmocka_unit_test(test_plain_texts_raise_nothing),
		cmocka_unit_test(test_what_cannot_be_read_raises_everything),
		cmocka_unit_test(test_no_byte_behind_a_text_is_read),
		cmocka_unit_test(test_the_first_look_misses_no_sign),
		cmocka_unit_test(test_each_sign_is_found_at_each_place),
		cmocka_unit_test(test_tags_raise_their_topics),
		cmocka_unit_test(test_tags_of_plain_statements_raise_nothing),
		cmocka_unit_test(test_statements_that_stay_are_told_by_their_words),
		cmocka_unit_test(
			test_functions_other_than_those_of_large_objects_raise_everything),
	};

	return cmocka_run_group_tests(tests, map_page, unmap_page);
}
