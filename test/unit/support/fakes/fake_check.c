/* SPDX-License-Identifier: ISC */
/* The invariants that hold between any two events: see fake_check(). */
#include "model/statistics/client_group.h"
#include "session/notify/channels.h"
#include "session/notify/listening_server.h"
#include "session/pool/launch.h"
#include "session/pool/lookup.h"
#include "session/server/server_login_state.h"
#include "support/fakes/fake_pool.h"

/* Sums over all links, compared with the counters. */
struct sums {
	unsigned sockets, keys;
	unsigned groups[CLIENT_STATES]; /* clients that are in a group */
};

static void check_pause(const struct link *link, bool expected)
{
	/* A link that should be read and is paused would receive no more events. */
	if (link->stream.paused != expected)
		fail_msg("%s %llu in state %u is %s",
			link->kind == LINK_CLIENT ? "client" : "server",
			(unsigned long long)link->id, link->state,
			expected ? "read" : "not read");
}

/* --- clients ------------------------------------------------------------------------------ */

/* Does the client wait for a lookup that lists it? */
static bool is_looking_up(const struct client_link *client)
{
	const struct login *login = client->login;
	const struct asker *other;

	/* After the welcome the login's place in the union is used for other data. */
	if (client->link.state > CLIENT_WELCOMING || !login)
		return false;
	assert_ptr_equal(login->client, client);
	if (!login->asker.lookup)
		return login->remote != NULL;
	TAILQ_FOREACH (other, &login->asker.lookup->askers, in_lookup) {
		if (other == &login->asker)
			return true;
	}
	return false;
}

/*
 * A server is not read while its client is blocked. Exception: a client that was blocked before
 * it was paired, by the welcome or a notice, pauses its server with the first bytes that are
 * not written.
 */
static void check_pause_of_server(const struct link *server, const struct stream *client)
{
	enum { OF_OURS = 4096 };

	if (stream_is_blocked(client) && stream_backlog_length(client) < OF_OURS)
		return;
	check_pause(server, stream_is_blocked(client));
}

static void check_paired_client(const struct client_link *client)
{
	const struct server_link *server;

	assert_non_null(client->link.peer);
	assert_ptr_equal(client->link.peer->peer, &client->link);
	assert_ptr_equal(client->link.peer->pool, client->link.pool);
	assert_int_equal(client->link.peer->kind, LINK_SERVER);
	server = server_of(client->link.peer);
	assert_int_equal(server->link.state, SERVER_PAIRED);
	/* The client may be blocked by messages of our own, and so may the server. */
	if (!stream_is_blocked(&client->link.stream) && server->task != SERVER_TASK_RESTORE)
		check_pause(&client->link,
			stream_is_blocked(&server->link.stream) || server_is_syncing(server) ||
				client->ring_full || server->batch_progress == BATCH_FAILED);
	check_pause_of_server(&server->link, &client->link.stream);
}

/* It is read until it has sent a message. */
static void check_asked_client(const struct client_link *client)
{
	assert_ptr_equal(client->asking->asked_for, client);
	assert_int_equal(client->asking->link.state, SERVER_ASKING);
}

/* Its LISTEN, which it holds, waits for a channel that is not confirmed, or is to be judged again. */
static void check_listening_client(const struct client_link *client)
{
	const struct subscription *each;
	bool waits = client->listener && client->listener->resuming;

	check_pause(&client->link, true);
	assert_non_null(client->listener);
	TAILQ_FOREACH (each, &client->listener->subscriptions, in_listener)
		waits = waits || !each->confirmed;
	assert_true(waits);
}

