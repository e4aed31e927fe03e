/* SPDX-License-Identifier: ISC */
/*
 * Finds out what a text asks the console for, whether whoever asks may have it, and has the
 * command done.
 *
 * What there is to say goes into a buffer, without ReadyForQuery; sockets and framing are
 * admin/console/console's affair, statements and portals admin/console/extended's.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_DISPATCH_H
#define PGUSHER_ADMIN_CONSOLE_DISPATCH_H

#include "admin/console/commands.h"

struct topic;

/*
 * Is the text a command, whoever may give it? Sets `topic` to what is shown, or NULL. False: the
 * error has been appended to `out`.
 */
bool dispatch_check(struct client_link *client, const char *text, const struct topic **topic,
	struct buffer *out);

/*
 * Run the command in this text; the answer is appended to `out`. `wish` may be NULL. `telling` is
 * set to what follows, the caller's from then on, if the answer is COMMAND_GOES_ON, else to NULL.
 */
enum command_end dispatch_run(struct client_link *client, const char *text,
	const struct result_wish *wish, struct buffer *out, struct telling **telling);

#endif
