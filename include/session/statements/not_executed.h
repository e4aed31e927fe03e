/* SPDX-License-Identifier: ISC */
/*
 * Tells whether a server executes messages that it gets in a failed transaction.
 *
 * The server refuses all of them, except a command that ends the transaction; what follows such a
 * command, in the same text or in later messages, is executed.
 */
#ifndef PGUSHER_SESSION_STATEMENTS_NOT_EXECUTED_H
#define PGUSHER_SESSION_STATEMENTS_NOT_EXECUTED_H

#include "model/client_link.h"

/*
 * Returns true if a server in a failed transaction certainly executes none of these messages of
 * the client; an end of the transaction does not count if nothing follows it. The last message may
 * be incomplete: the server does not begin it.
 */
bool not_executed_is_certain(
	const struct client_link *client, const uint8_t *messages, size_t length);

#endif
