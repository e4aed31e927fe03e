/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/wheel.h"

#define START (1000 * USEC_PER_SEC + 12345)

struct probe {
	struct deadline deadline;
	usec_t fired_at; /* 0: not fired */
	int fired;
	struct probe *victim; /* removed when this one fires */
	usec_t again; /* set again, this much later, when it fires */
};

static struct wheel wheel;
static usec_t now;

static void on_expire(struct deadline *deadline)
{
	struct probe *probe = (struct probe *)deadline;

	probe->fired++;
	probe->fired_at = now;
	if (probe->victim)
		wheel_remove(&wheel, &probe->victim->deadline);
	if (probe->again)
		wheel_set(&wheel, deadline, now + probe->again);
}

static int set_up(void **state)
{
	(void)state;
	now = START;
	wheel_init(&wheel, now);
	return 0;
}

static struct probe probe_of(void)
{
	return (struct probe){.deadline = {.expire = on_expire}};
}

static void run_until(usec_t until, usec_t step)
{
	while (now < until) {
		now += step;
		wheel_run(&wheel, now);
	}
}

static void test_deadline_fires_once_and_never_early(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	wheel_set(&wheel, &probe.deadline, START + 730001);
	run_until(START + 730000, 1000);
	assert_int_equal(probe.fired, 0);
	run_until(START + 5 * USEC_PER_SEC, 1000);
	assert_int_equal(probe.fired, 1);
	assert_true(probe.fired_at >= START + 730001);
	assert_true(probe.fired_at <= START + 730001 + WHEEL_TICK + 1000);
}

static void test_cancelled_deadline_does_not_fire(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	wheel_set(&wheel, &probe.deadline, START + USEC_PER_SEC);
	deadline_cancel(&probe.deadline);
	run_until(START + 3 * USEC_PER_SEC, 10000);
	assert_int_equal(probe.fired, 0);
}

static void test_cancelled_deadline_may_be_set_again(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	wheel_set(&wheel, &probe.deadline, START + USEC_PER_SEC);
	deadline_cancel(&probe.deadline);
	wheel_set(&wheel, &probe.deadline, START + 2 * USEC_PER_SEC);
	run_until(START + 4 * USEC_PER_SEC, 10000);
	assert_int_equal(probe.fired, 1);
	assert_true(probe.fired_at >= START + 2 * USEC_PER_SEC);
}

static void test_setting_to_never_cancels(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	wheel_set(&wheel, &probe.deadline, START + USEC_PER_SEC);
	wheel_set(&wheel, &probe.deadline, 0);
	run_until(START + 3 * USEC_PER_SEC, 10000);
	assert_int_equal(probe.fired, 0);
}

static void test_deadline_moved_later_fires_at_its_new_time_only(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	wheel_set(&wheel, &probe.deadline, START + USEC_PER_SEC);
	wheel_set(&wheel, &probe.deadline, START + 9 * USEC_PER_SEC);
	run_until(START + 20 * USEC_PER_SEC, 10000);
	assert_int_equal(probe.fired, 1);
	assert_true(probe.fired_at >= START + 9 * USEC_PER_SEC);
	assert_true(probe.fired_at <= START + 9 * USEC_PER_SEC + 2 * WHEEL_TICK);
}

static void test_deadline_moved_earlier_fires_at_its_new_time(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	wheel_set(&wheel, &probe.deadline, START + 9 * USEC_PER_SEC);
	wheel_set(&wheel, &probe.deadline, START + USEC_PER_SEC);
	run_until(START + 2 * USEC_PER_SEC, 10000);
	assert_int_equal(probe.fired, 1);
}

static void test_deadline_beyond_the_span_of_the_wheel_fires_in_time(void **state)
{
	const usec_t due = START + 3600 * USEC_PER_SEC;
	struct probe probe = probe_of();

	(void)state;
	wheel_set(&wheel, &probe.deadline, due);
	run_until(due - USEC_PER_SEC, 70000);
	assert_int_equal(probe.fired, 0);
	run_until(due + USEC_PER_SEC, 70000);
	assert_int_equal(probe.fired, 1);
	assert_true(probe.fired_at <= due + 2 * WHEEL_TICK);
}

static void test_past_deadline_fires_with_the_next_slot(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	wheel_set(&wheel, &probe.deadline, START - USEC_PER_SEC);
	run_until(START + WHEEL_TICK, 10000);
	assert_int_equal(probe.fired, 1);
}

