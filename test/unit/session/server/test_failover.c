/* SPDX-License-Identifier: ISC */
/*
 * Failover: which servers are closed when their host name has another address, or a server is
 * read-only.
 */
#include <netinet/in.h>
#include <sys/un.h>

#include "session/pool/launch.h"
#include "session/server/failover.h"
#include "support/fakes/fake_pool.h"
#include "support/postgres/fake_postgres.h"

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\n"
		   "db = host=a.test,/sockets,b.test\n"
		   "other = host=a.test\n"
		   "[pgbouncer]\n"
		   "pool_mode = transaction\n"
		   "server_reset_query =\n");
	pool = fake_pool("db", "alice");
	return 0;
}

/* --- host names with a new address -------------------------------------------------------- */

static struct sockaddr_in ipv4(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(address),
		.sin_port = htons(port),
	};
}

/* An idle server that was connected to the nth host of its database's list. */
static struct endpoint *server_of_host(struct pool *of, uint16_t host, uint32_t address)
{
	struct endpoint *endpoint = fake_server(of);
	struct server_link *server = endpoint_server(endpoint);
	const struct sockaddr_in where = ipv4(address, 5432);

	memset(&server->where, 0, sizeof(server->where));
	memcpy(&server->where, &where, sizeof(where));
	server->where_length = sizeof(where);
	server->host = host;
	return endpoint;
}

static void move_host(const char *name, uint32_t old_address)
{
	const struct sockaddr_in address = ipv4(old_address, 0);

	failover_host_moved(
		&fake_registry, name, (const struct sockaddr *)&address, sizeof(address));
}

static void test_servers_at_an_old_address_are_closed(void **state)
{
	struct endpoint *old_address = server_of_host(pool, 0, 0x0a000001);
	struct endpoint *stays = server_of_host(pool, 0, 0x0a000002);
	struct endpoint *elsewhere = server_of_host(fake_pool("other", "bob"), 0, 0x0a000001);

	(void)state;
	move_host("a.test", 0x0a000001);
	assert_true(endpoint_server(old_address)->close_needed);
	assert_false(endpoint_server(stays)->close_needed);
	assert_true(endpoint_server(elsewhere)->close_needed);
	assert_non_null(pool->welcome);
	assert_true(
		fake_logged("a.test is no longer at 10.0.0.1, connections to be retired: 2"));
}

static void test_servers_of_other_host_names_are_kept(void **state)
{
	struct endpoint *by_other_name = server_of_host(pool, 2, 0x0a000001);
	struct endpoint *out_of_list = server_of_host(pool, 7, 0x0a000001);
	struct endpoint *on_socket = fake_server(pool);

	(void)state;
	endpoint_server(on_socket)->host = 1;
	move_host("a.test", 0x0a000001);
	move_host("a.tes", 0x0a000001);
	move_host("a.test.", 0x0a000001);
	move_host("/sockets", 0x0a000001);
	assert_false(endpoint_server(by_other_name)->close_needed);
	assert_false(endpoint_server(out_of_list)->close_needed);
	assert_false(endpoint_server(on_socket)->close_needed);
	assert_false(fake_logged("is no longer at"));
	move_host("b.test", 0x0a000001);
	assert_true(endpoint_server(by_other_name)->close_needed);
}

static void test_paired_server_at_an_old_address_is_closed_when_unpaired(void **state)
{
	struct endpoint *server = server_of_host(pool, 0, 0x0a000001);
	struct endpoint *client = fake_client(pool);

	(void)state;
	send_letters(client, "Q");
	assert_received(server, "Q");
	move_host("a.test", 0x0a000001);
	send_letters(server, "C>");
	assert_received(client, "C>");
	send_letters(client, "Q");
	send_letters(server, "CZ");
	assert_received(client, "CZ");
	assert_closed(server);
	assert_state(client, CLIENT_IDLE);
}

/* --- read-only servers -------------------------------------------------------------------- */

static struct endpoint *client, *first, *second, *third;

/*
 * Two servers of the pool, one of another pool of the database; a client is paired with
 * `first`.
 */
static void pair_with_first(void)
{
	second = fake_server(pool);
	first = fake_server(pool);
	third = fake_server(fake_pool("db", "bob"));
	client = fake_client(pool);
	send_letters(client, "Q");
	assert_received(first, "Q");
}

static void send_read_only_error(struct endpoint *server)
{
	send_error(server, "25006", "cannot execute INSERT in a read-only transaction");
}

static bool is_close_needed(struct endpoint *server)
{
	return endpoint_server(server)->close_needed;
}

static void test_read_only_error_closes_all_servers_of_the_database(void **state)
{
	struct endpoint *other = fake_server(fake_pool("other", "bob"));

	(void)state;
	pair_with_first();
	send_read_only_error(first);
	assert_received(client, "E");
	assert_true(
		is_close_needed(first) && is_close_needed(second) && is_close_needed(third));
	assert_false(is_close_needed(other));
	assert_non_null(pool->welcome);
	send_letters(first, "Z");
	assert_received(client, "Z");
	assert_closed(first);
	assert_state(client, CLIENT_IDLE);
	assert_true(fake_logged("the server is read-only, looking for its successor"));
}

