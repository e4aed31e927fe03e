/* SPDX-License-Identifier: ISC */
#include "session/pool/pairing.h"

#include <string.h>

#include "base/text.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/lookup/lookup_server.h"
#include "session/parameters/parameter_sync.h"
#include "session/pool/draining.h"
#include "session/pool/launch.h"
#include "session/pool/move_clients.h"
#include "session/relay/relay.h"
#include "session/relay/relay_rules.h"
#include "session/rules/server_session.h"
#include "session/statements/statements.h"
#include "session/work/cancel.h"
#include "session/work/replication.h"
#include "session/work/welcome.h"

/* --- taking ------------------------------------------------------------------------------- */

/* The next server that is fit for use; what is not goes on the way. */
static struct server_link *next_idle(struct pool *pool)
{
	struct link *link;

	while ((link = TAILQ_FIRST(&pool->servers[SERVERS_IDLE])) != NULL) {
		struct server_link *server = server_of(link);

		if (server->close_needed)
			server_close_for(server, REASON_OBSOLETE_CONNECTION);
		else if (server->dirty || server->link.held_length > 0)
			server_close_for(server, REASON_IDLE_SERVER_GOT_DIRTY);
		else
			return server;
	}
	return NULL;
}

/* Those who did not wait need no more than their number: see pool_histogram(). */
static void end_wait(struct client_link *client)
{
	struct pool *pool = client->link.pool;
	const usec_t now = loop_now(client->link.stream.loop);
	const uint64_t waited = (uint64_t)(now - client->wait_start);

	pool->stats.current.wait_time += waited;
	if (pool->latency)
		latency_add(pool->latency, LATENCY_WAIT, waited);
	client->served = now;
}

const struct relay_rule *pairing_client_rules(const struct client_link *client)
{
	return client_mode(client) == POOL_MODE_SESSION ? relay_paired_client
							: relay_tracked_client;
}

static void seat(struct client_link *client, struct server_link *server)
{
	client->link.peer = &server->link;
	server->link.peer = &client->link;
	client->link.rules = pairing_client_rules(client);
	server->link.rules = relay_paired_server;
	server->fresh = true;
	server->touched = true;
	deadline_cancel(&client->deadline);
	client_enter(client, CLIENT_PAIRED);
	server_enter(server, SERVER_PAIRED);
}

static void join(struct client_link *client, struct server_link *server)
{
	struct pool *pool = client->link.pool;

	pool->stats.current.assignments++;
	if (!pool->latency)
		pool_open_latency(pool);
	if (client->link.state == CLIENT_WAITING)
		end_wait(client);
	else
		client->served = 0;
	seat(client, server);
}

void pairing_bind(struct client_link *client, struct server_link *server)
{
	const usec_t now = loop_now(client->link.stream.loop);

	/* It is no assignment, and so no wait among the waits for those. */
	if (client->link.state == CLIENT_LAUNCHING) {
		client->link.pool->stats.current.wait_time +=
			(uint64_t)(now - client->wait_start);
		client->served = now;
	} else {
		client->served = 0;
	}
	server_enter(server, SERVER_IDLE);
	seat(client, server);
}

/* Those who cannot have it are told why. */
static enum taken refuse(struct client_link *client, enum setting setting)
{
	client_close_for(client,
		setting == SYNC_IMPOSSIBLE ? REASON_INVALID_SERVER_PARAMETER
					   : REASON_NO_MEMORY);
	return TAKEN_CLOSED;
}

/* Join them; in what the server differs is set before the client's first message. */
static enum taken pair_with_sync(struct client_link *client, struct server_link *server)
{
	const enum setting setting = parameter_sync_prepare(client, server);

	if (setting == SYNC_IMPOSSIBLE || setting == SYNC_NO_MEMORY)
		return refuse(client, setting);
	join(client, server);
	if (setting == SYNC_NEEDED)
		client->link.rules = relay_differing_client;
	return TAKEN_READY;
}

