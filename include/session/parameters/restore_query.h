/* SPDX-License-Identifier: ISC */
/*
 * The query that restores a client's startup parameters on its server after a RESET, but not
 * those that were SET in the session since. See rules/restore.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_RESTORE_QUERY_H
#define PGUSHER_SESSION_PARAMETERS_RESTORE_QUERY_H

#include "model/server_link.h"

/*
 * Append the messages, up to their Sync, for a paired server. Its client must have startup
 * parameters (client->asked). The messages do not change the client's unnamed statement and
 * portal. Protocol: "Message Flow", Extended Query. Sets out->failed when out of memory.
 */
void restore_write_query(const struct server_link *server, struct buffer *out);

#endif
