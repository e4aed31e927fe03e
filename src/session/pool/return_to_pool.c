/* SPDX-License-Identifier: ISC */
#include "session/pool/return_to_pool.h"

#include "model/registry.h"
#include "session/link/close.h"
#include "session/notify/delivery.h"
#include "session/notify/unlisten.h"
#include "session/pool/cancel_queue.h"
#include "session/pool/caps.h"
#include "session/pool/lifetime.h"
#include "session/relay/own_query.h"
#include "session/relay/pair.h"
#include "session/relay/relay.h"
#include "session/server/host_capacity.h"
#include "session/state/changes.h"
#include "session/state/functions.h"
#include "session/state/pins.h"
#include "session/state/question.h"

/* --- closing instead ---------------------------------------------------------------------- */

/* Close the server if it must not be used again. Returns true if it was closed. */
static bool close_unwanted(struct server_link *server)
{
	if (server->close_needed)
		server_close_for(server, REASON_CLOSE_NEEDED);
	else if (pool_is_paused(server->link.pool))
		server_close_for(server, REASON_PAUSE_MODE);
	else
		return false;
	return true;
}

/* --- the steps, the last one first -------------------------------------------------------- */

static inline void enter_idle_list(struct server_link *server, const struct settings *settings)
{
	if (server->link.state == SERVER_IDLE)
		return;
	if (settings->server_round_robin || server->close_needed)
		server_enter_last(server, SERVER_IDLE);
	else
		server_enter(server, SERVER_IDLE);
}

/* The last step: the server is idle, or goes to the client that has waited longest. */
static inline void make_available(struct server_link *server, const struct settings *settings)
{
	struct pool *pool = server->link.pool;

	enter_idle_list(server, settings);
	if (pool_wanted_servers(pool) > 0)
		pool->registry->serve(pool);
}

static bool needs_check(const struct settings *settings)
{
	return settings->server_check_delay == 0 &&
		(settings->server_check_query[0] != '\0' ||
			settings->server_check_role == ROLE_CHECK_ALWAYS);
}

/* If servers are checked before each use, check this one when a client next needs it. */
static inline void mark_for_check(struct server_link *server, const struct settings *settings)
{
	if (!needs_check(settings)) {
		make_available(server, settings);
		return;
	}
	server_enter(server, SERVER_STALE);
	pool_needs_work(server->link.pool);
}

/* May the session have what belongs to its last client, besides known settings? */
static inline bool has_state_left(const struct server_link *server)
{
	return server->suspected || server->pins || server->changes_known;
}

/* The server is asked for its role when a client next needs it. */
static void mark_for_role_check(struct server_link *server)
{
	server_enter(server, SERVER_STALE);
	pool_needs_work(server->link.pool);
}

/*
 * Return the session to its beginning; the query must succeed. Nothing undoes LOAD, and a new
 * session runs connect_query again.
 */
static __attribute__((noinline)) void discard_all(struct server_link *server)
{
	const unsigned topics = server->pins | server->suspected;

	pins_clear(server);
	if ((topics & TOPIC_LIBRARY) || server->link.pool->database->config->connect_query) {
		server_close_for(server, REASON_SESSION_STATE_LEFT);
		return;
	}
	server->drained = true;
	server_enter(server, SERVER_RESETTING);
	own_query_send(server, "DISCARD ALL");
}

/* Now it is as it was before its client, but for the settings that are known. */
static void forget_state(struct server_link *server)
{
	functions_settle(server);
	server->suspected = 0;
	server->changes_known = server->has_reset = false;
	buffer_free(&server->changes);
}

static inline bool has_reset_query(
	const struct server_link *server, const struct settings *settings)
{
	return settings->server_reset_query[0] != '\0' &&
		(settings->server_reset_query_always ||
			server->link.pool->mode == POOL_MODE_SESSION);
}

