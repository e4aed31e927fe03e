/* SPDX-License-Identifier: ISC */
/*
 * Where a login goes: the host of a list, its name's address, and on to the next one if that does
 * not answer.
 *
 * A pool's counter chooses the first host, and every host that is tried moves it. Each candidate
 * but the last gets a share of server_connect_timeout, so that one which is silent leaves time
 * for the others. A route is embedded in its server_login, and knows nothing of what is said over
 * the connection: only that the peer has said something, which ends the search.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_ROUTE_H
#define PGUSHER_SESSION_SERVER_SERVER_ROUTE_H

#include "model/registry.h"

struct server_route {
	struct server_link *server;
	const struct stream_handlers *handlers; /* of the connection */
	struct resolver_query query; /* while the name is looked up */
	char *host; /* the present candidate's name or address; NULL: a Unix socket */
	usec_t share_end; /* when the next candidate has its turn; 0: there is none */
	unsigned hosts; /* of the list that were not tried yet */
	unsigned others; /* further addresses of the name that this attempt may try */
	bool settled; /* the peer has answered */
	bool resolved; /* an address of the name is known */
	bool tried; /* there is a present candidate */
	bool wanting; /* it was not the server: we are short of descriptors or memory */
};

/*
 * Start connecting to one of the hosts that the pool's database names. False: none can even be
 * tried, and the server is closed.
 */
bool server_route_begin(struct server_route *route, struct server_link *server,
	const struct stream_handlers *handlers);

/* Connect to where that server is connected, and nowhere else: for a cancel request. */
bool server_route_follow(struct server_route *route, struct server_link *server,
	const struct server_link *other, const struct stream_handlers *handlers);

/*
 * Nothing can be had from the present candidate: go on to the next, in state CONNECTING with a
 * new stream. False: there is none left, and the server is closed for this reason.
 */
bool server_route_next(struct server_route *route, enum reason reason);

/* The peer has answered: this is where the login stays. */
static inline void server_route_settle(struct server_route *route)
{
	route->settled = true;
	route->share_end = 0;
}

/* The connection has ended: as server_route_next(), unless the peer had answered before. */
void server_route_lost(struct server_route *route, enum reason reason);

/* If the present candidate's share of the time is used up, go on to the next. */
void server_route_hurry(struct server_route *route, usec_t now);

/* Before its memory goes. */
void server_route_end(struct server_route *route);

#endif
