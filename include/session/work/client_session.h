/* SPDX-License-Identifier: ISC */
/*
 * A client that has logged in, between its events and the relay.
 */
#ifndef PGUSHER_SESSION_WORK_CLIENT_SESSION_H
#define PGUSHER_SESSION_WORK_CLIENT_SESSION_H

#include "model/client_link.h"

/* How the stream of a logged-in client reports. */
extern const struct stream_handlers client_session_handlers;

/* The same, for one that is to come to rest: see session/work/suspend. */
extern const struct stream_handlers client_suspend_handlers;

/* How the stream of a console client reports: to the hooks of the registry. */
extern const struct stream_handlers client_console_handlers;

/*
 * The login is over: from now on its messages are for a server. State becomes IDLE; what it holds
 * has to be taken up (relay_client_resume()).
 */
void client_session_begin(struct client_link *client);

#endif
