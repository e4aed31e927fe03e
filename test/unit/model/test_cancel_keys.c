/* SPDX-License-Identifier: ISC */
/*
 * The table of cancel keys: each key finds its own client only, as the table grows and shrinks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/cancel_keys.h"

enum { CLIENTS = 500 };

static struct cancel_keys keys;
static struct random source;
static struct client_link *clients;

static int set_up(void **state)
{
	(void)state;
	keys = (struct cancel_keys){0};
	random_init(&source);
	random_seed(&source, 3);
	clients = calloc(CLIENTS, sizeof(*clients));
	return clients ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	cancel_keys_free(&keys);
	free(clients);
	return 0;
}

static void issue(struct client_link *client, size_t length)
{
	assert_true(cancel_keys_issue(&keys, client, length, &source));
}

static void assert_finds(struct client_link *client)
{
	assert_ptr_equal(cancel_keys_find(&keys, client->key, client->key_length), client);
}

static void test_empty_table_finds_no_client(void **state)
{
	(void)state;
	assert_null(cancel_keys_find(&keys, "12345678", 8));
	assert_null(cancel_keys_find(&keys, "", 0));
	cancel_keys_forget(&keys, &clients[0]);
}

static void test_key_with_a_peer_id_is_found_after_forwarding(void **state)
{
	uint8_t key[CANCEL_KEY_MIN];

	(void)state;
	keys.peer_id = 0x1234;
	for (unsigned i = 0; i < CLIENTS; i++) {
		issue(&clients[i], CANCEL_KEY_MIN);
		assert_int_equal(clients[i].key[1], 0x34);
		assert_int_equal(clients[i].key[2], 0x12);
		assert_int_equal(clients[i].key[7] & 3, 3);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		memcpy(key, clients[i].key, sizeof(key));
		for (unsigned left = 0; left < 4; left++) {
			key[7] = (uint8_t)((key[7] & ~3u) | left);
			assert_ptr_equal(
				cancel_keys_find(&keys, key, sizeof(key)), &clients[i]);
		}
		key[7] ^= 4;
		assert_null(cancel_keys_find(&keys, key, sizeof(key)));
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		cancel_keys_forget(&keys, &clients[i]);
	assert_int_equal(keys.peer_id, 0x1234);
}

static void test_key_finds_its_client(void **state)
{
	(void)state;
	issue(&clients[0], CANCEL_KEY_MIN);
	issue(&clients[1], CANCEL_KEY_MAX);
	assert_int_equal(clients[0].key_length, CANCEL_KEY_MIN);
	assert_int_equal(clients[1].key_length, CANCEL_KEY_MAX);
	assert_finds(&clients[0]);
	assert_finds(&clients[1]);
	assert_int_equal(keys.used, 2);
}

static void test_only_the_whole_key_counts(void **state)
{
	uint8_t wrong[CANCEL_KEY_MAX];

	(void)state;
	issue(&clients[0], CANCEL_KEY_MAX);
	for (size_t length = 0; length < CANCEL_KEY_MAX; length++)
		assert_null(cancel_keys_find(&keys, clients[0].key, length));
	for (size_t i = 0; i < CANCEL_KEY_MAX * 8; i++) {
		memcpy(wrong, clients[0].key, sizeof(wrong));
		wrong[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_null(cancel_keys_find(&keys, wrong, sizeof(wrong)));
	}
	/* The beginning of a longer key is not that key. */
	issue(&clients[1], CANCEL_KEY_MIN);
	memcpy(wrong, clients[1].key, CANCEL_KEY_MIN);
	assert_null(cancel_keys_find(&keys, wrong, CANCEL_KEY_MAX));
}

static void test_process_ids_are_never_negative(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (size_t i = 0; i < CLIENTS; i++) {
		issue(&clients[i], CANCEL_KEY_MIN);
		assert_int_equal(clients[i].key[0] & 0x80, 0);
		seen |= clients[i].key[0];
	}
	assert_int_equal(seen, 0x7f); /* and the other bits are random */
}

/*
 * In ten thousand keys no bit depends on the same bit of the key before, or on its neighbour.
 */
