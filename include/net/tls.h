/* SPDX-License-Identifier: ISC */
/*
 * Streams with TLS: tls_accept() and tls_connect() turn an open plain stream into an encrypted
 * one; callers receive and send as before.
 *
 * stream_receive() makes one system call and decrypts all bytes that it got before it returns,
 * so that OpenSSL holds no decrypted bytes that no event would report. stream_send() makes one
 * system call too, for any number of records. The buffers belong to the loop; a connection has
 * only the state of OpenSSL.
 */
#ifndef PGUSHER_NET_TLS_H
#define PGUSHER_NET_TLS_H

#include "net/stream.h"
#include "net/tls_context.h"

enum {
	TLS_TEXT_SIZE = 128, /* of tls_text() */
	TLS_BINDING_MAX = 64, /* bytes of the longest digest */
};

/*
 * Be the TLS server on an open plain stream, from its next byte on. The stream takes a
 * reference to the context. stream_receive() returns STREAM_AGAIN until the handshake is done.
 * Returns false when out of memory; the stream is then unchanged.
 */
bool tls_accept(struct stream *stream, struct tls_context *context);

/*
 * Decrypt bytes that were received before tls_accept() but belong to TLS already, in place:
 * `data` has `length` bytes and room for `size`. Returns what stream_receive() would return.
 */
ssize_t tls_receive_again(struct stream *stream, uint8_t *data, size_t length, size_t size);

/*
 * Be the TLS client, and begin the handshake. `name` is the host that the stream is connected
 * to, NULL for a socket without one: it is sent as SNI, and compared with the certificate if
 * the context says so. `direct`: TLS starts without an SSLRequest, so ALPN is sent.
 * handlers->secured is called later, or stream_receive() returns STREAM_BROKEN. Returns false
 * when out of memory or when sending fails.
 */
bool tls_connect(
	struct stream *stream, struct tls_context *context, const char *name, bool direct);

/*
 * Writes `TLSv1.3/TLS_AES_128_GCM_SHA256`, or an empty text for a plain stream. Returns `out`.
 */
const char *tls_text(const struct stream *stream, char out[TLS_TEXT_SIZE]);

/*
 * Returns why the last receive returned STREAM_BROKEN, in OpenSSL's words or ours; NULL when
 * TLS was not the reason. Valid until the stream is closed.
 */
const char *tls_error(const struct stream *stream);

/* Returns whether the handshake is not done yet; false on a plain stream. */
bool tls_is_shaking_hands(const struct stream *stream);

/*
 * Write the digest of the TLS server's certificate, ours or the peer's (RFC 5929,
 * tls-server-end-point). Returns its length; 0 when there is none.
 */
size_t tls_end_point(const struct stream *stream, uint8_t out[TLS_BINDING_MAX]);

/* Returns whether the peer has sent a certificate. An invalid one has ended the handshake. */
bool tls_has_peer_certificate(const struct stream *stream);

/*
 * Returns whether the peer's certificate has exactly this name, as its common name or as a DNS
 * name in SubjectAltName. Always false for a certificate that has a name with a NUL in it.
 */
bool tls_peer_is(const struct stream *stream, const char *name);

/* Returns whether `wanted` returns true for any of those names. */
typedef bool tls_name_function(const char *name, const void *context);
bool tls_peer_has_name(
	const struct stream *stream, tls_name_function *wanted, const void *context);

#endif
