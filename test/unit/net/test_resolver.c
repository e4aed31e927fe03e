/* SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "net/address.h"
#include "net/dns_zones.h"
#include "net/resolver.h"

enum { DNS_TYPE_A = 1, DNS_TYPE_CNAME = 5, DNS_TYPE_SOA = 6, DNS_TYPE_AAAA = 28 };
enum { DNS_SERVFAIL = 2, DNS_NXDOMAIN = 3 };

static struct loop loop;
static struct loop_clock loop_clock;
static struct resolver *resolver;
static char log_path[] = "/tmp/pgusher-test-log.XXXXXX";
static char why[128];

static usec_t shift; /* how far the test has moved the clock */

/* --- a name server ----------------------------------------------------------------------- */

/* Its records: each name has addresses of one family. Without any, the name does not exist. */
struct zone_row {
	const char *name;
	const char *ipv4[3];
	const char *ipv6[3];
	bool silent; /* the question is not answered */
	bool garbage; /* the answer is malformed */
	bool broken; /* the answer is SERVFAIL */
	bool loops; /* the name is a CNAME of itself */
	bool many; /* 100 IPv4 addresses, more than fit in a datagram and in the cache */
};

static const struct zone_row rows[] = {
	{.name = "one.test", .ipv4 = {"10.0.0.1"}},
	{.name = "two.test", .ipv4 = {"10.0.0.1", "10.0.0.2"}},
	{.name = "six.test", .ipv6 = {"fd00::6"}},
	{.name = "dark.test", .ipv4 = {"10.0.0.9"}, .silent = true},
	{.name = "odd.test", .garbage = true},
	{.name = "broken.test", .broken = true},
	{.name = "loop.test", .loops = true},
	{.name = "many.test", .many = true},
	{.name = "a.zone.test", .ipv4 = {"10.0.0.1"}},
	{.name = "b.zone.test", .ipv4 = {"10.0.0.2"}},
};

static struct {
	int udp, tcp;
	struct event *udp_event, *tcp_event, *peer_event;
	int questions; /* for IPv4 addresses */
	char address[32]; /* for the resolver's option `servers` */
	int serial_questions;
	bool dead; /* no question is answered */
	uint32_t serial; /* of the zones test and zone.test; 0: they have none */
	const char *asked_serial; /* the zone of the last question for a serial */
	const char
		*moved[3]; /* addresses of one.test that replace its record; NULL first: none */
} server;

static size_t name_length(const uint8_t *packet, size_t length, char *out, size_t size)
{
	size_t at = 12, n = 0;

	while (at < length && packet[at] != 0) {
		if (n > 0 && n < size - 1)
			out[n++] = '.';
		for (int i = 1; i <= packet[at] && n < size - 1; i++)
			out[n++] = (char)packet[at + (size_t)i];
		at += packet[at] + 1u;
	}
	out[n] = '\0';
	return at + 1 - 12;
}

static size_t add_record(
	uint8_t *out, size_t at, uint16_t type, const void *data, uint16_t length)
{
	/* The name is a pointer to the question's; RFC 1035 section 4.1.4. */
	const uint8_t head[] = {0xc0, 12, (uint8_t)(type >> 8), (uint8_t)type, 0, 1, 0, 0, 0,
		60, (uint8_t)(length >> 8), (uint8_t)length};

	memcpy(out + at, head, sizeof(head));
	memcpy(out + at + sizeof(head), data, length);
	out[7]++;
	return at + sizeof(head) + length;
}

static size_t add_addresses(uint8_t *out, size_t at, uint16_t type, const char *const texts[3])
{
	for (int i = 0; i < 3 && texts[i]; i++) {
		uint8_t bytes[16];

		inet_pton(type == DNS_TYPE_A ? AF_INET : AF_INET6, texts[i], bytes);
		at = add_record(out, at, type, bytes, type == DNS_TYPE_A ? 4 : 16);
	}
	return at;
}

/* RFC 1035 section 3.3.13: two names, here those of the question, and five numbers. */
static size_t add_serial(uint8_t *out, size_t at)
{
	uint8_t data[24] = {0xc0, 12, 0xc0, 12};

	for (int i = 0; i < 4; i++)
		data[4 + i] = (uint8_t)(server.serial >> (24 - 8 * i));
	return add_record(out, at, DNS_TYPE_SOA, data, sizeof(data));
}

static size_t answer_about_zone(const char *name, uint8_t *out, size_t at)
{
	server.serial_questions++;
	server.asked_serial = strcmp(name, "zone.test") == 0 ? "zone.test" : "test";
	return server.serial ? add_serial(out, at) : at;
}

