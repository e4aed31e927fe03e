/* SPDX-License-Identifier: ISC */
#include "session/serving/server_session.h"

#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/notify/handoff.h"
#include "session/notify/listening_server.h"
#include "session/parameters/parameter_sync.h"
#include "session/pool/draining.h"
#include "session/pool/host_watch.h"
#include "session/pool/pairing.h"
#include "session/pool/return_to_pool.h"
#include "session/relay/relay.h"
#include "session/server/host_capacity.h"
#include "session/server/server_login.h"
#include "session/serving/refused_setting.h"
#include "session/slow/slow_queries.h"
#include "session/state/functions.h"
#include "session/state/question.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/writer.h"

/* The server is free before its client goes on, so that this mostly gets it again. */
static void end_question(struct server_link *server)
{
	struct client_link *client = server->asked_for;

	functions_settle(server);
	switch (question_done(server)) {
	case QUESTION_AGAIN:
		return;
	case QUESTION_TOO_LARGE:
		if (client)
			client_close_for(client, REASON_SESSION_STATE_TOO_LARGE);
		server->suspected |= TOPICS_ALL;
		return_to_pool(server);
		return;
	case QUESTION_RESET:
		server->suspected |= TOPICS_ALL;
		return_to_pool(server);
		break;
	case QUESTION_FREE:
		if (!functions_read(server))
			return_to_pool(server);
		break;
	case QUESTION_HANDED:
		break;
	case QUESTION_PINS:
		/* Settings may have been reset behind the question. */
		if (!pairing_sync(client, server))
			return;
		break;
	case QUESTION_FAILED:
		server_close_for(server, REASON_RESET_QUERY_FAILED);
		return; /* with its client */
	}
	if (client)
		relay_client_resume(client);
}

static void end_handoff(struct server_link *server)
{
	if (handoff_done(server))
		return_to_pool(server);
	else
		server_close_for(server, REASON_RESET_QUERY_FAILED);
}

static void end_functions(struct server_link *server)
{
	functions_done(server);
	if (server_is_clean(server))
		return_to_pool(server);
	else
		server_close_for(server, REASON_TEST_QUERY_FAILED);
}

static void end_capacity(struct server_link *server)
{
	if (!host_capacity_done(server))
		server_close_for(server, REASON_TEST_QUERY_FAILED);
	/* It may be asked again, for less. */
	else if (!host_capacity_ask(server))
		return_to_pool(server);
}

void server_session_own_query_done(struct server_link *server)
{
	switch (server_state(server)) {
	case SERVER_PAIRED:
		if (server->sync_refused)
			refused_setting_end(server);
		else
			parameter_sync_done(server);
		break;
	case SERVER_LOOKING_UP:
		lookup_done(server);
		break;
	case SERVER_DRAINING:
		draining_own_query_done(server);
		break;
	case SERVER_PREPARING:
		if (server->transaction_status == 'I')
			server_login_query_done(server);
		else
			server_close_for(server, REASON_RESET_QUERY_FAILED);
		break;
	case SERVER_LISTENING:
		listening_server_run_ended(server);
		break;
	case SERVER_WATCHING:
		host_watch_answered(server);
		break;
	case SERVER_ASKING:
		if (handoff_has(server))
			end_handoff(server);
		else if (server->link.pool->database->functions.reader == server)
			end_functions(server);
		else if (host_capacity_is_asked(server))
			end_capacity(server);
		else
			end_question(server);
		break;
	case SERVER_RESETTING:
	case SERVER_CHECKING:
		if (server_is_clean(server))
			return_to_pool(server);
		else
			server_close_for(server,
				server->link.state == SERVER_RESETTING
					? REASON_RESET_QUERY_FAILED
					: REASON_TEST_QUERY_FAILED);
		break;
	case SERVER_CONNECTING:
	case SERVER_AUTHENTICATING:
	case SERVER_IDLE:
	case SERVER_HELD:
	case SERVER_STALE:
	case SERVER_CANCELING:
	case SERVER_CLOSED:
	case SERVER_STATES:
		break;
	}
}

/* --- events ------------------------------------------------------------------------------- */

static void on_readable(struct stream *stream)
{
	relay_server_readable((struct server_link *)stream);
}

/* The server has taken all data: its client may be read again. */
static void on_drained(struct stream *stream)
{
	struct server_link *server = (struct server_link *)stream;
	struct client_link *client;

	if (server->link.state == SERVER_DRAINING)
		draining_proceed(server, 0);
	if (!server->link.peer)
		return;
	if (link_registry(&server->link)->query_watch)
		slow_queries_server_drained(server);
	client = client_of(server->link.peer);
	if (!client->ring_full && !server_stops_client(server))
		stream_resume(&client->link.stream);
	return_if_free(server);
}

const struct stream_handlers server_session_handlers = {
	.readable = on_readable,
	.drained = on_drained,
};

/* During a SUSPEND. */
static void on_suspend_readable(struct stream *stream)
{
	relay_receive_rest((struct link *)stream);
}

const struct stream_handlers server_suspend_handlers = {
	.readable = on_suspend_readable,
	.drained = on_drained,
};
