/* SPDX-License-Identifier: ISC */
/*
 * One message of the extended protocol being handled, and the errors that answer it. SQLSTATEs
 * and texts are PostgreSQL's.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_EXTENDED_CALL_H
#define PGUSHER_ADMIN_CONSOLE_EXTENDED_CALL_H

#include "admin/console/extended.h"
#include "wire/message.h"
#include "wire/reader.h"

struct extended_call {
	struct extended *extended;
	struct client_link *client;
	struct reader reader; /* of the message's body */
	struct buffer *out;
};

/*
 * Append an error to the answer and skip messages up to the next Sync. All return COMMAND_DONE,
 * so that a handler can return their result.
 */
enum command_end extended_call_fail(struct extended_call *call, const char *sqlstate,
	const char *format, ...) __attribute__((format(printf, 3, 4)));
enum command_end extended_call_fail_as_malformed(struct extended_call *call);
enum command_end extended_call_fail_without_portal(
	struct extended_call *call, const char *name);

/* Append a message without a body. */
void extended_call_write(struct extended_call *call, enum server_message type);

#endif
