/* SPDX-License-Identifier: ISC */
/*
 * What a client asked for at its start is what its RESET goes back to, as with PostgreSQL.
 *
 * Our servers have begun with other values. So when a client has said RESET or DISCARD ALL, and
 * something of what it asked for may be gone, its ReadyForQuery waits: first its server is asked
 * to set again what nobody has SET in its session, which the server itself knows best. Only
 * outside of a transaction, since that query is one; until then the client is told what the
 * server really has.
 *
 * From the command's tag on the server points at relay_reset_server, and while it runs our query
 * at relay_restoring_server. Reports of what the client asked for are kept back then, and what has
 * come of them is told in front of ReadyForQuery. Not under startup_parameters=strict, and not for replication, whose
 * servers have begun with what their clients want.
 */
#ifndef PGUSHER_SESSION_RULES_RESTORE_H
#define PGUSHER_SESSION_RULES_RESTORE_H

#include "session/relay/relay.h"

/* A paired server's whole CommandComplete has come: does its tag say that something was reset? */
void restore_note_command(const struct relay_run *run);

/* Is what the server reports under this name kept back, since it may yet be restored? */
bool restore_keeps_report(const struct relay_run *run, const char *name);

/* A whole ReadyForQuery from a server whose client has said RESET since the last that ended all. */
enum verdict restore_judge_ready(struct relay_run *run);

#endif
