/* SPDX-License-Identifier: ISC */
/*
 * What a client gets when it has logged in to the console: AuthenticationOk, parameters, cancel
 * key and ReadyForQuery. Protocol: "Message Flow", Start-up.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_CONSOLE_WELCOME_H
#define PGUSHER_ADMIN_CONSOLE_CONSOLE_WELCOME_H

#include "model/client_link.h"

/* Append the messages to `out`. */
void console_welcome_write(const struct client_link *client, struct buffer *out);

#endif
