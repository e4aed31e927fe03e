/* SPDX-License-Identifier: ISC */
/*
 * The question for the role of a server's host, on a connection that serves no client at the moment:
 * the one that watches the host, one that logs in or one that is checked before its use.
 *
 * PostgreSQL: pg_is_in_recovery(), default_transaction_read_only, pg_control_system(), the position of
 * its WAL. A server that refuses the whole question is asked for its role alone the next time, and one
 * that refuses that too only whether it answers.
 */
#ifndef PGUSHER_SESSION_SERVER_HOST_PROBE_H
#define PGUSHER_SESSION_SERVER_HOST_PROBE_H

#include "model/registry.h"
#include "wire/report.h"
#include "wire/row.h"

enum { HOST_PROBE_COLUMNS = 7 };

/* Send the question. Returns false if the server was closed. */
bool host_probe_send(struct server_link *server);

/* The server answers with a row of so many columns, or ROW_MALFORMED; values has the first ones. */
void host_probe_take_row(struct server_link *server, int columns,
	const struct row_value values[HOST_PROBE_COLUMNS]);

/* The server refuses the question. */
void host_probe_refused(struct server_link *server, const struct report *report);

#endif
