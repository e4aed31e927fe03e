/* SPDX-License-Identifier: ISC */
/*
 * Which clients listen on which channels; what UNLISTEN in a text ends; the queue of notifications that
 * wait for a client.
 */
#include <stdio.h>

#include "session/notify/channels.h"
#include "session/notify/unlisten.h"
#include "support/fakes/fake_pool.h"

static struct pool *pool;
static struct client_link *client, *other;

static int start(void **state)
{
	(void)state;
	pool = fake_start_pool("pool_mode = transaction\n");
	client = endpoint_client(fake_client(pool));
	other = endpoint_client(fake_client(pool));
	return 0;
}

static bool subscribe(struct client_link *to, const char *name)
{
	bool too_many;

	return channels_subscribe(to, name, &too_many) != NULL;
}

/* --- channels ----------------------------------------------------------------------------- */

static void test_a_channel_lives_as_long_as_a_client_listens(void **state)
{
	(void)state;
	assert_true(subscribe(client, "c"));
	assert_true(subscribe(other, "c"));
	assert_int_equal(pool->hub->count, 1);
	assert_int_equal(channels_find(pool->hub, "c")->subscribers, 2);
	channels_unsubscribe(channels_subscription(client, "c"));
	assert_non_null(channels_find(pool->hub, "c"));
	channels_unsubscribe(channels_subscription(other, "c"));
	assert_null(channels_find(pool->hub, "c"));
	assert_null(channels_subscription(client, "c"));
}

static void test_a_channel_at_the_server_is_due_for_unlisten(void **state)
{
	struct channel *channel;

	(void)state;
	assert_true(subscribe(client, "c"));
	channel = channels_find(pool->hub, "c");
	assert_true(channel->is_due);
	TAILQ_REMOVE(&pool->hub->due, channel, in_list);
	channel->is_due = false;
	channel->state = CHANNEL_PRESENT;
	channels_unsubscribe_all(client);
	assert_ptr_equal(channels_find(pool->hub, "c"), channel);
	assert_true(channel->is_due);
	channel->state = CHANNEL_ABSENT;
	channels_drop_unused(channel);
	assert_int_equal(pool->hub->count, 0);
}

static void test_channels_of_a_client_and_of_a_pool_are_limited(void **state)
{
	char name[32];
	bool too_many = false;

	(void)state;
	for (int i = 0; i < CHANNELS_PER_CLIENT; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		assert_true(subscribe(client, name));
	}
	assert_null(channels_subscribe(client, "one_more", &too_many));
	assert_true(too_many);
	assert_true(subscribe(other, "one_more"));
	channels_forget_client(client);
	assert_int_equal(pool->hub->count, 1);
}

static void test_the_hub_goes_with_its_last_client(void **state)
{
	(void)state;
	assert_true(subscribe(client, "c"));
	assert_true(subscribe(other, "d"));
	assert_non_null(channels_marker(pool->hub));
	channels_forget_client(client);
	assert_non_null(pool->hub);
	channels_forget_client(other);
	assert_null(pool->hub);
	assert_null(other->listener);
}

/* A server that is lost leaves channels behind; the sanitizers tell of memory that is. */
static void test_the_hub_goes_with_channels_that_no_client_listens_on(void **state)
{
	struct channel_hub *hub = channels_open(pool);
	struct channel *channel = channels_open_channel(hub, "news");

	(void)state;
	assert_non_null(channel);
	channels_note_due(channel);
	channels_release(pool);
	assert_null(pool->hub);
}

static void test_names_of_a_client_are_those_that_it_knows_of(void **state)
{
	struct buffer names = {0};

	(void)state;
	assert_true(subscribe(client, "a"));
	assert_true(subscribe(client, "b"));
	channels_subscription(client, "b")->confirmed = true;
	channels_write_names(client->listener, &names);
	assert_int_equal(names.length, 2);
	assert_string_equal((const char *)names.data, "b");
	buffer_free(&names);
}

/* --- UNLISTEN ----------------------------------------------------------------------------- */

static const struct {
	const char *text, *left;
} texts[] = {
	{"UNLISTEN a", "bC"},
	{"unlisten \"C\"", "ab"},
	{"SELECT 1; UNLISTEN a; /* x */ UNLISTEN -- y\n b", "C"},
	{"SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;", ""},
	{"SELECT 'UNLISTEN a'", "abC"},
	{"SELECT $$ UNLISTEN a $$", "abC"},
	{"UNLISTEN c", "abC"},
	{"UNLISTENED a", "abC"},
	{"UNLISTEN", "abC"},
};

static void test_texts_end_what_they_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		static const char *const names[] = {"a", "b", "C"};
		char left[4] = "";

		for (size_t n = 0; n < 3; n++) {
			if (!channels_subscription(client, names[n]))
				assert_true(subscribe(client, names[n]));
		}
		unlisten_note_text(client, texts[i].text, strlen(texts[i].text) + 1);
		client->listener->unlistened = true;
		unlisten_apply(client);
		for (size_t n = 0; n < 3; n++) {
			if (channels_subscription(client, names[n]))
				strcat(left, names[n]);
		}
		assert_string_equal(left, texts[i].left);
	}
}

static void test_an_unlisten_counts_when_it_was_run_and_not_undone(void **state)
{
	(void)state;
	assert_true(subscribe(client, "a"));
	unlisten_note_text(client, "UNLISTEN a", 11);
	unlisten_apply(client);
	assert_non_null(channels_subscription(client, "a"));
	client->listener->unlistened = true;
	unlisten_undo(client);
	unlisten_apply(client);
	assert_non_null(channels_subscription(client, "a"));
	unlisten_note_text(client, "UNLISTEN a", 11);
	client->listener->unlistened = true;
	unlisten_apply(client);
	assert_null(channels_subscription(client, "a"));
}

/* --- the queue ---------------------------------------------------------------------------- */

static void test_a_queue_keeps_one_copy_in_order(void **state)
{
	struct notification *first = notification_new("first", 5);
	struct notification *second = notification_new("second", 6);
	struct notification_queue queue = {0}, more = {0};

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(notification_queue_add(&queue, first));
	assert_true(notification_queue_add(&more, second));
	assert_true(notification_queue_move(&queue, &more));
	assert_int_equal(more.count, 0);
	assert_int_equal(queue.count, 101);
	assert_int_equal(first->references, 101);
	assert_ptr_equal(queue.items[queue.first + 100], second);
	assert_true(queue.bytes >= 100 * 5 + 6);
	notification_queue_clear(&queue);
	assert_int_equal(queue.bytes, 0);
	assert_int_equal(first->references, 1);
	assert_int_equal(second->references, 1);
	notification_unref(first);
	notification_unref(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_channel_lives_as_long_as_a_client_listens),
		TEST(a_channel_at_the_server_is_due_for_unlisten),
		TEST(channels_of_a_client_and_of_a_pool_are_limited),
		TEST(the_hub_goes_with_its_last_client),
		TEST(the_hub_goes_with_channels_that_no_client_listens_on),
		TEST(names_of_a_client_are_those_that_it_knows_of),
		TEST(texts_end_what_they_name),
		TEST(an_unlisten_counts_when_it_was_run_and_not_undone),
		TEST(a_queue_keeps_one_copy_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
