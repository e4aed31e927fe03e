/* SPDX-License-Identifier: ISC */
#include "model/client_link.h"

#include "base/check.h"
#include "model/pool.h"
#include "model/registry.h"
#include "model/statistics/client_group.h"

#define MAY(state) (1u << CLIENT_##state)

/*
 * A row for each state: its name, its words in SHOW CLIENTS and SOCKETS, allowed next states.
 */
static const struct {
	const char *name, *console, *socket;
	unsigned may;
} phases[CLIENT_STATES] = {
	[CLIENT_GREETING] = {"greeting", "login", "cl_login",
		MAY(AUTHENTICATING) | MAY(CANCEL_WAITING) | MAY(CLOSED)},
	[CLIENT_AUTHENTICATING] = {"authenticating", "login", "cl_login",
		MAY(LOOKING_UP) | MAY(WELCOMING) | MAY(IDLE) | MAY(CONSOLE) | MAY(CLOSED)},
	[CLIENT_LOOKING_UP] = {"looking up", "waiting", "cl_waiting",
		MAY(AUTHENTICATING) | MAY(CLOSED)},
	[CLIENT_WELCOMING] = {"welcoming", "waiting", "cl_waiting",
		MAY(LOOKING_UP) | MAY(IDLE) | MAY(CLOSED)},
	[CLIENT_IDLE] = {"idle", "idle", "cl_active",
		MAY(PAIRED) | MAY(WAITING) | MAY(LAUNCHING) | MAY(CLOSED)},
	[CLIENT_WAITING] = {"waiting", "waiting", "cl_waiting",
		MAY(PAIRED) | MAY(IDLE) | MAY(CLOSED)},
	[CLIENT_LAUNCHING] = {"launching", "waiting", "cl_waiting",
		MAY(PAIRED) | MAY(IDLE) | MAY(CLOSED)},
	[CLIENT_PAIRED] = {"paired", "active", "cl_active", MAY(IDLE) | MAY(CLOSED)},
	[CLIENT_CANCEL_WAITING] = {"cancel waiting", "waiting_cancel_req", "cl_waiting",
		MAY(CANCEL_SENT) | MAY(CLOSED)},
	[CLIENT_CANCEL_SENT] = {"cancel sent", "active_cancel_req", "cl_active", MAY(CLOSED)},
	[CLIENT_CONSOLE] = {"console", "idle", "cl_active", MAY(CLOSED)},
	[CLIENT_CLOSED] = {"closed", "closed", "cl_closed", 0},
};

const char *client_console_state(const struct client_link *client)
{
	return phases[client->link.state].console;
}

const char *client_socket_state(const struct client_link *client)
{
	return phases[client->link.state].socket;
}

const char *client_state_name(enum client_state state)
{
	return phases[state].name;
}

bool client_may(enum client_state from, enum client_state to)
{
	return phases[from].may & (1u << to);
}

/* Returns the list for clients in this state; NULL for CLOSED. */
static struct link_list *place_of(const struct client_link *client, enum client_state state)
{
	struct pool *pool = client->link.pool;

	switch (state) {
	case CLIENT_GREETING:
	case CLIENT_AUTHENTICATING:
	case CLIENT_LOOKING_UP:
		return &link_registry(&client->link)->logins;
	case CLIENT_WELCOMING:
	case CLIENT_LAUNCHING:
		return &pool->welcoming;
	case CLIENT_WAITING:
		return &pool->waiting;
	case CLIENT_IDLE:
	case CLIENT_PAIRED:
	case CLIENT_CONSOLE:
		return &pool->clients;
	case CLIENT_CANCEL_WAITING:
	case CLIENT_CANCEL_SENT:
		return &pool->cancels;
	case CLIENT_CLOSED:
	case CLIENT_STATES:
		break;
	}
	return NULL;
}

/* Logins have no pool yet and are counted in login_count; closed clients are not counted. */
static bool is_counted_in_pool(enum client_state state)
{
	return state >= CLIENT_WELCOMING && state < CLIENT_CLOSED;
}