static void test_everything_due_fires_once_after_a_long_sleep(void **state)
{
	static struct probe probes[2000];

	(void)state;
	for (int i = 0; i < 2000; i++) {
		probes[i] = probe_of();
		wheel_set(&wheel, &probes[i].deadline, START + i * USEC_PER_SEC);
	}
	now = START + 1500 * USEC_PER_SEC;
	wheel_run(&wheel, now);
	now += WHEEL_TICK;
	wheel_run(&wheel, now);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(probes[i].fired, i <= 1500);
	now = START + 9000 * USEC_PER_SEC;
	wheel_run(&wheel, now);
	now += WHEEL_TICK;
	wheel_run(&wheel, now);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(probes[i].fired, 1);
	assert_int_equal(wheel_next(&wheel), 0);
}

static void test_deadline_may_remove_another_of_the_same_time(void **state)
{
	struct probe killer = probe_of(), victim = probe_of(), bystander = probe_of();

	(void)state;
	killer.victim = &victim;
	wheel_set(&wheel, &killer.deadline, START + USEC_PER_SEC);
	wheel_set(&wheel, &bystander.deadline, START + USEC_PER_SEC);
	wheel_set(&wheel, &victim.deadline, START + USEC_PER_SEC);
	run_until(START + 2 * USEC_PER_SEC, 10000);
	assert_int_equal(killer.fired, 1);
	assert_int_equal(bystander.fired, 1);
	assert_int_equal(victim.fired, 0);
}

static void test_slot_is_intact_after_a_removal_while_it_ran(void **state)
{
	const usec_t round = WHEEL_SLOTS * WHEEL_TICK;
	struct probe killer = probe_of(), victim = probe_of(), later[3];

	(void)state;
	killer.victim = &victim;
	wheel_set(&wheel, &killer.deadline, START + USEC_PER_SEC);
	wheel_set(&wheel, &victim.deadline, START + USEC_PER_SEC);
	run_until(START + 2 * USEC_PER_SEC, 10000);
	for (int i = 0; i < 3; i++) {
		later[i] = probe_of();
		wheel_set(&wheel, &later[i].deadline, START + USEC_PER_SEC + round);
	}
	run_until(START + 2 * USEC_PER_SEC + round, 10000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(later[i].fired, 1);
}

static void test_deadline_may_set_itself_again(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	probe.again = USEC_PER_SEC / 3;
	wheel_set(&wheel, &probe.deadline, START + USEC_PER_SEC / 3);
	run_until(START + 10 * USEC_PER_SEC, 1000);
	/* It fires up to one slot late each time. */
	assert_in_range(probe.fired, 23, 30);
}

static void test_next_is_when_the_first_slot_in_use_is_due(void **state)
{
	struct probe near = probe_of(), far = probe_of();

	(void)state;
	assert_int_equal(wheel_next(&wheel), 0);
	wheel_set(&wheel, &far.deadline, START + 30 * USEC_PER_SEC);
	assert_in_range(wheel_next(&wheel), START + 30 * USEC_PER_SEC,
		START + 30 * USEC_PER_SEC + WHEEL_TICK);
	wheel_set(&wheel, &near.deadline, START + 2 * USEC_PER_SEC);
	assert_in_range(wheel_next(&wheel), START + 2 * USEC_PER_SEC,
		START + 2 * USEC_PER_SEC + WHEEL_TICK);
}

/* Wait exactly until wheel_next() each time, as the event loop does. */
static void test_waiting_until_next_fires_all_in_time(void **state)
{
	static struct probe probes[500];
	uint64_t seed = 42;
	int left = 500;

	(void)state;
	for (int i = 0; i < 500; i++) {
		probes[i] = probe_of();
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		wheel_set(
			&wheel, &probes[i].deadline, START + (usec_t)(seed >> 33) % 200000000);
	}
	while (wheel_next(&wheel) != 0) {
		now = wheel_next(&wheel);
		wheel_run(&wheel, now);
	}
	for (int i = 0; i < 500; i++)
		left -= probes[i].fired;
	assert_int_equal(left, 0);
}

/* Compare with a plain list of times in many random steps. */
static void test_random_steps_agree_with_a_plain_list(void **state)
{
	enum { PROBES = 64, STEPS = 20000 };
	static struct probe probes[PROBES];
	static usec_t due[PROBES]; /* 0: none */
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < PROBES; i++) {
		probes[i] = probe_of();
		due[i] = 0;
	}
	for (int step = 0; step < STEPS; step++) {
		int i;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		i = (int)(seed >> 58);
		switch ((seed >> 50) % 4) {
		case 0:
		case 1:
			due[i] = now + (usec_t)((seed >> 20) % 100000000);
			wheel_set(&wheel, &probes[i].deadline, due[i]);
			break;
		case 2:
			due[i] = 0;
			if (seed & (1 << 18))
				wheel_remove(&wheel, &probes[i].deadline);
			else
				deadline_cancel(&probes[i].deadline);
			break;
		case 3:
			now += (usec_t)((seed >> 20) % 3000000);
			break;
		}
		wheel_run(&wheel, now);
		for (i = 0; i < PROBES; i++) {
			if (probes[i].fired) {
				assert_true(due[i] != 0 && due[i] <= now);
				due[i] = 0;
				probes[i].fired = 0;
			}
			assert_true(due[i] == 0 || now <= due[i] + 2 * WHEEL_TICK);
		}
	}
}

