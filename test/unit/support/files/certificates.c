/* SPDX-License-Identifier: ISC */
#include "support/files/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { DAY = 24 * 60 * 60 };

static long next_serial = 1;

static void add_extension(X509 *x509, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	assert_non_null(extension);
	assert_int_equal(X509_add_ext(x509, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

static void add_name_with_nul(X509 *x509)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();

	assert_int_equal(ASN1_STRING_set(text, "al\0.example.com", 15), 1);
	GENERAL_NAME_set0_value(name, GEN_DNS, text);
	sk_GENERAL_NAME_push(names, name);
	assert_int_equal(X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, 0), 1);
	GENERAL_NAMES_free(names);
}

struct certificate certificate_make(const struct certificate_wish *wish)
{
	struct certificate made = {.x509 = X509_new(), .key = EVP_EC_gen("P-256")};
	const struct certificate *issuer = wish->issuer ? wish->issuer : &made;
	X509_NAME *subject = X509_get_subject_name(made.x509);

	assert_non_null(made.key);
	X509_set_version(made.x509, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(made.x509), next_serial++);
	X509_gmtime_adj(X509_getm_notBefore(made.x509), -2 * DAY);
	X509_gmtime_adj(X509_getm_notAfter(made.x509), wish->expired ? -DAY : DAY);
	X509_set_pubkey(made.x509, made.key);
	if (wish->common_name)
		X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
			(const unsigned char *)wish->common_name,
			wish->common_name_length ? wish->common_name_length : -1, -1, 0);
	X509_set_issuer_name(made.x509, X509_get_subject_name(issuer->x509));
	if (!wish->issuer)
		add_extension(
			made.x509, issuer->x509, NID_basic_constraints, "critical,CA:TRUE");
	if (wish->alternative_names)
		add_extension(
			made.x509, issuer->x509, NID_subject_alt_name, wish->alternative_names);
	if (wish->has_nul)
		add_name_with_nul(made.x509);
	assert_true(X509_sign(made.x509, issuer->key, EVP_sha256()) > 0);
	return made;
}

void certificate_free(struct certificate *certificate)
{
	X509_free(certificate->x509);
	EVP_PKEY_free(certificate->key);
}

static FILE *open_for_writing(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	return file;
}

void certificate_save(const struct certificate *certificate, const char *path)
{
	FILE *file = open_for_writing(path);

	assert_int_equal(PEM_write_X509(file, certificate->x509), 1);
	fclose(file);
}

void certificate_save_key(const struct certificate *certificate, const char *path)
{
	FILE *file = open_for_writing(path);

	assert_int_equal(
		PEM_write_PrivateKey(file, certificate->key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(file);
}

void certificate_save_revocation(
	const struct certificate *issuer, const struct certificate *revoked, const char *path)
{
	X509_CRL *list = X509_CRL_new();
	ASN1_TIME *time = ASN1_TIME_new();
	FILE *file = open_for_writing(path);

	X509_CRL_set_version(list, X509_CRL_VERSION_2);
	X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer->x509));
	X509_gmtime_adj(time, -DAY);
	X509_CRL_set1_lastUpdate(list, time);
	if (revoked) {
		X509_REVOKED *entry = X509_REVOKED_new();

		X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked->x509));
		X509_REVOKED_set_revocationDate(entry, time);
		X509_CRL_add0_revoked(list, entry);
	}
	X509_gmtime_adj(time, DAY);
	X509_CRL_set1_nextUpdate(list, time);
	X509_CRL_sort(list);
	assert_true(X509_CRL_sign(list, issuer->key, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_X509_CRL(file, list), 1);
	fclose(file);
	ASN1_TIME_free(time);
	X509_CRL_free(list);
}
