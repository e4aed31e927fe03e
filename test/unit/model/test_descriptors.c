/* SPDX-License-Identifier: ISC */
/* How the descriptors of the process are divided. */
#include "support/fakes/fake_pool.h"

static struct process *process;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "db = host=/tmp pool_size=10 reserve_pool_size=5\n"
		   "free = host=/tmp pool_size=0\n"
		   "[pgbouncer]\n"
		   "max_client_conn = 100000\n");
	process = fake_registry.process;
	process->descriptors.others = 20;
	return 0;
}

static int stop(void **state)
{
	process->limits.clients = process->limits.admitted = process->limits.consoles = 0;
	fake_registry.server_cap.servers = 0;
	return fake_end(state);
}

/* How many more clients are admitted. */
static unsigned admit(bool console)
{
	unsigned count = 0;

	while (descriptors_allow_client(process, console)) {
		process->limits.clients++;
		process->limits.consoles += console;
		process->limits.admitted++;
		count++;
	}
	return count;
}

static unsigned accept_logins(void)
{
	unsigned count = 0;

	while (descriptors_allow_login(process)) {
		process->limits.clients++;
		count++;
	}
	return count;
}

static unsigned launch(bool for_cancel)
{
	unsigned count = 0;

	while (descriptors_allow_server(process, for_cancel)) {
		fake_registry.server_cap.servers++;
		count++;
	}
	return count;
}

static void test_without_a_known_limit_everything_is_allowed(void **state)
{
	(void)state;
	process->limits.clients = process->limits.admitted = fake_registry.server_cap.servers =
		1000000;
	assert_true(descriptors_allow_login(process));
	assert_true(descriptors_allow_client(process, false));
	assert_true(descriptors_allow_server(process, false));
}

static void test_clients_leave_room_for_servers_consoles_logins_and_files(void **state)
{
	(void)state;
	descriptors_review(&fake_registry, 1024);
	assert_int_equal(process->descriptors.kept, 0);
	fake_pool("db", "alice");
	assert_int_equal(process->descriptors.kept, 15);
	descriptors_review(&fake_registry, 1024);
	assert_int_equal(process->descriptors.kept, 15);
	assert_int_equal(admit(false), 1024 - 20 - 64 - 32 - 16 - 15);
	assert_int_equal(launch(false), 15);
	assert_int_equal(admit(true), 16);
	assert_int_equal(accept_logins(), 32);
	assert_int_equal(launch(true), 0);
	process->limits.clients -= 3;
	assert_int_equal(launch(true), 3);
}

static void test_servers_may_use_what_clients_leave(void **state)
{
	(void)state;
	fake_pool("db", "alice");
	descriptors_review(&fake_registry, 1024);
	assert_int_equal(launch(false), 1024 - 20 - 64 - 32 - 16);
	assert_int_equal(admit(false), 0);
	assert_int_equal(admit(true), 16);
	assert_int_equal(launch(true), 32);
}

static void test_pools_together_keep_a_quarter_at_most(void **state)
{
	(void)state;
	fake_pool("free", "alice");
	descriptors_review(&fake_registry, 1024);
	assert_int_equal(process->descriptors.kept, 256);
	fake_pool("db", "alice");
	assert_int_equal(process->descriptors.kept, 256);
	descriptors_review(&fake_registry, 20000);
	assert_int_equal(process->descriptors.kept, 5000);
	assert_int_equal(admit(false), 20000 - 20 - 64 - 32 - 16 - 5000);
}

static void test_small_limit_has_room_for_each_use(void **state)
{
	(void)state;
	descriptors_review(&fake_registry, 30);
	assert_int_equal(admit(false), 30 - 20 - 3);
	assert_int_equal(admit(true), 1);
	assert_int_equal(accept_logins(), 1);
}

static void test_lowered_limit_allows_nothing_until_enough_is_free(void **state)
{
	(void)state;
	descriptors_review(&fake_registry, 1000);
	process->limits.clients = process->limits.admitted = 500;
	descriptors_review(&fake_registry, 100);
	assert_false(descriptors_allow_client(process, false));
	assert_false(descriptors_allow_server(process, true));
	/* One login at a time, and consoles. */
	assert_true(descriptors_allow_login(process));
	process->limits.clients++;
	assert_false(descriptors_allow_login(process));
	assert_true(descriptors_allow_client(process, true));
	process->limits.consoles = 1;
	assert_false(descriptors_allow_client(process, true));
	process->limits.clients = process->limits.admitted = 10;
	assert_true(descriptors_allow_login(process));
	assert_true(descriptors_allow_client(process, false));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(without_a_known_limit_everything_is_allowed),
		TEST(clients_leave_room_for_servers_consoles_logins_and_files),
		TEST(servers_may_use_what_clients_leave),
		TEST(pools_together_keep_a_quarter_at_most),
		TEST(small_limit_has_room_for_each_use),
		TEST(lowered_limit_allows_nothing_until_enough_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