static void check_client(const struct client_link *client, struct sums *tally)
{
	const enum client_state state = client_state(client);

	assert_int_equal(client->link.kind, LINK_CLIENT);
	assert_true(stream_is_open(&client->link.stream));
	tally->sockets++;
	if (state == CLIENT_PAIRED)
		check_paired_client(client);
	else
		assert_null(client->link.peer);
	if (state == CLIENT_IDLE && client->step == CLIENT_STEP_ASKED)
		check_asked_client(client);
	else if (state == CLIENT_IDLE && client->step == CLIENT_STEP_LISTENING)
		check_listening_client(client);
	else if (state == CLIENT_IDLE && !stream_is_blocked(&client->link.stream))
		check_pause(&client->link, false);
	if (client_is_waiting(client) || state == CLIENT_LOOKING_UP)
		check_pause(&client->link, true);
	assert_int_equal(client->replica != NULL, client->replication != REPLICATION_NONE);
	if (client->replica && client->replica->server)
		assert_ptr_equal(client->replica->server->launched_for, client);
	assert_true(state != CLIENT_WAITING || !client->replica);
	assert_true(state != CLIENT_LAUNCHING || client->replica);
	assert_int_equal(state == CLIENT_LOOKING_UP, is_looking_up(client));
	if (client->key_length > 0) {
		tally->keys++;
		assert_ptr_equal(cancel_keys_find(&fake_registry.process->cancel_keys,
					 client->key, client->key_length),
			client);
	}
	if (client->group)
		tally->groups[state]++;
	if (state == CLIENT_CANCEL_SENT && client->cancel)
		assert_ptr_equal(client->cancel->canceling, client);
}

static void check_clients(const struct pool *pool, const struct link_list *list,
	unsigned allowed, unsigned counts[CLIENT_STATES], struct sums *tally)
{
	struct link *link;

	TAILQ_FOREACH (link, list, place) {
		assert_ptr_equal(link->pool, pool);
		assert_true(allowed & 1u << link->state);
		counts[link->state]++;
		check_client(client_of(link), tally);
	}
}

static void check_groups(const struct pool *pool, const struct sums *tally)
{
	unsigned counts[CLIENT_STATES] = {0};

	for (const struct client_group *group = pool->groups; group; group = group->next) {
		unsigned members = 0;

		for (unsigned i = 0; i < CLIENT_STATES; i++) {
			counts[i] += group->clients[i];
			members += group->clients[i];
		}
		assert_int_equal(group->members, members);
		assert_true(members > 0);
	}
	assert_true(memcmp(counts, tally->groups, sizeof(counts)) == 0);
}

/* --- servers ------------------------------------------------------------------------------ */

static void check_cancels(const struct server_link *server)
{
	unsigned queued = 0, sent = 0;
	const struct link *link;

	TAILQ_FOREACH (link, &server->link.pool->cancels, place)
		queued += link->state == CLIENT_CANCEL_WAITING &&
			((const struct client_link *)link)->cancel == server;
	TAILQ_FOREACH (link, &server->link.pool->servers[SERVERS_ACTIVE_CANCEL], place)
		sent += ((const struct server_link *)link)->cancel_target == server;
	assert_int_equal(server->cancels_queued, queued);
	assert_int_equal(server->cancels, sent);
	assert_true(server->link.state != SERVER_HELD || sent > 0);
	assert_true(server->draining.cancel != DRAINING_CANCEL_DUE ||
		(server->link.state == SERVER_DRAINING && sent + queued == 0));
}

/* A server for replication is launched for one client, and is never used by another. */
static void check_replication(const struct server_link *server)
{
	const struct client_link *client = server->launched_for;

	if (!server->replication) {
		assert_null(client);
		return;
	}
	if (server->link.state == SERVER_PAIRED)
		client = (const struct client_link *)server->link.peer;
	else
		assert_true(server->link.state < SERVER_IDLE);
	assert_non_null(client);
	assert_int_equal(client->replication, server->replication);
	assert_ptr_equal(client->link.pool, server->link.pool);
	assert_true(server->link.state == SERVER_PAIRED || client->replica->server == server);
}

