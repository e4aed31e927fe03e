/* SPDX-License-Identifier: ISC */
/*
 * Execute: runs the command of a portal and sends as many rows of its answer as the client asks
 * for. Protocol: "Message Flow", Extended Query; "Message Formats", Execute.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_EXECUTE_H
#define PGUSHER_ADMIN_CONSOLE_EXECUTE_H

#include "admin/console/extended_call.h"

/* Handle an Execute. The command may close the client. */
enum command_end execute_message(struct extended_call *call);

/* Build and send the next slice of the portal that is running. */
enum command_end execute_continue(struct extended_call *call);

#endif
