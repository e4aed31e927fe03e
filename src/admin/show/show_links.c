/* SPDX-License-Identifier: ISC */
/* SHOW CLIENTS, SERVERS, SOCKETS and ACTIVE_SOCKETS: one row per connection. */
#include <stdio.h>
#include <string.h>

#include "admin/show/link_order.h"
#include "admin/show/show_stream.h"
#include "model/client_statements.h"
#include "model/peer.h"
#include "net/tls.h"
#include "session/notify/channels.h"

/* The columns of all four topics, and what SHOW SOCKETS has besides. */
#define LINK_COLUMNS                                                                           \
	{"type", COLUMN_TEXT}, {"user", COLUMN_TEXT}, {"database", COLUMN_TEXT},               \
		{"replication", COLUMN_TEXT}, {"state", COLUMN_TEXT}, {"addr", COLUMN_TEXT},   \
		{"port", COLUMN_INT4}, {"local_addr", COLUMN_TEXT},                            \
		{"local_port", COLUMN_INT4}, {"connect_time", COLUMN_TIME},                    \
		{"request_time", COLUMN_TIME}, {"wait", COLUMN_INT4},                          \
		{"wait_us", COLUMN_INT4}, {"close_needed", COLUMN_INT4}, {"ptr", COLUMN_TEXT}, \
		{"link", COLUMN_TEXT}, {"remote_pid", COLUMN_INT4}, {"tls", COLUMN_TEXT},      \
		{"application_name", COLUMN_TEXT}, {"prepared_statements", COLUMN_INT4},       \
	{                                                                                      \
		"id", COLUMN_INT4                                                              \
	}

static const struct column link_columns[] = {LINK_COLUMNS};

static const struct column socket_columns[] = {
	LINK_COLUMNS,
	{"recv_pos", COLUMN_INT4},
	{"pkt_pos", COLUMN_INT4},
	{"pkt_remain", COLUMN_INT4},
	{"send_pos", COLUMN_INT4},
	{"send_remain", COLUMN_INT4},
	{"pkt_avail", COLUMN_INT4},
	{"send_avail", COLUMN_INT4},
};

/* What all rows of one answer share. */
struct listing {
	usec_t wall; /* offset from the loop's clock to microseconds since 1970 */
	bool as_sockets; /* with positions in buffers and the state names of SHOW SOCKETS */
	bool only_busy; /* only links with bytes in buffers */
};

static struct listing *listing_of(struct show_stream *show)
{
	return (struct listing *)(void *)show->state;
}

static void begin(struct show_stream *show)
{
	const struct registry *registry = show->registry;

	*listing_of(show) = (struct listing){
		/* Read both clocks together, so that every SHOW renders a time alike. */
		.wall = clock_wall() - clock_monotonic() + registry->process->clock.stopped,
	};
	registry_sort(show->registry);
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

	if (link->state == SERVER_LISTENING && server && !channels_are_in_use(link->pool))
		return listing->as_sockets ? "sv_idle" : "idle";
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

	/* Its own port is in the name of the socket's file; that of a relayed client is not. */
	if (local.family == AF_UNIX)
		local.port = link->remote.family == AF_UNIX
			? link->remote.port
			: (uint16_t)link_registry(link)->process->settings->listen_port;
	add_address(result, &link->remote);
	add_address(result, &local);
}

/* How long the client's query has been running, or the client has waited for a server. */
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

static const char *application_name(const struct link *link)
{
	const char *name = NULL;
	int index;

	if (!link->parameters)
		return "";
	/* Each worker has a table of its own. */
	index = parameter_index(link_registry(link)->parameters, "application_name");
	if (index >= 0)
		name = parameters_get(link->parameters, (unsigned)index);
	return name ? name : "";
}

/* Statement names of a client, or statements that are prepared on a server. */
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
	result_text(result, application_name(link));
	result_number(result, prepared_statements(link));
	result_number(result, link_number(link));
}

/* --- rows --------------------------------------------------------------------------------- */

/* Bytes of a connection that are in our buffers. */
struct positions {
	size_t received; /* and not processed */
	size_t remaining; /* of the message that is being forwarded */
	size_t unsent; /* received from this link and not yet sent to its peer */
};

static struct positions positions_of(const struct show_stream *show, const struct link *link)
{
	struct positions at = {.received = link->held_length, .remaining = link->remaining};

	if (link->peer)
		at.unsent = stream_backlog_length(&link->peer->stream);
	if (link == &show->client->link)
		at.received += show->text_length;
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

/* Has a client that was listed during the lookup of its user continued its login since? */
static bool has_continued_login(const struct listing *listing, const struct link *link)
{
	return link->kind == LINK_CLIENT && !listing->as_sockets &&
		(link->state == CLIENT_GREETING || link->state == CLIENT_AUTHENTICATING);
}

static void add_row(struct show_stream *show, void *object, unsigned kind)
{
	const struct listing *listing = listing_of(show);
	const struct link *link = object;
	const struct positions at = positions_of(show, link);

	(void)kind;
	if (has_continued_login(listing, link) ||
		(listing->only_busy && at.received == 0 && at.remaining == 0 && at.unsent == 0))
		return;
	result_begin_row(&show->result);
	add_link_cells(&show->result, listing, link);
	if (listing->as_sockets)
		add_position_cells(&show->result, &at);
	result_end_row(&show->result);
}

/* --- topics ------------------------------------------------------------------------------- */

static void begin_sockets(struct show_stream *show)
{
	begin(show);
	listing_of(show)->as_sockets = true;
}

static void begin_active_sockets(struct show_stream *show)
{
	begin_sockets(show);
	listing_of(show)->only_busy = true;
}

static const struct topic_walk clients = {
	.begin = begin,
	.list = link_order_list_clients,
	.place = link_order_place_client,
	.add_rows = add_row,
	.state_size = sizeof(struct listing),
};

static const struct topic_walk servers = {
	.begin = begin,
	.list = link_order_list_servers,
	.place = link_order_place_server,
	.add_rows = add_row,
	.state_size = sizeof(struct listing),
};

static const struct topic_walk sockets = {
	.begin = begin_sockets,
	.list = link_order_list_sockets,
	.place = link_order_place_socket,
	.add_rows = add_row,
	.state_size = sizeof(struct listing),
};

static const struct topic_walk active_sockets = {
	.begin = begin_active_sockets,
	.list = link_order_list_sockets,
	.place = link_order_place_socket,
	.add_rows = add_row,
	.state_size = sizeof(struct listing),
};

const struct topic show_clients = WALKED_TOPIC("CLIENTS", link_columns, &clients);
const struct topic show_servers = WALKED_TOPIC("SERVERS", link_columns, &servers);
const struct topic show_sockets = WALKED_TOPIC("SOCKETS", socket_columns, &sockets);
const struct topic show_active_sockets =
	WALKED_TOPIC("ACTIVE_SOCKETS", socket_columns, &active_sockets);
