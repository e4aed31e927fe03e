/* SPDX-License-Identifier: ISC */
#include "admin/show/link_order.h"

#include "model/peer.h"

/* --- whole lists -------------------------------------------------------------------------- */

static void list_link(struct show_stream *show, struct link *link)
{
	show_stream_add_object(show, &link->handle, link, 0);
}

static void list_links(struct show_stream *show, const struct link_list *list)
{
	struct link *link;

	TAILQ_FOREACH (link, list, place)
		list_link(show, link);
}

static void list_clients_in_state(
	struct show_stream *show, const struct link_list *list, enum client_state state)
{
	struct link *link;

	TAILQ_FOREACH (link, list, place) {
		if (link->state == state)
			list_link(show, link);
	}
}

static void list_cancels(struct show_stream *show, const struct pool *pool)
{
	list_clients_in_state(show, &pool->cancels, CLIENT_CANCEL_SENT);
	list_clients_in_state(show, &pool->cancels, CLIENT_CANCEL_WAITING);
}

static void list_waiting(struct show_stream *show, const struct pool *pool)
{
	list_links(show, &pool->waiting);
	list_links(show, &pool->welcoming);
}

/* Lists of servers in the order of their rows; SHOW SOCKETS has none that are about cancels. */
#define SOCKET_LISTS                                                                           \
	SERVERS_ACTIVE, SERVERS_LISTENING, SERVERS_IDLE, SERVERS_USED, SERVERS_TESTED,         \
		SERVERS_WATCHING, SERVERS_LOGIN

static const enum server_list socket_lists[] = {SOCKET_LISTS};
static const enum server_list server_lists[] = {
	SOCKET_LISTS, SERVERS_ACTIVE_CANCEL, SERVERS_BEING_CANCELED};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void list_servers_of(struct show_stream *show, const struct pool *pool,
	const enum server_list *lists, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list_links(show, &pool->servers[lists[i]]);
}

/* --- places ------------------------------------------------------------------------------- */

enum { NO_POOL = 0xfffffe, PEERS_POOL };

/* The order of a link's pool, and within it that of the link's list. */
static uint32_t place(const struct link *link, unsigned list)
{
	const struct pool *pool = link->pool;
	const unsigned last = NO_POOL - 1;
	unsigned order = NO_POOL;

	if (pool && pool->database->peer_id)
		order = PEERS_POOL;
	else if (pool)
		order = pool->order < last ? pool->order : last;
	return order << 8 | list;
}

/*
 * The lists of a pool in the order in which the functions above and below list them. NO_LIST:
 * the link is in none of them.
 */
enum { NO_LIST, CLIENTS, WAITING, WELCOMING, CANCELS_SENT, CANCELS_WAITING, LOGINS, SERVERS };

static unsigned client_list(const struct client_link *client)
{
	switch (client_state(client)) {
	case CLIENT_IDLE:
	case CLIENT_PAIRED:
	case CLIENT_CONSOLE:
		return CLIENTS;
	case CLIENT_WAITING:
		return WAITING;
	case CLIENT_WELCOMING:
	case CLIENT_LAUNCHING:
		return WELCOMING;
	case CLIENT_CANCEL_SENT:
		return CANCELS_SENT;
	case CLIENT_CANCEL_WAITING:
		return CANCELS_WAITING;
	case CLIENT_GREETING:
	case CLIENT_AUTHENTICATING:
	case CLIENT_LOOKING_UP:
		return LOGINS;
	case CLIENT_CLOSED:
	case CLIENT_STATES:
		break;
	}
	return NO_LIST;
}

static unsigned server_list(
	const struct server_link *server, const enum server_list *lists, size_t count)
{
	const enum server_list list = server_list_of(server_state(server));

	for (size_t i = 0; i < count; i++) {
		if (lists[i] == list)
			return SERVERS + (unsigned)i;
	}
	return NO_LIST;
}

/* --- CLIENTS ------------------------------------------------------------------------------ */

void link_order_list_clients(struct show_stream *show)
{
	const struct registry *registry = show->registry, *each;
	const struct pool *pool;
	const struct peer *peer;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		list_links(show, &pool->clients);
		list_waiting(show, pool);
		list_cancels(show, pool);
	}
	/* While their user is looked up they wait in a pool without belonging to it. */
	EACH_REGISTRY (each, registry->process)
		list_clients_in_state(show, &each->logins, CLIENT_LOOKING_UP);
	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		list_cancels(show, peer->pool);
}

uint32_t link_order_place_client(const struct link *link)
{
	unsigned list = NO_LIST;

	if (link->kind == LINK_CLIENT)
		list = client_list((const struct client_link *)link);
	if (list == LOGINS)
		return link->state == CLIENT_LOOKING_UP ? NO_POOL << 8 | LOGINS : 0;
	return list == NO_LIST ? 0 : place(link, list);
}

/* --- SERVERS ------------------------------------------------------------------------------ */

void link_order_list_servers(struct show_stream *show)
{
	const struct registry *registry = show->registry;
	const struct pool *pool;
	const struct peer *peer;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		list_servers_of(show, pool, server_lists, COUNT_OF(server_lists));
	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		list_servers_of(show, peer->pool, server_lists, COUNT_OF(server_lists));
}

uint32_t link_order_place_server(const struct link *link)
{
	unsigned list = NO_LIST;

	if (link->kind == LINK_SERVER)
		list = server_list(
			(const struct server_link *)link, server_lists, COUNT_OF(server_lists));
	return list == NO_LIST ? 0 : place(link, list);
}

/* --- SOCKETS ------------------------------------------------------------------------------ */

void link_order_list_sockets(struct show_stream *show)
{
	const struct registry *registry = show->registry, *each;
	const struct pool *pool;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		list_links(show, &pool->clients);
		list_waiting(show, pool);
		list_servers_of(show, pool, socket_lists, COUNT_OF(socket_lists));
	}
	EACH_REGISTRY (each, registry->process)
		list_links(show, &each->logins);
}

uint32_t link_order_place_socket(const struct link *link)
{
	const unsigned list = link->kind == LINK_CLIENT
		? client_list((const struct client_link *)link)
		: server_list((const struct server_link *)link, socket_lists,
			  COUNT_OF(socket_lists));

	if (list == LOGINS)
		return NO_POOL << 8 | LOGINS;
	if (list == NO_LIST || list == CANCELS_SENT || list == CANCELS_WAITING ||
		(link->pool && link->pool->database->peer_id))
		return 0;
	return place(link, list);
}
