/* SPDX-License-Identifier: ISC */
/*
 * Answers the SQL of drivers and tools (admin/console/driver_sql) as PostgreSQL does, although the
 * console has neither transactions nor parameters: BEGIN and COMMIT change the status that
 * ReadyForQuery reports and how long portals live, SET has no effect.
 *
 * An error in a transaction block does not end it, because commands of the console take effect at
 * once and are not undone by ROLLBACK.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_DRIVER_ANSWER_H
#define PGUSHER_ADMIN_CONSOLE_DRIVER_ANSWER_H

#include "admin/console/driver_sql.h"
#include "model/client_link.h"

/*
 * Append the answers to all statements of a text that driver_sql_is_known() has accepted.
 * `options` may be NULL.
 */
void driver_answer_write(struct client_link *client, const char *text,
	const struct result_options *options, struct buffer *out);

#endif
