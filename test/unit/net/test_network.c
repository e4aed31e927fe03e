/* SPDX-License-Identifier: ISC */
/* Ranges of addresses, as in access rules. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/network.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct address address(const char *text)
{
	struct address out = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};

	assert_int_equal(inet_pton(out.family, text, out.bytes), 1);
	return out;
}

static void test_address_is_in_its_range_only(void **state)
{
	static const struct {
		const char *network, *address;
		bool inside;
	} cases[] = {
		{"0.0.0.0/0", "255.1.2.3", true},
		{"10.0.0.0/8", "10.255.0.1", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"10.128.0.0/9", "10.128.0.0", true},
		{"10.128.0.0/9", "10.127.255.255", false},
		{"127.0.0.1/32", "127.0.0.1", true},
		{"127.0.0.1/32", "127.0.0.2", false},
		{"127.0.0.1/8", "127.0.0.1",
			false}, /* bits outside of the mask: matches none */
		{"::/0", "2001:db8::1", true},
		{"::/0", "1.2.3.4", false},
		{"0.0.0.0/0", "::1", false},
		{"0.0.0.0/0", "::ffff:1.2.3.4", false},
		{"::1/128", "::1", true},
		{"::1/128", "::2", false},
		{"fe80::/10", "febf::1", true},
		{"fe80::/10", "fec0::1", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct address peer = address(cases[i].address);
		struct network network;

		assert_true(network_parse(cases[i].network, &network));
		assert_int_equal(network_has(&network, &peer), cases[i].inside);
	}
}

static void test_mask_may_be_separate_and_have_gaps(void **state)
{
	struct address in = address("10.7.0.1"), out = address("10.7.1.1");
	struct network network;

	(void)state;
	assert_true(network_parse_masked("10.0.0.1", "255.0.255.255", &network));
	assert_true(network_has(&network, &in));
	assert_false(network_has(&network, &out));
	assert_true(network_parse_masked("2001:db8::", "ffff:ffff::", &network));
	in = address("2001:db8:1::1");
	assert_true(network_has(&network, &in));
	assert_false(network_parse_masked("10.0.0.1", "ffff::", &network));
	assert_false(network_parse_masked("::", "255.0.0.0", &network));
	assert_false(network_parse_masked("localhost", "255.0.0.0", &network));
	assert_false(network_parse_masked("10.0.0.1", "8", &network));
}

static void test_unix_and_unknown_addresses_are_in_no_range(void **state)
{
	static const uint8_t families[] = {AF_UNIX, AF_UNSPEC};
	struct network network;

	(void)state;
	assert_true(network_parse("0.0.0.0/0", &network));
	for (size_t i = 0; i < COUNT(families); i++) {
		const struct address peer = {.family = families[i]};

		assert_false(network_has(&network, &peer));
	}
}

static void test_invalid_ranges_are_refused(void **state)
{
	static const char *const bad[] = {"", "/", "/8", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33",
		"10.0.0.0/-1", "10.0.0.0/ 8", "10.0.0.0/8 ", "10.0.0.0/8x", "10.0.0.0/0008",
		"10.0.0/8", "10.0.0.0/8/8", "::/129", "fe80::1%eth0/64", "localhost/8",
		"samenet", "300.0.0.0/8",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/8"};
	struct network network;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(network_parse(bad[i], &network));
}

static void test_range_without_addresses_is_detected(void **state)
{
	char text[ADDRESS_TEXT_SIZE];
	struct network network;

	(void)state;
	assert_true(network_parse("127.0.0.1/8", &network));
	assert_true(network_is_empty(&network));
	assert_string_equal(network_text(&network, text), "127.0.0.1 / 255.0.0.0");
	assert_true(network_parse("127.0.0.0/8", &network));
	assert_false(network_is_empty(&network));
	assert_true(network_parse("::1/127", &network));
	assert_true(network_is_empty(&network));
	assert_string_equal(
		network_text(&network, text), "::1 / ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe");
}

static void test_list_has_addresses_of_its_ranges(void **state)
{
	const struct address local = {.family = AF_UNIX, .port = 6432, .pid = 7};
	struct network_list list = {0};
	struct address inside = address("10.1.2.3"), outside = address("11.0.0.1");
	struct address six = address("fd00::1");

	(void)state;
	assert_false(network_list_has(&list, &inside));
	assert_true(
		network_list_read(&list, " 10.0.0.0/8,192.0.2.1 , wrong 10.0.0.1/8 fd00::/8"));
	assert_int_equal(list.count, 3);
	assert_true(network_list_has(&list, &inside));
	assert_true(network_list_has(&list, &six));
	assert_false(network_list_has(&list, &outside));
	assert_false(network_list_has(&list, &local));
	assert_true(network_list_read(&list, "unix"));
	assert_true(network_list_has(&list, &local));
	assert_false(network_list_has(&list, &inside));
	assert_true(network_list_read(&list, ""));
	assert_int_equal(list.count, 0);
	assert_null(list.networks);
	assert_true(network_list_read(&list, "::1"));
	network_list_free(&list);
	assert_false(network_list_has(&list, &six));
}

static void test_range_of_all_addresses_is_detected(void **state)
{
	struct network network;

	(void)state;
	assert_true(network_parse("0.0.0.0/0", &network));
	assert_true(network_is_everything(&network));
	assert_true(network_parse("::/0", &network));
	assert_true(network_is_everything(&network));
	assert_true(network_parse("0.0.0.0/1", &network));
	assert_false(network_is_everything(&network));
	assert_true(network_parse("::/127", &network));
	assert_false(network_is_everything(&network));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_is_in_its_range_only),
		cmocka_unit_test(test_mask_may_be_separate_and_have_gaps),
		cmocka_unit_test(test_unix_and_unknown_addresses_are_in_no_range),
		cmocka_unit_test(test_invalid_ranges_are_refused),
		cmocka_unit_test(test_range_without_addresses_is_detected),
		cmocka_unit_test(test_list_has_addresses_of_its_ranges),
		cmocka_unit_test(test_range_of_all_addresses_is_detected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
