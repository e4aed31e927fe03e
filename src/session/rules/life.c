/* SPDX-License-Identifier: ISC */
#include "session/rules/life.h"

#include "model/state/custom_names.h"
#include "model/statements_in_flight.h"
#include "session/auth/client_login_state.h"
#include "session/link/close.h"
#include "session/lookup/login_end.h"
#include "session/lookup/lookup_server.h"
#include "session/notify/channels.h"
#include "session/notify/handoff.h"
#include "session/notify/listening_server.h"
#include "session/pool/auto_size.h"
#include "session/pool/draining.h"
#include "session/pool/host_watch.h"
#include "session/pool/return_to_pool.h"
#include "session/relay/pair.h"
#include "session/relay/relay.h"
#include "session/server/host_capacity.h"
#include "session/server/host_role.h"
#include "session/server/server_failure.h"
#include "session/serving/cancel.h"
#include "session/serving/drain.h"
#include "session/serving/launch_outcome.h"
#include "session/serving/pool_work.h"
#include "session/serving/replication.h"
#include "session/serving/server_session.h"
#include "session/serving/unsent_query.h"
#include "session/state/functions.h"
#include "session/state/pins.h"
#include "session/state/question.h"
#include "session/statements/replay.h"
#include "session/statements/statement_answers.h"

/* --- a link closes ------------------------------------------------------------------------ */

static void client_closed(
	struct client_link *client, enum client_state state, const struct failure *why)
{
	(void)why;
	if (state == CLIENT_CANCEL_WAITING || state == CLIENT_CANCEL_SENT)
		cancel_client_closed(client, state);
	login_end(client, state);
	custom_names_free(client);
	channels_forget_client(client);
	statements_client_closed(client);
}

static void after_client_closed(
	struct client_link *client, struct server_link *server, bool terminated)
{
	replication_client_closed(client);
	if (server)
		draining_client_unpaired(server, terminated);
}

static void server_closed(
	struct server_link *server, enum server_state state, const struct failure *why)
{
	struct client_link *held = question_server_closed(server);

	pins_clear(server);
	functions_server_closed(server);
	host_capacity_server_closed(server);
	buffer_free(&server->changes);
	handoff_server_closed(server);
	statements_server_closed(server);
	cancel_server_closed(server);
	server_failure_finish(server, state, why, replication_detach(server));
	lookup_server_closed(server, why);
	/* The client must not go on without what it has SET, such as a role or a tenant. */
	if (held)
		client_close_for(held, REASON_SESSION_STATE_UNKNOWN);
	listening_server_closed(server, state, why);
	host_watch_closed(server, state, why);
	host_role_connection_ended(server, state, why);
}

static void query_unsent(struct client_link *client, const struct failure *why)
{
	if (why->reason == REASON_SETTING_CANCELED)
		unsent_query_end(client, why->reason);
	else
		relay_client_resume(client);
}

static const struct close_events close_events = {
	.before_error = client_login_send_sasl_final,
	.unpair = pair_unpair,
	.client_closed = client_closed,
	.after_client_closed = after_client_closed,
	.server_closed = server_closed,
	.query_unsent = query_unsent,
};

/* --- a run of the relay ------------------------------------------------------------------- */

#define RELAY_EVENTS                                                                           \
	.server_drained = draining_proceed, .own_query_done = server_session_own_query_done,   \
	.insert_answers = statement_answers_insert, .send_answers = statement_answers_send,    \
	.keep_batch = replay_keep

static const struct relay_events relay_events = {
	RELAY_EVENTS,
	.server_answered = return_if_free,
};

static const struct relay_events drain_events = {
	RELAY_EVENTS,
	.server_answered = drain_server_answered,
};

/* --- what messages mean ------------------------------------------------------------------- */

/* States in which no message is relayed have a table too: every message is unexpected there. */
static const struct link_rules link_rules = {
	.server_states =
		{
			[SERVER_CONNECTING] = relay_unused_server,
			[SERVER_AUTHENTICATING] = relay_unused_server,
			[SERVER_PREPARING] = relay_unused_server,
			[SERVER_IDLE] = relay_unused_server,
			[SERVER_PAIRED] = relay_paired_server,
			[SERVER_LOOKING_UP] = relay_lookup_server,
			[SERVER_DRAINING] = relay_draining_server,
			[SERVER_HELD] = relay_unused_server,
			[SERVER_RESETTING] = relay_unused_server,
			[SERVER_STALE] = relay_unused_server,
			[SERVER_CHECKING] = relay_unused_server,
			[SERVER_CANCELING] = relay_unused_server,
			[SERVER_ASKING] = relay_unused_server,
			[SERVER_LISTENING] = relay_listening_server,
			[SERVER_WATCHING] = relay_probed_server,
			[SERVER_CLOSED] = relay_unused_server,
		},
	.server_tasks =
		{
			[SERVER_TASK_ENDED] = relay_unused_server,
			[SERVER_TASK_OWN_QUERY] = relay_own_server,
			[SERVER_TASK_QUESTION] = relay_asked_server,
			[SERVER_TASK_HANDOFF] = relay_handoff_server,
			[SERVER_TASK_PROBE] = relay_probed_server,
			[SERVER_TASK_FUNCTIONS] = relay_functions_server,
			[SERVER_TASK_CAPACITY] = relay_capacity_server,
			[SERVER_TASK_SYNC_ALONE] = relay_syncing_server,
			[SERVER_TASK_SYNC_GATHERED] = relay_syncing_server,
			[SERVER_TASK_SYNC_ENDED] = relay_unused_server,
			[SERVER_TASK_WATCH_RESET] = relay_reset_server,
			[SERVER_TASK_RESTORE] = relay_restoring_server,
		},
	.client_states =
		{
			[CLIENT_GREETING... CLIENT_CLOSED] = relay_idle_client,
		},
	.client_paired =
		{
			[POOL_MODE_SESSION] = relay_paired_client,
			[POOL_MODE_TRANSACTION] = relay_tracked_client,
			[POOL_MODE_STATEMENT] = relay_tracked_client,
			[CLIENT_WATCHED] = relay_watched_client,
		},
	.client_steps =
		{
			[CLIENT_STEP_ENDING] = relay_ending_client,
			[CLIENT_STEP_SKIPPING] = relay_skipping_client,
			[CLIENT_STEP_SYNC_DUE] = relay_differing_client,
			[CLIENT_STEP_FORGETTING] = relay_forgetting_client,
			[CLIENT_STEP_LISTENING] = relay_asked_client,
			[CLIENT_STEP_ASKED] = relay_asked_client,
			[CLIENT_STEP_HANDED_OVER] = relay_asked_client,
		},
};

/* --- all of them -------------------------------------------------------------------------- */

void life_attach(struct registry *registry)
{
	registry->do_work = pool_work_run;
	registry->serve = pool_work_serve;
	registry->size_pools = auto_size_round;
	registry->end_query = unsent_query_end;
	registry->rules = &link_rules;
	registry->close_events = &close_events;
	registry->relay_events = &relay_events;
	registry->drain_events = &drain_events;
	registry->login_owner = &launch_outcome;
}
