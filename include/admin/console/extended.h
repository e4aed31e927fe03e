/* SPDX-License-Identifier: ISC */
/*
 * The extended protocol on the console: statements and portals of one client, answered as by a
 * PostgreSQL server.
 *
 * Parse checks a command, Execute runs it; parameters are not supported. Sync drops portals,
 * except in a transaction block.
 * After an error all messages up to the next Sync are skipped. Protocol: "Message Flow",
 * Extended Query. Answers are appended to a buffer, which admin/console/console sends.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_EXTENDED_H
#define PGUSHER_ADMIN_CONSOLE_EXTENDED_H

#include "admin/console/commands.h"
#include "admin/console/prepared.h"

struct extended {
	struct prepared prepared;
	bool is_skipping; /* up to the next Sync */
	struct console_portal *running; /* its rows are being built; NULL: no portal */
	uint32_t wanted; /* rows of `running` that are still to be sent; 0: all */
};

/* Is this a type of message of the extended protocol? */
bool extended_handles(uint8_t type);

/*
 * Handle such a message. The command that it runs may close the client. With COMMAND_WAITS the
 * answer that is sent later is CommandComplete or an error, without ReadyForQuery.
 */
enum command_end extended_take(struct extended *extended, struct client_link *client,
	uint8_t type, const uint8_t *body, size_t length, struct buffer *out);

/*
 * Build the next slice of the rows that an Execute waits for. To be called while
 * extended_take() or this function returned COMMAND_CONTINUES.
 */
enum command_end extended_continue(
	struct extended *extended, struct client_link *client, struct buffer *out);

/* The answer that was sent later was an error: skip to the next Sync. */
void extended_fail(struct extended *extended);

/*
 * A simple query: drop the unnamed statement and all portals, in a transaction block only the
 * unnamed portal.
 */
void extended_interrupt(struct extended *extended, bool in_transaction);

/* Free all statements and portals. */
void extended_free(struct extended *extended);

#endif
