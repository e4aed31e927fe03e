/* SPDX-License-Identifier: ISC */
/*
 * Sends messages with open descriptors to another process over a Unix socket (unix(7),
 * SCM_RIGHTS). Each message, with its descriptor, is one sendmsg(), so that the receiver gets
 * both together.
 *
 * Sending does not block: what the socket does not take now is sent when it has room. The
 * descriptors stay open in this process; the caller still owns them.
 */
#ifndef PGUSHER_NET_PASSING_H
#define PGUSHER_NET_PASSING_H

#include "net/loop.h"

struct passing;

/*
 * Sending has ended: `sent` is true when all messages are sent, false when the socket failed.
 * Called once, from the event loop; it may free the passing.
 */
typedef void passing_function(void *context, bool sent);

/*
 * Start an empty list of messages for this non-blocking socket, which the caller still owns.
 * Returns NULL when out of memory.
 */
struct passing *passing_new(
	struct loop *loop, int socket, passing_function *done, void *context);

/*
 * Append a message, which is copied, with a descriptor (-1: none), which must stay open until
 * it is sent. Returns false when out of memory.
 */
bool passing_add(struct passing *passing, const void *message, size_t length, int fd);

/* Start sending, in the next turn; no message may be added after this. False: out of memory. */
bool passing_begin(struct passing *passing);

/* Free it and wipe the messages; those not sent are dropped. NULL is allowed. */
void passing_free(struct passing *passing);

#endif