static enum taken pair(struct client_link *client, struct server_link *server)
{
	/* Most clients have the same parameters, and the same set of them: see wire/parameters. */
	if (client->link.parameters != server->link.parameters)
		return pair_with_sync(client, server);
	join(client, server);
	return TAKEN_READY;
}

static enum taken wait_for_server(struct client_link *client)
{
	struct pool *pool = client->link.pool;

	client->wait_start = loop_now(client->link.stream.loop);
	client->notified = false;
	client_enter(client, client->replica ? CLIENT_LAUNCHING : CLIENT_WAITING);
	client_limits_start(client);
	pool_needs_work(pool);
	return TAKEN_WAITING;
}

/* No server is up, and the last attempt to get one failed: do not let the client wait for it. */
static bool is_hopeless(const struct pool *pool)
{
	return pool->failing && !pool->wanting &&
		pool_servers(pool) == pool->server_count[SERVERS_LOGIN];
}

bool pairing_refuse_hopeless(struct client_link *client, struct pool *pool)
{
	char cached[100];
	struct failure why;

	if (pool_is_paused(pool) || !is_hopeless(pool) || (client->replica && pool->refused))
		return false;
	text_copy(cached, sizeof(cached), pool->last_failure.text);
	why = failure_of(REASON_SERVER_LOGIN_FAILING, cached);
	launch_server(pool, false);
	client_close(client, &why);
	return true;
}

enum taken pairing_take(struct client_link *client)
{
	struct pool *pool = client->link.pool;
	struct server_link *server;

	if (pool->left_behind) {
		move_clients_one(client);
		pool = client->link.pool;
	}
	if (!pool_is_paused(pool)) {
		/* Nobody passes those who wait already, and replication takes no server of others. */
		if (!client->replica && pool_wanted_servers(pool) == 0 &&
			(server = next_idle(pool)) != NULL)
			return pair(client, server);
		if (pairing_refuse_hopeless(client, pool))
			return TAKEN_CLOSED;
	}
	if (pool->registry->process->shutdown == SHUTDOWN_WAIT_FOR_SERVERS) {
		client_close_for(client, REASON_SERVER_SHUTTING_DOWN);
		return TAKEN_CLOSED;
	}
	return wait_for_server(client);
}

/* Who has waited longer, somebody for a look-up or a client? */
static void serve_one(struct pool *pool, struct server_link *server)
{
	struct client_link *client = pool_first_waiter(pool);
	struct lookup *lookup = lookup_next(pool);

	if (lookup && (!client || lookup->since <= client->wait_start))
		lookup_run(lookup, server);
	else if (pair(client, server) == TAKEN_READY)
		relay_client_resume(client);
}

/* Who waits longest can use no server of others: its own takes the place of this one. */
static void make_room(struct server_link *server)
{
	struct pool *pool = server->link.pool;

	server_close_for(server, REASON_EVICTED);
	pool_needs_work(pool);
}

/*
 * Idle servers go to those who wait, oldest first. Whoever gives one back at once, since what it
 * says is not answered, does so from in here: the next one is served by us, and not by the one before.
 */
static void serve(struct pool *pool)
{
	struct server_link *server;

	if (pool_wanted_servers(pool) == 0 || pool_is_paused(pool) || pool->serving)
		return;
	pool->serving = true;
	while (pool_wanted_servers(pool) > 0 && (server = next_idle(pool)) != NULL) {
		if (pool->client_count[CLIENT_LAUNCHING] > 0 && replication_is_next(pool))
			make_room(server);
		else
			serve_one(pool, server);
	}
	pool->serving = false;
}

/* --- giving back -------------------------------------------------------------------------- */

/* Has it passed on the beginning of a message whose end has not come? */
static bool is_midway(const struct link *link)
{
	return link->remaining > 0 && !link->discarding;
}

void pairing_part(struct link *link)
{
	struct link *peer = link->peer;
	struct client_link *client = client_of(link->kind == LINK_CLIENT ? link : peer);

	statements_part(server_of(link->kind == LINK_SERVER ? link : peer), client);
	link->cut = is_midway(peer);
	peer->cut = is_midway(link);
	link->peer = NULL;
	peer->peer = NULL;
	server_of(link->kind == LINK_SERVER ? link : peer)->link.rules = relay_unused_server;
	client->link.rules = relay_idle_client;
	client->ring_full = false;
	client_enter(client, CLIENT_IDLE);
	client_limits_rest(client);
}

