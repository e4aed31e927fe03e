/* SPDX-License-Identifier: ISC */
/*
 * The messages that a console receives: simple queries and the extended protocol run commands,
 * all other messages end the session. Protocol: "Message Flow", Simple Query and Extended
 * Query.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_CONSOLE_MESSAGES_H
#define PGUSHER_ADMIN_CONSOLE_CONSOLE_MESSAGES_H

#include "admin/console/console_session.h"

/*
 * Handle the message at the beginning of these bytes. Returns its length; 0 if it is incomplete
 * or if the client was closed. A command may close the client and still count as handled.
 */
size_t console_messages_take(
	struct console_session *session, const uint8_t *bytes, size_t length);

/*
 * Build and send the next slice of the SHOW that is being answered, if there is one and the
 * client reads its answers. Returns false if the client was closed.
 */
bool console_messages_continue(struct console_session *session);

/* Free the SHOW and the descriptors that are being sent: the client is being closed. */
void console_messages_abort(struct console_session *session);

#endif