static const struct zone_row *find_row(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

/* Write the answer to a question; returns 0 for no answer. RFC 1035 section 4.1.1. */
static size_t answer(const uint8_t *question, size_t length, uint8_t *out, bool datagram)
{
	char name[256];
	const size_t end = 12 + name_length(question, length, name, sizeof(name)) + 4;
	const uint16_t type = question[end - 3];
	const struct zone_row *row = find_row(name);
	size_t at = end;

	memcpy(out, question, end);
	out[2] = 0x81; /* an answer; recursion was desired */
	out[3] = 0x80;
	memset(out + 6, 0, 6);
	server.questions += type == DNS_TYPE_A;
	if (server.dead)
		return 0;
	if (type == DNS_TYPE_SOA)
		return answer_about_zone(name, out, at);
	if (!row) {
		out[3] |= DNS_NXDOMAIN;
		return at;
	}
	if (row->silent)
		return 0;
	if (row->broken) {
		out[3] |= DNS_SERVFAIL;
		return at;
	}
	if (row->loops)
		return add_record(out, at, DNS_TYPE_CNAME, (const uint8_t[]){0xc0, 12}, 2);
	if (row->garbage) {
		memset(out + end, 0xff, 40);
		out[7] = 7;
		return end + 40;
	}
	if (row->many && datagram) {
		out[2] |= 2; /* truncated: ask again over TCP */
		return at;
	}
	if (row->many && type == DNS_TYPE_A)
		for (uint8_t i = 0; i < 100; i++)
			at = add_record(out, at, type, (const uint8_t[]){10, 1, 0, i}, 4);
	if (type == DNS_TYPE_A && server.moved[0] && strcmp(name, "one.test") == 0)
		return add_addresses(out, at, type, server.moved);
	return add_addresses(out, at, type, type == DNS_TYPE_A ? row->ipv4 : row->ipv6);
}

static void on_datagram(evutil_socket_t fd, short what, void *argument)
{
	uint8_t question[512], out[4096];
	struct sockaddr_in from;
	socklen_t from_length = sizeof(from);
	const ssize_t got = recvfrom(
		fd, question, sizeof(question), 0, (struct sockaddr *)&from, &from_length);
	size_t length;

	(void)what;
	(void)argument;
	if (got < 12)
		return;
	length = answer(question, (size_t)got, out, true);
	if (length > 0)
		sendto(fd, out, length, 0, (struct sockaddr *)&from, from_length);
}

/* A question over TCP begins with its length; a channel uses one connection for all. */
static void on_stream(evutil_socket_t fd, short what, void *argument)
{
	uint8_t question[512], out[4096];
	ssize_t got = recv(fd, question, sizeof(question), 0);

	(void)what;
	(void)argument;
	if (got <= 0) {
		event_free(server.peer_event);
		server.peer_event = NULL;
		close(fd);
		return;
	}
	while (got > 14) {
		const size_t asked = (size_t)question[0] << 8 | question[1];
		const size_t length = answer(question + 2, asked, out + 2, false);

		out[0] = (uint8_t)(length >> 8);
		out[1] = (uint8_t)length;
		assert_int_equal(write(fd, out, length + 2), (ssize_t)length + 2);
		got -= (ssize_t)asked + 2;
		memmove(question, question + asked + 2, (size_t)got);
	}
}

static void on_connection(evutil_socket_t fd, short what, void *argument)
{
	const int peer = accept(fd, NULL, NULL);

	(void)what;
	(void)argument;
	assert_true(peer >= 0);
	assert_null(server.peer_event);
	server.peer_event = event_new(loop.base, peer, EV_READ | EV_PERSIST, on_stream, NULL);
	event_add(server.peer_event, NULL);
}

/*
 * Use one port for UDP and TCP; another process may have the TCP port that belongs to the
 * first.
 */
static bool bind_server(struct sockaddr_in *in)
{
	socklen_t length = sizeof(*in);

	*in = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	server.udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	server.tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(server.udp, (struct sockaddr *)in, length) == 0 &&
		getsockname(server.udp, (struct sockaddr *)in, &length) == 0 &&
		bind(server.tcp, (struct sockaddr *)in, length) == 0 &&
		listen(server.tcp, 5) == 0)
		return true;
	close(server.udp);
	close(server.tcp);
	return false;
}

static int start_server(void)
{
	struct sockaddr_in in;
	int tries = 0;

	memset(&server, 0, sizeof(server));
	while (!bind_server(&in))
		if (++tries == 100)
			return -1;
	snprintf(server.address, sizeof(server.address), "127.0.0.1:%d", ntohs(in.sin_port));
	server.udp_event =
		event_new(loop.base, server.udp, EV_READ | EV_PERSIST, on_datagram, NULL);
	server.tcp_event =
		event_new(loop.base, server.tcp, EV_READ | EV_PERSIST, on_connection, NULL);
	event_add(server.udp_event, NULL);
	event_add(server.tcp_event, NULL);
	return 0;
}

static void stop_server(void)
{
	event_free(server.udp_event);
	event_free(server.tcp_event);
	if (server.peer_event) {
		close(event_get_fd(server.peer_event));
		event_free(server.peer_event);
	}
	close(server.udp);
	close(server.tcp);
}

/* --- queries ----------------------------------------------------------------------------- */

struct asker {
	struct resolver_query query;
	int answers;
	int status;
	char text[ADDRESS_TEXT_SIZE]; /* the address; empty: none */
	const char *next_name; /* queried from the callback */
	struct asker *cancels; /* cancelled from the callback */
};

static void on_answer(struct resolver_query *query, const struct sockaddr *address,
	socklen_t length, int status)
{
	struct asker *asker = (struct asker *)query;

	asker->answers++;
	asker->status = status;
	asker->text[0] = '\0';
	if (status == RESOLVER_FOUND) {
		const struct address found = address_of(address, length);

		address_text(&found, asker->text);
	}
	assert_false(resolver_query_is_waiting(query));
	if (asker->cancels)
		resolver_cancel(&asker->cancels->query);
	if (asker->next_name) {
		const char *name = asker->next_name;

		asker->next_name = NULL;
		resolver_ask(resolver, query, name, 5432, on_answer);
	}
}

static void ask(struct asker *asker, const char *name)
{
	const int before = asker->answers;

	resolver_ask(resolver, &asker->query, name, 5432, on_answer);
	/* The callback is never called from inside resolver_ask(). */
	assert_int_equal(asker->answers, before);
	assert_true(resolver_query_is_waiting(&asker->query));
}

static void turn_until_answered(const struct asker *asker, int answers)
{
	while (asker->answers < answers)
		loop_turn(&loop, true);
}

