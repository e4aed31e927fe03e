/* SPDX-License-Identifier: ISC */
#include "session/login/client_greeting.h"

#include <stdio.h>
#include <string.h>

#include "net/proxy_header.h"
#include "net/tls.h"
#include "session/link/close.h"
#include "session/login/client_login.h"
#include "session/login/relocation.h"
#include "session/pool/peer_discovery.h"
#include "session/relay/relay.h"
#include "session/serving/cancel.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/startup.h"

static const struct login_steps login_steps;
static const struct relocation_end relocation_end;

static void on_cancel_request(struct client_link *client, const uint8_t *message, size_t total)
{
	size_t length;
	const uint8_t *key = startup_cancel_key(message, total, &length);

	cancel_request(client, key, length);
}

/* --- bytes of a login --------------------------------------------------------------------- */

/* The TLS context for this client, or NULL when TLS is not offered, as over Unix sockets. */
static struct tls_context *tls_for(const struct client_link *client)
{
	return client->link.remote.family != AF_UNIX
		? link_registry(&client->link)->process->client_tls
		: NULL;
}

/* Refuse a request for encryption. Close the client for `why` if bytes follow the request. */
static void refuse_encryption(struct client_link *client, bool more, enum reason why)
{
	if (more)
		client_close_for(client, why);
	else if (stream_send_bytes(&client->link.stream, "N", 1) == STREAM_SENT_NOT)
		client_close_for(client, REASON_UNEXPECTED_EOF);
}

/*
 * Protocol: "SSL Session Encryption". Close the client if bytes follow the request: an attacker
 * in the middle may have added them, and they must not be taken for encrypted ones.
 */
static void on_ssl_request(struct client_link *client, bool more)
{
	struct stream *stream = &client->link.stream;
	struct tls_context *context = tls_for(client);

	if (stream->tls)
		client_close_for(client, REASON_SSL_REQ_INSIDE_SSL);
	else if (!context || more || client->link.state != CLIENT_GREETING)
		refuse_encryption(client, more, REASON_UNENCRYPTED_DATA_AFTER_SSL_REQUEST);
	else if (stream_send_bytes(stream, "S", 1) != STREAM_SENT_ALL ||
		!tls_accept(stream, context))
		client_close_for(client, REASON_FAILED_TO_ACCEPT_SSL);
}

void client_greeting_refuse_proxy_header(struct client_link *client, const char *fault)
{
	const struct failure why = failure_of(REASON_PROXY_HEADER_REFUSED, fault);

	link_log_kind(&client->link, LEVEL_WARNING, LINK_STRANGER, 1, "%s", why.text);
	client_close(client, &why);
}

/* Close a client whose first bytes may be those of another protocol. */
static void refuse_stranger(struct client_link *client, const uint8_t *data, size_t length,
	const struct failure *why)
{
	const struct settings *settings = link_registry(&client->link)->process->settings;
	struct proxy_header header;

	if (client->link.state != CLIENT_GREETING || client->link.stream.tls ||
		proxy_header_read(data, length, &header) <= PROXY_HEADER_UNCLEAR)
		client_close(client, why);
	else
		client_greeting_refuse_proxy_header(client,
			settings->proxy_protocol == PROXY_PROTOCOL_OFF
				? "proxy_protocol is off"
				: "it is not at the beginning");
}

