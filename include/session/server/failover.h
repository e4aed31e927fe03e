/* SPDX-License-Identifier: ISC */
/*
 * Detects that a database has moved to another PostgreSQL server: its host name has a new
 * address, or its present server has become read-only. The connections to the old server are
 * retired: they are closed as soon as they are free. No session is cut, and pools keep their
 * welcome.
 */
#ifndef PGUSHER_SESSION_SERVER_FAILOVER_H
#define PGUSHER_SESSION_SERVER_FAILOVER_H

#include "model/registry.h"

/*
 * Callback for resolver_on_move(), with the registry as argument: the host name no longer has
 * this address. Retires the servers of every database that were connected under the name to the
 * address.
 */
resolver_moved_function failover_host_moved;

/*
 * Called by the relay when a server has refused to write, as a standby does. If the setting
 * server_failover_check is on, the database's hosts are looked up anew and all its present
 * servers are retired. This happens at most every two seconds per database, since clients can
 * cause it.
 */
void failover_server_is_read_only(struct server_link *server);

#endif
