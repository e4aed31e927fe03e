/* SPDX-License-Identifier: ISC */
/* What one worker learns of a host, and what the others make of it. */
#include "model/shared/host_news.h"
#include "session/server/host_report.h"
#include "session/server/host_role.h"
#include "support/fakes/fake_pool.h"

enum { WORKERS = 3 };

static struct host_news seen[WORKERS]; /* by worker */
static unsigned seen_count;

static int start(void **state)
{
	(void)state;
	memset(seen, 0, sizeof(seen));
	seen_count = 0;
	fake_workers = WORKERS;
	fake_start("[databases]\n"
		   "db = host=10.0.0.1,10.0.0.2 target_session_attrs=primary worker=1\n"
		   "[pgbouncer]\n"
		   "auth_type = trust\n");
	return 0;
}

static struct host *open_at(unsigned worker, const char *name, const char *address)
{
	const struct host_item item = {name, strlen(name), 5432};
	struct sockaddr_storage where;
	struct address found;

	if (!address)
		return hosts_open(&fake_registry_of(worker)->hosts, &item, NULL);
	found = address_of(
		(const struct sockaddr *)&where, resolver_literal(address, 5432, &where));
	return hosts_open(&fake_registry_of(worker)->hosts, &item, &found);
}

static struct host *at_worker(unsigned worker, const struct host *host)
{
	return hosts_like(&fake_registry_of(worker)->hosts, host);
}

static void take(struct registry *registry, struct host *host, const struct host_news *news)
{
	assert_ptr_equal(host, hosts_like(&registry->hosts, host));
	seen[registry->number] = *news;
	seen_count++;
}

static usec_t now(void)
{
	return loop_now(fake_registry.loop);
}

/* A server of worker 0 at this host. */
static struct server_link server_at(struct host *host)
{
	struct server_link server = {.at = host};

	server.link.stream.loop = fake_registry.loop;
	server.link.pool = fake_registry.console_pool;
	return server;
}

static void test_all_others_are_told(void **state)
{
	struct host *host = open_at(0, "10.0.0.1", NULL);

	(void)state;
	host->role = HOST_ROLE_STANDBY;
	host->told_by = HOST_TOLD_BY_REPORT;
	host->timeline = 7;
	open_at(2, "10.0.0.1", NULL);
	host_news_send(&fake_registry, host, take);
	/* What changes behind it is not sent. */
	host->timeline = 8;
	fake_deliver();
	assert_int_equal(seen_count, WORKERS - 1);
	for (unsigned i = 1; i < WORKERS; i++) {
		assert_non_null(at_worker(i, host));
		assert_int_equal(seen[i].at, now());
		assert_int_equal(seen[i].role, HOST_ROLE_STANDBY);
		assert_int_equal(seen[i].told_by, HOST_TOLD_BY_REPORT);
		assert_int_equal(seen[i].timeline, 7);
	}
}

static void test_addresses_of_names_are_added_by_resolvers_only(void **state)
{
	struct host *host = open_at(0, "name", "10.0.0.1");

	(void)state;
	open_at(1, "name", "10.0.0.2");
	open_at(2, "name", "10.0.0.1");
	host_news_send(&fake_registry, host, take);
	fake_deliver();
	assert_int_equal(seen_count, 1);
	assert_int_equal(seen[2].at, now());
	assert_null(at_worker(1, host));
}

static void test_nothing_is_sent_of_a_name(void **state)
{
	struct host *host = open_at(0, "name", NULL);

	(void)state;
	host->is_name = true;
	host_news_send(&fake_registry, host, take);
	fake_deliver();
	assert_int_equal(seen_count, 0);
	assert_null(at_worker(1, host));
}

static void test_the_longest_pause_holds_for_all(void **state)
{
	struct host *host = open_at(0, "10.0.0.1", NULL), *far;
	usec_t pause;

	(void)state;
	host_role_fails(&fake_registry, host, "connect failed");
	fake_deliver();
	far = at_worker(1, host);
	assert_int_equal(far->failed_since, now());
	assert_int_equal(far->failures, 1);
	assert_int_equal(far->next_try, host->next_try);
	assert_string_equal(far->error, "connect failed");
	pause = far->next_try += USEC_PER_SEC * 60;
	far->failures = 9;
	host_role_fails(&fake_registry, host, "no answer");
	fake_deliver();
	assert_int_equal(far->failures, 9);
	assert_int_equal(far->next_try, pause);
	assert_string_equal(far->error, "connect failed");
	assert_string_equal(at_worker(2, host)->error, "no answer");
}

