/* SPDX-License-Identifier: ISC */
/* Two of our streams connected by a socket pair, with TLS. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/tls.h"
#include "support/files/certificates.h"

enum { BULK = 300 * 1000 };

static struct loop loop;
static struct loop_clock loop_clock;
static struct stream near, far; /* the TLS client, the TLS server */
static char folder[64], why[256];
static struct certificate authority, leaf;
static char ca_path[96], cert_path[96], key_path[96], other_path[96];

/* What the handlers of each side have recorded. */
struct seen {
	uint8_t *bytes;
	size_t length;
	ssize_t last;
	size_t room; /* for one receive; 0: the usual */
	int reads, secured;
	bool closes_when_secured, speaks_when_secured;
};
static struct seen near_seen, far_seen;

static struct seen *seen_of(const struct stream *stream)
{
	return stream == &near ? &near_seen : &far_seen;
}

static void on_readable(struct stream *stream)
{
	struct seen *seen = seen_of(stream);
	uint8_t *into = loop.receive;

	seen->reads++;
	seen->last = stream_receive(stream, into, seen->room ? seen->room : LOOP_RECEIVE_SIZE);
	if (!stream_is_open(stream))
		return;
	if (seen->last > 0) {
		seen->bytes = realloc(seen->bytes, seen->length + (size_t)seen->last);
		memcpy(seen->bytes + seen->length, into, (size_t)seen->last);
		seen->length += (size_t)seen->last;
	} else if (seen->last != STREAM_AGAIN) {
		stream_pause(stream);
	}
}

static void on_drained(struct stream *stream)
{
	(void)stream;
}

static void on_secured(struct stream *stream)
{
	seen_of(stream)->secured++;
	if (seen_of(stream)->closes_when_secured)
		stream_close(stream);
	if (seen_of(stream)->speaks_when_secured)
		assert_int_equal(stream_send_bytes(stream, "hello", 5), STREAM_SENT_ALL);
}

static const struct stream_handlers handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.secured = on_secured,
};

static void turn(int times)
{
	while (times-- > 0)
		loop_turn(&loop, false);
}

static void path_of(char *out, const char *name)
{
	snprintf(out, 96, "%s/%s", folder, name);
}

