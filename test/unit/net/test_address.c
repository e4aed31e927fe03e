/* SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/address.h"

static struct address ipv4(const char *text, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	return address_of((const struct sockaddr *)&in, sizeof(in));
}

static struct address ipv6(const char *text, uint16_t port)
{
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET6, text, &in.sin6_addr), 1);
	return address_of((const struct sockaddr *)&in, sizeof(in));
}

static void expect_texts(struct address address, const char *host, const char *text)
{
	char out[ADDRESS_TEXT_SIZE];

	assert_string_equal(address_host(&address, out), host);
	assert_string_equal(address_text(&address, out), text);
}

static void test_addresses_are_written_as_logs_have_them(void **state)
{
	(void)state;
	expect_texts(ipv4("127.0.0.1", 6432), "127.0.0.1", "127.0.0.1:6432");
	expect_texts(
		ipv4("255.255.255.255", 65535), "255.255.255.255", "255.255.255.255:65535");
	expect_texts(ipv6("::1", 40036), "::1", "[::1]:40036");
	expect_texts(ipv6("fe80:1111:2222:3333:4444:5555:6666:7777", 65535),
		"fe80:1111:2222:3333:4444:5555:6666:7777",
		"[fe80:1111:2222:3333:4444:5555:6666:7777]:65535");
	expect_texts((struct address){.family = AF_UNIX, .port = 6432, .pid = 12868}, "unix",
		"unix(12868):6432");
	expect_texts((struct address){.family = AF_UNIX, .port = 5432}, "unix", "unix:5432");
	expect_texts((struct address){.family = AF_UNSPEC}, "(bad-af)", "(bad-af):0");
}

static void test_cut_socket_address_is_unknown(void **state)
{
	const struct sockaddr_in in = {.sin_family = AF_INET};
	const struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	(void)state;
	assert_int_equal(
		address_of((const struct sockaddr *)&in, sizeof(in) - 1).family, AF_UNSPEC);
	assert_int_equal(
		address_of((const struct sockaddr *)&in6, sizeof(in6) - 5).family, AF_UNSPEC);
}

static void test_peer_without_an_address_is_unknown(void **state)
{
	const struct sockaddr_storage garbage = {.ss_family = AF_INET};

	(void)state;
	assert_int_equal(address_of((const struct sockaddr *)&garbage, 0).family, AF_UNSPEC);
}

static void test_unnamed_unix_peer_has_its_family(void **state)
{
	const struct sockaddr_un unnamed = {.sun_family = AF_UNIX};

	(void)state;
	assert_int_equal(
		address_of((const struct sockaddr *)&unnamed, sizeof(sa_family_t)).family,
		AF_UNIX);
}

static void test_local_address_is_that_of_the_socket(void **state)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct address address;

	(void)state;
	assert_int_equal(bind(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
	address = address_local(fd);
	assert_int_equal(address.family, AF_INET);
	assert_int_not_equal(address.port, 0);
	close(fd);
	assert_int_equal(address_local(-1).family, AF_UNSPEC);
}

static void test_equality_compares_host_and_port(void **state)
{
	const struct address a = ipv4("10.0.0.1", 1), same = ipv4("10.0.0.1", 1),
			     port = ipv4("10.0.0.1", 2), host = ipv4("10.0.0.2", 1);
	const struct address six = ipv6("::1", 1), other_six = ipv6("::2", 1);
	const struct address local = {.family = AF_UNIX, .port = 1, .pid = 5},
			     other_pid = {.family = AF_UNIX, .port = 1, .pid = 6};

	(void)state;
	assert_true(address_equal(&a, &same));
	assert_false(address_equal(&a, &port));
	assert_false(address_equal(&a, &host));
	assert_false(address_equal(&a, &six));
	assert_false(address_equal(&six, &other_six));
	assert_true(address_equal(&local, &other_pid));
}

static void test_unix_paths_and_abstract_names(void **state)
{
	struct sockaddr_un out;
	char longest[sizeof(out.sun_path) + 1];

	(void)state;
	assert_int_equal(
		address_unix(&out, "/tmp/s"), offsetof(struct sockaddr_un, sun_path) + 7);
	assert_int_equal(out.sun_family, AF_UNIX);
	assert_string_equal(out.sun_path, "/tmp/s");
	assert_int_equal(
		address_unix(&out, "@dir/s"), offsetof(struct sockaddr_un, sun_path) + 6);
	assert_memory_equal(out.sun_path, "\0dir/s", 6);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(out.sun_path)] = '\0';
	assert_int_equal(address_unix(&out, longest), 0);
	longest[sizeof(out.sun_path) - 1] = '\0';
	assert_int_equal(address_unix(&out, longest), sizeof(out));
}

static void test_ipv4_address_in_an_ipv6_address_is_unmapped(void **state)
{
	const struct address mapped = ipv6("::ffff:10.1.2.3", 7),
			     six = ipv6("::fffe:10.1.2.3", 7);
	struct address unmapped = address_unmapped(&mapped);

	(void)state;
	expect_texts(unmapped, "10.1.2.3", "10.1.2.3:7");
	unmapped = address_unmapped(&unmapped);
	expect_texts(unmapped, "10.1.2.3", "10.1.2.3:7");
	unmapped = address_unmapped(&six);
	expect_texts(unmapped, "::fffe:a01:203", "[::fffe:a01:203]:7");
	unmapped = address_unmapped(&(struct address){.family = AF_UNIX, .pid = 5, .port = 6});
	expect_texts(unmapped, "unix", "unix(5):6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses_are_written_as_logs_have_them),
		cmocka_unit_test(test_cut_socket_address_is_unknown),
		cmocka_unit_test(test_peer_without_an_address_is_unknown),
		cmocka_unit_test(test_unnamed_unix_peer_has_its_family),
		cmocka_unit_test(test_local_address_is_that_of_the_socket),
		cmocka_unit_test(test_equality_compares_host_and_port),
		cmocka_unit_test(test_unix_paths_and_abstract_names),
		cmocka_unit_test(test_ipv4_address_in_an_ipv6_address_is_unmapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