/* Due for replacement, and the last such closing is long enough ago? Spreads closings out. */
static bool lifetime_is_over(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const usec_t now = loop_now(server->link.stream.loop);
	const usec_t lifetime =
		database_server_lifetime(pool->database, pool->registry->process->settings);
	int size;

	if (now - server->link.connect_time < lifetime)
		return false;
	size = pool_size(pool);
	return size <= 0 || pool->last_lifetime_close == 0 ||
		now - pool->last_lifetime_close >= lifetime / size;
}

static void retire(struct server_link *server)
{
	server->link.pool->last_lifetime_close = loop_now(server->link.stream.loop);
	server_close_for(server, REASON_SERVER_LIFETIME_OVER);
}

bool pairing_retire_old(struct server_link *server)
{
	if (!lifetime_is_over(server))
		return false;
	retire(server);
	return true;
}

static void idle(struct server_link *server)
{
	const struct settings *settings = server->link.pool->registry->process->settings;

	server->link.rules = relay_unused_server;
	if (server->link.state == SERVER_IDLE)
		return;
	if (settings->server_round_robin || server->close_needed)
		server_enter_last(server, SERVER_IDLE);
	else
		server_enter(server, SERVER_IDLE);
}

void pairing_offer(struct server_link *server)
{
	idle(server);
	serve(server->link.pool);
}

static bool needs_check(const struct settings *settings)
{
	return settings->server_check_delay == 0 && settings->server_check_query[0] != '\0';
}

void pairing_tested(struct server_link *server)
{
	server->drained = false;
	if (server->link.state == SERVER_RESETTING)
		counters_reset(server, RESET_OK);
	else
		counters_host(server, true);
	/* A reset server is as unchecked as before; one that has been checked is not. */
	if (server->link.state == SERVER_RESETTING &&
		needs_check(server->link.pool->registry->process->settings)) {
		server->link.rules = relay_unused_server;
		server_enter(server, SERVER_STALE);
		pool_needs_work(server->link.pool);
		return;
	}
	pairing_offer(server);
}

/* The rest of a release, once no cancel request can hit the server any more. */
static void finish_release(struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const struct settings *settings = pool->registry->process->settings;

	if (settings->server_reset_query[0] != '\0' &&
		(settings->server_reset_query_always || pool->mode == POOL_MODE_SESSION)) {
		server_enter(server, SERVER_RESETTING);
		server_ask(server, settings->server_reset_query);
	} else if (needs_check(settings)) {
		server_enter(server, SERVER_STALE);
		pool_needs_work(server->link.pool);
	} else {
		pairing_offer(server);
	}
}

/* A clean server whose client is gone from it. */
static void release(struct server_link *server)
{
	if (server->cancels_queued > 0)
		cancel_forget_queued(server);
	if (lifetime_is_over(server)) {
		retire(server);
		return;
	}
	if (server->close_needed) {
		server_close_for(server, REASON_CLOSE_NEEDED);
	} else if (pool_is_paused(server->link.pool)) {
		server_close_for(server, REASON_PAUSE_MODE);
	} else if (server->cancels > 0) {
		server_enter(server, SERVER_HELD);
	} else {
		finish_release(server);
	}
	if (server->link.pool->database->config->max_db_connections > 0 ||
		server->link.pool->registry->process->settings->max_db_connections > 0)
		pairing_wake_database(server->link.pool->database);
}

void pairing_release(struct server_link *server)
{
	if (server->link.peer)
		pairing_part(&server->link);
	release(server);
}

void pairing_unhold(struct server_link *server)
{
	finish_release(server);
}

