/* SPDX-License-Identifier: ISC */
/*
 * The short answers of the console: errors and notices.
 *
 * An error is written to the client's buffer and logged, twice: bare, and as the pooler error
 * of this client.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_REPLY_H
#define PGUSHER_ADMIN_CONSOLE_REPLY_H

#include "base/buffer.h"
#include "model/client_link.h"

/* SQLSTATE of the console's errors, unless something else is said. */
#define CONSOLE_SQLSTATE "08P01"

/* ErrorResponse, severity ERROR; the connection goes on. What is very long is cut. */
void reply_error(struct buffer *out, const struct client_link *client, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void reply_error_as(struct buffer *out, const struct client_link *client, const char *sqlstate,
	const char *text);

/* NoticeResponse; `detail` may be NULL. */
void reply_notice(struct buffer *out, const char *text, const char *detail);

#endif
