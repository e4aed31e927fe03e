/* SPDX-License-Identifier: ISC */
#include "session/link/client_limits.h"

#include "model/registry.h"
#include "session/link/close.h"
#include "session/link/login.h"
#include "wire/writer.h"

/* Interval for checking exceeded limits again while no limit is enforced (SUSPEND). */
#define SUSPENDED_RETRY (USEC_PER_SEC / 5)

/* The earlier of two times, of which 0 means never. */
static usec_t earlier(usec_t a, usec_t b)
{
	if (a == 0 || b == 0)
		return a ? a : b;
	return a < b ? a : b;
}

static usec_t end_of(usec_t start, usec_t limit)
{
	return limit > 0 ? start + limit : 0;
}

static usec_t idle_limit(const struct client_link *client, const struct settings *settings)
{
	if (client->user && client->user->config &&
		client->user->config->client_idle_timeout > 0)
		return client->user->config->client_idle_timeout;
	return settings->client_idle_timeout;
}

/* The user's value wins over the database's, that over the global one; 0 is no limit. */
static usec_t wait_limit(const struct client_link *client, const struct settings *settings)
{
	const struct user_config *user = client->user ? client->user->config : NULL;

	if (user && user->query_wait_timeout >= 0)
		return user->query_wait_timeout;
	if (client->database && client->database->config->query_wait_timeout >= 0)
		return client->database->config->query_wait_timeout;
	return settings->query_wait_timeout;
}

/* As for the limit, the user's value wins over the database's, that over the global one. */
static enum wait_action wait_action(
	const struct client_link *client, const struct settings *settings)
{
	const struct user_config *user = client->user ? client->user->config : NULL;

	if (user && user->query_wait_timeout_action != WAIT_ACTION_INHERIT)
		return user->query_wait_timeout_action;
	if (client->database &&
		client->database->config->query_wait_timeout_action != WAIT_ACTION_INHERIT)
		return client->database->config->query_wait_timeout_action;
	return settings->query_wait_timeout_action;
}

/* Since when a client waits: since the query's first message, or the last one of its login. */
static usec_t waiting_since(const struct client_link *client)
{
	return client->query_start ? client->query_start : client->link.request_time;
}

/* Start of the login; time in the queue for a server does not count against the client. */
static usec_t login_since(const struct client_link *client)
{
	return client->link.connect_time + (client->login ? client->login->asker.queued : 0);
}

/* Is a server running the look-up of its user? Else the look-up waits for a server. */
static bool is_lookup_running(const struct client_link *client)
{
	return client->link.state == CLIENT_LOOKING_UP && client->login->asker.queued_at == 0;
}

static usec_t end_of_wait(const struct client_link *client, const struct settings *settings)
{
	const usec_t since = waiting_since(client);

	return earlier(end_of(since, settings->query_timeout),
		end_of(since, wait_limit(client, settings)));
}

/* The setting is in whole seconds, which must be exceeded. */
static usec_t notice_limit(const struct settings *settings)
{
	return settings->query_wait_notify > 0
		? (usec_t)(settings->query_wait_notify + 1) * USEC_PER_SEC
		: 0;
}

static usec_t next_deadline(const struct client_link *client, const struct settings *settings)
{
	usec_t due;

	switch (client_state(client)) {
	case CLIENT_GREETING:
	case CLIENT_AUTHENTICATING:
		return end_of(login_since(client), settings->client_login_timeout);
	case CLIENT_LOOKING_UP:
		if (is_lookup_running(client))
			return end_of(login_since(client), settings->client_login_timeout);
		return end_of_wait(client, settings);
	case CLIENT_WELCOMING:
		due = end_of(login_since(client), settings->client_login_timeout);
		return earlier(due, end_of_wait(client, settings));
	case CLIENT_IDLE:
		if (client->step == CLIENT_STEP_LISTENING)
			return end_of_wait(client, settings);
		return end_of(client->link.request_time, idle_limit(client, settings));
	case CLIENT_WAITING:
	case CLIENT_LAUNCHING:
		due = end_of_wait(client, settings);
		if (!client->notified)
			due = earlier(due, end_of(client->wait_start, notice_limit(settings)));
		return due;
	case CLIENT_CANCEL_WAITING:
		return earlier(client->held_until,
			end_of(client->link.request_time, settings->cancel_wait_timeout));
	case CLIENT_PAIRED:
	case CLIENT_CANCEL_SENT:
	case CLIENT_CONSOLE:
	case CLIENT_CLOSED:
	case CLIENT_STATES:
		break;
	}
	return 0;
}

void client_limits_start(struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);

	wheel_set(&registry->loop->wheel, &client->deadline,
		next_deadline(client, registry->process->settings));
}

