/* SPDX-License-Identifier: ISC */
/* Each source has its turn, whatever number of entries another one has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/fair_queue.h"

enum { USERS, HOSTS, SERVERS };

struct item {
	struct fair_entry entry; /* first */
	int user, host;
};

static const uint8_t turns[] = {SERVERS, USERS, SERVERS, HOSTS};
static struct fair_queue queue;
static struct item items[500];
static size_t item_count;

static int start(void **state)
{
	(void)state;
	fair_queue_init(&queue, turns, sizeof(turns));
	item_count = 0;
	return 0;
}

static struct item *add_client(int user, int host)
{
	struct item *item = &items[item_count++];

	*item = (struct item){.user = user, .host = host};
	assert_true(fair_queue_join(&queue, &item->entry, USERS, (uint64_t)user, 1000));
	assert_true(fair_queue_join(&queue, &item->entry, HOSTS, (uint64_t)host, 1000));
	fair_queue_add(&queue, &item->entry, false);
	return item;
}

static struct item *add_server(int host)
{
	struct item *item = &items[item_count++];

	*item = (struct item){.host = host};
	assert_true(fair_queue_join(&queue, &item->entry, SERVERS, (uint64_t)host, 1000));
	fair_queue_add(&queue, &item->entry, false);
	return item;
}

static struct item *take(void)
{
	return (struct item *)fair_queue_take(&queue);
}

/* The entry has had its turn and needs another one. */
static void put_back(struct item *item)
{
	fair_queue_add(&queue, &item->entry, true);
}

static void test_entries_of_one_source_come_in_order(void **state)
{
	struct item *first = add_client(1, 1), *second = add_client(1, 1);

	(void)state;
	assert_ptr_equal(take(), first);
	put_back(first);
	assert_ptr_equal(take(), first);
	assert_ptr_equal(take(), second);
	assert_null(take());
}

/* Returns how many turns pass until the item is taken, when all others need ever more turns. */
static unsigned turns_until(const struct item *wanted)
{
	struct item *taken;
	unsigned count = 0;

	while ((taken = take()) != wanted) {
		put_back(taken);
		count++;
	}
	return count;
}

static void test_crowded_user_delays_another_by_few_turns(void **state)
{
	struct item *other;

	(void)state;
	for (int i = 0; i < 300; i++)
		add_client(1, i); /* one user from everywhere */
	other = add_client(2, 1000);
	assert_true(turns_until(other) <= 4);
}

static void test_crowded_address_delays_another_by_few_turns(void **state)
{
	struct item *other;

	(void)state;
	for (int i = 0; i < 300; i++)
		add_client(i, 1); /* all users from one address */
	other = add_client(1000, 2);
	assert_true(turns_until(other) <= 4);
}

static void test_crowded_user_does_not_block_its_address(void **state)
{
	struct item *other;

	(void)state;
	for (int i = 0; i < 300; i++)
		add_client(1, 1);
	other = add_client(2, 1);
	assert_true(turns_until(other) <= 4);
}

static void test_servers_and_clients_have_equal_shares(void **state)
{
	unsigned of_servers = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		add_server(i);
	for (int i = 0; i < 3; i++)
		add_client(i, i);
	for (int i = 0; i < 400; i++) {
		struct item *taken = take();

		of_servers += taken->entry.bucket[SERVERS] != NULL;
		put_back(taken);
	}
	assert_int_equal(of_servers, 200);
}

static void test_lane_without_entries_is_passed_over(void **state)
{
	struct item *server = add_server(1);

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_ptr_equal(take(), server);
		put_back(server);
	}
	fair_queue_remove(&queue, &server->entry);
	assert_null(take());
}

static void test_removed_entry_is_in_no_lane(void **state)
{
	struct item *first = add_client(1, 1), *second = add_client(1, 2);

	(void)state;
	fair_queue_remove(&queue, &first->entry);
	fair_queue_leave(&first->entry);
	assert_ptr_equal(take(), second);
	assert_null(take());
}

static void test_source_has_no_more_entries_than_allowed(void **state)
{
	struct fair_entry entries[4] = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(fair_queue_join(&queue, &entries[i], USERS, 7, 3));
	/* Those that are taken count too. */
	fair_queue_add(&queue, &entries[0], false);
	assert_ptr_equal(fair_queue_take(&queue), &entries[0]);
	assert_false(fair_queue_join(&queue, &entries[3], USERS, 7, 3));
	assert_true(fair_queue_join(&queue, &entries[3], USERS, 8, 3));
	fair_queue_leave(&entries[3]);
	fair_queue_leave(&entries[0]);
	assert_true(fair_queue_join(&queue, &entries[3], USERS, 7, 3));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start)
	const struct CMUnitTest tests[] = {
		TEST(test_entries_of_one_source_come_in_order),
		TEST(test_crowded_user_delays_another_by_few_turns),
		TEST(test_crowded_address_delays_another_by_few_turns),
		TEST(test_crowded_user_does_not_block_its_address),
		TEST(test_servers_and_clients_have_equal_shares),
		TEST(test_lane_without_entries_is_passed_over),
		TEST(test_removed_entry_is_in_no_lane),
		TEST(test_source_has_no_more_entries_than_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
