/* SPDX-License-Identifier: ISC */
/*
 * Sends the answer to SHOW FDS to a process that takes over: each row with the descriptor that
 * its first column names.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_PASS_ROWS_H
#define PGUSHER_ADMIN_CONSOLE_PASS_ROWS_H

#include "base/buffer.h"
#include "net/passing.h"
#include "net/stream.h"

/*
 * Start to send these messages, which are copied, over the stream's Unix socket. `done` is
 * called with `context` when all are sent or the client has disconnected; then the caller frees
 * the result, which it may do earlier too. Returns NULL when out of memory.
 */
struct passing *pass_rows_begin(struct stream *stream, const struct buffer *messages,
	passing_function *done, void *context);

#endif