static usec_t shifted_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * USEC_PER_SEC + now.tv_nsec / 1000 + shift;
}

/* Move the clock in steps too small for the loop to suspect that the process was stopped. */
static void advance(usec_t by)
{
	for (usec_t done = 0; done < by; done += USEC_PER_SEC / 2) {
		shift += USEC_PER_SEC / 2;
		loop_turn(&loop, false);
	}
}

static void start_resolver(usec_t found_life, usec_t failed_life, size_t names_max)
{
	const struct resolver_options options = {
		.servers = server.address,
		.found_life = found_life,
		.failed_life = failed_life,
		.names_max = names_max,
	};

	resolver = resolver_new(&loop, &options, why, sizeof(why));
	assert_non_null(resolver);
}

static int set_up(void **state)
{
	int fd;

	(void)state;
	alarm(60);
	shift = 0;
	clock_set_source(shifted_clock);
	strcpy(log_path + strlen(log_path) - 6, "XXXXXX");
	fd = mkstemp(log_path);
	if (fd < 0 || close(fd) != 0 || !loop_init(&loop, &loop_clock) || start_server() != 0)
		return -1;
	log_configure(&(struct log_options){.file = log_path});
	start_resolver(15 * USEC_PER_SEC, 5 * USEC_PER_SEC, 100);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	resolver_free(resolver);
	stop_server();
	loop_free(&loop);
	log_configure(&(struct log_options){.to_stderr = true});
	clock_set_source(NULL);
	return unlink(log_path);
}

static int logged(const char *text)
{
	FILE *file = fopen(log_path, "r");
	char line[4096];
	int times = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		times += strstr(line, text) != NULL;
	fclose(file);
	return times;
}

/* --- tests ------------------------------------------------------------------------------- */

static void expect_literal(const char *text, const char *written)
{
	struct sockaddr_storage out;
	const socklen_t length = resolver_literal(text, 5432, &out);
	const struct address address = address_of((struct sockaddr *)&out, length);
	char back[ADDRESS_TEXT_SIZE];

	assert_int_not_equal(length, 0);
	assert_string_equal(address_text(&address, back), written);
}

static void test_literals_are_parsed(void **state)
{
	struct sockaddr_storage out;

	(void)state;
	expect_literal("127.0.0.1", "127.0.0.1:5432");
	expect_literal("::1", "[::1]:5432");
	expect_literal("fd00::1:2", "[fd00::1:2]:5432");
	expect_literal("::ffff:10.0.0.1", "[::ffff:10.0.0.1]:5432");
	expect_literal("fe80::1%lo", "[fe80::1]:5432");
	assert_int_not_equal(resolver_literal("fe80::1%lo", 1, &out), 0);
	assert_int_not_equal(((struct sockaddr_in6 *)&out)->sin6_scope_id, 0);
}

static void test_names_are_not_literals(void **state)
{
	static const char *const names[] = {"", "localhost", "127.1", "10.0.0", "1.2.3.4.5",
		"256.1.1.1", "[::1]", "::g", "1", "a:b", "10.0.0.1 "};
	struct sockaddr_storage out;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(resolver_literal(names[i], 1, &out), 0);
}

static void test_name_is_looked_up_with_the_port_asked_for(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "one.test");
	assert_int_equal(resolver_in_flight(resolver), 1);
	turn_until_answered(&asker, 1);
	assert_int_equal(asker.status, RESOLVER_FOUND);
	assert_string_equal(asker.text, "10.0.0.1:5432");
	assert_int_equal(resolver_in_flight(resolver), 0);
	assert_int_equal(resolver_names(resolver), 1);
}

static void test_ipv6_address_is_found(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "six.test");
	turn_until_answered(&asker, 1);
	assert_string_equal(asker.text, "[fd00::6]:5432");
}

static void test_several_queries_share_one_look_up(void **state)
{
	struct asker askers[5] = {0};

	(void)state;
	for (int i = 0; i < 5; i++)
		ask(&askers[i], "one.test");
	assert_int_equal(resolver_in_flight(resolver), 1);
	for (int i = 0; i < 5; i++)
		turn_until_answered(&askers[i], 1);
	assert_int_equal(server.questions, 1);
}

static void test_addresses_are_used_in_turn(void **state)
{
	struct asker askers[4] = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		ask(&askers[i], "two.test");
	turn_until_answered(&askers[2], 1);
	ask(&askers[3], "two.test");
	turn_until_answered(&askers[3], 1);
	assert_string_not_equal(askers[0].text, askers[1].text);
	assert_string_equal(askers[0].text, askers[2].text);
	assert_string_equal(askers[1].text, askers[3].text);
}

static void test_answer_is_kept_for_its_lifetime_only(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "one.test");
	turn_until_answered(&asker, 1);
	server.moved[0] = "10.0.0.77";
	advance(14 * USEC_PER_SEC);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 2);
	assert_string_equal(asker.text, "10.0.0.1:5432");
	assert_int_equal(server.questions, 1);
	advance(2 * USEC_PER_SEC);
	assert_int_equal(server.questions, 1);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 3);
	assert_string_equal(asker.text, "10.0.0.77:5432");
	assert_int_equal(server.questions, 2);
}

static void test_lifetimes_may_be_changed(void **state)
{
	struct asker asker = {0};

	(void)state;
	resolver_set_lives(resolver, 0, 0);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 1);
	assert_int_equal(asker.status, RESOLVER_FOUND);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 2);
	assert_int_equal(server.questions, 2);
}