static void refuse_header(struct client_link *client, const uint8_t *data, size_t length)
{
	char hex[2 * 8 + 1] = "";
	struct failure why;

	for (size_t i = 0; i < length && i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", data[i]);
	why = failure_of(REASON_BAD_PACKET_HEADER, hex);
	refuse_stranger(client, data, length, &why);
}

/*
 * Handle a message without a type byte, as the first ones are. Returns the number of bytes
 * used, or 0 when more are needed. May close the client.
 */
static size_t handle_untyped_message(
	struct client_link *client, const uint8_t *data, size_t length)
{
	size_t total = 0;
	const enum startup_kind kind = startup_peek(data, length, &total);

	if (relocation_begin(client, kind, data, total, length, &relocation_end))
		return length;
	switch (kind) {
	case STARTUP_INCOMPLETE:
		return 0;
	case STARTUP_MALFORMED:
		refuse_header(client, data, length);
		break;
	case STARTUP_SSL_REQUEST:
		on_ssl_request(client, length > total);
		break;
	case STARTUP_GSSENC_REQUEST:
		refuse_encryption(
			client, length > total, REASON_UNENCRYPTED_DATA_AFTER_GSSENC_REQUEST);
		break;
	case STARTUP_CANCEL:
		/* No cancel request is allowed behind a StartupMessage. */
		if (client->link.state == CLIENT_AUTHENTICATING)
			client_close_for(client, REASON_BAD_PACKET);
		else
			on_cancel_request(client, data, total);
		break;
	case STARTUP_PEER_QUESTION:
		if (client->link.state == CLIENT_AUTHENTICATING ||
			!peer_discovery_answer(client, data, total))
			refuse_header(client, data, length);
		break;
	case STARTUP_PROTOCOL_2:
		client_close_for(client, REASON_OLD_V2_PROTOCOL);
		break;
	case STARTUP_LOGIN:
		if (client->link.state == CLIENT_AUTHENTICATING)
			client_close_for(client, REASON_CLIENT_RESENT_STARTUP);
		else
			client_login_begin(client, data, total, &login_steps);
		break;
	}
	return total;
}

/*
 * Handle a message with a type byte: during a login only a password message is allowed. Returns
 * as above.
 */
static size_t handle_typed_message(
	struct client_link *client, const uint8_t *data, size_t length)
{
	const uint32_t max = link_registry(&client->link)->process->settings->max_packet_size;
	struct frame frame = {0};
	struct failure why;

	switch (frame_peek(data, length, max, &frame)) {
	case FRAME_WHOLE:
		break;
	case FRAME_PARTIAL:
	case FRAME_SHORT:
		/* Do not wait for the end of another message: it may be another protocol. */
		if (data[0] != PQ_PASSWORD || frame.total > CLIENT_LOGIN_MESSAGE_MAX) {
			why = failure_of(REASON_BAD_PACKET, NULL);
			refuse_stranger(client, data, length, &why);
		}
		return 0;
	case FRAME_MALFORMED:
		refuse_header(client, data, length);
		return 0;
	}
	if (client->link.state == CLIENT_GREETING)
		client_close_for(client,
			frame.type == PQ_PASSWORD ? REASON_PASSWORD_BEFORE_STARTUP
						  : REASON_BAD_PACKET);
	else if (frame.type != PQ_PASSWORD)
		client_close_for(client, REASON_BAD_PACKET);
	else
		client_login_password(client, frame_body(data), frame_body_size(&frame));
	return frame.total;
}

static bool is_logging_in(const struct client_link *client)
{
	return client->link.state <= CLIENT_AUTHENTICATING;
}

static void run(struct client_link *client, const uint8_t *data, size_t length)
{
	while (length > 0 && is_logging_in(client)) {
		const size_t used = data[0] == '\0'
			? handle_untyped_message(client, data, length)
			: handle_typed_message(client, data, length);

		if (used == 0)
			break;
		data += used;
		length -= used;
	}
	if (client->link.state == CLIENT_CLOSED || length == 0)
		return;
	if (!link_hold(&client->link, data, length))
		client_close_for(client, REASON_NO_MEMORY);
	else if (client->link.state == CLIENT_IDLE)
		relay_client_resume(client); /* a query was pipelined behind the password */
}

/*
 * Clients of PostgreSQL 17 and later may begin with a TLS handshake; no message of the protocol
 * begins with the same byte. Returns the number of bytes to handle, which are decrypted
 * ones if TLS has begun, or a STREAM_ result.
 * Protocol: "SSL Session Encryption", direct.
 */
static ssize_t begin_direct_tls(struct client_link *client, uint8_t *data, ssize_t got)
{
	enum { TLS_HANDSHAKE_RECORD = 0x16 };
	struct stream *stream = &client->link.stream;
	struct tls_context *context = tls_for(client);

	if (data[0] != TLS_HANDSHAKE_RECORD || stream->tls || !context ||
		client->link.state != CLIENT_GREETING || client->link.held_length > 0)
		return got;
	if (!tls_accept(stream, context))
		return STREAM_BROKEN;
	return tls_receive_again(stream, data, (size_t)got, LOOP_RECEIVE_SIZE);
}

/* The client has disconnected, or TLS has failed: close it. */
static void close_disconnected(struct client_link *client)
{
	const char *why = tls_error(&client->link.stream);

	if (!why) {
		client_close_for(client, REASON_CLIENT_UNEXPECTED_EOF);
		return;
	}
	link_log_kind(
		&client->link, LEVEL_WARNING, LINK_STRANGER, 1, "TLS handshake error: %s", why);
	client_close_for(client, REASON_FAILED_TO_ACCEPT_SSL);
}

void client_greeting_take(struct client_link *client, ssize_t got)
{
	struct loop *loop = client->link.stream.loop;
	uint8_t *into = loop->receive + LOOP_RECEIVE_HEADROOM;
	const uint32_t held = client->link.held_length;

	if (got > 0)
		got = begin_direct_tls(client, into, got);
	if (got == STREAM_AGAIN)
		return;
	if (got <= 0) {
		close_disconnected(client);
		return;
	}
	client->link.request_time = loop_now(loop);
	if (held + (size_t)got > CLIENT_LOGIN_MESSAGE_MAX) {
		client_close_for(client, REASON_BAD_PACKET);
		return;
	}
	if (held) {
		memcpy(into - held, client->link.held, held);
		explicit_bzero(client->link.held, held); /* may be a part of a password */
		link_drop_held(&client->link);
	}
	run(client, into - held, (size_t)got + held);
	explicit_bzero(into - held, (size_t)got + held);
}

static void on_readable(struct stream *stream)
{
	uint8_t *into = stream->loop->receive + LOOP_RECEIVE_HEADROOM;

	client_greeting_take(
		(struct client_link *)stream, stream_receive(stream, into, LOOP_RECEIVE_SIZE));
}

void client_greeting_resume(struct client_link *client)
{
	struct loop *loop = client->link.stream.loop;
	const uint32_t length = client->link.held_length;

	if (client->link.state == CLIENT_AUTHENTICATING || client->link.state == CLIENT_CONSOLE)
		stream_resume(&client->link.stream);
	if (client->link.state != CLIENT_AUTHENTICATING || length == 0)
		return; /* the session's own handlers read held bytes */
	memcpy(loop->receive, client->link.held, length);
	explicit_bzero(client->link.held, length);
	link_drop_held(&client->link);
	run(client, loop->receive, length);
	explicit_bzero(loop->receive, length);
}

static const struct login_steps login_steps = {
	.proceed = client_login_proceed,
	.accept_password = client_login_learn,
	.found = client_login_found,
	.checked = client_login_checked,
	.resume = client_greeting_resume,
};

static void on_drained(struct stream *stream)
{
	(void)stream;
}

/* The client has disconnected while it was not read from, which is so only during a look-up. */
static void on_hung_up(struct stream *stream)
{
	client_close_for((struct client_link *)stream, REASON_CLIENT_UNEXPECTED_EOF);
}

const struct stream_handlers client_greeting_handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.hung_up = on_hung_up,
};

static const struct relocation_end relocation_end = {
	.handlers = &client_greeting_handlers,
	.go_on = run,
};