static void test_exact_deadlines_fire_in_order_without_delay(void **state)
{
	struct probe late = probe_of(), early = probe_of(), removed = probe_of();

	(void)state;
	wheel_set(&wheel, &late.deadline, now + USEC_PER_SEC);
	wheel_set_exact(&wheel, &late.deadline, now + 7000);
	wheel_set_exact(&wheel, &early.deadline, now + 5000);
	wheel_set_exact(&wheel, &removed.deadline, now + 6000);
	wheel_remove(&wheel, &removed.deadline);
	assert_int_equal(wheel_next(&wheel), now + 5000);
	run_until(START + 5000, 1000);
	assert_int_equal(early.fired_at, START + 5000);
	assert_int_equal(late.fired, 0);
	assert_int_equal(wheel_next(&wheel), START + 7000);
	run_until(START + 3 * USEC_PER_SEC, 1000);
	assert_int_equal(late.fired_at, START + 7000);
	assert_int_equal(late.fired, 1);
	assert_int_equal(early.fired, 1);
	assert_int_equal(removed.fired, 0);
	assert_int_equal(wheel_next(&wheel), 0);
}

static void test_exact_deadline_becomes_one_of_a_slot(void **state)
{
	struct probe probe = probe_of();

	(void)state;
	wheel_set_exact(&wheel, &probe.deadline, now + 5000);
	wheel_set(&wheel, &probe.deadline, now + USEC_PER_SEC);
	assert_true(wheel_next(&wheel) >= now + USEC_PER_SEC);
	run_until(START + 2 * USEC_PER_SEC, WHEEL_TICK / 4);
	assert_true(probe.fired_at >= START + USEC_PER_SEC);
	assert_int_equal(probe.fired, 1);
	wheel_set_exact(&wheel, &probe.deadline, now + 5000);
	wheel_set_exact(&wheel, &probe.deadline, 0);
	assert_int_equal(wheel_next(&wheel), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_deadline_fires_once_and_never_early, set_up),
		cmocka_unit_test_setup(test_cancelled_deadline_does_not_fire, set_up),
		cmocka_unit_test_setup(test_cancelled_deadline_may_be_set_again, set_up),
		cmocka_unit_test_setup(test_setting_to_never_cancels, set_up),
		cmocka_unit_test_setup(
			test_deadline_moved_later_fires_at_its_new_time_only, set_up),
		cmocka_unit_test_setup(
			test_deadline_moved_earlier_fires_at_its_new_time, set_up),
		cmocka_unit_test_setup(
			test_deadline_beyond_the_span_of_the_wheel_fires_in_time, set_up),
		cmocka_unit_test_setup(test_past_deadline_fires_with_the_next_slot, set_up),
		cmocka_unit_test_setup(
			test_everything_due_fires_once_after_a_long_sleep, set_up),
		cmocka_unit_test_setup(
			test_deadline_may_remove_another_of_the_same_time, set_up),
		cmocka_unit_test_setup(
			test_slot_is_intact_after_a_removal_while_it_ran, set_up),
		cmocka_unit_test_setup(test_deadline_may_set_itself_again, set_up),
		cmocka_unit_test_setup(test_next_is_when_the_first_slot_in_use_is_due, set_up),
		cmocka_unit_test_setup(test_waiting_until_next_fires_all_in_time, set_up),
		cmocka_unit_test_setup(
			test_exact_deadlines_fire_in_order_without_delay, set_up),
		cmocka_unit_test_setup(test_exact_deadline_becomes_one_of_a_slot, set_up),
		cmocka_unit_test_setup(test_random_steps_agree_with_a_plain_list, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
