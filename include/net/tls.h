/* SPDX-License-Identifier: ISC */
/*
 * A stream that speaks TLS: tls_accept() and tls_connect() turn an open plain stream into one, and
 * whoever receives and sends does not notice.
 *
 * The kernel is asked once each way for whatever happens to be there: what was received is
 * decrypted to its end before stream_receive() returns, so that nothing lies in OpenSSL that no
 * event would tell of, and what is sent leaves in one call, whatever number of records it takes.
 * Both buffers are the loop's; a connection keeps only OpenSSL's own state.
 */
#ifndef PGUSHER_NET_TLS_H
#define PGUSHER_NET_TLS_H

#include "net/stream.h"
#include "net/tls_context.h"

enum {
	TLS_TEXT_SIZE = 128, /* of tls_text() */
	TLS_BINDING_MAX = 64, /* the longest digest */
};

/*
 * Be the TLS server on an open plain stream, from its next byte on. The context is kept. What
 * a client sent is received only when the handshake is done. False: no memory, nothing changed.
 */
bool tls_accept(struct stream *stream, struct tls_context *context);

/*
 * What was received before tls_accept() was TLS already: decrypt these bytes in their place, as
 * stream_receive() would have. `size` is the room there. Returns what that returns.
 */
ssize_t tls_receive_again(struct stream *stream, uint8_t *data, size_t length, size_t size);

/*
 * Be the TLS client, and begin the handshake. `name` is what was connected to, for SNI and, if the
 * context says so, to be compared with the certificate; NULL on a socket that has none. `direct`:
 * nobody has agreed to speak TLS beforehand, so the protocol is named (ALPN). handlers->secured
 * follows, or an error from stream_receive(). False: no memory, or the peer is gone.
 */
bool tls_connect(
	struct stream *stream, struct tls_context *context, const char *name, bool direct);

/* `TLSv1.3/TLS_AES_128_GCM_SHA256`, or an empty text for a plain stream. Returns out. */
const char *tls_text(const struct stream *stream, char out[TLS_TEXT_SIZE]);

/*
 * Why the last receive said STREAM_BROKEN: OpenSSL's words, or ours. NULL: not for a reason of TLS.
 * Lent until the stream is closed.
 */
const char *tls_error(const struct stream *stream);

/* Is the handshake still under way? False on a plain stream. */
bool tls_is_shaking_hands(const struct stream *stream);

/*
 * The digest of the server's certificate, ours or the peer's (RFC 5929, tls-server-end-point).
 * Returns its length; 0: there is none.
 */
size_t tls_end_point(const struct stream *stream, uint8_t out[TLS_BINDING_MAX]);

/* Has the peer shown a certificate? A bad one has ended the handshake. */
bool tls_has_peer_certificate(const struct stream *stream);

/*
 * Does the peer's certificate name exactly this: as its common name, or as a DNS name in
 * SubjectAltName? Names with a NUL in them never do.
 */
bool tls_peer_is(const struct stream *stream, const char *name);

/* Does `wanted` say true to any of those names? */
typedef bool tls_name_function(const char *name, const void *context);
bool tls_peer_has_name(
	const struct stream *stream, tls_name_function *wanted, const void *context);

#endif
