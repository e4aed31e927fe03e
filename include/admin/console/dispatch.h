/* SPDX-License-Identifier: ISC */
/*
 * Parses the text of a command, checks the client's right to give it, and runs it. What is no
 * command of the console may be SQL that drivers send (admin/console/driver_sql).
 *
 * Answers are appended to a buffer, without ReadyForQuery. admin/console/console sends them;
 * admin/console/extended keeps statements and portals.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_DISPATCH_H
#define PGUSHER_ADMIN_CONSOLE_DISPATCH_H

#include "admin/console/commands.h"
#include "admin/console/prepared.h"

/*
 * Is the text a command, whether or not the client has the right to give it? Sets `shape` to what
 * the command returns. Returns false after appending the error to `out`.
 */
bool dispatch_check(struct client_link *client, const char *text, struct answer_shape *shape,
	struct buffer *out);

/*
 * Append the RowDescription of a text that dispatch_check() has accepted, or NoData; bit N of
 * `binary` is set if column N comes in binary format.
 */
void dispatch_describe(
	struct client_link *client, const char *text, uint64_t binary, struct buffer *out);

/*
 * Run the command in this text and append its answer to `out`. `options` may be NULL. With
 * COMMAND_CONTINUES `show` is set to the stream of the remaining answer, which the caller
 * frees; else to NULL. The command may close the client.
 */
enum command_end dispatch_run(struct client_link *client, const char *text,
	const struct result_options *options, struct buffer *out, struct show_stream **show);

#endif
