/* SPDX-License-Identifier: ISC */
#include "session/notify/listen_command.h"

#include "model/registry.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/notify/delivery.h"
#include "session/relay/query_clocks.h"
#include "session/relay/relay_rules.h"
#include "wire/session_command.h"
#include "wire/writer.h"

/* --- answers ------------------------------------------------------------------------------ */

/*
 * Send the answer, and what came behind it. If the client does not read, its next messages are held
 * until it has taken this.
 */
static enum verdict send_answer(struct relay_run *run, struct buffer *answer)
{
	struct client_link *client = run->client;

	writer_ready(answer, READY_IDLE);
	/* As after any simple query. */
	statement_unref(client->unnamed);
	client->unnamed = NULL;
	client->query_start = client->transaction_start = 0;
	if (!link_send(&client->link, answer)) {
		buffer_free(answer);
		return relay_fail(run, failure_of(REASON_UNEXPECTED_EOF));
	}
	/* A run that is repeated with another server must begin behind this message. */
	run->start = run->at + run->frame.total;
	delivery_to_client(client);
	if (client->link.state == CLIENT_CLOSED)
		return RELAY_STOP;
	if (!stream_is_blocked(&client->link.stream))
		return RELAY_DROP;
	relay_step_over(run, RELAY_DROP);
	return RELAY_HOLD;
}

static enum verdict complete(struct relay_run *run, const char *tag)
{
	struct buffer answer = {0};

	writer_command_complete(&answer, tag);
	return send_answer(run, &answer);
}

static enum verdict refuse(struct relay_run *run, enum reason reason)
{
	struct buffer answer = {0};

	writer_error(&answer, "ERROR", reason_sqlstate(reason), reason_text(reason));
	return send_answer(run, &answer);
}

/* The listening server, or what kept it from being launched, has refused the LISTEN. */
static enum verdict pass_error(struct relay_run *run)
{
	struct channel_listener *listener = run->client->listener;
	struct notification *error = listener->error;
	struct buffer answer = {0};

	listener->error = NULL;
	buffer_append(&answer, error->bytes, error->length);
	notification_unref(error);
	return send_answer(run, &answer);
}

/* --- LISTEN ------------------------------------------------------------------------------- */

/* The message is judged again when the listening server listens, or cannot. */
static enum verdict wait_for_server(struct relay_run *run)
{
	struct client_link *client = run->client;

	query_clocks_start(client);
	client_set_step(client, CLIENT_STEP_LISTENING);
	client_limits_start(client);
	pool_needs_work(client->link.pool);
	return RELAY_HOLD;
}

static enum verdict judge_listen(struct relay_run *run, const char *name)
{
	struct client_link *client = run->client;
	struct subscription *subscription;
	bool too_many = false;

	if (client->listener && client->listener->error)
		return pass_error(run);
	subscription = channels_subscription(client, name);
	/* Another server still listens for it. */
	if (subscription && subscription->handoff)
		return complete(run, "LISTEN");
	if (!subscription)
		subscription = channels_subscribe(client, name, &too_many);
	if (!subscription)
		return too_many ? refuse(run, REASON_TOO_MANY_CHANNELS)
				: relay_fail(run, failure_of(REASON_NO_MEMORY));
	subscription->confirmed = channels_is_present(subscription->channel);
	if (!subscription->confirmed)
		return wait_for_server(run);
	return complete(run, "LISTEN");
}

static enum verdict judge_unlisten(struct relay_run *run, const char *name)
{
	struct subscription *subscription = channels_subscription(run->client, name);

	if (subscription)
		channels_unsubscribe(subscription);
	return complete(run, "UNLISTEN");
}

static enum verdict judge_unlisten_all(struct relay_run *run)
{
	channels_unsubscribe_all(run->client);
	return complete(run, "UNLISTEN");
}

void listen_command_withdraw(struct client_link *client)
{
	struct channel_listener *listener = client->listener;
	struct subscription *each, *next;

	if (!listener)
		return;
	notification_unref(listener->error);
	listener->error = NULL;
	TAILQ_FOREACH_SAFE (each, &listener->subscriptions, in_listener, next) {
		if (!each->confirmed)
			channels_unsubscribe(each);
	}
}

/* --- what it is --------------------------------------------------------------------------- */

/* May LISTEN of this client be answered here? Pools that ignore session state leave it to servers. */
static bool is_ours(const struct relay_run *run)
{
	const struct settings *settings = link_registry(run->from)->process->settings;
	const struct client_link *client = run->client;

	return run->whole && !settings->disable_pqexec &&
		client_mode(client) != POOL_MODE_SESSION &&
		client->link.pool->session_state != SESSION_STATE_IGNORE;
}

static enum verdict judge_listen_by_mode(struct relay_run *run, const char *name)
{
	switch (link_registry(run->from)->process->settings->listen) {
	case LISTEN_SHARED:
		if (channels_suit(run->client))
			return judge_listen(run, name);
		break;
	case LISTEN_PIN:
		break;
	case LISTEN_ERROR:
		listen_command_withdraw(run->client);
		return refuse(run, REASON_LISTEN_REFUSED);
	}
	/* It may have waited for the listening server before `listen` was changed. */
	listen_command_withdraw(run->client);
	return RELAY_PASS;
}

static enum verdict judge_command(struct relay_run *run, const struct session_command *command)
{
	const char *name = (const char *)command->name.data;

	switch (command->verb) {
	case SESSION_LISTEN:
		return judge_listen_by_mode(run, name);
	case SESSION_UNLISTEN:
		return judge_unlisten(run, name);
	case SESSION_UNLISTEN_ALL:
		return judge_unlisten_all(run);
	case SESSION_UNKNOWN:
	case SESSION_SET:
	case SESSION_SET_LOCAL:
	case SESSION_RESET:
	case SESSION_RESET_ALL:
	case SESSION_DISCARD_ALL:
	case SESSION_PREPARE:
	case SESSION_EXECUTE:
	case SESSION_DEALLOCATE:
	case SESSION_DEALLOCATE_ALL:
		break;
	}
	return RELAY_PASS;
}

enum verdict listen_command_judge(struct relay_run *run)
{
	/* Names that are not ASCII are left to the server: it may have another encoding. */
	const struct session_lexis lexis = {.safe_encoding = false};
	struct session_command command;
	enum verdict verdict = RELAY_PASS;
	const uint8_t *text = run->at + FRAME_HEADER_SIZE;

	if (!is_ours(run)) {
		listen_command_withdraw(run->client);
		return RELAY_PASS;
	}
	session_command_init(&command);
	session_command_read(
		(const char *)text, run->frame.total - FRAME_HEADER_SIZE, lexis, &command);
	verdict = judge_command(run, &command);
	session_command_free(&command);
	return verdict;
}
