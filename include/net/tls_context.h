/* SPDX-License-Identifier: ISC */
/*
 * The TLS configuration of all connections of one side: certificate, key, certificate
 * authorities, protocol versions, ciphers. A context is made from files and never changed; a
 * reload makes a new one, and existing connections keep theirs. The loops of a process share contexts.
 */
#ifndef PGUSHER_NET_TLS_CONTEXT_H
#define PGUSHER_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/references.h"

enum tls_side { TLS_TOWARDS_CLIENTS, TLS_TOWARDS_SERVERS };

/* How a peer's certificate is verified. */
enum tls_trust {
	TLS_TRUST_ANY, /* not at all */
	TLS_TRUST_OFFERED, /* requested; if the peer sends one, it must be valid */
	TLS_TRUST_CHAIN, /* required, and must be valid */
	TLS_TRUST_NAME, /* the same, and it must have the host name of the connection */
};

/* The caller owns the texts, which are only read. Empty or NULL means not given. */
struct tls_options {
	enum tls_side side;
	enum tls_trust trust;
	bool http; /* towards clients: they speak HTTP/1.1, not PostgreSQL's protocol */
	const char *protocols; /* list of versions: tls_protocols_parse() */
	const char
		*ciphers; /* up to TLS 1.2; default, secure, fast, normal: OpenSSL's choice */
	const char *tls13_ciphers;
	const char *curve; /* auto, none or a name of OpenSSL */
	const char *dheparams; /* auto, none */
	const char *ca_file; /* not given: the system's certificate authorities */
	const char *crl_file; /* has revocation lists of all authorities of the chain */
	const char *cert_file, *key_file; /* both or none */
};

/* The ALPN list with the protocol name of PostgreSQL. Protocol: "SSL Session Encryption". */
enum { TLS_ALPN_LENGTH = 11 };
extern const unsigned char tls_alpn[TLS_ALPN_LENGTH + 1];

/* A context with a reference count. */
struct tls_context {
	SSL_CTX *ssl;
	enum tls_side side;
	enum tls_trust trust;
	reference_count holders;
};

/*
 * Read the files and make a context with one reference, the caller's. Returns NULL on failure,
 * with a message in `why` that names the setting or the file.
 */
struct tls_context *tls_context_new(const struct tls_options *options, char *why, size_t size);

/* Returns when our certificate expires, in seconds since 1970; 0 when there is none. */
long long tls_context_not_after(const struct tls_context *context);

/* Take another reference. Returns the context. */
struct tls_context *tls_context_ref(struct tls_context *context);

/* Drop a reference, and free the context with the last one. NULL is allowed. */
void tls_context_unref(struct tls_context *context);

/*
 * Parse a list of protocol versions: words separated by commas or colons, `!` excludes one.
 * Sets `off` to the SSL_OP_NO_* bits of the versions that are disabled. Returns false for an
 * unknown word.
 */
bool tls_protocols_parse(const char *text, uint64_t *off);

#endif
