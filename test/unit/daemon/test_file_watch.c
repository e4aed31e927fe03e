/* SPDX-License-Identifier: ISC */
/* When changed files are told, and what a watch costs. */
#include "daemon/file_watch.h"
#include "support/fakes/fake_pool.h"
#include "support/files/config_files.h"

static struct file_watch watch;
static unsigned told;
static size_t told_others;
static char told_path[100];
static bool deaf; /* do not read the files again when they have changed */

static void note_all(struct file_list *list)
{
	file_list_note(list, "a");
	file_list_note(list, "b");
}

static void read_again(void)
{
	struct file_list files = {0};

	note_all(&files);
	file_watch_adopt(&watch, &files);
	assert_int_equal(files.count, 0);
}

static void on_changed(struct file_watch *changed, const char *path, size_t others)
{
	assert_ptr_equal(changed, &watch);
	told++;
	told_others = others;
	snprintf(told_path, sizeof(told_path), "%s", path);
	if (!deaf)
		read_again();
}

static int start(void **state)
{
	if (enter_folder(state) != 0)
		return -1;
	fake_start("[databases]\n[pgbouncer]\n");
	write_file("a", "1");
	write_file("b", "1");
	told = 0;
	deaf = false;
	watch = (struct file_watch){0};
	note_all(&watch.files);
	file_watch_init(&watch, &fake_loop, on_changed);
	file_watch_turn(&watch, true);
	return 0;
}

static int stop(void **state)
{
	file_watch_end(&watch);
	return fake_end(state) == 0 ? leave_folder(state) : -1;
}

static void pass(unsigned seconds)
{
	fake_advance(seconds * USEC_PER_SEC);
}

/* Change a file to one of another size: two writes may be in one tick of the kernel's clock. */
static void change(const char *path)
{
	static char text[64];

	text[strlen(text)] = 'x';
	write_file("new", text);
	assert_int_equal(rename("new", path), 0);
}

static void test_a_change_is_told_once(void **state)
{
	(void)state;
	pass(5);
	assert_int_equal(told, 0);
	change("b");
	pass(3);
	assert_int_equal(told, 1);
	assert_string_equal(told_path, "b");
	assert_int_equal(told_others, 0);
	pass(10);
	assert_int_equal(told, 1);
	change("b");
	pass(3);
	assert_int_equal(told, 2);
}

static void test_nothing_is_told_while_files_still_change(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		change(i % 2 ? "a" : "b");
		pass(1);
		assert_int_equal(told, 0);
	}
	pass(3);
	assert_int_equal(told, 1);
	assert_string_equal(told_path, "a");
	assert_int_equal(told_others, 1);
}

static void test_a_missing_file_is_no_change(void **state)
{
	(void)state;
	assert_int_equal(unlink("a"), 0);
	pass(8);
	assert_int_equal(fake_log_count("is missing"), 0);
	pass(60);
	assert_int_equal(told, 0);
	assert_int_equal(
		fake_log_count("WARNING 'a' is missing: what was read from it stays in force"),
		1);
	change("a");
	pass(3);
	assert_int_equal(told, 1);
}

static void test_a_missing_file_holds_back_others_for_a_while(void **state)
{
	(void)state;
	assert_int_equal(unlink("a"), 0);
	change("b");
	pass(8);
	assert_int_equal(told, 0);
	pass(5);
	assert_int_equal(told, 1);
	/* It was missing when the files were read, so it may be so. */
	change("b");
	pass(3);
	assert_int_equal(told, 2);
	assert_int_equal(fake_log_count("is missing"), 1);
}

static void test_a_file_that_was_missing_is_told_when_it_comes(void **state)
{
	(void)state;
	assert_int_equal(unlink("a"), 0);
	read_again();
	pass(30);
	assert_int_equal(told + fake_log_count("is missing"), 0);
	change("a");
	pass(3);
	assert_int_equal(told, 1);
	assert_string_equal(told_path, "a");
}

static void test_a_file_that_becomes_what_it_was_is_not_told(void **state)
{
	(void)state;
	assert_int_equal(rename("a", "kept"), 0);
	change("a");
	pass(1);
	assert_int_equal(rename("kept", "a"), 0);
	pass(5);
	assert_int_equal(told, 0);
}

static void test_a_change_that_was_not_acted_on_is_told_again(void **state)
{
	(void)state;
	deaf = true;
	change("a");
	pass(5);
	assert_true(told >= 3);
	deaf = false;
	pass(2);
	told = 0;
	pass(10);
	assert_int_equal(told, 0);
}

static void test_no_deadline_is_set_while_the_watch_is_off(void **state)
{
	(void)state;
	file_watch_turn(&watch, false);
	assert_int_equal(watch.deadline.tick, 0);
	change("a");
	pass(5);
	assert_int_equal(told, 0);
	/* What has changed since it was read counts, after it was the same in two rounds. */
	file_watch_turn(&watch, true);
	file_watch_turn(&watch, true);
	fake_advance(FILE_WATCH_PERIOD + USEC_PER_SEC / 4);
	assert_int_equal(told, 0);
	pass(2);
	assert_int_equal(told, 1);
}

static void test_many_files_are_looked_at_in_several_steps(void **state)
{
	struct file_list files = {0};
	usec_t least;

	(void)state;
	for (unsigned i = 0; i < 10 * FILE_WATCH_STEP; i++)
		file_list_note(&files, "b");
	file_list_note(&files, "a");
	file_watch_adopt(&watch, &files);
	change("a");
	/* One step for each turn of the loop: no turn looks at all files. */
	least = 10 * (USEC_PER_SEC / 4);
	fake_advance(USEC_PER_SEC + least);
	assert_int_equal(told, 0);
	fake_advance(3 * least);
	assert_int_equal(told, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
		TEST(test_a_change_is_told_once),
		TEST(test_nothing_is_told_while_files_still_change),
		TEST(test_a_missing_file_is_no_change),
		TEST(test_a_missing_file_holds_back_others_for_a_while),
		TEST(test_a_file_that_was_missing_is_told_when_it_comes),
		TEST(test_a_file_that_becomes_what_it_was_is_not_told),
		TEST(test_a_change_that_was_not_acted_on_is_told_again),
		TEST(test_no_deadline_is_set_while_the_watch_is_off),
		TEST(test_many_files_are_looked_at_in_several_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