static void test_failure_is_logged_once_and_kept_for_its_lifetime(void **state)
{
	struct asker askers[2] = {0};

	(void)state;
	ask(&askers[0], "none.test");
	ask(&askers[1], "none.test");
	turn_until_answered(&askers[1], 1);
	assert_int_equal(askers[0].status, 4);
	assert_string_equal(askers[0].text, "");
	assert_int_equal(logged("WARNING DNS lookup failed: none.test: result=4"), 1);
	advance(4 * USEC_PER_SEC);
	ask(&askers[0], "none.test");
	turn_until_answered(&askers[0], 2);
	assert_int_equal(server.questions, 1);
	assert_int_equal(logged("DNS lookup failed"), 1);
	advance(2 * USEC_PER_SEC);
	ask(&askers[0], "none.test");
	turn_until_answered(&askers[0], 3);
	assert_int_equal(server.questions, 2);
	assert_int_equal(logged("DNS lookup failed"), 2);
	/* Look-ups are counted, not queries. */
	assert_int_equal(resolver_counts(resolver)->unknown, 2);
	assert_int_equal(resolver_counts(resolver)->found, 0);
	ask(&askers[0], "one.test");
	turn_until_answered(&askers[0], 4);
	assert_int_equal(resolver_counts(resolver)->found, 1);
}

static void test_malformed_answer_is_a_failure(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "odd.test");
	turn_until_answered(&asker, 1);
	assert_int_not_equal(asker.status, RESOLVER_FOUND);
	assert_int_equal(resolver_counts(resolver)->errors, 1);
}

static void test_names_are_compared_exactly(void **state)
{
	struct asker lower = {0}, upper = {0};

	(void)state;
	ask(&lower, "none.test");
	ask(&upper, "None.test");
	turn_until_answered(&lower, 1);
	turn_until_answered(&upper, 1);
	assert_int_equal(resolver_names(resolver), 2);
}

static void test_hosts_file_answers_without_the_server(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "localhost");
	turn_until_answered(&asker, 1);
	assert_int_equal(asker.status, RESOLVER_FOUND);
	assert_true(strcmp(asker.text, "127.0.0.1:5432") == 0 ||
		strcmp(asker.text, "[::1]:5432") == 0);
	assert_int_equal(server.questions, 0);
}

static void test_more_addresses_than_fit_in_a_datagram_come_over_tcp(void **state)
{
	struct asker asker = {0};
	const struct resolver_name *name;
	socklen_t length = 0;

	(void)state;
	ask(&asker, "many.test");
	turn_until_answered(&asker, 1);
	assert_memory_equal(asker.text, "10.1.0.", 7);
	name = resolver_next(resolver, NULL);
	assert_int_equal(resolver_row_of(resolver, name).addresses, RESOLVER_ADDRESSES_MAX);
	assert_non_null(resolver_row_address(name, RESOLVER_ADDRESSES_MAX - 1, &length));
	assert_int_equal(length, sizeof(struct sockaddr_in));
	assert_null(resolver_row_address(name, RESOLVER_ADDRESSES_MAX, &length));
}

static void test_cancelled_query_is_not_answered(void **state)
{
	struct asker gone = {0}, stays = {0};

	(void)state;
	ask(&gone, "one.test");
	ask(&stays, "one.test");
	resolver_cancel(&gone.query);
	resolver_cancel(&gone.query);
	assert_false(resolver_query_is_waiting(&gone.query));
	turn_until_answered(&stays, 1);
	assert_int_equal(gone.answers, 0);
	/* Also when the answer is cached. */
	ask(&gone, "one.test");
	resolver_cancel(&gone.query);
	loop_turn(&loop, false);
	assert_int_equal(gone.answers, 0);
}

static void test_look_up_without_waiting_queries_is_cached(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "one.test");
	resolver_cancel(&asker.query);
	while (resolver_in_flight(resolver) > 0)
		loop_turn(&loop, true);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 1);
	assert_int_equal(server.questions, 1);
}

static void test_callback_may_ask_again_and_cancel_other_queries(void **state)
{
	struct asker first = {0}, second = {0}, third = {0};

	(void)state;
	resolver_set_lives(resolver, 0, 0);
	first.next_name = "one.test";
	first.cancels = &second;
	third.next_name = "two.test";
	ask(&first, "one.test");
	ask(&second, "one.test");
	ask(&third, "one.test");
	turn_until_answered(&first, 2);
	turn_until_answered(&third, 2);
	assert_int_equal(second.answers, 0);
	assert_string_equal(first.text, "10.0.0.1:5432");
	assert_int_equal(third.status, RESOLVER_FOUND);
}

static void test_silent_server_is_asked_again_within_seconds(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "dark.test");
	while (server.questions < 2)
		loop_turn(&loop, true);
	assert_int_equal(asker.answers, 0);
	assert_int_equal(resolver_in_flight(resolver), 1);
	resolver_cancel(&asker.query);
}

static void test_free_drops_waiting_queries(void **state)
{
	struct asker asker = {0}, cached = {0};

	(void)state;
	ask(&cached, "one.test");
	turn_until_answered(&cached, 1);
	ask(&cached, "one.test");
	ask(&asker, "dark.test");
	resolver_free(resolver);
	resolver = NULL;
	assert_false(resolver_query_is_waiting(&asker.query));
	loop_turn(&loop, false);
	assert_int_equal(asker.answers, 0);
	assert_int_equal(cached.answers, 1);
}

static void test_least_recently_used_name_is_evicted(void **state)
{
	struct asker asker = {0};

	(void)state;
	resolver_free(resolver);
	start_resolver(15 * USEC_PER_SEC, 15 * USEC_PER_SEC, 2);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 1);
	ask(&asker, "two.test");
	turn_until_answered(&asker, 2);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 3);
	ask(&asker, "six.test");
	turn_until_answered(&asker, 4);
	assert_int_equal(resolver_names(resolver), 2);
	assert_int_equal(server.questions, 3);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 5);
	assert_int_equal(server.questions, 3);
}

