/* SPDX-License-Identifier: ISC */
/* MD5 of two texts in a row, as "md5" and hex digits. */
#include "crypt/md5.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

#include "base/text.h"

enum { DIGEST_SIZE = 16 };

/* Looked up once: OpenSSL takes longer to find a digest than to compute one. */
static EVP_MD *md5;

static void find_md5(void)
{
	md5 = EVP_MD_fetch(NULL, "MD5", NULL);
}

static const EVP_MD *found_md5(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_md5);
	return md5;
}

/* False when MD5 is not to be had. */
static bool digest_of_both(const void *first, size_t first_length, const void *second,
	size_t second_length, char out[MD5_SECRET_SIZE])
{
	uint8_t digest[DIGEST_SIZE];
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool good = context != NULL && found_md5() != NULL &&
		EVP_DigestInit_ex(context, found_md5(), NULL) == 1 &&
		EVP_DigestUpdate(context, first, first_length) == 1 &&
		EVP_DigestUpdate(context, second, second_length) == 1 &&
		EVP_DigestFinal_ex(context, digest, NULL) == 1;

	EVP_MD_CTX_free(context);
	if (!good)
		return false;
	(void)text_copy(out, MD5_SECRET_SIZE, "md5");
	text_hex(out + 3, MD5_SECRET_SIZE - 3, digest, sizeof(digest));
	explicit_bzero(digest, sizeof(digest));
	return true;
}

bool md5_secret(const char *password, const char *user, char out[MD5_SECRET_SIZE])
{
	return digest_of_both(password, strlen(password), user, strlen(user), out);
}

bool md5_response(const char secret[MD5_SECRET_SIZE], const uint8_t salt[MD5_SALT_SIZE],
	char out[MD5_SECRET_SIZE])
{
	const char *digits = secret + strlen("md5");

	return digest_of_both(digits, strlen(digits), salt, MD5_SALT_SIZE, out);
}

bool md5_is_secret(const char *text)
{
	return strlen(text) == MD5_SECRET_LENGTH && memcmp(text, "md5", 3) == 0 &&
		strspn(text + 3, "0123456789abcdef") == MD5_SECRET_LENGTH - 3;
}