static void test_keys_have_no_pattern(void **state)
{
	enum { KEYS = 10000, BITS = CANCEL_KEY_MAX * 8 };
	struct client_link *many = calloc(KEYS, sizeof(*many));
	unsigned set[BITS] = {0}, next[BITS] = {0}, beside[BITS] = {0};

	(void)state;
	assert_non_null(many);
	for (size_t i = 0; i < KEYS; i++)
		issue(&many[i], CANCEL_KEY_MAX);
	/* The first bit is the sign of the process id. */
	for (size_t bit = 1; bit < BITS; bit++) {
		for (size_t i = 1; i < KEYS; i++) {
			const unsigned own = many[i].key[bit / 8] >> (7 - bit % 8) & 1;
			const unsigned last = many[i - 1].key[bit / 8] >> (7 - bit % 8) & 1;
			const unsigned other = (bit + 1) % BITS;

			set[bit] += own;
			next[bit] += own == last;
			beside[bit] += own == (many[i].key[other / 8] >> (7 - other % 8) & 1u);
		}
		assert_in_range(set[bit], KEYS * 47 / 100, KEYS * 53 / 100);
		assert_in_range(next[bit], KEYS * 47 / 100, KEYS * 53 / 100);
		assert_in_range(beside[bit], KEYS * 47 / 100, KEYS * 53 / 100);
	}
	for (size_t i = 0; i < KEYS; i++)
		cancel_keys_forget(&keys, &many[i]);
	free(many);
}

static void test_removed_key_finds_no_client(void **state)
{
	uint8_t key[CANCEL_KEY_MIN];

	(void)state;
	issue(&clients[0], CANCEL_KEY_MIN);
	memcpy(key, clients[0].key, sizeof(key));
	cancel_keys_forget(&keys, &clients[0]);
	assert_int_equal(keys.used, 0);
	assert_int_equal(clients[0].key_length, 0);
	assert_null(cancel_keys_find(&keys, key, sizeof(key)));
	cancel_keys_forget(&keys, &clients[0]);
	assert_int_equal(keys.used, 0);
}

/* A client that has only sent a CancelRequest with a key is not in the table. */
static void test_key_of_a_cancel_request_is_not_in_the_table(void **state)
{
	(void)state;
	issue(&clients[0], CANCEL_KEY_MIN);
	memcpy(clients[1].key, clients[0].key, CANCEL_KEY_MIN);
	clients[1].key_length = CANCEL_KEY_MIN;
	cancel_keys_forget(&keys, &clients[1]);
	assert_int_equal(keys.used, 1);
	assert_finds(&clients[0]);
}

static void test_no_two_clients_have_the_same_key(void **state)
{
	(void)state;
	/* The same stream of random bytes again: each of its keys is in use already. */
	for (size_t i = 0; i < CLIENTS / 2; i++)
		issue(&clients[i], CANCEL_KEY_MIN);
	random_seed(&source, 3);
	for (size_t i = CLIENTS / 2; i < CLIENTS; i++)
		issue(&clients[i], CANCEL_KEY_MIN);
	for (size_t i = 0; i < CLIENTS; i++)
		assert_finds(&clients[i]);
}

static void test_table_grows_and_shrinks(void **state)
{
	(void)state;
	for (size_t i = 0; i < CLIENTS; i++) {
		issue(&clients[i], i % 2 ? CANCEL_KEY_MAX : CANCEL_KEY_MIN);
		assert_true(keys.used * 3 <= keys.capacity * 2);
	}
	assert_int_equal(keys.capacity, 1024);
	for (size_t i = 0; i < CLIENTS; i++) {
		for (size_t j = i; j < CLIENTS; j += 17)
			assert_finds(&clients[j]);
		cancel_keys_forget(&keys, &clients[i]);
	}
	assert_int_equal(keys.used, 0);
	assert_in_range(keys.capacity, 1, 128);
}

/* Keys with the same hash are in one run: removing one of them must not hide the others. */
static void test_removal_inside_a_run_keeps_the_others(void **state)
{
	(void)state;
	for (size_t gone = 0; gone < 20; gone++) {
		for (size_t i = 0; i < 20; i++)
			issue(&clients[i], CANCEL_KEY_MIN);
		assert_int_equal(keys.capacity, 64);
		for (size_t i = 0; i < 20; i++) {
			cancel_keys_forget(&keys, &clients[(gone + i) % 20]);
			for (size_t j = i + 1; j < 20; j++)
				assert_finds(&clients[(gone + j) % 20]);
		}
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(empty_table_finds_no_client),
		TEST(key_finds_its_client),
		TEST(key_with_a_peer_id_is_found_after_forwarding),
		TEST(only_the_whole_key_counts),
		TEST(process_ids_are_never_negative),
		TEST(keys_have_no_pattern),
		TEST(removed_key_finds_no_client),
		TEST(key_of_a_cancel_request_is_not_in_the_table),
		TEST(no_two_clients_have_the_same_key),
		TEST(table_grows_and_shrinks),
		TEST(removal_inside_a_run_keeps_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