static void test_cache_full_of_names_in_use_refuses_others(void **state)
{
	struct asker busy = {0}, refused = {0};

	(void)state;
	resolver_free(resolver);
	start_resolver(15 * USEC_PER_SEC, 15 * USEC_PER_SEC, 1);
	ask(&busy, "dark.test");
	ask(&refused, "one.test");
	turn_until_answered(&refused, 1);
	assert_int_not_equal(refused.status, RESOLVER_FOUND);
	resolver_cancel(&busy.query);
}

static void test_callback_may_evict_the_name_of_its_answer(void **state)
{
	struct asker asker = {.next_name = "two.test"};

	(void)state;
	resolver_free(resolver);
	start_resolver(15 * USEC_PER_SEC, 15 * USEC_PER_SEC, 1);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 2);
	/*
	 * The name is still being answered when the next one is queried: it cannot be evicted
	 * yet.
	 */
	assert_int_not_equal(asker.status, RESOLVER_FOUND);
	ask(&asker, "two.test");
	turn_until_answered(&asker, 3);
	assert_int_equal(asker.status, RESOLVER_FOUND);
}

static void test_invalid_names_fail(void **state)
{
	struct asker asker = {0};
	char longest[400];

	(void)state;
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ask(&asker, longest);
	turn_until_answered(&asker, 1);
	assert_int_not_equal(asker.status, RESOLVER_FOUND);
	ask(&asker, "");
	turn_until_answered(&asker, 2);
	assert_int_not_equal(asker.status, RESOLVER_FOUND);
	ask(&asker, "a..b");
	turn_until_answered(&asker, 3);
	assert_int_not_equal(asker.status, RESOLVER_FOUND);
	assert_int_equal(server.questions, 0);
}

static void test_cache_can_be_listed(void **state)
{
	struct asker asker = {0};
	const struct resolver_name *name;
	struct resolver_row row;
	socklen_t length;
	const struct sockaddr *first;

	(void)state;
	assert_null(resolver_next(resolver, NULL));
	ask(&asker, "two.test");
	row = resolver_row_of(resolver, resolver_next(resolver, NULL));
	assert_string_equal(row.name, "two.test");
	assert_int_equal(row.left, 0);
	assert_int_equal(row.addresses, 0);
	turn_until_answered(&asker, 1);
	ask(&asker, "none.test");
	turn_until_answered(&asker, 2);
	name = resolver_next(resolver, NULL);
	row = resolver_row_of(resolver, name);
	assert_string_equal(row.name, "two.test");
	assert_in_range(row.left, 14 * USEC_PER_SEC, 15 * USEC_PER_SEC);
	assert_int_equal(row.addresses, 2);
	first = resolver_row_address(name, 0, &length);
	assert_int_equal(length, sizeof(struct sockaddr_in));
	assert_int_equal(((const struct sockaddr_in *)first)->sin_port, 0);
	name = resolver_next(resolver, name);
	row = resolver_row_of(resolver, name);
	assert_string_equal(row.name, "none.test");
	assert_int_equal(row.addresses, 0);
	assert_null(resolver_row_address(name, 0, &length));
	assert_null(resolver_next(resolver, name));
	advance(16 * USEC_PER_SEC);
	assert_int_equal(resolver_row_of(resolver, resolver_next(resolver, NULL)).left, 0);
}

/* --- failures ---------------------------------------------------------------------------- */

static void expect_short_failure(const char *name, int questions)
{
	struct asker asker = {0};

	resolver_set_lives(resolver, 15 * USEC_PER_SEC, 100 * USEC_PER_SEC);
	server.questions = 0;
	ask(&asker, name);
	turn_until_answered(&asker, 1);
	assert_int_not_equal(asker.status, RESOLVER_FOUND);
	assert_int_equal(server.questions, questions);
	advance(USEC_PER_SEC / 2);
	ask(&asker, name);
	turn_until_answered(&asker, 2);
	assert_int_equal(server.questions, questions);
	advance(USEC_PER_SEC);
	ask(&asker, name);
	turn_until_answered(&asker, 3);
	assert_true(server.questions > questions);
}

static void test_failure_of_a_name_server_is_kept_shortly(void **state)
{
	(void)state;
	expect_short_failure("broken.test", 3);
}

static void test_malformed_answer_is_kept_shortly(void **state)
{
	(void)state;
	expect_short_failure("odd.test", 1);
}

static void test_name_without_addresses_is_kept_shortly(void **state)
{
	(void)state;
	expect_short_failure("loop.test", 1);
}

static void test_short_lifetime_of_failures_is_not_extended(void **state)
{
	struct asker asker = {0};

	(void)state;
	resolver_set_lives(resolver, 15 * USEC_PER_SEC, 0);
	ask(&asker, "odd.test");
	turn_until_answered(&asker, 1);
	ask(&asker, "odd.test");
	turn_until_answered(&asker, 2);
	assert_int_equal(server.questions, 2);
}

static void test_alias_of_itself_is_a_failure(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "loop.test");
	turn_until_answered(&asker, 1);
	assert_int_not_equal(asker.status, RESOLVER_FOUND);
}

/* --- moves ------------------------------------------------------------------------------- */

static char moves[512]; /* `NAME ADDRESS` and a blank for each */

