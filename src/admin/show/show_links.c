/* SPDX-License-Identifier: ISC */
/* SHOW CLIENTS, SERVERS, SOCKETS and ACTIVE_SOCKETS: one row per connection. */
#include <stdio.h>
#include <string.h>

#include "admin/console/topics.h"
#include "model/client_statements.h"
#include "model/peer.h"
#include "net/tls.h"

/* The first 21 are all that SHOW CLIENTS and SERVERS have; the rest are places in buffers. */
static const struct column columns[] = {
	{"type", COLUMN_TEXT},
	{"user", COLUMN_TEXT},
	{"database", COLUMN_TEXT},
	{"replication", COLUMN_TEXT},
	{"state", COLUMN_TEXT},
	{"addr", COLUMN_TEXT},
	{"port", COLUMN_INT4},
	{"local_addr", COLUMN_TEXT},
	{"local_port", COLUMN_INT4},
	{"connect_time", COLUMN_TIME},
	{"request_time", COLUMN_TIME},
	{"wait", COLUMN_INT4},
	{"wait_us", COLUMN_INT4},
	{"close_needed", COLUMN_INT4},
	{"ptr", COLUMN_TEXT},
	{"link", COLUMN_TEXT},
	{"remote_pid", COLUMN_INT4},
	{"tls", COLUMN_TEXT},
	{"application_name", COLUMN_TEXT},
	{"prepared_statements", COLUMN_INT4},
	{"id", COLUMN_INT4},
	{"recv_pos", COLUMN_INT4},
	{"pkt_pos", COLUMN_INT4},
	{"pkt_remain", COLUMN_INT4},
	{"send_pos", COLUMN_INT4},
	{"send_remain", COLUMN_INT4},
	{"pkt_avail", COLUMN_INT4},
	{"send_avail", COLUMN_INT4},
};

enum { LINK_COLUMNS = 21 };

/* What all rows of one answer share. */
struct listing {
	usec_t wall; /* since 1970 to the loop's zero */
	int application_name; /* place among the tracked parameters */
	bool as_sockets; /* with positions in buffers, and the states of SHOW SOCKETS */
	bool only_busy;
};

static struct listing *listing_of(struct telling *telling)
{
	return (struct listing *)(void *)telling->memory;
}

static void start(struct telling *telling)
{
	const struct registry *registry = telling->registry;

	*listing_of(telling) = (struct listing){
		/* Both clocks at one moment, so that a time looks the same in every SHOW. */
		.wall = clock_wall() - clock_monotonic() + registry->loop->stolen,
		.application_name = parameter_index(registry->parameters, "application_name"),
	};
	registry_sort(telling->registry);
}

/* --- cells -------------------------------------------------------------------------------- */

static const struct client_link *as_client(const struct link *link)
{
	return link->kind == LINK_CLIENT ? (const struct client_link *)link : NULL;
}

static const struct server_link *as_server(const struct link *link)
{
	return link->kind == LINK_SERVER ? (const struct server_link *)link : NULL;
}

static const char *replication_name(const struct link *link)
{
	static const char *const names[] = {
		[REPLICATION_NONE] = "none",
		[REPLICATION_LOGICAL] = "logical",
		[REPLICATION_PHYSICAL] = "physical",
	};

	return names[link_replication(link)];
}

static const char *state_name(const struct listing *listing, const struct link *link)
{
	const struct client_link *client = as_client(link);
	const struct server_link *server = as_server(link);

	if (listing->as_sockets)
		return client ? client_socket_state(client) : server_socket_state(server);
	return client ? client_console_state(client) : server_console_state(server);
}

static void add_address(struct result *result, const struct address *address)
{
	char text[ADDRESS_TEXT_SIZE];

	result_text(result, address_host(address, text));
	result_number(result, address->port);
}

static void add_addresses(struct result *result, const struct link *link)
{
	struct address local = address_local(link->stream.fd);

	if (local.family == AF_UNIX)
		local.port = link->remote.port;
	add_address(result, &link->remote);
	add_address(result, &local);
}

/* How long the client's query has been under way, or the client has waited for its welcome. */
static usec_t waited(const struct link *link)
{
	const struct client_link *client = as_client(link);
	const usec_t now = loop_now(link->stream.loop);

	if (client && client->query_start != 0)
		return now - client->query_start;
	if (client && client_is_waiting(client) && client->wait_start != 0)
		return now - client->wait_start;
	return 0;
}

static void add_handle(struct result *result, const struct link *link)
{
	char text[24] = "";

	if (link)
		snprintf(text, sizeof(text), "0x%llx", link_handle(link));
	result_text(result, text);
}

