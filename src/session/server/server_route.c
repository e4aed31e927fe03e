/* SPDX-License-Identifier: ISC */
#include "session/server/server_route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "config/tcp_settings.h"
#include "model/host/host_items.h"
#include "session/link/close.h"
#include "session/server/host_role.h"

/* Until the next attempt at a Unix socket with a full queue. */
#define QUEUE_RETRY (USEC_PER_SEC / 20)

/* Each candidate gets at least this time to answer, however many hosts there are. */
#define SHORTEST_SHARE USEC_PER_SEC

static const struct database_config *config_of(const struct server_route *route)
{
	return route->server->link.pool->database->config;
}

static uint16_t port_of(const struct server_route *route)
{
	return database_config_port(config_of(route), route->server->host);
}

static const struct settings *settings_of(const struct server_route *route)
{
	return link_registry(&route->server->link)->process->settings;
}

/* --- time --------------------------------------------------------------------------------- */

/* Divide what is left of server_connect_timeout by the number of remaining candidates. */
static void set_share(struct server_route *route)
{
	const struct link *link = &route->server->link;
	const usec_t limit = settings_of(route)->server_connect_timeout;
	const usec_t now = loop_now(link->stream.loop);
	const usec_t left = link->connect_time + limit - now;
	const unsigned candidates = 1 + route->others + route->hosts;
	const usec_t least = left / 2 < SHORTEST_SHARE ? left / 2 : SHORTEST_SHARE;
	const usec_t share = left / candidates;

	route->share_end = 0;
	if (limit > 0 && left > 0 && candidates > 1)
		route->share_end = now + (share > least ? share : least);
}

void server_route_check_progress(struct server_route *route, usec_t now)
{
	if (route->share_end == 0 || now < route->share_end)
		return;
	link_log_repeated(&route->server->link, LEVEL_WARNING,
		"no answer from %s, trying the next one",
		route->host ? route->host : "the server");
	server_route_next(route, REASON_CONNECT_FAILED);
}

/* --- connecting --------------------------------------------------------------------------- */

/* Errors of a local shortage, which will pass and are not the server's fault. */
static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS ||
		error == EAGAIN || error == EADDRNOTAVAIL;
}

static bool open_connection(struct server_route *route)
{
	struct server_link *server = route->server;
	const struct tcp_options options = tcp_settings_options(settings_of(route));

	return stream_connect(&server->link.stream, link_registry(&server->link)->loop,
		(const struct sockaddr *)&server->where, server->where_length, &options,
		route->handlers);
}

static bool connect_now(struct server_route *route);

static void on_retry(struct deadline *retry)
{
	struct server_route *route =
		(struct server_route *)((char *)retry - offsetof(struct server_route, retry));

	if (!connect_now(route))
		server_route_next(route, REASON_CONNECT_FAILED);
}

/*
 * The server lives but accepts connections too slowly: go on trying until its share of
 * server_connect_timeout, or all of it, is over.
 */
static void wait_for_queue(struct server_route *route)
{
	struct loop *loop = link_registry(&route->server->link)->loop;

	if (!route->queue_full)
		link_log_repeated(&route->server->link, LEVEL_WARNING,
			"the queue of the server's Unix socket is full, trying again");
	route->queue_full = true;
	route->retry.expire = on_retry;
	wheel_set(&loop->wheel, &route->retry, loop_now(loop) + QUEUE_RETRY);
}

/*
 * Start connecting to server->where, now or when its queue has room. Returns false when that
 * failed at once.
 */
static bool connect_now(struct server_route *route)
{
	struct server_link *server = route->server;
	const bool is_unix = server->where.ss_family == AF_UNIX;
	char address[ADDRESS_TEXT_SIZE];

	if (!is_unix)
		server->link.remote =
			address_of((struct sockaddr *)&server->where, server->where_length);
	if (!route->queue_full)
		set_share(route);
	if (open_connection(route)) {
		route->queue_full = false;
		return true;
	}
	if (is_unix && errno == EAGAIN) {
		wait_for_queue(route);
		return true;
	}
	route->short_of_resources = is_shortage(errno);
	link_log_repeated(&server->link, LEVEL_WARNING,
		"sbuf_connect failed to connect to %s: %s",
		address_text(&server->link.remote, address), strerror(errno));
	return false;
}

