/* SPDX-License-Identifier: ISC */
/* The state of an encrypted stream; private to the files of net/tls. */
#ifndef PGUSHER_NET_TLS_PARTS_H
#define PGUSHER_NET_TLS_PARTS_H

#include <openssl/ssl.h>

#include "net/tls.h"
#include "net/tls_buffers.h"

enum { TLS_ERROR_SIZE = 160 };

struct tls {
	SSL *ssl;
	struct tls_context *context; /* a reference of this stream */
	struct tls_buffers *buffers; /* owned by the loop */
	const uint8_t
		*in; /* received and not yet read by OpenSSL; used within a receive only */
	size_t in_length;
	struct buffer
		spare; /* decrypted, and longer than the caller of a receive had room for */
	char *name; /* required in the server's certificate; NULL: not checked */
	bool shaking_hands; /* the handshake is not done */
	usec_t begun; /* start of the handshake */
	bool ended; /* close_notify was received */
	char error[TLS_ERROR_SIZE]; /* see tls_error(); empty: none */
};

/* --- src/net/tls_certificate.c ------------------------------------------------------------ */

/* Returns whether this is an IP address, not a host name. */
bool tls_is_address(const char *name);

/* Returns whether the certificate is valid for a server with this host name or IP address. */
bool tls_certificate_has_name(X509 *certificate, const char *name);

#endif
