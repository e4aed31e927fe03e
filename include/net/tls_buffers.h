/* SPDX-License-Identifier: ISC */
/*
 * Buffers that all TLS connections of a loop share: a connection uses them only within one
 * call. Allocated for the first TLS connection.
 */
#ifndef PGUSHER_NET_TLS_BUFFERS_H
#define PGUSHER_NET_TLS_BUFFERS_H

#include <stdint.h>

#include "base/buffer.h"
#include "net/loop.h"

enum {
	TLS_RECEIVED_SIZE = LOOP_RECEIVE_SIZE,
	TLS_JOINED_MAX = 16 * 1024, /* the most that a record can hold. RFC 8446 section 5.1 */
};

struct tls_buffers {
	struct buffer sealed; /* encrypted records to be sent */
	struct buffer joined; /* small pieces to be sent in one record */
	uint8_t received[TLS_RECEIVED_SIZE]; /* encrypted records from the kernel */
};

/* Returns the loop's buffers, owned by the loop; NULL when out of memory. */
struct tls_buffers *tls_buffers_of(struct loop *loop);

/* Empty `sealed` before new records; free its memory if it has grown very large. */
void tls_buffers_clear(struct tls_buffers *buffers);

/* Free the buffers, and wipe the plain text in them. NULL is allowed. */
void tls_buffers_free(struct tls_buffers *buffers);

#endif
