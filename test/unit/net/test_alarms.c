/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/loop.h"

struct probe {
	struct alarm alarm;
	unsigned place; /* the how many-th to fire; 0: not fired */
	usec_t again; /* set again, at this time, when it fires */
};

static struct alarms alarms;
static struct probe probes[4];
static unsigned fired;

static void on_expire(struct alarm *alarm)
{
	struct probe *probe = (struct probe *)alarm;

	probe->place = ++fired;
	if (probe->again)
		alarms_set(&alarms, alarm, probe->again);
}

static int set_up(void **state)
{
	(void)state;
	TAILQ_INIT(&alarms);
	fired = 0;
	for (unsigned i = 0; i < 4; i++)
		probes[i] = (struct probe){.alarm.expire = on_expire};
	return 0;
}

static void test_alarms_fire_in_order_and_never_early(void **state)
{
	static const usec_t due[4] = {300, 100, 400, 200};

	(void)state;
	assert_int_equal(alarms_next(&alarms), 0);
	for (unsigned i = 0; i < 4; i++)
		alarms_set(&alarms, &probes[i].alarm, due[i]);
	assert_int_equal(alarms_next(&alarms), 100);
	alarms_run(&alarms, 99);
	assert_int_equal(fired, 0);
	alarms_run(&alarms, 300);
	assert_int_equal(probes[1].place, 1);
	assert_int_equal(probes[3].place, 2);
	assert_int_equal(probes[0].place, 3);
	assert_int_equal(probes[2].place, 0);
	assert_int_equal(alarms_next(&alarms), 400);
}

static void test_alarm_can_be_moved_and_removed(void **state)
{
	(void)state;
	alarms_set(&alarms, &probes[0].alarm, 100);
	alarms_set(&alarms, &probes[1].alarm, 200);
	alarms_set(&alarms, &probes[0].alarm, 300);
	assert_int_equal(alarms_next(&alarms), 200);
	alarms_remove(&alarms, &probes[1].alarm);
	alarms_remove(&alarms, &probes[1].alarm);
	assert_int_equal(alarms_next(&alarms), 300);
	alarms_run(&alarms, 300);
	assert_int_equal(fired, 1);
	assert_int_equal(probes[0].place, 1);
}

static void test_alarm_can_be_set_again_when_it_fires(void **state)
{
	(void)state;
	probes[0].again = 500;
	alarms_set(&alarms, &probes[0].alarm, 100);
	alarms_run(&alarms, 100);
	assert_int_equal(fired, 1);
	assert_int_equal(alarms_next(&alarms), 500);
}

/* --- the loop's timer --------------------------------------------------------------------- */

static struct loop loop;

static void on_loop_alarm(struct alarm *alarm)
{
	(void)alarm;
	fired++;
}

static void test_loop_wakes_up_for_its_alarms(void **state)
{
	static struct loop_clock clock;
	const usec_t begin = clock_monotonic();
	usec_t passed;

	(void)state;
	assert_true(loop_init(&loop, &clock));
	/* Without alarms the loop has no timer for them. */
	assert_int_equal(loop.alarm_fd, -1);
	probes[0].alarm.expire = probes[1].alarm.expire = on_loop_alarm;
	loop_set_alarm(&loop, &probes[0].alarm, loop_now(&loop) + 30 * USEC_PER_MSEC);
	loop_set_alarm(&loop, &probes[1].alarm, loop_now(&loop) + 5 * USEC_PER_MSEC);
	loop_remove_alarm(&loop, &probes[1].alarm);
	/* No deadline is in the wheel: only the alarm ends the wait. */
	while (fired == 0)
		loop_turn(&loop, true);
	passed = clock_monotonic() - begin;
	assert_true(passed >= 30 * USEC_PER_MSEC);
	assert_int_equal(fired, 1);
	loop_free(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_alarms_fire_in_order_and_never_early, set_up),
		cmocka_unit_test_setup(test_alarm_can_be_moved_and_removed, set_up),
		cmocka_unit_test_setup(test_alarm_can_be_set_again_when_it_fires, set_up),
		cmocka_unit_test_setup(test_loop_wakes_up_for_its_alarms, set_up),
	};

	return cmocka_run_group_tests_name("alarms", tests, NULL, NULL);
}
