/* SPDX-License-Identifier: ISC */
/*
 * Asks servers what their host has, for pools with pool_size = auto: max_connections, the connections
 * that are reserved of it, the CONNECTION LIMIT of the role and of the database, and the cores, as far
 * as the role may read them. model/host/sizing says what follows.
 *
 * The question is asked at the end of a login, before the first client has the server: for the first
 * server of a pool, and for the first one at a host. Later a free server is asked every five minutes,
 * and after a RELOAD. A role that may read files of the server's machine is asked for those next. A server that refuses the whole question is asked for max_connections alone, and
 * one that refuses that too, or that closes the connection, is not asked for five minutes.
 */
#ifndef PGUSHER_SESSION_SERVER_HOST_CAPACITY_H
#define PGUSHER_SESSION_SERVER_HOST_CAPACITY_H

#include "model/registry.h"
#include "wire/report.h"
#include "wire/row.h"

enum { HOST_CAPACITY_COLUMNS = 6 };

/* Is a server that has logged in, and is not used yet, to be asked? */
bool host_capacity_is_due_at_login(const struct server_link *server);

/* Send the question. The server is closed if it cannot be sent. */
void host_capacity_send(struct server_link *server);

/*
 * Begin to ask this server, which is free (IDLE, or PAIRED or ASKING before without a client now), if
 * that is due. Returns true if it is ASKING now, or CLOSED because nothing can be sent.
 */
bool host_capacity_ask(struct server_link *server);

/* Is the server on this machine: at a Unix socket, or at the address that pgusher has itself? */
bool host_capacity_is_here(const struct server_link *server);

/* Is the server being asked, or has it just answered? */
bool host_capacity_is_asked(const struct server_link *server);

/* The server answers with a row of so many columns, or ROW_MALFORMED; values has the first ones. */
void host_capacity_take_row(struct server_link *server, int columns,
	const struct row_value values[HOST_CAPACITY_COLUMNS]);

/* The server answers by an error. */
void host_capacity_refused(struct server_link *server, const struct report *report);

/* The answer is complete. Returns whether the server can be used, as it could before. */
bool host_capacity_done(struct server_link *server);

/* The server is closed: another one may be asked. */
void host_capacity_server_closed(struct server_link *server);

/* Have a free server of the pool asked, or the first one that becomes free, when that is due. */
void host_capacity_upkeep(struct pool *pool);

#endif
