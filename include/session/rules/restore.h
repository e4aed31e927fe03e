/* SPDX-License-Identifier: ISC */
/*
 * Sets the startup parameters of a client again after its RESET: as with PostgreSQL, RESET
 * restores the values of the StartupMessage.
 *
 * The server session has begun with other values. So after a RESET or DISCARD ALL that may have
 * changed startup parameters, ReadyForQuery is delayed: a query of our own sets again the
 * parameters that the session has not SET itself (parameters/restore_query). This is done
 * outside of transactions only, since the query is a transaction; until then the client gets
 * the reports that the server sends.
 *
 * The server has the rules relay_reset_server from the CommandComplete on, and
 * relay_restoring_server while our query runs. Meanwhile reports of startup parameters are
 * withheld; changes are reported before ReadyForQuery. Nothing is restored with
 * startup_parameters=strict, or for replication, where the server session has begun with the
 * values of the client.
 */
#ifndef PGUSHER_SESSION_RULES_RESTORE_H
#define PGUSHER_SESSION_RULES_RESTORE_H

#include "session/relay/relay.h"

/* Note whether a text of the client, which ends at its first NUL, may be SET ... TO DEFAULT. */
void restore_note_text(const struct relay_run *run, const char *text, size_t length);

/*
 * For a whole CommandComplete of a paired server: if its tag is RESET or DISCARD ALL, or SET behind
 * such a text, and the client has startup parameters, change the rules of the server to
 * relay_reset_server.
 */
void restore_note_command(const struct relay_run *run);

/*
 * Returns true if reports of this parameter are withheld from the client until ReadyForQuery.
 */
bool restore_withholds_report(const struct relay_run *run, const char *name);

/*
 * Judges a whole ReadyForQuery of a server with the rules relay_reset_server: sends the query
 * if it is needed, else passes the message on after the withheld reports.
 */
enum verdict restore_judge_ready(struct relay_run *run);

#endif
