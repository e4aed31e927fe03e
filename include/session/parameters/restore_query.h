/* SPDX-License-Identifier: ISC */
/*
 * What a server is asked after a RESET: to set again what its client asked for at its start, but not
 * what somebody has SET in its session. See session/rules/restore.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_RESTORE_QUERY_H
#define PGUSHER_SESSION_PARAMETERS_RESTORE_QUERY_H

#include "model/server_link.h"

/*
 * Append the messages, up to their Sync, for a server whose client has asked for something
 * (client->asked). They leave the client's unnamed statement and portal as they are. Protocol:
 * "Message Flow", Extended Query. out->failed tells of want of memory.
 */
void restore_write_query(const struct server_link *server, struct buffer *out);

#endif
