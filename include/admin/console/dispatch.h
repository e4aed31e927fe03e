/* SPDX-License-Identifier: ISC */
/*
 * Parses the text of a command, checks the client's right to give it, and runs it.
 *
 * Answers are appended to a buffer, without ReadyForQuery. admin/console/console sends them;
 * admin/console/extended keeps statements and portals.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_DISPATCH_H
#define PGUSHER_ADMIN_CONSOLE_DISPATCH_H

#include "admin/console/commands.h"

/*
 * Is the text a command, whether or not the client has the right to give it? Sets `topic` to
 * the topic of a SHOW, else to NULL. Returns false after appending the error to `out`.
 */
bool dispatch_check(struct client_link *client, const char *text, const struct topic **topic,
	struct buffer *out);

/*
 * Run the command in this text and append its answer to `out`. `options` may be NULL. With
 * COMMAND_CONTINUES `show` is set to the stream of the remaining answer, which the caller
 * frees; else to NULL. The command may close the client.
 */
enum command_end dispatch_run(struct client_link *client, const char *text,
	const struct result_options *options, struct buffer *out, struct show_stream **show);

#endif