static void run_reset_query(struct server_link *server, const struct settings *settings)
{
	server_enter(server, SERVER_RESETTING);
	own_query_send(server, settings->server_reset_query);
}

/* A function of its own, so that all of what is unusual is tested by one instruction. */
static __attribute__((noinline)) void reset_unusual(
	struct server_link *server, const struct settings *settings)
{
	if (has_state_left(server))
		discard_all(server);
	else if (has_reset_query(server, settings))
		run_reset_query(server, settings);
	else
		mark_for_role_check(server);
}

static inline void reset(struct server_link *server, const struct settings *settings)
{
	if (has_state_left(server) || server->role_doubted)
		reset_unusual(server, settings);
	else if (has_reset_query(server, settings))
		run_reset_query(server, settings);
	else
		mark_for_check(server, settings);
}

/* Returns true if the server was closed, because another pool is to have its place. */
static inline bool passes_on(struct server_link *server)
{
	return server->link.pool->caps != 0 && caps_take_back(server);
}

/* The first step after use. A server is HELD while a cancel request in flight may hit it. */
static inline void end_use(struct server_link *server, const struct settings *settings)
{
	if (server->cancels_queued > 0)
		cancel_queue_drop(server);
	if (lifetime_close_old(server) || close_unwanted(server))
		return;
	if (server->cancels > 0)
		server_enter(server, SERVER_HELD);
	else if (!passes_on(server))
		reset(server, settings);
}

/* --- from the state to the step ----------------------------------------------------------- */

void return_to_pool(struct server_link *server)
{
	const struct settings *settings = server->link.pool->registry->process->settings;

	switch (server_state(server)) {
	case SERVER_PAIRED:
	case SERVER_ASKING:
	case SERVER_DRAINING:
	case SERVER_LOOKING_UP:
		end_use(server, settings);
		break;
	case SERVER_HELD:
		if (!passes_on(server))
			reset(server, settings);
		break;
	case SERVER_RESETTING:
		server->drained = false;
		forget_state(server);
		counters_reset(server, RESET_OK);
		if (server->role_doubted)
			mark_for_role_check(server);
		else
			mark_for_check(server, settings);
		break;
	case SERVER_CHECKING:
		counters_host(server, true);
		/* The doubt may have come after the question. */
		if (server->role_doubted) {
			server_enter(server, SERVER_IDLE);
			mark_for_role_check(server);
		} else {
			make_available(server, settings);
		}
		break;
	case SERVER_STALE:
	case SERVER_IDLE:
		make_available(server, settings);
		break;
	case SERVER_CONNECTING:
	case SERVER_AUTHENTICATING:
	case SERVER_PREPARING:
	case SERVER_CANCELING:
	case SERVER_LISTENING:
	case SERVER_WATCHING:
	case SERVER_CLOSED:
	case SERVER_STATES:
		break;
	}
}

/*
 * Close a server that has sent a message without a request; its client has its whole answer, but
 * would go on without what only this server has or knows of its session.
 */
static void drop_dirty(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);
	const bool is_lost = server->suspected || server->pins;

	pair_unpair(&server->link);
	counters_unclean(server, UNCLEAN_OUT_OF_SYNC);
	server_close_for(server, REASON_IDLE_SERVER_GOT_DIRTY);
	if (is_lost)
		client_close_for(client, REASON_SESSION_STATE_UNKNOWN);
	/* The client may be paused, if the server took no more data of a failed COPY. */
	else if (client->link.stream.paused)
		relay_client_resume(client);
}

static void unpair_and_return(struct server_link *server)
{
	if (!server_is_clean(server))
		return;
	pair_unpair(&server->link);
	return_to_pool(server);
}

/* Another process is about to take the pair over: that one asks. */
static bool is_to_be_taken_over(const struct server_link *server)
{
	return server->link.pool->registry->process->draining && !server->link.stream.tls;
}

