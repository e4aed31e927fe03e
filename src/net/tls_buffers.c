/* SPDX-License-Identifier: ISC */
#include "net/tls_buffers.h"

#include <stdlib.h>
#include <string.h>

/* Enough to encrypt what one receive brings, twice over. */
enum { SEALED_KEPT = 4 * LOOP_RECEIVE_SIZE };

struct tls_buffers *tls_buffers_of(struct loop *loop)
{
	if (!loop->tls_buffers) {
		loop->tls_buffers = malloc(sizeof(*loop->tls_buffers));
		if (loop->tls_buffers) {
			buffer_init(&loop->tls_buffers->sealed);
			buffer_init_secret(&loop->tls_buffers->joined);
		}
	}
	return loop->tls_buffers;
}

void tls_buffers_clear(struct tls_buffers *buffers)
{
	if (buffers->sealed.failed || buffers->sealed.capacity > SEALED_KEPT)
		buffer_free(&buffers->sealed);
	buffer_clear(&buffers->sealed);
}

void tls_buffers_free(struct tls_buffers *buffers)
{
	if (!buffers)
		return;
	buffer_free(&buffers->sealed);
	buffer_free(&buffers->joined);
	free(buffers);
}