static void on_move(
	void *argument, const char *name, const struct sockaddr *gone, socklen_t length)
{
	const struct address address = address_of(gone, length);
	char text[ADDRESS_TEXT_SIZE];
	const size_t used = strlen(moves);

	assert_ptr_equal(argument, moves);
	assert_int_equal(address.port, 0);
	snprintf(moves + used, sizeof(moves) - used, "%s %s ", name,
		address_host(&address, text));
}

/* Look one.test up even if it is cached. */
static void look_again(struct asker *asker)
{
	resolver_forget(resolver, "one.test", 8);
	ask(asker, "one.test");
	turn_until_answered(asker, asker->answers + 1);
}

static void move_to(const char *first, const char *second)
{
	server.moved[0] = first;
	server.moved[1] = second;
}

static void test_removed_addresses_are_reported(void **state)
{
	struct asker asker = {0};

	(void)state;
	moves[0] = '\0';
	resolver_on_move(resolver, on_move, moves);
	look_again(&asker);
	move_to("10.0.0.1", "10.0.0.2");
	look_again(&asker);
	move_to("10.0.0.2", "10.0.0.1");
	look_again(&asker);
	assert_string_equal(moves, "");
	assert_int_equal(resolver_counts(resolver)->moves, 0);
	move_to("10.0.0.2", NULL);
	look_again(&asker);
	assert_string_equal(moves, "one.test 10.0.0.1 ");
	move_to("10.0.0.3", "10.0.0.4");
	look_again(&asker);
	assert_string_equal(moves, "one.test 10.0.0.1 one.test 10.0.0.2 ");
	assert_int_equal(resolver_counts(resolver)->moves, 2);
}

static void test_failed_look_up_reports_no_removed_address(void **state)
{
	struct asker asker = {0};

	(void)state;
	moves[0] = '\0';
	resolver_on_move(resolver, on_move, moves);
	look_again(&asker);
	server.dead = true;
	look_again(&asker);
	assert_int_not_equal(asker.status, RESOLVER_FOUND);
	assert_string_equal(moves, "");
	/* The addresses before the failure are compared with the next answer. */
	server.dead = false;
	move_to("10.0.0.5", NULL);
	look_again(&asker);
	assert_string_equal(moves, "one.test 10.0.0.1 ");
}

static void test_forgotten_name_is_looked_up_by_the_next_query(void **state)
{
	struct asker asker = {0};

	(void)state;
	ask(&asker, "one.test");
	turn_until_answered(&asker, 1);
	resolver_forget(resolver, "one.test", 8);
	resolver_forget(resolver, "none.test", 9);
	loop_turn(&loop, false);
	assert_int_equal(server.questions, 1);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 2);
	assert_int_equal(server.questions, 2);
}

/* --- zones ------------------------------------------------------------------------------- */

static struct dns_zone_row find_zone(const char *name)
{
	const struct dns_zones *zones = resolver_zones(resolver);
	const struct dns_zone *zone = NULL;

	assert_non_null(zones);
	while ((zone = dns_zones_next(zones, zone)) != NULL)
		if (strcmp(dns_zone_row_of(zone).name, name) == 0)
			return dns_zone_row_of(zone);
	return (struct dns_zone_row){0};
}

static void use_zones(void)
{
	static const char *const names[] = {"a.zone.test", "b.zone.test", "one.test", "nodot"};
	struct asker asker = {0};

	resolver_set_lives(resolver, 10000 * USEC_PER_SEC, 10000 * USEC_PER_SEC);
	resolver_set_zone_period(resolver, 10 * USEC_PER_SEC);
	for (int i = 0; i < 4; i++) {
		ask(&asker, names[i]);
		turn_until_answered(&asker, i + 1);
	}
	server.questions = 0;
}

/* Wait until the next round of questions for serials has ended. */
static void pass_round(int questions)
{
	const int wanted = server.serial_questions + questions;

	advance(10 * USEC_PER_SEC);
	while (server.serial_questions < wanted || resolver_in_flight(resolver) > 0) {
		/* The round may start a little later: move the clock instead of waiting. */
		if (resolver_in_flight(resolver) == 0)
			shift += USEC_PER_SEC / 10;
		loop_turn(&loop, resolver_in_flight(resolver) > 0);
	}
	loop_turn(&loop, false);
	assert_int_equal(server.serial_questions, wanted);
}

static void test_names_of_a_zone_with_a_newer_serial_are_looked_up(void **state)
{
	(void)state;
	server.serial = 7;
	use_zones();
	assert_int_equal(find_zone("zone.test").names, 2);
	assert_int_equal(find_zone("test").names, 1);
	assert_int_equal(find_zone("zone.test").serial, 0);
	pass_round(2);
	assert_int_equal(find_zone("zone.test").serial, 7);
	pass_round(2);
	assert_int_equal(server.questions, 0);
	server.serial = 9;
	pass_round(2);
	assert_int_equal(server.questions, 3);
	assert_int_equal(logged("LOG zone 'zone.test' serial changed: old=7 new=9"), 1);
	assert_int_equal(logged("LOG zone 'test' serial changed: old=7 new=9"), 1);
}

static void test_serials_wrap_around(void **state)
{
	(void)state;
	server.serial = 0xfffffff0u;
	use_zones();
	pass_round(2);
	server.serial = 5;
	pass_round(2);
	assert_int_equal(logged("zone 'test' serial changed: old=4294967280 new=5"), 1);
	assert_int_equal(server.questions, 3);
}

static void test_older_serial_is_ignored(void **state)
{
	(void)state;
	server.serial = 100;
	use_zones();
	pass_round(2);
	server.serial = 99;
	pass_round(2);
	server.serial = 100;
	pass_round(2);
	server.serial = 100 + 0x80000001u;
	pass_round(2);
	assert_int_equal(server.questions, 0);
	assert_int_equal(logged("serial changed"), 0);
	assert_int_equal(find_zone("test").serial, 100);
}

