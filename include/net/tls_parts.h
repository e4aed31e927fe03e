/* SPDX-License-Identifier: ISC */
/* What the bodies of net/tls share, and nobody else: an encrypted stream as it is. */
#ifndef PGUSHER_NET_TLS_PARTS_H
#define PGUSHER_NET_TLS_PARTS_H

#include <openssl/ssl.h>

#include "net/tls.h"
#include "net/tls_buffers.h"

enum { TLS_ERROR_SIZE = 160 };

struct tls {
	SSL *ssl;
	struct tls_context *context; /* counted */
	struct tls_buffers *buffers; /* the loop's */
	const uint8_t *in; /* received and not yet read by OpenSSL; only within a receive */
	size_t in_length;
	char *name; /* to be found in the server's certificate; NULL: any will do */
	bool shaking_hands;
	usec_t begun; /* when the handshake began */
	bool ended; /* no more comes: close_notify, or the end of the connection */
	char error[TLS_ERROR_SIZE]; /* empty: none */
};

/* --- src/net/tls_certificate.c ------------------------------------------------------------ */

/* Is it an address rather than a name? */
bool tls_is_address(const char *name);

/* Is this the certificate of what was connected to by that name, or address? */
bool tls_bears_name(X509 *certificate, const char *name);

#endif
