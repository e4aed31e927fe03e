/* SPDX-License-Identifier: ISC */
/*
 * What tells that a database has moved to another server, and what follows: connections to the old
 * one are retired as soon as they are free. Nothing is cut, and pools keep their welcome.
 */
#ifndef PGUSHER_SESSION_SERVER_FAILOVER_H
#define PGUSHER_SESSION_SERVER_FAILOVER_H

#include "model/registry.h"

/*
 * For resolver_on_move(), with the registry as argument: retire the servers of every database
 * that were found under this name at the address it no longer has.
 */
resolver_moved_function failover_host_moved;

/*
 * For relay_rules: the server has refused to write, as a standby does. If server_failover_check
 * says so, the database's hosts are looked up anew and all its present servers retired; not more
 * often than every other second, since clients can bring it about.
 */
void failover_server_is_read_only(struct server_link *server);

#endif
