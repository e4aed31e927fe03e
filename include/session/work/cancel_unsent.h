/* SPDX-License-Identifier: ISC */
/*
 * A query that is cancelled while it still waits for a server: its client is answered by us.
 *
 * Nothing of it has reached a server, so what is left of it is only skipped, in the extended
 * protocol up to its Sync, which may come later. The session goes on.
 */
#ifndef PGUSHER_SESSION_WORK_CANCEL_UNSENT_H
#define PGUSHER_SESSION_WORK_CANCEL_UNSENT_H

#include "model/client_link.h"

/*
 * End the query of a client (WAITING, or PAIRED with a server that is still being prepared for it)
 * with an error; may close the client. It runs the client's next messages, so nothing that lies in
 * the loop's buffer may be needed any more.
 */
void cancel_unsent_answer(struct client_link *client);

#endif
