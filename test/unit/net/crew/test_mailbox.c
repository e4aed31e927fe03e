/* SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/crew/mailbox.h"

enum { SENDERS = 4, LETTERS = 20000 };

struct letter {
	struct mail mail;
	int sender, number;
};

static struct mailbox mailbox;

static void *put_all(void *argument)
{
	struct letter *letters = argument;

	for (int i = 0; i < LETTERS; i++)
		mailbox_put(&mailbox, &letters[i].mail);
	return NULL;
}

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	mailbox = (struct mailbox){0};
	return 0;
}

static void test_many_senders_lose_nothing_and_keep_their_order(void **state)
{
	struct letter *letters = calloc(SENDERS * LETTERS, sizeof(*letters));
	int next[SENDERS] = {0};
	pthread_t threads[SENDERS];

	(void)state;
	assert_non_null(letters);
	for (int i = 0; i < SENDERS * LETTERS; i++) {
		letters[i].sender = i / LETTERS;
		letters[i].number = i % LETTERS;
	}
	for (int i = 0; i < SENDERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, put_all, &letters[i * LETTERS]), 0);
	while (mailbox.received < (uint64_t)SENDERS * LETTERS) {
		struct letter *letter = (struct letter *)mailbox_next(&mailbox);

		if (!letter) {
			sched_yield();
			mailbox_take(&mailbox);
			continue;
		}
		assert_int_equal(letter->number, next[letter->sender]);
		next[letter->sender]++;
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	assert_false(mailbox_has_new(&mailbox));
	assert_null(mailbox_next(&mailbox));
	free(letters);
}

static void test_mail_taken_later_comes_behind_what_is_left(void **state)
{
	struct letter letters[4] = {0};

	(void)state;
	for (int i = 0; i < 4; i++)
		letters[i].number = i;
	mailbox_put(&mailbox, &letters[0].mail);
	mailbox_put(&mailbox, &letters[1].mail);
	mailbox_take(&mailbox);
	mailbox_put(&mailbox, &letters[2].mail);
	assert_ptr_equal(mailbox_next(&mailbox), &letters[0].mail);
	mailbox_put(&mailbox, &letters[3].mail);
	mailbox_take(&mailbox);
	for (int i = 1; i < 4; i++)
		assert_ptr_equal(mailbox_next(&mailbox), &letters[i].mail);
	assert_null(mailbox_next(&mailbox));
}

static void test_one_sender_wakes_a_sleeper_and_none_a_loop_that_is_awake(void **state)
{
	(void)state;
	assert_false(mailbox_rouse(&mailbox));
	mailbox_fall_asleep(&mailbox);
	assert_true(mailbox_rouse(&mailbox));
	assert_false(mailbox_rouse(&mailbox));
	mailbox_fall_asleep(&mailbox);
	mailbox_set_awake(&mailbox);
	assert_false(mailbox_rouse(&mailbox));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			test_many_senders_lose_nothing_and_keep_their_order, set_up),
		cmocka_unit_test_setup(test_mail_taken_later_comes_behind_what_is_left, set_up),
		cmocka_unit_test_setup(
			test_one_sender_wakes_a_sleeper_and_none_a_loop_that_is_awake, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