static void test_other_errors_close_no_servers(void **state)
{
	static const char *const codes[] = {"25001", "25P02", "2500", "250066", "", "57P01"};

	(void)state;
	pair_with_first();
	for (size_t i = 0; i < COUNT(codes); i++) {
		send_error(first, codes[i], "other error");
		send_letters(first, "Z");
		assert_received(client, "EZ");
		assert_false(is_close_needed(first) || is_close_needed(second));
		send_letters(client, "Q");
		assert_received(first, "Q");
	}
}

static void test_read_only_error_is_ignored_without_server_failover_check(void **state)
{
	(void)state;
	fake_set("server_failover_check", "0");
	pair_with_first();
	send_read_only_error(first);
	assert_received(client, "E");
	assert_false(is_close_needed(first) || is_close_needed(second));
}

static void test_read_only_error_is_recognized_in_a_batch(void **state)
{
	(void)state;
	pair_with_first();
	send_letters(first, "CZ");
	assert_received(client, "CZ");
	send_letters(client, "PBES");
	assert_received(first, "PBES");
	send_letters(first, "12");
	send_read_only_error(first);
	assert_received(client, "12E");
	assert_true(is_close_needed(second));
}

static void test_read_only_error_is_recognized_before_all_of_it_arrives(void **state)
{
	static char text[80000];
	struct buffer whole;

	(void)state;
	pair_with_first();
	memset(text, 'x', sizeof(text) - 1);
	buffer_init(&whole);
	buffer_append(&whole, "E\0\0\0\0SERROR\0C25006\0M", 20);
	buffer_append(&whole, text, sizeof(text));
	buffer_append(&whole, "", 1);
	whole.data[2] = (uint8_t)((whole.length - 1) >> 16);
	whole.data[3] = (uint8_t)((whole.length - 1) >> 8);
	whole.data[4] = (uint8_t)(whole.length - 1);
	send_bytes(first, whole.data, 9000);
	assert_true(is_close_needed(second));
	send_bytes(first, whole.data + 9000, whole.length - 9000);
	assert_received(client, "E");
	buffer_free(&whole);
}

static void test_new_servers_are_not_closed_at_each_read_only_error(void **state)
{
	(void)state;
	pair_with_first();
	send_read_only_error(first);
	send_letters(first, "Z");
	assert_received(client, "EZ");
	first = fake_server(pool);
	send_letters(client, "Q");
	assert_received(first, "Q");
	send_read_only_error(first);
	assert_false(is_close_needed(first));
	fake_advance(2100 * USEC_PER_MSEC);
	send_read_only_error(first);
	assert_true(is_close_needed(first));
}

/* --- the resolver ------------------------------------------------------------------------- */

/* Names in the hosts file are resolved without a name server. */
static void test_read_only_error_expires_the_resolved_addresses(void **state)
{
	const struct resolver_options options = {
		.servers = "127.0.0.1:9",
		.found_life = 1000 * USEC_PER_SEC,
		.names_max = 10,
	};
	const struct resolver_name *name;
	struct endpoint *server;
	char why[100];

	(void)state;
	fake_end(NULL);
	fake_start("[databases]\ndb = host=localhost\n[pgbouncer]\npool_mode = transaction\n"
		   "server_reset_query =\n");
	pool = fake_pool("db", "alice");
	fake_registry.resolver = resolver_new(&fake_loop, &options, why, sizeof(why));
	assert_non_null(fake_registry.resolver);
	launch_server(pool, false);
	for (int i = 0; i < 5; i++)
		fake_turn();
	name = resolver_next(fake_registry.resolver, NULL);
	assert_non_null(name);
	assert_int_not_equal(resolver_row_of(fake_registry.resolver, name).left, 0);
	server = fake_server(pool);
	client = fake_client(pool);
	send_letters(client, "Q");
	send_read_only_error(server);
	assert_int_equal(resolver_row_of(fake_registry.resolver, name).left, 0);
	resolver_free(fake_registry.resolver);
	fake_registry.resolver = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(servers_at_an_old_address_are_closed),
		TEST(servers_of_other_host_names_are_kept),
		TEST(paired_server_at_an_old_address_is_closed_when_unpaired),
		TEST(read_only_error_closes_all_servers_of_the_database),
		TEST(other_errors_close_no_servers),
		TEST(read_only_error_is_ignored_without_server_failover_check),
		TEST(read_only_error_is_recognized_in_a_batch),
		TEST(read_only_error_is_recognized_before_all_of_it_arrives),
		TEST(new_servers_are_not_closed_at_each_read_only_error),
		TEST(read_only_error_expires_the_resolved_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
