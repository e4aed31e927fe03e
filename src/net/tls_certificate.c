/* SPDX-License-Identifier: ISC */
/* The certificates of an encrypted stream: names and channel binding. */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "net/tls_parts.h"

/* --- names -------------------------------------------------------------------------------- */

/* A search through the names of a certificate. */
struct search {
	tls_name_function *wanted;
	const void *context;
	bool found;
	bool has_nul; /* a name has a NUL in it: the authority may have verified another name */
};

static void consider(struct search *search, const void *text, int length)
{
	char *name;

	if (length <= 0 || search->found)
		return;
	name = strndup(text, (size_t)length);
	search->found = name && search->wanted(name, search->context);
	free(name);
}

static void look_at(struct search *search, const void *text, int length)
{
	if (length > 0 && memchr(text, '\0', (size_t)length))
		search->has_nul = true;
	else
		consider(search, text, length);
}

static void look_at_common_name(struct search *search, X509 *certificate)
{
	X509_NAME *subject = X509_get_subject_name(certificate);
	const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	unsigned char *text = NULL;
	int length;

	/* Ignore several common names: it is not clear which one counts. */
	if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
		return;
	length = ASN1_STRING_to_UTF8(
		&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	if (length < 0)
		return;
	look_at(search, text, length);
	OPENSSL_free(text);
}

static void look_at_alternative_names(struct search *search, X509 *certificate)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *entry = sk_GENERAL_NAME_value(names, i);

		if (entry->type == GEN_DNS)
			look_at(search, ASN1_STRING_get0_data(entry->d.dNSName),
				ASN1_STRING_length(entry->d.dNSName));
	}
	GENERAL_NAMES_free(names);
}

bool tls_has_peer_certificate(const struct stream *stream)
{
	return stream->tls && !stream->tls->shaking_hands &&
		SSL_get0_peer_certificate(stream->tls->ssl);
}

bool tls_peer_has_name(
	const struct stream *stream, tls_name_function *wanted, const void *context)
{
	struct search search = {.wanted = wanted, .context = context};
	X509 *certificate;

	if (!tls_has_peer_certificate(stream))
		return false;
	certificate = SSL_get0_peer_certificate(stream->tls->ssl);
	look_at_common_name(&search, certificate);
	look_at_alternative_names(&search, certificate);
	return search.found && !search.has_nul;
}

static bool is_same(const char *name, const void *context)
{
	return strcmp(name, context) == 0;
}

bool tls_peer_is(const struct stream *stream, const char *name)
{
	return tls_peer_has_name(stream, is_same, name);
}

bool tls_is_address(const char *name)
{
	uint8_t bytes[16];

	return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* RFC 6125; an IP address may also be the exact common name, as in older certificates. */
bool tls_certificate_has_name(X509 *certificate, const char *name)
{
	if (tls_is_address(name)) {
		struct search search = {.wanted = is_same, .context = name};

		look_at_common_name(&search, certificate);
		return X509_check_ip_asc(certificate, name, 0) == 1 ||
			(search.found && !search.has_nul);
	}
	return X509_check_host(
		       certificate, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1;
}

/* --- channel binding ---------------------------------------------------------------------- */

/* RFC 5929 section 4.1: the digest of the signature; SHA-256 instead of MD5 and SHA-1. */
static const EVP_MD *binding_digest(const X509 *certificate)
{
	int digest;

	if (!X509_get_signature_info((X509 *)certificate, &digest, NULL, NULL, NULL))
		return NULL;
	if (digest == NID_md5 || digest == NID_sha1)
		return EVP_sha256();
	return EVP_get_digestbynid(digest);
}

size_t tls_end_point(const struct stream *stream, uint8_t out[TLS_BINDING_MAX])
{
	const struct tls *tls = stream->tls;
	const X509 *certificate;
	const EVP_MD *digest;
	unsigned length = 0;

	if (!tls || tls->shaking_hands)
		return 0;
	certificate = tls->context->side == TLS_TOWARDS_CLIENTS
		? SSL_get_certificate(tls->ssl)
		: SSL_get0_peer_certificate(tls->ssl);
	digest = certificate ? binding_digest(certificate) : NULL;
	if (!digest || X509_digest(certificate, digest, out, &length) != 1)
		length = 0;
	ERR_clear_error();
	return length;
}
