/* SPDX-License-Identifier: ISC */
/*
 * Passes open descriptors to another process, over a Unix socket: messages, each of which may
 * have a descriptor with it (unix(7), SCM_RIGHTS). One message is one sendmsg(), so that whoever
 * receives gets a message and its descriptor in one piece.
 *
 * Nobody waits for the other side: what the socket does not take now is sent when it has room.
 * The descriptors stay ours, and open.
 */
#ifndef PGUSHER_NET_PASSING_H
#define PGUSHER_NET_PASSING_H

#include "net/loop.h"

struct passing;

/* All is sent, or (false) the other side is gone. Never called from inside of another call. */
typedef void passing_function(void *context, bool sent);

/* Nothing yet, to be sent over this non-blocking socket. NULL: no memory. */
struct passing *passing_new(
	struct loop *loop, int socket, passing_function *done, void *context);

/* One more message, which is copied, and a descriptor (-1: none). False: no memory. */
bool passing_add(struct passing *passing, const void *message, size_t length, int fd);

/* Send, from the next turn on; nothing is added any more. False: no memory. */
bool passing_begin(struct passing *passing);

/* Forget what was not sent. NULL is allowed. */
void passing_free(struct passing *passing);

#endif