/* Begin at the address of which it is the turn. Returns false if none of the name is to be tried. */
static bool use_address(struct server_route *route, const struct sockaddr *turn, uint16_t port)
{
	struct server_link *server = route->server;
	const struct sockaddr *address;
	socklen_t length;
	struct host *host = host_items_name(server->link.pool, server->host);

	if (host)
		host_answered(host, 0);
	host = host_choice_address(&route->choice, server->link.pool, turn, &address, &length);
	host_use(server, host);
	if (!host) {
		route->others = 0;
		return false;
	}
	memcpy(&server->where, address, length);
	server->where_length = length;
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)&server->where)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&server->where)->sin6_port = htons(port);
	return true;
}

static void on_resolved(struct resolver_query *query, const struct sockaddr *address,
	socklen_t length, int status)
{
	struct server_route *route =
		(struct server_route *)((char *)query - offsetof(struct server_route, query));
	struct server_link *server = route->server;

	(void)length;
	if (status != RESOLVER_FOUND) {
		route->others = 0;
		/* Log parsers know a host without an address by this line. */
		if (route->hosts > 0)
			server_log_closing(server, REASON_SERVER_DNS_LOOKUP_FAILED);
		server_route_next(route, REASON_SERVER_DNS_LOOKUP_FAILED);
		return;
	}
	if (!route->resolved)
		route->others = query->others;
	route->resolved = true;
	if (!use_address(route, address, query->port) || !connect_now(route))
		server_route_next(route, REASON_CONNECT_FAILED);
}

static void ask_for_address(struct server_route *route)
{
	set_share(route);
	route->server->where_length = 0;
	resolver_ask(link_registry(&route->server->link)->resolver, &route->query, route->host,
		port_of(route), on_resolved);
}

/* --- hosts -------------------------------------------------------------------------------- */

static bool set_unix_path(struct server_link *server, const char *directory, unsigned port)
{
	char path[DATABASE_HOST_LIMIT + 32];

	snprintf(path, sizeof(path), "%s/.s.PGSQL.%u", directory, port);
	server->where_length = address_unix((struct sockaddr_un *)&server->where, path);
	server->link.remote = (struct address){.family = AF_UNIX, .port = (uint16_t)port};
	return server->where_length > 0;
}

static bool set_unix_address(struct server_link *server, const char *directory)
{
	const struct database_config *config = server->link.pool->database->config;

	return set_unix_path(server, directory,
		database_config_port(config, config->host ? server->host : 0));
}

/* Returns false and the reason when the host cannot even be tried. */
static bool try_host(struct server_route *route, const char *host, enum reason *reason)
{
	struct server_link *server = route->server;

	*reason = REASON_CONNECT_FAILED;
	if (host[0] == '/' || host[0] == '@') {
		host_use(server, host_items_of_server(server));
		return set_unix_address(server, host) && connect_now(route);
	}
	route->host = strdup(host);
	if (!route->host) {
		*reason = REASON_NO_MEMORY;
		return false;
	}
	server->where_length = resolver_literal(host, port_of(route), &server->where);
	if (server->where_length > 0) {
		host_use(server, host_items_of_server(server));
		return connect_now(route);
	}
	route->resolved = false;
	ask_for_address(route);
	return true;
}

static bool try_listed_host(struct server_route *route, unsigned index, enum reason *reason)
{
	size_t length;
	const char *start = database_config_host(config_of(route), index, &length);
	char host[DATABASE_HOST_LIMIT + 1];

	route->server->host = (uint16_t)index;
	route->tried = true;
	*reason = REASON_SERVER_DNS_LOOKUP_FAILED;
	if ((size_t)snprintf(host, sizeof(host), "%.*s", (int)length, start) >= sizeof(host))
		return false;
	return try_host(route, host, reason);
}

static void stop_waiting(struct server_route *route)
{
	wheel_remove(&link_registry(&route->server->link)->loop->wheel, &route->retry);
	route->queue_full = false;
}

void server_route_note_failure(const struct server_route *route, const char *why)
{
	struct server_link *server = route->server;
	struct host *host = server->at;

	if (!host && route->host && !route->resolved)
		host = host_items_name(server->link.pool, server->host);
	if (host && !route->short_of_resources)
		host_role_fails(link_registry(&server->link), host, why);
}

