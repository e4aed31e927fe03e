/* SPDX-License-Identifier: ISC */
/*
 * Reads from a server's catalog which functions of its database may change the session, and what
 * calls them: model/state/session_functions. No word and no tag of a SELECT tells of them.
 *
 * It is one query by pgusher, on the first server of a database before its first client, and on a
 * server that is free: after a transaction that may have changed functions, and once in
 * session_functions_refresh while the database is in use.
 */
#ifndef PGUSHER_SESSION_STATE_FUNCTIONS_H
#define PGUSHER_SESSION_STATE_FUNCTIONS_H

#include "model/pool.h"
#include "model/server_link.h"
#include "wire/report.h"
#include "wire/row.h"

/*
 * Begin to read them on this server, which is free (IDLE, or PAIRED or ASKING before without a client
 * now), if that is due. Returns true if it is ASKING now, or CLOSED because nothing can be sent.
 */
bool functions_read(struct server_link *server);

/* Does a server of the pool read them for the first time? It is free soon. */
bool functions_are_read(const struct pool *pool);

/* A row of the answer: its letter, its name and its value. */
void functions_take_row(struct server_link *server, const struct row_value row[3]);

/* A row has another shape: the server is not PostgreSQL, and has no list. */
void functions_not_read(struct server_link *server);

/* The server has answered by an error. */
void functions_refused(struct server_link *server, const struct report *report);

/* The query has ended: the list is that of the answer. */
void functions_done(struct server_link *server);

/* The server is closed: another one may read them. */
void functions_server_closed(struct server_link *server);

/*
 * The server's client has run a command with this tag, in a transaction that may be open. Returns
 * whether it may have changed functions, or what calls them: every session may be changed by it then.
 */
bool functions_note_tag(struct server_link *server, const char *tag);

/* The server's transaction has ended, so what it has changed can be read. */
void functions_settle(struct server_link *server);

/* Have the pool's servers read the functions when that is due. Called several times a second. */
void functions_upkeep(struct pool *pool);

#endif
