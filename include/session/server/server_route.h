/* SPDX-License-Identifier: ISC */
/*
 * Chooses the host of a server login: takes a host of the database's list, resolves its name,
 * connects, and goes on to the next address or host if this one does not answer.
 *
 * A counter of the pool chooses the first host; the hosts behind it follow in their order, and
 * every host that is tried advances the counter, unless another login has done so meanwhile.
 * Each candidate but the last gets a share of server_connect_timeout, so that a silent host
 * leaves time for the others. A Unix socket with a full queue (EAGAIN, connect(2)) is tried
 * again for as long as a silent host is waited for.
 *
 * A route is embedded in its server_login. It does not know the protocol: its search ends when
 * the server has sent anything.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_ROUTE_H
#define PGUSHER_SESSION_SERVER_SERVER_ROUTE_H

#include "model/registry.h"
#include "session/server/host_choice.h"

struct server_route {
	struct server_link *server;
	const struct stream_handlers *handlers; /* of the connection */
	struct resolver_query query; /* while the name is looked up */
	char *host; /* owned: name or address of the present candidate; NULL: a Unix socket */
	usec_t share_end; /* when the next candidate is tried; 0: there is none */
	struct host_choice choice; /* among the hosts of the list */
	bool listed; /* it goes on to other hosts of the list */
	unsigned hosts; /* of the list that were not tried yet: at most so many */
	unsigned others; /* further addresses of the name that this attempt may try */
	bool connected; /* to the present candidate */
	bool answered; /* the server has sent something */
	bool resolved; /* an address of the name is known */
	bool tried; /* there is a present candidate */
	bool queue_full; /* of the present candidate's Unix socket: try again */
	struct deadline retry; /* when that is */
	bool short_of_resources; /* connecting failed for want of local descriptors or memory */
};

/*
 * Start connecting to one of the hosts of the pool's database. Returns false when no host could
 * even be tried; the server is closed then.
 */
bool server_route_begin(struct server_route *route, struct server_link *server,
	const struct stream_handlers *handlers);

/*
 * Start connecting to this host, and to no other: to watch it. Returns false when that failed at once;
 * the server is closed then.
 */
bool server_route_begin_for(struct server_route *route, struct server_link *server,
	struct host *host, const struct stream_handlers *handlers);

/*
 * Start connecting to the address of the server `other`, and to no other address: for a cancel
 * request. Returns false when that failed at once; the server is closed then.
 */
bool server_route_begin_at(struct server_route *route, struct server_link *server,
	const struct server_link *other, const struct stream_handlers *handlers);

/*
 * The present candidate has failed: go on to the next one, in state CONNECTING with a new
 * stream. Returns false when none is left; the server is closed for this reason then.
 */
bool server_route_next(struct server_route *route, enum reason reason);

/* The server has answered: the login stays with the present candidate. */
static inline void server_route_set_answered(struct server_route *route)
{
	route->answered = true;
	route->share_end = 0;
}

/*
 * The connection has ended: close the server for this reason if it had answered, else go on as
 * server_route_next() does.
 */
void server_route_lost(struct server_route *route, enum reason reason);

/*
 * If the present candidate's share of the time is used up, go on to the next one. May close the
 * server.
 */
void server_route_check_progress(struct server_route *route, usec_t now);

/*
 * The present candidate is not usable, for this reason: remember that of its host, or of its name if
 * that has no address.
 */
void server_route_note_failure(const struct server_route *route, const char *why);

/* Free what the route owns; its own memory belongs to the login. */
void server_route_end(struct server_route *route);

#endif
