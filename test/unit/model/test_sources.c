/* SPDX-License-Identifier: ISC */
/* Clients are counted by their addresses, and failed logins delay the next ones from there. */
#include <arpa/inet.h>

#include "model/sources.h"
#include "support/fakes/fake_pool.h"

static struct client_link clients[8];

static int start(void **state)
{
	(void)state;
	/* setting: max_client_conn_per_address, per_address_exempt, auth_failure_delay */
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n"
		   "max_client_conn_per_address = 2\n"
		   "per_address_exempt = 10.1.0.0/16, fd00::/8 192.0.2.77\n"
		   "auth_failure_delay = 1\n"
		   "client_login_timeout = 40\n");
	memset(clients, 0, sizeof(clients));
	return 0;
}

/* A client from this address that was accepted. */
static struct client_link *from(unsigned i, const char *text)
{
	struct client_link *client = &clients[i];
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)(i + 1000))};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(5)};
	struct sockaddr local = {.sa_family = AF_UNIX};

	client->link.stream.loop = &fake_loop;
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		client->link.remote = address_of((struct sockaddr *)&in, sizeof(in));
	else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		client->link.remote = address_of((struct sockaddr *)&in6, sizeof(in6));
	else
		client->link.remote = address_of(&local, sizeof(local));
	sources_take(client);
	return client;
}

static void give_all_but_failures(void)
{
	for (size_t i = 0; i < COUNT(clients); i++)
		if (clients[i].link.stream.loop)
			sources_give(&clients[i]);
}

static void give_all(void)
{
	give_all_but_failures();
	assert_null(fake_process.sources.by_address);
}

static void test_address_may_have_as_many_clients_as_the_limit(void **state)
{
	(void)state;
	assert_true(sources_allow(from(0, "192.0.2.1")));
	assert_true(sources_allow(from(1, "192.0.2.1")));
	assert_false(sources_allow(from(2, "192.0.2.1")));
	assert_true(sources_allow(from(3, "192.0.2.2")));
	sources_give(&clients[0]);
	assert_true(sources_allow(&clients[2]));
	give_all();
}

static void test_ipv6_is_counted_by_networks_of_64_bits(void **state)
{
	(void)state;
	from(0, "2001:db8::1");
	from(1, "2001:db8::2:3");
	assert_false(sources_allow(from(2, "2001:db8:0:0:ffff::")));
	assert_true(sources_allow(from(3, "2001:db8:0:1::1")));
	give_all();
}

static void test_mapped_address_is_the_ipv4_address(void **state)
{
	(void)state;
	from(0, "192.0.2.1");
	from(1, "::ffff:192.0.2.1");
	assert_false(sources_allow(from(2, "::ffff:192.0.2.1")));
	assert_true(sources_allow(from(3, "::ffff:192.0.2.2")));
	give_all();
}

static void test_exempt_networks_and_unix_sockets_are_not_counted(void **state)
{
	static const char *const exempt[] = {
		"10.1.2.3", "::ffff:10.1.2.3", "fd01::1", "192.0.2.77", "unix"};

	(void)state;
	for (size_t i = 0; i < COUNT(exempt); i++) {
		for (unsigned j = 0; j < 3; j++)
			assert_true(sources_allow(from(j, exempt[i])));
		assert_null(fake_process.sources.by_address);
		sources_login_failed(&clients[0]);
		assert_int_equal(sources_delay(&clients[0]), 0);
	}
	give_all();
}

static void test_changed_settings_concern_open_connections(void **state)
{
	struct endpoint *ends[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		ends[i] = fake_accept(-1);
	assert_false(sources_allow(endpoint_client(ends[2])));
	fake_set("max_client_conn_per_address", "0");
	assert_true(sources_follow(&fake_process));
	assert_null(fake_process.sources.by_address);
	assert_true(sources_allow(endpoint_client(ends[2])));
	fake_set("max_client_conn_per_address", "2");
	assert_true(sources_follow(&fake_process));
	assert_false(sources_allow(endpoint_client(ends[2])));
	fake_set("per_address_exempt", "192.0.0.0/8");
	assert_true(sources_follow(&fake_process));
	assert_null(fake_process.sources.by_address);
	fake_set("per_address_exempt", "");
	assert_true(sources_follow(&fake_process));
	for (int i = 0; i < 3; i++)
		disconnect(ends[i]);
	assert_null(fake_process.sources.by_address);
}

static void test_each_failure_doubles_the_delay(void **state)
{
	static const usec_t seconds[] = {1, 2, 4, 8, 16, 20, 20, 20};
	struct client_link *client = from(0, "192.0.2.1"), *other = from(1, "192.0.2.2");

	(void)state;
	assert_int_equal(sources_delay(client), 0);
	for (size_t i = 0; i < COUNT(seconds); i++) {
		sources_login_failed(client);
		/* At most half of client_login_timeout. */
		assert_int_equal(sources_delay(client), seconds[i] * USEC_PER_SEC);
		assert_int_equal(sources_delay(other), 0);
	}
	give_all_but_failures();
}

static void test_failures_are_forgotten_one_by_one(void **state)
{
	struct client_link *client = from(0, "192.0.2.1");

	(void)state;
	for (int i = 0; i < 3; i++)
		sources_login_failed(client);
	fake_advance(60 * USEC_PER_SEC);
	assert_int_equal(sources_delay(client), 2 * USEC_PER_SEC);
	sources_login_failed(client);
	assert_int_equal(sources_delay(client), 4 * USEC_PER_SEC);
	fake_advance(179 * USEC_PER_SEC);
	assert_int_equal(sources_delay(client), 1 * USEC_PER_SEC);
	fake_advance(2 * USEC_PER_SEC);
	assert_int_equal(sources_delay(client), 0);
	sources_login_failed(client);
	assert_int_equal(sources_delay(client), 1 * USEC_PER_SEC);
	give_all_but_failures();
}

static void test_flood_of_addresses_takes_limited_memory(void **state)
{
	struct client_link *client = &clients[0];

	(void)state;
	client->link.stream.loop = &fake_loop;
	client->link.remote.family = AF_INET;
	for (uint32_t i = 0; i < SOURCES_FAILED_MOST * 3; i++) {
		const uint32_t address = htonl(0xcb007100 + i);

		memcpy(client->link.remote.bytes, &address, 4);
		sources_login_failed(client);
		assert_int_equal(sources_delay(client), USEC_PER_SEC);
	}
	assert_int_equal(fake_process.sources.failed_count, SOURCES_FAILED_MOST);
	fake_set("auth_failure_delay", "0");
	assert_true(sources_follow(&fake_process));
	assert_null(fake_process.sources.by_address);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(address_may_have_as_many_clients_as_the_limit),
		TEST(ipv6_is_counted_by_networks_of_64_bits),
		TEST(mapped_address_is_the_ipv4_address),
		TEST(exempt_networks_and_unix_sockets_are_not_counted),
		TEST(changed_settings_concern_open_connections),
		TEST(each_failure_doubles_the_delay),
		TEST(failures_are_forgotten_one_by_one),
		TEST(flood_of_addresses_takes_limited_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