static int64_t remote_pid(const struct link *link)
{
	const struct server_link *server = as_server(link);
	const uint8_t *key = server ? server->cancel_key : NULL;

	if (link->remote.family == AF_UNIX && link->remote.pid != 0)
		return link->remote.pid;
	if (!key || server->cancel_key_length < 4)
		return 0;
	return (int32_t)((uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 |
		(uint32_t)key[2] << 8 | (uint32_t)key[3]);
}

static const char *application_name(const struct listing *listing, const struct link *link)
{
	const char *name = NULL;

	if (link->parameters && listing->application_name >= 0)
		name = parameters_get(link->parameters, (unsigned)listing->application_name);
	return name ? name : "";
}

/* Names that a client has, or what a server has prepared. */
static int64_t prepared_statements(const struct link *link)
{
	const struct client_link *client = as_client(link);
	const struct server_link *server = as_server(link);

	if (client)
		return client->statements ? client->statements->count : 0;
	return server->statements ? server->statements->count : 0;
}

static void add_link_cells(
	struct result *result, const struct listing *listing, const struct link *link)
{
	const struct server_link *server = as_server(link);
	const usec_t wait = waited(link);
	char tls[TLS_TEXT_SIZE];

	result_text(result, server ? "S" : "C");
	result_text(result, link_user_name(link));
	result_text(result, link_database_name(link));
	result_text(result, replication_name(link));
	result_text(result, state_name(listing, link));
	add_addresses(result, link);
	result_time(result, listing->wall + link->connect_time);
	result_time(result, listing->wall + link->request_time);
	result_number(result, wait / USEC_PER_SEC);
	result_number(result, wait % USEC_PER_SEC);
	result_number(result, server && server->close_needed);
	add_handle(result, link);
	add_handle(result, link->peer);
	result_number(result, remote_pid(link));
	result_text(result, tls_text(&link->stream, tls));
	result_text(result, application_name(listing, link));
	result_number(result, prepared_statements(link));
	result_number(result, link_number(link));
}

/* --- rows --------------------------------------------------------------------------------- */

/* Bytes of a connection that are on their way through us. */
struct positions {
	size_t received; /* and held */
	size_t remaining; /* of the message that is passing */
	size_t unsent; /* received from it, not yet taken by its peer */
};

static struct positions positions_of(const struct telling *telling, const struct link *link)
{
	struct positions at = {.received = link->held_length, .remaining = link->remaining};

	if (link->peer)
		at.unsent = stream_backlog_length(&link->peer->stream);
	if (link == &telling->client->link)
		at.received += telling->text_length;
	return at;
}

static void add_position_cells(struct result *result, const struct positions *at)
{
	result_number(result, (int64_t)at->received); /* recv_pos */
	result_number(result, 0); /* pkt_pos */
	result_number(result, (int64_t)at->remaining); /* pkt_remain */
	result_number(result, 0); /* send_pos */
	result_number(result, 0); /* send_remain */
	result_number(result, (int64_t)at->received); /* pkt_avail */
	result_number(result, (int64_t)at->unsent); /* send_avail */
}

/* Logging in again, or about to be nobody: what has left its place since it was noted. */
static bool has_left(const struct listing *listing, const struct link *link)
{
	return link->kind == LINK_CLIENT && !listing->as_sockets &&
		(link->state == CLIENT_GREETING || link->state == CLIENT_AUTHENTICATING);
}

static void tell_link(struct telling *telling, void *thing, unsigned kind)
{
	const struct listing *listing = listing_of(telling);
	const struct link *link = thing;
	const struct positions at = positions_of(telling, link);

	(void)kind;
	if (has_left(listing, link) ||
		(listing->only_busy && at.received == 0 && at.remaining == 0 && at.unsent == 0))
		return;
	result_begin_row(&telling->result);
	add_link_cells(&telling->result, listing, link);
	if (listing->as_sockets)
		add_position_cells(&telling->result, &at);
	result_end_row(&telling->result);
}

/* --- who is told of, and in which order ----------------------------------------------------- */

static void note_link(struct telling *telling, struct link *link)
{
	telling_note(telling, &link->handle, link, 0);
}

static void note_links(struct telling *telling, const struct link_list *list)
{
	struct link *link;

	TAILQ_FOREACH (link, list, place)
		note_link(telling, link);
}

static void note_those(
	struct telling *telling, const struct link_list *list, enum client_state state)
{
	struct link *link;

	TAILQ_FOREACH (link, list, place) {
		if (link->state == state)
			note_link(telling, link);
	}
}

static void note_cancels(struct telling *telling, const struct pool *pool)
{
	note_those(telling, &pool->cancels, CLIENT_CANCEL_SENT);
	note_those(telling, &pool->cancels, CLIENT_CANCEL_WAITING);
}

static void note_waiting(struct telling *telling, const struct pool *pool)
{
	note_links(telling, &pool->waiting);
	note_links(telling, &pool->welcoming);
}

static void note_servers_of(struct telling *telling, const struct pool *pool,
	const enum server_list *lists, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		note_links(telling, &pool->servers[lists[i]]);
}

/*
 * The same for one of many: pools in their order, within each its lists, and then those who have
 * no pool yet.
 */
enum { NO_POOL = 0xfffffe, OTHERS_POOL };

static uint32_t place(const struct link *link, unsigned list)
{
	const struct pool *pool = link->pool;
	const unsigned last = NO_POOL - 1;
	unsigned order = NO_POOL;

	if (pool && pool->database->peer_id)
		order = OTHERS_POOL;
	else if (pool)
		order = pool->order < last ? pool->order : last;
	return order << 8 | list;
}

/* The lists of clients, as they follow each other; 0: it stands in none of them. */
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

/* The place of a server's list among these. */
static unsigned find_list(
	const struct server_link *server, const enum server_list *lists, unsigned count)
{
	const enum server_list list = server_list_of(server_state(server));

	for (unsigned i = 0; i < count; i++) {
		if (lists[i] == list)
			return SERVERS + i;
	}
	return NO_LIST;
}

/* --- topics ------------------------------------------------------------------------------- */

static void note_clients(struct telling *telling)
{
	const struct registry *registry = telling->registry;
	const struct pool *pool;
	const struct peer *peer;

	start(telling);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		note_links(telling, &pool->clients);
		note_waiting(telling, pool);
		note_cancels(telling, pool);
	}
	/* They wait in a pool too, but are nobody of its own yet. */
	note_those(telling, &registry->logins, CLIENT_LOOKING_UP);
	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		note_cancels(telling, peer->pool);
}