static void test_removed_address_is_noticed_with_the_zone(void **state)
{
	(void)state;
	moves[0] = '\0';
	resolver_on_move(resolver, on_move, moves);
	server.serial = 1;
	use_zones();
	pass_round(2);
	move_to("10.0.0.8", NULL);
	server.serial = 2;
	pass_round(2);
	assert_string_equal(moves, "one.test 10.0.0.1 ");
}

static void test_zone_without_a_serial_is_asked_again(void **state)
{
	(void)state;
	use_zones();
	pass_round(2);
	assert_int_equal(find_zone("test").serial, 0);
	server.serial = 3;
	pass_round(2);
	assert_int_equal(find_zone("test").serial, 3);
	assert_int_equal(logged("serial changed"), 0);
}

static void test_without_a_period_no_zone_is_queried(void **state)
{
	(void)state;
	server.serial = 3;
	use_zones();
	resolver_set_zone_period(resolver, 0);
	assert_null(resolver_zones(resolver));
	advance(30 * USEC_PER_SEC);
	assert_int_equal(server.serial_questions, 0);
	/* Names that were cached before the period is set have their zones queried, too. */
	resolver_set_zone_period(resolver, 5 * USEC_PER_SEC);
	assert_int_equal(find_zone("zone.test").names, 2);
	advance(6 * USEC_PER_SEC);
	while (server.serial_questions < 2)
		loop_turn(&loop, true);
}

static void test_unchanged_period_is_not_restarted(void **state)
{
	(void)state;
	server.serial = 3;
	use_zones();
	for (int i = 0; i < 11; i++) {
		advance(USEC_PER_SEC);
		resolver_set_zone_period(resolver, 10 * USEC_PER_SEC);
	}
	while (server.serial_questions < 2)
		loop_turn(&loop, true);
}

static void test_zone_is_freed_with_its_last_name_during_its_query(void **state)
{
	struct asker asker = {0};

	(void)state;
	resolver_free(resolver);
	start_resolver(15 * USEC_PER_SEC, 15 * USEC_PER_SEC, 1);
	resolver_set_zone_period(resolver, 10 * USEC_PER_SEC);
	ask(&asker, "a.zone.test");
	turn_until_answered(&asker, 1);
	server.dead = true;
	advance(11 * USEC_PER_SEC);
	assert_int_equal(resolver_in_flight(resolver), 1);
	server.dead = false;
	server.serial = 4;
	ask(&asker, "one.test");
	assert_null(find_zone("zone.test").name);
	/* The question is repeated on the new channel although its zone is freed. */
	resolver_renew(resolver);
	turn_until_answered(&asker, 2);
	while (server.serial_questions < 1 || resolver_in_flight(resolver) > 0)
		loop_turn(&loop, true);
	assert_string_equal(server.asked_serial, "zone.test");
	assert_int_equal(resolver_zones(resolver)->count, 1);
	assert_string_equal(find_zone("test").name, "test");
	assert_int_equal(find_zone("test").serial, 0);
}

static void test_free_while_a_zone_is_queried(void **state)
{
	(void)state;
	use_zones();
	server.dead = true;
	advance(11 * USEC_PER_SEC);
	assert_int_equal(resolver_in_flight(resolver), 1);
	resolver_free(resolver);
	resolver = NULL;
	loop_turn(&loop, false);
}

/* --- resolv.conf ------------------------------------------------------------------------- */

static char conf_path[64];

/* Replace the file by renaming another one, as editors and network managers do. */
static void replace_conf(const char *text)
{
	char new_path[80];
	FILE *file;

	snprintf(new_path, sizeof(new_path), "%s.new", conf_path);
	file = fopen(new_path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(new_path, conf_path), 0);
}

/* Make a resolver with a resolv.conf of its own, which does not name the test's server. */
static void start_with_conf(const char *text, const char *servers)
{
	const struct resolver_options options = {
		.resolv_conf = conf_path,
		.servers = servers,
		.found_life = 10000 * USEC_PER_SEC,
		.failed_life = 10000 * USEC_PER_SEC,
		.names_max = 10,
	};

	resolver_free(resolver);
	snprintf(conf_path, sizeof(conf_path), "%s.conf", log_path);
	replace_conf(text);
	resolver = resolver_new(&loop, &options, why, sizeof(why));
	assert_non_null(resolver);
}

static void test_look_ups_in_flight_start_again_when_resolv_conf_changes(void **state)
{
	struct asker asker = {0};

	(void)state;
	server.dead = true;
	start_with_conf("nameserver 127.0.0.1\n", server.address);
	ask(&asker, "one.test");
	while (server.questions < 1)
		loop_turn(&loop, true);
	server.dead = false;
	replace_conf("nameserver 127.0.0.1\n# changed\n");
	server.questions = 0;
	shift += 1100 * USEC_PER_MSEC;
	turn_until_answered(&asker, 1);
	assert_int_equal(asker.status, RESOLVER_FOUND);
	assert_int_equal(logged(".conf has changed, looking up names anew"), 1);
	assert_int_equal(resolver_in_flight(resolver), 0);
	unlink(conf_path);
}

