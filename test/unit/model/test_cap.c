/* SPDX-License-Identifier: ISC */
/* What counts below a cap, which servers it lists, and which pool gets the next place. */
#include "model/cap.h"
#include "support/fakes/fake_pool.h"

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "db = host=/tmp max_db_connections=2\n"
		   "heavy = host=/tmp pool_weight=3\n"
		   "warm = host=/tmp min_pool_size=2\n"
		   "free = host=/tmp\n"
		   "[users]\n"
		   "alice = max_user_connections=1\n"
		   "bob = pool_weight=2\n"
		   "[pgbouncer]\n");
	pool = fake_pool("db", "alice");
	return 0;
}

static void take(struct pool *of, int servers)
{
	while (servers-- > 0)
		fake_server(of);
}

static struct pool *process_queue(void)
{
	return cap_first_waiting(&fake_registry.server_cap);
}

/* Waits below max_server_connections since this time. */
static void wait_since(struct pool *of, usec_t since)
{
	cap_wait(of, CAP_PROCESS, since);
}

static void leave_all(void)
{
	while (process_queue())
		cap_leave(process_queue());
}

static void test_servers_count_for_database_user_and_process(void **state)
{
	struct pool *same_database = fake_pool("db", "bob");
	struct pool *same_user = fake_pool("free", "alice");
	struct endpoint *first;

	(void)state;
	fake_set("max_server_connections", "3");
	assert_int_equal(cap_limit(pool, CAP_DATABASE), 2);
	assert_int_equal(cap_limit(pool, CAP_USER), 1);
	assert_int_equal(cap_limit(pool, CAP_PROCESS), 3);
	first = fake_server(pool);
	assert_false(cap_is_full(same_database, CAP_DATABASE));
	assert_true(cap_is_full(same_user, CAP_USER));
	assert_false(cap_is_full(same_database, CAP_USER));
	take(same_database, 1);
	assert_true(cap_is_full(pool, CAP_DATABASE));
	assert_false(cap_is_full(same_user, CAP_DATABASE));
	assert_false(cap_is_full(pool, CAP_PROCESS));
	take(fake_pool("free", "bob"), 1);
	assert_true(cap_is_full(pool, CAP_PROCESS));
	disconnect(first);
	assert_false(cap_is_full(pool, CAP_PROCESS));
	assert_false(cap_is_full(pool, CAP_DATABASE));
	assert_false(cap_is_full(same_user, CAP_USER));
}

static void test_without_a_limit_nothing_is_full_or_listed(void **state)
{
	struct pool *unlimited = fake_pool("free", "carol");

	(void)state;
	take(unlimited, 30);
	assert_int_equal(unlimited->caps, 0);
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		assert_false(cap_is_full(unlimited, kind));
		assert_true(TAILQ_EMPTY(&cap_of(unlimited, kind)->idle));
	}
}

static void test_free_servers_are_listed_with_the_one_longest_unused_first(void **state)
{
	struct cap *cap = cap_of(pool, CAP_DATABASE);
	struct endpoint *first = fake_server(pool), *second = fake_server(pool);

	(void)state;
	assert_ptr_equal(TAILQ_FIRST(&cap->idle), endpoint_server(first));
	server_enter(endpoint_server(first), SERVER_PAIRED);
	assert_ptr_equal(TAILQ_FIRST(&cap->idle), endpoint_server(second));
	server_enter(endpoint_server(first), SERVER_IDLE);
	assert_ptr_equal(TAILQ_LAST(&cap->idle, cap_servers), endpoint_server(first));
	/* STALE is as free as IDLE, and does not change the order. */
	server_enter(endpoint_server(second), SERVER_STALE);
	assert_ptr_equal(TAILQ_FIRST(&cap->idle), endpoint_server(second));
	server_enter(endpoint_server(second), SERVER_CHECKING);
	assert_ptr_equal(TAILQ_FIRST(&cap->idle), endpoint_server(first));
	server_enter(endpoint_server(second), SERVER_IDLE);
}

static void test_a_new_limit_lists_the_servers_that_are_free_already(void **state)
{
	struct pool *unlimited = fake_pool("free", "carol");
	struct cap *cap = cap_of(unlimited, CAP_PROCESS);

	(void)state;
	take(unlimited, 2);
	assert_true(TAILQ_EMPTY(&cap->idle));
	fake_set("max_server_connections", "5");
	assert_non_null(TAILQ_FIRST(&cap->idle));
	fake_set("max_server_connections", "0");
	assert_true(TAILQ_EMPTY(&cap->idle));
}