static void test_an_answer_ends_older_failures_only(void **state)
{
	struct host *host = open_at(0, "10.0.0.1", NULL);
	struct server_link server = server_at(host);

	(void)state;
	host_role_fails(&fake_registry, host, "connect failed");
	fake_deliver();
	/* Worker 2 fails there after the answer that worker 0 gets. */
	at_worker(2, host)->failed_since = now() + 1;
	host_role_lives(&server, 0);
	fake_deliver();
	assert_int_equal(host->failed_since, 0);
	assert_int_equal(at_worker(1, host)->failed_since, 0);
	assert_string_equal(at_worker(1, host)->error, "");
	assert_int_equal(at_worker(2, host)->failed_since, now() + 1);
}

static void test_roles_and_what_a_probe_tells_are_taken_over(void **state)
{
	struct host *old = open_at(0, "10.0.0.1", NULL), *new = open_at(0, "10.0.0.2", NULL);
	struct server_link at_old = server_at(old), at_new = server_at(new);
	struct host_facts facts = {.role = HOST_ROLE_PRIMARY, .system = 5, .timeline = 1};

	(void)state;
	fake_pool("db", "alice");
	host_report_probed(&at_old, &facts);
	facts.role = HOST_ROLE_STANDBY;
	facts.timeline = 0;
	facts.read_only = true;
	host_report_probed(&at_new, &facts);
	fake_deliver();
	assert_int_equal(at_worker(1, old)->role, HOST_ROLE_PRIMARY);
	assert_int_equal(at_worker(1, old)->told_by, HOST_TOLD_BY_PROBE);
	assert_int_equal(at_worker(1, old)->system, 5);
	assert_int_equal(at_worker(1, old)->timeline, 1);
	assert_int_equal(at_worker(1, new)->role, HOST_ROLE_STANDBY);
	assert_true(at_worker(1, new)->read_only);
	/* Only worker 1 has a database that lists both: the promotion supersedes the old primary there. */
	at_new.role = HOST_ROLE_PRIMARY;
	host_report_logged_in(&at_new);
	fake_deliver();
	assert_int_equal(at_worker(1, new)->role, HOST_ROLE_PRIMARY);
	assert_int_equal(at_worker(1, new)->told_by, HOST_TOLD_BY_LOGIN);
	assert_true(at_worker(1, old)->superseded);
	assert_false(at_worker(1, new)->superseded);
	assert_true(at_worker(1, new)->read_only);
}

static void test_older_news_do_not_count(void **state)
{
	struct host *host = open_at(0, "10.0.0.1", NULL);
	struct host *asked = open_at(1, "10.0.0.1", NULL), *told = open_at(2, "10.0.0.1", NULL);
	struct server_link server = server_at(host);
	const struct host_facts facts = {
		.role = HOST_ROLE_PRIMARY, .read_only = true, .system = 5, .timeline = 1};

	(void)state;
	asked->told_at = now() + 1;
	told->role = HOST_ROLE_STANDBY;
	told->role_since = now() + 1;
	server.role = HOST_ROLE_PRIMARY;
	host_report_logged_in(&server);
	fake_deliver();
	assert_int_equal(asked->role, HOST_ROLE_UNKNOWN);
	assert_int_equal(told->role, HOST_ROLE_STANDBY);
	host_report_probed(&server, &facts);
	fake_deliver();
	assert_int_equal(asked->system, 0);
	assert_false(asked->read_only);
	assert_int_equal(told->timeline, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_others_are_told, start, fake_end),
		cmocka_unit_test_setup_teardown(
			test_addresses_of_names_are_added_by_resolvers_only, start, fake_end),
		cmocka_unit_test_setup_teardown(
			test_nothing_is_sent_of_a_name, start, fake_end),
		cmocka_unit_test_setup_teardown(
			test_the_longest_pause_holds_for_all, start, fake_end),
		cmocka_unit_test_setup_teardown(
			test_an_answer_ends_older_failures_only, start, fake_end),
		cmocka_unit_test_setup_teardown(
			test_roles_and_what_a_probe_tells_are_taken_over, start, fake_end),
		cmocka_unit_test_setup_teardown(test_older_news_do_not_count, start, fake_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
