/* SPDX-License-Identifier: ISC */
/* The events of clients that have logged in. */
#ifndef PGUSHER_SESSION_SERVING_CLIENT_SESSION_H
#define PGUSHER_SESSION_SERVING_CLIENT_SESSION_H

#include "model/client_link.h"

/* The stream handlers of a client that has logged in. */
extern const struct stream_handlers client_session_handlers;

/* The same during a SUSPEND: see serving/suspend. */
extern const struct stream_handlers client_suspend_handlers;

/* The stream handlers of a console client: they call process.console. */
extern const struct stream_handlers client_console_handlers;

/*
 * The login is over: the client is IDLE, and its messages go to servers. The caller has to call
 * relay_client_resume() for messages that have arrived already.
 */
void client_session_begin(struct client_link *client);

#endif