static void test_failures_expire_when_resolv_conf_changes(void **state)
{
	struct asker asker = {0};

	(void)state;
	start_with_conf("nameserver 127.0.0.1\n", server.address);
	ask(&asker, "none.test");
	turn_until_answered(&asker, 1);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 2);
	server.questions = 0;
	advance(2 * USEC_PER_SEC);
	replace_conf("nameserver 127.0.0.2\n");
	ask(&asker, "one.test");
	turn_until_answered(&asker, 3);
	assert_int_equal(server.questions, 0);
	ask(&asker, "none.test");
	turn_until_answered(&asker, 4);
	assert_int_equal(server.questions, 1);
	assert_int_equal(logged("has changed"), 1);
	unlink(conf_path);
}

static void test_resolv_conf_is_checked_once_a_second(void **state)
{
	struct asker asker = {0};

	(void)state;
	start_with_conf("nameserver 127.0.0.1\n", server.address);
	replace_conf("nameserver 127.0.0.2\n");
	ask(&asker, "one.test");
	turn_until_answered(&asker, 1);
	assert_int_equal(logged("has changed"), 0);
	advance(1500 * USEC_PER_MSEC);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 2);
	assert_int_equal(logged("has changed"), 1);
	advance(1500 * USEC_PER_MSEC);
	ask(&asker, "one.test");
	turn_until_answered(&asker, 3);
	assert_int_equal(logged("has changed"), 1);
	unlink(conf_path);
}

static void test_renewal_keeps_answers_and_look_ups_in_flight(void **state)
{
	struct asker cached = {0}, waiting[3] = {0};

	(void)state;
	ask(&cached, "two.test");
	turn_until_answered(&cached, 1);
	for (int i = 0; i < 3; i++)
		ask(&waiting[i], i == 0 ? "one.test" : "six.test");
	resolver_renew(resolver);
	resolver_renew(resolver);
	for (int i = 0; i < 3; i++) {
		turn_until_answered(&waiting[i], 1);
		assert_int_equal(waiting[i].status, RESOLVER_FOUND);
	}
	server.questions = 0;
	ask(&cached, "two.test");
	turn_until_answered(&cached, 2);
	assert_int_equal(server.questions, 0);
	assert_int_equal(resolver_in_flight(resolver), 0);
}

static void test_resolv_conf_can_be_another_file(void **state)
{
	struct resolver_options options = {.resolv_conf = log_path, .names_max = 1};
	struct resolver *other;

	(void)state;
	other = resolver_new(&loop, &options, why, sizeof(why));
	assert_non_null(other);
	resolver_free(other);
	assert_int_equal(logged("cannot read resolv_conf"), 0);
	options.resolv_conf = "/no/such/file";
	other = resolver_new(&loop, &options, why, sizeof(why));
	resolver_free(other);
	assert_int_equal(logged("WARNING cannot read resolv_conf: /no/such/file"), 1);
}

static void test_servers_that_are_not_addresses_are_refused(void **state)
{
	const struct resolver_options options = {.servers = "one.test", .names_max = 1};

	(void)state;
	assert_null(resolver_new(&loop, &options, why, sizeof(why)));
	assert_memory_equal(why, "dns setup failed: ", 18);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_literals_are_parsed),
		TEST(test_names_are_not_literals),
		TEST(test_name_is_looked_up_with_the_port_asked_for),
		TEST(test_ipv6_address_is_found),
		TEST(test_several_queries_share_one_look_up),
		TEST(test_addresses_are_used_in_turn),
		TEST(test_answer_is_kept_for_its_lifetime_only),
		TEST(test_lifetimes_may_be_changed),
		TEST(test_failure_is_logged_once_and_kept_for_its_lifetime),
		TEST(test_malformed_answer_is_a_failure),
		TEST(test_names_are_compared_exactly),
		TEST(test_hosts_file_answers_without_the_server),
		TEST(test_more_addresses_than_fit_in_a_datagram_come_over_tcp),
		TEST(test_cancelled_query_is_not_answered),
		TEST(test_look_up_without_waiting_queries_is_cached),
		TEST(test_callback_may_ask_again_and_cancel_other_queries),
		TEST(test_silent_server_is_asked_again_within_seconds),
		TEST(test_free_drops_waiting_queries),
		TEST(test_least_recently_used_name_is_evicted),
		TEST(test_cache_full_of_names_in_use_refuses_others),
		TEST(test_callback_may_evict_the_name_of_its_answer),
		TEST(test_invalid_names_fail),
		TEST(test_cache_can_be_listed),
		TEST(test_failure_of_a_name_server_is_kept_shortly),
		TEST(test_malformed_answer_is_kept_shortly),
		TEST(test_name_without_addresses_is_kept_shortly),
		TEST(test_short_lifetime_of_failures_is_not_extended),
		TEST(test_alias_of_itself_is_a_failure),
		TEST(test_removed_addresses_are_reported),
		TEST(test_failed_look_up_reports_no_removed_address),
		TEST(test_forgotten_name_is_looked_up_by_the_next_query),
		TEST(test_names_of_a_zone_with_a_newer_serial_are_looked_up),
		TEST(test_serials_wrap_around),
		TEST(test_older_serial_is_ignored),
		TEST(test_removed_address_is_noticed_with_the_zone),
		TEST(test_zone_without_a_serial_is_asked_again),
		TEST(test_without_a_period_no_zone_is_queried),
		TEST(test_unchanged_period_is_not_restarted),
		TEST(test_zone_is_freed_with_its_last_name_during_its_query),
		TEST(test_free_while_a_zone_is_queried),
		TEST(test_look_ups_in_flight_start_again_when_resolv_conf_changes),
		TEST(test_failures_expire_when_resolv_conf_changes),
		TEST(test_resolv_conf_is_checked_once_a_second),
		TEST(test_renewal_keeps_answers_and_look_ups_in_flight),
		TEST(test_resolv_conf_can_be_another_file),
		TEST(test_servers_that_are_not_addresses_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
