/* SPDX-License-Identifier: ISC */
#include "session/login/proxy_greeting.h"

#include <string.h>
#include <unistd.h>

#include "net/proxy_header.h"
#include "session/link/close.h"
#include "session/link/peer_credentials.h"
#include "session/login/client_greeting.h"

/* --- what is expected --------------------------------------------------------------------- */

/*
 * A process of pgusher's own user on the Unix socket: a takeover, a peer that forwards a cancel
 * request, or an operator.
 */
static bool is_ours(const struct client_link *client)
{
	struct ucred peer;

	if (client->link.remote.family != AF_UNIX)
		return false;
	peer_credentials_read(client, &peer);
	return peer.uid == getuid();
}

static enum client_proxy expectation_of(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);

	if (!sources_is_proxy(registry, &client->link.remote))
		return PROXY_UNTRUSTED;
	if (registry->process->settings->proxy_protocol == PROXY_PROTOCOL_OPTIONAL ||
		is_ours(client))
		return PROXY_OPTIONAL;
	return PROXY_REQUIRED;
}

void proxy_greeting_begin(struct client_link *client)
{
	client->proxy = expectation_of(client);
	stream_set_handlers(&client->link.stream, &proxy_greeting_handlers);
}

/* --- the header --------------------------------------------------------------------------- */

/* Returns why a header is refused; NULL if it is not. */
static const char *refusal(const struct client_link *client)
{
	switch (client->proxy) {
	case PROXY_OPTIONAL:
	case PROXY_REQUIRED:
		return NULL;
	case PROXY_LOCAL:
	case PROXY_RELAYED:
		return "it is the second one";
	case PROXY_NONE:
	case PROXY_UNTRUSTED:
		break;
	}
	return "its source is not in proxy_networks";
}

static void log_header(const struct client_link *client, const struct proxy_header *header)
{
	char text[ADDRESS_TEXT_SIZE] = "an unknown address";

	if (header->client.family != AF_UNSPEC)
		address_text(&header->client, text);
	if (header->relayed)
		link_log(&client->link, LEVEL_DEBUG, "P: relays a connection from %s", text);
	else
		link_log(&client->link, LEVEL_DEBUG, "P: a connection of the proxy itself");
}

/*
 * The addresses of a header that does not tell are those of the connection. Its process is the
 * proxy's, though, and says nothing of the client.
 */
static void take_header(struct client_link *client, const struct proxy_header *header)
{
	if (log_enabled(LEVEL_DEBUG))
		log_header(client, header);
	client->proxy = header->relayed ? PROXY_RELAYED : PROXY_LOCAL;
	if (header->client.family != AF_UNSPEC)
		sources_move(client, &header->client);
	else if (header->relayed && client->link.remote.family == AF_UNIX)
		client->link.remote.pid = 0;
}

/* There is no header, or no other one: the bytes are the client's. */
static void pass_on(struct client_link *client, const uint8_t *data, size_t length)
{
	if (client->proxy == PROXY_UNTRUSTED || client->proxy == PROXY_OPTIONAL)
		client->proxy = PROXY_NONE;
	memmove(client->link.stream.loop->receive + LOOP_RECEIVE_HEADROOM, data, length);
	stream_set_handlers(&client->link.stream, &client_greeting_handlers);
	client_greeting_take(client, (ssize_t)length);
}

static void hold(struct client_link *client, const uint8_t *data, size_t length)
{
	if (!link_hold(&client->link, data, length))
		client_close_for(client, REASON_NO_MEMORY);
}

/* Handle all bytes that have come and were not taken yet. */
static void run(struct client_link *client, const uint8_t *data, size_t length)
{
	struct proxy_header header;
	const char *fault;

	while (length > 0) {
		const enum proxy_header_result found = proxy_header_read(data, length, &header);

		fault = refusal(client);
		if (found == PROXY_HEADER_NONE)
			pass_on(client, data, length);
		else if (found == PROXY_HEADER_UNCLEAR)
			hold(client, data, length);
		else if (fault || found == PROXY_HEADER_MALFORMED)
			client_greeting_refuse_proxy_header(
				client, fault ? fault : header.fault);
		else if (found == PROXY_HEADER_INCOMPLETE)
			hold(client, data, length);
		if (client->link.state != CLIENT_GREETING || found != PROXY_HEADER_WHOLE)
			return;
		take_header(client, &header);
		data += header.size;
		length -= header.size;
	}
}

static void on_readable(struct stream *stream)
{
	struct client_link *client = (struct client_link *)stream;
	struct loop *loop = stream->loop;
	uint8_t *into = loop->receive + LOOP_RECEIVE_HEADROOM;
	const uint32_t held = client->link.held_length;
	/* What is passed on fits behind the headroom, with what was held. */
	const ssize_t got = stream_receive(stream, into, LOOP_RECEIVE_SIZE - PROXY_HEADER_MAX);

	if (got == STREAM_AGAIN)
		return;
	if (got <= 0) {
		client_close_for(client, REASON_CLIENT_UNEXPECTED_EOF);
		return;
	}
	client->link.request_time = loop_now(loop);
	if (held)
		memcpy(into - held, client->link.held, held);
	link_drop_held(&client->link);
	run(client, into - held, (size_t)got + held);
}

static void on_drained(struct stream *stream)
{
	(void)stream;
}

const struct stream_handlers proxy_greeting_handlers = {
	.readable = on_readable,
	.drained = on_drained,
};