/* No server is free that may have what belongs to its last client. */
static void check_session_state(const struct server_link *server)
{
	const enum server_state state = server_state(server);

	if (server->asked_for) {
		assert_int_equal(state, SERVER_ASKING);
		assert_ptr_equal(server->asked_for->asking, server);
		assert_int_equal(server->asked_for->step, CLIENT_STEP_ASKED);
	}
	if (state != SERVER_IDLE && state != SERVER_STALE && state != SERVER_CHECKING &&
		state != SERVER_LOOKING_UP)
		return;
	assert_int_equal(server->suspected, 0);
	assert_int_equal(server->pins, 0);
	assert_false(server->changes_known);
}

static void check_server(const struct server_link *server)
{
	const enum server_state state = server_state(server);

	assert_int_equal(server->link.kind, LINK_SERVER);
	/* Only a server that waits for an address, or for a full queue, has no stream. */
	if (server->login && server->login->route.queue_full)
		assert_int_equal(state, SERVER_CONNECTING);
	else
		assert_int_equal(
			stream_is_open(&server->link.stream), server->where_length > 0);
	assert_true(server->where_length > 0 || state == SERVER_CONNECTING);
	assert_int_equal(server->login != NULL,
		state == SERVER_CONNECTING || state == SERVER_AUTHENTICATING ||
			state == SERVER_PREPARING || state == SERVER_CANCELING);
	if (state == SERVER_PAIRED) {
		assert_non_null(server->link.peer);
		assert_ptr_equal(server->link.peer->peer, &server->link);
	} else {
		assert_null(server->link.peer);
		if (state != SERVER_DRAINING)
			check_pause(&server->link, false);
		else if (server->link.stream.paused)
			assert_true(server->draining.cancel == DRAINING_CANCEL_DUE ||
				server->cancels + server->cancels_queued > 0);
	}
	if (state == SERVER_IDLE || state == SERVER_STALE || state == SERVER_HELD) {
		assert_true(requests_is_empty(&server->requests));
		assert_true(server->requests.capacity <= REQUESTS_INLINE);
		assert_false(server_is_syncing(server));
		assert_false(server->copy);
		assert_int_equal(server->transaction_status, 'I');
		assert_false(stream_is_blocked(&server->link.stream));
	}
	assert_int_equal(server->lookup != NULL, state == SERVER_LOOKING_UP);
	if (server->lookup) {
		assert_ptr_equal(server->lookup->server, server);
		assert_ptr_equal(server->lookup->pool, server->link.pool);
		assert_false(server->lookup->queued);
		assert_false(TAILQ_EMPTY(&server->lookup->askers));
	}
	if (state == SERVER_RESETTING || state == SERVER_CHECKING || state == SERVER_LOOKING_UP)
		assert_int_equal(server->requests.count, 1);
	check_cancels(server);
	check_replication(server);
	check_session_state(server);
}

/* Cancel requests of our own, for servers that are drained. */
static unsigned count_due(const struct pool *pool)
{
	const struct link *link;
	unsigned due = 0;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_BEING_CANCELED], place)
		due += ((const struct server_link *)link)->draining.cancel ==
			DRAINING_CANCEL_DUE;
	return due;
}

static unsigned check_servers(const struct pool *pool, enum server_list which)
{
	unsigned count = 0;
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[which], place) {
		assert_ptr_equal(link->pool, pool);
		assert_int_equal(server_list_of((enum server_state)link->state), which);
		check_server(server_of(link));
		count++;
	}
	return count;
}

/* Servers that stay with their clients are counted. */
/* The counts of channels, and where a server listens for the clients of the pool. */
static void check_channels(const struct pool *pool)
{
	const struct channel_hub *hub = pool->hub;
	unsigned subscriptions = 0, in_flight = 0, present = 0;
	const struct channel *channel;

	assert_int_equal(
		pool->server_count[SERVERS_LISTENING], hub && channels_has_server(hub));
	if (!hub)
		return;
	assert_true(!hub->server || hub->server->listens);
	for (channel = hub->channels; channel; channel = channel->by_name.next) {
		subscriptions += channel->subscribers;
		present += channel->state != CHANNEL_ABSENT;
		/* What is not as wanted is on its way, or noted. */
		if ((channel->subscribers > 0) != (channel->state == CHANNEL_PRESENT))
			assert_true(channel->is_due || channel->state == CHANNEL_ASKED ||
				channel->state == CHANNEL_LEAVING);
	}
	TAILQ_FOREACH (channel, &hub->asked, in_list)
		in_flight++;
	assert_int_equal(hub->subscriptions, subscriptions);
	assert_int_equal(hub->in_flight, in_flight);
	assert_true(hub->server || (present == 0 && in_flight == 0));
	if (hub->listeners == 0)
		assert_int_equal(subscriptions, 0);
}

