/* SPDX-License-Identifier: ISC */
/*
 * The console's errors and notices.
 *
 * An error is appended to the client's answer and logged twice, as PgBouncer does: the bare
 * text, and as the pooler error of this client.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_REPLY_H
#define PGUSHER_ADMIN_CONSOLE_REPLY_H

#include "base/buffer.h"
#include "model/client_link.h"

/* SQLSTATE of errors that have no SQLSTATE of their own. */
#define CONSOLE_SQLSTATE "08P01"

/*
 * Append an ErrorResponse of severity ERROR, after which the connection continues. A very long
 * text is cut.
 */
void reply_error(struct buffer *out, const struct client_link *client, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with this SQLSTATE, and a hint, which may be NULL and is not logged. */
void reply_error_as(struct buffer *out, const struct client_link *client, const char *sqlstate,
	const char *text, const char *hint);

/* Append a NoticeResponse; `detail` may be NULL. */
void reply_notice(struct buffer *out, const char *text, const char *detail);

#endif
