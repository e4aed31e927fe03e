/* SPDX-License-Identifier: ISC */
/*
 * What all TLS connections of one side have in common: certificate, key, authorities, versions,
 * ciphers. Made whole from files and never changed; a reload makes a new one, and connections
 * keep the one that they were made with.
 */
#ifndef PGUSHER_NET_TLS_CONTEXT_H
#define PGUSHER_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

enum tls_side { TLS_TOWARDS_CLIENTS, TLS_TOWARDS_SERVERS };

/* How much of a peer's certificate is asked for, and looked at. */
enum tls_trust {
	TLS_TRUST_ANY, /* none is looked at */
	TLS_TRUST_OFFERED, /* asked for; one that is shown must be good */
	TLS_TRUST_CHAIN, /* one must be shown, and be good */
	TLS_TRUST_NAME, /* the same, and it must bear the name that was connected to */
};

/* Texts are the caller's. Empty or NULL: not given. */
struct tls_options {
	enum tls_side side;
	enum tls_trust trust;
	const char *protocols; /* list of versions: tls_protocols_parse() */
	const char *ciphers; /* up to TLS 1.2; default, secure, fast, normal: OpenSSL's own */
	const char *tls13_ciphers;
	const char *curve; /* auto, none or OpenSSL's name */
	const char *dheparams; /* auto, none */
	const char *ca_file; /* not given: the system's authorities */
	const char *crl_file; /* revocation lists of every authority of the chain */
	const char *cert_file, *key_file; /* both or none */
};

/* The list with the one protocol name that both sides know. Protocol: "SSL Session Encryption". */
enum { TLS_ALPN_LENGTH = 11 };
extern const unsigned char tls_alpn[TLS_ALPN_LENGTH + 1];

/* Counted. */
struct tls_context {
	SSL_CTX *ssl;
	enum tls_side side;
	enum tls_trust trust;
	unsigned holders;
};

/*
 * Read the files and make a context. NULL: something is wrong, and `why` says what, beginning
 * with the name of the setting or the file.
 */
struct tls_context *tls_context_new(const struct tls_options *options, char *why, size_t size);

/* When our certificate ends to be valid, in seconds since 1970; 0: there is none. */
long long tls_context_not_after(const struct tls_context *context);

/* One more holder. */
struct tls_context *tls_context_ref(struct tls_context *context);

/* One holder less; NULL is fine. */
void tls_context_unref(struct tls_context *context);

/*
 * Read a list of protocol versions: words separated by commas or colons, `!` takes away. Out: the
 * SSL_OP_NO_* bits of those that are off. False: an unknown word.
 */
bool tls_protocols_parse(const char *text, uint64_t *off);

#endif
