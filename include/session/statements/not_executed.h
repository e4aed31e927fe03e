/* SPDX-License-Identifier: ISC */
/*
 * Whether a server has run anything of messages that came to it in a failed transaction.
 *
 * It has not, but for what ends the transaction, and what comes behind that.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_NOT_EXECUTED_H
#define PGUSHER_SESSION_STATEMENTS_NOT_EXECUTED_H

#include "base/buffer.h"
#include "model/client_link.h"

/* Is it certain that nothing was run of these messages of the client's? Looks at each byte. */
bool not_executed_is_certain(const struct client_link *client, const struct buffer *messages);

#endif
