/* SPDX-License-Identifier: ISC */
/*
 * A server connection from its launch to its first use, step by step: choosing a host and
 * connecting to it (server/server_route), encryption and start-up (server_greeting),
 * authentication (server_authentication), parameters (server_welcome), connect_query; and if it
 * fails, server_failure. Protocol: "Message Flow", Start-up.
 */
#ifndef PGUSHER_SESSION_SERVER_SERVER_LOGIN_H
#define PGUSHER_SESSION_SERVER_SERVER_LOGIN_H

#include "model/registry.h"

struct server_login_owner;

/*
 * Start a connection for the pool. for_cancel: NULL, or the server for which a cancel request
 * waits; the connection is then made to the same address. `owner` must stay valid until the
 * login has ended. Returns false when the launch has failed at once; the failure has been
 * logged and stored in the pool, unless memory is short.
 */
bool server_login_begin(struct pool *pool, const struct server_link *for_cancel,
	const struct server_login_owner *owner);

/*
 * Start a connection for the pool that is marked as a replacement. Returns false as
 * server_login_begin() does.
 */
bool server_login_begin_replacement(struct pool *pool, const struct server_login_owner *owner);

/*
 * Start a connection that is to be the listening server of the pool. Returns false as
 * server_login_begin() does.
 */
bool server_login_begin_listening(struct pool *pool, const struct server_login_owner *owner);

/*
 * Start a connection to this host that is to watch it: host.watch. Returns false as
 * server_login_begin() does.
 */
bool server_login_begin_watch(
	struct pool *pool, struct host *host, const struct server_login_owner *owner);

/*
 * Start a connection that only this replication client will use, in the client's pool. Returns
 * false as server_login_begin() does.
 */
bool server_login_begin_replication(
	struct client_link *client, const struct server_login_owner *owner);

/*
 * To be called regularly while a server logs in: if the present host has not answered within
 * its share of the time, go on to the next host. May close the server.
 */
void server_login_check_progress(struct server_link *server, usec_t now);

/*
 * Close a server that logs in, or connects for a cancel request: server_connect_timeout is over.
 */
void server_login_time_out(struct server_link *server);

/*
 * A query of pgusher's own has ended that the server got in its login: go on. In the end the server is
 * handed to the login's owner. May close the server, or connect it to another host.
 */
void server_login_query_done(struct server_link *server);

#endif