static void test_the_pool_with_the_smallest_load_is_next(void **state)
{
	struct pool *none = fake_pool("free", "carol"), *one = fake_pool("free", "dora");
	struct pool *heavy = fake_pool("heavy", "carol");

	(void)state;
	fake_set("max_server_connections", "9");
	take(one, 1);
	take(heavy, 3);
	wait_since(one, 1); /* 2 of weight 1 */
	wait_since(heavy, 4); /* 4 of weight 3 */
	assert_ptr_equal(process_queue(), heavy);
	wait_since(none, 3); /* 1 of weight 1 */
	assert_ptr_equal(process_queue(), none);
	/* The weight of a user wins over that of the database. */
	wait_since(fake_pool("heavy", "bob"), 2); /* 1 of weight 2 */
	assert_ptr_equal(process_queue(), fake_pool("heavy", "bob"));
	leave_all();
}

static void test_of_equal_loads_the_longest_wait_is_next(void **state)
{
	struct pool *late = fake_pool("free", "carol"), *early = fake_pool("free", "dora");

	(void)state;
	fake_set("max_server_connections", "9");
	assert_true(cap_is_next(late, CAP_PROCESS, 9));
	wait_since(late, 9);
	assert_false(cap_is_next(early, CAP_PROCESS, 10));
	assert_true(cap_is_next(early, CAP_PROCESS, 8));
	wait_since(early, 8);
	assert_ptr_equal(process_queue(), early);
	/* One server more, and it comes later. */
	take(early, 1);
	assert_ptr_equal(process_queue(), late);
	leave_all();
}

static enum cap_claim claim_of(const struct pool *to, const struct pool *from)
{
	return cap_claim_of(to, from, CAP_PROCESS);
}

static void test_the_pool_with_fewer_servers_has_the_better_claim(void **state)
{
	struct pool *a = fake_pool("free", "carol"), *b = fake_pool("free", "dora");
	struct pool *heavy = fake_pool("heavy", "dora");

	(void)state;
	assert_int_equal(claim_of(b, a), CAP_CLAIM_NONE);
	take(a, 1);
	assert_int_equal(claim_of(b, a), CAP_CLAIM_EQUAL);
	take(b, 1);
	assert_int_equal(claim_of(b, a), CAP_CLAIM_NONE);
	take(a, 2);
	assert_int_equal(claim_of(b, a), CAP_CLAIM_BETTER);
	take(heavy, 8);
	/* 9 of weight 3 are as many as 3 of weight 1. */
	assert_int_equal(claim_of(heavy, a), CAP_CLAIM_EQUAL);
	take(heavy, 1);
	assert_int_equal(claim_of(heavy, a), CAP_CLAIM_NONE);
}

static void test_min_pool_size_is_granted_before_anything_is_shared(void **state)
{
	struct pool *warm = fake_pool("warm", "carol"), *other = fake_pool("free", "dora");

	(void)state;
	fake_set("max_server_connections", "4");
	take(warm, 2);
	take(other, 1);
	assert_int_equal(claim_of(other, warm), CAP_CLAIM_NONE);
	assert_true(cap_keeps_all(warm, CAP_PROCESS));
	take(warm, 2);
	assert_int_equal(claim_of(other, warm), CAP_CLAIM_EQUAL);
	assert_int_equal(claim_of(fake_pool("warm", "dora"), other), CAP_CLAIM_BETTER);
	/* Minima that the cap cannot grant together count for nothing. */
	fake_set("max_server_connections", "3");
	assert_false(cap_keeps_all(fake_pool("warm", "dora"), CAP_PROCESS) &&
		pool_servers(fake_pool("warm", "dora")) > 0);
	assert_int_equal(claim_of(fake_pool("warm", "dora"), other), CAP_CLAIM_EQUAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(servers_count_for_database_user_and_process),
		TEST(without_a_limit_nothing_is_full_or_listed),
		TEST(free_servers_are_listed_with_the_one_longest_unused_first),
		TEST(a_new_limit_lists_the_servers_that_are_free_already),
		TEST(the_pool_with_the_smallest_load_is_next),
		TEST(of_equal_loads_the_longest_wait_is_next),
		TEST(the_pool_with_fewer_servers_has_the_better_claim),
		TEST(min_pool_size_is_granted_before_anything_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