static int set_up(void **state)
{
	const struct certificate_wish ca = {.common_name = "Test CA"};
	const struct certificate_wish wish = {.common_name = "db",
		.alternative_names = "DNS:db.example.com,DNS:*.wild.example.com,IP:127.0.0.9",
		.issuer = &authority};
	int pair[2];

	(void)state;
	alarm(60);
	near_seen = far_seen = (struct seen){0};
	strcpy(folder, "/tmp/pgusher-test.XXXXXX");
	if (!mkdtemp(folder) || !loop_init(&loop, &loop_clock))
		return -1;
	path_of(ca_path, "ca");
	path_of(cert_path, "cert");
	path_of(key_path, "key");
	path_of(other_path, "other");
	authority = certificate_make(&ca);
	leaf = certificate_make(&wish);
	certificate_save(&authority, ca_path);
	certificate_save(&leaf, cert_path);
	certificate_save_key(&leaf, key_path);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
		return -1;
	stream_open(&near, &loop, pair[0], &handlers);
	stream_open(&far, &loop, pair[1], &handlers);
	return stream_watch(&near) && stream_watch(&far) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	stream_close(&near);
	stream_close(&far);
	loop_free(&loop);
	free(near_seen.bytes);
	free(far_seen.bytes);
	certificate_free(&leaf);
	certificate_free(&authority);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static struct tls_options client_side(void)
{
	return (struct tls_options){
		.side = TLS_TOWARDS_SERVERS, .trust = TLS_TRUST_ANY, .ca_file = ca_path};
}

static struct tls_options server_side(void)
{
	return (struct tls_options){.side = TLS_TOWARDS_CLIENTS,
		.trust = TLS_TRUST_OFFERED,
		.ca_file = ca_path,
		.cert_file = cert_path,
		.key_file = key_path};
}

static struct tls_context *make(const struct tls_options *options)
{
	struct tls_context *context = tls_context_new(options, why, sizeof(why));

	if (!context)
		fail_msg("%s", why);
	return context;
}

static void refuse(const struct tls_options *options, const char *text)
{
	assert_null(tls_context_new(options, why, sizeof(why)));
	if (!strstr(why, text))
		fail_msg("not \"%s\" but \"%s\"", text, why);
}

static void meet_with(const struct tls_options *client, const struct tls_options *server,
	const char *name, bool direct)
{
	struct tls_context *ours = make(client), *theirs = make(server);

	assert_true(tls_accept(&far, theirs));
	assert_true(tls_connect(&near, ours, name, direct));
	tls_context_unref(ours);
	tls_context_unref(theirs);
	turn(8);
}

static void meet(void)
{
	const struct tls_options client = client_side(), server = server_side();

	meet_with(&client, &server, "db", false);
	assert_int_equal(near_seen.secured, 1);
	assert_int_equal(far_seen.secured, 1);
}

static void assert_far_has(const char *text)
{
	assert_int_equal(far_seen.length, strlen(text));
	assert_memory_equal(far_seen.bytes, text, strlen(text));
}

/* Check that the handshake has failed, and that this stream's error has this text. */
static void assert_failed(const struct stream *stream, const char *text)
{
	assert_int_equal(near_seen.secured, 0);
	assert_int_equal(seen_of(stream)->last, STREAM_BROKEN);
	assert_non_null(tls_error(stream));
	if (!strstr(tls_error(stream), text))
		fail_msg("not \"%s\" but \"%s\"", text, tls_error(stream));
}

static uint64_t handshakes(enum tls_side side, bool good)
{
	return histogram_count(&loop.handshakes[side][good]);
}

/* --- sending and receiving ---------------------------------------------------------------- */

static void test_bytes_arrive_unchanged(void **state)
{
	char text[TLS_TEXT_SIZE];

	(void)state;
	assert_string_equal(tls_text(&near, text), "");
	assert_false(tls_is_shaking_hands(&near));
	meet();
	assert_string_equal(tls_text(&near, text), "TLSv1.3/TLS_AES_128_GCM_SHA256");
	assert_string_equal(tls_text(&far, text), "TLSv1.3/TLS_AES_128_GCM_SHA256");
	assert_int_equal(stream_send_bytes(&near, "hello", 5), STREAM_SENT_ALL);
	turn(2);
	assert_far_has("hello");
	assert_int_equal(stream_send_bytes(&far, "there", 5), STREAM_SENT_ALL);
	turn(2);
	assert_memory_equal(near_seen.bytes, "there", 5);
	assert_int_equal(handshakes(TLS_TOWARDS_CLIENTS, true), 1);
	assert_int_equal(handshakes(TLS_TOWARDS_SERVERS, true), 1);
	stream_close(&near);
	stream_close(&far);
	assert_int_equal(handshakes(TLS_TOWARDS_CLIENTS, false), 0);
	assert_int_equal(handshakes(TLS_TOWARDS_SERVERS, false), 0);
}

static void test_pieces_arrive_in_order(void **state)
{
	static uint8_t large[BULK];
	struct iovec pieces[] = {
		{(void *)"a", 1}, {(void *)"bc", 2}, {large, sizeof(large)}, {(void *)"d", 1}};

	(void)state;
	meet();
	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (uint8_t)(i * 7 >> 3);
	assert_int_not_equal(stream_send(&near, pieces, 4), STREAM_SENT_NOT);
	turn(40);
	assert_int_equal(far_seen.length, sizeof(large) + 4);
	assert_memory_equal(far_seen.bytes, "abc", 3);
	assert_memory_equal(far_seen.bytes + 3, large, sizeof(large));
	assert_int_equal(far_seen.bytes[sizeof(large) + 3], 'd');
}

static void test_blocked_bytes_are_sent_later_in_order(void **state)
{
	static uint8_t large[BULK];

	(void)state;
	meet();
	stream_pause(&far);
	memset(large, 'x', sizeof(large));
	for (int i = 0; i < 4; i++)
		assert_int_not_equal(
			stream_send_bytes(&near, large, sizeof(large)), STREAM_SENT_NOT);
	assert_true(stream_is_blocked(&near));
	assert_int_equal(stream_send_bytes(&near, "end", 3), STREAM_SENT_LATER);
	turn(5);
	assert_int_equal(far_seen.length, 0);
	stream_resume(&far);
	turn(80);
	assert_int_equal(far_seen.length, 4 * sizeof(large) + 3);
	assert_memory_equal(far_seen.bytes + 4 * sizeof(large), "end", 3);
	assert_false(stream_is_blocked(&near));
}

/* OpenSSL keeps the first half of a record until the second half arrives. */
static void test_records_may_come_byte_by_byte(void **state)
{
	uint8_t sealed[200];
	ssize_t length;
	int pair[2];

	(void)state;
	meet();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	/* Take what the client sends, and pass it to the server a byte at a time. */
	assert_int_equal(dup2(pair[0], near.fd), near.fd);
	assert_int_equal(stream_send_bytes(&near, "hello", 5), STREAM_SENT_ALL);
	length = read(pair[1], sealed, sizeof(sealed));
	assert_true(length > 5);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(dup2(pair[0], far.fd), far.fd);
	for (ssize_t i = 0; i < length; i++) {
		assert_int_equal(far_seen.length, 0);
		assert_int_equal(write(pair[1], sealed + i, 1), 1);
		on_readable(&far);
	}
	assert_far_has("hello");
	close(pair[0]);
	close(pair[1]);
}

/* Long messages are completed by receives that ask for their rest only. */
static void test_records_longer_than_the_room_are_received_in_parts(void **state)
{
	char large[1000];

	(void)state;
	meet();
	memset(large, 'x', sizeof(large));
	far_seen.room = 300;
	assert_int_equal(stream_send_bytes(&near, large, sizeof(large)), STREAM_SENT_ALL);
	assert_int_equal(stream_send_bytes(&near, "end", 3), STREAM_SENT_ALL);
	far_seen.reads = 0;
	turn(10);
	/* No event of the kernel reports the rest. */
	assert_int_equal(far_seen.reads, 4);
	assert_int_equal(far_seen.length, sizeof(large) + 3);
	assert_memory_equal(far_seen.bytes, large, sizeof(large));
	assert_memory_equal(far_seen.bytes + sizeof(large), "end", 3);
	stream_close(&near);
	turn(3);
	assert_int_equal(far_seen.last, STREAM_END);
}

/* Each part is sent on while the next one is sealed. */
static void test_limit_of_a_receive_counts_for_records_too(void **state)
{
	char large[10000];

	(void)state;
	meet();
	memset(large, 'x', sizeof(large));
	loop.receive_limit = 4096;
	assert_int_equal(stream_send_bytes(&near, large, sizeof(large)), STREAM_SENT_ALL);
	far_seen.reads = 0;
	turn(10);
	assert_int_equal(far_seen.reads, 3);
	assert_int_equal(far_seen.length, sizeof(large));
	assert_memory_equal(far_seen.bytes, large, sizeof(large));
}

static void test_close_notify_ends_the_stream_after_the_last_bytes(void **state)
{
	(void)state;
	meet();
	assert_int_equal(stream_send_bytes(&near, "bye", 3), STREAM_SENT_ALL);
	stream_close(&near);
	turn(3);
	assert_far_has("bye");
	assert_int_equal(far_seen.last, STREAM_END);
	assert_null(tls_error(&far));
}

/* close_notify on a connection that stays open: no event of the kernel reports the end. */
static void test_close_notify_alone_is_reported_even_after_a_pause(void **state)
{
	const int fd = dup(near.fd);

	(void)state;
	meet();
	assert_int_equal(stream_send_bytes(&near, "bye", 3), STREAM_SENT_ALL);
	stream_close(&near);
	stream_pause(&far);
	turn(3);
	assert_int_equal(far_seen.length, 0);
	stream_resume(&far);
	turn(3);
	assert_far_has("bye");
	assert_int_equal(far_seen.last, STREAM_END);
	close(fd);
}

/* The last bytes are received in parts, after the close_notify behind them. */
static void test_close_notify_is_reported_after_the_last_part(void **state)
{
	const int fd = dup(near.fd);

	(void)state;
	meet();
	far_seen.room = 2;
	assert_int_equal(stream_send_bytes(&near, "bye", 3), STREAM_SENT_ALL);
	stream_close(&near);
	turn(5);
	assert_far_has("bye");
	assert_int_equal(far_seen.last, STREAM_END);
	close(fd);
}

static void test_end_without_close_notify_ends_the_stream_too(void **state)
{
	(void)state;
	meet();
	shutdown(near.fd, SHUT_RDWR);
	turn(3);
	assert_int_equal(far_seen.last, STREAM_END);
}

static void test_stream_may_be_closed_when_it_is_secured(void **state)
{
	const struct tls_options client = client_side(), server = server_side();

	(void)state;
	near_seen.closes_when_secured = true;
	meet_with(&client, &server, "db", false);
	assert_int_equal(near_seen.secured, 1);
	assert_false(stream_is_open(&near));
	assert_int_equal(far_seen.last, STREAM_END);
}

static void test_stream_may_send_as_soon_as_it_is_secured(void **state)
{
	(void)state;
	near_seen.speaks_when_secured = true;
	meet();
	assert_far_has("hello");
	assert_int_equal(stream_send_bytes(&near, "", 0), STREAM_SENT_ALL);
	assert_int_equal(stream_send_bytes(&near, "hello", 5), STREAM_SENT_ALL);
	turn(2);
	assert_far_has("hellohello");
}

static void test_garbage_is_refused(void **state)
{
	const struct tls_options server = server_side();
	struct tls_context *context = make(&server);

	(void)state;
	assert_true(tls_accept(&far, context));
	tls_context_unref(context);
	assert_int_equal(write(near.fd, "GET / HTTP/1.0\r\n\r\n", 18), 18);
	turn(3);
	assert_failed(&far, "http request");
	assert_int_equal(stream_send_bytes(&far, "x", 1), STREAM_SENT_NOT);
	stream_close(&far);
	assert_int_equal(handshakes(TLS_TOWARDS_CLIENTS, false), 1);
	assert_int_equal(handshakes(TLS_TOWARDS_CLIENTS, true), 0);
}

static void test_garbage_in_a_session_breaks_it(void **state)
{
	uint8_t junk[64] = {0x17, 3, 3, 0, 40};

	(void)state;
	meet();
	assert_int_equal(write(near.fd, junk, sizeof(junk)), sizeof(junk));
	turn(3);
	assert_int_equal(far_seen.last, STREAM_BROKEN);
	assert_int_equal(far_seen.length, 0);
}

/* --- trust -------------------------------------------------------------------------------- */

static void try_name(enum tls_trust trust, const char *name, bool good)
{
	struct tls_options client = client_side();
	const struct tls_options server = server_side();

	client.trust = trust;
	meet_with(&client, &server, name, false);
	if (good)
		assert_int_equal(near_seen.secured, 1);
	else
		assert_failed(&near, "not present in server certificate");
}

static void test_without_name_check_any_name_is_accepted(void **state)
{
	(void)state;
	try_name(TLS_TRUST_CHAIN, "elsewhere", true);
}

static void test_alternative_name_matches(void **state)
{
	(void)state;
	try_name(TLS_TRUST_NAME, "DB.example.com", true);
}

static void test_wildcard_stands_for_one_label(void **state)
{
	(void)state;
	try_name(TLS_TRUST_NAME, "a.wild.example.com", true);
}

static void test_wildcard_does_not_stand_for_two_labels(void **state)
{
	(void)state;
	try_name(TLS_TRUST_NAME, "a.b.wild.example.com", false);
}

static void test_common_name_does_not_count_beside_alternative_names(void **state)
{
	(void)state;
	try_name(TLS_TRUST_NAME, "db", false);
}

static void test_address_matches_an_address(void **state)
{
	(void)state;
	try_name(TLS_TRUST_NAME, "127.0.0.9", true);
}

static void test_other_address_does_not_match(void **state)
{
	(void)state;
	try_name(TLS_TRUST_NAME, "127.0.0.8", false);
}

static void test_unknown_authority_is_refused(void **state)
{
	const struct certificate_wish wish = {.common_name = "Other CA"};
	struct certificate other = certificate_make(&wish);
	struct tls_options client = client_side();
	const struct tls_options server = server_side();

	(void)state;
	certificate_save(&other, other_path);
	certificate_free(&other);
	client.trust = TLS_TRUST_CHAIN;
	client.ca_file = other_path;
	meet_with(&client, &server, "db", false);
	assert_failed(&near, "certificate verify failed");
}

static void test_expired_certificate_is_refused(void **state)
{
	const struct certificate_wish wish = {
		.common_name = "db", .issuer = &authority, .expired = true};
	struct tls_options client = client_side();
	const struct tls_options server = server_side();

	(void)state;
	certificate_free(&leaf);
	leaf = certificate_make(&wish);
	certificate_save(&leaf, cert_path);
	certificate_save_key(&leaf, key_path);
	client.trust = TLS_TRUST_CHAIN;
	meet_with(&client, &server, "db", false);
	assert_failed(&near, "certificate has expired");
}

static void test_revoked_certificate_is_refused(void **state)
{
	struct tls_options client = client_side();
	const struct tls_options server = server_side();

	(void)state;
	certificate_save_revocation(&authority, &leaf, other_path);
	client.trust = TLS_TRUST_CHAIN;
	client.crl_file = other_path;
	meet_with(&client, &server, "db", false);
	assert_failed(&near, "certificate revoked");
}

static void test_revocation_of_another_certificate_is_ignored(void **state)
{
	struct tls_options client = client_side();
	const struct tls_options server = server_side();

	(void)state;
	certificate_save_revocation(&authority, NULL, other_path);
	client.trust = TLS_TRUST_CHAIN;
	client.crl_file = other_path;
	meet_with(&client, &server, "db", false);
	assert_int_equal(near_seen.secured, 1);
}

/* --- certificates of clients -------------------------------------------------------------- */

static void try_client(const struct certificate *shown, enum tls_trust trust)
{
	struct tls_options client = client_side(), server = server_side();
	char key[96];

	path_of(key, "client-key");
	if (shown) {
		certificate_save(shown, other_path);
		certificate_save_key(shown, key);
		client.cert_file = other_path;
		client.key_file = key;
	}
	server.trust = trust;
	meet_with(&client, &server, "db", false);
}

static struct certificate client_certificate(const char *name, const char *alternatives)
{
	const struct certificate_wish wish = {
		.common_name = name, .alternative_names = alternatives, .issuer = &authority};

	return certificate_make(&wish);
}

static void test_names_of_a_client_certificate_are_found(void **state)
{
	struct certificate client = client_certificate("Alice", "DNS:al,DNS:*.example.com");

	(void)state;
	try_client(&client, TLS_TRUST_OFFERED);
	assert_int_equal(far_seen.secured, 1);
	assert_true(tls_has_peer_certificate(&far));
	assert_true(tls_peer_is(&far, "Alice"));
	assert_true(tls_peer_is(&far, "al"));
	assert_false(tls_peer_is(&far, "alice"));
	assert_false(tls_peer_is(&far, "Alic"));
	assert_false(tls_peer_is(&far, "a.example.com"));
	assert_false(tls_peer_is(&far, ""));
	certificate_free(&client);
}

/* The authority that signed such a name may have verified only the part before the NUL. */
static void try_name_with_nul(struct certificate_wish wish)
{
	struct certificate client;

	wish.issuer = &authority;
	client = certificate_make(&wish);
	try_client(&client, TLS_TRUST_OFFERED);
	assert_int_equal(far_seen.secured, 1);
	assert_false(tls_peer_is(&far, "Alice"));
	assert_false(tls_peer_is(&far, "al"));
	certificate_free(&client);
}

static void test_common_name_with_a_nul_matches_nothing(void **state)
{
	(void)state;
	try_name_with_nul((struct certificate_wish){
		.common_name = "Alice\0.example.com", .common_name_length = 18});
}

static void test_certificate_with_a_nul_in_a_name_matches_nothing(void **state)
{
	(void)state;
	try_name_with_nul((struct certificate_wish){.common_name = "Alice", .has_nul = true});
}

static void test_client_certificate_may_be_optional(void **state)
{
	(void)state;
	try_client(NULL, TLS_TRUST_OFFERED);
	assert_int_equal(far_seen.secured, 1);
	assert_false(tls_has_peer_certificate(&far));
	assert_false(tls_peer_is(&far, "Alice"));
}

static void test_client_certificate_may_be_required(void **state)
{
	(void)state;
	try_client(NULL, TLS_TRUST_CHAIN);
	assert_int_equal(far_seen.secured, 0);
	assert_string_equal(tls_error(&far), "peer did not return a certificate");
}

static void test_client_certificate_of_another_authority_is_refused(void **state)
{
	const struct certificate_wish wish = {.common_name = "Alice"};
	struct certificate client = certificate_make(&wish);

	(void)state;
	try_client(&client, TLS_TRUST_OFFERED);
	assert_int_equal(far_seen.secured, 0);
	assert_non_null(strstr(tls_error(&far), "certificate verify failed"));
	certificate_free(&client);
}

/* --- protocols ---------------------------------------------------------------------------- */

static void test_direct_connection_sends_alpn(void **state)
{
	const struct tls_options client = client_side(), server = server_side();

	(void)state;
	meet_with(&client, &server, "db", true);
	assert_int_equal(near_seen.secured, 1);
}

static void test_versions(void **state)
{
	static const struct {
		const char *text;
		const char *version; /* of the handshake; NULL: a word is unknown */
	} cases[] = {
		{"", "TLSv1.3"},
		{"secure", "TLSv1.3"},
		{"Default", "TLSv1.3"},
		{"all", "TLSv1.3"},
		{"tlsv1", "TLSv1.3"},
		{"TLSv1.2", "TLSv1.2"},
		{"tlsv1.2:tlsv1.1", "TLSv1.2"},
		{"tlsv1.2, tlsv1.3", "TLSv1.3"},
		{"all,!tlsv1.3", "TLSv1.2"},
		{"!tlsv1.3", "TLSv1.2"},
		{"legacy", NULL},
		{"tlsv1.2 ", NULL},
		{"tlsv1.4", NULL},
		{"!", NULL},
		{"secure,,all", NULL},
		{"a-word-that-is-much-longer-than-any-version-of-tls", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tls_options options = server_side();
		uint64_t off;

		options.protocols = cases[i].text;
		assert_int_equal(
			tls_protocols_parse(cases[i].text, &off), cases[i].version != NULL);
		if (!cases[i].version) {
			refuse(&options, "invalid client_tls_protocols: ");
			continue;
		}
		if (strcmp(cases[i].version, "TLSv1.3") == 0)
			assert_false(off & SSL_OP_NO_TLSv1_3);
		else
			assert_true(off & SSL_OP_NO_TLSv1_3);
		assert_false(off & SSL_OP_NO_TLSv1_2 && off & SSL_OP_NO_TLSv1_3);
		tls_context_unref(make(&options));
	}
}

static void test_old_version_is_used_if_it_is_the_only_one(void **state)
{
	const struct tls_options client = client_side();
	struct tls_options server = server_side();
	char text[TLS_TEXT_SIZE];

	(void)state;
	server.protocols = "tlsv1.2";
	server.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384";
	meet_with(&client, &server, "db", false);
	assert_string_equal(tls_text(&far, text), "TLSv1.2/ECDHE-ECDSA-AES256-GCM-SHA384");
}

static void test_no_version_in_common(void **state)
{
	struct tls_options client = client_side(), server = server_side();

	(void)state;
	client.protocols = "tlsv1.3";
	server.protocols = "tlsv1.2";
	meet_with(&client, &server, "db", false);
	assert_int_equal(near_seen.secured, 0);
	assert_int_equal(far_seen.last, STREAM_BROKEN);
}

static void test_suites_of_tls_1_3_can_be_chosen(void **state)
{
	const struct tls_options client = client_side();
	struct tls_options server = server_side();
	char text[TLS_TEXT_SIZE];

	(void)state;
	server.tls13_ciphers = "TLS_AES_256_GCM_SHA384";
	meet_with(&client, &server, "db", false);
	assert_string_equal(tls_text(&far, text), "TLSv1.3/TLS_AES_256_GCM_SHA384");
}

/* --- channel binding ---------------------------------------------------------------------- */

static void test_both_sides_compute_the_same_end_point(void **state)
{
	uint8_t ours[TLS_BINDING_MAX], theirs[TLS_BINDING_MAX];

	(void)state;
	assert_int_equal(tls_end_point(&near, ours), 0);
	meet();
	assert_int_equal(tls_end_point(&near, ours), 32);
	assert_int_equal(tls_end_point(&far, theirs), 32);
	assert_memory_equal(ours, theirs, 32);
}

/* --- contexts ----------------------------------------------------------------------------- */

static void test_errors_in_options_are_reported(void **state)
{
	struct tls_options options = server_side();

	(void)state;
	options.ciphers = "NO-SUCH-CIPHER";
	refuse(&options, "invalid client_tls_ciphers: NO-SUCH-CIPHER");
	options = server_side();
	options.tls13_ciphers = "NONE";
	refuse(&options, "failed to set the TLSv1.3 cipher suites");
	options.protocols = "tlsv1.2";
	tls_context_unref(make(&options));
	options = server_side();
	options.curve = "no-such-curve";
	refuse(&options, "invalid client_tls_ecdhecurve: no-such-curve");
	options.curve = "prime256v1";
	tls_context_unref(make(&options));
	options = server_side();
	options.dheparams = "legacy";
	refuse(&options, "invalid client_tls_dheparams: legacy");
	options = server_side();
	options.key_file = "";
	refuse(&options,
		"To allow TLS connections from clients, client_tls_key_file and "
		"client_tls_cert_file must be set.");
	options = server_side();
	options.ca_file = "/nonexistent/ca";
	refuse(&options, "failed to load CA: ");
	refuse(&options, "No such file or directory");
	options = server_side();
	options.cert_file = "/nonexistent/cert";
	refuse(&options, "failed to load certificate file \"/nonexistent/cert\": No such file");
	options = server_side();
	options.key_file = ca_path;
	refuse(&options, "failed to load private key file");
	options = server_side();
	options.crl_file = "/nonexistent/crl";
	refuse(&options, "failed to load CRL file \"/nonexistent/crl\": No such file");
}

/*
 * Only clients send passwords; servers send most of the bytes, so wiping those would cost more.
 */
static void test_plain_text_from_clients_is_wiped_after_reading(void **state)
{
	const struct tls_options client = client_side(), server = server_side();
	struct tls_context *ours = make(&client), *theirs = make(&server);

	(void)state;
	assert_true(SSL_CTX_get_options(theirs->ssl) & SSL_OP_CLEANSE_PLAINTEXT);
	assert_false(SSL_CTX_get_options(ours->ssl) & SSL_OP_CLEANSE_PLAINTEXT);
	tls_context_unref(ours);
	tls_context_unref(theirs);
}

enum { LOGINS = 20 };

static const struct stream_handlers silent = {.secured = NULL};

/* Each thread has a loop of its own, and the contexts and OpenSSL in common with the others. */
static void *log_in_often(void *argument)
{
	struct tls_context *const *contexts = argument;
	struct loop_clock own_clock = {0};
	struct loop own_loop;
	bool good = loop_init(&own_loop, &own_clock);

	for (int i = 0; i < LOGINS && good; i++) {
		struct stream here, there;
		int pair[2];

		good = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0;
		stream_open(&here, &own_loop, pair[0], &silent);
		stream_open(&there, &own_loop, pair[1], &silent);
		good = good && tls_accept(&there, contexts[1]) &&
			tls_connect(&here, contexts[0], "db", false);
		for (int turns = 0; turns < 4 && good; turns++) {
			stream_receive(&there, own_loop.receive, LOOP_RECEIVE_SIZE);
			stream_receive(&here, own_loop.receive, LOOP_RECEIVE_SIZE);
		}
		good = good && !tls_is_shaking_hands(&here) && !tls_is_shaking_hands(&there);
		stream_close(&here);
		stream_close(&there);
	}
	loop_free(&own_loop);
	return good ? NULL : argument;
}

static void test_threads_may_use_the_same_contexts_at_once(void **state)
{
	const struct tls_options client = client_side(), server = server_side();
	struct tls_context *contexts[] = {make(&client), make(&server)};
	pthread_t threads[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_in_often, contexts), 0);
	for (int i = 0; i < 3; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	tls_context_unref(contexts[0]);
	tls_context_unref(contexts[1]);
}

static void *ref_and_unref(void *context)
{
	for (int i = 0; i < 300 * 1000; i++)
		tls_context_unref(tls_context_ref(context));
	return NULL;
}

static void test_references_of_several_threads_are_counted(void **state)
{
	const struct tls_options server = server_side();
	struct tls_context *context = make(&server);
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ref_and_unref, context), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(context->holders, 1);
	tls_context_unref(context);
}

static void test_key_of_another_certificate_is_a_mismatch(void **state)
{
	struct tls_options options = server_side();

	(void)state;
	certificate_save_key(&authority, other_path);
	options.key_file = other_path;
	refuse(&options, "private/public key mismatch");
	options = client_side();
	options.cert_file = cert_path;
	refuse(&options, "private/public key mismatch");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: so that these threads make what is made once for all streams. */
		TEST(test_threads_may_use_the_same_contexts_at_once),
		TEST(test_bytes_arrive_unchanged),
		TEST(test_pieces_arrive_in_order),
		TEST(test_blocked_bytes_are_sent_later_in_order),
		TEST(test_records_may_come_byte_by_byte),
		TEST(test_records_longer_than_the_room_are_received_in_parts),
		TEST(test_limit_of_a_receive_counts_for_records_too),
		TEST(test_close_notify_ends_the_stream_after_the_last_bytes),
		TEST(test_close_notify_alone_is_reported_even_after_a_pause),
		TEST(test_close_notify_is_reported_after_the_last_part),
		TEST(test_end_without_close_notify_ends_the_stream_too),
		TEST(test_stream_may_be_closed_when_it_is_secured),
		TEST(test_stream_may_send_as_soon_as_it_is_secured),
		TEST(test_garbage_is_refused),
		TEST(test_garbage_in_a_session_breaks_it),
		TEST(test_without_name_check_any_name_is_accepted),
		TEST(test_alternative_name_matches),
		TEST(test_wildcard_stands_for_one_label),
		TEST(test_wildcard_does_not_stand_for_two_labels),
		TEST(test_common_name_does_not_count_beside_alternative_names),
		TEST(test_address_matches_an_address),
		TEST(test_other_address_does_not_match),
		TEST(test_unknown_authority_is_refused),
		TEST(test_expired_certificate_is_refused),
		TEST(test_revoked_certificate_is_refused),
		TEST(test_revocation_of_another_certificate_is_ignored),
		TEST(test_names_of_a_client_certificate_are_found),
		TEST(test_common_name_with_a_nul_matches_nothing),
		TEST(test_certificate_with_a_nul_in_a_name_matches_nothing),
		TEST(test_client_certificate_may_be_optional),
		TEST(test_client_certificate_may_be_required),
		TEST(test_client_certificate_of_another_authority_is_refused),
		TEST(test_direct_connection_sends_alpn),
		TEST(test_versions),
		TEST(test_old_version_is_used_if_it_is_the_only_one),
		TEST(test_no_version_in_common),
		TEST(test_suites_of_tls_1_3_can_be_chosen),
		TEST(test_both_sides_compute_the_same_end_point),
		TEST(test_errors_in_options_are_reported),
		TEST(test_key_of_another_certificate_is_a_mismatch),
		TEST(test_plain_text_from_clients_is_wiped_after_reading),
		TEST(test_references_of_several_threads_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