static uint32_t place_client(const struct link *link)
{
	const struct client_link *client = as_client(link);
	const unsigned list = client ? client_list(client) : NO_LIST;

	if (list == LOGINS)
		return link->state == CLIENT_LOOKING_UP ? NO_POOL << 8 | LOGINS : 0;
	return list == NO_LIST ? 0 : place(link, list);
}

static const struct topic_walk clients = {
	note_clients, start, place_client, tell_link, sizeof(struct listing)};

const struct topic show_clients = {
	"CLIENTS", columns, LINK_COLUMNS, NULL, RIGHT_STATS, &clients};

static const enum server_list server_lists[] = {SERVERS_ACTIVE, SERVERS_IDLE, SERVERS_USED,
	SERVERS_TESTED, SERVERS_LOGIN, SERVERS_ACTIVE_CANCEL, SERVERS_BEING_CANCELED};

/* SHOW SOCKETS has none of those that are about cancel requests. */
enum { LISTS = sizeof(server_lists) / sizeof(server_lists[0]), SOCKET_LISTS = LISTS - 2 };

static void note_servers(struct telling *telling)
{
	const struct registry *registry = telling->registry;
	const struct pool *pool;
	const struct peer *peer;

	start(telling);
	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		note_servers_of(telling, pool, server_lists, LISTS);
	TAILQ_FOREACH (peer, &registry->process->peers, entry)
		note_servers_of(telling, peer->pool, server_lists, LISTS);
}

static uint32_t place_server(const struct link *link)
{
	const struct server_link *server = as_server(link);
	const unsigned list = server ? find_list(server, server_lists, LISTS) : NO_LIST;

	return list == NO_LIST ? 0 : place(link, list);
}

static const struct topic_walk servers = {
	note_servers, start, place_server, tell_link, sizeof(struct listing)};

const struct topic show_servers = {
	"SERVERS", columns, LINK_COLUMNS, NULL, RIGHT_STATS, &servers};

static void start_sockets(struct telling *telling)
{
	start(telling);
	listing_of(telling)->as_sockets = true;
}

static void note_sockets(struct telling *telling)
{
	const struct registry *registry = telling->registry;
	const struct pool *pool;

	start_sockets(telling);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		note_links(telling, &pool->clients);
		note_waiting(telling, pool);
		note_servers_of(telling, pool, server_lists, SOCKET_LISTS);
	}
	note_links(telling, &registry->logins);
}

static uint32_t place_socket(const struct link *link)
{
	const struct client_link *client = as_client(link);
	const unsigned list = client ? client_list(client)
				     : find_list(as_server(link), server_lists, SOCKET_LISTS);

	if (list == LOGINS)
		return NO_POOL << 8 | LOGINS;
	if (list == NO_LIST || list == CANCELS_SENT || list == CANCELS_WAITING ||
		(link->pool && link->pool->database->peer_id))
		return 0;
	return place(link, list);
}

static void start_active_sockets(struct telling *telling)
{
	start_sockets(telling);
	listing_of(telling)->only_busy = true;
}

static void note_active_sockets(struct telling *telling)
{
	note_sockets(telling);
	listing_of(telling)->only_busy = true;
}

static const struct topic_walk sockets = {
	note_sockets, start_sockets, place_socket, tell_link, sizeof(struct listing)};
static const struct topic_walk active_sockets = {note_active_sockets, start_active_sockets,
	place_socket, tell_link, sizeof(struct listing)};

const struct topic show_sockets = WALKED_TOPIC("SOCKETS", columns, &sockets);
const struct topic show_active_sockets =
	WALKED_TOPIC("ACTIVE_SOCKETS", columns, &active_sockets);
