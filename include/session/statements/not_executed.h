/* SPDX-License-Identifier: ISC */
/*
 * Checks whether a server may have executed messages that it received in a failed transaction.
 *
 * The server refuses all of them, except a command that ends the transaction, and those after
 * it.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_NOT_EXECUTED_H
#define PGUSHER_SESSION_STATEMENTS_NOT_EXECUTED_H

#include "base/buffer.h"
#include "model/client_link.h"

/*
 * Returns true if the server has certainly executed none of these messages, which it received
 * from the client in a failed transaction. Reads every byte of them.
 */
bool not_executed_is_certain(const struct client_link *client, const struct buffer *messages);

#endif
