/* SPDX-License-Identifier: ISC */
#include "session/serving/welcome.h"

#include <strings.h>

#include "session/auth/client_login_state.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/link/login_counts.h"
#include "session/lookup/login_end.h"
#include "session/lookup/startup_check.h"
#include "session/parameters/welcome_message.h"
#include "session/relay/relay.h"
#include "session/serving/client_session.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/writer.h"

/* Append the end of the welcome, with a new cancel key. Returns false when out of memory. */
static bool write_end(struct client_link *client, struct buffer *message)
{
	struct registry *registry = link_registry(&client->link);
	const char *notice = registry->process->settings->login_notify_message;

	if (!cancel_keys_issue(&registry->process->cancel_keys, client,
		    client_login_key_length(client), &registry->loop->random))
		return false;
	writer_backend_key(message, client->key, client->key_length);
	if (notice && notice[0] != '\0')
		writer_notice(message, "NOTICE", "00000", notice);
	writer_ready(message, READY_IDLE);
	return !message->failed;
}

/* Send the message in one packet with AuthenticationSASLFinal, if that has not been sent. */
static enum stream_sent send_with_sasl_final(
	struct client_link *client, const struct buffer *message)
{
	const struct buffer *sasl_final = &client->login->sasl_final;
	struct iovec pieces[] = {
		{sasl_final->data, sasl_final->length},
		{message->data, message->length},
	};

	if (sasl_final->length == 0)
		return stream_send(&client->link.stream, pieces + 1, 1);
	return stream_send(&client->link.stream, pieces, 2);
}

/* Keep the startup parameters for RESET (rules/restore). The caller sets link.parameters. */
static void keep_asked(struct client_link *client)
{
	if (link_registry(&client->link)->process->settings->startup_parameters ==
		STARTUP_FOLLOW)
		client->asked = client->link.parameters;
	else
		parameters_unref(client->link.parameters);
	client->link.parameters = NULL;
}

static enum stream_sent send_welcome(struct client_link *client)
{
	struct pool *pool = client->link.pool;
	struct buffer *message = &pool->welcome_made;
	enum stream_sent sent = STREAM_SENT_NOT;
	size_t shared;

	if (!welcome_message_make(pool, client->link.parameters))
		return STREAM_SENT_NOT;
	shared = message->length;
	if (write_end(client, message)) {
		keep_asked(client);
		client->link.parameters = parameters_ref(pool->welcome_given);
		sent = send_with_sasl_final(client, message);
	}
	if (message->failed)
		welcome_message_drop(pool);
	else
		buffer_shorten(message, shared);
	return sent;
}

/* Finish the login if the welcome was sent. Returns false if the client was closed. */
static bool finish_login(struct client_link *client, enum stream_sent sent)
{
	const enum client_state state = client_state(client);

	if (sent == STREAM_SENT_NOT) {
		client_close_for(client, REASON_UNEXPECTED_EOF);
		return false;
	}
	if (state == CLIENT_WELCOMING)
		client->link.pool->stats.current.wait_time +=
			(uint64_t)(loop_now(client->link.stream.loop) - client->wait_start);
	client->wait_start = 0;
	login_counts_passed(client);
	login_end(client, state);
	client_session_begin(client);
	return true;
}

static void welcome(struct client_link *client)
{
	if (!startup_check_begin(client))
		return;
	/* Queries may have arrived together with the last message of the login. */
	if (finish_login(client, send_welcome(client)))
		relay_client_resume(client);
}

bool welcome_replica(struct client_link *client, struct buffer *head)
{
	parameters_report(client->link.parameters, head);
	return finish_login(client,
		write_end(client, head) ? send_with_sasl_final(client, head) : STREAM_SENT_NOT);
}

void welcome_or_wait(struct client_link *client)
{
	struct pool *pool = client->link.pool;

	if (pool->welcome) {
		welcome(client);
		return;
	}
	if (pool->registry->process->shutdown == SHUTDOWN_WAIT_FOR_SERVERS) {
		client_close_for(client, REASON_SERVER_SHUTTING_DOWN);
		return;
	}
	if (!client_login_send_sasl_final(client)) {
		client_close_for(client, REASON_UNEXPECTED_EOF);
		return;
	}
	client->wait_start = loop_now(client->link.stream.loop);
	client_enter(client, CLIENT_WELCOMING);
	stream_set_handlers(&client->link.stream, &client_session_handlers);
	stream_pause(&client->link.stream);
	client_limits_start(client);
	pool_needs_work(pool);
}

/* Returns the first client that waits for the welcome of the pool, not for its own server. */
static struct client_link *first_to_welcome(const struct pool *pool)
{
	struct link *link;

	TAILQ_FOREACH (link, &pool->welcoming, place) {
		const struct replica *replica = client_of(link)->replica;

		if (link->state == CLIENT_WELCOMING && !(replica && replica->server))
			return client_of(link);
	}
	return NULL;
}

void welcome_waiting(struct pool *pool)
{
	struct client_link *client;

	while (pool->welcome && (client = first_to_welcome(pool)) != NULL)
		welcome(client);
}

bool welcome_is_wanted(const struct pool *pool)
{
	const struct link *link;

	if (pool->welcome)
		return false;
	TAILQ_FOREACH (link, &pool->welcoming, place) {
		if (!((const struct client_link *)link)->replica)
			return true;
	}
	return false;
}
