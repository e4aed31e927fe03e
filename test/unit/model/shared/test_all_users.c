/* SPDX-License-Identifier: ISC */
/* The users and counters of three workers, as one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/shared/all_users.h"
#include "support/fakes/fake_pool.h"

enum { WORKERS = 3 };

static struct registry others[WORKERS - 1];

static int set_up(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[users]\nbob = pool_size=3\n[pgbouncer]\n");
	for (unsigned i = 0; i < WORKERS - 1; i++) {
		others[i] = (struct registry){0};
		assert_true(registry_init(&others[i], &fake_process, &fake_loop));
	}
	fake_loop.owner = &fake_registry;
	return 0;
}

static int tear_down(void **state)
{
	for (unsigned i = WORKERS - 1; i > 0; i--)
		registry_free(&others[i - 1]);
	return fake_end(state);
}

static void test_each_name_is_visited_once_and_in_order(void **state)
{
	struct user *const zoe = registry_open_user(&others[1], "zoe");
	struct user *const carl = registry_open_user(&others[0], "carl");
	struct user_walk walk;
	struct user *user;
	char names[64] = "";

	(void)state;
	registry_open_user(&others[0], "bob");
	registry_open_user(&others[1], "carl");
	registry_open_user(&others[1], "bob");
	walk = user_walk_begin(&fake_process);
	while ((user = user_walk_next(&walk)) != NULL) {
		strcat(names, user->name);
		strcat(names, " ");
		if (strcmp(user->name, "bob") == 0)
			assert_ptr_equal(user, registry_find_user(&fake_registry, "bob"));
		else if (strcmp(user->name, "carl") == 0)
			assert_ptr_equal(user, carl);
		else if (strcmp(user->name, "zoe") == 0)
			assert_ptr_equal(user, zoe);
	}
	assert_string_equal(names, "bob carl pgbouncer zoe ");
	assert_int_equal(all_users_count(&fake_process), 4);
}

static void test_users_of_one_name_are_summed(void **state)
{
	struct user *const first = registry_find_user(&fake_registry, "bob");
	struct user *const other = registry_open_user(&others[1], "bob");
	struct user_sums sums;

	(void)state;
	first->auto_pools = 1;
	other->auto_pools = 4;
	other->forced = true;
	sums = all_users_sum(&fake_process, first);
	assert_int_equal(sums.auto_pools, 5);
	assert_true(sums.forced);
	assert_false(sums.has_pools);
	/* To sum makes no user. */
	assert_null(registry_known_user(&others[0], "bob"));
}

static void test_counters_are_summed(void **state)
{
	struct counters sum;

	(void)state;
	fake_registry.counters.last_reload_failed = true;
	for (unsigned i = 0; i < WORKERS; i++) {
		struct counters *own = &fake_process.registries[i]->counters;

		own->errors[REASON_NO_SUCH_DATABASE] = 1 + i;
		own->client_rejected[CLIENT_REJECTED_HBA] = 10;
		own->auth_failed[AUTH_FAILURES - 1] = 2;
		own->protocol_errors[PROTOCOL_SIDES - 1][PROTOCOL_ERRORS - 1] = 3;
		own->cancel_requests[CANCEL_FAILED] = 4;
		own->logins_delayed = 5;
		own->client_logins = 6;
		histogram_add(&own->logins[LOGIN_METHODS - 1][LOGIN_OUTCOMES - 1], 7);
		own->nowhere.client_closed[CLIENT_CLOSINGS - 1] = 8;
		own->reloads[0] = i == 0;
	}
	memset(&sum, 0xff, sizeof(sum));
	counters_sum(&fake_process, &sum);
	assert_int_equal(sum.errors[REASON_NO_SUCH_DATABASE], 6);
	assert_int_equal(sum.client_rejected[CLIENT_REJECTED_HBA], 30);
	assert_int_equal(sum.client_rejected[CLIENT_REJECTED_PROTOCOL], 0);
	assert_int_equal(sum.auth_failed[AUTH_FAILURES - 1], 6);
	assert_int_equal(sum.protocol_errors[PROTOCOL_SIDES - 1][PROTOCOL_ERRORS - 1], 9);
	assert_int_equal(sum.cancel_requests[CANCEL_FAILED], 12);
	assert_int_equal(sum.logins_delayed, 15);
	assert_int_equal(sum.client_logins, 18);
	assert_int_equal(
		histogram_count(&sum.logins[LOGIN_METHODS - 1][LOGIN_OUTCOMES - 1]), 3);
	assert_int_equal(sum.logins[LOGIN_METHODS - 1][LOGIN_OUTCOMES - 1].sum, 21);
	assert_int_equal(sum.nowhere.client_closed[CLIENT_CLOSINGS - 1], 24);
	assert_int_equal(sum.reloads[0], 1);
	assert_true(sum.last_reload_failed);
	assert_int_equal(sum.last_reload, fake_registry.counters.last_reload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_each_name_is_visited_once_and_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_users_of_one_name_are_summed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counters_are_summed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