static bool is_exceeded(usec_t now, usec_t start, usec_t limit)
{
	return limit > 0 && now - start > limit;
}

/* Notify the client once in a wait. The text is fixed, `postgres` in it too. */
static void notify_waiting(struct client_link *client)
{
	struct buffer message;

	client->notified = true;
	client->link.pool->notified++;
	buffer_init(&message);
	writer_notice(&message, "NOTICE", "00000",
		"No server connection available in postgres backend, client being queued");
	if (!link_send(&client->link, &message))
		client_close_for(client, REASON_UNEXPECTED_EOF);
}

/* Logged in, and with a query that waits for its server. */
static bool is_queued(const struct client_link *client)
{
	return client->link.state == CLIENT_WAITING || client->link.state == CLIENT_LAUNCHING;
}

/* The client has waited for too long. One that logs in, or wants replication, is closed. */
static void end_wait(
	struct client_link *client, const struct settings *settings, enum reason reason)
{
	if ((client->link.state == CLIENT_WAITING || client->link.state == CLIENT_IDLE) &&
		wait_action(client, settings) == WAIT_ACTION_ERROR)
		link_registry(&client->link)->end_query(client, reason);
	else
		client_close_for(client, reason);
}

static void expire_waiting(
	struct client_link *client, const struct settings *settings, usec_t now)
{
	const usec_t since = waiting_since(client);

	if (is_exceeded(now, since, settings->query_timeout))
		end_wait(client, settings, REASON_QUERY_TIMEOUT_WAITING);
	else if (is_exceeded(now, since, wait_limit(client, settings)))
		end_wait(client, settings, REASON_QUERY_WAIT_TIMEOUT);
	else if (client->link.state == CLIENT_WELCOMING &&
		is_exceeded(now, login_since(client), settings->client_login_timeout))
		client_close_for(client, REASON_CLIENT_LOGIN_TIMEOUT_SERVER_DOWN);
	else if (is_queued(client) && !client->notified &&
		is_exceeded(now, client->wait_start, notice_limit(settings)))
		notify_waiting(client);
}

static void expire_login(
	struct client_link *client, const struct settings *settings, usec_t now)
{
	if (is_exceeded(now, login_since(client), settings->client_login_timeout))
		client_close_for(client, REASON_CLIENT_LOGIN_TIMEOUT);
}

/* A cancel request may be sent now, also during SUSPEND, which waits for it. */
static void end_hold(struct client_link *client, usec_t now)
{
	if (client->held_until == 0 || now < client->held_until)
		return;
	client->held_until = 0;
	pool_needs_work(client->link.pool);
}

void client_limits_expire(struct deadline *deadline)
{
	struct client_link *client = (struct client_link *)((char *)deadline -
		offsetof(struct client_link, deadline));
	const struct registry *registry = link_registry(&client->link);
	const struct settings *settings = registry->process->settings;
	/* The wheel fires when the time is reached, but a limit must be exceeded. */
	const usec_t now = loop_now(registry->loop) + 1;

	if (client->link.state == CLIENT_CANCEL_WAITING)
		end_hold(client, now);
	/* Limits that are exceeded during SUSPEND are enforced when it ends. */
	if (registry->process->operation == OPERATION_SUSPENDED || registry->process->still) {
		wheel_set(&registry->loop->wheel, deadline, now + SUSPENDED_RETRY);
		return;
	}
	switch (client_state(client)) {
	case CLIENT_GREETING:
	case CLIENT_AUTHENTICATING:
		expire_login(client, settings, now);
		break;
	case CLIENT_LOOKING_UP:
		if (is_lookup_running(client))
			expire_login(client, settings, now);
		else
			expire_waiting(client, settings, now);
		break;
	case CLIENT_WELCOMING:
	case CLIENT_WAITING:
	case CLIENT_LAUNCHING:
		expire_waiting(client, settings, now);
		break;
	case CLIENT_IDLE:
		if (client->step == CLIENT_STEP_LISTENING)
			expire_waiting(client, settings, now);
		else if (is_exceeded(
				 now, client->link.request_time, idle_limit(client, settings)))
			client_close_for(client, REASON_CLIENT_IDLE_TIMEOUT);
		break;
	case CLIENT_CANCEL_WAITING:
		if (is_exceeded(now, client->link.request_time, settings->cancel_wait_timeout))
			client_close_for(client, REASON_CANCEL_WAIT_TIMEOUT);
		break;
	case CLIENT_PAIRED:
	case CLIENT_CANCEL_SENT:
	case CLIENT_CONSOLE:
	case CLIENT_CLOSED:
	case CLIENT_STATES:
		return;
	}
	if (client->link.state != CLIENT_CLOSED)
		client_limits_start(client);
}
