/* SPDX-License-Identifier: ISC */
#include "session/serving/drain.h"

#include "model/registry.h"
#include "session/link/close.h"
#include "session/pool/return_to_pool.h"

/* --- one client --------------------------------------------------------------------------- */

/* Has the server answered everything, and no transaction in progress? */
static bool is_server_at_rest(const struct server_link *server)
{
	return server->transaction_status == 'I' && requests_is_empty(&server->requests) &&
		server->link.remaining == 0 && server->copy == COPY_NONE;
}

/* Is the client between two transactions, and has it sent nothing of the next one? */
static bool is_at_rest(const struct client_link *client)
{
	const struct link *link = &client->link;

	if (link->held_length > 0 || link->remaining > 0 || stream_is_blocked(&link->stream) ||
		client->step == CLIENT_STEP_ENDING || client->step == CLIENT_STEP_SKIPPING ||
		client->step == CLIENT_STEP_LISTENING)
		return false;
	if (link->state == CLIENT_PAIRED &&
		!is_server_at_rest((const struct server_link *)link->peer))
		return false;
	return (link->state == CLIENT_IDLE || link->state == CLIENT_PAIRED) &&
		!stream_has_unread(&link->stream);
}

static void close_if_at_rest(struct client_link *client)
{
	if (is_at_rest(client))
		client_close_for(client, REASON_DRAINED);
}

void drain_server_answered(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);

	return_if_free(server);
	if (client->leaving)
		close_if_at_rest(client);
}

usec_t drain_delay_of(const struct settings *settings)
{
	const usec_t most = settings->shutdown_timeout / 2;

	return most > 0 && settings->drain_delay > most ? most : settings->drain_delay;
}

/* --- all of them -------------------------------------------------------------------------- */

void drain_begin(struct drain *drain, struct registry *registry)
{
	struct registry *each;

	if (drain->registry)
		return;
	drain->registry = registry;
	drain->advanced = loop_now(registry->loop);
	link_walk_begin(&drain->walk, registry->process);
	EACH_REGISTRY (each, registry->process)
		each->relay_events = each->drain_events;
}

void drain_end(struct drain *drain)
{
	if (!drain->registry)
		return;
	link_walk_end(&drain->walk);
	drain->registry = NULL;
}

/* Clients of the console stay as long as others do: they may watch these. */
static bool has_to_leave(const struct link *link)
{
	return link->kind == LINK_CLIENT && link->state != CLIENT_CONSOLE &&
		client_is_logged_in((const struct client_link *)link);
}

/* Returns how many clients there are whose turn comes. */
static unsigned count_clients(const struct registry *registry)
{
	const struct limits *limits = &registry->process->limits;

	return limits->clients - limits->consoles;
}

/* The next client; after the last one the first one, but once in a call of drain_advance(). */
static struct client_link *next_client(struct drain *drain, bool *begun_again)
{
	struct link *link;

	for (;;) {
		while ((link = link_walk_next(&drain->walk)) != NULL) {
			if (has_to_leave(link))
				return client_of(link);
		}
		if (*begun_again)
			return NULL;
		*begun_again = true;
		link_walk_end(&drain->walk);
		link_walk_begin(&drain->walk, drain->registry->process);
	}
}

void drain_advance(struct drain *drain, usec_t left)
{
	const usec_t now = loop_now(drain->registry->loop);
	const usec_t passed = now - drain->advanced;
	const uint64_t clients = count_clients(drain->registry);
	uint64_t due =
		left > 0 ? clients * (uint64_t)passed / (uint64_t)(left + passed) : clients;
	struct client_link *client;
	bool begun_again = false;

	if (due == 0)
		return; /* the next call looks at more time */
	drain->advanced = now;
	while (due-- > 0 && (client = next_client(drain, &begun_again)) != NULL) {
		client->leaving = true;
		close_if_at_rest(client);
	}
}
