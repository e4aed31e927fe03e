/* SPDX-License-Identifier: ISC */
/* Certificates for tests, generated and saved as PEM files. A failure ends the test. */
#ifndef PGUSHER_TEST_CERTIFICATES_H
#define PGUSHER_TEST_CERTIFICATES_H

#include <openssl/x509.h>
#include <stdbool.h>

struct certificate {
	X509 *x509;
	EVP_PKEY *key;
};

/* The contents of a certificate. NULL: without it. */
struct certificate_wish {
	const char *common_name;
	int common_name_length; /* 0: strlen() */
	const char *alternative_names; /* in OpenSSL's notation: DNS:a,IP:127.0.0.1 */
	bool has_nul; /* also a DNS name that contains a NUL; excludes alternative_names */
	const struct certificate *issuer; /* NULL: self-signed, and a certificate authority */
	bool expired;
};

struct certificate certificate_make(const struct certificate_wish *wish);
void certificate_free(struct certificate *certificate);

/*
 * Saves the certificate, its key, or a revocation list with `revoked` (NULL: empty) to a file.
 */
void certificate_save(const struct certificate *certificate, const char *path);
void certificate_save_key(const struct certificate *certificate, const char *path);
void certificate_save_revocation(
	const struct certificate *issuer, const struct certificate *revoked, const char *path);

#endif
