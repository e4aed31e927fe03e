/* SPDX-License-Identifier: ISC */
/*
 * What the TLS connections of a loop use in turn, each only within one call: none of it belongs
 * to a connection. Made when the first one comes.
 */
#ifndef PGUSHER_NET_TLS_BUFFERS_H
#define PGUSHER_NET_TLS_BUFFERS_H

#include <stdint.h>

#include "base/buffer.h"
#include "net/loop.h"

enum {
	TLS_RECEIVED_SIZE = LOOP_RECEIVE_SIZE,
	TLS_JOINED_MAX = 16 * 1024, /* as much as one record takes. RFC 8446 section 5.1 */
};

struct tls_buffers {
	struct buffer sealed; /* records that are to be sent */
	struct buffer joined; /* small pieces that make one record */
	uint8_t received[TLS_RECEIVED_SIZE]; /* records as they came */
};

/* The loop's own; NULL without memory. */
struct tls_buffers *tls_buffers_of(struct loop *loop);

/* Make room for new records to send; what has grown out of proportion is given back. */
void tls_buffers_clear(struct tls_buffers *buffers);

/* Free and wipe; NULL is fine. */
void tls_buffers_free(struct tls_buffers *buffers);

#endif
