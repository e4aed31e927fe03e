/* SPDX-License-Identifier: ISC */
#include "crypt/digest.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

static const struct {
	const char *name;
	const EVP_MD *(*unfetched)(void); /* fetches the digest again at each use */
} kinds[DIGEST_KINDS] = {
	[DIGEST_MD5] = {"MD5", EVP_md5},
	[DIGEST_SHA256] = {"SHA2-256", EVP_sha256},
};

static EVP_MD *found[DIGEST_KINDS];

static void find_all(void)
{
	for (size_t i = 0; i < DIGEST_KINDS; i++)
		found[i] = EVP_MD_fetch(NULL, kinds[i].name, NULL);
}

static const EVP_MD *digest_named(enum digest_kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_all);
	/* The first lookup may have failed for lack of memory. */
	return found[kind] ? found[kind] : kinds[kind].unfetched();
}

const EVP_MD *digest_sha256(void)
{
	return digest_named(DIGEST_SHA256);
}

static bool run(EVP_MD_CTX *context, const EVP_MD *digest, const struct digest_piece *pieces,
	size_t count, uint8_t *out)
{
	if (EVP_DigestInit_ex(context, digest, NULL) != 1)
		return false;
	for (size_t i = 0; i < count; i++)
		if (EVP_DigestUpdate(context, pieces[i].data, pieces[i].length) != 1)
			return false;
	return EVP_DigestFinal_ex(context, out, NULL) == 1;
}

bool digest_of(
	enum digest_kind kind, const struct digest_piece *pieces, size_t count, uint8_t *out)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	const bool good = context && run(context, digest_named(kind), pieces, count, out);

	EVP_MD_CTX_free(context);
	return good;
}

/* The key, padded with zeros to the size of a block, each byte XORed with `with`. */
static void pad_key(const uint8_t key[SHA256_SIZE], uint8_t with, uint8_t *out, size_t size)
{
	memset(out, with, size);
	for (size_t i = 0; i < SHA256_SIZE; i++)
		out[i] ^= key[i];
}

bool digest_hmac_sha256(const uint8_t key[SHA256_SIZE], const void *data, size_t length,
	uint8_t out[SHA256_SIZE])
{
	enum { BLOCK_SIZE = 64, INNER = 0x36, OUTER = 0x5c };
	const EVP_MD *digest = digest_named(DIGEST_SHA256);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	uint8_t pad[BLOCK_SIZE], inner[SHA256_SIZE];
	bool good;

	pad_key(key, INNER, pad, sizeof(pad));
	good = context &&
		run(context, digest,
			(const struct digest_piece[]){{pad, sizeof(pad)}, {data, length}}, 2,
			inner);
	pad_key(key, OUTER, pad, sizeof(pad));
	good = good &&
		run(context, digest,
			(const struct digest_piece[]){
				{pad, sizeof(pad)}, {inner, sizeof(inner)}},
			2, out);
	explicit_bzero(pad, sizeof(pad));
	explicit_bzero(inner, sizeof(inner));
	EVP_MD_CTX_free(context);
	return good;
}