/* Close the present candidate's connection or look-up, and count its failure. */
static void drop_candidate(struct server_route *route, enum reason reason)
{
	const struct failure why = failure_of(reason);

	stop_waiting(route);
	if (route->tried && !route->short_of_resources && !route->answered) {
		counters_host(route->server, false);
		server_route_note_failure(route, why.text);
	}
	host_use(route->server, NULL);
	route->answered = false;
	resolver_cancel(&route->query);
	stream_close(&route->server->link.stream);
	route->share_end = 0;
	route->connected = false;
	route->short_of_resources = false;
	route->server->link.remote = (struct address){.family = AF_UNSPEC};
	if (route->server->link.state != SERVER_CONNECTING)
		server_enter(route->server, SERVER_CONNECTING);
}

/* Returns the next host of the list, or -1. */
static int next_host(struct server_route *route)
{
	struct pool *pool = route->server->link.pool;
	int index = host_choice_next(&route->choice, pool);

	if (index < 0 && host_choice_again(&route->choice)) {
		route->hosts = database_config_hosts(config_of(route));
		index = host_choice_next(&route->choice, pool);
	}
	return index;
}

bool server_route_next(struct server_route *route, enum reason reason)
{
	while (route->others > 0 || route->listed) {
		int index = -1;

		if (route->others == 0) {
			index = next_host(route);
			if (index < 0)
				break;
		}
		drop_candidate(route, reason);
		if (route->others > 0) {
			route->others--;
			ask_for_address(route);
			return true;
		}
		free(route->host);
		route->host = NULL;
		route->resolved = false;
		route->hosts--;
		if (try_listed_host(route, (unsigned)index, &reason))
			return true;
	}
	server_close_for(route->server, reason);
	return false;
}

void server_route_lost(struct server_route *route, enum reason reason)
{
	if (route->answered)
		server_close_for(route->server, reason);
	else
		server_route_next(route, reason);
}

/* --- begin and end ------------------------------------------------------------------------ */

/* Without a host, connect to the socket in our own unix_socket_dir. */
static bool begin_at_unix_socket(struct server_route *route)
{
	const char *directory = settings_of(route)->unix_socket_dir;
	enum reason reason = REASON_CANNOT_CONNECT;

	if (directory[0] == '\0')
		link_log_repeated(&route->server->link, LEVEL_ERROR,
			"unix socket dir not configured: %s",
			route->server->link.pool->database->name);
	else if (try_host(route, directory, &reason))
		return true;
	server_close_for(route->server, reason);
	return false;
}

bool server_route_begin(struct server_route *route, struct server_link *server,
	const struct stream_handlers *handlers)
{
	route->server = server;
	route->handlers = handlers;
	if (!config_of(route)->host)
		return begin_at_unix_socket(route);
	route->listed = true;
	route->hosts = database_config_hosts(config_of(route));
	return server_route_next(route, REASON_CONNECT_FAILED);
}

bool server_route_begin_for(struct server_route *route, struct server_link *server,
	struct host *host, const struct stream_handlers *handlers)
{
	route->server = server;
	route->handlers = handlers;
	host_use(server, host);
	if (host->name[0] == '/' || host->name[0] == '@') {
		if (!set_unix_path(server, host->name, host->port))
			return server_route_next(route, REASON_CONNECT_FAILED);
	} else {
		route->host = strdup(host->name);
		/* Without it the connection would be taken for one that needs no TLS. */
		if (!route->host)
			return server_route_next(route, REASON_NO_MEMORY);
		server->where_length = host->address.family == AF_UNSPEC
			? resolver_literal(host->name, host->port, &server->where)
			: address_socket(&host->address, host->port, &server->where);
	}
	route->resolved = true;
	return connect_now(route) || server_route_next(route, REASON_CONNECT_FAILED);
}

bool server_route_begin_at(struct server_route *route, struct server_link *server,
	const struct server_link *other, const struct stream_handlers *handlers)
{
	route->server = server;
	route->handlers = handlers;
	server->where = other->where;
	server->where_length = other->where_length;
	server->host = other->host;
	server->link.remote = other->link.remote;
	return connect_now(route) || server_route_next(route, REASON_CONNECT_FAILED);
}

void server_route_end(struct server_route *route)
{
	if (route->server)
		stop_waiting(route);
	resolver_cancel(&route->query);
	free(route->host);
	route->host = NULL;
}
