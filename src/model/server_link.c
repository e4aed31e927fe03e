/* SPDX-License-Identifier: ISC */
#include "model/server_link.h"

#include "base/check.h"
#include "model/pool.h"
#include "model/registry.h"

#define MAY(state) (1u << SERVER_##state)

/* A row for each state: name, words in SHOW SERVERS and SOCKETS, list, allowed next states. */
static const struct {
	const char *name, *console, *socket;
	enum server_list list;
	unsigned may;
} phases[SERVER_STATES] = {
	[SERVER_CONNECTING] = {"connecting", "new", "sv_login", SERVERS_LOGIN,
		MAY(AUTHENTICATING) | MAY(CANCELING) | MAY(CLOSED)},
	[SERVER_AUTHENTICATING] = {"authenticating", "new", "sv_login", SERVERS_LOGIN,
		MAY(CONNECTING) | MAY(PREPARING) | MAY(IDLE) | MAY(LISTENING) | MAY(WATCHING) |
			MAY(CLOSED)},
	[SERVER_PREPARING] = {"preparing", "new", "sv_login", SERVERS_LOGIN,
		MAY(CONNECTING) | MAY(IDLE) | MAY(LISTENING) | MAY(CLOSED)},
	[SERVER_IDLE] = {"idle", "idle", "sv_idle", SERVERS_IDLE,
		MAY(PAIRED) | MAY(LOOKING_UP) | MAY(STALE) | MAY(ASKING) | MAY(CLOSED)},
	[SERVER_PAIRED] = {"paired", "active", "sv_active", SERVERS_ACTIVE,
		MAY(IDLE) | MAY(DRAINING) | MAY(HELD) | MAY(RESETTING) | MAY(STALE) |
			MAY(ASKING) | MAY(CLOSED)},
	[SERVER_LOOKING_UP] = {"looking up", "active", "sv_active", SERVERS_ACTIVE,
		MAY(IDLE) | MAY(RESETTING) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_DRAINING] = {"draining", "being_canceled", "sv_active", SERVERS_BEING_CANCELED,
		MAY(IDLE) | MAY(RESETTING) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_HELD] = {"held", "being_canceled", "sv_active", SERVERS_BEING_CANCELED,
		MAY(IDLE) | MAY(RESETTING) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_RESETTING] = {"resetting", "tested", "sv_tested", SERVERS_TESTED,
		MAY(IDLE) | MAY(STALE) | MAY(CLOSED)},
	[SERVER_STALE] = {"stale", "used", "sv_used", SERVERS_USED,
		MAY(CHECKING) | MAY(IDLE) | MAY(CLOSED)},
	[SERVER_CHECKING] = {"checking", "tested", "sv_tested", SERVERS_TESTED,
		MAY(IDLE) | MAY(CLOSED)},
	[SERVER_CANCELING] = {"canceling", "active_cancel", "sv_active", SERVERS_ACTIVE_CANCEL,
		MAY(CLOSED)},
	[SERVER_ASKING] = {"asking", "active", "sv_active", SERVERS_ACTIVE,
		MAY(PAIRED) | MAY(IDLE) | MAY(STALE) | MAY(HELD) | MAY(RESETTING) |
			MAY(CLOSED)},
	[SERVER_LISTENING] = {"listening", "active", "sv_active", SERVERS_LISTENING,
		MAY(CLOSED)},
	[SERVER_WATCHING] = {"watching", "tested", "sv_tested", SERVERS_WATCHING, MAY(CLOSED)},
	[SERVER_CLOSED] = {"closed", "closed", "sv_closed", SERVERS_NOWHERE, 0},
};

const char *server_console_state(const struct server_link *server)
{
	return phases[server->link.state].console;
}

const char *server_socket_state(const struct server_link *server)
{
	return phases[server->link.state].socket;
}

const char *server_state_name(enum server_state state)
{
	return phases[state].name;
}

enum server_list server_list_of(enum server_state state)
{
	return phases[state].list;
}

bool server_may(enum server_state from, enum server_state to)
{
	return phases[from].may & (1u << to);
}

/* The task counts first, then the state. */
static void set_rules(struct server_link *server)
{
	const struct link_rules *rules = server->link.pool->registry->rules;
	const struct relay_rule *of_task = rules->server_tasks[server->task];

	server->link.rules = of_task ? of_task : rules->server_states[server->link.state];
}

void server_set_task(struct server_link *server, enum server_task task)
{
	server->task = task;
	set_rules(server);
}

void server_renew_rules(struct server_link *server)
{
	set_rules(server);
}

/* A task ends with its state, but for SETs of a server that is drained now. */
static __attribute__((noinline)) void enter_with_task(
	struct server_link *server, enum server_state state)
{
	server_set_task(server,
		state == SERVER_DRAINING && server_is_syncing(server)
			? (enum server_task)server->task
			: SERVER_TASK_NONE);
}

/* The servers of these lists may be closed to make places below a cap. */
static bool is_free_list(enum server_list list)
{
	return list == SERVERS_IDLE || list == SERVERS_USED;
}

static inline void change_list(
	struct server_link *server, enum server_list old, enum server_list new, bool last)
{
	struct pool *pool = server->link.pool;

	TAILQ_REMOVE(&pool->servers[old], &server->link, place);
	pool->server_count[old]--;
	if (new == SERVERS_NOWHERE)
		return;
	pool->server_count[new]++;
	if (last)
		TAILQ_INSERT_TAIL(&pool->servers[new], &server->link, place);
	else
		TAILQ_INSERT_HEAD(&pool->servers[new], &server->link, place);
}

/* A function of its own, so that pools without caps need not save registers for its calls. */
static __attribute__((noinline)) void change_list_in_caps(
	struct server_link *server, enum server_list old, enum server_list new, bool last)
{
	if (is_free_list(new))
		cap_server_is_free(server);
	else
		cap_server_is_used(server);
	change_list(server, old, new, last);
}

static void enter(struct server_link *server, enum server_state state, bool last)
{
	struct pool *pool = server->link.pool;
	const enum server_list old = phases[server->link.state].list;
	const enum server_list new = phases[state].list;

	OWN_LOOP(pool->registry->loop);
	CHECK(server_may(server_state(server), state));
	server->link.state = (uint8_t)state;
	if (server->task != SERVER_TASK_NONE)
		enter_with_task(server, state);
	else
		server->link.rules = pool->registry->rules->server_states[state];
	if (old == new)
		return;
	if (pool->caps != 0)
		change_list_in_caps(server, old, new, last);
	else
		change_list(server, old, new, last);
}

void server_enter(struct server_link *server, enum server_state state)
{
	enter(server, state, false);
}

void server_enter_last(struct server_link *server, enum server_state state)
{
	enter(server, state, true);
}

void server_retire(struct server_link *server, enum server_closing cause)
{
	if (server->close_needed)
		return;
	server->close_needed = true;
	server->close_cause = cause;
}

void server_place(struct server_link *server, enum server_state state)
{
	const enum server_list list = phases[state].list;

	server->link.state = (uint8_t)state;
	server->link.pool->server_count[list]++;
	TAILQ_INSERT_TAIL(&server->link.pool->servers[list], &server->link, place);
	if (is_free_list(list))
		cap_server_is_free(server);
	set_rules(server);
}

bool server_is_clean(const struct server_link *server)
{
	return server->transaction_status == 'I' && requests_is_empty(&server->requests) &&
		!server->copy && !server_is_syncing(server) && !server->dirty &&
		server->link.held_length == 0 && server->link.remaining == 0 &&
		!stream_is_blocked(&server->link.stream);
}