static void check_pins(const struct pool *pool)
{
	unsigned pinned = 0;

	for (unsigned i = 0; i < SERVER_LISTS; i++) {
		const struct link *link;

		TAILQ_FOREACH (link, &pool->servers[i], place)
			pinned += ((const struct server_link *)link)->pins != 0;
	}
	assert_int_equal(pool->pinned, pinned);
}

/* No client waits while there is a usable idle server. */
static void check_waiters(const struct pool *pool)
{
	struct link *link;

	if (pool_is_paused(pool) || pool_wanted_servers(pool) == 0 || pool->has_work)
		return;
	TAILQ_FOREACH (link, &pool->servers[SERVERS_IDLE], place)
		assert_true(server_of(link)->dirty || server_of(link)->close_needed);
}

/* --- lookups ------------------------------------------------------------------------------ */

static unsigned count_askers(const struct lookup *lookup)
{
	const struct asker *asker;
	unsigned count = 0;

	TAILQ_FOREACH (asker, &lookup->askers, in_lookup)
		count++;
	assert_true(count > 0);
	return count;
}

static void check_lookups(const struct pool *pool)
{
	unsigned waiting = 0, running = 0, askers = 0;
	const struct lookup *lookup;
	const struct link *link;

	TAILQ_FOREACH (lookup, &pool->lookups, in_queue) {
		assert_true(lookup->queued);
		assert_null(lookup->server);
		waiting++;
		askers += count_askers(lookup);
	}
	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		lookup = ((const struct server_link *)link)->lookup;
		running += lookup != NULL;
		askers += lookup ? count_askers(lookup) : 0;
	}
	assert_int_equal(pool->lookups_waiting, waiting);
	assert_int_equal(pool->lookups_running, running);
	assert_int_equal(pool->looking_up, askers);
	assert_true(HASH_CNT(by_key, pool->lookups_by_key) <= waiting);
}

/* --- caps --------------------------------------------------------------------------------- */

/* Free servers are listed below each cap, but for those that min_pool_size keeps. */
static void check_listed(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const bool is_free =
		server->link.state == SERVER_IDLE || server->link.state == SERVER_STALE;

	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const unsigned bit = 1u << kind;

		if (!is_free || !(pool->caps & bit))
			assert_false(server->in_caps & bit);
		else if (!(server->in_caps & bit))
			assert_true(cap_keeps_all(pool, kind));
	}
}

/* The longest time for which a place is kept: that of session/pool/caps. */
#define LONGEST_PROMISE (5 * USEC_PER_SEC)

/* May this server be closed for any other pool? The time is that of model: session/pool/caps. */
static bool is_unused_below(const struct server_link *server, enum cap_kind kind)
{
	return (server->in_caps & (1u << kind)) && !cap_keeps_all(server->link.pool, kind) &&
		(server->link.state == SERVER_IDLE ||
			pool_wanted_servers(server->link.pool) == 0) &&
		loop_now(server->link.pool->registry->loop) - server->free_since >
		USEC_PER_SEC / 100;
}

static bool is_full(const struct pool *pool)
{
	const int size = pool_size(pool);

	return size > 0 && pool_servers(pool) >= (unsigned)size;
}

