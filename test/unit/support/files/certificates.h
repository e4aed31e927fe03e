/* SPDX-License-Identifier: ISC */
/* Certificates for tests, made on the spot, as PEM files. Failures end the test. */
#ifndef PGUSHER_TEST_CERTIFICATES_H
#define PGUSHER_TEST_CERTIFICATES_H

#include <openssl/x509.h>
#include <stdbool.h>

struct certificate {
	X509 *x509;
	EVP_PKEY *key;
};

/* What is to be in it; NULL: nothing. */
struct certificate_wish {
	const char *common_name;
	int common_name_length; /* 0: up to its NUL */
	const char *alternative_names; /* as OpenSSL writes them: DNS:a,IP:127.0.0.1 */
	bool has_nul; /* a DNS name with a NUL in it too; there are no other alternative names */
	const struct certificate *issuer; /* NULL: itself, and it may issue others */
	bool expired;
};

struct certificate certificate_make(const struct certificate_wish *wish);
void certificate_free(struct certificate *certificate);

/* Write the certificate, its key, or a list that revokes `revoked`, into a file. */
void certificate_save(const struct certificate *certificate, const char *path);
void certificate_save_key(const struct certificate *certificate, const char *path);
void certificate_save_revocation(
	const struct certificate *issuer, const struct certificate *revoked, const char *path);

#endif
