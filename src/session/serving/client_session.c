/* SPDX-License-Identifier: ISC */
#include "session/serving/client_session.h"

#include "model/registry.h"
#include "model/statistics/client_group.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/notify/delivery.h"
#include "session/pool/return_to_pool.h"
#include "session/relay/relay.h"
#include "session/relay/relay_rules.h"
#include "session/serving/suspend.h"
#include "session/slow/slow_queries.h"

static void on_readable(struct stream *stream)
{
	relay_client_readable((struct client_link *)stream);
}

/* The client has taken all data: its server may be read again, or returned to the pool. */
static void on_drained(struct stream *stream)
{
	struct client_link *client = (struct client_link *)stream;
	struct server_link *server;

	if (link_registry(&client->link)->query_watch)
		slow_queries_client_drained(client);
	if (!client->link.peer) {
		delivery_to_client(client);
		if (client->link.state == CLIENT_IDLE)
			relay_client_resume(client);
		return;
	}
	server = server_of(client->link.peer);
	stream_resume(&server->link.stream);
	/* The client may have been paused because of answers of our own. */
	if (!client->ring_full && !server_stops_client(server) &&
		!stream_is_blocked(&server->link.stream))
		relay_client_resume(client);
	if (server->link.peer)
		return_if_free(server);
	if (client->link.state != CLIENT_CLOSED)
		delivery_to_client(client);
}

static void on_hung_up(struct stream *stream)
{
	client_close_for((struct client_link *)stream, REASON_CLIENT_UNEXPECTED_EOF);
}

const struct stream_handlers client_session_handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.hung_up = on_hung_up,
};

/*
 * During a SUSPEND. While clients wait for servers, a client with a server continues, so that
 * its server becomes free.
 */
static void on_suspend_readable(struct stream *stream)
{
	struct client_link *client = (struct client_link *)stream;

	if (client->link.state == CLIENT_PAIRED && suspend_may_continue(client))
		relay_client_readable(client);
	else
		relay_receive_rest(&client->link);
}

const struct stream_handlers client_suspend_handlers = {
	.readable = on_suspend_readable,
	.drained = on_drained,
	.hung_up = on_hung_up,
};

static void on_console_readable(struct stream *stream)
{
	struct client_link *client = (struct client_link *)stream;

	link_registry(&client->link)->process->console.readable(client);
}

const struct stream_handlers client_console_handlers = {
	.readable = on_console_readable,
	.drained = on_console_readable,
	.hung_up = on_hung_up,
};

void client_session_begin(struct client_link *client)
{
	stream_set_handlers(&client->link.stream, &client_session_handlers);
	client_enter(client, CLIENT_IDLE);
	client_group_join(client);
	/* Remove the login timeout, or it would wake each idle client once for nothing. */
	wheel_remove(&client->link.stream.loop->wheel, &client->deadline);
	client_limits_start(client);
}
