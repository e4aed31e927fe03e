/* SPDX-License-Identifier: ISC */
/* What the workers know of a host, put together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/shared/all_hosts.h"

enum { WORKERS = 3 };

#define NOW (1000 * USEC_PER_SEC)

static struct process process;
static struct registry registries[WORKERS];
static struct loop loop;
static union host_room room;

static int set_up(void **state)
{
	(void)state;
	process = (struct process){.workers = WORKERS};
	loop = (struct loop){.now = NOW, .now_known = true};
	for (unsigned i = 0; i < WORKERS; i++) {
		registries[i] =
			(struct registry){.process = &process, .number = i, .loop = &loop};
		TAILQ_INIT(&registries[i].hosts);
		registries[i].hosts.last = &process.last_host;
		process.registries[i] = &registries[i];
	}
	return 0;
}

static int tear_down(void **state)
{
	struct host *host;

	(void)state;
	for (unsigned i = 0; i < WORKERS; i++) {
		TAILQ_FOREACH (host, &registries[i].hosts, in_hosts)
			host->servers = 0;
		hosts_free(&registries[i].hosts);
	}
	return 0;
}

static struct host *add(unsigned worker, const char *name, const char *address)
{
	const struct host_item item = {name, strlen(name), 5432};
	struct sockaddr_storage where;
	struct address found;

	if (!address)
		return hosts_open(&registries[worker].hosts, &item, NULL);
	found = address_of(
		(const struct sockaddr *)&where, resolver_literal(address, 5432, &where));
	return hosts_open(&registries[worker].hosts, &item, &found);
}

static const struct host *view(const struct host *host)
{
	return all_hosts_view(&process, host, &room);
}

static void test_each_host_is_visited_once(void **state)
{
	struct host_walk walk = {.process = &process};
	struct host *const a = add(1, "a", "10.0.0.1"), *const b = add(1, "a", "10.0.0.2");
	struct host *const c = add(0, "c", NULL), *const again = add(2, "a", "10.0.0.1");
	struct host *const gone = add(0, "a", "10.0.0.2");

	(void)state;
	add(2, "c", NULL);
	/* A worker that has noticed that the name lost the address does not hide it. */
	gone->gone = true;
	assert_ptr_equal(host_walk_next(&walk), c);
	assert_ptr_equal(host_walk_next(&walk), a);
	assert_ptr_equal(host_walk_next(&walk), b);
	assert_null(host_walk_next(&walk));
	assert_ptr_equal(all_hosts_first(&process, again), a);
	assert_ptr_equal(all_hosts_first(&process, c), c);
}

static void test_hosts_of_all_workers_have_numbers_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(add(1, "a", NULL)->number, 1);
	assert_int_equal(add(0, "b", NULL)->number, 2);
	assert_int_equal(add(2, "a", NULL)->number, 3);
	assert_int_equal(add(1, "c", NULL)->number, 4);
}

static void test_servers_are_summed(void **state)
{
	struct host *first = add(0, "a", NULL);

	(void)state;
	first->servers = 1;
	add(1, "a", NULL)->servers = 2;
	add(2, "a", NULL)->servers = 4;
	add(2, "b", NULL)->servers = 8;
	assert_int_equal(view(first)->servers, 7);
	assert_int_equal(view(first)->number, first->number);
	assert_string_equal(view(first)->name, "a");
}

static void test_one_worker_has_the_host_itself(void **state)
{
	struct host *host = add(0, "a", NULL);

	(void)state;
	process.workers = 1;
	assert_ptr_equal(view(host), host);
}

static void test_the_role_is_what_was_told_last(void **state)
{
	struct host *const first = add(0, "a", NULL), *const other = add(1, "a", NULL);
	struct host *const third = add(2, "a", NULL);

	(void)state;
	host_set_role(first, HOST_ROLE_PRIMARY, HOST_TOLD_BY_LOGIN, NOW - 50 * USEC_PER_SEC);
	host_set_role(other, HOST_ROLE_STANDBY, HOST_TOLD_BY_REPORT, NOW - 20 * USEC_PER_SEC);
	host_set_role(third, HOST_ROLE_STANDBY, HOST_TOLD_BY_PROBE, NOW - 30 * USEC_PER_SEC);
	assert_int_equal(view(first)->role, HOST_ROLE_STANDBY);
	assert_int_equal(view(first)->told_by, HOST_TOLD_BY_REPORT);
	assert_int_equal(view(first)->role_since, NOW - 20 * USEC_PER_SEC);
	/* Another worker with servers there noticed it before. */
	third->servers = 1;
	assert_int_equal(view(first)->role_since, NOW - 30 * USEC_PER_SEC);
	/* A probe may tell later what was known. */
	first->told_at = NOW - 10 * USEC_PER_SEC;
	assert_int_equal(view(first)->role, HOST_ROLE_PRIMARY);
	assert_int_equal(view(first)->role_since, NOW - 50 * USEC_PER_SEC);
}

static void test_a_host_is_down_while_a_worker_tries_it_in_vain(void **state)
{
	struct host *const first = add(0, "a", NULL), *const other = add(1, "a", NULL);

	(void)state;
	first->connect_time = 5;
	assert_int_equal(view(first)->failed_since, 0);
	other->failed_since = NOW - 300 * USEC_PER_SEC;
	other->failures = 7;
	other->next_try = NOW + 3;
	memcpy(other->error, "refused", sizeof("refused"));
	assert_int_equal(view(first)->failed_since, other->failed_since);
	assert_int_equal(view(first)->failures, 7);
	assert_int_equal(view(first)->next_try, NOW + 3);
	assert_string_equal(view(first)->error, "refused");
	assert_int_equal(view(first)->connect_time, 5);
	/* It has not tried again for long, and another worker has logged in there. */
	other->next_try = NOW - 61 * USEC_PER_SEC;
	assert_int_equal(view(first)->failed_since, 0);
	assert_int_equal(view(first)->failures, 0);
	assert_string_equal(view(first)->error, "");
	/* No other worker has. */
	first->connect_time = 0;
	assert_int_equal(view(first)->failed_since, other->failed_since);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_each_host_is_visited_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_hosts_of_all_workers_have_numbers_of_their_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_servers_are_summed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_one_worker_has_the_host_itself, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_role_is_what_was_told_last, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_host_is_down_while_a_worker_tries_it_in_vain, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
