/* SPDX-License-Identifier: ISC */
/*
 * The extended protocol on the console: statements and portals of one client, answered as a
 * PostgreSQL server that is never in a transaction block would.
 *
 * A command is checked at Parse and done at Execute; there are no parameters. Portals end at
 * Sync. An error skips what follows up to the next Sync. Protocol: "Message Flow", Extended
 * Query. Answers go into a buffer; when they are sent is for admin/console/console.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_EXTENDED_H
#define PGUSHER_ADMIN_CONSOLE_EXTENDED_H

#include "admin/console/commands.h"
#include "admin/console/prepared.h"

struct extended {
	struct prepared prepared;
	bool is_skipping; /* up to the next Sync */
	struct console_portal *running; /* whose rows are being built; NULL: none */
	uint32_t wanted; /* rows of it that are still to be sent; 0: all */
};

/* Is this a message of the extended protocol? */
bool extended_knows(uint8_t type);

/*
 * Deal with such a message. As dispatch_run() it may close the client, and says if an answer is
 * still to come, which is CommandComplete or an error without ReadyForQuery.
 */
enum command_end extended_take(struct extended *extended, struct client_link *client,
	uint8_t type, const uint8_t *body, size_t length, struct buffer *out);

/*
 * Build another slice of the rows that an Execute waits for, when extended_take() or this has said
 * COMMAND_GOES_ON; and say so again as long as more are wanted.
 */
enum command_end extended_go_on(
	struct extended *extended, struct client_link *client, struct buffer *out);

/* The answer that was still to come was an error. */
void extended_fail(struct extended *extended);

/* A simple query ends the unnamed statement and all portals. */
void extended_interrupt(struct extended *extended);

/* Give all memory back. */
void extended_free(struct extended *extended);

#endif