/* A worker may be about to learn that a place below a cap is free, or wanted. */
static bool are_caps_due(void)
{
	const struct registry *each;

	EACH_REGISTRY (each, &fake_process) {
		if (!TAILQ_EMPTY(&each->caps_due) || mailbox_has_new(&each->loop->mailbox))
			return true;
	}
	return false;
}

/* Do both count the same servers? */
static bool are_one(const struct cap *a, const struct cap *b)
{
	return a == b || (a->share && b->share && a->share->tally == b->share->tally);
}

static bool has_any_work(void)
{
	const struct registry *each;

	EACH_REGISTRY (each, &fake_process) {
		if (!TAILQ_EMPTY(&each->work))
			return true;
	}
	return false;
}

/* No place is free, and no server is unused, while a pool waits for the cap. */
static void check_queue(const struct pool *waiting)
{
	const enum cap_kind kind = waiting->wait.cap->kind;
	const struct pool *pool;
	const struct link *link;

	assert_true(waiting->caps & (1u << kind));
	assert_ptr_equal(waiting->wait.cap, cap_of(waiting, kind));
	if (has_any_work() || are_caps_due() ||
		pool_wanted_servers(waiting) + pool_welcoming_clients(waiting) == 0 ||
		pool_is_paused(waiting) || launch_must_pause(waiting) || is_full(waiting))
		return;
	assert_true(cap_is_full(waiting, kind));
	/* Beyond the limit, by connections for cancel requests, one server less is no help. */
	if (cap_servers(waiting->wait.cap) > cap_limit(waiting, kind))
		return;
	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		if (pool == waiting || !are_one(cap_of(pool, kind), waiting->wait.cap))
			continue;
		TAILQ_FOREACH (link, &pool->servers[SERVERS_IDLE], place)
			assert_false(is_unused_below((const struct server_link *)link, kind));
		TAILQ_FOREACH (link, &pool->servers[SERVERS_USED], place)
			assert_false(is_unused_below((const struct server_link *)link, kind));
	}
}

/*
 * A pool with clients that wait, and without a reason of its own to launch no server, is in the
 * queue of a cap that has no place.
 */
static void check_turn(const struct pool *pool)
{
	if (pool->caps == 0 || pool->has_work || are_caps_due() ||
		pool->client_count[CLIENT_WAITING] == 0 || pool_is_paused(pool) ||
		pool->failing || pool->left_behind ||
		pool->server_count[SERVERS_LOGIN] + pool->server_count[SERVERS_TESTED] +
				pool->server_count[SERVERS_USED] >
			0 ||
		is_full(pool) || fake_registry.process->operation == OPERATION_SUSPENDED ||
		fake_registry.process->still || fake_registry.process->draining)
		return;
	assert_non_null(pool->wait.cap);
}

/* A place is kept for a pool that still needs it, has no server, and waits for another cap. */
static void check_promise(const struct pool *pool)
{
	const struct cap *cap = pool->wait.promised;
	const bool is_in_need = !pool_is_paused(pool) &&
		(pool_wanted_servers(pool) + pool_welcoming_clients(pool) > 0 ||
			listening_server_is_wanted(pool));

	if (!cap)
		return;
	assert_ptr_equal(cap->promised_to, pool);
	assert_ptr_equal(cap, cap_of(pool, cap->kind));
	assert_true(pool->caps & (1u << cap->kind));
	assert_non_null(pool->wait.cap);
	assert_ptr_not_equal(pool->wait.cap, cap);
	assert_int_equal(pool->places, 0);
	assert_true(cap->promise.due > 0);
	assert_true(cap->promise.due <= loop_now(pool->registry->loop) + LONGEST_PROMISE);
	/* If no pool waits for the place, the promise may end later. */
	assert_true(is_in_need || cap->is_due || RB_EMPTY(&cap->waiting));
}

static void check_promises_of(const struct cap *cap)
{
	if (cap->promised_to)
		assert_ptr_equal(cap->promised_to->wait.promised, cap);
	else
		assert_int_equal(cap->promise.due, 0);
}