static void unpair_and_ask(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);

	if (is_to_be_taken_over(server)) {
		/* The client's next message needs the answer. */
		client_set_step(client, CLIENT_STEP_HANDED_OVER);
		return;
	}
	if (server->cancels_queued > 0)
		cancel_queue_drop(server);
	/* Such a request may hit the question: the server stays with its client until it is over. */
	if (server->cancels > 0)
		return;
	/* While it was pinned, EXECUTE and FETCH may have done anything. */
	if (server->pins)
		server->suspected |= TOPICS_ALL & ~TOPIC_UNREAD;
	pair_unpair(&server->link);
	question_begin(server, client);
}

static void unpair_and_read(struct server_link *server)
{
	pair_unpair(&server->link);
	if (!functions_read(server))
		return_to_pool(server);
}

static void unpair_and_ask_capacity(struct server_link *server)
{
	pair_unpair(&server->link);
	if (!host_capacity_ask(server))
		return_to_pool(server);
}

/* The server stays with its client, but for a reason for which the client loses it. */
static void keep_pinned(struct server_link *server)
{
	const char *why = pins_are_over(server);

	if (!why)
		return;
	pins_warn(server, client_of(server->link.peer), why);
	unpair_and_return(server);
}

/* Its client has its answer. Returns false if the client was closed. */
static bool give_messages(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);

	server->owes_messages = false;
	unlisten_apply(client);
	delivery_to_client(client);
	return server->link.peer == &client->link;
}

/*
 * Its client has drawn values from sequences, as far as its texts tell, and perhaps done nothing else.
 * No question is needed for that. If the server cannot be pinned it is reset.
 */
static void settle_sequences(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);
	const session_topics topics = (session_topics)server->pins | TOPIC_SEQUENCES;

	if (!pool_watches_sequences(server->link.pool) || (server->pins & TOPIC_SEQUENCES))
		server->suspected &= ~(unsigned)TOPIC_SEQUENCES;
	else if (server->suspected == TOPIC_SEQUENCES && pins_set(server, client, topics, NULL))
		server->suspected = 0;
}

/*
 * As the end of return_if_free(), for a server that is dirty, may have to await a Bind, or has
 * state of its client. A function of its own, so that all of that is tested by one instruction.
 */
__attribute__((noinline)) static void return_unusual(struct server_link *server)
{
	if (server->owes_messages && !give_messages(server))
		return;
	if (server->changes_known && !(server->suspected & TOPIC_SETTINGS) &&
		!changes_take(server, client_of(server->link.peer)))
		server->suspected |= TOPIC_SETTINGS;
	if (server->dirty) {
		drop_dirty(server);
		return;
	}
	if (server_awaits_bind(server) || !server_is_clean(server))
		return;
	if (server->suspected & TOPIC_SEQUENCES)
		settle_sequences(server);
	if (server->suspected == TOPIC_SEQUENCES)
		unpair_and_return(server);
	else if (server->suspected)
		unpair_and_ask(server);
	else if (server->pins)
		keep_pinned(server);
	else if (server->functions_due)
		unpair_and_read(server);
	else if (server->capacity_due)
		unpair_and_ask_capacity(server);
	else
		unpair_and_return(server);
}

void return_if_free(struct server_link *server)
{
	const struct client_link *client;

	if (server->link.state != SERVER_PAIRED || server->transaction_status != 'I' ||
		server_mode(server) == POOL_MODE_SESSION)
		return;
	client = client_of(server->link.peer);
	/* The client must get the rest of a message of which it has a part. */
	if (stream_is_blocked(&client->link.stream) || client->link.remaining > 0 ||
		server->link.remaining > 0 || !requests_is_empty(&server->requests))
		return;
	if (server->dirty || server->awaits_bind || server->owes_messages ||
		server->changes_known || server->functions_due || server->capacity_due ||
		server->suspected || server->pins)
		return_unusual(server);
	else
		unpair_and_return(server);
}
