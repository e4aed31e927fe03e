/* SPDX-License-Identifier: ISC */
/* MD5 of two concatenated texts, as "md5" and hex digits. */
#include "crypt/md5.h"

#include <string.h>

#include "base/text.h"
#include "crypt/digest.h"

/* Returns false if MD5 is not available. */
static bool digest_of_both(const void *first, size_t first_length, const void *second,
	size_t second_length, char out[MD5_SECRET_SIZE])
{
	const struct digest_piece pieces[] = {{first, first_length}, {second, second_length}};
	uint8_t digest[MD5_SIZE];

	if (!digest_of(DIGEST_MD5, pieces, 2, digest))
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