/* Update the counts of the pool, the group and the logins. */
static void count(struct client_link *client, enum client_state from, enum client_state to)
{
	struct registry *registry = link_registry(&client->link);

	if (is_counted_in_pool(from)) {
		client->link.pool->client_count[from]--;
		pool_need_has_changed(client->link.pool);
		if (client->group)
			client->group->clients[from]--;
	} else {
		registry->login_count--;
	}
	if (is_counted_in_pool(to)) {
		client->link.pool->client_count[to]++;
		if (client->group)
			client->group->clients[to]++;
	} else if (to != CLIENT_CLOSED) {
		registry->login_count++;
	}
}

/* As count(), for two states that are both counted in the pool. */
static inline void count_step(
	struct client_link *client, enum client_state from, enum client_state to)
{
	client->link.pool->client_count[from]--;
	client->link.pool->client_count[to]++;
	if (!client->group)
		return;
	client->group->clients[from]--;
	client->group->clients[to]++;
}

static const struct link_rules *rules_of(const struct client_link *client)
{
	return link_registry(&client->link)->rules;
}

/* The step counts first, then the state, and of a PAIRED client the pool. */
static void set_rules(struct client_link *client)
{
	const struct link_rules *rules = rules_of(client);
	const enum client_state state = client_state(client);

	if (client->step)
		client->link.rules = rules->client_steps[client->step];
	else if (state == CLIENT_PAIRED)
		client->link.rules = rules->client_paired[client_pairing(client)];
	else
		client->link.rules = rules->client_states[state];
}

void client_set_step(struct client_link *client, enum client_step step)
{
	client->step = step;
	set_rules(client);
}

void client_renew_rules(struct client_link *client)
{
	set_rules(client);
}

/* A function of its own: the transitions of each transaction need not save registers for it. */
static __attribute__((noinline)) void enter_other(
	struct client_link *client, enum client_state from, enum client_state state)
{
	struct link_list *old, *new;

	set_rules(client);
	count(client, from, state);
	old = place_of(client, from);
	new = place_of(client, state);
	if (old == new)
		return;
	TAILQ_REMOVE(old, &client->link, place);
	if (new)
		TAILQ_INSERT_TAIL(new, &client->link, place);
}

void client_enter(struct client_link *client, enum client_state state)
{
	const enum client_state from = client_state(client);

	OWN_LOOP(client->link.stream.loop);
	CHECK(client_may(from, state));
	client->link.state = (uint8_t)state;
	client->step = CLIENT_STEP_NONE;
	/* The two transitions of each transaction do not change the list. */
	if (from == CLIENT_IDLE && state == CLIENT_PAIRED) {
		client->link.rules = rules_of(client)->client_paired[client_pairing(client)];
		count_step(client, from, state);
		return;
	}
	if (from == CLIENT_PAIRED && state == CLIENT_IDLE) {
		client->link.rules = rules_of(client)->client_states[CLIENT_IDLE];
		count_step(client, from, state);
		return;
	}
	enter_other(client, from, state);
}

void client_place(struct client_link *client, enum client_state state)
{
	client->link.state = (uint8_t)state;
	set_rules(client);
	if (is_counted_in_pool(state))
		client->link.pool->client_count[state]++;
	else
		link_registry(&client->link)->login_count++;
	TAILQ_INSERT_TAIL(place_of(client, state), &client->link, place);
}

void client_move(struct client_link *client, struct pool *pool)
{
	const enum client_state state = client_state(client);
	const bool is_grouped = client->group != NULL;

	CHECK(state == CLIENT_IDLE || client_is_waiting(client));
	TAILQ_REMOVE(place_of(client, state), &client->link, place);
	client->link.pool->client_count[state]--;
	pool_need_has_changed(client->link.pool);
	client_group_leave(client);
	client->link.pool = pool;
	pool->client_count[state]++;
	TAILQ_INSERT_TAIL(place_of(client, state), &client->link, place);
	if (is_grouped)
		client_group_join(client);
}
