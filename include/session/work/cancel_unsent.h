/* SPDX-License-Identifier: ISC */
/*
 * Cancels a query that waits for a server: pgusher itself sends the ErrorResponse.
 *
 * No server has received any of the query, so its messages are dropped, in the extended
 * protocol up to its Sync, which may arrive later. The session continues.
 */
#ifndef PGUSHER_SESSION_WORK_CANCEL_UNSENT_H
#define PGUSHER_SESSION_WORK_CANCEL_UNSENT_H

#include "model/client_link.h"

/*
 * End the query of a client with an error. The client is WAITING or LAUNCHING, PAIRED with a
 * server that runs our SETs first, or IDLE after such a server was closed. The next messages of
 * the client are handled before this returns, so the contents of the loop's buffer are lost.
 * The client may be closed.
 */
void cancel_unsent_answer(struct client_link *client);

#endif