static void check_caps(const struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL)
		check_listed(server_of(link));
	if (pool->wait.cap)
		check_queue(pool);
	check_turn(pool);
	check_promise(pool);
	for (enum cap_kind kind = 0; kind < CAPS; kind++)
		check_promises_of(cap_of(pool, kind));
}

/* --- pools -------------------------------------------------------------------------------- */

#define BIT(state) (1u << CLIENT_##state)

static void check_pool(const struct pool *pool, struct sums *all)
{
	unsigned counts[CLIENT_STATES] = {0};
	struct sums tally = {0};
	const struct pool *other;
	bool has_work = false;

	check_clients(
		pool, &pool->clients, BIT(IDLE) | BIT(PAIRED) | BIT(CONSOLE), counts, &tally);
	check_clients(pool, &pool->waiting, BIT(WAITING), counts, &tally);
	check_clients(pool, &pool->welcoming, BIT(WELCOMING) | BIT(LAUNCHING), counts, &tally);
	check_clients(
		pool, &pool->cancels, BIT(CANCEL_WAITING) | BIT(CANCEL_SENT), counts, &tally);
	assert_true(memcmp(pool->client_count, counts, sizeof(counts)) == 0);
	for (unsigned i = 0; i < SERVER_LISTS; i++)
		assert_int_equal(
			pool->server_count[i], check_servers(pool, (enum server_list)i));
	assert_int_equal(pool->cancels_due, count_due(pool));
	check_groups(pool, &tally);
	check_pins(pool);
	check_channels(pool);
	check_waiters(pool);
	check_caps(pool);
	check_lookups(pool);
	TAILQ_FOREACH (other, &pool->registry->work, in_work)
		has_work = has_work || other == pool;
	assert_int_equal(pool->has_work, has_work);
	all->sockets += tally.sockets;
	all->keys += tally.keys;
}

static unsigned servers_of(const struct database *database, const struct user *user)
{
	const struct pool *pool;
	unsigned count = 0;

	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		if ((!database || pool->database == database) && (!user || pool->user == user))
			count += pool_servers(pool) + pool->server_count[SERVERS_LISTENING] +
				pool->server_count[SERVERS_WATCHING] + pool->watch_logins;
	}
	return count;
}

static void check_logins(const struct registry *registry, struct sums *all)
{
	struct link *link;
	unsigned logins = 0;

	TAILQ_FOREACH (link, &registry->logins, place) {
		assert_true(link->state <= CLIENT_LOOKING_UP);
		check_client(client_of(link), all);
		logins++;
	}
	assert_int_equal(registry->login_count, logins);
}

static void check_users(const struct registry *registry)
{
	const struct user *user, *next;

	HASH_ITER (by_name, registry->users, user, next)
		assert_int_equal(user->cap.servers, servers_of(NULL, user));
}

/* Clients that are in the mail have a socket too. */
static unsigned count_mail(void)
{
	struct endpoint *endpoint = NULL;
	unsigned count = 0;

	while ((endpoint = fake_next_endpoint(endpoint)) != NULL)
		count += fake_is_in_mail(endpoint);
	return count;
}

void fake_check(void)
{
	const struct database *database, *next_database;
	struct sums tally = {0};
	const struct registry *each;
	const struct pool *pool;
	unsigned pools = 0;

	EACH_REGISTRY (each, &fake_process)
		check_logins(each, &tally);
	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		check_pool(pool, &tally);
		pools++;
	}
	assert_int_equal(fake_process.directory.pool_count, pools);
	assert_int_equal(fake_process.limits.clients, tally.sockets + count_mail());
	assert_int_equal(fake_process.cancel_keys.used, tally.keys);
	HASH_ITER (by_name, fake_process.directory.databases, database, next_database)
		assert_int_equal(database->cap.servers, servers_of(database, NULL));
	EACH_REGISTRY (each, &fake_process)
		check_users(each);
	assert_int_equal(process_servers(&fake_process), servers_of(NULL, NULL));
}