void pairing_abandon(struct server_link *server, bool politely)
{
	if (server->link.state != SERVER_PAIRED)
		return;
	if (server->replication) {
		server_close_for(server,
			server_is_clean(server) ? REASON_REPLICATION_CLIENT_WAS_CLOSED
						: REASON_REPLICATION_CLIENT_DISCONNECTED);
		return;
	}
	if (server_is_clean(server))
		release(server);
	else
		draining_begin(server, politely);
}

/* A server that said what nobody asked for serves nobody any more; its client has its answer. */
static void drop_dirty(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);

	pairing_part(&server->link);
	counters_unclean(server, UNCLEAN_OUT_OF_SYNC);
	server_close_for(server, REASON_IDLE_SERVER_GOT_DIRTY);
	/* It may be paused, since the server took nothing more: the tail of a failed COPY. */
	if (client->link.stream.paused)
		relay_client_resume(client);
}

void pairing_settle(struct server_link *server)
{
	const struct client_link *client;

	if (server->link.state != SERVER_PAIRED || server->transaction_status != 'I' ||
		server_mode(server) == POOL_MODE_SESSION)
		return;
	client = client_of(server->link.peer);
	/* Half of what nobody asked for may have reached the client: it hears the rest too. */
	if (stream_is_blocked(&client->link.stream) || client->link.remaining > 0 ||
		server->link.remaining > 0 || !requests_is_empty(&server->requests))
		return;
	if (server->dirty)
		drop_dirty(server);
	else if (server_is_clean(server))
		pairing_release(server);
}

/* --- upkeep at the end of a turn ---------------------------------------------------------- */

static void check(struct server_link *server)
{
	const struct settings *settings = server->link.pool->registry->process->settings;
	const usec_t quiet = loop_now(server->link.stream.loop) - server->link.request_time;
	const char *query = settings->server_check_query;

	if (server->dirty || !server_is_clean(server)) {
		server_close_for(server, REASON_SV_USED_SERVER_GOT_DIRTY);
	} else if (query[0] == '\0' ||
		(settings->server_check_delay > 0 && quiet < settings->server_check_delay)) {
		pairing_offer(server);
	} else {
		server_enter(server, SERVER_CHECKING);
		server_ask(server, strcmp(query, "<empty>") == 0 ? "" : query);
	}
}

/* Waiters that no idle server could serve: tested ones will come back, used ones need a check. */
static void help_waiters(struct pool *pool)
{
	unsigned waiting = pool_wanted_servers(pool);
	const unsigned tested = pool->server_count[SERVERS_TESTED];
	struct link *link;

	if (waiting <= tested)
		return;
	waiting -= tested;
	while (waiting > 0 && (link = TAILQ_FIRST(&pool->servers[SERVERS_USED])) != NULL) {
		check(server_of(link));
		waiting--;
	}
	if (waiting > 0 && pool_wanted_servers(pool) > 0)
		launch_server(pool, false);
}

static void work(struct pool *pool)
{
	serve(pool);
	/* Also in a pause, which waits for queries that end sooner for it. */
	if (pool_waiting_cancels(pool) > 0 && launch_server(pool, false))
		return;
	if (pool_is_paused(pool))
		return;
	if (pool_welcoming_clients(pool) > 0) {
		welcome_waiting(pool);
		replication_launch(pool);
		if (welcome_is_wanted(pool))
			launch_server(pool, false);
	}
	help_waiters(pool);
}

void pairing_work(struct loop_task *task)
{
	struct registry *registry =
		(struct registry *)((char *)task - offsetof(struct registry, work_task));
	struct pool *pool;
	unsigned count = 0;

	if (registry->process->still)
		return; /* it is taken up again when things move */
	/* What the work itself sets off is for the next turn, or it might never end. */
	TAILQ_FOREACH (pool, &registry->work, in_work)
		count++;
	while (count-- > 0 && (pool = TAILQ_FIRST(&registry->work)) != NULL) {
		TAILQ_REMOVE(&registry->work, pool, in_work);
		pool->has_work = false;
		work(pool);
	}
}

void pairing_wake_database(struct database *database)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &database->pools, in_database) {
		if (pool_wanted_servers(pool) + pool_welcoming_clients(pool) > 0)
			pool_needs_work(pool);
	}
}
